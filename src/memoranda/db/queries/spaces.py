"""Spaces: where statements are learned, and whether more may be."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, select, update

from memoranda.db.schema import Tables
from memoranda.errors import NotAllowed
from memoranda.records import Space
from memoranda.scope import Scope


def create(conn: Connection, tables: Tables, scope: Scope, name: str, now: datetime) -> bool:
    """Open a space, also one that was archived; returns False when it is open already."""
    s = tables.spaces
    values = {"tenant": scope.tenant, "persona": scope.persona, "name": name, "created_at": now}
    added = conn.execute(tables.dialect.insert(s).values(values).on_conflict_do_nothing().returning(s.c.name)).first()
    if added is not None:
        return True
    own = (s.c.tenant == scope.tenant, s.c.persona == scope.persona, s.c.name == name, s.c.archived_at.is_not(None))
    return conn.execute(update(s).where(*own).values(archived_at=None).returning(s.c.name)).first() is not None


def archive(conn: Connection, tables: Tables, scope: Scope, name: str, now: datetime) -> bool:
    """Let nothing more be written in a space; returns False when none of this name is open."""
    s = tables.spaces
    own = (s.c.tenant == scope.tenant, s.c.persona == scope.persona, s.c.name == name, s.c.archived_at.is_(None))
    return conn.execute(update(s).where(*own).values(archived_at=now).returning(s.c.name)).first() is not None


def listed(conn: Connection, tables: Tables, scope: Scope) -> list[Space]:
    """Return every space, in order of their names."""
    s = tables.spaces
    own = (s.c.tenant == scope.tenant, s.c.persona == scope.persona)
    found = conn.execute(select(s.c.name, s.c.created_at, s.c.archived_at).where(*own).order_by(s.c.name))
    return [Space(name=row.name, created_at=row.created_at, archived_at=row.archived_at) for row in found]


def require_open(conn: Connection, tables: Tables, scope: Scope, names: Collection[str]) -> None:
    """Hold spaces open until the transaction ends.

    Raises:
        NotAllowed: one of them does not exist, or is archived.
    """
    s = tables.spaces
    for name in sorted(names):
        own = (s.c.tenant == scope.tenant, s.c.persona == scope.persona, s.c.name == name)
        row = conn.execute(select(s.c.archived_at).where(*own).with_for_update(read=True)).first()
        if row is None:
            raise NotAllowed(f"There is no space {name!r}: have `spaces.create` called for it first.")
        if row.archived_at is not None:
            raise NotAllowed(f"The space {name!r} is archived: `spaces.create` opens it again.")
