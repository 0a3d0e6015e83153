"""Keys of records: what was indexed, under which group, and when by the database's clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, or_, select

from memoranda.db.schema import Tables
from memoranda.errors import InvalidInput
from memoranda.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which keys: noted before and after a moment, neither included, and of these groups."""

    before: float | None = None
    after: float | None = None
    groups: Sequence[str | None] | None = None


def now(conn: Connection, tables: Tables) -> float:
    """Return the moment by the database's clock, in seconds since 1970."""
    return tables.dialect.now(conn).timestamp()


def note(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    namespace: str,
    groups: dict[str, str | None],
    not_before: float | None,
) -> None:
    """Note that records were indexed now.

    Raises:
        InvalidInput: the database's clock stands before `not_before`.
    """
    moment = now(conn, tables)
    if not_before is not None and moment < not_before:
        raise InvalidInput("the database's clock stands before the moment that was given", field="not_before")
    k = tables.record_keys
    whose = {"tenant": scope.tenant, "persona": scope.persona, "author": scope.author, "namespace": namespace}
    insert = tables.dialect.insert(k)
    upsert = insert.on_conflict_do_update(
        index_elements=[k.c[name] for name in (*whose, "key")],
        set_={"group_id": insert.excluded.group_id, "updated_at": insert.excluded.updated_at},
    )
    # In the order of the keys, for two batches that meet in the same rows must not wait for each other.
    rows = [{**whose, "key": key, "group_id": groups[key], "updated_at": moment} for key in sorted(groups)]
    conn.execute(upsert, rows)


def existing(conn: Connection, tables: Tables, scope: Scope, namespace: str, keys: Sequence[str]) -> set[str]:
    """Return those of the keys that are noted."""
    k = tables.record_keys
    own = _own(tables, scope, namespace)
    return set(conn.scalars(select(k.c.key).where(*own, tables.dialect.texts_in(k.c.key, keys))))


def listed(
    conn: Connection, tables: Tables, scope: Scope, namespace: str, wanted: Wanted, limit: int | None
) -> list[str]:
    """Return keys, those noted first before the others."""
    k = tables.record_keys
    conditions: list[ColumnElement[bool]] = []
    if wanted.before is not None:
        conditions.append(k.c.updated_at < wanted.before)
    if wanted.after is not None:
        conditions.append(k.c.updated_at > wanted.after)
    if wanted.groups is not None:
        named = tables.dialect.texts_in(k.c.group_id, [group for group in wanted.groups if group is not None])
        conditions.append(or_(named, k.c.group_id.is_(None)) if None in wanted.groups else named)
    found = select(k.c.key).where(*_own(tables, scope, namespace), *conditions)
    return list(conn.scalars(found.order_by(k.c.updated_at, k.c.key).limit(limit)))


def forget(conn: Connection, tables: Tables, scope: Scope, namespace: str, keys: Sequence[str]) -> int:
    """Delete keys, and return how many there were."""
    k = tables.record_keys
    own = _own(tables, scope, namespace)
    return conn.execute(delete(k).where(*own, tables.dialect.texts_in(k.c.key, keys))).rowcount


def _own(tables: Tables, scope: Scope, namespace: str) -> tuple[ColumnElement[Any], ...]:
    k = tables.record_keys
    return (
        k.c.tenant == scope.tenant,
        k.c.persona == scope.persona,
        k.c.author == scope.author,
        k.c.namespace == namespace,
    )
