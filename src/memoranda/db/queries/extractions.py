"""What was extracted from where: every slice of a conversation once, in the transaction that stores what it gave.

Of two workers that have read the same messages the first one stores; the other finds its slice taken, and stores
nothing. So no message is extracted twice, and none is lost where a worker dies: what it read is still to be done. What
was tried in vain is noted too, and stays pending; see `pending_messages`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, and_, delete, select, update

from memoranda.db.queries import (
    adding,
    conversations,
    jobs,
    memories,
    pending_messages,
    projects,
    rows,
    slices,
    spaces,
    turns,
    user_model,
)
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.queries.jobs import Claim
from memoranda.db.queries.slices import Slice
from memoranda.db.queries.visibility import holding, visible
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting
from memoranda.filters import Filters
from memoranda.novelty import says_nothing_new
from memoranda.records import Dimension, Memory
from memoranda.scope import project_key

CHANNELS = ("flush", "review")
"""Where a memory came from that was extracted here: the channel of its source."""
_LATELY = 30
"""Memories saved last, which the model and the agent may have taken from the same messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known already, and is not to be saved again."""

    memories: Sequence[Memory] = field(repr=False)
    dimensions: Sequence[Dimension] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A memory as it is about to be stored, and the day of its event where the model named one."""

    draft: Draft
    vector: Any = field(repr=False)
    day: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The new text of a dimension, and the version of it that the model has read, 0 where it read none."""

    dimension: str
    content: str = field(repr=False)
    confidence: int
    seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What a model took from a slice."""

    kind: Literal["flush", "review"]
    slice: Slice
    version: str
    """Of the prompt."""
    model: str
    """The model's name."""
    proposed: int
    memories: Sequence[Proposed] = ()
    embedder: str | None = None
    """What made the vectors."""
    rewrites: Sequence[Rewritten] = ()
    whole: bool = True
    """False where the answer broke off: what was read of it is stored, and the messages stay as they are."""
    top: int = 0
    """How many of the weightiest memories were among what was known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What became of an extraction."""

    memories: int
    """How many were stored or changed."""
    dimensions: int
    """How many were rewritten."""
    outrun: int
    """How many rewrites were of a text that somebody has changed meanwhile."""


def known(conn: Connection, tables: Tables, setting: Setting, name: str, since: datetime, top: int) -> Known:
    """Return the user model, the weightiest memories, those saved last, and those extracted from a conversation.

    Args:
        conn: A connection.
        tables: The store's tables.
        setting: Who asks.
        name: The conversation's.
        since: When the first message was said that is looked at now.
        top: How many of the weightiest.
    """
    nothing = Filters(project=setting.scope.project)
    weighty = memories.listed(conn, tables, setting, nothing, top, "importance", None) if top else []
    lately = memories.listed(conn, tables, setting, nothing, _LATELY, "newest", None)
    taken = _taken(conn, tables, setting, name, since)
    found = {memory.id: memory for memory in (*weighty, *lately, *taken) if not memory.suspicions}
    return Known(memories=list(found.values()), dimensions=user_model.listed(conn, tables, setting))


def require_standing(conn: Connection, tables: Tables, setting: Setting) -> bool:
    """Make sure that something may be stored in a scope; returns whether it may be shared with the scope's project.

    Raises:
        NotAllowed: the policy wants spaces to be declared, and the scope's is gone or archived.
    """
    scope = setting.scope
    if setting.policies.write.space == "declared" and scope.space:
        spaces.require_open(conn, tables, scope, {scope.space})
    mine = {project_key(project) for project in projects.projects_of(conn, tables, scope)}
    return scope.project is not None and project_key(scope.project) in mine


def reviewable(conn: Connection, tables: Tables, setting: Setting, name: str) -> Slice | None:
    """Return the newest messages that no review has read, of those said in the scope of the last; None for none."""
    row = conversations.found(conn, tables, setting.scope, name)
    if row is None:
        return None
    per_turn = setting.policies.review.messages_per_turn
    lines = slices.newest_lines(conn, tables, row, per_turn, _reviewed_to(conn, tables, row))
    return Slice(conversation_id=row.id, lines=tuple(lines)) if lines else None


def read_before(conn: Connection, tables: Tables, setting: Setting, name: str) -> list[tuple[int, int]]:
    """Return the first and last positions of what reviews of a conversation have read."""
    row = conversations.found(conn, tables, setting.scope, name)
    return slices.extracted(conn, tables, row, "review") if row else []


def save(
    conn: Connection, tables: Tables, setting: Setting, name: str, extraction: Extraction, job: Claim | None
) -> Saved | None:
    """Store what a model took from a slice, and that it did; None, and nothing is stored, where somebody was first.

    What is known already is not stored again, and a dimension that was changed since the model read it keeps its text.
    """
    row = conversations.hold(conn, tables, setting.scope, name)
    slice = extraction.slice
    if row is None or not slices.unchanged(conn, tables, row, slice) or _is_taken(conn, tables, row, extraction):
        return None
    if job is not None and extraction.whole and not jobs.finish(conn, tables, job):
        return None  # its lease ended: whoever has the job now does the same
    there = known(conn, tables, setting, name, slice.lines[0].created_at, extraction.top)
    new = [item for item in extraction.memories if not _is_repeat(item, there.memories)]
    drafts, vectors = [item.draft for item in new], [item.vector for item in new]
    stored = adding.add(conn, tables, drafts, vectors, extraction.embedder, setting) if drafts else []
    written = sum(item.outcome != "known" for item in stored)
    # In one order, for two who rewrite the same dimensions must not wait for each other.
    rewrites = sorted(extraction.rewrites, key=lambda new: new.dimension)
    rewritten = [(new.seen, _rewrite(conn, tables, setting, new)) for new in rewrites]
    dimensions = sum(done is not None and done.version != seen for seen, done in rewritten)
    outrun = sum(done is None for _, done in rewritten)
    if extraction.whole:
        _record(conn, tables, row, extraction, written + dimensions, setting.now)
        if job is not None:
            _go_on(conn, tables, setting, row, job)
        elif extraction.kind == "review":  # nobody counted turns for it, so the count begins here
            turns.set_turns(conn, tables, row, 0)
    return Saved(memories=written, dimensions=dimensions, outrun=outrun)


def finish(conn: Connection, tables: Tables, setting: Setting, name: str, job: Claim) -> bool:
    """Strike a job off for which there was nothing to read; returns False when another worker has it."""
    row = conversations.hold(conn, tables, setting.scope, name)
    if not jobs.finish(conn, tables, job):
        return False
    if row is not None:
        _go_on(conn, tables, setting, row, job)
    return True


def _go_on(conn: Connection, tables: Tables, setting: Setting, row: Row[Any], job: Claim) -> None:
    """Leave a finished job anew for what came meanwhile, when nobody else could leave one, and for what it left."""
    if job.kind == jobs.FLUSH:
        pending_messages.leave_if_due(conn, tables, row, setting.now, job.payload)
    else:
        turns.leave_if_counted(conn, tables, row, setting.policies.review.every, job.payload)


def set_aside(conn: Connection, tables: Tables, setting: Setting, name: str, extraction: Extraction) -> None:
    """Let everything else that is pending go before a slice that nothing could be taken from: it stays pending."""
    row, slice = conversations.hold(conn, tables, setting.scope, name), extraction.slice
    if row is None or not slices.unchanged(conn, tables, row, slice):
        return
    if {line.position for line in slice.lines} <= pending_messages.still_pending(conn, tables, row, slice):
        _record(conn, tables, row, extraction, 0, setting.now)


def make_way(conn: Connection, tables: Tables, setting: Setting, name: str, job: Claim) -> None:
    """Leave another job than the one that is given up now, for what is due: it cannot have its key as well."""
    row = conversations.hold(conn, tables, setting.scope, name)
    if row is not None:
        pending_messages.make_way(conn, tables, row, setting.now, job)


def _taken(conn: Connection, tables: Tables, setting: Setting, name: str, since: datetime) -> list[Memory]:
    m, s, scope = tables.memories, tables.sources, setting.scope
    found = conn.execute(
        select(*rows.columns(m))
        .join(s, (s.c.tenant == m.c.tenant) & (s.c.persona == m.c.persona) & (s.c.memory_id == m.c.id))
        .where(
            visible(tables, scope, setting.policies.visibility),
            holding(m, Filters(), setting.now),
            m.c.created_at >= since,
            s.c.tenant == scope.tenant,
            s.c.persona == scope.persona,
            s.c.session == name,
            s.c.channel.in_(CHANNELS),
        )
        .order_by(m.c.created_at.desc(), m.c.id.desc())
        .limit(_LATELY)
    )
    return [rows.memory(row) for row in found]


def _reviewed_to(conn: Connection, tables: Tables, row: Row[Any]) -> list[tuple[Mapping[str, Any], int]]:
    """Return the scopes that reviews have read messages of, and the position of the last."""
    m, e = tables.messages, tables.extractions
    ends = e.join(m, and_(*of_conversation(m, row), m.c.position == e.c.last_position))
    last = select(m.c.said_in, m.c.position).select_from(ends).where(*of_conversation(e, row), e.c.kind == "review")
    found: list[tuple[Mapping[str, Any], int]] = []
    for one in conn.execute(last.order_by(m.c.position.desc())):
        if all(said_in != one.said_in for said_in, _ in found):
            found.append((one.said_in, one.position))
    return found


def _is_taken(conn: Connection, tables: Tables, row: Row[Any], extraction: Extraction) -> bool:
    """Say whether another extraction of the kind has read one of these messages."""
    slice = extraction.slice
    if extraction.kind == "review":
        read_to = _reviewed_to(conn, tables, row)
        return any(said_in == slice.said_in and position >= slice.first for said_in, position in read_to)
    seen = slices.extracted(conn, tables, row, "flush")
    waiting = pending_messages.still_pending(conn, tables, row, slice)  # what was set aside was not read
    read = [line.position for line in slice.lines if line.position not in waiting]
    return any(first <= position <= last for position in read for first, last in seen)


def _is_repeat(item: Proposed, there: Sequence[Memory]) -> bool:
    """Say whether a memory that is there says the same of the same subject and day."""
    new = item.draft.memory
    return any(
        old.about == new.about
        and item.day in (None, old.day)
        and says_nothing_new(new.content, old.content, near=False)
        for old in there
    )


def _rewrite(conn: Connection, tables: Tables, setting: Setting, new: Rewritten) -> Dimension | None:
    return user_model.rewrite(
        conn, tables, setting.scope, new.dimension, new.content, new.confidence, setting.now, new.seen
    )


def _record(
    conn: Connection, tables: Tables, row: Row[Any], extraction: Extraction, written: int, now: datetime
) -> None:
    """Note which messages were read: each run of them that follow one another, the numbers with the first run."""
    e, m = tables.extractions, tables.messages
    place = {"tenant": row.tenant, "persona": row.persona, "conversation_id": row.id, "kind": extraction.kind}
    made = {"prompt_version": extraction.version, "model": extraction.model, "created_at": now}
    for number, (first, last) in enumerate(_runs([line.position for line in extraction.slice.lines])):
        counts = {"proposed": 0 if number else extraction.proposed, "written": 0 if number else written}
        span = {"first_position": first, "last_position": last}
        if extraction.kind == "flush":
            tried = (*of_conversation(e, row), e.c.kind == "flush", e.c.first_position <= last)
            conn.execute(delete(e).where(*tried, e.c.last_position >= first))  # in vain, and set aside
        tables.inserts.add(conn, e, [place | span | made | counts])
        if extraction.kind == "flush" and extraction.whole:
            mine = (*of_conversation(m, row), m.c.position.between(first, last))
            conn.execute(update(m).where(*mine).values(pending_at=None))


def _runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for position in positions:
        if runs and runs[-1][1] == position - 1:
            runs[-1] = (runs[-1][0], position)
        else:
            runs.append((position, position))
    return runs
