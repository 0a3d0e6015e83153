"""What can be plugged into the engine: each protocol has the fewest methods that work."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = Sequence[Sequence[float]] | Sequence[NDArray[np.float32]] | NDArray[np.float32]

Purpose: TypeAlias = Literal["query", "text"]
"""Why a text is embedded: to ask with it, or to be found by it. Most embedders treat both alike."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how alike the texts are.

    `name` and `dimensions` together identify the vector space: every stored vector is stamped with
    `name@dimensions`, and vectors of two spaces are never compared.
    """

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str], purpose: Purpose) -> "Vectors":
        """Return one vector of `dimensions` finite floats for each text, in order."""
        ...

    async def aembed(self, texts: Sequence[str], purpose: Purpose) -> "Vectors":
        """Do the same as `embed` without blocking the event loop."""
        ...


class Clock(Protocol):
    """Tells the time: any callable without arguments that returns an aware datetime."""

    def __call__(self) -> datetime:
        """Return the present moment, with a time zone."""
        ...
