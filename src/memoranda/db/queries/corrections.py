"""Correcting memories: windows are closed and images kept, nothing is destroyed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, func, select, update

from memoranda.db.queries import rows
from memoranda.db.queries.inserting import add_vectors, insert, leave_embedding, placed, require_membership, source_row
from memoranda.db.queries.memories import find
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, MemoryFields, Setting, dedupe_key, draft, index_terms
from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, NotTheAuthor
from memoranda.moments import day_of
from memoranda.records import Memory, Status

_KEYLESS = {"dedupe_key": None}
_REVISABLE = (
    "type",
    "category",
    "importance",
    "confidence",
    "core",
    "day",
    "event_time",
    "valid_from",
    "valid_to",
    "session",
    "position",
    "metadata",
)
"""What a revision changes where the caller names it; author, place and subject stay."""


def own(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> Memory:
    """Return the locked row of a memory the scope may change.

    Raises:
        MemoryNotFound: there is none the scope may see.
        NotTheAuthor: another user wrote it.
    """
    memory = find(conn, tables, setting, identifier, lock=True)
    if memory is None:
        raise MemoryNotFound()
    if memory.author != setting.scope.author:
        raise NotTheAuthor()
    return memory


def _change(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    old: Memory,
    change: str,
    *,
    columns: Mapping[str, Any] | None = None,
    **values: Any,
) -> Memory:
    """Replace values of a row, and columns no record shows, keeping its image as a version."""
    m, v = tables.memories, tables.memory_versions
    newest = conn.scalar(
        select(func.max(v.c.version)).where(
            v.c.tenant == old.tenant, v.c.persona == old.persona, v.c.memory_id == old.id
        )
    )
    conn.execute(
        v.insert().values(
            tenant=old.tenant,
            persona=old.persona,
            memory_id=old.id,
            version=(newest or 0) + 1,
            change=change,
            changed_by=setting.scope.author,
            changed_at=setting.now,
            image=rows.image(old),
        )
    )
    values["updated_at"] = setting.now
    conn.execute(
        update(m)
        .where(m.c.tenant == old.tenant, m.c.persona == old.persona, m.c.id == old.id)
        .values(**values, **(columns or {}))
    )
    return replace(old, **values)


def _closed(old: Memory, moment: datetime) -> datetime:
    """Return where a window ends that is closed at a moment: never later than before, never ahead of its beginning."""
    end = moment if old.valid_to is None else min(old.valid_to, moment)
    return end if old.valid_from is None else max(end, old.valid_from)


def supersede(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    identifier: UUID | str,
    content: str,
    fields: MemoryFields,
    vector: Any,
    model: str | None,
) -> tuple[Memory, bool, Memory]:
    """Store what replaces a memory and close the old one's window, which stays in the history.

    The new memory inherits what the caller leaves out: type, category, importance, core, project, audience and subject,
    and in any case the space. The old one holds until the new one begins: its `valid_from`, else its event time, at the
    latest now.

    Returns:
        The new memory, whether it was stored by this call, and the old one as it is now.

    Raises:
        MemoryNotFound: there is none the scope may see.
        MemoryNotActive: it was replaced, deleted or marked already.
        NotTheAuthor: another user wrote it.
    """
    old = own(conn, tables, setting, identifier)
    if old.status != "active":
        raise MemoryNotActive(old.status)
    if old.superseded_by is not None:
        raise MemoryNotActive("superseded")
    inherited: MemoryFields = {
        "type": old.type,
        "category": old.category,
        "importance": old.importance,
        "core": old.core,
        "project": old.project,
        "audience": old.audience,
    }
    if old.about:
        inherited["about"] = old.about
    # The old row lets go of its key first, for the new one may say the same words.
    m = tables.memories
    conn.execute(
        update(m).where(m.c.tenant == old.tenant, m.c.persona == old.persona, m.c.id == old.id).values(dedupe_key=None)
    )
    completed: MemoryFields = {**inherited, **fields}
    # It stays in the space of the old one, or whoever saw the old one would be left with neither.
    there = replace(setting, scope=replace(setting.scope, space=old.space or None))
    drafts = placed(conn, tables, [draft(content, completed, there)], there)
    [(new, created)] = insert(conn, tables, drafts, [vector], model, there)
    # Only a window can begin later: an event that is still to come is known of now.
    takeover = new.valid_from or min(new.event_time or setting.now, setting.now)
    status: Status = "superseded" if takeover <= setting.now else "active"
    closed = _change(
        conn,
        tables,
        setting,
        old,
        "supersede",
        status=status,
        superseded_by=new.id,
        valid_to=_closed(old, takeover),
        columns=_KEYLESS,
    )
    return new, created, closed


def _reopen(conn: Connection, tables: Tables, setting: Setting, successor: Memory) -> None:
    """Let what a memory was to replace hold on, because it is taken back before it began."""
    if successor.valid_from is None or successor.valid_from <= setting.now:
        return
    m, v = tables.memories, tables.memory_versions
    waiting = conn.execute(
        select(*rows.columns(m))
        .where(
            m.c.tenant == successor.tenant,
            m.c.persona == successor.persona,
            m.c.superseded_by == successor.id,
            m.c.status == "active",
        )
        .with_for_update()
    ).all()
    for old in map(rows.memory, waiting):
        before = conn.scalar(
            select(v.c.image)
            .where(
                v.c.tenant == old.tenant,
                v.c.persona == old.persona,
                v.c.memory_id == old.id,
                v.c.change == "supersede",
            )
            .order_by(v.c.version.desc())
            .limit(1)
        )
        window = rows.from_image(before).valid_to
        _change(conn, tables, setting, old, "reopen", superseded_by=None, valid_to=window)


def mark(
    conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str, status: Status, by: UUID | str | None
) -> Memory:
    """Give an own memory another status, and close its window if that is still open.

    Raises:
        MemoryNotFound: there is none the scope may see, or none that `by` names.
        MemoryNotActive: it was deleted, or `by` is given and something replaced it already.
        NotTheAuthor: another user wrote it.
    """
    old = own(conn, tables, setting, identifier)
    if old.status == "retracted":
        raise MemoryNotActive(old.status)  # or a deleted memory would come back where the past is asked for
    if by is not None and old.superseded_by is not None:
        raise MemoryNotActive("superseded")  # it has its successor, and a chain has one next link
    displacer = None
    if by is not None:
        displacer = find(conn, tables, setting, by)
        if displacer is None:
            raise MemoryNotFound()
        if displacer.id == old.id:
            raise InvalidInput("a memory cannot be replaced by itself", field="by")
        if displacer.superseded_by is not None:
            raise InvalidInput("by names a memory that was replaced itself: name the one that holds", field="by")
    _reopen(conn, tables, setting, old)
    return _change(
        conn,
        tables,
        setting,
        old,
        "mark",
        status=status,
        superseded_by=displacer.id if displacer else old.superseded_by,
        valid_to=_closed(old, setting.now),
        columns=_KEYLESS,
    )


def retract(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> Memory:
    """Take an own memory out of every answer; its history stays.

    Raises:
        MemoryNotFound: there is none the scope may see, or it was deleted already.
        NotTheAuthor: another user wrote it.
    """
    old = own(conn, tables, setting, identifier)
    if old.status == "retracted":
        raise MemoryNotFound()
    _reopen(conn, tables, setting, old)
    return _change(
        conn,
        tables,
        setting,
        old,
        "delete",
        status="retracted",
        valid_to=_closed(old, setting.now),
        columns=_KEYLESS,
    )


def revise(
    conn: Connection, tables: Tables, setting: Setting, old: Memory, item: Draft, vector: Any, model: str | None
) -> Memory:
    """Give an own, locked memory the text of a draft, and what else its caller named; the old image is kept.

    The vectors of the old text go, and where the new one came from is noted beside the sources that are there.
    """
    new = item.memory
    values: dict[str, Any] = {name: getattr(new, name) for name in _REVISABLE if name in item.given}
    values |= {"content": new.content, "title": new.title}
    category_terms, content_terms, length = index_terms(replace(old, **values), setting.tokenizer)
    key = _free_key(conn, tables, replace(old, **values), item.given_day) if item.dedupe_key else None
    revised = _change(
        conn,
        tables,
        setting,
        old,
        "revise",
        columns={
            "dedupe_key": key,
            "category_terms": category_terms,
            "content_terms": content_terms,
            "length": length,
        },
        **values,
    )
    v = tables.vectors
    conn.execute(
        delete(v).where(v.c.tenant == old.tenant, v.c.persona == old.persona, v.c.kind == "memory", v.c.owner == old.id)
    )
    if vector is not None:
        add_vectors(conn, tables, [(revised, vector)], model)
    else:
        leave_embedding(conn, tables, [revised], model, setting)
    tables.inserts.add(conn, tables.sources, [source_row(item.source, revised)])
    return revised


def _free_key(conn: Connection, tables: Tables, memory: Memory, day: date | None) -> str | None:
    """Return the key that holds off duplicates of a memory, or None when another row has it."""
    m, key = tables.memories, dedupe_key(memory, day)
    taken = (m.c.tenant == memory.tenant, m.c.persona == memory.persona, m.c.dedupe_key == key, m.c.id != memory.id)
    return None if conn.execute(select(m.c.id).where(*taken)).first() else key


def set_core(conn: Connection, tables: Tables, setting: Setting, old: Memory, core: bool) -> Memory:
    """Say of an own, locked memory whether it is always in mind."""
    return _change(conn, tables, setting, old, "core", core=core)


def undo(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> tuple[Memory, Memory | None]:
    """Take back that an own memory was replaced, or marked: it holds again as it did before.

    What replaced it is retracted if it was written for that; a memory that was there before, or that has been replaced
    itself since, is left as it is.

    Returns:
        The memory as it is again, and the successor that was retracted, if one was.

    Raises:
        MemoryNotFound: there is none the scope may see.
        MemoryNotActive: it was deleted, or what replaced it was replaced in turn.
        InvalidInput: nothing has replaced or marked it.
        NotTheAuthor: another user wrote it, or what replaced it.
        NotAllowed: it is shared with a project the user has left.
    """
    # The successor is locked first, as by whoever takes it back: two that wait for each other would wait for ever.
    replaced = find(conn, tables, setting, identifier)
    if replaced is not None and replaced.superseded_by is not None:
        find(conn, tables, setting, replaced.superseded_by, lock=True)
    old = own(conn, tables, setting, identifier)
    if old.status == "retracted":
        raise MemoryNotActive(old.status)
    if old.superseded_by is None and old.status == "active":
        raise InvalidInput("nothing has replaced or marked this memory: there is nothing to undo", field="id")
    require_membership(conn, tables, setting, old)
    v = tables.memory_versions
    last = conn.execute(
        select(v.c.image, v.c.change, v.c.changed_at)
        .where(
            v.c.tenant == old.tenant,
            v.c.persona == old.persona,
            v.c.memory_id == old.id,
            v.c.change.in_(("supersede", "mark")),
        )
        .order_by(v.c.version.desc())
        .limit(1)
    ).one()
    before, retracted = rows.from_image(last.image), None
    if old.superseded_by is not None and old.superseded_by != before.superseded_by:
        retracted = _successor_retracted(conn, tables, setting, old.superseded_by, last.change, last.changed_at)
    values: dict[str, Any] = {name: getattr(before, name) for name in ("status", "superseded_by", "valid_to")}
    key = None
    if before.status == "active" and setting.policies.dedupe.name != "none":
        # The day counts in the key only where the caller named it: where it is not the one it would have had anyway.
        usual = day_of(old.event_time or old.created_at, setting.zone)
        key = _free_key(conn, tables, replace(old, **values), None if old.day == usual else old.day)
    again = _change(conn, tables, setting, old, "undo", columns={"dedupe_key": key}, **values)
    return again, retracted


def _successor_retracted(
    conn: Connection, tables: Tables, setting: Setting, identifier: UUID, change: str, changed_at: datetime
) -> Memory | None:
    successor = find(conn, tables, setting, identifier, lock=True)
    if successor is None or change != "supersede" or successor.created_at != changed_at:
        return None
    if successor.superseded_by is not None:
        raise MemoryNotActive("superseded")
    if successor.status == "retracted":
        return None
    if successor.author != setting.scope.author:
        raise NotTheAuthor()
    return _change(
        conn,
        tables,
        setting,
        successor,
        "undo",
        status="retracted",
        valid_to=_closed(successor, setting.now),
        columns=_KEYLESS,
    )
