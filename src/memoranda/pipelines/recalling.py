"""How a question is answered: embed it, gather candidates, rank them, compare with the floor, fetch what is left."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from memoranda import filters as filtering
from memoranda.db.queries import candidates, memories
from memoranda.db.queries.candidates import Question
from memoranda.db.schema import Tables
from memoranda.drafts import Setting, hidden
from memoranda.effects import Steps, read, write
from memoranda.errors import InvalidInput, StoreError
from memoranda.filters import Filters
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.policies import FloorPolicy, RankingPolicy
from memoranda.protocols import Purpose
from memoranda.ranking import Scored, floor_for, rank
from memoranda.records import Hit, Memory, Recall
from memoranda.text import clean, words

LIMIT = 1000
"""The most hits a recall or a list returns."""

_LONGEST_QUESTION = 16_384  # characters: nobody means more, and an event loop would wait for it

_NOTHING_ASKED = "the question holds no word to look for"
_NOTHING_STORED = "nothing is stored here that this question may see"
_NOTHING_NEAR = "no memory shares a word or a meaning with the question"
_BELOW_FLOOR = "the nearest memory is too far from the question to be its answer"
_BY_WORDS_ONLY = "answered from words alone: {}"


def checked_limit(limit: int | None, default: int) -> int:
    """Return how many rows are wanted.

    Raises:
        InvalidInput: the limit is no whole number from 1 to 1,000.
    """
    if limit is None:
        return default
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIMIT:
        raise InvalidInput(f"limit must be a whole number from 1 to {LIMIT:,}", field="limit")
    return limit


def recall(context: Context, query: str, limit: int | None, fields: Mapping[str, Any]) -> Steps[Recall]:
    """Return what answers a question, or an abstention with its reason."""
    if not isinstance(query, str):
        raise InvalidInput("query must be a string", field="query")
    wanted = checked_limit(limit, context.policies.limit)
    filters = filtering.check(fields, context.zone, project=context.scope.project)
    setting = context.setting()
    question, why = yield from _asked(
        context, setting, query, "query", _proposing(context.policies.ranking, wanted), filters
    )
    degraded = _BY_WORDS_ONLY.format(why) if why else None
    if not question.terms and question.vector is None:
        return Recall(abstained=True, reason=_NOTHING_ASKED, degraded=degraded)
    answer = yield from read(_answered, question, setting, context.space.name, wanted)
    if context.policies.write.track_access and answer.hits and not filters.include_inactive:
        degraded = (yield from _count(setting, answer.hits)) or degraded
    return replace(answer, degraded=degraded)


def _asked(
    context: Context, setting: Setting, said: str, purpose: Purpose, ranking: RankingPolicy, filters: Filters
) -> Steps[tuple[Question, str | None]]:
    """Return what was asked as the database takes it, and why there is no vector if there should be one."""
    text = hidden(clean(said)[:_LONGEST_QUESTION], context.policies)
    yield from opened(context)
    vector, why = None, None
    if text.strip():
        [vector], why = yield from vectors_of(context, [text], purpose)
    question = Question(
        text=text,
        terms=tuple(context.tokenizer.query_terms(text)),
        words=words(text),
        vector=vector if vector is not None and vector.any() else None,
        model=context.space.model,
        scope=context.scope,
        visibility=context.policies.visibility,
        ranking=ranking,
        filters=filters,
        now=setting.now,
    )
    return question, why


def _proposing(policy: RankingPolicy, limit: int) -> RankingPolicy:
    return policy if policy.candidates >= 4 * limit else replace(policy, candidates=4 * limit)


def _answered(
    conn: Connection, tables: Tables, question: Question, setting: Setting, embedder: str, limit: int
) -> Recall:
    """Gather, rank, compare with the floor and fetch, all in one turn of a database thread: ranking takes its time."""
    asked, found = candidates.gather(conn, tables, question)
    ranked = rank(asked, found, question.ranking)
    floor = setting.policies.floor
    kept, reason = _above_floor(floor, ranked, embedder=embedder, embedded=question.vector is not None)
    # What only its place speaks for is no answer, however well the best one fits.
    speaking = (item for item in kept if item.reasons or not floor.enabled)
    shown = list(islice(speaking, limit)) if kept else ranked[:limit]
    answered = bool(kept) and bool(shown)
    shown = shown or ranked[:limit]
    hits = _hits(shown, memories.by_ids(conn, tables, setting, [item.candidate.id for item in shown]))
    if answered:
        return Recall(hits=hits)
    if reason is None:
        reason = _NOTHING_NEAR if candidates.any_to_ask(conn, tables, question) else _NOTHING_STORED
    return Recall(abstained=True, reason=reason, nearest=hits)


def _above_floor(
    policy: FloorPolicy, ranked: Sequence[Scored], *, embedder: str, embedded: bool
) -> tuple[Sequence[Scored], str | None]:
    if not policy.enabled or not ranked:
        return ranked, None
    floor = floor_for(embedder, embedded=embedded) if policy.least is None else policy.least
    # The best hit decides whether the question is answered at all; what comes with it may be weaker.
    if max(item.confidence for item in ranked) < floor:
        return (), _BELOW_FLOOR
    if policy.each is not None:
        # Words alone must at least share one: 0 says they share none.
        ranked = [item for item in ranked if item.confidence >= policy.each and (embedded or item.confidence > 0)]
    return ranked, None


def _hits(ranked: Sequence[Scored], fetched: Mapping[Any, Memory]) -> tuple[Hit, ...]:
    return tuple(
        Hit(
            memory=fetched[item.candidate.id],
            score=item.score,
            confidence=min(max(item.confidence, 0.0), 1.0),
            legs=item.legs,
            reasons=item.reasons,
        )
        for item in ranked
        if item.candidate.id in fetched  # what was erased in between is gone
    )


def _count(setting: Setting, hits: Sequence[Hit]) -> Steps[str | None]:
    """Note what was returned; that this fails must not cost the answer."""
    try:
        yield from write(memories.count_access, setting, [hit.memory.id for hit in hits])
    except StoreError:
        return "how often these memories were recalled could not be noted"
    return None


def nearest(context: Context, content: str, project: str | None) -> Steps[Hit | None]:
    """Return the one memory that means most nearly the same, pages left out; None when there is none."""
    if not isinstance(content, str) or not content.strip():
        raise InvalidInput("content must be a string that is not empty", field="content")
    filters = filtering.check({"project": project}, context.zone, project=context.scope.project)
    ranking, setting = RankingPolicy(name="overlap", candidates=16, neighbours=0), context.setting()
    question, _ = yield from _asked(context, setting, content, "text", ranking, replace(filters, pages=False))
    unbound = replace(setting, policies=replace(setting.policies, floor=FloorPolicy(enabled=False)))
    answer = yield from read(_answered, question, unbound, context.space.name, 1)
    return answer.hits[0] if answer.hits else None
