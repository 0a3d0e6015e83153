"""What becomes of a new memory: a row of its own, a repeat of one that is there, or the new text of one.

The dedupe policy decides. Where memories are compared, those that would stand in one place are written one after the
other: two writers of one statement could not see each other otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection

from memoranda.db.queries import corrections, repeats
from memoranda.db.queries.inserting import insert, placed, require_membership
from memoranda.db.queries.memories import find
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting
from memoranda.errors import MemoryNotActive
from memoranda.filters import Place
from memoranda.records import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of one draft."""

    memory: Memory
    outcome: Literal["new", "known", "revised"]
    was: Memory | None = None
    """What a revised memory was before."""


def add(
    conn: Connection,
    tables: Tables,
    drafts: Sequence[Draft],
    vectors: Sequence[Any],
    model: str | None,
    setting: Setting,
) -> list[Stored]:
    """Store drafts as the dedupe policy says, and return what became of each, in order.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        drafts: What to store.
        vectors: One a draft, None for a draft that has none.
        model: What made the vectors.
        setting: The scope and policies the drafts were made under.
    """
    drafts = placed(conn, tables, drafts, setting)
    if setting.policies.dedupe.name in ("none", "key"):
        return _inserted(conn, tables, drafts, vectors, model, setting)
    for place in sorted({Place.of(item.memory) for item in drafts}):
        _take_turns(conn, tables, setting, place)
    stored: list[Stored] = []
    for item, vector in zip(drafts, vectors, strict=True):
        found = _existing(conn, tables, item, vector, model, setting)
        stored.append(found or _inserted(conn, tables, [item], [vector], model, setting)[0])
    return stored


def keep(
    conn: Connection,
    tables: Tables,
    item: Draft,
    vector: Any,
    model: str | None,
    setting: Setting,
    identifier: UUID | str | None,
) -> Stored:
    """Store a statement, or make it the new text of the memory that is named, else of the one that says the same.

    Raises:
        MemoryNotFound: the scope sees none with this id.
        MemoryNotActive: the one that is named was replaced, deleted or marked.
        NotTheAuthor: another user wrote it.
        NotAllowed: it may not be written there.
    """
    if identifier is None:
        return add(conn, tables, [item], [vector], model, setting)[0]
    [item] = placed(conn, tables, [item], setting)
    old = corrections.own(conn, tables, setting, identifier)
    if old.status != "active":
        raise MemoryNotActive(old.status)
    require_membership(conn, tables, setting, old)
    return _kept(conn, tables, old, item, vector, model, setting)


def _inserted(
    conn: Connection,
    tables: Tables,
    drafts: Sequence[Draft],
    vectors: Sequence[Any],
    model: str | None,
    setting: Setting,
) -> list[Stored]:
    found = insert(conn, tables, drafts, vectors, model, setting)
    return [Stored(memory=memory, outcome="new" if created else "known") for memory, created in found]


def _take_turns(conn: Connection, tables: Tables, setting: Setting, place: Place) -> None:
    scope = setting.scope
    tables.dialect.advise_lock(conn, "\x1f".join(("memoranda:place", scope.tenant, scope.persona, *place)))


def _existing(
    conn: Connection, tables: Tables, item: Draft, vector: Any, model: str | None, setting: Setting
) -> Stored | None:
    if setting.policies.dedupe.name == "novelty":
        known = repeats.repeated(conn, tables, item, vector, model, setting)
        return Stored(memory=known, outcome="known") if known else None
    # Who is present does not matter here: a statement about somebody absent is one memory as well.
    there = repeats.regardless_of_presence(setting)
    found = repeats.same(conn, tables, item, vector, model, there)
    old = corrections.own(conn, tables, there, found.id) if found else None
    if old is None or old.status != "active":  # it was taken back this very moment
        return None
    kept = _kept(conn, tables, old, item, vector, model, setting)
    shown = kept.was is None or find(conn, tables, setting, old.id) is not None
    return kept if shown else replace(kept, was=None)


def _kept(
    conn: Connection, tables: Tables, old: Memory, item: Draft, vector: Any, model: str | None, setting: Setting
) -> Stored:
    if old.content != item.memory.content:
        return Stored(
            memory=corrections.revise(conn, tables, setting, old, item, vector, model), outcome="revised", was=old
        )
    if "core" in item.given and item.memory.core != old.core:
        return Stored(memory=corrections.set_core(conn, tables, setting, old, item.memory.core), outcome="revised")
    return Stored(memory=old, outcome="known")
