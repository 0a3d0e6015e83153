"""From which confidence on the best hit counts as an answer, by embedder."""

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT = "default"
TEXT_ONLY = "text"

FLOORS: Mapping[str, float] = MappingProxyType({"hash/words": 0.4, "wordllama": 0.38, DEFAULT: 0.43, TEXT_ONLY: 0.3})


def floor_for(embedder: str, *, embedded: bool = True) -> float:
    """Return the floor for answers of an embedder: `default` for one not measured, `text` when nothing was embedded."""
    return FLOORS[TEXT_ONLY] if not embedded else FLOORS.get(embedder, FLOORS[DEFAULT])
