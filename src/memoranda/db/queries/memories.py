"""Memories: stored once, looked up inside a scope."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Table, literal, select, tuple_, union

from memoranda.db.queries import projects, rows
from memoranda.db.queries.visibility import holding, narrowed, visible
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting, respell
from memoranda.errors import MemoryNotFound, NotAllowed, StoreError
from memoranda.filters import Filters
from memoranda.ids import new_short_id, parse
from memoranda.records import Memory, MemoryRecord, MemoryVersion, Source

_ATTEMPTS = 5  # at a short id that is free: two collisions in a row take 10^12 rows in one persona


def add(
    conn: Connection,
    tables: Tables,
    drafts: Sequence[Draft],
    vectors: Sequence[Any],
    model: str | None,
    setting: Setting,
) -> list[tuple[Memory, bool]]:
    """Store drafts with their sources and vectors; an exact duplicate gives back the row that is already there.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        drafts: What to store.
        vectors: One a draft, None for a draft that has none.
        model: What made the vectors.
        setting: The scope and policies the drafts were made under.

    Returns:
        For each draft the memory, and whether it was stored by this call.
    """
    drafts = _placed(conn, tables, drafts, setting)
    found: dict[UUID, tuple[Memory, bool]] = {}
    pending = list(drafts)
    for _ in range(_ATTEMPTS):
        fresh = _insert(conn, tables, pending)
        found |= {item.memory.id: (item.memory, True) for item in pending if item.memory.id in fresh}
        pending = [item for item in pending if item.memory.id not in fresh]
        if not pending:
            break
        known = _by_dedupe_key(conn, tables, setting, [item.dedupe_key for item in pending if item.dedupe_key])
        found |= {item.memory.id: (known[item.dedupe_key], False) for item in pending if item.dedupe_key in known}
        pending = [
            replace(item, memory=replace(item.memory, short_id=new_short_id()))
            for item in pending
            if item.dedupe_key not in known
        ]
    if pending:
        raise StoreError("No free short id was found: this should not happen, please report it.")
    stored = [(item, vector) for item, vector in zip(drafts, vectors, strict=True) if found[item.memory.id][1]]
    if stored:
        tables.inserts.add(conn, tables.sources, [_source_row(item) for item, _ in stored])
        _add_vectors(conn, tables, [(item.memory, vector) for item, vector in stored if vector is not None], model)
    return [found[item.memory.id] for item in drafts]


def _placed(conn: Connection, tables: Tables, drafts: Sequence[Draft], setting: Setting) -> list[Draft]:
    """Give drafts the spelling of their projects, and refuse to publish where the author is no member."""
    names = {item.memory.project for item in drafts if item.memory.project}
    if not names:
        return list(drafts)
    mine = projects.projects_of(conn, tables, setting.scope)
    spelled = projects.spellings(conn, tables, setting.scope, setting.policies.visibility, names, mine)
    placed: list[Draft] = []
    for item in drafts:
        project = spelled.get(item.memory.project, "")
        if item.memory.audience == "project" and project not in mine:
            raise NotAllowed(
                f"Only a member shares with the project {project!r}: have `projects.add_member` called for the user, "
                "or write it with audience 'private'."
            )
        placed.append(item if project == item.memory.project else respell(item, project))
    return placed


def _insert(conn: Connection, tables: Tables, drafts: Sequence[Draft]) -> set[UUID]:
    """Insert what breaks no unique key, and return the ids of what was inserted."""
    m, ids = tables.memories, [item.memory.id for item in drafts]
    # In the order of their keys, for two batches that meet in the same unique index must not wait for each other.
    values = [rows.row(item) for item in sorted(drafts, key=lambda item: item.dedupe_key or "")]
    inserted = tables.inserts.add(conn, m, values, skip_conflicts=True)
    if inserted == len(values):
        return set(ids)
    if not inserted:
        return set()
    scope = drafts[0].memory
    own = (m.c.tenant == scope.tenant, m.c.persona == scope.persona, tables.dialect.ids_in(m.c.id, ids))
    return set(conn.scalars(select(m.c.id).where(*own)))


def _by_dedupe_key(conn: Connection, tables: Tables, setting: Setting, keys: Sequence[str]) -> dict[str | None, Memory]:
    if not keys:
        return {}
    m, scope = tables.memories, setting.scope
    found = conn.execute(
        select(m.c.dedupe_key, *rows.columns(m)).where(
            m.c.tenant == scope.tenant,
            m.c.persona == scope.persona,
            tables.dialect.texts_in(m.c.dedupe_key, sorted(set(keys))),
        )
    )
    return {row.dedupe_key: rows.memory(row) for row in found}


def _source_row(item: Draft) -> dict[str, Any]:
    source, record = item.source, item.memory
    return {
        "tenant": record.tenant,
        "persona": record.persona,
        "id": source.id,
        "memory_id": record.id,
        "type": source.type,
        "session": source.session,
        "channel": source.channel,
        "actor": source.actor,
        "excerpt": source.excerpt,
        "created_at": source.created_at,
    }


def _add_vectors(conn: Connection, tables: Tables, pairs: Sequence[tuple[Memory, Any]], model: str | None) -> None:
    if not pairs or model is None:
        return
    values = [
        {
            "tenant": record.tenant,
            "persona": record.persona,
            "kind": "memory",
            "model": model,
            "owner": record.id,
            "vector": vector,
        }
        for record, vector in pairs
    ]
    tables.inserts.add(conn, tables.vectors, values)


# -- looking up


def _identified(m: Table, identifier: UUID | str) -> ColumnElement[bool]:
    return m.c.id == identifier if isinstance(identifier, UUID) else m.c.short_id == identifier


def find(
    conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str, *, lock: bool = False
) -> Memory | None:
    """Return the memory with an id or a short id, if it exists and the scope may see it."""
    parsed, m = parse(identifier), tables.memories
    if parsed is None:
        return None
    statement = select(*rows.columns(m)).where(
        visible(tables, setting.scope, setting.policies.visibility), _identified(m, parsed)
    )
    row = conn.execute(statement.with_for_update(of=m) if lock else statement).first()
    return rows.memory(row) if row else None


def by_ids(conn: Connection, tables: Tables, setting: Setting, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Return the memories with these ids that the scope may see."""
    m = tables.memories
    found = conn.execute(
        select(*rows.columns(m)).where(
            visible(tables, setting.scope, setting.policies.visibility), tables.dialect.ids_in(m.c.id, ids)
        )
    )
    return {row.id: rows.memory(row) for row in found}


def record(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> MemoryRecord | None:
    """Return a memory with its sources, its neighbours in the chain, its earlier images and its access counts."""
    memory = find(conn, tables, setting, identifier)
    if memory is None:
        return None
    m, s, v, a = tables.memories, tables.sources, tables.memory_versions, tables.memory_access
    seen = visible(tables, setting.scope, setting.policies.visibility)

    def of_memory(table: Any) -> tuple[ColumnElement[bool], ...]:
        return table.c.tenant == memory.tenant, table.c.persona == memory.persona, table.c.memory_id == memory.id

    # Where it came from is the author's: an excerpt may quote what is not shared.
    own = memory.author == setting.scope.author
    sources = conn.execute(select(s).where(*of_memory(s), literal(own)).order_by(s.c.created_at, s.c.id))
    versions = conn.execute(select(v).where(*of_memory(v)).order_by(v.c.version))
    access = conn.execute(select(a.c.count, a.c.last_accessed_at).where(*of_memory(a))).first()
    replaced = conn.execute(
        select(*rows.columns(m)).where(seen, m.c.superseded_by == memory.id).order_by(m.c.created_at, m.c.id)
    )
    successor = find(conn, tables, setting, memory.superseded_by) if memory.superseded_by else None
    names = ("id", "memory_id", "type", "session", "channel", "actor", "excerpt", "created_at")
    return MemoryRecord(
        memory=memory if successor else replace(memory, superseded_by=None),
        sources=tuple(Source(**{name: row._mapping[name] for name in names}) for row in sources),
        supersedes=tuple(rows.memory(row) for row in replaced),
        superseded_by=successor,
        versions=tuple(
            MemoryVersion(
                memory_id=row.memory_id,
                version=row.version,
                change=row.change,
                changed_by=row.changed_by,
                changed_at=row.changed_at,
                memory=rows.from_image(row.image),
            )
            for row in versions
        ),
        access_count=access[0] if access else 0,
        last_accessed_at=access[1] if access else None,
    )


def history(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> list[Memory]:
    """Return everything a memory replaced and everything that replaced it, oldest first."""
    memory = find(conn, tables, setting, identifier)
    if memory is None:
        return []
    m, own = tables.memories, (tables.memories.c.tenant == memory.tenant, tables.memories.c.persona == memory.persona)
    start = select(m.c.id, m.c.superseded_by).where(*own, m.c.id == memory.id)
    older = start.cte("older", recursive=True)
    older = older.union(select(m.c.id, m.c.superseded_by).where(*own, m.c.superseded_by == older.c.id))
    newer = start.cte("newer", recursive=True)
    newer = newer.union(select(m.c.id, m.c.superseded_by).where(*own, m.c.id == newer.c.superseded_by))
    chain = union(select(older.c.id), select(newer.c.id)).subquery()
    found = conn.execute(
        select(*rows.columns(m))
        .where(visible(tables, setting.scope, setting.policies.visibility), m.c.id.in_(select(chain.c.id)))
        .order_by(m.c.created_at, m.c.id)
    )
    return [rows.memory(row) for row in found]


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
    m = tables.memories
    keys = (m.c.importance, m.c.created_at, m.c.id) if order == "importance" else (m.c.created_at, m.c.id)
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
    if before is not None:
        last = find(conn, tables, setting, before)
        if last is None:
            raise MemoryNotFound()
        statement = statement.where(tuple_(*keys) < tuple_(*(getattr(last, key.name) for key in keys)))
    return [rows.memory(row) for row in conn.execute(statement)]


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
