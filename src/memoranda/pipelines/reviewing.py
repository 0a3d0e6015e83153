"""How a conversation is looked through in the background: one call of a model, of which what it is sure of is applied.

Nothing is put into the conversation. A dimension of the user model is rewritten only as the model has read it, and
never wiped; what the model is not sure of is dropped and counted.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memoranda.db.queries import extractions, jobs
from memoranda.db.queries.extractions import Extraction, Known, Rewritten
from memoranda.db.queries.jobs import Claim
from memoranda.db.queries.slices import Slice
from memoranda.dimensions import CONTENT_LIMIT, dimension_name
from memoranda.drafts import Setting, hidden
from memoranda.effects import Steps, complete, compute, read, write
from memoranda.errors import InvalidInput, MemorandaError, ModelUnavailable, NotAllowed, StoreError
from memoranda.fencing import new_nonce
from memoranda.moments import day_of
from memoranda.pipelines import extracting
from memoranda.pipelines.context import Context, opened
from memoranda.policies import ReviewPolicy
from memoranda.prompts import review as prompt
from memoranda.prompts.material import Said, cut
from memoranda.prompts.review import Found, Rewrite
from memoranda.records import Dimension
from memoranda.reports import Reviewed

_log = logging.getLogger("memoranda.extraction")
_CERTAIN = 10
"""The confidence at which a dimension may lose more than half of its text."""


def review(context: Context, name: str) -> Steps[Reviewed]:
    """Look through the newest messages that no review has read."""
    setting = context.writing()
    slice, said = yield from _newest(context, setting, name)
    if slice is None:
        return Reviewed()
    if not context.model.configured:
        return _failed(slice, extracting.NO_MODEL)
    try:
        return (yield from _review(context, name, slice, said))
    except StoreError:
        raise
    except MemorandaError as error:
        return _failed(slice, str(error))


def review_job(context: Context, job: Claim) -> Steps[int]:
    """Look through the conversation of a job, and return how many memories and dimensions were written.

    Raises:
        ModelUnavailable: the model gave no answer that could be read to its end.
        ConfigurationError: nothing may be written where the messages were said.
        Lost: the job is another worker's.
    """
    context, name = extracting.of_job(context, job), job.payload["conversation"]
    setting = context.writing()
    slice, said = yield from _newest(context, setting, name)
    if slice is None:
        if not (yield from write(extractions.finish, setting, name, job)):
            raise jobs.Lost
        return 0
    try:
        done = yield from _review(context, name, slice, said, job)
    except NotAllowed as error:
        raise extracting.not_retried(error) from error
    return done.memories + done.dimensions


def _newest(context: Context, setting: Setting, name: str) -> Steps[tuple[Slice | None, Sequence[Said]]]:
    """Return the newest messages that no review has read, as many as fit, and what is said in them."""
    yield from opened(context)
    slice = yield from read(extractions.reviewable, setting, name)
    if slice is None:
        return None, []
    said = _shortened((yield from compute(extracting.readable, context, slice.lines)), context.policies.review)
    if not said:
        return None, []
    first = said[0].position
    return replace(slice, lines=tuple(line for line in slice.lines if line.position >= first)), said


def _review(
    context: Context, name: str, slice: Slice, said: Sequence[Said], job: Claim | None = None
) -> Steps[Reviewed]:
    context = extracting.where_said(context, slice)
    setting = context.writing()
    yield from read(extractions.require_standing, setting)
    policy, top = context.policies.review, context.policies.prompt.memories
    known = yield from read(extractions.known, setting, name, slice.lines[0].created_at, top)
    messages = prompt.build_messages(
        said,
        nonce=new_nonce(),
        today=day_of(setting.now, context.zone),
        characters=policy.characters,
        least=policy.confidence,
        memories=known.memories,
        dimensions=known.dimensions,
        subjects=extracting.subjects(context),
    )
    found = prompt.read((yield from complete(messages, schema=prompt.schema())))
    if found.problem is not None:
        raise ModelUnavailable(found.problem)
    extraction, dropped = yield from _proposed(context, name, slice, found, known, top)
    saved = yield from write(extractions.save, setting, name, extraction, job)
    if saved is None:
        raise ModelUnavailable(extracting.TAKEN)
    done = Reviewed(
        messages=len(slice.lines),
        memories=saved.memories,
        dimensions=saved.dimensions,
        dropped=dropped + saved.outrun,
    )
    counts = (done.messages, done.memories, done.dimensions)
    identity = extracting.identity(slice, "saved")
    _log.info("a review of %d messages saved %d memories and %d dimensions", *counts, extra=identity)
    return done


def _failed(slice: Slice, problem: str) -> Reviewed:
    return Reviewed(messages=extracting.failed("review", slice, problem).messages, problem=problem)


def _shortened(said: Sequence[Said], policy: ReviewPolicy) -> list[Said]:
    """Return the newest of messages that fit together, each cut."""
    kept: list[Said] = []
    room = policy.characters
    for one in reversed(said):
        text = cut(one.text, policy.message_characters)
        room -= len(text)
        if room < 0:
            break
        kept.append(replace(one, text=text))
    return kept[::-1]


def _proposed(
    context: Context, name: str, slice: Slice, found: Found, known: Known, top: int
) -> Steps[tuple[Extraction, int]]:
    """Return what of a model's findings is applied, and how many are dropped."""
    policy, texts = context.policies.review, {one.dimension: one for one in known.dimensions}
    memories = [item for item in found.memories if (item.confidence or 0) >= policy.confidence]
    rewrites: dict[str, Rewritten] = {}
    refused = 0
    for item in found.rewrites:
        new = _rewritten(context, item, texts)
        if new is None:
            refused += 1
        elif new.content != (old.content if (old := texts.get(new.dimension)) else ""):
            rewrites[new.dimension] = new
    proposed = len(found.memories) + len(found.rewrites) + found.unusable
    model = context.model.name
    extraction = Extraction(
        kind="review",
        slice=slice,
        version=prompt.VERSION,
        model=model,
        proposed=proposed,
        rewrites=list(rewrites.values()),
        top=top,
    )
    made = {"prompt": prompt.VERSION, "model": model}
    extraction = yield from extracting.with_memories(context, name, extraction, memories, made)
    return extraction, len(found.memories) - len(extraction.memories) + refused + found.unusable


def _rewritten(context: Context, item: Rewrite, texts: Mapping[str, Dimension]) -> Rewritten | None:
    """Return what a dimension is to say; None where it may not be rewritten so."""
    try:
        name = dimension_name(item.dimension)
    except InvalidInput:
        return None
    policy, sure, old = context.policies.review, item.confidence or 0, texts.get(name)
    content = hidden(item.content, context.policies)
    wipes = old is not None and 2 * len(content) < len(old.content) and sure < _CERTAIN
    if wipes or len(content) > CONTENT_LIMIT:
        return None
    if sure < (policy.confidence if old is None else max(policy.confidence, policy.rewrite_confidence)):
        return None
    cap = context.policies.write.machine_confidence
    return Rewritten(dimension=name, content=content, confidence=min(sure, cap), seen=old.version if old else 0)
