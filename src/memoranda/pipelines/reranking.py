"""How an answer is put in the order of a reranker: more is found than was asked for, and the best of it is kept.

What the floor has decided stands. A reranker that fails costs its order, not the answer.
"""

from collections.abc import Sequence
from dataclasses import replace

from memoranda.drafts import embedded_chunk, embedded_text
from memoranda.effects import Steps, rerank
from memoranda.errors import MemorandaError
from memoranda.pipelines.context import Context
from memoranda.records import Hit, KnowledgeHit, MemoryHit, Recall

_WITHOUT = "ordered without the reranker: {}"


def reach(context: Context, wanted: int) -> int:
    """Return how many hits to find, where so many are wanted."""
    policy = context.policies.rerank
    return policy.texts(wanted) if context.reranker is not None and policy.enabled else wanted


def reranked(
    context: Context, query: str, answer: Recall, wanted: int, *, unasked: bool
) -> Steps[tuple[Recall, str | None]]:
    """Return an answer cut to what is wanted, in the order of the reranker, and why it is not if it is not.

    Args:
        context: Whose reranker.
        query: The question.
        answer: What was found.
        wanted: How many hits at most.
        unasked: Whether the hits will be put before a model that did not ask: what looks like an order to one is not
            shown to the reranker, which may be one, and stands last.
    """
    if context.reranker is None or not context.policies.rerank.enabled:
        return answer, None
    cut = replace(answer, hits=answer.hits[:wanted], nearest=answer.nearest[:wanted])
    held = {hit.id for hit in answer.hits if unasked and isinstance(hit, MemoryHit) and hit.memory.suspicions}
    shown = [hit for hit in answer.hits if hit.id not in held]
    last = [hit for hit in answer.hits if hit.id in held]
    if len(shown) < 2:
        return cut, None
    texts = [_text(hit)[: context.policies.rerank.characters] for hit in shown]
    try:
        limit = context.policies.timeout.seconds(len(texts), "rerank")
        scores = yield from rerank(context.reranker, query, texts, limit)
    except MemorandaError as error:
        return cut, _WITHOUT.format(error)
    return replace(cut, hits=(*_ordered(shown, scores, context.reranker.name), *last)[:wanted]), None


def _ordered(hits: Sequence[Hit], scores: Sequence[float], name: str) -> list[Hit]:
    """Return hits in the order of their scores, equal ones as they stood."""
    said = [
        replace(hit, score=score, legs={**hit.legs, "reranker": score}, reasons=(*hit.reasons, f"ordered by {name}"))
        for hit, score in zip(hits, scores, strict=True)
    ]
    return sorted(said, key=lambda hit: hit.score, reverse=True)


def _text(hit: Hit) -> str:
    if isinstance(hit, MemoryHit):
        return embedded_text(hit.memory.content, hit.memory.title)
    assert isinstance(hit, KnowledgeHit)
    return embedded_chunk(hit.chunk.content, hit.chunk.headings)
