"""How memories are taken from messages that leave a model's sight: one call of a model, never tried again in line.

Whatever goes wrong with the model is told and logged, and the messages stay pending for a job. Nothing of it is raised:
whoever flushes is in the middle of a conversation. Only a database that fails is an error.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from memoranda.db.queries import extractions, folding, jobs
from memoranda.db.queries.extractions import Extraction, Proposed, Saved
from memoranda.db.queries.folding import Line, Slice
from memoranda.db.queries.jobs import Claim
from memoranda.drafts import Setting, check, draft, hidden
from memoranda.effects import Steps, complete, compute, read, wake, write
from memoranda.errors import ConfigurationError, InvalidInput, ModelUnavailable
from memoranda.fencing import new_nonce
from memoranda.messages import Message
from memoranda.messages import forms as message_forms
from memoranda.models.checked import CheckedModel
from memoranda.moments import day_of
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.policies import CompactionPolicy, Policies
from memoranda.presets import PRESETS, resolve
from memoranda.prompts import flush as flush_prompt
from memoranda.prompts.answers import Proposal
from memoranda.prompts.material import Said, cut, ended, unfenced
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
    found = yield from write(folding.mark_pending, context.scope, name, named, least, setting.now, payload)
    if found.job and context.leaves_jobs:
        yield from wake()
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
    left, found = yield from read(folding.out_of_sight, context.scope, name, keys)
    return (yield from pending(context, name, left)) if left else found


def end_session(context: Context, name: str) -> Steps[bool]:
    """Leave a job to extract what is pending, however little."""
    context.writing()
    if (payload := job_payload(context, name)) is None:
        return False
    left = yield from write(folding.flush_later, context.scope, name, payload)
    if left:
        yield from wake()
    return left


def turn_done(context: Context, name: str) -> Steps[bool]:
    """Count a delivered turn, and leave a job to review the conversation where it is time."""
    setting, every = context.writing(), context.policies.review.every
    payload = job_payload(context, name)
    left = yield from write(folding.count_turn, context.scope, name, every, setting.now, payload)
    if left:
        yield from wake()
    return left


def flush(context: Context, name: str) -> Steps[Flushed]:
    """Extract memories from the pending messages now."""
    slice = yield from _opened(context, name)
    if slice is None:
        return Flushed(skipped=_NOTHING)
    if context.model.configured:
        done = yield from told(slice, extract(context, name, slice, context.policies.compaction, context.model))
    else:
        done = failed("flush", slice, NO_MODEL)
    # What failed, what was said in another scope, and what one call could not read.
    payload = job_payload(context, name)
    if payload is not None and (yield from write(folding.flush_later, context.scope, name, payload)):
        yield from wake(passing=done.problem is not None)  # a call that failed is not tried again in line
    return done


def flush_job(context: Context, job: Claim) -> Steps[int]:
    """Extract memories from what is pending in the conversation of a job, and return how many were written.

    Raises:
        ModelUnavailable: the model gave no answer that could be read to its end.
    """
    context, name = of_job(context, job), job.payload["conversation"]
    slice = yield from _opened(context, name)
    if slice is None:
        yield from write(jobs.finish, job)
        return 0
    done = yield from extract(context, name, slice, context.policies.compaction, context.model, job)
    if done.problem is not None:
        raise ModelUnavailable(done.problem)
    return done.written


def _opened(context: Context, name: str) -> Steps[Slice | None]:
    context.writing()
    yield from opened(context)
    return (yield from read(folding.pending, context.scope, name, context.policies.compaction.max_fold_tokens))


# -- one call


def told(slice: Slice, steps: Steps[Flushed]) -> Steps[Flushed]:
    """Do what may fail because of a model, and tell of it instead of raising it."""
    try:
        return (yield from steps)
    except ModelUnavailable as error:
        return failed("flush", slice, str(error))


def extract(
    context: Context, name: str, slice: Slice, policy: CompactionPolicy, model: CheckedModel, job: Claim | None = None
) -> Steps[Flushed]:
    """Ask a model once what is worth saving of a slice, and save it in the scope it was said in.

    Raises:
        ModelUnavailable: it gave no answer, or none that can be read.
    """
    context = where_said(context, slice)
    setting = context.writing()
    spoken = [line for line in slice.lines if line.role in ("user", "assistant")]
    said = yield from compute(readable, context, spoken)
    nothing = Extraction(kind="flush", slice=slice, version=flush_prompt.VERSION, model=model.name, proposed=0)
    if not said:
        saved = yield from write(extractions.save, setting, name, nothing, job)
        return _report(slice, saved)
    known = yield from read(extractions.known, setting, name, slice.lines[0].created_at, 0)
    asked = flush_prompt.build_messages(
        said,
        nonce=new_nonce(),
        today=day_of(setting.now, context.zone),
        characters=CHARACTERS_PER_TOKEN * policy.max_fold_tokens,
        limit=policy.flush_items,
        memories=known.memories,
        dimensions=known.dimensions,
        subjects=subjects(context),
        read_before=(yield from read(extractions.read_before, setting, name)),
    )
    answer = yield from complete(asked, schema=flush_prompt.schema(), model=model)
    found = flush_prompt.read(answer)
    if found.problem is not None and not found.items:
        raise ModelUnavailable(found.problem)
    extraction = replace(nothing, proposed=len(found.items) + found.unusable, whole=found.problem is None)
    made = {"prompt": flush_prompt.VERSION, "model": model.name}
    extraction = yield from with_memories(context, name, extraction, found.items[: policy.flush_items], made)
    saved = yield from write(extractions.save, setting, name, extraction, job)
    if found.problem is not None:
        return failed("flush", slice, found.problem, written=saved.memories if saved else 0)
    return _report(slice, saved)


def _report(slice: Slice, saved: Saved | None) -> Flushed:
    if saved is None:
        return failed("flush", slice, TAKEN)
    count = len(slice.lines)
    _log.info("a flush of %d messages saved %d memories", count, saved.memories, extra=identity(slice, "saved"))
    return Flushed(messages=count, written=saved.memories)


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
    lines = {line.position: line for line in extraction.slice.lines}
    drafts = []
    for proposal in proposals:
        line = lines.get(proposal.message or 0)
        fields = _fields(context, name, extraction.kind, proposal, line, made, setting)
        try:
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
    return {"conversation": name, "user": context.scope.user, "policies": _named_policies(context.policies)}


def of_job(context: Context, job: Claim) -> Context:
    """Return the context of the user who left a job.

    Raises:
        ConfigurationError: it was left under policies that are neither a preset nor this engine's.
    """
    scope, named = Scope(tenant=job.tenant, persona=job.persona, user=job.payload["user"]), job.payload["policies"]
    if named in PRESETS:
        return replace(context, scope=scope, policies=resolve(named))
    if named != _named_policies(context.policies):
        raise ConfigurationError(
            "This was left by a persona with policies of its own, which this engine does not know: open the engine "
            "with them, or call `flush` and `review` on the conversation."
        )
    return replace(context, scope=scope)


def where_said(context: Context, slice: Slice) -> Context:
    """Return the context of the scope that a slice was said in."""
    return replace(context, scope=context.scope.narrowed(slice.said_in))


def _named_policies(policies: Policies) -> str:
    """Return the name of the preset that policies are, else what tells them apart from others."""
    preset = next((name for name, known in PRESETS.items() if known == policies), None)
    return preset or sha256(repr(policies).encode()).hexdigest()


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
