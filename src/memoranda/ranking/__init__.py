"""Rank the rows that might answer a query: pure functions of `memoranda.candidates`, without database or clock.

`rank` applies the ranker a policy names. `standard` is ours and the default; `weighted`, `rrf` and `overlap` reproduce
the formulas of three other systems. A ranker orders and says how sure it is of each row; it never drops one. What is
too weak to show is decided afterwards, by comparing `Scored.confidence` with a floor. `merged` makes one list of rows
that were ranked apart.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from memoranda.candidates import Candidate, Candidates, Query
from memoranda.policies import RankingPolicy
from memoranda.ranking.floors import FLOORS, Floor, Measured, measured_for, settle
from memoranda.ranking.merging import merged
from memoranda.ranking.overlap import rank_overlap
from memoranda.ranking.rrf import rank_rrf
from memoranda.ranking.scored import Ranking, Scored
from memoranda.ranking.standard import rank_standard
from memoranda.ranking.weighted import rank_weighted

__all__ = ["FLOORS", "READS_TEXTS", "Floor", "Measured", "Scored", "measured_for", "merged", "rank", "settle"]

_RANKERS: Mapping[str, Callable[[Query, Sequence[Candidate], RankingPolicy], Ranking]] = MappingProxyType(
    {"standard": rank_standard, "weighted": rank_weighted, "rrf": rank_rrf, "overlap": rank_overlap}
)


READS_TEXTS = frozenset({"weighted", "overlap"})
"""The rankers that look at texts themselves, beyond which terms they say."""


def rank(query: Query, candidates: Sequence[Candidate], policy: RankingPolicy) -> Sequence[Scored]:
    """Order all candidates by how well they answer the query, best first.

    The order depends on the candidates, never on the sequence in which they come. Equal scores: the newer
    `happened_at` first (not in `rrf`), then the higher id.
    """
    if not candidates:
        return []
    return _RANKERS[policy.name](query, Candidates.of(candidates), policy)
