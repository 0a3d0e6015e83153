"""One list of what was ranked apart: rows of different kinds, whose scores mean different things.

Each score is divided by what its kind can reach, so that memories that fade and documents that do not, or a strong hit
among memories and a weak one among documents, stand in an order that makes sense. The order within a kind stays.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType

from memoranda.candidates import Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.overlap import reach_overlap
from memoranda.ranking.scored import Scored
from memoranda.ranking.weighted import reach_weighted


def reach_relative(query: Query, ranked: Sequence[Scored]) -> float:
    """Return what a whole answer would score where scores are relative to the best row at hand.

    Such a score says nothing about how good the best row is; its confidence does, and would be 1 for a whole answer.
    """
    sure = max(scored.confidence for scored in ranked)
    return max(scored.score for scored in ranked) / sure if sure > 0 else inf


_REACHES: Mapping[str, Callable[[Query, Sequence[Scored]], float]] = MappingProxyType(
    {"standard": reach_relative, "weighted": reach_weighted, "rrf": reach_relative, "overlap": reach_overlap}
)


def merged(rankings: Sequence[tuple[Query, Sequence[Scored]]], policy: RankingPolicy) -> list[Scored]:
    """Return the rows of rankings as one list, best first by score divided by what its ranking can reach.

    Equal ones stand in the order of the rankings.
    """
    kinds = [(query, ranked) for query, ranked in rankings if ranked]
    if len(kinds) == 1:
        return list(kinds[0][1])
    shares: list[tuple[float, Scored]] = []
    for query, ranked in kinds:
        reach = _REACHES[policy.name](query, ranked)
        shares += [(scored.score / reach if reach else 0.0, scored) for scored in ranked]
    return [scored for _, scored in sorted(shares, key=lambda share: share[0], reverse=True)]
