"""How a question is answered: embed it, gather candidates, rank them, compare with the floor, fetch what is left.

Memories and knowledge are asked apart, each ranked and judged among its own, and what answers stands in one list.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from memoranda import filters as filtering
from memoranda.candidates import Candidate, Query
from memoranda.db.queries import candidates, knowledge, memories, past, store
from memoranda.db.queries.candidates import Question
from memoranda.db.queries.past import Rewritten
from memoranda.db.schema import Tables
from memoranda.drafts import Setting, hidden
from memoranda.effects import Steps, embed, read, write
from memoranda.errors import ConfigurationError, EmbedderUnavailable, InvalidInput, MemorandaError, StoreError
from memoranda.filters import Filters
from memoranda.pipelines.context import Context, moved, opened, vectors_of
from memoranda.pipelines.reranking import reach, reranked
from memoranda.policies import FloorPolicy, RankingPolicy
from memoranda.protocols import Purpose
from memoranda.ranking import Floor, Measured, Scored, measured_for, merged, rank, settle
from memoranda.records import Hit, KnowledgeChunk, KnowledgeHit, Memory, MemoryHit, Recall
from memoranda.text import clean, words

if TYPE_CHECKING:
    from memoranda.db.queries.candidates import Vector

_log = logging.getLogger("memoranda.recall")

_CORE = 50  # memories always in mind, if nobody says otherwise
LIMIT = 1000
"""The most hits a recall or a list returns."""

_PER_HIT = 4  # rows that each leg proposes at least

_LONGEST_QUESTION = 16_384  # characters: nobody means more, and an event loop would wait for it

_LONGEST_SECRET = 4096  # characters

_NOTHING_ASKED = "the question holds no word to look for"
_NOTHING_STORED = "nothing is stored here that this question may see"
_NOTHING_NEAR = "nothing stored shares a word or a meaning with the question"
_BELOW_FLOOR = "what comes nearest is too far from the question to be its answer"
_NOT_AT_HAND = "the memories could not be looked up: that says nothing about what is remembered"
_GIVES_ORDERS = "what comes near looks like orders to a model, which are not put before one"
_BY_WORDS_THEN = "what was rewritten since is answered from words alone: {}"
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


def recall(
    context: Context,
    query: str,
    limit: int | None,
    fields: Mapping[str, Any],
    floor: FloorPolicy | None = None,
    *,
    kinds: Sequence[str] | None = None,
    unasked: bool = False,
    vector: Sequence[float] | None = None,
) -> Steps[Recall]:
    """Return what answers a question, or an abstention with its reason.

    Args:
        context: Who asks, and how.
        query: The question.
        limit: How many hits at most.
        fields: The filters.
        floor: Another floor than the persona's.
        kinds: What is asked, of `memory` and `knowledge`; both when left out.
        unasked: Whether the hits will be put before a model that did not ask for them; see `FloorPolicy.injected`.
        vector: The question's vector, where the caller has it.
    """
    if not isinstance(query, str):
        raise InvalidInput("query must be a string", field="query")
    if floor is not None and not isinstance(floor, FloorPolicy):
        raise InvalidInput("floor must be a FloorPolicy", field="floor")
    wanted = checked_limit(limit, context.policies.limit)
    filters = filtering.check(fields, context.zone, project=context.scope.project, recall=True)
    asked = filtering.asked(kinds, filters)
    if unasked:
        filters = replace(filters, core=False)  # what is always in mind is there already
    setting = context.setting()
    reached = reach(context, wanted)
    ranking = proposing(context.policies.ranking, max(wanted, -(-reached // _PER_HIT)))
    question, why = yield from _asked(context, setting, query, "query", ranking, filters, vector)
    degraded = _BY_WORDS_ONLY.format(why) if why and question.vector is None else why
    if not question.terms and question.vector is None:
        return Recall(abstained=True, reason=_NOTHING_ASKED, degraded=degraded)
    bound = settle(floor or context.policies.floor, _measured(context, question), unasked=unasked)
    then: Sequence[Rewritten] = ()
    if filters.as_of is not None:
        then, why = yield from _then(setting, question)
        degraded = degraded or (why and _BY_WORDS_THEN.format(why))
    questions = [replace(question, kind=kind) for kind in asked]
    answer = yield from read(_answered, questions, setting, bound, reached, then)
    answer, why = yield from reranked(context, question.text, answer, wanted, unasked=unasked)
    degraded = "; ".join(filter(None, (degraded, answer.degraded, why))) or None
    if context.policies.write.track_access and answer.memories and not filters.include_inactive:
        degraded = (yield from _count(setting, answer.memories)) or degraded
    return replace(answer, degraded=degraded)


def without_secrets(said: str, context: Context) -> str:
    """Return what was asked as it may be looked for: cleaned, without secrets, no longer than anybody means."""
    # Cut once more, or a secret on the edge would be too short to be known as one.
    return hidden(clean(said)[: _LONGEST_QUESTION + _LONGEST_SECRET], context.policies)[:_LONGEST_QUESTION]


def _asked(
    context: Context,
    setting: Setting,
    said: str,
    purpose: Purpose,
    ranking: RankingPolicy,
    filters: Filters,
    given: Sequence[float] | None = None,
) -> Steps[tuple[Question, str | None]]:
    """Return what was asked as the database takes it, and why there is no vector if there should be one."""
    text = without_secrets(said, context)
    yield from opened(context)
    vector, why = None, None
    if given is not None and context.space.model is not None:
        vector = _checked_vector(given, context.space.embedder.dimensions)
    elif text.strip():
        [vector], why = yield from vectors_of(context, [text], purpose, asked=True, checked=False)
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


def _checked_vector(given: Sequence[float], length: int) -> "Vector":
    """Return a vector that a caller has made.

    Raises:
        InvalidInput: it is not one of the store's embedder.
    """
    try:
        vector = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("vector must be a list of numbers", field="vector") from None
    if vector.shape != (length,) or not np.isfinite(vector).all():
        raise InvalidInput(f"vector must be {length:,} finite numbers, as the store's embedder makes", field="vector")
    return vector


def _then(setting: Setting, question: Question) -> Steps[tuple[Sequence[Rewritten], str | None]]:
    """Return what was rewritten since the moment asked for, its old words with vectors, or why these have none."""
    rewritten = yield from read(past.rewritten_since, setting, question.filters)
    chosen = past.to_embed(rewritten, question, setting) if question.vector is not None else []
    if not chosen:
        return rewritten, None
    try:
        limit = setting.policies.timeout.seconds(len(chosen), "question")
        vectors = yield from embed([item.text for item in chosen], "text", limit)
    except (EmbedderUnavailable, ConfigurationError) as error:
        return rewritten, str(error)
    made = {item.memory.id: vector for item, vector in zip(chosen, vectors, strict=True)}
    with_vectors = [replace(x, vector=made[x.memory.id]) if x.memory.id in made else x for x in rewritten]
    return with_vectors, None


def proposing(policy: RankingPolicy, limit: int) -> RankingPolicy:
    """Return the policy with as many candidates as a limit asks for."""
    return policy if policy.candidates >= _PER_HIT * limit else replace(policy, candidates=_PER_HIT * limit)


def _measured(context: Context, question: Question) -> Measured:
    """Return what was measured on this store, else for its embedder."""
    space, embedded = context.space, question.vector is not None
    if space.measured is not None and embedded == (space.model is not None):
        return space.measured
    return measured_for(space.name, embedded=embedded)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the rows of one kind have to say."""

    query: Query
    answers: Sequence[Scored]
    nearest: Sequence[Scored]
    """What came nearest where there is no answer."""
    too_far: bool
    """Whether the floor is why there is none."""


def _answered(
    conn: Connection,
    tables: Tables,
    questions: Sequence[Question],
    setting: Setting,
    floor: Floor,
    limit: int,
    then: Sequence[Rewritten] = (),
) -> Recall:
    """Gather, rank, compare with the floor and fetch, all in one turn of a database thread: ranking takes its time."""
    asked = questions[0]
    # In the transaction that compares, for the store may have gone over to another embedder just before.
    standing = store.standing(conn, tables, setting.scope, [question.kind for question in questions])
    degraded = None if asked.vector is None else moved(standing.embedder, asked.model)
    questions = [question for question in questions if question.kind in standing.kinds]
    judged = [_judged(conn, tables, question, setting, floor, limit, then) for question in questions]
    answered = any(part.answers for part in judged)
    rankings = [(part.query, part.answers if answered else part.nearest) for part in judged]
    shown = merged(rankings, asked.ranking)[:limit]
    fetched: dict[UUID, Memory | KnowledgeChunk] = {}
    for question, (_, ranked) in zip(questions, rankings, strict=True):
        own = {item.id for item in ranked}
        ids = [item.id for item in shown if item.id in own]
        fetched.update(_fetched(conn, tables, setting, question, ids) if ids else {})
    # What was erased in between is gone.
    hits = tuple(_hit(item, fetched[item.id]) for item in shown if item.id in fetched)
    if answered:
        return Recall(hits=hits, degraded=degraded)
    if any(part.too_far for part in judged):
        reason = _BELOW_FLOOR
    elif any(item.holds for item in then) or any(candidates.any_to_ask(conn, tables, q) for q in questions):
        reason = _NOTHING_NEAR
    else:
        reason = _NOTHING_STORED
    return Recall(abstained=True, reason=reason, nearest=hits, degraded=degraded)


def _judged(
    conn: Connection,
    tables: Tables,
    question: Question,
    setting: Setting,
    floor: Floor,
    limit: int,
    then: Sequence[Rewritten],
) -> _Judged:
    found: Sequence[Candidate]
    query, found = candidates.gather(conn, tables, question)
    if then:
        query, found = past.as_they_were(conn, tables, question, setting, query, found, then)
    counted = floor.counting(found)
    ranked = rank(query, counted, question.ranking)
    passed = floor.passing(ranked)
    # What only its place speaks for is no answer, however well the best one fits, unless the floor is of each hit.
    limited = floor.dense_max is not None or floor.each is not None
    silent = not floor.spoken_for and (not floor.enabled or limited)
    answers = list(islice((item for item in passed if silent or item.reasons), limit))
    nearest = () if answers else (ranked if counted is found else rank(query, found, question.ranking))[:limit]
    return _Judged(query, answers, nearest, too_far=bool(ranked) and not passed)


def _fetched(
    conn: Connection, tables: Tables, setting: Setting, question: Question, ids: Sequence[UUID]
) -> Mapping[UUID, Memory | KnowledgeChunk]:
    """Return the records with these ids."""
    if question.kind == "knowledge":
        return knowledge.by_ids(conn, tables, setting, ids)
    found = memories.by_ids(conn, tables, setting, ids)
    if (moment := question.filters.as_of) is None:
        return found
    return {memory.id: memory for memory in past.as_held(conn, tables, list(found.values()), moment)}


def _hit(item: Scored, found: Memory | KnowledgeChunk) -> Hit:
    said: dict[str, Any] = {
        "score": item.score,
        "confidence": min(max(item.confidence, 0.0), 1.0),
        "legs": item.legs,
        "reasons": item.reasons,
    }
    return MemoryHit(memory=found, **said) if isinstance(found, Memory) else KnowledgeHit(chunk=found, **said)


def relevant(context: Context, text: str, limit: int | None) -> Steps[Recall]:
    """Return what is worth putting before a model that did not ask, core memories left out; fails no turn."""
    try:
        found = yield from recall(context, text, limit, {}, kinds=("memory",), unasked=True)
    except InvalidInput:
        raise
    except MemorandaError as error:
        _log.warning("no memories could be looked up: %s", error)
        return Recall(abstained=True, reason=_NOT_AT_HAND, degraded=str(error))
    if found.degraded:
        _log.warning("memories were looked up, but %s", found.degraded)
    harmless = tuple(hit for hit in found.hits if isinstance(hit, MemoryHit) and not hit.memory.suspicions)
    if found.hits and not harmless:
        return replace(found, hits=(), abstained=True, reason=_GIVES_ORDERS)
    return replace(found, hits=harmless)


def core(context: Context, limit: int | None) -> Steps[list[Memory]]:
    """Return the memories that are always in mind, but those that look like orders to a model."""
    wanted = checked_limit(limit, _CORE)
    filters = replace(filtering.check({}, context.zone, project=context.scope.project), core=True)
    found = yield from read(memories.listed, context.setting(), filters, wanted, "importance", None)
    return [memory for memory in found if not memory.suspicions]


def _count(setting: Setting, found: Sequence[Memory]) -> Steps[str | None]:
    """Note what was returned; that this fails must not cost the answer."""
    try:
        yield from write(memories.count_access, setting, [memory.id for memory in found])
    except StoreError:
        return "how often these memories were recalled could not be noted"
    return None


def nearest(context: Context, content: str, project: str | None) -> Steps[MemoryHit | None]:
    """Return the one memory that means most nearly the same, pages left out; None when there is none."""
    if not isinstance(content, str) or not content.strip():
        raise InvalidInput("content must be a string that is not empty", field="content")
    filters = filtering.check({"project": project}, context.zone, project=context.scope.project)
    ranking, setting = RankingPolicy(name="overlap", candidates=16, neighbours=0), context.setting()
    question, _ = yield from _asked(context, setting, content, "text", ranking, replace(filters, pages=False))
    answer = yield from read(_answered, [question], setting, Floor(enabled=False), 1)
    return next((hit for hit in answer if isinstance(hit, MemoryHit)), None)
