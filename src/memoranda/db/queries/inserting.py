"""Drafts become rows: each where its author may write, with its source and its vector, and no exact duplicate twice."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from sqlalchemy import Connection, select

from memoranda.db.inserts import Addition, Values
from memoranda.db.queries import jobs, projects, rows, spaces
from memoranda.db.queries.vectors import VECTOR, vector_row
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Origin, Setting, respell
from memoranda.errors import NotAllowed, StoreError
from memoranda.ids import new_short_id
from memoranda.records import Memory

_SOURCE = ("tenant", "persona", "memory_id", *Origin._fields)
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
    found: list[tuple[Memory, bool] | None] = [None] * len(drafts)
    pending = list(enumerate(drafts))
    # Where a key that is there would have the whole batch begun anew, it asks first.
    asking = tables.dialect.copies and len(pending) > 1
    for _ in range(_ATTEMPTS + asking):
        if not asking:
            fresh = _insert(conn, tables, _once(pending))
            for place, item in fresh:
                found[place] = item.memory, True
            pending = _others(pending, found)
        known = _by_dedupe_key(conn, tables, setting, [item.dedupe_key for _, item in pending if item.dedupe_key])
        if known:
            for place, item in pending:
                if item.dedupe_key in known:
                    found[place] = known[item.dedupe_key], False
            pending = _others(pending, found)
        if not pending:
            break
        if not asking:
            pending = [
                (place, replace(item, memory=replace(item.memory, short_id=new_short_id()))) for place, item in pending
            ]
        asking = False
    became = [pair for pair in found if pair is not None]
    if len(became) < len(drafts):
        raise StoreError("No free short id was found: this should not happen, please report it.")
    stored = [(item, vector) for item, vector, (_, created) in zip(drafts, vectors, became, strict=True) if created]
    if stored:
        sources = [source_row(item.source, item.memory) for item, _ in stored]
        made = vector_rows([(item.memory, vector) for item, vector in stored if vector is not None], model)
        add_beside(conn, tables, sources, made)
        leave_embedding(conn, tables, [item.memory for item, vector in stored if vector is None], model, setting)
    return became


_Placed: TypeAlias = tuple[int, Draft]
"""A draft, and its place among those that are stored in one call."""


def _others(pending: Sequence[_Placed], found: Sequence[object]) -> list[_Placed]:
    return [pair for pair in pending if found[pair[0]] is None]


def _once(drafts: Sequence[_Placed]) -> list[_Placed]:
    """Return the first draft of each key."""
    first: dict[str, int] = {}
    for place, item in drafts:
        if item.dedupe_key is not None:
            first.setdefault(item.dedupe_key, place)
    return [(place, item) for place, item in drafts if item.dedupe_key is None or first[item.dedupe_key] == place]


def _insert(conn: Connection, tables: Tables, drafts: Sequence[_Placed]) -> Sequence[_Placed]:
    """Insert what breaks no unique key, and return what was inserted."""
    # In the order of their keys, for two batches that meet in the same unique index must not wait for each other.
    ordered = sorted(drafts, key=lambda pair: pair[1].dedupe_key or "") if len(drafts) > 1 else drafts
    values = [rows.values(item) for _, item in ordered]
    inserted = tables.inserts.add_values(conn, tables.memories, rows.STORED, values, skip_conflicts=True)
    if inserted == len(values):
        return drafts
    if not inserted:
        return []
    m, scope, ids = tables.memories, drafts[0][1].memory, [item.memory.id for _, item in drafts]
    own = (m.c.tenant == scope.tenant, m.c.persona == scope.persona, tables.dialect.ids_in(m.c.id, ids))
    there = set(conn.scalars(select(m.c.id).where(*own)))
    return [pair for pair in drafts if pair[1].memory.id in there]


def _by_dedupe_key(conn: Connection, tables: Tables, setting: Setting, keys: Sequence[str]) -> dict[str | None, Memory]:
    if not keys:
        return {}
    m, scope = tables.memories, setting.scope
    found = conn.execute(
        select(*rows.columns(m), m.c.dedupe_key).where(
            m.c.tenant == scope.tenant,
            m.c.persona == scope.persona,
            tables.dialect.texts_in(m.c.dedupe_key, sorted(set(keys))),
        )
    )
    return {row.dedupe_key: rows.memory(row) for row in found}


def source_row(origin: Origin, memory: Memory) -> Values:
    """Return the row of where a memory, or its newest text, came from: a value for each of `_SOURCE`."""
    return (memory.tenant, memory.persona, memory.id, *origin)


def add_beside(conn: Connection, tables: Tables, sources: Sequence[Values], vectors: Sequence[Values]) -> None:
    """Store what stands beside memories: their sources and their vectors."""
    additions = [Addition(tables.sources, _SOURCE, sources), Addition(tables.vectors, VECTOR, vectors)]
    tables.inserts.add_together(conn, additions)


def vector_rows(pairs: Sequence[tuple[Memory, Any]], model: str | None) -> list[Values]:
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
