"""Maximal marginal relevance: what answers a question, and says what was not said yet.

J. Carbonell and J. Goldstein, The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
Summaries, SIGIR 1998.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def mmr(query: "NDArray[np.float32]", vectors: "NDArray[np.float32]", limit: int, balance: float) -> list[int]:
    """Return the places of the vectors to show, in the order in which they were chosen.

    Each next one is the best by `balance` · its cosine with the query - (1 - `balance`) · its highest cosine with one
    that was chosen before; of equal ones the first.

    Args:
        query: The question's vector.
        vectors: One a row, the best first.
        limit: How many to choose at most.
        balance: 0..1. At 1 only nearness to the question counts, at 0 only distance from what was chosen; the first
            one is always the nearest.
    """
    import numpy as np

    if not len(vectors) or limit < 1:
        return []
    rows, asked = _unit(vectors), _unit(query)
    near = rows @ asked
    chosen = [int(np.argmax(near))]
    repeated = rows @ rows[chosen[0]]
    while len(chosen) < min(limit, len(rows)):
        worth = balance * near - (1 - balance) * repeated
        worth[chosen] = -np.inf
        best = int(np.argmax(worth))
        chosen.append(best)
        repeated = np.maximum(repeated, rows @ rows[best])
    return chosen


def _unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float64]":
    import numpy as np

    exact = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    return np.asarray(exact / np.where(lengths == 0, 1, lengths), np.float64)
