"""The `overlap` ranker: the cosine, lifted by the share of the query's words that a row says."""

from collections.abc import Sequence

import numpy as np

from memoranda.candidates import Candidate, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import Evidence
from memoranda.ranking.scored import Account, Ranking, Scored, best_first, scored
from memoranda.text import overlap as shared_words
from memoranda.text import words

OVERLAP_BONUS = 0.2
"""So that a row with every word of the query beats one that is up to 0.2 nearer: names and numbers count."""


def rank_overlap(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> Ranking:
    """Score cosine + 0.2 · overlap; a row without a vector has the second part only."""
    said = [shared_words(query.words, words(candidate.content)) for candidate in candidates]
    legs = {
        "vector": np.array([candidate.cosine or 0.0 for candidate in candidates]),
        "overlap": OVERLAP_BONUS * np.array(said),
    }
    scores = sum(legs.values(), np.zeros(len(candidates)))
    account = Account(evidence=Evidence(query, candidates), legs=legs)
    return scored(scores, scores, account, best_first(scores, candidates))


def reach_overlap(query: Query, ranked: Sequence[Scored]) -> float:
    """Return what a row would score that says every word and means the same."""
    return OVERLAP_BONUS + query.embedded
