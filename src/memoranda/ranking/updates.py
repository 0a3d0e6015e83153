"""Put the newest first among rows that say nearly the same: a store that only grows holds what is no longer true."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from memoranda.ranking.evidence import Evidence, inverse_frequency
from memoranda.ranking.scored import Account, best_first
from memoranda.ranking.terms import Bools, Floats

LEADERS, FOLLOWERS = 10, 40
"""How many of the best rows may be overtaken, and how far down a newer row is looked for."""
SAMPLE = 100
"""The best rows that tell which terms are rare here."""
ROUNDS = 2
"""An update of an update stands above both."""
QUESTION_SHARE = 0.2
"""What saying the whole question adds to the likeness of two rows: they then answer it in other words."""
SAME = 0.22
SAME_UNSPACED = 0.3
"""The same where words are not parted: single characters and their pairs are shared by texts about different things."""
LONGEST_STATEMENT = 60
"""Terms."""
SAME_TURN = 0.4
"""Turns of a conversation about one thing are alike without correcting each other: more is asked of them."""
SAME_PASSAGE = 0.8
"""And of texts longer than a statement, which share many words anyway."""
LEAST_ALIKE = 0.08
"""Two rows are about the same from this likeness on, whatever they say of the question."""
LEAST_SCORE = 0.45
"""A row that answers so much worse than the older one is no correction of it."""


def lift_updates(account: Account, scores: Floats, ranked: list[int]) -> tuple[Floats, list[int]]:
    """Give a row the score of the best older row that it updates; equal scores stand newest first.

    An update shares its rare words with the older row, or fewer of them but what is asked for as well.

    Args:
        account: What the ranking tells of its rows, and of what is done here.
        scores: Of each candidate.
        ranked: The candidates' places, the best first.

    Returns:
        The scores and the ranking as they are now.
    """
    updates = _updates(account.evidence, ranked, scores)
    if not updates:
        return scores, ranked
    score, overtaken = scores.tolist(), np.zeros(len(scores), np.bool_)
    overtaken[[older for older, _ in updates]] = True
    for _ in range(ROUNDS):
        for older, newer in updates:
            score[newer] = max(score[newer], score[older])
    raised = np.array(score)
    lifted = raised > scores
    account.legs["newer"] = np.where(lifted | overtaken, raised - scores, np.nan)
    account.notes["newer than a similar memory"] = lifted
    account.notes["a newer memory says nearly the same"] = overtaken
    best = ranked[:FOLLOWERS]  # nobody else has moved
    order = best_first(raised[best], [account.evidence.candidates[i] for i in best])
    return raised, [best[i] for i in order] + ranked[FOLLOWERS:]


def _updates(evidence: Evidence, ranked: Sequence[int], scores: Floats) -> list[tuple[int, int]]:
    """Return which of the best candidates is updated by which: the older, the newer."""
    column, best, score = evidence.candidates.column, ranked[:FOLLOWERS], scores[ranked[:FOLLOWERS]]
    dates = evidence.candidates.values("happened_at", best)
    newer = np.array([[date > leader for date in dates] for leader in dates[:LEADERS]])
    possible = newer & (score >= LEAST_SCORE * score[:LEADERS, None])
    if not possible.any():
        return []
    terms, said = evidence.content.said(ranked[:SAMPLE])
    worth = _worth(said)
    asked = (terms[:, None] == evidence.terms).any(axis=1)
    likeness, answers = _likeness(said[:FOLLOWERS], worth), _answers(said[:FOLLOWERS], worth, asked)
    unspaced = evidence.unspaced(best)
    least = np.where(unspaced | unspaced[:LEADERS, None], SAME_UNSPACED, SAME)
    same = (likeness >= LEAST_ALIKE) & (likeness + QUESTION_SHARE * answers >= least)
    turn = np.array([bool(column["session"][i]) for i in best])
    same = np.where(turn | turn[:LEADERS, None], likeness >= SAME_TURN, same)
    long = evidence.lengths[best] > LONGEST_STATEMENT
    same = np.where(long | long[:LEADERS, None], likeness >= SAME_PASSAGE, same)
    return [(ranked[older], ranked[newer]) for older, newer in np.argwhere(possible & same).tolist()]


def _worth(said: Bools) -> Floats:
    """Return what each term is worth among the rows of a sample."""
    worth: Floats = _by_frequency(len(said))[said.sum(axis=0, dtype=np.uint8)]
    return worth


@cache
def _by_frequency(rows: int) -> Floats:
    return np.array([0.0, *(inverse_frequency(rows, times) for times in range(1, rows + 1))])


def _likeness(said: Bools, worth: Floats) -> Floats:
    """Return how much of what they say two rows have in common, by its worth: 0..1, leaders by all."""
    whole: Floats = np.einsum("it,t->i", said, worth)
    # what one row alone says is nothing in common; and not by BLAS, which starts threads for so little
    twice = said.sum(axis=0, dtype=np.uint8) > 1
    common = said[:, twice].astype(np.float64)
    shared: Floats = np.einsum("it,jt->ij", common[:LEADERS] * worth[twice], common)
    either = whole + whole[:LEADERS, None] - shared
    return shared / np.where(either > 0, either, 1.0)


def _answers(said: Bools, worth: Floats, asked: Bools) -> Floats:
    """Return how much of the question each row says, of what the sample says of it."""
    answers: Floats = (said[:, asked] * worth[asked]).sum(axis=1)
    return answers / (worth[asked].sum() or 1.0)
