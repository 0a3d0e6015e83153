"""What becomes of a new memory: a row of its own, a repeat of one that is there, or the new text of one.

The dedupe policy decides. Where memories are compared, those that would stand in one place are written one after the
other: two writers of one statement could not see each other otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection

from memoranda.db.queries import corrections, memories, repeats
from memoranda.db.queries.inserting import insert, placed, require_membership, require_open_spaces
from memoranda.db.queries.repeats import Found, Repeats
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting
from memoranda.errors import InvalidInput, MemoryNotActive
from memoranda.filters import Place
from memoranda.records import Memory, Status


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
    found: Found | None = None,
) -> list[Stored]:
    """Store drafts as the dedupe policy says, and return what became of each, in order.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        drafts: What to store.
        vectors: One a draft, None for a draft that has none.
        model: What made the vectors.
        setting: The scope and policies the drafts were made under.
        found: What `repeats.look` found for the same drafts before; without it the search is made in this transaction.
    """
    drafts = placed(conn, tables, drafts, setting)
    if not setting.policies.dedupe.compares:
        inserted = _inserted(conn, tables, drafts, vectors, model, setting)
        return _as_seen(conn, tables, setting, drafts, inserted)
    for where in sorted({Place.of(item.memory) for item in drafts}):
        _take_turns(conn, tables, setting, where)
    stored: list[Stored] = []
    known = Repeats(conn, tables, model, setting, found)
    for place, (item, vector) in enumerate(zip(drafts, vectors, strict=True)):
        old = known.of(place, item, vector)
        became = _existing(conn, tables, old, item, vector, model, setting) if old is not None else None
        stored.append(became or _inserted(conn, tables, [item], [vector], model, setting)[0])
        if stored[-1].outcome != "known":
            known.stored(stored[-1].memory, item, vector)
    return _as_seen(conn, tables, setting, drafts, stored)


def _as_seen(
    conn: Connection, tables: Tables, setting: Setting, drafts: Sequence[Draft], stored: Sequence[Stored]
) -> list[Stored]:
    """Return what became of drafts as the scope may see it.

    A memory that was there already may be about somebody absent: of it the caller learns the id, and nothing that it
    did not say itself.
    """
    known = [item.memory.id for item in stored if item.outcome != "new"]
    seen = memories.by_ids(conn, tables, setting, known) if known else {}
    return [
        item
        if item.outcome == "new" or item.memory.id in seen
        else replace(item, memory=replace(said.memory, id=item.memory.id, short_id=item.memory.short_id), was=None)
        for item, said in zip(stored, drafts, strict=True)
    ]


def keep(
    conn: Connection,
    tables: Tables,
    item: Draft,
    vector: Any,
    model: str | None,
    setting: Setting,
    identifier: UUID | str | None,
    found: Found | None = None,
) -> Stored:
    """Store a statement, or make it the new text of the memory that is named, else of the one that says the same.

    Raises:
        MemoryNotFound: the scope sees none with this id.
        MemoryNotActive: the one that is named was replaced, deleted or marked.
        NotTheAuthor: another user wrote it.
        NotAllowed: it may not be written there.
    """
    if identifier is None:
        return add(conn, tables, [item], [vector], model, setting, found)[0]
    require_open_spaces(conn, tables, setting, [item])
    old = corrections.own(conn, tables, setting, identifier)
    if (ended := _ended(old, setting)) is not None:
        raise MemoryNotActive(ended)
    require_membership(conn, tables, setting, old)
    _stays_in_place(old, item)
    return _kept(conn, tables, old, item, vector, model, setting)


def _ended(memory: Memory, setting: Setting) -> Status | None:
    """Return why a memory does not hold any more, or None."""
    if memory.status != "active":
        return memory.status
    if memory.superseded_by is not None:
        return "superseded"
    return "expired" if memory.valid_to is not None and memory.valid_to <= setting.now else None


def _stays_in_place(old: Memory, item: Draft) -> None:
    """Refuse to move a memory by giving it a new text.

    Raises:
        InvalidInput: the caller names another audience, project or subject than it has.
    """
    mine, new = Place.of(old), Place.of(item.memory)
    for name in ("audience", "project", "about"):
        # One that was written about nobody is kept all the same, and stays so.
        if name in item.given and getattr(mine, name) != getattr(new, name) and (name != "about" or mine.about):
            raise InvalidInput(
                f"{name} is another one than the memory has, and a new text does not move it: keep it without an id",
                field=name,
            )


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
    conn: Connection, tables: Tables, found: Memory, item: Draft, vector: Any, model: str | None, setting: Setting
) -> Stored | None:
    """Return what becomes of a memory that is repeated, or None if it does not hold any more."""
    # Who is present does not matter here: a statement about somebody absent is one memory as well.
    old = corrections.own(conn, tables, repeats.regardless_of_presence(setting), found.id)
    if _ended(old, setting) is not None:  # it was replaced or taken back while this one waited
        return None
    if setting.policies.dedupe.name == "same":
        stored = _kept(conn, tables, old, item, vector, model, setting)
    elif item.memory.core and not old.core:
        stored = Stored(memory=corrections.amend(conn, tables, setting, old, {"core": True}), outcome="revised")
    else:
        stored = Stored(memory=old, outcome="known")
    return stored


def _kept(
    conn: Connection, tables: Tables, old: Memory, item: Draft, vector: Any, model: str | None, setting: Setting
) -> Stored:
    retitled = "title" in item.given and item.memory.title != old.title
    if old.content != item.memory.content or retitled:  # both are what is embedded
        revised = corrections.revise(conn, tables, setting, old, item, vector, model)
        return Stored(memory=revised, outcome="revised", was=old if revised.content != old.content else None)
    named = {name: value for name, value in corrections.named(item).items() if value != getattr(old, name)}
    if not named:
        return Stored(memory=old, outcome="known")
    return Stored(memory=corrections.amend(conn, tables, setting, old, named), outcome="revised")
