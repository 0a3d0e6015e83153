"""The `overlap` ranker: the cosine, lifted by the share of the query's words that a row says."""

from collections.abc import Sequence
from functools import partial

from memoranda.candidates import Candidate, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import Evidence
from memoranda.ranking.scored import Scored, best_first
from memoranda.text import overlap as shared_words
from memoranda.text import words

OVERLAP_BONUS = 0.2
"""So that a row with every word of the query beats one that is up to 0.2 nearer: names and numbers count."""


def rank_overlap(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> list[Scored]:
    """Score cosine + 0.2 · overlap; a row without a vector has the second part only."""
    evidence = Evidence(query, candidates)
    scored = []
    for place, candidate in enumerate(candidates):
        cosine = candidate.cosine or 0.0
        legs = {"vector": cosine, "overlap": OVERLAP_BONUS * shared_words(query.words, words(candidate.content))}
        score = cosine + legs["overlap"]
        explain = partial(evidence.reasons, place)
        scored.append(Scored(candidate=candidate, score=score, confidence=score, legs=legs, explain=explain))
    return best_first(scored)


def reach_overlap(query: Query, ranked: Sequence[Scored]) -> float:
    """Return what a row would score that says every word and means the same."""
    return OVERLAP_BONUS + query.embedded
