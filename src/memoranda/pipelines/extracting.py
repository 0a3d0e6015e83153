"""How memories are taken from messages that leave a model's sight: one call of a model, never tried again in line.

Whatever goes wrong is told and logged, and the messages stay pending for a job. None of it is raised: whoever flushes
is in the middle of a conversation. Only a database that fails is an error. Messages that nothing can be taken from, for
the model refuses them or nothing may be written where they were said, are set aside, and others go first.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from memoranda.db.queries import extractions, jobs, pending_messages, slices, turns
from memoranda.db.queries.extractions import Extraction, Proposed
from memoranda.db.queries.jobs import Claim
from memoranda.db.queries.slices import Line, Slice
from memoranda.drafts import Setting, draft, hidden
from memoranda.effects import Steps, complete, compute, read, wake, write
from memoranda.errors import (
    ConfigurationError,
    InvalidInput,
    MemorandaError,
    ModelRefused,
    ModelUnavailable,
    NotAllowed,
    StoreError,
)
from memoranda.fencing import new_nonce
from memoranda.fields import check
from memoranda.messages import Message
from memoranda.messages import forms as message_forms
from memoranda.models.checked import CheckedModel
from memoranda.moments import day_of
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.policies import CompactionPolicy
from memoranda.presets import PRESETS, name_of
from memoranda.prompts import flush as flush_prompt
from memoranda.prompts.answers import Proposal
from memoranda.prompts.material import Said, cut, ended, pieces, unfenced
from memoranda.protocols import Completion
from memoranda.reports import Flushed, Pending
from memoranda.scope import Scope

_log = logging.getLogger("memoranda.extraction")
NO_MODEL = "There is no language model: name one, or set MEMORANDA_LLM_BACKEND."
_NOTHING = "Nothing is pending."
TAKEN = "Somebody else was first: the messages were looked through, or cleared, meanwhile."
CHARACTERS_PER_TOKEN = 4
_LONGEST = 2_000  # characters of a memory: a statement, not a report
_EXCERPT = 300


# -- the verbs


def pending(context: Context, name: str, messages: Sequence[Message | str | int] | None) -> Steps[Pending]:
    """Mark messages that have left a model's sight, and leave a job where they are enough."""
    named = _named(messages)
    setting, least = context.writing(), context.policies.compaction.flush_min_tokens
    payload = job_payload(context, name)
    found = yield from write(pending_messages.mark_pending, context.scope, name, named, least, setting.now, payload)
    if found.job and context.leaves_jobs:
        yield from wake(context.scope.whose)
    return found


def out_of_sight(context: Context, name: str, in_sight: Collection[str]) -> Steps[Pending]:
    """Mark what is not among the messages that a model sees, and leave a job where it is enough."""
    if isinstance(in_sight, str) or not isinstance(in_sight, Collection):
        raise InvalidInput("in_sight must be a list of ids", field="in_sight")
    if not all(isinstance(id, str) for id in in_sight):
        raise InvalidInput("a message in sight is named by its id", field="in_sight")
    context.writing()
    yield from opened(context)
    keys = {message_forms.key(Message(role="user", id=id)) for id in in_sight}
    left, found = yield from read(pending_messages.out_of_sight, context.scope, name, keys)
    return (yield from pending(context, name, left)) if left else found


def end_session(context: Context, name: str) -> Steps[bool]:
    """Leave a job to extract what is pending, however little."""
    setting = context.writing()
    if (payload := job_payload(context, name)) is None:
        return False
    left = yield from write(pending_messages.flush_later, context.scope, name, setting.now, payload)
    if left:
        yield from wake(context.scope.whose)
    return left


def turn_done(context: Context, name: str) -> Steps[bool]:
    """Count a delivered turn, and leave a job to review the conversation where it is time."""
    setting, every = context.writing(), context.policies.review.every
    payload = job_payload(context, name)
    left = yield from write(turns.count_turn, context.scope, name, every, setting.now, payload)
    if left:
        yield from wake(context.scope.whose)
    return left


def flush(context: Context, name: str) -> Steps[Flushed]:
    """Extract memories from the pending messages now."""
    setting = context.writing()
    yield from opened(context)
    done, _ = yield from _next(context, name)
    if done.skipped is not None:
        return done
    # What failed, what was said in another scope, and what one call could not read.
    payload = job_payload(context, name)
    if payload is None:
        return done
    if (yield from write(pending_messages.flush_later, context.scope, name, setting.now, payload)):
        failed = done.problem is not None
        yield from wake(context.scope.whose, passing=failed)  # a call that failed is not tried again in line
    return done


def flush_job(context: Context, job: Claim) -> Steps[int]:
    """Extract memories from what is pending in the conversation of a job, and return how many were written.

    Raises:
        ModelUnavailable: the model gave no answer that could be read to its end.
        ConfigurationError: nothing may be written where the messages were said.
        Lost: the job is another worker's.
    """
    context, name = of_job(context, job), job.payload["conversation"]
    setting = context.writing()
    yield from opened(context)
    done, error = yield from _next(context, name, job)
    if error is not None:
        if _stands_in_the_way(error, last=False):
            yield from write(extractions.make_way, setting, name, job)
        raise not_retried(error)
    if done.skipped is not None and not (yield from write(extractions.finish, setting, name, job)):
        raise jobs.Lost
    return done.written


def _next(context: Context, name: str, job: Claim | None = None) -> Steps[tuple[Flushed, MemorandaError | None]]:
    """Extract from the pending messages whose turn it is, passing over those that may not be written down.

    Returns:
        What became of them, and the error that stood in the way.
    """
    policy, model, setting = context.policies.compaction, context.model, context.writing()
    passed: dict[int, tuple[Flushed, MemorandaError]] = {}
    most, turn = policy.max_fold_tokens, pending_messages.next_slice
    while (slice := (yield from read(turn, context.scope, name, most))) is not None:
        if slice.first in passed:
            return passed[slice.first]
        if not model.configured:
            return failed("flush", slice, NO_MODEL), ModelRefused(NO_MODEL)
        done, error = yield from told("flush", slice, extract(context, name, slice, policy, model, job))
        last = not context.leaves_jobs if job is None else job.attempts > 1
        if error is not None and _stands_in_the_way(error, last):
            yield from write(extractions.set_aside, setting, name, _attempt(slice, model))
        if not isinstance(error, NotAllowed):
            return done, error
        passed[slice.first] = done, error
    return Flushed(skipped=_NOTHING), None


def _stands_in_the_way(error: MemorandaError, last: bool) -> bool:
    """Say whether it is these messages that nothing can be taken from.

    An answer may be unreadable once by chance: `last` says that it was no such chance, or that no job tries again.
    """
    if isinstance(error, Unreadable):
        return last
    return isinstance(error, NotAllowed) or (isinstance(error, ModelRefused) and not error.refuses_caller)


def not_retried(error: MemorandaError) -> MemorandaError:
    """Return the error with which a job fails: where nothing may be written, to try again is no use."""
    return ConfigurationError(str(error)) if isinstance(error, NotAllowed) else error


# -- one call


class Unreadable(ModelUnavailable):
    """The model gave an answer, but not one that can be read to its end."""

    def __init__(self, message: str, written: int = 0) -> None:
        """Keep how many memories were stored of what could be read."""
        super().__init__(message)
        self.written = written


def told(kind: str, slice: Slice, steps: Steps[Flushed]) -> Steps[tuple[Flushed, MemorandaError | None]]:
    """Do what may fail, and tell of it instead of raising it; the error comes with it.

    Raises:
        StoreError: the database failed.
    """
    try:
        return (yield from steps), None
    except StoreError:
        raise
    except MemorandaError as error:
        return failed(kind, slice, str(error), written=error.written if isinstance(error, Unreadable) else 0), error


def extract(
    context: Context, name: str, slice: Slice, policy: CompactionPolicy, model: CheckedModel, job: Claim | None = None
) -> Steps[Flushed]:
    """Ask a model once what is worth saving of a slice, and save it in the scope it was said in.

    Of more than one call reads, the beginning is done with, and the rest stays as it is. A single message that is
    longer is read part by part.

    Raises:
        ModelUnavailable: it gave no answer, or none that can be read.
        NotAllowed: nothing may be written in that scope; the model was not asked.
    """
    context = where_said(context, slice)
    setting = context.writing()
    yield from read(extractions.require_standing, setting)
    spoken = [line for line in slice.lines if line.role in ("user", "assistant")]
    said = yield from compute(readable, context, spoken)
    slice, parts = _divided(slice, said, CHARACTERS_PER_TOKEN * policy.max_fold_tokens)
    proposals: list[Proposal] = []
    proposed = 0
    failure: MemorandaError | None = None
    for part in parts:
        try:
            found = flush_prompt.read((yield from _asked(context, setting, name, slice, part, policy, model)))
        except (ModelUnavailable, ConfigurationError) as error:
            failure = error
            break
        proposals += found.items[: policy.flush_items]
        proposed += len(found.items) + found.unusable
        if found.problem is not None:
            failure = Unreadable(found.problem)
            break
    if failure is not None and not proposals:
        raise failure
    extraction = replace(_attempt(slice, model), proposed=proposed, whole=failure is None)
    made = {"prompt": flush_prompt.VERSION, "model": model.name}
    extraction = yield from with_memories(context, name, extraction, proposals, made)
    saved = yield from write(extractions.save, setting, name, extraction, job)
    if failure is not None:
        raise Unreadable(str(failure), saved.memories if saved else 0) from failure
    if saved is None:
        raise ModelUnavailable(TAKEN)
    count = len(slice.lines)
    _log.info("a flush of %d messages saved %d memories", count, saved.memories, extra=identity(slice, "saved"))
    return Flushed(messages=count, written=saved.memories)


def _asked(
    context: Context,
    setting: Setting,
    name: str,
    slice: Slice,
    said: Sequence[Said],
    policy: CompactionPolicy,
    model: CheckedModel,
) -> Steps[Completion]:
    known = yield from read(extractions.known, setting, name, slice.lines[0].created_at, 0)
    longest = context.policies.review.message_characters
    spans = yield from read(extractions.read_before, setting, name)
    asked = flush_prompt.build_messages(
        said,
        nonce=new_nonce(),
        today=day_of(setting.now, context.zone),
        characters=CHARACTERS_PER_TOKEN * policy.max_fold_tokens,
        limit=policy.flush_items,
        memories=known.memories,
        dimensions=known.dimensions,
        subjects=subjects(context),
        # Of a longer message a review has read the beginning only.
        read_before=[one.position for one in said if len(one.text) <= longest and slices.within(one.position, spans)],
    )
    return (yield from complete(asked, schema=flush_prompt.schema(), model=model))


def _attempt(slice: Slice, model: CheckedModel) -> Extraction:
    """Return an extraction that has nothing yet, and is not whole."""
    return Extraction(
        kind="flush", slice=slice, version=flush_prompt.VERSION, model=model.name, proposed=0, whole=False
    )


def _divided(slice: Slice, said: Sequence[Said], characters: int) -> tuple[Slice, list[Sequence[Said]]]:
    """Return as much of a slice as is read now, and what is said in it, call by call."""
    fitting = sum(spent <= characters for spent in accumulate(len(one.text) for one in said))
    parts = [said[:fitting]] if fitting else []
    if said and not fitting:
        parts = [[replace(said[0], text=piece)] for piece in pieces(said[0].text, characters)]
    if rest := said[max(fitting, 1) :]:
        slice = replace(slice, lines=tuple(line for line in slice.lines if line.position < rest[0].position))
    return slice, parts


def failed(kind: str, slice: Slice, problem: str, *, written: int = 0) -> Flushed:
    """Tell and log that nothing, or not all, could be taken from messages: it is never the same as nothing to save."""
    count = len(slice.lines)
    _log.warning("a %s of %d messages failed: %s", kind, count, problem, extra=identity(slice, "failed"))
    return Flushed(messages=count, written=written, problem=problem)


def identity(slice: Slice, outcome: str) -> dict[str, str]:
    """Return what tells an extraction apart in a log record."""
    return {"memoranda.conversation.id": str(slice.conversation_id), "memoranda.extraction.outcome": outcome}


# -- what a model is given, and what is made of its answer; also for summaries and reviews


def readable(context: Context, lines: Sequence[Line]) -> list[Said]:
    """Return what was said as a model may read it: without secrets, and without what was only recalled."""
    found = []
    for line in lines:
        text = hidden(unfenced(line.text), context.policies).strip()
        if text:
            day = day_of(line.created_at, context.zone)
            found.append(Said(position=line.position, role=line.role, text=text, day=day))
    return found


def subjects(context: Context) -> tuple[str, ...]:
    """Return whom a memory can be about, where it has to say so."""
    return (context.scope.subjects or ("everyone",)) if context.policies.visibility.about == "required" else ()


def with_memories(
    context: Context,
    name: str,
    extraction: Extraction,
    proposals: Sequence[Proposal],
    made: Mapping[str, str],
) -> Steps[Extraction]:
    """Return an extraction with what a model proposes as drafts and vectors; what cannot be stored is left out."""
    setting = context.writing()
    shares = yield from read(extractions.require_standing, setting)
    lines = {line.position: line for line in extraction.slice.lines}
    drafts = []
    for proposal in proposals:
        line = lines.get(proposal.message or 0)
        fields = _fields(context, name, extraction.kind, proposal, line, made, setting)
        try:
            if not shares:  # also where it was learned as a member: others would read it who cannot be asked any more
                fields["audience"] = "private"
            text, parsed = check(ended(proposal.content, _LONGEST), fields)
            # Where it turns out to be the new text of a memory, a machine changes the text and nothing else.
            item = replace(draft(text, parsed, setting), given=frozenset())
            drafts.append((item, proposal.date))
        except InvalidInput as error:
            _log.info("a proposal could not be stored: %s", error.field, extra=identity(extraction.slice, "dropped"))
    if not drafts:
        return extraction
    vectors, _ = yield from vectors_of(context, [item.text for item, _ in drafts], "text")
    items = [Proposed(draft=item, vector=vector, day=day) for (item, day), vector in zip(drafts, vectors, strict=True)]
    return replace(extraction, memories=items, embedder=context.space.model)


def _fields(
    context: Context,
    name: str,
    channel: str,
    proposal: Proposal,
    line: Line | None,
    made: Mapping[str, str],
    setting: Setting,
) -> dict[str, Any]:
    """Return the fields of a proposed memory: a machine's numbers are capped, and its source is said."""
    write_policy = context.policies.write
    fields: dict[str, Any] = {
        "category": proposal.category,
        "importance": min(proposal.importance or write_policy.importance, write_policy.machine_importance),
        "confidence": min(proposal.confidence or write_policy.confidence, write_policy.machine_confidence),
        "metadata": dict(made),
        "source": {
            "type": "user_message" if line is not None and line.role == "user" else "assistant_inference",
            "session": name,
            "channel": channel,
            "actor": "memory",
            # Without secrets first: half of one would not be known for what it is.
            "excerpt": cut(hidden(unfenced(line.text), context.policies).strip(), _EXCERPT) if line else "",
        },
    }
    if proposal.type is not None:
        fields["type"] = proposal.type
    day = proposal.date
    if day is None and line is not None:
        day = day_of(line.created_at, context.zone)
        # Of today it is said anyway; naming it would make the same words of another day another memory.
        day = None if day == day_of(setting.now, context.zone) else day
    if day is not None:
        fields["day"] = day
    if allowed := subjects(context):
        fields["about"] = proposal.about if proposal.about in allowed else _subject(context.scope)
    return fields


def _subject(scope: Scope) -> str | None:
    """Return whom a statement is about that does not say so: whoever is there alone; nobody where that is not plain."""
    people = scope.people or ()
    if len(people) == 1:
        return f"person:{people[0]}"
    if scope.thread is not None:
        return f"thread:{scope.thread}"
    return None if people else "everyone"


# -- jobs


def job_payload(context: Context, name: str) -> dict[str, Any] | None:
    """Return what a job needs to work in a conversation for the user who asks; None where nobody does jobs.

    What narrows the scope is not in it: every message has that of its own.
    """
    if not context.leaves_jobs:
        return None
    return {"conversation": name, "user": context.scope.user, "policies": name_of(context.policies)}


def of_job(context: Context, job: Claim) -> Context:
    """Return the context of the user who left a job; none is claimed that was left under policies not known here."""
    scope, named = Scope(tenant=job.tenant, persona=job.persona, user=job.payload["user"]), job.payload["policies"]
    return replace(context, scope=scope, policies=PRESETS.get(named, context.policies))


def where_said(context: Context, slice: Slice) -> Context:
    """Return the context of the scope that a slice was said in."""
    return replace(context, scope=context.scope.narrowed(slice.said_in))


def _named(messages: Sequence[Message | str | int] | None) -> tuple[list[int], list[str]]:
    """Return the positions and the ids by which messages are named.

    Raises:
        InvalidInput: one is neither stored nor named.
    """
    if messages is not None and (isinstance(messages, str) or not isinstance(messages, Sequence)):
        raise InvalidInput("messages must be a list of messages, ids or positions", field="messages")
    positions: list[int] = []
    keys: list[str] = []
    for index, message in enumerate(messages or ()):
        known = (message.position or message.id) if isinstance(message, Message) else message
        if isinstance(known, str):
            keys.append(known)
        elif isinstance(known, int) and not isinstance(known, bool) and known < 2**31:
            positions.append(known)
        else:
            raise InvalidInput("a message is named by its position or its id", field="messages", index=index)
    return positions, keys
