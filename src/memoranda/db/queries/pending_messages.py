"""What is pending: messages that have left a model's sight, or are about to, and are still to be extracted.

A pending message that lies in a span of `extractions` was tried in vain and set aside: it is still to be extracted, but
everything else goes first, and no job is left for it before it has rested.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select, update

from memoranda.db.queries import conversations, jobs
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.queries.jobs import Claim
from memoranda.db.queries.messages import parts
from memoranda.db.queries.slices import Slice, extracted, lines_of, within, within_tokens
from memoranda.db.schema import Tables
from memoranda.reports import Pending
from memoranda.scope import Scope

_TOGETHER = 500
"""Keys, positions or spans named in one statement."""
_REST = timedelta(days=1)
"""How long no job is left for what was set aside: each try may cost a call of a model."""


def next_slice(conn: Connection, tables: Tables, scope: Scope, name: str, max_tokens: int) -> Slice | None:
    """Return the pending messages whose turn it is, as many as one call of a model reads, or None.

    They are the oldest that were said in one scope. What was set aside comes last, and as it was then.
    """
    row = conversations.found(conn, tables, scope, name)
    if row is None:
        return None
    m, e = tables.messages, tables.extractions
    tried = m.outerjoin(e, _tried_in(tables, row))
    waiting = select(*(m.c[name] for name in ("position", "tokens", "said_in")), e.c.created_at.label("set_aside_at"))
    order = (e.c.created_at.asc().nulls_first(), m.c.position)
    found = conn.execute(
        waiting.select_from(tried).where(*of_conversation(m, row), m.c.pending_at.is_not(None)).order_by(*order)
    ).all()
    if not found:
        return None
    alike = [one for one in found if (one.set_aside_at, one.said_in) == (found[0].set_aside_at, found[0].said_in)]
    chosen = {one.position for one in within_tokens(alike, max_tokens) or alike[:1]}
    read = lines_of(conn, tables, *of_conversation(m, row), m.c.position.between(min(chosen), max(chosen)))
    lines = tuple(line for line in read if line.position in chosen)
    return Slice(conversation_id=row.id, lines=lines) if lines else None


def mark_pending(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    name: str,
    named: tuple[Sequence[int], Sequence[str]],
    least: int,
    now: datetime,
    payload: Any,
) -> Pending:
    """Mark messages from which nothing was extracted as out of sight, and return what is pending now.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        scope: Whose conversation.
        name: Its name.
        named: Their positions, and the ids their caller gave them; what is not there is left out.
        least: From how many tokens on a job is left.
        now: The present moment.
        payload: Of that job; None for no job.
    """
    row = conversations.hold(conn, tables, scope, name)
    if row is None:
        return Pending(messages=0, tokens=0, job=False)
    m = tables.messages
    positions, keys = named
    mine = (*of_conversation(m, row), m.c.role != "system", m.c.pending_at.is_(None))
    found: set[int] = set()
    for column, values in ((m.c.position, positions), (m.c.key, keys)):
        for start in range(0, len(values), _TOGETHER):
            part = values[start : start + _TOGETHER]
            found.update(conn.scalars(select(m.c.position).where(*mine, column.in_(part))))
    seen = extracted(conn, tables, row, "flush") if found else []
    mark(conn, tables, row, [position for position in sorted(found) if not within(position, seen)], now)
    due, enough = _waiting(conn, tables, row, _is_due(tables, row, now))
    if due and enough >= least and payload is not None:
        jobs.leave_for(conn, tables, row, jobs.FLUSH, payload)
    count, tokens = _waiting(conn, tables, row)
    job = jobs.is_waiting(conn, tables, *jobs.key_for(row, jobs.FLUSH))
    return Pending(messages=count, tokens=tokens, job=job)


def mark(conn: Connection, tables: Tables, row: Row[Any], positions: Sequence[int], now: datetime) -> None:
    """Mark the messages at these positions as pending."""
    m = tables.messages
    mine = (*of_conversation(m, row), m.c.role != "system", m.c.pending_at.is_(None))
    for part in parts(positions):
        conn.execute(update(m).where(*mine, m.c.position.in_(part)).values(pending_at=now))


def out_of_sight(
    conn: Connection, tables: Tables, scope: Scope, name: str, in_sight: Collection[str | None]
) -> tuple[list[int], Pending]:
    """Return the positions of what has left a model's sight and is not marked, and what is pending.

    Only of messages with an id can it be told. What extractions have read is not looked at again.

    Args:
        conn: A connection.
        tables: The store's tables.
        scope: Whose conversation.
        name: Its name.
        in_sight: The keys of the messages that the model sees.
    """
    row = conversations.found(conn, tables, scope, name)
    if row is None:
        return [], Pending(messages=0, tokens=0, job=False)
    m = tables.messages
    mine = (*of_conversation(m, row), m.c.key.is_not(None), m.c.pending_at.is_(None), m.c.role != "system")
    unread = _gaps(extracted(conn, tables, row, "flush"), row.folded_to + 1, row.last_position)
    left: list[int] = []
    for start in range(0, len(unread), _TOGETHER):
        somewhere = or_(*(m.c.position.between(*span) for span in unread[start : start + _TOGETHER]))
        found = conn.execute(select(m.c.position, m.c.key).where(*mine, somewhere).order_by(m.c.position))
        left += [one.position for one in found if one.key not in in_sight]
    count, tokens = _waiting(conn, tables, row)
    return left, Pending(
        messages=count, tokens=tokens, job=jobs.is_waiting(conn, tables, *jobs.key_for(row, jobs.FLUSH))
    )


def flush_later(conn: Connection, tables: Tables, scope: Scope, name: str, now: datetime, payload: Any) -> bool:
    """Leave a job to extract what is pending, however little; False where there is nothing but what has to rest."""
    row = conversations.hold(conn, tables, scope, name)
    return row is not None and leave_if_due(conn, tables, row, now, payload)


def leave_if_due(conn: Connection, tables: Tables, row: Row[Any], now: datetime, payload: Any) -> bool:
    """Leave a job to extract what is pending; False where there is nothing but what was set aside and has to rest."""
    if not _waiting(conn, tables, row, _is_due(tables, row, now))[0]:
        return False
    jobs.leave_for(conn, tables, row, jobs.FLUSH, payload)
    return True


def make_way(conn: Connection, tables: Tables, row: Row[Any], now: datetime, job: Claim) -> None:
    """Take its key from a job that is given up, and leave another one for what is due."""
    j = tables.jobs
    own = (j.c.tenant == job.tenant, j.c.persona == job.persona, j.c.id == job.id)
    conn.execute(update(j).where(*own, j.c.unique_key == jobs.key_for(row, job.kind)[1]).values(unique_key=None))
    leave_if_due(conn, tables, row, now, job.payload)


def still_pending(conn: Connection, tables: Tables, row: Row[Any], slice: Slice) -> set[int]:
    """Return the positions of a slice at which messages are pending."""
    m = tables.messages
    waiting = (*of_conversation(m, row), m.c.position.between(slice.first, slice.last), m.c.pending_at.is_not(None))
    return set(conn.scalars(select(m.c.position).where(*waiting)))


def _waiting(conn: Connection, tables: Tables, row: Row[Any], *which: ColumnElement[bool]) -> tuple[int, int]:
    """Return how many messages are pending, of all or of some, and their tokens."""
    m = tables.messages
    waiting = (*of_conversation(m, row), m.c.pending_at.is_not(None), *which)
    count, tokens = conn.execute(select(func.count(), func.sum(m.c.tokens)).where(*waiting)).one()
    return count, int(tokens or 0)


def _tried_in(tables: Tables, row: Row[Any]) -> ColumnElement[bool]:
    """Return the condition under which a flush was about a message."""
    m, e = tables.messages, tables.extractions
    spans = m.c.position.between(e.c.first_position, e.c.last_position)
    return and_(*of_conversation(e, row), e.c.kind == "flush", spans)


def _is_due(tables: Tables, row: Row[Any], now: datetime) -> ColumnElement[bool]:
    """Return the condition under which a pending message has not to rest."""
    e = tables.extractions
    resting = select(e.c.created_at).where(_tried_in(tables, row), e.c.created_at > now - _REST)
    return ~resting.correlate(tables.messages).exists()


def _gaps(ranges: Sequence[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    """Return what ranges, in their order, leave of the positions from `first` to `last`."""
    left = []
    for start, end in (*ranges, (last + 1, last + 1)):
        if first < start:
            left.append((first, start - 1))
        first = max(first, end + 1)
    return left
