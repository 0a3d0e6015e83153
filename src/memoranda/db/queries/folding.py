"""What leaves a model's sight: which messages are folded next, which are pending, how many turns were delivered.

A plan is read once, and what was done after it is stored only if the conversation still stands as the plan found it: of
two who fold the same messages one changes nothing. Statement by statement it may be changed by others while it is read:
what is gone by then is not in it.

A pending message that lies in a span of `extractions` was tried in vain and set aside: it is still to be extracted, but
everything else goes first, and no job is left for it before it has rested.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select, update

from memoranda.db.queries import conversations, jobs, messages, snapshots
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.queries.jobs import Claim
from memoranda.db.schema import Tables
from memoranda.messages import Message, Role
from memoranda.messages.folds import Turn, fold_end, limits, turn_end
from memoranda.policies import CompactionPolicy
from memoranda.reports import Pending
from memoranda.scope import Scope

T = TypeVar("T", bound=Any)
"""Something with a number of tokens."""

_TOGETHER = 500
"""Positions named in one statement."""
_REST = timedelta(days=1)
"""How long no job is left for what was set aside: each try may cost a call of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What of a message is read to sum up and to extract."""

    id: UUID
    position: int
    role: Role
    text: str = field(repr=False)
    tokens: int
    said_in: Mapping[str, Any] = field(repr=False, hash=False)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Messages of one conversation, in their order.

    A slice that is extracted from was said in one scope: what is learned in a project is not stored in another.
    """

    conversation_id: UUID
    lines: tuple[Line, ...]

    @property
    def first(self) -> int:
        """The position of the first."""
        return self.lines[0].position

    @property
    def last(self) -> int:
        """The position of the last."""
        return self.lines[-1].position

    @property
    def said_in(self) -> Mapping[str, Any]:
        """What narrows the scope that the first was said in; see `Scope.narrowing`."""
        return self.lines[0].said_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be folded, and what of it is extracted from first.

    What was said in another scope, and what one call of a model does not read, is left to a job.
    """

    whole: Slice
    fresh: Slice | None
    unread: bool
    """Whether nothing was extracted yet from one of them."""
    folded_to: int
    summary: str = field(repr=False)


# -- folding


def plan(conn: Connection, tables: Tables, scope: Scope, name: str, policy: CompactionPolicy) -> Plan | None:
    """Return what is to be folded next; None where there is nothing that may be."""
    row = conversations.found(conn, tables, scope, name)
    if row is None:
        return None
    m = tables.messages
    unfolded = (*of_conversation(m, row), m.c.position > row.folded_to, m.c.folded_at.is_(None), m.c.role != "system")
    found = conn.execute(select(m.c.position, m.c.role, m.c.tokens).where(*unfolded).order_by(m.c.position)).all()
    turns = [Turn(position=one.position, role=one.role, tokens=one.tokens) for one in found]
    fitting, most = limits(turns, policy.keep_tokens, policy.max_fold_tokens)
    # Who calls what is read of those that fit, as a rule; of all only where no turn ends among these.
    reach = min(fitting, most)
    count = turn_end(_with_calls(conn, tables, row, turns, reach), reach, reach)
    count = count or fold_end(_with_calls(conn, tables, row, turns, most), fitting, most)
    lines = _lines(conn, tables, *unfolded, m.c.position <= turns[count - 1].position) if count else ()
    if not lines:
        return None
    seen = extracted(conn, tables, row, "flush")
    unread = [line for line in lines if not within(line.position, seen)]
    fresh = _fitting(_of_one_scope(unread), policy.max_fold_tokens)
    return Plan(
        whole=Slice(conversation_id=row.id, lines=lines),
        fresh=Slice(conversation_id=row.id, lines=fresh) if fresh else None,
        unread=bool(unread),
        folded_to=row.folded_to,
        summary=row.summary,
    )


def fold(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    name: str,
    plan: Plan,
    summary: str,
    version: str,
    now: datetime,
    payload: Any,
) -> int | None:
    """Store a summary, fold what it speaks for, and return how many of these are pending because of it.

    These are the messages from which nothing was extracted. The snapshots end. None, and nothing is changed, where
    somebody was first.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        scope: Whose conversation.
        name: Its name.
        plan: What is folded.
        summary: The summary.
        version: Of the prompt that made it.
        now: The present moment.
        payload: Of the job that is left where messages are pending; None for no job.
    """
    row = conversations.hold(conn, tables, scope, name)
    if row is None or row.folded_to != plan.folded_to or not unchanged(conn, tables, row, plan.whole):
        return None
    m, c = tables.messages, tables.conversations
    unfolded = (*of_conversation(m, row), m.c.role != "system", m.c.folded_at.is_(None))
    spanned = m.c.position.between(plan.whole.first, plan.whole.last)
    conn.execute(update(m).where(*unfolded, spanned).values(folded_at=now))
    seen = extracted(conn, tables, row, "flush")
    left = [line.position for line in plan.whole.lines if not within(line.position, seen)]
    _mark(conn, tables, row, left, now)
    conn.execute(
        update(c)
        .where(c.c.tenant == row.tenant, c.c.persona == row.persona, c.c.id == row.id)
        .values(
            summary=summary,
            summary_version=version,
            folded_to=plan.whole.last,
            updated_at=now,
        )
    )
    snapshots.end_all(conn, tables, scope, row.id, "compaction")
    if left and payload is not None:
        leave(conn, tables, row, jobs.FLUSH, payload)
    return len(left)


# -- pending


def pending(conn: Connection, tables: Tables, scope: Scope, name: str, max_tokens: int) -> Slice | None:
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
    chosen = {one.position for one in _fitting(alike, max_tokens) or alike[:1]}
    read = _lines(conn, tables, *of_conversation(m, row), m.c.position.between(min(chosen), max(chosen)))
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
    _mark(conn, tables, row, [position for position in sorted(found) if not within(position, seen)], now)
    due, enough = _waiting(conn, tables, row, _is_due(tables, row, now))
    if due and enough >= least and payload is not None:
        leave(conn, tables, row, jobs.FLUSH, payload)
    count, tokens = _waiting(conn, tables, row)
    return Pending(messages=count, tokens=tokens, job=jobs.is_waiting(conn, tables, *_key(row, jobs.FLUSH)))


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
    return left, Pending(messages=count, tokens=tokens, job=jobs.is_waiting(conn, tables, *_key(row, jobs.FLUSH)))


def flush_later(conn: Connection, tables: Tables, scope: Scope, name: str, now: datetime, payload: Any) -> bool:
    """Leave a job to extract what is pending, however little; False where there is nothing but what has to rest."""
    row = conversations.hold(conn, tables, scope, name)
    return row is not None and leave_if_due(conn, tables, row, now, payload)


# -- turns


def count_turn(
    conn: Connection, tables: Tables, scope: Scope, name: str, every: int, now: datetime, payload: Any
) -> bool:
    """Count a delivered turn; returns True when that made `every`, the count began anew, and a job is there.

    The row is held, so of turns that end at once each is counted and one is the last of its number. While somebody is
    at a review, which may have read all it will, the count goes on: see `leave_if_counted`.
    """
    row = conversations.locked(conn, tables, scope, name, now)
    turns = row.user_turns + 1
    fires = payload is not None and 0 < every <= turns and not _is_running(conn, tables, row, jobs.REVIEW)
    set_turns(conn, tables, row, 0 if fires else turns)
    if fires:
        leave(conn, tables, row, jobs.REVIEW, payload)
    return fires


# -- what these have in common, also with what is extracted


def leave(conn: Connection, tables: Tables, row: Row[Any], kind: str, payload: Any) -> None:
    """Leave a job, one of a kind for a conversation."""
    owner, key = _key(row, kind)
    jobs.enqueue(conn, tables, owner, kind, payload, unique_key=key)


def leave_if_due(conn: Connection, tables: Tables, row: Row[Any], now: datetime, payload: Any) -> bool:
    """Leave a job to extract what is pending; False where there is nothing but what was set aside and has to rest."""
    if not _waiting(conn, tables, row, _is_due(tables, row, now))[0]:
        return False
    leave(conn, tables, row, jobs.FLUSH, payload)
    return True


def make_way(conn: Connection, tables: Tables, row: Row[Any], now: datetime, job: Claim) -> None:
    """Take its key from a job that is given up, and leave another one for what is due."""
    j = tables.jobs
    own = (j.c.tenant == job.tenant, j.c.persona == job.persona, j.c.id == job.id)
    conn.execute(update(j).where(*own, j.c.unique_key == _key(row, job.kind)[1]).values(unique_key=None))
    leave_if_due(conn, tables, row, now, job.payload)


def leave_if_counted(conn: Connection, tables: Tables, row: Row[Any], every: int, payload: Any) -> None:
    """Leave a job to review again where the count reached `every` while somebody was at the last one.

    `row` is one of `conversations.hold`, read in this transaction.
    """
    if 0 < every <= row.user_turns:
        set_turns(conn, tables, row, 0)
        leave(conn, tables, row, jobs.REVIEW, payload)


def set_turns(conn: Connection, tables: Tables, row: Row[Any], turns: int) -> None:
    """Set the count of delivered turns since the last review."""
    c = tables.conversations
    own = (c.c.tenant == row.tenant, c.c.persona == row.persona, c.c.id == row.id)
    conn.execute(update(c).where(*own).values(user_turns=turns))


def still_pending(conn: Connection, tables: Tables, row: Row[Any], slice: Slice) -> set[int]:
    """Return the positions of a slice at which messages are pending."""
    m = tables.messages
    waiting = (*of_conversation(m, row), m.c.position.between(slice.first, slice.last), m.c.pending_at.is_not(None))
    return set(conn.scalars(select(m.c.position).where(*waiting)))


def extracted(conn: Connection, tables: Tables, row: Row[Any], kind: str) -> list[tuple[int, int]]:
    """Return the first and last positions of what extractions of a kind were about, in their order.

    Of these, messages that are pending were set aside, and are still to be flushed.
    """
    e = tables.extractions
    found = select(e.c.first_position, e.c.last_position).where(*of_conversation(e, row), e.c.kind == kind)
    return [(one.first_position, one.last_position) for one in conn.execute(found.order_by(e.c.first_position))]


def within(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Say whether a position lies in one of some spans."""
    return any(first <= position <= last for first, last in ranges)


def unchanged(conn: Connection, tables: Tables, row: Row[Any], slice: Slice) -> bool:
    """Say whether the messages of a slice are all there still."""
    if row.id != slice.conversation_id:
        return False
    m = tables.messages
    there = select(m.c.id).where(*of_conversation(m, row), m.c.position.between(slice.first, slice.last))
    return {line.id for line in slice.lines} <= set(conn.scalars(there))


def newest_lines(
    conn: Connection, tables: Tables, row: Row[Any], per_turn: int, read_to: Sequence[tuple[Mapping[str, Any], int]]
) -> list[Line]:
    """Return the newest messages of user and assistant that are new to reviews: so many for each message of the user's.

    Args:
        conn: A connection.
        tables: The store's tables.
        row: Of the conversation.
        per_turn: How many.
        read_to: The scopes that reviews have read messages of, and up to which position. All that is returned was said
            in one scope, the one of the newest message of all.
    """
    m = tables.messages
    spoken = (*of_conversation(m, row), m.c.role.in_(("user", "assistant")))
    read = [and_(m.c.said_in == said_in, m.c.position <= position) for said_in, position in read_to]
    last = select(m.c.said_in).where(*spoken, *(~one for one in read)).order_by(m.c.position.desc()).limit(1)
    newest = conn.execute(last).first()
    if newest is None:
        return []
    after = next((position for said_in, position in read_to if said_in == newest.said_in), 0)
    mine = (*spoken, m.c.position > after, m.c.said_in == newest.said_in)
    turns = conn.scalar(select(func.count()).where(*mine, m.c.role == "user")) or 0
    chosen = select(*_columns(tables)).where(*mine).order_by(m.c.position.desc()).limit(per_turn * max(turns, 1))
    return [Line(**found._mapping) for found in reversed(conn.execute(chosen).all())]


def _of_one_scope(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return those that were said in the scope of the first."""
    return tuple(line for line in lines if line.said_in == lines[0].said_in)


def _fitting(lines: Sequence[T], max_tokens: int) -> tuple[T, ...]:
    """Return those of the first that have at most so many tokens together."""
    spent = accumulate(line.tokens for line in lines)
    return tuple(line for line, tokens in zip(lines, spent, strict=True) if tokens <= max_tokens)


def _lines(conn: Connection, tables: Tables, *which: ColumnElement[bool]) -> tuple[Line, ...]:
    found = conn.execute(select(*_columns(tables)).where(*which).order_by(tables.messages.c.position))
    return tuple(Line(**one._mapping) for one in found)


def _columns(tables: Tables) -> Sequence[Any]:
    m = tables.messages
    return (m.c.id, m.c.position, m.c.role, m.c.content.label("text"), m.c.tokens, m.c.said_in, m.c.created_at)


def _mark(conn: Connection, tables: Tables, row: Row[Any], positions: Sequence[int], now: datetime) -> None:
    m = tables.messages
    mine = (*of_conversation(m, row), m.c.role != "system", m.c.pending_at.is_(None))
    for start in range(0, len(positions), _TOGETHER):
        part = positions[start : start + _TOGETHER]
        conn.execute(update(m).where(*mine, m.c.position.in_(part)).values(pending_at=now))


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


def _is_running(conn: Connection, tables: Tables, row: Row[Any], kind: str) -> bool:
    j = tables.jobs
    (tenant, persona), key = _key(row, kind)
    held = (j.c.tenant == tenant, j.c.persona == persona, j.c.unique_key == key, j.c.lease_until.is_not(None))
    return conn.execute(select(j.c.id).where(*held)).first() is not None


def _key(row: Row[Any], kind: str) -> tuple[tuple[str, str], str]:
    return (row.tenant, row.persona), f"{kind}:{row.id.hex}"


def _gaps(ranges: Sequence[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    """Return what ranges, in their order, leave of the positions from `first` to `last`."""
    left = []
    for start, end in (*ranges, (last + 1, last + 1)):
        if first < start:
            left.append((first, start - 1))
        first = max(first, end + 1)
    return left


def _with_calls(conn: Connection, tables: Tables, row: Row[Any], turns: Sequence[Turn], reach: int) -> Sequence[Turn]:
    """Return turns of which the first have their calls, and the others the answers to these."""
    if not reach:
        return turns
    first, last = turns[0].position, turns[reach - 1].position
    read = [_turn(message) for message in messages.between(conn, tables, row, first, last)]
    open_ = {call for turn in read for call in turn.calls} - {turn.answers for turn in read}
    later = messages.newest(conn, tables, row, None, after=last, role="tool") if open_ else []
    answers = [turn for turn in map(_turn, later) if turn.answers in open_]
    known = {turn.position: turn for turn in (*read, *answers)}
    return [known.get(turn.position, turn) for turn in turns]


def _turn(message: Message) -> Turn:
    assert message.position is not None and message.tokens is not None
    return Turn(
        position=message.position,
        role=message.role,
        tokens=message.tokens,
        calls=tuple(call.id for call in message.tool_calls),
        answers=message.tool_call_id,
    )
