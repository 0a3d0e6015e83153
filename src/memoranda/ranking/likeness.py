"""How well a text answers a question, by itself: a score that no other text moves.

What is read page by page needs scores that stay the same from page to page, so nothing here is relative to the best
candidate, as it is in the rankers.
"""

from collections.abc import Callable

from memoranda.candidates import Query
from memoranda.ranking.evidence import K1, B, inverse_frequency
from memoranda.text import frequency

WORDS = 0.4
"""How far the words of a question, all of them said, bring a text from its cosine to a whole answer: the share of the
text leg that did best in score fusion with BM25, see the ranker `standard`."""


def saying(query: Query) -> Callable[[str, int], float]:
    """Return what says of the terms and the length of a text how much of a question it says.

    0..1, by BM25: a text of usual length that says each word once has 1.
    """
    worth = [inverse_frequency(max(query.rows, seen), seen) for seen in query.document_frequency]
    weighed = [(term, idf * (K1 + 1)) for term, idf in zip(query.terms, worth, strict=True)]
    whole, average = sum(worth), max(query.average_length, 1.0)

    def said(terms: str, length: int) -> float:
        norm = K1 * (1 - B + B * length / average)
        found = 0.0
        for term, weight in weighed:
            if times := frequency(terms, term):
                found += weight * times / (times + norm)
        return min(1.0, found / whole) if whole else 0.0

    return said


def likeness(cosine: float | None, words: float, *, embedded: bool) -> float:
    """Return how well a text answers: its cosine, moved towards 1 by the words of the question that it says.

    -1..1, higher is better: the cosine itself where it says none, and what it says alone where there is no cosine.

    Args:
        cosine: Of the text and the question; None where one of them has no vector.
        words: See `saying`.
        embedded: Whether the question has a vector.
    """
    if not embedded:
        return words
    return 1 - (1 - (cosine or 0.0)) * (1 - WORDS * words)
