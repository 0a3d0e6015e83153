"""What leaves a model's sight: which messages are folded next, which are pending, how many turns were delivered.

A plan is read once, and what was done after it is stored only if the conversation still stands as the plan found it: of
two who fold the same messages one changes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, case, func, or_, select, update

from memoranda.db.queries import conversations, jobs, messages, snapshots
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.schema import Tables
from memoranda.messages import Message, Role
from memoranda.messages.folds import Turn, fold_end, limits
from memoranda.policies import CompactionPolicy
from memoranda.reports import Pending
from memoranda.scope import Scope

_TOGETHER = 500
"""Positions named in one statement."""


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
    """What is to be folded, and what of it is extracted from first: what was said in another scope is left to a job."""

    whole: Slice
    fresh: Slice | None
    folded_to: int
    summary: str = field(repr=False)


# -- folding


def plan(conn: Connection, tables: Tables, scope: Scope, name: str, policy: CompactionPolicy) -> Plan | None:
    """Return what is to be folded next; None where there is nothing that may be."""
    row = conversations.found(conn, tables, scope, name)
    if row is None:
        return None
    m = tables.messages
    unfolded = (*of_conversation(m, row), m.c.position > row.folded_to, m.c.role != "system")
    found = conn.execute(select(m.c.position, m.c.role, m.c.tokens).where(*unfolded).order_by(m.c.position)).all()
    turns = [Turn(position=one.position, role=one.role, tokens=one.tokens) for one in found]
    fitting, most = limits(turns, policy.keep_tokens, policy.max_fold_tokens)
    # Who calls what is read of those that fit, as a rule; of all only where no fold can end among these.
    for reach in sorted({min(fitting, most), most}):
        if count := fold_end(_with_calls(conn, tables, row, turns, reach), fitting, reach):
            break
    else:
        return None
    lines = _lines(conn, tables, row, turns[0].position, turns[count - 1].position)
    seen = extracted(conn, tables, row, "flush")
    fresh = _of_one_scope([line for line in lines if not _within(line.position, seen)])
    return Plan(
        whole=Slice(conversation_id=row.id, lines=lines),
        fresh=Slice(conversation_id=row.id, lines=fresh) if fresh else None,
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
) -> bool:
    """Store a summary, and fold what it speaks for; returns False, and changes nothing, where somebody was first.

    Messages from which nothing was extracted are pending afterwards. The snapshots end.

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
        return False
    m, c = tables.messages, tables.conversations
    mine = (*of_conversation(m, row), m.c.role != "system")
    conn.execute(update(m).where(*mine, m.c.position.between(plan.whole.first, plan.whole.last)).values(folded_at=now))
    seen = extracted(conn, tables, row, "flush")
    left = [line.position for line in plan.whole.lines if not _within(line.position, seen)]
    _mark(conn, tables, row, left, now)
    conn.execute(
        update(c)
        .where(c.c.tenant == row.tenant, c.c.persona == row.persona, c.c.id == row.id)
        .values(
            summary=summary,
            summary_version=version,
            folded_to=plan.whole.last,
            generation=c.c.generation + 1,
            updated_at=now,
        )
    )
    snapshots.end_all(conn, tables, scope, row.id, "compaction")
    if left and payload is not None:
        leave(conn, tables, row, jobs.FLUSH, payload)
    return True


# -- pending


def pending(conn: Connection, tables: Tables, scope: Scope, name: str, max_tokens: int) -> Slice | None:
    """Return the oldest pending messages that were said in one scope, as many as one call of a model reads, or None."""
    row = conversations.found(conn, tables, scope, name)
    if row is None:
        return None
    m = tables.messages
    waiting = select(m.c.position, m.c.tokens, m.c.said_in).where(*of_conversation(m, row), m.c.pending_at.is_not(None))
    chosen: list[int] = []
    spent, said_in = 0, None
    for one in conn.execute(waiting.order_by(m.c.position)):
        if chosen and one.said_in != said_in:
            continue
        said_in = one.said_in
        if chosen and spent + one.tokens > max_tokens:
            break
        chosen.append(one.position)
        spent += one.tokens
    if not chosen:
        return None
    wanted = frozenset(chosen)
    lines = [line for line in _lines(conn, tables, row, chosen[0], chosen[-1]) if line.position in wanted]
    return Slice(conversation_id=row.id, lines=tuple(lines))


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
    _mark(conn, tables, row, [position for position in sorted(found) if not _within(position, seen)], now)
    count, tokens = _waiting(conn, tables, row)
    if count and tokens >= least and payload is not None:
        leave(conn, tables, row, jobs.FLUSH, payload)
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


def flush_later(conn: Connection, tables: Tables, scope: Scope, name: str, payload: Any) -> bool:
    """Leave a job to extract what is pending, however little; False where there is nothing."""
    row = conversations.hold(conn, tables, scope, name)
    return row is not None and leave_if_pending(conn, tables, row, payload)


# -- turns


def count_turn(
    conn: Connection, tables: Tables, scope: Scope, name: str, every: int, now: datetime, payload: Any
) -> bool:
    """Count a delivered turn; returns True when that made `every`, the count began anew, and a job is there.

    The count is one statement, so of turns that end at once each is counted and one is the last of its number.
    """
    c = tables.conversations
    row = conversations.found(conn, tables, scope, name) or conversations.locked(conn, tables, scope, name, now)
    one_more = c.c.user_turns + 1
    counted = case((one_more >= every, 0), else_=one_more) if payload is not None and every else one_more
    turns = conn.scalar(
        update(c)
        .where(c.c.tenant == row.tenant, c.c.persona == row.persona, c.c.id == row.id)
        .values(user_turns=counted)
        .returning(c.c.user_turns)
    )
    if turns != 0:
        return False
    leave(conn, tables, row, jobs.REVIEW, payload)
    return True


# -- what these have in common, also with what is extracted


def leave(conn: Connection, tables: Tables, row: Row[Any], kind: str, payload: Any) -> None:
    """Leave a job, one of a kind for a conversation."""
    owner, key = _key(row, kind)
    jobs.enqueue(conn, tables, owner, kind, payload, unique_key=key)


def leave_if_pending(conn: Connection, tables: Tables, row: Row[Any], payload: Any) -> bool:
    """Leave a job to extract what is pending; False where there is nothing."""
    if not _waiting(conn, tables, row)[0]:
        return False
    leave(conn, tables, row, jobs.FLUSH, payload)
    return True


def extracted(conn: Connection, tables: Tables, row: Row[Any], kind: str) -> list[tuple[int, int]]:
    """Return the first and last positions of what extractions of a kind have read, in their order."""
    e = tables.extractions
    found = select(e.c.first_position, e.c.last_position).where(*of_conversation(e, row), e.c.kind == kind)
    return [(one.first_position, one.last_position) for one in conn.execute(found.order_by(e.c.first_position))]


def unchanged(conn: Connection, tables: Tables, row: Row[Any], slice: Slice) -> bool:
    """Say whether the messages of a slice are all there still."""
    if row.id != slice.conversation_id:
        return False
    m = tables.messages
    there = select(m.c.id).where(*of_conversation(m, row), m.c.position.between(slice.first, slice.last))
    return {line.id for line in slice.lines} <= set(conn.scalars(there))


def newest_lines(conn: Connection, tables: Tables, row: Row[Any], per_turn: int, after: int) -> list[Line]:
    """Return the newest messages of user and assistant after a position: so many for each message of the user's."""
    m = tables.messages
    mine = (*of_conversation(m, row), m.c.position > after, m.c.role.in_(("user", "assistant")))
    turns = conn.scalar(select(func.count()).where(*mine, m.c.role == "user")) or 0
    newest = select(*_columns(tables)).where(*mine).order_by(m.c.position.desc()).limit(per_turn * max(turns, 1))
    return [Line(**found._mapping) for found in reversed(conn.execute(newest).all())]


def _of_one_scope(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return those that were said in the scope of the first."""
    return tuple(line for line in lines if line.said_in == lines[0].said_in)


def _lines(conn: Connection, tables: Tables, row: Row[Any], first: int, last: int) -> tuple[Line, ...]:
    m = tables.messages
    mine = (*of_conversation(m, row), m.c.position.between(first, last), m.c.role != "system")
    found = conn.execute(select(*_columns(tables)).where(*mine).order_by(m.c.position))
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


def _waiting(conn: Connection, tables: Tables, row: Row[Any]) -> tuple[int, int]:
    m = tables.messages
    waiting = (*of_conversation(m, row), m.c.pending_at.is_not(None))
    count, tokens = conn.execute(select(func.count(), func.sum(m.c.tokens)).where(*waiting)).one()
    return count, int(tokens or 0)


def _key(row: Row[Any], kind: str) -> tuple[tuple[str, str], str]:
    return (row.tenant, row.persona), f"{kind}:{row.id.hex}"


def _within(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= position <= last for first, last in ranges)


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
    read = [_turn(message) for message in messages.between(conn, tables, row, first, last) if message.role != "system"]
    open_ = {call for turn in read for call in turn.calls} - {turn.answers for turn in read}
    later = messages.newest(conn, tables, row, None, after=last, role="tool") if open_ else []
    answers = {turn.position: turn for turn in map(_turn, later) if turn.answers in open_}
    return [*read, *(answers.get(turn.position, turn) for turn in turns[reach:])]


def _turn(message: Message) -> Turn:
    assert message.position is not None and message.tokens is not None
    return Turn(
        position=message.position,
        role=message.role,
        tokens=message.tokens,
        calls=tuple(call.id for call in message.tool_calls),
        answers=message.tool_call_id,
    )
