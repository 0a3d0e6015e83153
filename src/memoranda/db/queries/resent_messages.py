"""Which messages of a batch stand in a conversation already: by their ids, by their places, or by what they say.

User and assistant are known by their words, see `memoranda.messages.resending`. What stands between their words, such
as calls of tools and results, is known by the ids of the calls, or by all it says where it has none.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, not_, select

from memoranda.db.queries.conversations import of_conversation
from memoranda.db.schema import Tables
from memoranda.messages.drafts import MessageDraft, overlap
from memoranda.messages.forms import call_ids, has_replaced, replaced, traces
from memoranda.messages.resending import Spoken, standing

_SPOKEN = ("user", "assistant")
_LEFT_BEHIND = 100
"""Messages that may stand behind those that are sent again, beside as many as are sent, and are looked through."""


def by_key(
    conn: Connection, tables: Tables, conversation: Row[Any], drafts: Sequence[MessageDraft]
) -> dict[str | None, Any]:
    """Return position, key, digest and mark of the messages that are there under the ids of a batch, by their keys."""
    m, keys = tables.messages, [draft.key for draft in drafts if draft.key is not None]
    if not keys:
        return {}
    statement = select(m.c.position, m.c.key, m.c.digest, m.c.folded_at).where(
        *of_conversation(m, conversation), tables.dialect.texts_in(m.c.key, keys)
    )
    return {row.key: row for row in conn.execute(statement)}


def known(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    drafts: Sequence[MessageDraft],
    there: Mapping[str | None, Any],
) -> list[int | None]:
    """Return the position of each message that is there under its id or in its place, None for one that is new.

    Args:
        conn: A connection.
        tables: The store's tables.
        conversation: A row of `conversations.locked`.
        drafts: The batch.
        there: What `by_key` says of it.
    """
    end = _end(conn, tables, conversation, len(drafts)) if any(draft.key is None for draft in drafts) else []
    places = {row.position: place for place, row in enumerate(end)}

    def said(draft: MessageDraft) -> str:
        row = there.get(draft.key)
        return row.digest if row else draft.digest if draft.key is None else f"key:{draft.key}"

    expected = len(end) - overlap([row.digest for row in end], [said(draft) for draft in drafts])
    positions: list[int | None] = []
    for draft in drafts:
        row = there.get(draft.key)
        if draft.key is None and expected < len(end) and end[expected].digest == draft.digest:
            row = end[expected]
        positions.append(row.position if row else None)
        expected = places.get(row.position, len(end)) + 1 if row else len(end)
    return positions


def said_before(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    drafts: Sequence[MessageDraft],
    positions: Sequence[int | None],
) -> list[int | None]:
    """Return the positions of a batch's messages, also of those that were said before under other ids or none.

    What counts is what user and assistant said, but for the space around it, or said before it was rewritten. A single
    message is new, unless it is what the user said last and nobody has answered.

    Args:
        conn: A connection.
        tables: The store's tables.
        conversation: A row of `conversations.locked`.
        drafts: The batch.
        positions: What `known` says of it: each of these is what stands there, and nothing else.
    """
    spoken = [place for place, draft in enumerate(drafts) if _is_spoken(draft)]
    if not spoken or (len(drafts) == 1 and drafts[0].message.role != "user"):
        return list(positions)
    m = tables.messages
    body = case((has_replaced(m.c.body), m.c.body)).label("body")
    mine = (*of_conversation(m, conversation), _spoken_rows(tables))
    last = select(m.c.position, m.c.role, m.c.content, body).where(*mine).order_by(m.c.position.desc())
    limit = 1 if len(drafts) == 1 else 2 * len(spoken) + _LEFT_BEHIND
    end = list(reversed(conn.execute(last.limit(limit)).all()))
    words: dict[int, Spoken] = {row.position: (row.role, row.content.strip()) for row in end}
    before = {form: words[row.position] for row in end for form in replaced(row.body)}
    by_id = set(positions)

    def said(place: int) -> Spoken:
        draft, position = drafts[place], positions[place]
        if position is not None:
            return draft.message.role, position
        forms = traces(draft.message.role, draft.content, draft.digest) if before else ()
        return next((before[form] for form in forms if form in before), (draft.message.role, draft.content.strip()))

    there = [(role, position if position in by_id else text) for position, (role, text) in words.items()]
    found = list(positions)
    for place, stands_at in zip(spoken, standing(there, [said(place) for place in spoken]), strict=True):
        if stands_at is not None:
            found[place] = end[stands_at].position
    return _with_unspoken(conn, tables, conversation, drafts, found, list(words))


def covered(drafts: Sequence[MessageDraft], positions: Sequence[int | None]) -> list[int | None]:
    """Return the positions of a batch's messages, where calls of tools and the like may have been left out before.

    Such a one is taken for the message that is said next, if that is there.
    """
    found: list[int | None] = []
    said_next: int | None = None
    for draft, position in zip(reversed(drafts), reversed(positions), strict=True):
        said_next = position if _is_spoken(draft) else said_next
        found.append(said_next if position is None else position)
    return found[::-1]


def _with_unspoken(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    drafts: Sequence[MessageDraft],
    positions: Sequence[int | None],
    spoken: Sequence[int],
) -> list[int | None]:
    """Return the positions of a batch's messages, also of what stands between the words that are known.

    `spoken` are the positions of what user and assistant said at the end of the conversation.
    """
    found = list(positions)
    gaps = _gaps(drafts, positions, spoken, conversation.last_position)
    if not gaps:
        return found
    m = tables.messages
    first, last = min(after for after, _ in gaps), max(before for _, before in gaps)
    mine = (*of_conversation(m, conversation), m.c.position.between(first + 1, last - 1), not_(_spoken_rows(tables)))
    statement = select(m.c.position, m.c.role, m.c.digest, m.c.body).where(*mine).order_by(m.c.position)
    taken = set(positions)
    rows = [row for row in conn.execute(statement) if row.position not in taken]
    at = [row.position for row in rows]
    for (after, before), places in gaps.items():
        between = rows[bisect_right(at, after) : bisect_left(at, before)]
        own = {_identity(row.role, row.digest, row.body): row.position for row in between}
        for place in places:
            draft = drafts[place]
            found[place] = own.pop(_identity(draft.message.role, draft.digest, draft.body), None)
    return found


def _gaps(
    drafts: Sequence[MessageDraft], positions: Sequence[int | None], spoken: Sequence[int], last: int
) -> dict[tuple[int, int], list[int]]:
    """Return between which positions the unspoken of a batch may stand: where a message that is said beside it does."""
    said = [place for place, draft in enumerate(drafts) if _is_spoken(draft)]
    gaps: dict[tuple[int, int], list[int]] = {}
    for place, draft in enumerate(drafts):
        if positions[place] is not None or _is_spoken(draft):
            continue
        said_next = bisect_left(said, place)
        after = positions[said[said_next - 1]] if said_next else None
        before = positions[said[said_next]] if said_next < len(said) else None
        if before is not None and after is None:
            earlier = bisect_left(spoken, before)
            after = spoken[earlier - 1] if earlier else 0
        if after is not None and before is None:
            later = bisect_right(spoken, after)
            before = spoken[later] if later < len(spoken) else last + 1
        if after is not None and before is not None:
            gaps.setdefault((after, before), []).append(place)
    return gaps


def _identity(role: str, digest: str, body: str) -> Hashable:
    return role, call_ids(body) or digest


def _is_spoken(draft: MessageDraft) -> bool:
    return draft.message.role in _SPOKEN and draft.content != ""


def _spoken_rows(tables: Tables) -> ColumnElement[bool]:
    m = tables.messages
    return and_(m.c.role.in_(_SPOKEN), m.c.content != "")


def _end(conn: Connection, tables: Tables, conversation: Row[Any], limit: int) -> list[Row[Any]]:
    m = tables.messages
    statement = select(m.c.position, m.c.digest).where(*of_conversation(m, conversation))
    return list(reversed(conn.execute(statement.order_by(m.c.position.desc()).limit(limit)).all()))
