"""The `rrf` ranker: reciprocal rank fusion of the two legs, with importance and freshness as tie-breaks."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from memoranda.candidates import Candidate, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import Evidence
from memoranda.ranking.scored import Scored

RANK_CONSTANT = 60
"""The k of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""
IMPORTANCE_BONUS = 0.002
FRESH_BONUS = 0.001
FRESH = timedelta(days=30)


def rank_rrf(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> list[Scored]:
    """Score 1/(60 + rank) a leg, + 0.002 · importance/10, + 0.001 for a row stored within 30 days.

    What is timeless has neither bonus.
    The bonuses weigh about as much as one rank, so they decide between equals only. Equal scores: higher id first.
    A score says nothing about how good the best row is; the confidence does, and the distances of the floor.
    """
    evidence = Evidence(query, candidates)
    scored = []
    for place, candidate in enumerate(candidates):
        legs = {"vector": _reciprocal(candidate.dense_rank), "text": _reciprocal(candidate.text_rank)}
        if not query.timeless:
            legs["importance"] = IMPORTANCE_BONUS * candidate.importance / 10
            legs["fresh"] = FRESH_BONUS if query.now - candidate.created_at <= FRESH else 0.0
        scored.append(
            Scored(
                candidate=candidate,
                score=sum(legs.values()),
                confidence=evidence.confidence(place),
                legs=legs,
                explain=partial(evidence.reasons, place),
            )
        )
    return sorted(scored, key=lambda s: (s.score, s.candidate.id), reverse=True)


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / (RANK_CONSTANT + rank)
