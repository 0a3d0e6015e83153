"""The `standard` ranker: words and meaning together, with what stands around a row speaking for it.

A conversation answers a question in the turn after the one that asks it, and the turns of one session are about one
thing. So a row is scored by itself, by its neighbours in the session, and by the best rows of its session. Facts that
belong to no session are judged by themselves on the same scale. Of memories that say nearly the same the newest stands
first; age counts for nothing else. How each constant was found stands in tests/benchmarks/RESULTS.md.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from memoranda.candidates import Candidate, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import K1, B, Evidence
from memoranda.ranking.scored import Scored, best_first
from memoranda.ranking.updates import lift_updates

OWN_TEXT = 0.3
"""The row's own part of the text leg; its neighbourhood has the rest."""
LONG_TEXT = 60
"""Terms. In longer texts a shared word says less: the weight of words and the reach of neighbours shrink with
60/average length. Anything between 40 and 100 ranks alike."""
TEXT_SHORT, TEXT_LONG = 0.6, 0.3
"""The weight of words against meaning in a store of short texts, and in one of endless texts."""
SECOND_NEIGHBOUR = 0.5
COSINE_BEFORE, COSINE_AFTER = 0.15, 0.25
"""How much a neighbour's cosine counts against the row's own: the row before it, the row after it."""
SESSION, SESSION_BEST = 0.5, 3
"""The weight of the session, which is the mean of its best rows."""
IMPORTANCE = 0.02
"""So little that importance decides between near equals only."""


def rank_standard(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> list[Scored]:
    """Score what a row says, what it means, its neighbours and its session, each part relative to the best candidate.

    Nothing depends on how an embedder spreads its cosines, and a row without a vector is judged by its words. Scores
    lie between 0 and about 1. The chunks of a document and the messages of a conversation are neighbours as the rows of
    a session are.
    """
    if not candidates:
        return []
    evidence = Evidence(query, candidates)
    brevity = min(1.0, LONG_TEXT / _average_length(query, candidates))
    neighbours = _neighbours(candidates, policy.neighbours)

    own, around = _bm25(query, evidence, neighbours, brevity)
    text = _relative([OWN_TEXT * a + (1 - OWN_TEXT) * b for a, b in zip(own, around, strict=True)])
    vector = _meaning(query, candidates, neighbours)
    words = TEXT_LONG + (TEXT_SHORT - TEXT_LONG) * brevity

    parts = [
        (said / (1 + SESSION), 0.0)
        if meant is None
        else (words * said / (1 + SESSION), (1 - words) * meant / (1 + SESSION))
        for said, meant in zip(text, vector, strict=True)
    ]
    sessions = _sessions(candidates, parts)
    scored = []
    for i, candidate in enumerate(candidates):
        said, meant = parts[i]
        session = SESSION * (sessions[candidate.session] if candidate.session else said + meant)
        legs = {"text": said, "vector": meant, "session": session}
        if not query.timeless:
            legs["importance"] = IMPORTANCE * candidate.importance / 10
        scored.append(
            Scored(
                candidate=candidate,
                score=sum(legs.values()),
                confidence=evidence.confidence(i),
                legs=legs,
                notes=("stands beside a match",) if around[i] > own[i] else (),
                explain=partial(evidence.reasons, i),
            )
        )
    ranked = best_first(scored)
    return ranked if query.timeless else lift_updates(query, ranked)


def _average_length(query: Query, candidates: Sequence[Candidate]) -> float:
    average = query.average_length or sum(candidate.length for candidate in candidates) / len(candidates)
    return max(average, 1.0)


def _neighbours(candidates: Sequence[Candidate], reach: int) -> list[dict[int, int]]:
    """Return for each candidate the places of those that stand near it in its session, by their distance (-2..2)."""
    seats: dict[tuple[str, int], int] = {}
    for i, candidate in enumerate(candidates):
        if candidate.session and candidate.position is not None:
            seat = (candidate.session, candidate.position)
            if seat not in seats or _age(candidate) > _age(candidates[seats[seat]]):
                seats[seat] = i
    distances = [d for d in (-2, -1, 1, 2) if abs(d) <= reach]
    near: list[dict[int, int]] = []
    for candidate in candidates:
        found: dict[int, int] = {}
        if candidate.session and candidate.position is not None:
            for distance in distances:
                at = seats.get((candidate.session, candidate.position + distance))
                if at is not None:
                    found[distance] = at
        near.append(found)
    return near


def _age(candidate: Candidate) -> tuple[datetime, UUID]:
    return candidate.happened_at, candidate.id


def _bm25(
    query: Query, evidence: Evidence, neighbours: Sequence[Mapping[int, int]], brevity: float
) -> tuple[list[float], list[float]]:
    """Return BM25 of each candidate alone, and of it and its neighbours read as one text."""
    candidates, counts = evidence.candidates, evidence.counts
    average = _average_length(query, candidates)
    second = SECOND_NEIGHBOUR * brevity

    worth = [idf * (K1 + 1) for idf in evidence.idf]
    base, slope = K1 * (1 - B), K1 * B

    own, around = [], []
    for i, candidate in enumerate(candidates):
        norm = base + slope * candidate.length / average
        alone = 0.0
        for k, times in counts[i].items():
            alone += worth[k] * times / (times + norm)
        own.append(alone)
        if not neighbours[i]:
            around.append(alone)
            continue
        found: dict[int, float] = dict(counts[i])
        length, usual = float(candidate.length), average
        for distance, j in neighbours[i].items():
            weight = 1.0 if -2 < distance < 2 else second
            length += weight * candidates[j].length
            usual += weight * average
            for k, times in counts[j].items():
                found[k] = found.get(k, 0.0) + weight * times
        norm = base + slope * length / usual
        together = 0.0
        for k, weighed in found.items():
            together += worth[k] * weighed / (weighed + norm)
        around.append(together)
    return own, around


def _meaning(
    query: Query, candidates: Sequence[Candidate], neighbours: Sequence[Mapping[int, int]]
) -> list[float | None]:
    """Return for each candidate how near it and its neighbours are: 1 for the nearest, None without a vector."""
    if not query.embedded:
        return [None] * len(candidates)
    blended: list[float | None] = []
    for candidate, around in zip(candidates, neighbours, strict=True):
        if candidate.cosine is None:
            blended.append(None)
            continue
        total, weights = candidate.cosine, 1.0
        for distance, weight in ((-1, COSINE_BEFORE), (1, COSINE_AFTER)):
            if distance in around and (cosine := candidates[around[distance]].cosine) is not None:
                total += weight * cosine
                weights += weight
        blended.append(total / weights)
    known = [value for value in blended if value is not None]
    if not known:
        return blended
    # a store of few rows may hold good matches only: half of the best stands for what a bad one would have
    high = max(known)
    low = min(min(known), high / 2)
    return [None if v is None else (v - low) / (high - low) if high > low else 0.0 for v in blended]


def _sessions(candidates: Sequence[Candidate], parts: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return for each session the mean of its best rows."""
    members: dict[str, list[float]] = {}
    for candidate, (said, meant) in zip(candidates, parts, strict=True):
        if candidate.session:
            members.setdefault(candidate.session, []).append(said + meant)
    means = {}
    for session, found in members.items():
        best = sorted(found, reverse=True)[:SESSION_BEST]
        means[session] = sum(best) / len(best)
    return means


def _relative(values: Sequence[float]) -> list[float]:
    best = max(values)
    return [value / best for value in values] if best > 0 else [0.0] * len(values)
