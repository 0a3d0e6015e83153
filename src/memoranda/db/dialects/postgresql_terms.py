"""A query of full text for the rows whose terms weigh enough together.

The index answers it without a look at the table, and begins at the rare terms: GIN only skips through the lists of
those that cannot reach the weight by themselves. Looking rows up is what costs, and thousands say a common word.
"""

from collections.abc import Sequence
from typing import TypeAlias

from memoranda.db.dialects.base import TextQuestion

_DEPTHS = ((10, 3), (24, 2))
"""Up to so many terms, so many of a row's are asked for: some 200 places in a query at most."""
CLOSE = 1e-9
"""How far sums of the same numbers in another order lie apart."""

_Term: TypeAlias = tuple[float, str]
"""What it is worth, and how it is spelled in the index."""


def weighing(question: TextQuestion, least: float) -> str:
    """Return a query that every row answers whose terms weigh `least` together, and few others."""
    terms = sorted(zip(question.weights, question.terms, strict=True), reverse=True)
    depth = next((depth for most, depth in _DEPTHS if len(terms) <= most), 1)
    return _reaching(terms, min(least, sum(weight for weight, _ in terms)), depth)


def _reaching(terms: Sequence[_Term], needed: float, depth: int) -> str:
    """Say which term is the heaviest of a row's, each time with what the others have to be then.

    Where the depth ends, a term speaks for all it might stand beside.
    """
    parts: list[str] = []
    left = sum(weight for weight, _ in terms)
    for place, (weight, term) in enumerate(terms):
        if left < needed - CLOSE:
            break
        alone = depth == 1 or weight >= needed - CLOSE
        parts.append(term if alone else f"{term} & ({_reaching(terms[place + 1 :], needed - weight, depth - 1)})")
        left -= weight
    return " | ".join(parts)
