"""How messages are written: each once, at the next positions; rewritten, folded and deleted where they stand.

A message with an id is the one that was appended under it before, wherever it stands, and takes the words it has now.
Messages without one are known by what they say and where: as the end of the conversation, or right after a message that
is known.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, case, delete, func, select, update

from memoranda.db.queries import conversations
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.queries.messages import at, newest, parts, unfolded
from memoranda.db.schema import Tables
from memoranda.ids import new_id
from memoranda.messages import Message
from memoranda.messages.drafts import MessageDraft, overlap
from memoranda.messages.forms import has_replaced, replaced, replacing, stored, trace
from memoranda.scope import Scope
from memoranda.text import clean

_SPOKEN = ("user", "assistant")


class Reconciled(NamedTuple):
    """What a conversation is after its messages were set."""

    messages: list[Message]
    """All that are not folded."""
    folded: bool
    """Whether pending messages were folded by it."""


def append(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    name: str,
    drafts: Sequence[MessageDraft],
    now: datetime,
    new_ids: bool,
) -> list[Message]:
    """Add at the end what is not there yet, and return every message of the batch as it is stored.

    What is there under the id of a message that says something else now is rewritten in its place. With `new_ids` what
    has an unknown id may have been said before, under another.
    """
    if not drafts:
        return []
    conversation = conversations.locked(conn, tables, scope, name, now)
    by_key = _by_key(conn, tables, conversation, drafts)
    known = _known(conn, tables, conversation, drafts, by_key)
    _rewrite(conn, tables, conversation, drafts, by_key, now)
    if new_ids and None in known:
        said = _said_before(conn, tables, conversation, drafts, known)
        known = [by_id or by_words for by_id, by_words in zip(known, said, strict=True)]
    fresh: dict[str | int, int] = {}  # what is new, by key or by its place in the batch, and the last place of its kind
    for place, draft in enumerate(drafts):
        if known[place] is None:
            fresh[draft.key or place] = place
    added = _add(conn, tables, conversation, [drafts[place] for place in fresh.values()], now)
    new = dict(zip(fresh, added, strict=True))
    old = at(conn, tables, conversation, {position for position in known if position is not None})
    there = {message.position: message for message in old}
    return [
        new[draft.key or place] if (position := known[place]) is None else there[position]
        for place, draft in enumerate(drafts)
    ]


def reconcile(
    conn: Connection, tables: Tables, scope: Scope, name: str, drafts: Sequence[MessageDraft], now: datetime
) -> Reconciled:
    """Make the messages that are not folded these: the beginning that agrees stays, the rest is deleted and added.

    A pending message that is not among them is folded instead, for nothing was extracted from it yet. System messages
    that are older than what is folded may be left out of it and stay out. A message whose id a folded one has is there
    already; one that agrees takes the id it is given now.
    """
    conversation = conversations.locked(conn, tables, scope, name, now)
    m = tables.messages
    there = _by_key(conn, tables, conversation, drafts)
    drafts = [draft for draft in drafts if draft.key not in there or there[draft.key].folded_at is None]
    open_ = (*of_conversation(m, conversation), m.c.folded_at.is_(None))
    columns = (m.c.position, m.c.key, m.c.digest, m.c.pending_at)
    agreed: list[tuple[Any, MessageDraft]] = []
    left: list[Any] = []
    parted = False
    for row in conn.execute(select(*columns).where(*open_).order_by(m.c.position)).all():
        draft = drafts[len(agreed)] if len(agreed) < len(drafts) else None
        if draft is not None and not parted and _agree(row, draft):
            agreed.append((row, draft))
        else:
            left.append(row)
            # Nobody expects what is pending, or older than what is folded, to be set again.
            parted = parted or (row.pending_at is None and row.position > conversation.folded_to)
    rest = drafts[len(agreed) :]
    keys, digests = {draft.key for draft in rest if draft.key}, {draft.digest for draft in rest}
    kept = [row.position for row in left if row.pending_at and row.key not in keys and row.digest not in digests]
    for part in parts({row.position for row in left} - set(kept)):
        conn.execute(delete(m).where(*open_, m.c.position.in_(part)))
    _fold(conn, tables, conversation, kept, now)
    taken = _by_key(conn, tables, conversation, drafts)
    for known, draft in agreed:
        if known.key is None and draft.key is not None and draft.key not in taken:
            conn.execute(update(m).where(*open_, m.c.position == known.position).values(key=draft.key))
    fresh = {draft.key or place: draft for place, draft in reversed(list(enumerate(rest))) if draft.key not in taken}
    _add(conn, tables, conversation, list(reversed(fresh.values())), now)
    return Reconciled(newest(conn, tables, conversation, None, folded=False), bool(kept))


def _agree(row: Any, draft: MessageDraft) -> bool:
    return bool(row.digest == draft.digest and (row.key == draft.key or None in (row.key, draft.key)))


def remove(
    conn: Connection, tables: Tables, scope: Scope, name: str, positions: Sequence[int], now: datetime
) -> list[Message]:
    """Delete the messages at these positions, and return those that were there, in their order."""
    conversation = conversations.hold(conn, tables, scope, name)
    if conversation is None:
        return []
    m = tables.messages
    removed: list[Message] = []
    for part in parts(positions):
        removed += at(conn, tables, conversation, part)
        conn.execute(delete(m).where(*of_conversation(m, conversation), m.c.position.in_(part)))
    _touch(conn, tables, conversation, {"updated_at": now})
    return removed


def archive(
    conn: Connection, tables: Tables, scope: Scope, name: str, positions: Sequence[int], now: datetime
) -> list[Message]:
    """Fold the messages at these positions without a summary, and return those that were not folded before."""
    conversation = conversations.hold(conn, tables, scope, name)
    if conversation is None:
        return []
    return at(conn, tables, conversation, _fold(conn, tables, conversation, positions, now))


def _fold(
    conn: Connection, tables: Tables, conversation: Row[Any], positions: Sequence[int], now: datetime
) -> list[int]:
    """Fold the messages at these positions, and return the positions of those that were not folded before."""
    m = tables.messages
    folded: list[int] = []
    for part in parts(positions):
        chosen = (*of_conversation(m, conversation), m.c.position.in_(part), m.c.folded_at.is_(None))
        folded += conn.scalars(update(m).where(*chosen).values(folded_at=now).returning(m.c.position))
    if folded:
        left = conn.scalar(select(func.min(m.c.position)).where(*unfolded(tables, conversation), m.c.role != "system"))
        # Up to where nothing is left; what was folded beyond it is known by its mark alone.
        folded_to = conversation.last_position if left is None else left - 1
        _touch(conn, tables, conversation, {"folded_to": folded_to, "updated_at": now})
    return folded


def _touch(conn: Connection, tables: Tables, conversation: Row[Any], values: Mapping[str, Any]) -> None:
    c = tables.conversations
    own = (c.c.tenant == conversation.tenant, c.c.persona == conversation.persona, c.c.id == conversation.id)
    conn.execute(update(c).where(*own).values(**values))


def _rewrite(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    drafts: Sequence[MessageDraft],
    by_key: Mapping[str | None, Any],
    now: datetime,
) -> None:
    """Give messages that are there under the ids of a batch the words that they have in it.

    A form that was replaced does not come back: whoever sends a whole history again may not know that a part of it was
    redacted meanwhile.
    """
    latest = {draft.key: draft for draft in drafts}
    changed = {row.position: latest[key] for key, row in by_key.items() if latest[key].digest != row.digest}
    m = tables.messages
    mine = of_conversation(m, conversation)
    for part in parts(changed):
        statement = select(m.c.position, m.c.digest, m.c.body).where(*mine, m.c.position.in_(part))
        for position, digest, body in conn.execute(statement).all():
            draft, before = changed[position], replaced(body)
            if trace(draft.digest) not in before:
                values = _said(draft) | {"body": replacing(draft.body, [*before, trace(digest)])}
                conn.execute(update(m).where(*mine, m.c.position == position).values(**values))
                _touch(conn, tables, conversation, {"updated_at": now})


def _known(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    drafts: Sequence[MessageDraft],
    by_key: Mapping[str | None, Any],
) -> list[int | None]:
    """Return the position of each message that is there already, None for one that is new."""
    end = _end(conn, tables, conversation, len(drafts)) if any(draft.key is None for draft in drafts) else []
    places = {row.position: place for place, row in enumerate(end)}

    def said(draft: MessageDraft) -> str:
        row = by_key.get(draft.key)
        return row.digest if row else draft.digest if draft.key is None else f"key:{draft.key}"

    expected = len(end) - overlap([row.digest for row in end], [said(draft) for draft in drafts])
    known: list[int | None] = []
    for draft in drafts:
        row = by_key.get(draft.key)
        if draft.key is None and expected < len(end) and end[expected].digest == draft.digest:
            row = end[expected]
        known.append(row.position if row else None)
        expected = places.get(row.position, len(end)) + 1 if row else len(end)
    return known


def _said_before(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    drafts: Sequence[MessageDraft],
    by_id: Sequence[int | None],
) -> list[int | None]:
    """Return the positions of what stands at the end of a conversation and is said again at the beginning of a batch.

    What counts is what user and assistant said, but for the space around it, or said before it was rewritten. Calls of
    tools and their results may be left out when it is said again; those that are not are taken for the message that is
    said next. A single message is always new.

    Args:
        conn: A connection.
        tables: The store's tables.
        conversation: A row of `conversations.locked`.
        drafts: The batch.
        by_id: The positions of those whose ids are known: each of these is what stands there, and nothing else.
    """
    known: list[int | None] = [None] * len(drafts)
    places = [place for place, draft in enumerate(drafts) if draft.message.role in _SPOKEN and draft.content]
    m = tables.messages
    mine = (*of_conversation(m, conversation), m.c.role.in_(_SPOKEN), m.c.content != "")
    body = case((has_replaced(m.c.body), m.c.body)).label("body")
    last = select(m.c.position, m.c.role, m.c.content, body).where(*mine).order_by(m.c.position.desc())
    last = last.limit(len(places))
    end = list(reversed(conn.execute(last).all())) if len(drafts) > 1 and places else []
    words = {row.position: (row.role, row.content.strip()) for row in end}
    before = {form: words[row.position] for row in end for form in replaced(row.body)}

    def said(place: int) -> object:
        draft = drafts[place]
        return by_id[place] or before.get(trace(draft.digest), (draft.message.role, draft.content.strip()))

    there = [position if position in by_id else said_there for position, said_there in words.items()]
    count = overlap(there, [said(place) for place in places])
    next_place = 0
    for place, row in zip(places[:count], end[len(end) - count :], strict=True):
        known[next_place : place + 1] = [row.position] * (place + 1 - next_place)
        next_place = place + 1
    return known


def _by_key(
    conn: Connection, tables: Tables, conversation: Row[Any], drafts: Sequence[MessageDraft]
) -> dict[str | None, Any]:
    m, keys = tables.messages, [draft.key for draft in drafts if draft.key is not None]
    if not keys:
        return {}
    statement = select(m.c.position, m.c.key, m.c.digest, m.c.folded_at).where(
        *of_conversation(m, conversation), tables.dialect.texts_in(m.c.key, keys)
    )
    return {row.key: row for row in conn.execute(statement)}


def _end(conn: Connection, tables: Tables, conversation: Row[Any], limit: int) -> list[Row[Any]]:
    m = tables.messages
    statement = select(m.c.position, m.c.digest).where(*of_conversation(m, conversation))
    return list(reversed(conn.execute(statement.order_by(m.c.position.desc()).limit(limit)).all()))


def _add(
    conn: Connection, tables: Tables, conversation: Row[Any], drafts: Sequence[MessageDraft], now: datetime
) -> list[Message]:
    """Store messages at the next positions, and return them as they are stored."""
    if not drafts:
        return []
    first = conversation.last_position + 1
    rows = [_row(draft, conversation, position, now) for position, draft in enumerate(drafts, first)]
    tables.inserts.add(conn, tables.messages, rows)
    _touch(conn, tables, conversation, {"last_position": conversation.last_position + len(rows), "updated_at": now})
    return [stored(SimpleNamespace(**row)) for row in rows]


def _row(draft: MessageDraft, conversation: Row[Any], position: int, now: datetime) -> dict[str, Any]:
    return {
        "tenant": conversation.tenant,
        "persona": conversation.persona,
        "id": new_id(),
        "conversation_id": conversation.id,
        "author": conversation.author,
        "position": position,
        "key": draft.key,
        "said_in": draft.said_in,
        "folded_at": None,
        "pending_at": None,
        "created_at": now,
        "category_terms": "",
        **_said(draft),
    }


def _said(draft: MessageDraft) -> dict[str, Any]:
    """Return the columns that hold what a message says."""
    return {
        "digest": draft.digest,
        "role": draft.message.role,
        "content": draft.content,
        "body": draft.body,
        "codec": clean(draft.message.codec),
        "payload": draft.payload,
        "tokens": draft.tokens,
        "cells": draft.cells,
        "content_terms": draft.content_terms,
        "length": draft.length,
    }
