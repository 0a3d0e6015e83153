"""Drafts become rows: each where its author may write, with its source and its vector, and no exact duplicate twice."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from memoranda.db.queries import jobs, projects, rows, spaces
from memoranda.db.queries.vectors import vector_row
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting, respell
from memoranda.errors import NotAllowed, StoreError
from memoranda.ids import new_short_id
from memoranda.records import Memory, Source

_ATTEMPTS = 5  # at a short id that is free: two collisions in a row take 10^12 rows in one persona


def placed(conn: Connection, tables: Tables, drafts: Sequence[Draft], setting: Setting) -> list[Draft]:
    """Give drafts the spelling of their projects, and refuse what may not be written there.

    Raises:
        NotAllowed: the author shares with a project without being a member, or the space is not open.
    """
    require_open_spaces(conn, tables, setting, drafts)
    names = {item.memory.project for item in drafts if item.memory.project}
    if not names:
        return list(drafts)
    mine = projects.projects_of(conn, tables, setting.scope)
    spelled = projects.spellings(conn, tables, setting.scope, setting.policies.visibility, names, mine)
    placed: list[Draft] = []
    for item in drafts:
        project = spelled.get(item.memory.project, "")
        if item.memory.audience == "project":
            require_member(project, mine)
        placed.append(item if project == item.memory.project else respell(item, project))
    return placed


def require_open_spaces(conn: Connection, tables: Tables, setting: Setting, drafts: Sequence[Draft]) -> None:
    """Refuse to write where the policy wants spaces to be declared and one is not open.

    Raises:
        NotAllowed: the space does not exist, or is archived.
    """
    if setting.policies.write.space == "declared":
        spaces.require_open(conn, tables, setting.scope, {item.memory.space for item in drafts if item.memory.space})


def require_membership(conn: Connection, tables: Tables, setting: Setting, memory: Memory) -> None:
    """Refuse to change what is shared where the author is no member any more.

    Raises:
        NotAllowed: the memory is shared with a project the user has left.
    """
    if memory.audience == "project":
        require_member(memory.project, projects.projects_of(conn, tables, setting.scope))


def require_member(project: str, mine: Sequence[str]) -> None:
    """Refuse to share with a project that is not among the author's own.

    Raises:
        NotAllowed: it is not.
    """
    if project not in mine:
        raise NotAllowed(
            f"Only a member shares with the project {project!r}: have `projects.add_member` called for the user, or "
            "write it with audience 'private'."
        )


def insert(
    conn: Connection,
    tables: Tables,
    drafts: Sequence[Draft],
    vectors: Sequence[Any],
    model: str | None,
    setting: Setting,
) -> list[tuple[Memory, bool]]:
    """Store placed drafts with their sources and vectors; an exact duplicate gives back the row that is there.

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
    found: dict[UUID, tuple[Memory, bool]] = {}
    pending = list(drafts)
    # A database that meets a key it knows in the middle of a batch begins it anew, row by row: so a batch asks first.
    asking = len(pending) > 1
    for _ in range(_ATTEMPTS + asking):
        if not asking:
            fresh = _insert(conn, tables, _once(pending))
            found |= {item.memory.id: (item.memory, True) for item in pending if item.memory.id in fresh}
            pending = [item for item in pending if item.memory.id not in fresh]
        known = _by_dedupe_key(conn, tables, setting, [item.dedupe_key for item in pending if item.dedupe_key])
        found |= {item.memory.id: (known[item.dedupe_key], False) for item in pending if item.dedupe_key in known}
        pending = [item for item in pending if item.dedupe_key not in known]
        if not pending:
            break
        if not asking:
            pending = [replace(item, memory=replace(item.memory, short_id=new_short_id())) for item in pending]
        asking = False
    if pending:
        raise StoreError("No free short id was found: this should not happen, please report it.")
    stored = [(item, vector) for item, vector in zip(drafts, vectors, strict=True) if found[item.memory.id][1]]
    if stored:
        sources = [source_row(item.source, item.memory) for item, _ in stored]
        made = vector_rows([(item.memory, vector) for item, vector in stored if vector is not None], model)
        tables.inserts.add_together(conn, [(tables.sources, sources), (tables.vectors, made)])
        leave_embedding(conn, tables, [item.memory for item, vector in stored if vector is None], model, setting)
    return [found[item.memory.id] for item in drafts]


def _once(drafts: Sequence[Draft]) -> list[Draft]:
    """Return the first draft of each key."""
    first: dict[str, Draft] = {}
    for item in drafts:
        if item.dedupe_key is not None:
            first.setdefault(item.dedupe_key, item)
    return [item for item in drafts if item.dedupe_key is None or first[item.dedupe_key] is item]


def _insert(conn: Connection, tables: Tables, drafts: Sequence[Draft]) -> set[UUID]:
    """Insert what breaks no unique key, and return the ids of what was inserted."""
    m, ids = tables.memories, [item.memory.id for item in drafts]
    # In the order of their keys, for two batches that meet in the same unique index must not wait for each other.
    values = [rows.values(item) for item in sorted(drafts, key=lambda item: item.dedupe_key or "")]
    inserted = tables.inserts.add_values(conn, m, rows.STORED, values, skip_conflicts=True)
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


def source_row(source: Source, memory: Memory) -> dict[str, Any]:
    """Return the row of where a memory, or its newest text, came from."""
    return {
        "tenant": memory.tenant,
        "persona": memory.persona,
        "id": source.id,
        "memory_id": memory.id,
        "type": source.type,
        "session": source.session,
        "channel": source.channel,
        "actor": source.actor,
        "excerpt": source.excerpt,
        "created_at": source.created_at,
    }


def vector_rows(pairs: Sequence[tuple[Memory, Any]], model: str | None) -> list[dict[str, Any]]:
    """Return the rows of the vectors of memories, none without a model."""
    if model is None:
        return []
    return [vector_row((record.tenant, record.persona), record.id, model, vector) for record, vector in pairs]


def leave_embedding(
    conn: Connection, tables: Tables, memories: Sequence[Memory], model: str | None, setting: Setting
) -> None:
    """Leave a job for memories of one persona that were stored without a vector, in the same transaction."""
    if memories and model is not None and setting.leaves_jobs:
        owner = (memories[0].tenant, memories[0].persona)
        jobs.enqueue_embedding(conn, tables, owner, [memory.id for memory in memories])
