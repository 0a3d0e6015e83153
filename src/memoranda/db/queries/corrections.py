"""Correcting memories: windows are closed and images kept, nothing is destroyed."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.exc import IntegrityError

from memoranda.db.queries import projects, rows
from memoranda.db.queries.inserting import (
    add_beside,
    insert,
    leave_embedding,
    placed,
    require_membership,
    source_row,
    vector_rows,
)
from memoranda.db.queries.memories import find
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting, dedupe_key, draft, index_terms
from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, NotTheAuthor
from memoranda.fields import MemoryFields
from memoranda.moments import day_of
from memoranda.records import Memory, Status

REPLACED_BY_KNOWN = "supersede_by_known"
"""What a version says where the memory that took over had been there before."""
_KEYLESS: dict[str, Any] = {"dedupe_key": None}
_REVISABLE = (
    "title",
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
    # Projects come before rows, as where memories are added: two that wait for each other would wait for ever.
    before = find(conn, tables, setting, identifier)
    if project := fields.get("project") or (before.project if before else ""):
        projects.await_turn(conn, tables, setting.scope, project)
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
    if old.valid_from is not None and old.valid_from > setting.now:
        inherited["valid_from"] = old.valid_from  # what corrects a plan begins when the plan would have
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
        "supersede" if created else REPLACED_BY_KNOWN,
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
                v.c.change.in_(("supersede", REPLACED_BY_KNOWN)),
            )
            .order_by(v.c.version.desc())
            .limit(1)
        )
        window = rows.from_image(before).valid_to
        again = _change(conn, tables, setting, old, "reopen", superseded_by=None, valid_to=window)
        _claim_usual_key(conn, tables, setting, again)


def mark(
    conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str, status: Status, by: UUID | str | None
) -> Memory:
    """Give an own memory another status, and close its window if that is still open.

    Raises:
        MemoryNotFound: there is none the scope may see, or none that `by` names.
        MemoryNotActive: it was deleted, or `by` is given and something replaced it already.
        NotTheAuthor: another user wrote it.
    """
    if by is not None:
        _lock_in_order(conn, tables, setting, identifier, by)
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
        if displacer.superseded_by is not None or displacer.status != "active":
            raise InvalidInput("by names a memory that does not hold itself: name the one that does", field="by")
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


def _lock_in_order(conn: Connection, tables: Tables, setting: Setting, *identifiers: UUID | str) -> None:
    """Lock memories in the order of their ids, whichever is named first."""
    found = (find(conn, tables, setting, identifier) for identifier in identifiers)
    for memory in sorted((memory for memory in found if memory), key=lambda memory: memory.id):
        find(conn, tables, setting, memory.id, lock=True)


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


def named(item: Draft) -> dict[str, Any]:
    """Return what a caller named of a draft that a memory in place can be given."""
    values = {name: getattr(item.memory, name) for name in _REVISABLE if name in item.given}
    if "event_time" in values:
        values["day"] = item.memory.day  # which follows the event, unless it was named as well
    return values


def revise(
    conn: Connection, tables: Tables, setting: Setting, old: Memory, item: Draft, vector: Any, model: str | None
) -> Memory:
    """Give an own, locked memory the text of a draft, and what else its caller named; the old image is kept.

    The vectors of the old text go, and where the new one came from is noted beside the sources that are there.

    Raises:
        InvalidInput: its window would end before it begins.
    """
    revised = _rewritten(conn, tables, setting, old, "revise", named(item) | {"content": item.memory.content})
    if item.dedupe_key:
        _claim_key(conn, tables, revised, dedupe_key(revised, item.given_day))
    v = tables.vectors
    conn.execute(
        delete(v).where(v.c.tenant == old.tenant, v.c.persona == old.persona, v.c.kind == "memory", v.c.owner == old.id)
    )
    made = vector_rows([(revised, vector)], model) if vector is not None else []
    add_beside(conn, tables, [source_row(item.source, revised)], made)
    if vector is None:
        leave_embedding(conn, tables, [revised], model, setting)
    return revised


def amend(conn: Connection, tables: Tables, setting: Setting, old: Memory, values: Mapping[str, Any]) -> Memory:
    """Change what an own, locked memory says of itself, and not its text; the old image is kept.

    Raises:
        InvalidInput: its window would end before it begins.
    """
    amended = _rewritten(conn, tables, setting, old, "amend", values)
    if setting.policies.dedupe.name != "none":
        _claim_usual_key(conn, tables, setting, amended)
    return amended


def _rewritten(
    conn: Connection, tables: Tables, setting: Setting, old: Memory, change: str, values: Mapping[str, Any]
) -> Memory:
    """Replace values of a memory that its index terms and its key follow from; the key is left free."""
    new = replace(old, **values)
    if new.valid_from and new.valid_to and new.valid_to < new.valid_from:
        raise InvalidInput("valid_to would lie before valid_from", field="valid_to")
    category_terms, content_terms, length = index_terms(new, setting.tokenizer)
    terms = {"category_terms": category_terms, "content_terms": content_terms, "length": length}
    return _change(conn, tables, setting, old, change, columns=_KEYLESS | terms, **values)


def _claim_usual_key(conn: Connection, tables: Tables, setting: Setting, memory: Memory) -> None:
    """Hold off duplicates again of a memory that holds again."""
    # The day counts in the key only where the caller named it: where it is not the one it would have had anyway.
    usual = day_of(memory.event_time or memory.created_at, setting.zone)
    _claim_key(conn, tables, memory, dedupe_key(memory, None if memory.day == usual else memory.day))


def _claim_key(conn: Connection, tables: Tables, memory: Memory, key: str) -> None:
    """Hold off duplicates of a memory, unless another row does so already."""
    m = tables.memories
    own_row = (m.c.tenant == memory.tenant, m.c.persona == memory.persona, m.c.id == memory.id)
    with suppress(IntegrityError), conn.begin_nested():
        conn.execute(update(m).where(*own_row).values(dedupe_key=key))


def undo(conn: Connection, tables: Tables, setting: Setting, identifier: UUID | str) -> tuple[Memory, Memory | None]:
    """Take back that an own memory was replaced, or marked: it holds again as it did before.

    What replaced it is retracted if it was written for that; a memory that was there before is left as it is.

    Returns:
        The memory as it is again, and the successor that was retracted, if one was.

    Raises:
        MemoryNotFound: there is none the scope may see.
        MemoryNotActive: it was deleted, or what replaced it was replaced in turn.
        InvalidInput: nothing has replaced or marked it, or it was a plan, and what it was to replace goes on.
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
    last = _last_undoable(conn, tables, old)
    if last is None or (old.superseded_by is None and old.status == "active"):
        raise InvalidInput("nothing has replaced or marked this memory: there is nothing to undo", field="id")
    require_membership(conn, tables, setting, old)
    change, before = last
    if before.status == "active" and change == "mark" and old.valid_from is not None and old.valid_from > setting.now:
        raise InvalidInput("it was to begin later, and what it was to replace goes on: write it anew", field="id")
    retracted = None
    if old.superseded_by is not None and old.superseded_by != before.superseded_by:
        retracted = _successor_retracted(conn, tables, setting, old.superseded_by, change)
    values: dict[str, Any] = {name: getattr(before, name) for name in ("status", "superseded_by", "valid_to")}
    again = _change(conn, tables, setting, old, "undo", columns=_KEYLESS, **values)
    if again.status == "active" and again.superseded_by is None and setting.policies.dedupe.name != "none":
        _claim_usual_key(conn, tables, setting, again)
    return again, retracted


def _last_undoable(conn: Connection, tables: Tables, memory: Memory) -> tuple[str, Memory] | None:
    """Return the latest step that closed a memory and was not taken back yet, and the image before it."""
    v = tables.memory_versions
    steps = conn.execute(
        select(v.c.change, v.c.image)
        .where(v.c.tenant == memory.tenant, v.c.persona == memory.persona, v.c.memory_id == memory.id)
        .order_by(v.c.version)
    )
    standing: list[tuple[str, Any]] = []
    for change, image in steps:
        if change in ("supersede", REPLACED_BY_KNOWN, "mark"):
            standing.append((change, image))
        elif change in ("undo", "reopen") and standing:
            standing.pop()
    if not standing:
        return None
    change, image = standing[-1]
    return change, rows.from_image(image)


def _successor_retracted(
    conn: Connection, tables: Tables, setting: Setting, identifier: UUID, change: str
) -> Memory | None:
    successor = find(conn, tables, setting, identifier, lock=True)
    if successor is None or change != "supersede":
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
