"""Which rows that hold a term of a question are left out: to look them all up costs most of a search.

Common terms stand in most rows, and a row in which only these stand is seldom among the best. Each database has the
cut its full text answers fastest. Both rest on counts that know nothing of filters: where fewer rows than `limit` are
found, what was left out has to be looked at after all, with a question that is not `lending`.
"""

from math import exp
from typing import TYPE_CHECKING

from memoranda.ranking.evidence import K1, B

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoranda.db.dialects.base import TextQuestion

_SURE = 4
"""Times `limit`. With 4 none of 3,200 questions was asked twice, and of those cut, where half of the rows were hidden,
3 in 100 at most; with 2 it was 19, with 1 it was 67. Of 17,600 rows it looked at 1,200, 2 at 780 and 8 at 1,800."""
_TOGETHER = 8  # terms: one more would double the sums that are looked at


def proposing(question: "TextQuestion", limit: int) -> "tuple[Sequence[int], Sequence[int]]":
    """Return the places of the terms that propose rows, and of those that only lend weight to what others propose.

    At least `limit` rows have the weight of the rarest term that stands in so many. Rows in which only the most common
    terms stand do not weigh more than these, as long as all of what is lent does not (the MaxScore algorithm of Turtle
    and Flood, 1995).
    """
    rarest = sorted(range(len(question.terms)), key=lambda k: question.document_frequency[k])
    if question.match == "all" or not question.lending:
        return rarest, ()
    enough = next((i for i, k in enumerate(rarest) if question.document_frequency[k] >= limit), len(rarest))
    lent, first = 0.0, len(rarest)
    while first > enough + 1 and lent + question.weights[rarest[first - 1]] <= question.weights[rarest[enough]]:
        first -= 1
        lent += question.weights[rarest[first]]
    return rarest[:first], rarest[first:]


def least(question: "TextQuestion", limit: int) -> float:
    """Return what the terms of a row weigh together where it is worth looking at.

    The rows of the heaviest terms weigh so much more than that that no lighter one, however short it is, passes one
    of them of average length.

    A term weighs the logarithm of one in how many rows holds it, so that weights tell how many rows are to be expected
    that hold several, as if terms met by chance. They meet more often than that; `_SURE` times the rows are expected
    all the same.
    """
    if question.match == "all" or not question.lending or not any(question.document_frequency):
        return 0.0
    weights = question.weights
    heaviest = sorted(range(len(question.terms)), key=lambda k: weights[k], reverse=True)
    every = (question.document_frequency[heaviest[0]] + 0.5) * exp(weights[heaviest[0]])
    sums = [(0.0, every)]
    for k in heaviest[:_TOGETHER]:
        share = exp(-weights[k])
        sums = [(weight, rows * (1 - share)) for weight, rows in sums] + [
            (weight + weights[k], rows * share) for weight, rows in sums
        ]
    expected = 0.0
    for weight, rows in sorted(sums, reverse=True):
        expected += rows
        if expected >= _SURE * limit:
            return weight * (1 + K1 * (1 - B)) / (1 + K1)
    return 0.0
