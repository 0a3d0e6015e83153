"""Two lists of what was found, by meaning and by words, as one; and how much of a question a text says."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from memoranda.ranking.weighted import MOST_POSITIONS, ZETA_2
from memoranda.text import frequency

K = TypeVar("K")

ALPHA = 0.6
"""The share of meaning: .6 cosine and .4 words ranked best on LoCoMo, see `memoranda.ranking.standard`."""

_SAID = (0.0, *accumulate(1 / times**2 for times in range(1, MOST_POSITIONS + 1)))


def ts_rank_any(terms: Sequence[str], said: str) -> float:
    """Return Postgres' `ts_rank` of `a | b` for a text all of whose words weigh the same: 0..1, higher is better.

    Words count by how often they are said, whatever the length of the text; see `memoranda.ranking.weighted.ts_rank`
    for words of different weights.

    Args:
        terms: The words, at least one.
        said: The text's terms, in the format of `memoranda.text.join_terms`.
    """
    times = (min(frequency(said, term), MOST_POSITIONS) for term in terms)
    return sum(_SAID[count] for count in times) / (ZETA_2 * len(terms))


def fused(dense: Mapping[K, float] | None, text: Mapping[K, float] | None, alpha: float = ALPHA) -> dict[K, float]:
    """Return a score for everything in either list: `alpha` · its cosine + (1 - `alpha`) · its score of words.

    Both are taken relative to the best of their list, and what a list does not have gets nothing from it; a cosine
    below 0 counts as 0. Scores lie in 0..1, higher is better.

    Args:
        dense: The cosines of what was found by meaning; None where nobody looked.
        text: The scores of what was found by words, none of them negative; None where nobody looked.
        alpha: 0..1, the share of meaning; the list that is there has it all where the other is None.
    """
    shares = ((dense, alpha if text is not None else 1.0), (text, 1 - alpha if dense is not None else 1.0))
    scores: dict[K, float] = {}
    for found, share in shares:
        best = max((found or {}).values(), default=0.0)
        for key, value in (found or {}).items():
            scores[key] = scores.get(key, 0.0) + (share * max(value, 0.0) / best if best > 0 else 0.0)
    return {key: min(score, 1.0) for key, score in scores.items()}  # shares of 0.9 and 0.1 may add up to more
