"""Memories looked up inside a scope."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, select, tuple_

from memoranda.db.queries import past, rows
from memoranda.db.queries.visibility import held, holding, narrowed, rewritten, seen_rows, visible
from memoranda.db.schema import Tables
from memoranda.db.statements import Selection
from memoranda.drafts import Setting
from memoranda.errors import MemoryNotFound
from memoranda.filters import Filters
from memoranda.ids import parse
from memoranda.records import Memory, MemoryRecord, MemoryVersion, Source


def _shown(tables: Tables, setting: Setting) -> Selection:
    """Return the memories that the scope may see."""
    return seen_rows(tables, tables.corpora["memory"], setting.scope, setting.policies.visibility, None)


def find(
    conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str, *, lock: bool = False
) -> Memory | None:
    """Return the memory with an id or a short id, if it exists and the scope may see it."""
    parsed, m = parse(identifier), tables.memories
    if parsed is None:
        return None
    shown, key = _shown(tables, setting), m.c.id if isinstance(parsed, UUID) else m.c.short_id

    def build() -> Select[Any]:
        found = select(*rows.columns(m)).where(shown.where(m), key == bindparam("one"))
        return found.with_for_update(of=m) if lock else found

    statement = tables.statements.get(("one memory", shown.form, key.name, lock), build)
    row = conn.execute(statement, {**shown.values, "one": parsed}).first()
    return rows.memory(row) if row else None


def by_ids(conn: Connection, tables: Tables, setting: Setting, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Return the memories with these ids that the scope may see."""
    m = tables.memories
    shown = _shown(tables, setting)

    def build() -> Select[Any]:
        return select(*rows.columns(m)).where(shown.where(m), tables.dialect.ids_in(m.c.id, ids, "ids"))

    values = {**shown.values, "ids": tables.dialect.id_list(ids)}
    found = tables.statements.rows(conn, ("by ids", shown.form), build, values)
    return {memory.id: memory for memory in veiled(conn, tables, setting, [rows.memory(row) for row in found])}


def veiled(conn: Connection, tables: Tables, setting: Setting, found: Sequence[Memory]) -> list[Memory]:
    """Return memories without the ids of successors the scope may not see: only others' memories can have such."""
    named = {x.superseded_by for x in found if x.superseded_by is not None and x.author != setting.scope.author}
    if not named:
        return list(found)
    m = tables.memories
    seen = visible(tables, setting.scope, setting.policies.visibility)
    hidden = named - set(conn.scalars(select(m.c.id).where(seen, tables.dialect.ids_in(m.c.id, sorted(named)))))
    return [replace(memory, superseded_by=None) if memory.superseded_by in hidden else memory for memory in found]


def record(
    conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str, as_of: datetime | None = None
) -> MemoryRecord | None:
    """Return a memory with its sources, its neighbours in the chain, its earlier images and its access counts.

    With `as_of` it is the one of its chain that held at that moment, in the words it had then; None when none did.
    """
    memory = find(conn, tables, setting, identifier)
    if memory is not None and as_of is not None:
        memory = _held(conn, tables, setting, memory.id, as_of)
    if memory is None:
        return None
    v, a = tables.memory_versions, tables.memory_access
    # Where it came from is the author's: an excerpt may quote what is not shared.
    own = memory.author == setting.scope.author
    sources = _sources(conn, tables, memory) if own else []
    images = _of_memory(conn, tables, v, (*v.c,), memory, v.c.version)
    seen_images = veiled(conn, tables, setting, [rows.from_image(row.image) for row in images])
    versions = [
        MemoryVersion(
            memory_id=row.memory_id,
            version=row.version,
            change=row.change,
            changed_by=row.changed_by,
            changed_at=row.changed_at,
            memory=image,
        )
        for row, image in zip(images, seen_images, strict=True)
    ]
    access = next(iter(_of_memory(conn, tables, a, (a.c.count, a.c.last_accessed_at), memory)), None)
    successor = find(conn, tables, setting, memory.superseded_by) if memory.superseded_by else None
    change = None
    if own and (revised := [x.changed_at for x in versions if x.change == "revise" and as_of and x.changed_at > as_of]):
        change = next((source for source in sources if source.created_at == revised[0]), None)
    elif successor and successor.author == setting.scope.author:
        change = next(iter(_sources(conn, tables, successor)), None)
    return MemoryRecord(
        memory=memory if successor else replace(memory, superseded_by=None),
        sources=tuple(source for source in sources if as_of is None or source.created_at <= as_of),
        supersedes=tuple(_replaced(conn, tables, setting, memory)),
        superseded_by=successor,
        change=change,
        versions=tuple(versions),
        access_count=access[0] if access else 0,
        last_accessed_at=access[1] if access else None,
    )


def _of_memory(
    conn: Connection,
    tables: Tables,
    table: Table,
    columns: Sequence[ColumnElement[Any]],
    memory: Memory,
    *order: ColumnElement[Any],
) -> Sequence[Any]:
    """Return the rows of a table that are a memory's."""

    def build() -> Select[Any]:
        own = (table.c[name] == bindparam(name) for name in ("tenant", "persona", "memory_id"))
        return select(*columns).where(*own).order_by(*order)

    statement = tables.statements.get(("of a memory", table.name), build)
    return conn.execute(statement, {"tenant": memory.tenant, "persona": memory.persona, "memory_id": memory.id}).all()


def _replaced(conn: Connection, tables: Tables, setting: Setting, memory: Memory) -> list[Memory]:
    """Return what a memory replaced, as far as the scope may see it."""
    m, shown = tables.memories, _shown(tables, setting)

    def build() -> Select[Any]:
        found = select(*rows.columns(m)).where(shown.where(m), m.c.superseded_by == bindparam("one"))
        return found.order_by(m.c.created_at, m.c.id)

    statement = tables.statements.get(("replaced", shown.form), build)
    found = conn.execute(statement, {**shown.values, "one": memory.id}).all()
    return veiled(conn, tables, setting, [rows.memory(row) for row in found])


def _sources(conn: Connection, tables: Tables, memory: Memory) -> list[Source]:
    s = tables.sources
    names = ("id", "memory_id", "type", "session", "channel", "actor", "excerpt", "created_at")
    found = _of_memory(conn, tables, s, [s.c[name] for name in names], memory, s.c.created_at, s.c.id)
    return [Source(**row._mapping) for row in found]


def _held(conn: Connection, tables: Tables, setting: Setting, identifier: UUID, moment: datetime) -> Memory | None:
    """Return the memory of a chain that held at a moment, in the words it had then."""
    chain = past.as_held(conn, tables, history(conn, tables, setting, identifier), moment)
    return next((memory for memory in reversed(chain) if held(memory, moment)), None)


def history(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> list[Memory]:
    """Return everything a memory replaced and everything that replaced it, oldest first."""
    memory = find(conn, tables, setting, identifier)
    if memory is None:
        return []
    m, shown = tables.memories, _shown(tables, setting)

    def build() -> Select[Any]:
        own = [m.c[name] == bindparam(name) for name in ("tenant", "persona")]
        chain = rows.chain(m, own, m.c.id == bindparam("one"))
        return select(*rows.columns(m)).where(shown.where(m), m.c.id.in_(chain)).order_by(m.c.created_at, m.c.id)

    statement = tables.statements.get(("history", shown.form), build)
    found = conn.execute(statement, {**shown.values, "one": memory.id}).all()
    return veiled(conn, tables, setting, [rows.memory(row) for row in found])


def listed(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    filters: Filters,
    limit: int,
    order: Literal["newest", "importance"],
    before: UUID | str | None,
) -> list[Memory]:
    """Return a page of memories, in the order asked for, from behind the row named by `before`."""
    m, moment = tables.memories, filters.as_of
    keys = (m.c.importance, m.c.created_at, m.c.id) if order == "importance" else (m.c.created_at, m.c.id)

    def place(memory: Memory) -> tuple[Any, ...]:
        return tuple(getattr(memory, key.name) for key in keys)

    statement = (
        select(*rows.columns(m))
        .where(
            visible(tables, setting.scope, setting.policies.visibility),
            holding(m, filters, setting.now),
            narrowed(m, filters),
        )
        .order_by(*(key.desc() for key in keys))
        .limit(limit)
    )
    then = past.rewritten_since(conn, tables, setting, filters)
    if moment is not None and then:
        statement = statement.where(~rewritten(tables, setting.scope, m, moment))
    others = [item.memory for item in then if item.holds]
    if before is not None:
        last = find(conn, tables, setting, before)
        if last is None:
            raise MemoryNotFound()
        if moment is not None:
            [last] = past.as_held(conn, tables, [last], moment)
        statement = statement.where(tuple_(*keys) < tuple_(*place(last)))
        others = [memory for memory in others if place(memory) < place(last)]
    found = [rows.memory(row) for row in conn.execute(statement)]
    if others:
        found = sorted([*found, *others], key=place, reverse=True)[:limit]
    return veiled(conn, tables, setting, found)


def count_access(conn: Connection, tables: Tables, setting: Setting, ids: Sequence[UUID]) -> None:
    """Note that a recall returned these memories."""
    a, scope = tables.memory_access, setting.scope
    statement = tables.dialect.insert(a)
    conn.execute(
        statement.on_conflict_do_update(
            index_elements=["tenant", "persona", "memory_id"],
            set_={"count": a.c.count + 1, "last_accessed_at": statement.excluded.last_accessed_at},
        ),
        [
            # In one order, for two recalls of the same rows must not wait for each other.
            {
                "tenant": scope.tenant,
                "persona": scope.persona,
                "memory_id": memory_id,
                "count": 1,
                "last_accessed_at": setting.now,
            }
            for memory_id in sorted(ids)
        ],
    )
