"""Erasing: rows that are to be gone for good, and the ledger that erases them again when an import brings them back.

What belongs to a memory is read off the declared tables: whatever refers to its id, and whatever names it as
`kind` and `owner`. The ledger says what was erased by a digest, so that it names nobody itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    and_,
    delete,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
    union,
    update,
)

from memoranda.db.queries import rows, snapshots
from memoranda.db.schema import Tables
from memoranda.db.types import Json
from memoranda.ids import new_id
from memoranda.scope import owner_of

T = TypeVar("T")
Kind: TypeAlias = Literal["memory", "user", "about", "persona"]

_CHUNK = 5_000
_WRITERS = ("author", "member", "user")  # columns that name a user, in tables whose rows are not a memory's
_MADE = ("created_at", "granted_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be erased, and where: nothing outside tenant and persona is touched."""

    kind: Kind
    tenant: str = field(repr=False)
    persona: str | None = field(repr=False)
    """None for every persona of the tenant."""
    subject: UUID | str = field(repr=False)
    """The memory's id or short id, the user, whom it is about, or the persona again."""
    chain: bool = False
    """Whether what a memory replaced, and what replaced it, goes with it."""

    @property
    def whole(self) -> bool:
        """Whether everything in the place goes: a persona's rows, or the tenant that is a single user's own."""
        return self.kind == "persona" or (self.kind == "user" and owner_of(self.tenant) == self.subject)

    @property
    def digest(self) -> str:
        """What the ledger says in place of the names."""
        subject = self.subject.hex if isinstance(self.subject, UUID) else self.subject
        parts = (self.kind, self.tenant, self.persona or "", subject)
        return sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()


class Tally(NamedTuple):
    """How much went, or would go."""

    memories: int = 0
    rows: int = 0
    """Rows of every table, those of the memories among them."""


class Locked(NamedTuple):
    """The rows that nobody else has until the transaction ends: what came since then is not part of it."""

    memories: Sequence[UUID]
    others: Mapping[Table, Sequence[tuple[Any, ...]]]
    """By table, what names a row in its place."""


class Entry(NamedTuple):
    """The key of a row of the ledger."""

    tenant: str
    persona: str
    id: UUID


# -- erasing


def erase(conn: Connection, tables: Tables, target: Target, now: datetime) -> Tally:
    """Delete a target's rows with everything that belongs to them, and enter it in the ledger.

    Rows that stay and named one of them as what replaced them keep their status and lose the link.
    """
    tally, gone = Tally(), list[UUID]()
    for persona in _personas(conn, tables, target):
        locked = _lock(conn, tables, target, persona, None)
        tally = _added(tally, _delete(conn, tables, target, persona, locked, None))
        gone += locked.memories
        if target.whole and owner_of(target.tenant) is None:  # what was entered here before is part of this erasure
            e = tables.erasures
            conn.execute(delete(e).where(*_place(e, target.tenant, persona)))
    if target.kind != "memory":
        # Also where there was no row any more: what was deleted before is still on the disk.
        _enter(conn, tables, target, tally, now, finished=False)
    else:
        named = [target.subject] if isinstance(target.subject, UUID) and not gone else []
        for identifier in (*gone, *named):
            single = Target(kind="memory", tenant=target.tenant, persona=target.persona, subject=identifier)
            _enter(conn, tables, single, Tally(1, tally.rows) if gone else Tally(), now, finished=not gone)
    return tally


def count(conn: Connection, tables: Tables, target: Target) -> Tally:
    """Return how much `erase` would delete."""
    tally = Tally()
    for persona in _personas(conn, tables, target):
        ids = list(conn.scalars(_chosen(tables, target, persona, None)))
        blocks = snapshots.count(conn, tables, target.tenant, persona, _snapshots(tables, target, persona, ids, None))
        tally = _added(tally, Tally(0, blocks))
        for table, condition in _parts(tables, target, persona, Locked(ids, {}), None):
            found = conn.scalar(select(func.count()).select_from(table).where(condition)) or 0
            tally = _added(tally, Tally(found if table is tables.memories else 0, found))
    return tally


def reapply(conn: Connection, tables: Tables, now: datetime) -> int:
    """Erase again what the ledger says was erased and is there once more, and return the number of rows.

    Only rows made before the erasure went with it: whoever came back since then stays.
    """
    e, rows = tables.erasures, 0
    ledger = {
        row.subject: row.until
        for row in conn.execute(select(e.c.subject, func.max(e.c.erased_at).label("until")).group_by(e.c.subject))
    }
    places = union(*(select(table.c.tenant, table.c.persona) for table in _scoped(tables)))
    for tenant, persona in conn.execute(places).all() if ledger else ():
        for target in list(_candidates(conn, tables, tenant, persona)):
            until = ledger.get(target.digest)
            if until is None:
                continue
            locked = _lock(conn, tables, target, persona, until)
            tally = _delete(conn, tables, target, persona, locked, until)
            if tally.rows:
                _enter(conn, tables, target, tally, until, finished=False)
            rows += tally.rows
    return rows


def _candidates(conn: Connection, tables: Tables, tenant: str, persona: str) -> Iterator[Target]:
    """Yield what may have been erased of a place's rows; the ledger knows by their digests which it was."""
    m, e = tables.memories, tables.erasures
    yield Target(kind="persona", tenant=tenant, persona=persona, subject=persona)
    columns = [table.c[name] for table in (m, *_independent(tables)) for name in _WRITERS if name in table.c]
    users = union(*(select(column).where(*_place(column.table, tenant, persona)) for column in columns))
    subjects = select(m.c.about).where(*_place(m, tenant, persona)).distinct()
    kinds: tuple[tuple[Kind, Sequence[str]], ...] = (
        ("user", conn.scalars(users).all()),
        ("about", conn.scalars(subjects).all()),
    )
    for kind, names in kinds:
        for name in filter(None, names):
            yield Target(kind=kind, tenant=tenant, persona=persona, subject=name)
            yield Target(kind=kind, tenant=tenant, persona=None, subject=name)
    entered = ("", "") if owner_of(tenant) is not None else (tenant, persona)
    singles = select(e.c.id).where(*_place(e, *entered), e.c.kind == "memory").limit(1)
    if conn.execute(singles).first():
        for identifier in conn.scalars(select(m.c.id).where(*_place(m, tenant, persona))).all():
            yield Target(kind="memory", tenant=tenant, persona=persona, subject=identifier)


def _lock(conn: Connection, tables: Tables, target: Target, persona: str, until: datetime | None) -> Locked:
    """Lock a target's memories, and before them what comes first.

    Whoever takes a snapshot locks rows of the same tables in the same order, so that neither waits for the other.
    """
    others: dict[Table, Sequence[tuple[Any, ...]]] = {}
    for table in (tables.conversations, tables.project_members, tables.user_model):
        if (chosen := _chosen_of(table, target, until)) is not None:
            key, own = _name_of(table), _place(table, target.tenant, persona)
            found = conn.execute(select(*key).where(*own, chosen).order_by(*key).with_for_update())
            others[table] = [tuple(row) for row in found]
    memories = conn.scalars(_chosen(tables, target, persona, until).with_for_update())
    return Locked(list(memories), others)


def _delete(
    conn: Connection, tables: Tables, target: Target, persona: str, locked: Locked, until: datetime | None
) -> Tally:
    # Before the rows go that lead to them; whoever takes one at this moment holds the memories, so it is here by now.
    which = _snapshots(tables, target, persona, locked.memories, until)
    tally = Tally(0, snapshots.end(conn, tables, target.tenant, persona, which, "erasure"))
    for table, condition in _parts(tables, target, persona, locked, until):
        found = conn.execute(delete(table).where(condition)).rowcount
        tally = _added(tally, Tally(found if table is tables.memories else 0, found))
    for chunk in _chunks(locked.memories):
        _unlink(conn, tables, target.tenant, persona, chunk)
    return tally


def _added(one: Tally, other: Tally) -> Tally:
    return Tally(one.memories + other.memories, one.rows + other.rows)


def _unlink(conn: Connection, tables: Tables, tenant: str, persona: str, ids: Sequence[UUID]) -> None:
    """Take the ids out of the rows, and the images of rows, that were replaced by them."""
    m, v = tables.memories, tables.memory_versions
    linked = tables.dialect.ids_in(m.c.superseded_by, ids)
    conn.execute(update(m).where(*_place(m, tenant, persona), linked).values(superseded_by=None))
    successor = type_coerce(v.c.image, Json)["superseded_by"]["value"].as_string()
    imaged = tables.dialect.texts_in(successor, [str(identifier) for identifier in ids])
    key = (v.c.memory_id, v.c.version)
    for row in conn.execute(select(*key, v.c.image).where(*_place(v, tenant, persona), imaged)).all():
        conn.execute(
            update(v)
            .where(*_place(v, tenant, persona), v.c.memory_id == row.memory_id, v.c.version == row.version)
            .values(image={**row.image, "superseded_by": None})
        )


# -- which rows


def _parts(
    tables: Tables, target: Target, persona: str, locked: Locked, until: datetime | None
) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Yield each table with the condition for its rows that go, what belongs to a row before the row."""
    m = tables.memories
    for chunk in _chunks(locked.memories):
        for column in _referring(tables):
            yield (
                column.table,
                and_(*_place(column.table, target.tenant, persona), tables.dialect.ids_in(column, chunk)),
            )
        for table in _owned(tables):
            own = (table.c.kind == "memory", tables.dialect.ids_in(table.c.owner, chunk))
            yield table, and_(*_place(table, target.tenant, persona), *own)
        yield m, and_(*_place(m, target.tenant, persona), tables.dialect.ids_in(m.c.id, chunk))
    for table in _independent(tables):
        chosen = _chosen_of(table, target, until)
        if chosen is not None:
            for part in _of_locked(tables, table, locked):
                yield table, and_(*_place(table, target.tenant, persona), chosen, part)
    for table in _owned(tables):
        if (left := _left_behind(tables, table, target, persona, until)) is not None:
            yield table, and_(*_place(table, target.tenant, persona), left)


def _of_locked(tables: Tables, table: Table, locked: Locked) -> Iterator[ColumnElement[bool]]:
    """Yield conditions that leave what came after its rows, or its conversations, were locked; one where none are."""
    if table in locked.others:
        for chunk in _chunks(locked.others[table]):
            yield tuple_(*_name_of(table)).in_(chunk)
    elif "conversation_id" in table.c and tables.conversations in locked.others:
        conversations: list[UUID] = [row[0] for row in locked.others[tables.conversations]]
        for ids in _chunks(conversations):
            yield tables.dialect.ids_in(table.c.conversation_id, ids)
    else:
        yield true()


def _name_of(table: Table) -> list[Column[Any]]:
    """Return the columns that name a row inside tenant and persona."""
    return [column for column in table.primary_key if column.name not in ("tenant", "persona")]


def _left_behind(
    tables: Tables, table: Table, target: Target, persona: str, until: datetime | None
) -> ColumnElement[bool] | None:
    """Return the condition for what rows that go own, and for what nothing owns any more; None for nothing."""
    m = tables.memories
    conditions: list[ColumnElement[bool]] = []
    for corpus in tables.corpora.values():
        c = corpus.table
        if c is m or not corpus.embedded or (chosen := _chosen_of(c, target, until)) is None:
            continue
        # When rows are only counted the owners are still there; and when they go, some may have come a moment ago.
        going = table.c.owner.in_(select(c.c.id).where(*_place(c, target.tenant, persona), chosen))
        owner = exists().where(*_place(c, target.tenant, persona), c.c.id == table.c.owner)
        conditions.append(and_(table.c.kind == corpus.kind, or_(going, ~owner)))
    if target.whole and until is None:
        # What a memory owns that was stored a moment ago stays with it.
        owner = exists().where(*_place(m, target.tenant, persona), m.c.id == table.c.owner)
        conditions.append(and_(table.c.kind == "memory", ~owner))
    return or_(*conditions) if conditions else None


def _snapshots(
    tables: Tables, target: Target, persona: str, ids: Sequence[UUID], until: datetime | None
) -> ColumnElement[bool]:
    """Return the condition for the snapshots that were taken for a user who goes, or show a memory that goes."""
    own = _chosen_of(tables.snapshots, target, until)
    show = [snapshots.showing(tables, target.tenant, persona, chunk) for chunk in _chunks(ids)]
    return or_(false() if own is None else own, *show)


def _chosen(tables: Tables, target: Target, persona: str, until: datetime | None) -> Select[Any]:
    """Return a statement for the ids of a target's memories in one persona, in one order, so that two may be locked."""
    m = tables.memories
    own = _place(m, target.tenant, persona)
    match target.kind:
        case "memory":
            named = m.c.id == target.subject if isinstance(target.subject, UUID) else m.c.short_id == target.subject
            condition = m.c.id.in_(rows.chain(m, own, named)) if target.chain else named
        case "user":
            condition = true() if target.whole else m.c.author == target.subject
        case "about":
            condition = m.c.about == target.subject
        case "persona":
            condition = true()
    then = true() if until is None or target.kind == "memory" else m.c.created_at <= until
    return select(m.c.id).where(*own, condition, then).order_by(m.c.id)


def _chosen_of(table: Table, target: Target, until: datetime | None) -> ColumnElement[bool] | None:
    """Return the condition for the rows of a table that is no memory's, None when none of them go."""
    if target.whole:
        condition: ColumnElement[bool] = true()
    elif target.kind == "user" and (named := [table.c[name] for name in _WRITERS if name in table.c]):
        condition = or_(*(column == target.subject for column in named))
    elif target.kind == "user" and "payload" in table.c:  # a job of a conversation names whose it is
        condition = type_coerce(table.c.payload, Json)["user"].as_string() == target.subject
    else:
        return None
    if until is None:
        return condition
    made = next((table.c[name] for name in _MADE if name in table.c), None)
    return None if made is None else and_(condition, made <= until)


def _place(table: FromClause, tenant: str, persona: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.tenant == tenant, table.c.persona == persona


def _personas(conn: Connection, tables: Tables, target: Target) -> Sequence[str]:
    if target.persona is not None:
        return [target.persona]
    every = (*_scoped(tables), tables.erasures)
    return conn.scalars(union(*(select(t.c.persona).where(t.c.tenant == target.tenant) for t in every))).all()


def _chunks(ids: Sequence[T]) -> Iterator[Sequence[T]]:
    return (ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK))


# -- which tables


def _scoped(tables: Tables) -> list[Table]:
    """Return the tables that hold somebody's rows."""
    return [
        t for t in tables.metadata.sorted_tables if "tenant" in t.c and "persona" in t.c and t is not tables.erasures
    ]


def _referring(tables: Tables) -> list[Column[UUID]]:
    """Return the columns that hold a memory's id and refer to it."""
    m = tables.memories
    return [key.parent for t in _scoped(tables) if t is not m for key in t.foreign_keys if key.column is m.c.id]


def _owned(tables: Tables) -> list[Table]:
    """Return the tables whose rows name an owner of any kind."""
    return [table for table in _scoped(tables) if "kind" in table.c and "owner" in table.c]


def _independent(tables: Tables) -> list[Table]:
    """Return the tables whose rows belong to no memory; what a snapshot holds goes with it, see `_snapshots`."""
    others = {tables.memories, *(column.table for column in _referring(tables)), *_owned(tables)}
    others |= {tables.snapshots, tables.snapshot_memories}
    return [table for table in reversed(_scoped(tables)) if table not in others]


# -- the ledger


def _enter(conn: Connection, tables: Tables, target: Target, tally: Tally, moment: datetime, *, finished: bool) -> None:
    nameless = owner_of(target.tenant) is not None  # the tenant's name is the user's
    finished = finished or tables.dialect.traces() == "none"
    conn.execute(
        insert(tables.erasures).values(
            tenant="" if nameless else target.tenant,
            persona="" if nameless or target.kind == "persona" else target.persona or "",
            id=new_id(),
            kind=target.kind,
            subject=target.digest,
            count=tally.memories,
            erased_at=moment,
            finished_at=moment if finished else None,
        )
    )


def unfinished(conn: Connection, tables: Tables) -> list[Entry]:
    """Return the erasures whose traces may still be on the disk."""
    e = tables.erasures
    found = conn.execute(select(e.c.tenant, e.c.persona, e.c.id).where(e.c.finished_at.is_(None)))
    return [Entry(*row) for row in found]


def finish(conn: Connection, tables: Tables, entries: Sequence[Entry], now: datetime) -> None:
    """Note that no trace is left of these erasures."""
    e = tables.erasures
    for entry in entries:
        own = _place(e, entry.tenant, entry.persona)
        conn.execute(update(e).where(*own, e.c.id == entry.id).values(finished_at=now))
