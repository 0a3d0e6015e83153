"""Put the newest first among rows that say nearly the same: a store that only grows holds what is no longer true."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from memoranda.candidates import Candidate, Query
from memoranda.ranking.evidence import inverse_frequency
from memoranda.ranking.scored import Scored, best_first

LEADERS, FOLLOWERS = 10, 40
"""How many of the best rows may be overtaken, and how far down a newer row is looked for."""
SAMPLE = 100
"""The best rows that tell which terms are rare here."""
ROUNDS = 2
"""An update of an update stands above both."""
QUESTION_SHARE = 0.2
"""What saying the whole question adds to the likeness of two rows: they then answer it in other words."""
SAME = 0.22
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


def lift_updates(query: Query, ranked: Sequence[Scored]) -> list[Scored]:
    """Give a row the score of the best older row that it updates; equal scores stand newest first.

    An update shares its rare words with the older row, or fewer of them but what is asked for as well.
    """
    leaders, followers = ranked[:LEADERS], ranked[:FOLLOWERS]
    if len(followers) < 2:
        return list(ranked)
    terms = {s.candidate.id: frozenset(s.candidate.content_terms.split()) for s in ranked[:SAMPLE]}
    frequency = Counter(term for found in terms.values() for term in found)
    worth = {term: inverse_frequency(len(terms), times) for term, times in frequency.items()}
    weights = {key: sum(worth[term] for term in found) for key, found in terms.items()}
    asked = frozenset(query.terms) & worth.keys()
    asked_weight = sum(worth[term] for term in asked)

    def answers(newer: Candidate) -> float:
        return sum(worth[term] for term in terms[newer.id] & asked) / asked_weight if asked_weight else 0.0

    def alike(older: Candidate, newer: Candidate) -> float:
        a, b = weights[older.id], weights[newer.id]
        # the likeness cannot exceed the ratio of the weights: most pairs need no closer look
        if not a or not b or min(a, b) < LEAST_ALIKE * max(a, b):
            return 0.0
        shared = sum(worth[term] for term in terms[older.id] & terms[newer.id])
        return shared / (a + b - shared)

    @cache
    def updates(j: int, i: int) -> bool:
        older, newer = ranked[i].candidate, ranked[j].candidate
        if newer.happened_at <= older.happened_at or ranked[j].score < LEAST_SCORE * ranked[i].score:
            return False
        likeness = alike(older, newer)
        if max(older.length, newer.length) > LONGEST_STATEMENT:
            return likeness >= SAME_PASSAGE
        if older.session or newer.session:
            return likeness >= SAME_TURN
        return likeness >= LEAST_ALIKE and likeness + QUESTION_SHARE * answers(newer) >= SAME

    scores = [scored.score for scored in ranked]
    overtaken: set[int] = set()
    for _ in range(ROUNDS):
        for i in range(len(leaders)):
            for j in range(len(followers)):
                if updates(j, i):
                    scores[j] = max(scores[j], scores[i])
                    overtaken.add(i)
    return best_first(_told(s, scores[i], i in overtaken) for i, s in enumerate(ranked))


def _told(scored: Scored, score: float, overtaken: bool) -> Scored:
    notes = scored.notes
    if score > scored.score:
        notes += ("newer than a similar memory",)
    if overtaken:
        notes += ("a newer memory says nearly the same",)
    if notes is scored.notes:
        return scored
    return replace(scored, score=score, legs=scored.legs | {"newer": score - scored.score}, notes=notes)
