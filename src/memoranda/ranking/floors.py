"""From which confidence on the best hit counts as an answer, by embedder."""

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT = "default"
TEXT_ONLY = "text"

FLOORS: Mapping[str, float] = MappingProxyType({"hash/words": 0.3, "wordllama": 0.425, DEFAULT: 0.45, TEXT_ONLY: 0.26})
"""Where 95 % of the answerable questions of the LoCoMo set are still answered and few foreign ones, lower where small
everyday stores ask for it; the measurements stand in tests/benchmarks/RESULTS.md. `default` is that of MiniLM."""


def floor_for(embedder: str, *, embedded: bool = True) -> float:
    """Return the floor for answers of an embedder: `default` for one not measured, `text` when nothing was embedded."""
    return FLOORS[TEXT_ONLY] if not embedded else FLOORS.get(embedder, FLOORS[DEFAULT])
