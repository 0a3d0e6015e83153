"""What a compaction folds: which messages are next, and the summary that speaks for them.

A plan is read once, and what was done after it is stored only if the conversation still stands as the plan found it: of
two who fold the same messages one changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from memoranda.db.queries import conversations, jobs, messages, pending_messages, snapshots
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.queries.slices import Line, Slice, extracted, lines_of, unchanged, within, within_tokens
from memoranda.db.schema import Tables
from memoranda.messages import Message
from memoranda.messages.folds import Turn, fold_end, limits, turn_end
from memoranda.policies import CompactionPolicy
from memoranda.scope import Scope


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
    lines = lines_of(conn, tables, *unfolded, m.c.position <= turns[count - 1].position) if count else ()
    if not lines:
        return None
    seen = extracted(conn, tables, row, "flush")
    unread = [line for line in lines if not within(line.position, seen)]
    fresh = within_tokens(_of_one_scope(unread), policy.max_fold_tokens)
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
    pending_messages.mark(conn, tables, row, left, now)
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
        jobs.leave_for(conn, tables, row, jobs.FLUSH, payload)
    return len(left)


def _of_one_scope(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return those that were said in the scope of the first."""
    return tuple(line for line in lines if line.said_in == lines[0].said_in)


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
