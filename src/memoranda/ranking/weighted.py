"""The `weighted` ranker: a fixed sum of text, cosine and importance that fades with every day; documents do not fade.

Its text part is PostgreSQL's `ts_rank`, computed here so that both databases rank alike: the categories' terms carry
weight A and stand before the content's, which carry weight B, as in `setweight(a, 'A') || setweight(b, 'B')`.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import exp, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np

from memoranda.candidates import Candidate, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import Evidence
from memoranda.ranking.scored import Account, Ranking, Scored, best_first, scored
from memoranda.text import positions

WEIGHT_A, WEIGHT_B = 1.0, 0.4
"""Postgres' defaults for the labels A and B."""
ZETA_2 = 1.64493406685
"""The sum of 1/i²: what one term could reach if it stood everywhere."""
MOST_POSITIONS, LAST_POSITION = 255, 16_383
"""A tsvector keeps so many places of one term of a text, and counts places up to the second number."""
FARTHEST = 100
"""Two places farther apart add nothing that shows (Postgres: less than 1e-15)."""

TEXT_ALONE = 1.0
"""The weight of text where there is no cosine to share with."""


class Weights(NamedTuple):
    """What each part counts."""

    text: float
    vector: float
    importance: float


DATED, TIMELESS = Weights(0.3, 0.5, 0.2), Weights(0.4, 0.6, 0.0)
"""Of rows that have an age and an importance, and of rows that have neither."""

Places: TypeAlias = Mapping[str, Sequence[tuple[int, float]]]
"""For each term of the query that a row has: where it stands, and the weight of that place."""


def rank_weighted(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> Ranking:
    """Score (0.3 · text + 0.5 · cosine + 0.2 · importance/10) / (1 + days since it was stored).

    What is timeless scores 0.4 · text + 0.6 · cosine. Without a cosine (the query or the row has no vector) text counts
    fully. With `match="all"` a row that lacks a term has no text score; if no row has all of them and text alone must
    answer, one term is enough.
    """
    evidence = Evidence(query, candidates)
    places = [term_places(x, query.terms) if says else {} for x, says in zip(candidates, evidence.says, strict=True)]
    strict = policy.match == "all" and (query.embedded or any(len(found) == len(query.terms) for found in places))
    weights = TIMELESS if query.timeless else DATED
    text = np.array([ts_rank(query.terms, found, every=strict) for found in places])
    unknown = np.isnan(evidence.cosines)
    legs = {
        "text": np.where(unknown, TEXT_ALONE, weights.text) * text,
        "vector": weights.vector * np.where(unknown, 0.0, evidence.cosines),
    }
    if not query.timeless:
        legs["importance"] = weights.importance * np.array([x.importance for x in candidates]) / 10
    scores = sum(legs.values(), np.zeros(len(candidates)))
    if not query.timeless:
        legs["recency"] = np.array([_recency(query.now - x.created_at) for x in candidates])
        scores = scores * legs["recency"]
    account = Account(evidence=evidence, legs=legs)
    return scored(scores, evidence.confidence(), account, best_first(scores, candidates))


def reach_weighted(query: Query, ranked: Sequence[Scored]) -> float:
    """Return what the newest of these rows would score if it said everything, meant the same and mattered most."""
    weights = TIMELESS if query.timeless else DATED
    whole = sum(weights) if query.embedded else TEXT_ALONE + weights.importance
    return whole * max(item.legs.get("recency", 1.0) for item in ranked)


def _recency(age: timedelta) -> float:
    return 1 / (1 + max(0.0, age.total_seconds() / 86_400))


def ts_rank(terms: Sequence[str], places: Places, *, every: bool) -> float:
    """Return Postgres' `ts_rank` with its default weights and normalisation 0: 0..1, higher is better.

    `every` ranks `a & b`, by how near the terms stand to each other, and gives 0 to a row that lacks one; otherwise it
    ranks `a | b`, by how often they stand there.
    """
    if not places or (every and len(places) < len(terms)):
        return 0.0
    return _rank_and(terms, places) if every and len(terms) > 1 else _rank_or(terms, places)


def term_places(candidate: Candidate, terms: Sequence[str]) -> Places:
    """Return where the terms stand in a row, as its tsvector has them."""
    category = positions(candidate.category_terms, terms)
    content = positions(candidate.content_terms, terms)
    # `||` shifts the second vector by the last place of the first
    shift = min(candidate.category_terms.count("  ") + 1, LAST_POSITION) if candidate.category_terms else 0
    found: dict[str, list[tuple[int, float]]] = {}
    for term, at in category.items():
        found[term] = [(min(place, LAST_POSITION), WEIGHT_A) for place in at[:MOST_POSITIONS]]
    for term, at in content.items():
        later = [(min(place + shift, LAST_POSITION), WEIGHT_B) for place in at[:MOST_POSITIONS]]
        found[term] = (found.get(term, []) + later)[: MOST_POSITIONS + 1]
    return found


def _rank_or(terms: Sequence[str], places: Places) -> float:
    total = 0.0
    for found in places.values():
        best = max(range(len(found)), key=lambda i: found[i][1])
        weight = found[best][1]
        series = sum(place[1] / (i + 1) ** 2 for i, place in enumerate(found))
        total += (weight + series - weight / (best + 1) ** 2) / ZETA_2
    return total / len(terms)


def _rank_and(terms: Sequence[str], places: Places) -> float:
    missing = 1.0
    for i, term in enumerate(terms):
        for earlier in terms[:i]:
            there = places[earlier]
            for place, weight in places[term]:
                first = bisect_left(there, (place - FARTHEST, 0.0))
                last = bisect_left(there, (place + FARTHEST + 1, 0.0))
                for other, other_weight in there[first:last]:
                    if distance := abs(place - other):
                        missing *= 1 - sqrt(weight * other_weight / (1.005 + 0.05 * exp(distance / 1.5 - 2)))
    return max(1 - missing, 1e-20)
