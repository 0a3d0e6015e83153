"""The user model: one row a dimension, written in place, with every earlier text kept.

Each text remembers the version it took the place of, so that undo goes back step by step through what was written: what
undo gives back remembers what that text had followed on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update

from memoranda.db.queries.visibility import owned
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.errors import InvalidInput
from memoranda.records import Dimension
from memoranda.scope import Scope

DEFAULT_CONFIDENCE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """A dimension as it stands."""

    dimension: Dimension
    follows: int | None
    """The version undo goes back to; None where it goes back to nothing."""


def write(
    conn: Connection, tables: Tables, scope: Scope, dimension: str, content: str, confidence: int | None, now: datetime
) -> Dimension:
    """Give a dimension its text; a confidence that is left out stays as it is."""
    _take_turns(conn, tables, scope, dimension)
    row = _values(scope, dimension) | {
        "content": content,
        "confidence": confidence or DEFAULT_CONFIDENCE,
        "version": _next_version(conn, tables, scope, dimension),
        "created_at": now,
        "updated_at": now,
    }
    if tables.inserts.add(conn, tables.user_model, [row], skip_conflicts=True):
        return _dimension(row)
    old = _locked(conn, tables, scope, dimension)
    if old is None:  # erased this very moment
        return write(conn, tables, scope, dimension, content, confidence, now)
    known = old.dimension
    if (known.content, known.confidence) == (content, confidence or known.confidence):
        return known
    return _replace(conn, tables, scope, old, content, confidence or known.confidence, known.version, now)


def rewrite(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    dimension: str,
    content: str,
    confidence: int,
    now: datetime,
    seen: int,
) -> Dimension | None:
    """Give a dimension its text if it still is at the version `seen`, 0 for none; None where it is not."""
    _take_turns(conn, tables, scope, dimension)
    old = _locked(conn, tables, scope, dimension)
    if (old.dimension.version if old else 0) != seen:
        return None
    return write(conn, tables, scope, dimension, content, confidence, now)


def listed(conn: Connection, tables: Tables, setting: Setting) -> list[Dimension]:
    """Return every dimension, the surest first, then by name."""
    u = tables.user_model
    rows = conn.execute(select(u).where(*_seen(u, setting)).order_by(u.c.confidence.desc(), u.c.dimension))
    return [_dimension(row._mapping) for row in rows]


def history(conn: Connection, tables: Tables, setting: Setting, dimension: str) -> list[Dimension]:
    """Return every text a dimension had, the oldest first, the present one last."""
    v, u = tables.user_model_versions, tables.user_model
    earlier = conn.execute(select(v).where(*_seen(v, setting), v.c.dimension == dimension).order_by(v.c.version))
    now = conn.execute(select(u).where(*_seen(u, setting), u.c.dimension == dimension))
    return [_version(row._mapping) for row in earlier] + [_dimension(row._mapping) for row in now]


def as_of(conn: Connection, tables: Tables, setting: Setting, moment: datetime) -> list[Dimension]:
    """Return the dimensions as they were at a moment, in the order of `listed`."""
    v, u = tables.user_model_versions, tables.user_model
    past = conn.execute(select(v).where(*_seen(v, setting), v.c.created_at <= moment, v.c.replaced_at > moment))
    present = conn.execute(select(u).where(*_seen(u, setting), u.c.updated_at <= moment))
    found = [_version(row._mapping) for row in past] + [_dimension(row._mapping) for row in present]
    return sorted(found, key=lambda dimension: (-dimension.confidence, dimension.dimension))


def undo(conn: Connection, tables: Tables, scope: Scope, dimension: str, now: datetime) -> Dimension | None:
    """Give a dimension the text back it had before the last write not undone; None when it had none and is gone now.

    Raises:
        InvalidInput: there is no such dimension.
    """
    _take_turns(conn, tables, scope, dimension)
    old = _locked(conn, tables, scope, dimension)
    if old is None:
        raise InvalidInput(f"there is no dimension {dimension!r}: there is nothing to undo", field="dimension")
    v, u = tables.user_model_versions, tables.user_model
    if old.follows is None:
        _keep(conn, tables, scope, old, now)
        conn.execute(delete(u).where(*_own(u, scope, dimension)))
        return None
    before = conn.execute(select(v).where(*_own(v, scope, dimension), v.c.version == old.follows)).one()
    return _replace(conn, tables, scope, old, before.content, before.confidence, before.follows, now)


def _take_turns(conn: Connection, tables: Tables, scope: Scope, dimension: str) -> None:
    """Let writers of one dimension wait for each other, also where it has no row yet or none any more."""
    key = ("memoranda:user_model", scope.tenant, scope.persona, scope.author, dimension)
    tables.dialect.advise_lock(conn, "\x1f".join(key))


def _next_version(conn: Connection, tables: Tables, scope: Scope, dimension: str) -> int:
    v = tables.user_model_versions
    return (conn.scalar(select(func.max(v.c.version)).where(*_own(v, scope, dimension))) or 0) + 1


def _replace(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    old: _Present,
    content: str,
    confidence: int,
    follows: int | None,
    now: datetime,
) -> Dimension:
    _keep(conn, tables, scope, old, now)
    u, known = tables.user_model, old.dimension
    values = {
        "content": content,
        "confidence": confidence,
        "updated_at": now,
        "version": known.version + 1,
        "follows": follows,
    }
    row = conn.execute(update(u).where(*_own(u, scope, known.dimension)).values(**values).returning(*u.c)).one()
    return _dimension(row._mapping)


def _keep(conn: Connection, tables: Tables, scope: Scope, old: _Present, now: datetime) -> None:
    known = old.dimension
    row = _values(scope, known.dimension) | {
        "version": known.version,
        "content": known.content,
        "confidence": known.confidence,
        "follows": old.follows,
        "created_at": known.updated_at,
        "replaced_at": now,
    }
    tables.inserts.add(conn, tables.user_model_versions, [row])


def _locked(conn: Connection, tables: Tables, scope: Scope, dimension: str) -> _Present | None:
    u = tables.user_model
    row = conn.execute(select(u).where(*_own(u, scope, dimension)).with_for_update()).first()
    return _Present(dimension=_dimension(row._mapping), follows=row.follows) if row else None


def _values(scope: Scope, dimension: str) -> dict[str, Any]:
    return {"tenant": scope.tenant, "persona": scope.persona, "user": scope.author, "dimension": dimension}


def _seen(table: Table, setting: Setting) -> Sequence[ColumnElement[bool]]:
    """Return the conditions for what the asker may read of a user's model: their own."""
    scope = setting.scope
    own = owned(scope, setting.policies.visibility, table.c.user)
    return (table.c.tenant == scope.tenant, table.c.persona == scope.persona, own)


def _own(table: Table, scope: Scope, dimension: str) -> Sequence[ColumnElement[bool]]:
    """Return the conditions for one dimension of who may write it, see `Context.writing`."""
    own = (table.c.tenant == scope.tenant, table.c.persona == scope.persona, table.c.user == scope.author)
    return (*own, table.c.dimension == dimension)


def _dimension(row: Any) -> Dimension:
    names = ("dimension", "content", "confidence", "version", "created_at", "updated_at")
    return Dimension(**{name: row[name] for name in names})


def _version(row: Any) -> Dimension:
    return Dimension(
        dimension=row["dimension"],
        content=row["content"],
        confidence=row["confidence"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["created_at"],
        replaced_at=row["replaced_at"],
    )
