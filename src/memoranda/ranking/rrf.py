"""The `rrf` ranker: reciprocal rank fusion of the two legs, with importance and freshness as tie-breaks."""

from collections.abc import Sequence
from datetime import timedelta
from operator import attrgetter

import numpy as np

from memoranda.candidates import Candidate, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import Evidence
from memoranda.ranking.scored import Account, Ranking, best_first, scored
from memoranda.ranking.terms import Floats

RANK_CONSTANT = 60
"""The k of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""
IMPORTANCE_BONUS = 0.002
FRESH_BONUS = 0.001
FRESH = timedelta(days=30)


def rank_rrf(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> Ranking:
    """Score 1/(60 + rank) a leg, + 0.002 · importance/10, + 0.001 for a row stored within 30 days.

    What is timeless has neither bonus.
    The bonuses weigh about as much as one rank, so they decide between equals only. Equal scores: higher id first.
    A score says nothing about how good the best row is; the confidence does, and the distances of the floor.
    """
    evidence = Evidence(query, candidates)
    # The legs cut by what each database is good at; places are by one score, the same on all.
    words = [score if x.by_words else None for x, score in zip(candidates, evidence.bm25.tolist(), strict=True)]
    legs = {
        "vector": _reciprocals(ranks([x.cosine if x.by_meaning else None for x in candidates])),
        "text": _reciprocals(ranks(words)),
    }
    if not query.timeless:
        legs["importance"] = IMPORTANCE_BONUS * np.array([x.importance for x in candidates]) / 10
        legs["fresh"] = np.array([FRESH_BONUS if query.now - x.created_at <= FRESH else 0.0 for x in candidates])
    scores = sum(legs.values(), np.zeros(len(candidates)))
    order = best_first(scores, candidates, among_equals=attrgetter("id"))
    return scored(scores, evidence.confidence(), Account(evidence=evidence, legs=legs), order)


def ranks(scores: Sequence[float | None]) -> list[int | None]:
    """Return the place of each score, 1 for the highest; equal scores share a place and leave the next ones out."""
    ordered = sorted((score for score in scores if score is not None), reverse=True)
    places: dict[float, int] = {}
    for place, score in enumerate(ordered, 1):
        places.setdefault(score, place)
    return [None if score is None else places[score] for score in scores]


def _reciprocals(places: Sequence[int | None]) -> Floats:
    return np.array([0.0 if place is None else 1 / (RANK_CONSTANT + place) for place in places])
