"""Which hits count as an answer: from which confidence on, and up to which distance.

What a policy leaves open is measured, for each embedder on public sets or on a store by `MemoryEngine.calibrate`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from memoranda.candidates import Candidate, Candidates
from memoranda.policies import FloorPolicy
from memoranda.ranking.scored import Ranking, Scored

DEFAULT = "default"
TEXT_ONLY = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Where questions that have an answer part from those that have none."""

    least: float
    """The confidence of the best hit, 0..1, from which the question counts as answered."""
    dense_max: float = 2.0
    """The distance, 0..2, that an answer stays within."""
    injected: float | None = None
    """The confidence of a hit that may be put before a model unasked; None is `least`."""


FLOORS: Mapping[str, Measured] = MappingProxyType(
    {
        "hash/words": Measured(least=0.3, dense_max=0.7, injected=0.4),
        "wordllama": Measured(least=0.39, dense_max=0.57, injected=0.44),
        DEFAULT: Measured(least=0.43, dense_max=0.5, injected=0.48),
        TEXT_ONLY: Measured(least=0.275, injected=0.34),
    }
)
"""Where 97 to 99 % of the answerable questions of the LoCoMo set are still answered and few foreign ones, for who asks
can judge a weak hit, but not see what is kept back; unasked, where 95 % are. The measurements stand in
tests/benchmarks/RESULTS.md. The confidence of `default` is that of MiniLM, its distance that of bge-m3, whose
paraphrases lie at 0.34 to 0.45 and whose unrelated texts at 0.52 to 0.68.
"""


SETTING = "floor"
"""The name under which a store keeps what was measured on it."""


def stored(value: Any, model: str | None) -> Measured | None:
    """Return what a store says was measured on it; None when nothing was, or for another model than it uses now."""
    if not isinstance(value, Mapping) or value.get("model") != (model or ""):
        return None
    return Measured(least=float(value["least"]), dense_max=float(value["dense_max"]))


def to_store(measured: Measured, model: str | None) -> dict[str, Any]:
    """Return a measurement as a store keeps it."""
    return {"model": model or "", "least": measured.least, "dense_max": measured.dense_max}


def measured_for(embedder: str, *, embedded: bool = True) -> Measured:
    """Return what was measured for an embedder: `default` for an unknown one, `text` when nothing was embedded."""
    return FLOORS[TEXT_ONLY] if not embedded else FLOORS.get(embedder, FLOORS[DEFAULT])


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A floor policy with everything filled in that it left to measurement."""

    enabled: bool
    least: float = 0.0
    each: float | None = None
    dense_max: float | None = None
    lexical_max: float | None = None
    spoken_for: bool = False
    """Whether each hit must say or mean something of the question: its confidence counts what the best one says."""

    def counting(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return the candidates as the ranker shall see them: what lies too far has no place in the vector leg."""
        if not self.enabled or self.dense_max is None:
            return candidates
        columns = Candidates.of(candidates)
        pairs = zip(columns.column["by_meaning"], columns.column["cosine"], strict=True)
        return columns.changed(by_meaning=[near and _within(cosine, self.dense_max) for near, cosine in pairs])

    def passing(self, ranked: Sequence[Scored]) -> Sequence[Scored]:
        """Return what is near and sure enough, in the order it came in; nothing if the best of it is not sure."""
        if not self.enabled:
            return ranked
        anywhere = self.dense_max is None and self.lexical_max is None
        near = ranked if anywhere else [item for item in ranked if self._is_near(item.candidate)]
        # The best hit decides whether the question is answered at all; what comes with it may be weaker.
        if _surest(near) < self.least:
            return []
        if self.each is None:
            return near
        # Nothing in common is no answer: 0 says that words share none, and that meanings have nothing to do.
        return [item for item in near if item.confidence >= self.each and (item.confidence > 0 or self.each < 0)]

    def _is_near(self, candidate: Candidate) -> bool:
        dense_max = inf if self.dense_max is None else self.dense_max
        lexical_max = dense_max if self.lexical_max is None else self.lexical_max
        if not candidate.by_words:
            return _within(candidate.cosine, dense_max)
        by_meaning = candidate.by_meaning and _within(candidate.cosine, dense_max)
        return by_meaning or _within(candidate.cosine, lexical_max)


def _surest(ranked: Sequence[Scored]) -> float:
    if isinstance(ranked, Ranking):
        return ranked.surest
    return max((item.confidence for item in ranked), default=-inf)


def settle(policy: FloorPolicy, measured: Measured, *, unasked: bool = False) -> Floor:
    """Fill in what a policy leaves to measurement.

    Args:
        policy: What the persona asks for.
        measured: What was measured for the store's embedder, or on the store.
        unasked: Whether the hits will be put before a model that did not ask for them: then every single one needs the
            confidence `injected`, in a persona without a floor as well.
    """
    found = measured.least if measured.injected is None else measured.injected
    injected = found if policy.injected is None else policy.injected
    if not policy.enabled:
        injecting = Floor(enabled=True, least=injected, each=injected, spoken_for=True)
        return injecting if unasked else Floor(enabled=False)
    dense_max = measured.dense_max if policy.dense_max == "measured" else policy.dense_max
    return Floor(
        enabled=True,
        least=measured.least if policy.least is None else policy.least,
        each=max(policy.each or 0.0, injected) if unasked else policy.each,
        dense_max=dense_max,
        lexical_max=policy.lexical_max,
        spoken_for=unasked,
    )


def _within(cosine: float | None, limit: float) -> bool:
    """Say whether a row is strictly nearer than a distance; what has no vector to compare is exempt."""
    # six digits: single precision must not decide about a distance that is the limit itself
    return cosine is None or round(1 - cosine, 6) < limit
