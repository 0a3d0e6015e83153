"""Correcting memories: windows are closed and images kept, nothing is destroyed."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, insert, select, update

from memoranda.db.queries import rows
from memoranda.db.queries.memories import add, find
from memoranda.db.schema import Tables
from memoranda.drafts import MemoryFields, Setting, draft
from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, NotTheAuthor
from memoranda.records import Memory, Status


def _own(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> Memory:
    """Return the locked row of a memory the scope may change."""
    memory = find(conn, tables, setting, identifier, lock=True)
    if memory is None:
        raise MemoryNotFound()
    if memory.author != setting.scope.author:
        raise NotTheAuthor()
    return memory


def _change(conn: Connection, tables: Tables, setting: Setting, old: Memory, change: str, **values: Any) -> Memory:
    """Replace values of a row, keeping its image as a version."""
    m, v = tables.memories, tables.memory_versions
    newest = conn.scalar(
        select(func.max(v.c.version)).where(
            v.c.tenant == old.tenant, v.c.persona == old.persona, v.c.memory_id == old.id
        )
    )
    conn.execute(
        insert(v).values(
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
        update(m).where(m.c.tenant == old.tenant, m.c.persona == old.persona, m.c.id == old.id).values(**values)
    )
    values.pop("dedupe_key", None)
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
    old = _own(conn, tables, setting, identifier)
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
    [(new, created)] = add(conn, tables, [draft(content, completed, there)], [vector], model, there)
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
        dedupe_key=None,
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
    old = _own(conn, tables, setting, identifier)
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
        dedupe_key=None,
    )


def retract(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> Memory:
    """Take an own memory out of every answer; its history stays.

    Raises:
        MemoryNotFound: there is none the scope may see, or it was deleted already.
        NotTheAuthor: another user wrote it.
    """
    old = _own(conn, tables, setting, identifier)
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
        dedupe_key=None,
    )
