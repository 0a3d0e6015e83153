"""How messages are written: each once, at the next positions; rewritten, folded and deleted where they stand.

A message with an id is the one that was appended under it before, wherever it stands, and takes the words it has now.
How others are known, see `resent_messages`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, func, select, update

from memoranda.db.queries import conversations, resent_messages
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.queries.messages import at, newest, parts, unfolded
from memoranda.db.schema import Tables
from memoranda.ids import new_id
from memoranda.messages import Message
from memoranda.messages.drafts import MessageDraft
from memoranda.messages.forms import replaced, replacing, stored, traces
from memoranda.scope import Scope
from memoranda.text import clean


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
    has an unknown id may have been said before under another, or under none: then it takes this one.
    """
    if not drafts:
        return []
    conversation = conversations.locked(conn, tables, scope, name, now)
    by_key = resent_messages.by_key(conn, tables, conversation, drafts)
    known = resent_messages.known(conn, tables, conversation, drafts, by_key)
    _rewrite(conn, tables, conversation, drafts, by_key, now)
    if new_ids and None in known:
        known = resent_messages.said_before(conn, tables, conversation, drafts, known)
        _take_ids(conn, tables, conversation, drafts, known, by_key)
        known = resent_messages.covered(drafts, known)
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
    there = resent_messages.by_key(conn, tables, conversation, drafts)
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
    taken = resent_messages.by_key(conn, tables, conversation, drafts)
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
        columns = (m.c.position, m.c.role, m.c.content, m.c.digest, m.c.body)
        statement = select(*columns).where(*mine, m.c.position.in_(part))
        for position, role, content, digest, body in conn.execute(statement).all():
            draft, before = changed[position], replaced(body)
            new_words, new = traces(draft.message.role, draft.content, draft.digest)
            words, whole = traces(role, content, digest)
            if new_words not in before and new not in before:
                gone = whole if words == new_words else words
                values = _said(draft) | {"body": replacing(draft.body, [*before, gone])}
                conn.execute(update(m).where(*mine, m.c.position == position).values(**values))
                _touch(conn, tables, conversation, {"updated_at": now})


def _take_ids(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    drafts: Sequence[MessageDraft],
    positions: Sequence[int | None],
    by_key: Mapping[str | None, Any],
) -> None:
    """Give messages that are there without an id those under which they are said again."""
    pairs = list(zip(drafts, positions, strict=True))
    new = {draft.key for draft, position in pairs if position is None}
    keys = {draft.key: position for draft, position in pairs if position is not None}
    taken = {position: key for key, position in keys.items() if key and key not in by_key and key not in new}
    m = tables.messages
    nameless = (*of_conversation(m, conversation), m.c.key.is_(None))
    for part in parts(taken):
        for position in conn.scalars(select(m.c.position).where(*nameless, m.c.position.in_(part))).all():
            conn.execute(update(m).where(*nameless, m.c.position == position).values(key=taken[position]))


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
