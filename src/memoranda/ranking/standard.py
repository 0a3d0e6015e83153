"""The `standard` ranker: words and meaning together, with what stands around a row speaking for it.

A conversation answers a question in the turn after the one that asks it, and the turns of one session are about one
thing. So a row is scored by itself, by its neighbours in the session, and by the best rows of its session. Of turns,
those of a speaker who is asked about come first, and a short one ("Thanks, see you!") says little. Facts that belong to
no session are judged by themselves on the same scale. Of memories that say nearly the same the newest stands first; age
counts for nothing else. How each constant was found stands in tests/benchmarks/RESULTS.md.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from memoranda.candidates import Candidate, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import Evidence, bm25
from memoranda.ranking.scored import Account, Ranking, best_first, scored
from memoranda.ranking.sessions import ALONE, Near, mean_of_best, neighbours, sessions
from memoranda.ranking.terms import Bools, Floats
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
SPEAKER = 0.2
"""What a turn gains that begins with a name that is asked for, as turns do that are stored as `name: text`."""
SPEAKER_OPENS = 0.2
"""The least share of the turns that a speaker begins, two at least: another word of the question opens fewer."""
SPEAKERS_OPEN = 0.6
"""The least share of the turns that such speakers begin together: facts that begin with one name have no speakers."""
LITTLE, FULL_LENGTH = 0.3, 1.5
"""What a turn of no length loses, and how many times the usual length one has that loses nothing. Both hold in stores
of short texts, and for nothing where the usual one has twice LONG_TEXT: there questions are short, and answers long."""
REACH_LONG = 0.4
"""What is left of the weight of neighbours' cosines and of the session in a store of endless texts: each of them says
enough for itself. From .3 to .5 little changes."""
IMPORTANCE = 0.02
"""So little that importance decides between near equals only."""


def rank_standard(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> Ranking:
    """Score what a row says, what it means, its neighbours and its session, each part relative to the best candidate.

    Nothing depends on how an embedder spreads its cosines, and a row without a vector is judged by its words. Scores
    lie between 0 and about 1.2. The chunks of a document and the messages of a conversation are neighbours as the rows
    of a session are.
    """
    evidence = Evidence(query, candidates)
    together = sessions(candidates)
    near = neighbours(candidates, together, policy.neighbours)
    brevity = min(1.0, LONG_TEXT / evidence.average_length)

    around = _bm25_around(evidence, near, SECOND_NEIGHBOUR * brevity)
    text = _relative(OWN_TEXT * evidence.bm25 + (1 - OWN_TEXT) * around)
    reach = REACH_LONG + (1 - REACH_LONG) * brevity
    vector = _meaning(evidence.cosines, near, reach)
    words = TEXT_LONG + (TEXT_SHORT - TEXT_LONG) * brevity

    session = SESSION * reach
    unknown = np.isnan(vector)
    said = np.where(unknown, text, words * text) / (1 + session)
    meant = np.where(unknown, 0.0, (1 - words) * vector) / (1 + session)
    legs: dict[str, Any] = {"text": said, "vector": meant}
    if not query.timeless:
        turns = together != ALONE
        weight = np.where(turns, _fullness(evidence, brevity), 1.0)
        legs = {"text": weight * said, "vector": weight * meant, "speaker": _spoken(evidence, turns) / (1 + session)}
    own = sum(legs.values(), np.zeros(len(candidates)))
    legs["session"] = session * mean_of_best(together, own, SESSION_BEST)
    if not query.timeless:
        legs["importance"] = IMPORTANCE * np.array(evidence.candidates.column["importance"]) / 10
    lent = around - evidence.bm25 > 1e-12  # more than rounding
    account = Account(evidence=evidence, legs=legs, notes={"stands beside a match": lent})

    scores = sum(legs.values(), np.zeros(len(candidates)))
    order = best_first(scores, candidates)
    if not query.timeless:
        scores, order = lift_updates(account, scores, order)
    return scored(scores, evidence.confidence(_said_around(evidence, near)), account, order)


def _fullness(evidence: Evidence, brevity: float) -> Floats:
    """Return how far the length of each candidate lets it say something: up to 1."""
    little = LITTLE * max(0.0, 2 * brevity - 1)
    full: Floats = np.minimum(evidence.lengths / (FULL_LENGTH * evidence.average_length), 1.0)
    return 1 - little + little * full


def _spoken(evidence: Evidence, turns: Bools) -> Floats:
    """Return what each candidate gains by its speaker, where two or more take turns."""
    openings = evidence.content.openings()
    names, times = np.unique(openings[turns], return_counts=True)
    speakers = names[(times >= max(2.0, SPEAKER_OPENS * np.count_nonzero(turns))) & (names != 0)]
    if len(speakers) < 2 or np.isin(openings[turns], speakers).mean() < SPEAKERS_OPEN:
        return np.zeros(len(turns))
    asked = speakers[np.isin(speakers, evidence.terms)]
    return np.where(turns & np.isin(openings, asked), SPEAKER, 0.0)


def _bm25_around(evidence: Evidence, near: Near, second: float) -> Floats:
    """Return BM25 of each candidate and its neighbours read as one text."""
    found, length = evidence.counts, evidence.lengths
    usual = np.full(len(length), evidence.average_length)
    if near:
        at = np.array(list(near.values()))
        weights = np.array([[1.0 if abs(distance) == 1 else second] for distance in near])
        # one column more, of an empty text, for neighbours that are not there
        counts = np.concatenate([found, np.zeros((len(found), 1))], axis=1)
        found = found + (weights * counts.take(at, axis=1)).sum(axis=1)
        length = length + (weights * np.append(length, 0.0)[at]).sum(axis=0)
        usual = usual + (weights * np.append(usual, 0.0)[at]).sum(axis=0)
    return bm25(evidence.idf, found, length, usual)


def _said_around(evidence: Evidence, near: Near) -> Floats:
    """Return how often each candidate, the row before it and the row after it say each term of the question."""
    padded = np.concatenate([evidence.counts, np.zeros((len(evidence.counts), 1))], axis=1)
    beside = (padded.take(near[distance], axis=1) for distance in (-1, 1) if distance in near)
    return sum(beside, evidence.counts)


def _meaning(cosines: Floats, near: Near, reach: float) -> Floats:
    """Return how near each candidate and its neighbours are: 1 for the nearest, NaN without a vector."""
    padded = np.append(cosines, np.nan)
    known = ~np.isnan(padded)
    total, weights = cosines, np.ones(len(cosines))
    for distance, weight in ((-1, reach * COSINE_BEFORE), (1, reach * COSINE_AFTER)):
        if distance in near:
            at = near[distance]
            total = total + np.where(known[at], weight * padded[at], 0.0)
            weights = weights + np.where(known[at], weight, 0.0)
    blended = total / weights
    of_known = blended[known[:-1]]
    if not of_known.size:
        return blended
    # a store of few rows may hold good matches only: half of the best stands for what a bad one would have
    high = of_known.max()
    low = min(of_known.min(), high / 2)
    return (blended - low) / (high - low) if high > low else 0.0 * blended


def _relative(values: Floats) -> Floats:
    best = values.max()
    return values / best if best > 0 else np.zeros_like(values)
