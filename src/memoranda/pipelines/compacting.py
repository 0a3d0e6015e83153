"""How a conversation is folded: planned once, flushed, summed up, and only then changed, in one transaction.

Whatever fails before leaves the messages and the frozen block as they were; what the flush has saved stays saved, and
is not extracted again when the same messages are folded later.
"""

import logging
from collections.abc import Sequence

from memoranda.db.queries import folding
from memoranda.db.queries.folding import Plan
from memoranda.drafts import hidden
from memoranda.effects import Steps, complete, compute, read, wake, write
from memoranda.errors import ConfigurationError, InvalidInput, ModelUnavailable
from memoranda.fencing import new_nonce
from memoranda.models import resolve_model
from memoranda.models.checked import CheckedModel
from memoranda.pipelines import extracting
from memoranda.pipelines.context import Context, opened
from memoranda.policies import CompactionPolicy
from memoranda.prompts import summary as prompt
from memoranda.prompts.material import Said, cut, ended
from memoranda.protocols import LanguageModel
from memoranda.reports import Compacted, Flushed

_log = logging.getLogger("memoranda.compaction")
_OUTRUN = "Somebody else was first: the messages were folded, or cleared, meanwhile. Nothing was changed."
_EXTRACTED = "Everything in these messages was extracted before."
_LONG = "A message is longer than one call reads: it stays pending, to be read part by part."
_NO_SUMMARY = "The model gave no summary."
_TOOL_RESULT = 500  # characters of what a tool said: what mattered of it the assistant has said again


def compact(
    context: Context, name: str, policy: CompactionPolicy | None, model: LanguageModel | None
) -> Steps[Compacted]:
    """Fold the oldest messages into the summary, after saving what they hold."""
    if policy is not None and not isinstance(policy, CompactionPolicy):
        raise InvalidInput("policy must be a CompactionPolicy", field="policy")
    policy = policy or context.policies.compaction
    asked = context.model if model is None else CheckedModel(resolve_model(model))
    setting = context.writing()
    yield from opened(context)
    plan = yield from read(folding.plan, context.scope, name, policy)
    if plan is None:
        return Compacted()
    if not asked.configured:
        return _failed(plan, Flushed(skipped=extracting.NO_MODEL), extracting.NO_MODEL)
    flushed = yield from _flushed(context, name, plan, policy, asked)
    summary, problem = yield from _summed_up(context, plan, policy, asked)
    if problem is not None:
        return _failed(plan, flushed, problem)
    payload = extracting.job_payload(context, name)
    now = setting.now
    left = yield from write(folding.fold, context.scope, name, plan, summary, prompt.VERSION, now, payload)
    if left is None:
        return _failed(plan, flushed, _OUTRUN)
    if left and payload is not None:
        failed = flushed.problem is not None
        yield from wake(context.scope.whose, passing=failed)  # a call that failed is not tried again in line
    whole = plan.whole
    _log.info("a compaction folded %d messages", len(whole.lines), extra=_identity(plan, "folded"))
    return Compacted(folded=len(whole.lines), first=whole.first, last=whole.last, flushed=flushed, summary=summary)


def _flushed(context: Context, name: str, plan: Plan, policy: CompactionPolicy, asked: CheckedModel) -> Steps[Flushed]:
    """Flush what nothing was extracted from yet; whatever fails but the database, the summary goes ahead."""
    if plan.fresh is None:
        return Flushed(skipped=_LONG if plan.unread else _EXTRACTED)
    steps = extracting.extract(context, name, plan.fresh, policy, asked)
    done, _ = yield from extracting.told("flush", plan.fresh, steps)
    return done


def _summed_up(
    context: Context, plan: Plan, policy: CompactionPolicy, asked: CheckedModel
) -> Steps[tuple[str, str | None]]:
    """Return the new summary, or why there is none."""
    said = _shortened((yield from compute(extracting.readable, context, plan.whole.lines)))
    if not said:
        return plan.summary, None
    messages = prompt.build_messages(
        said,
        nonce=new_nonce(),
        characters=extracting.CHARACTERS_PER_TOKEN * policy.max_fold_tokens,
        limit=policy.summary_characters,
        before=hidden(plan.summary, context.policies),
    )
    try:
        answer = yield from complete(messages, model=asked)
    except (ModelUnavailable, ConfigurationError) as error:
        return "", str(error)
    limit = policy.summary_characters
    summary = ended(hidden(prompt.read(answer, limit), context.policies), limit)
    return summary, None if summary else _NO_SUMMARY


def _shortened(said: Sequence[Said]) -> list[Said]:
    """Return messages with the results of tools cut."""
    return [
        Said(position=one.position, role=one.role, text=cut(one.text, _TOOL_RESULT), day=one.day)
        if one.role == "tool"
        else one
        for one in said
    ]


def _failed(plan: Plan, flushed: Flushed, problem: str) -> Compacted:
    _log.warning("a compaction changed nothing: %s", problem, extra=_identity(plan, "failed"))
    return Compacted(flushed=flushed, problem=problem)


def _identity(plan: Plan, outcome: str) -> dict[str, str]:
    return {"memoranda.conversation.id": str(plan.whole.conversation_id), "memoranda.compaction.outcome": outcome}
