"""What can be plugged into the engine: each protocol has the fewest methods that work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores: TypeAlias = Sequence[float] | NDArray[np.floating[Any]]
    Vectors: TypeAlias = Sequence[Sequence[float]] | Sequence[NDArray[np.float32]] | NDArray[np.float32]

Purpose: TypeAlias = Literal["query", "text"]
"""Why a text is embedded: to ask with it, or to be found by it. Most embedders treat both alike."""

Progress: TypeAlias = Callable[[int, int], object]
"""Told during long work how much is done, and of how much."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how alike the texts are.

    `name` and `dimensions` together identify the vector space: every stored vector is stamped with
    `name@dimensions`, and vectors of two spaces are never compared. An embedder that takes a while may say
    `deferred = True`: memories are then stored at once, and embedded in the background. One that cannot be called as it
    is may say `configured = False`: nothing is left for later then, until `backfill` asks for it. One that computes in
    this process, and waits for nobody, may say `local = True`: then no call is cut short. One that is told how many
    tokens a call took may pass it on to `memoranda.telemetry.count_input_tokens`.
    """

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str], purpose: Purpose) -> "Vectors":
        """Return one vector of `dimensions` finite floats for each text, in order."""
        ...

    async def aembed(self, texts: Sequence[str], purpose: Purpose) -> "Vectors":
        """Do the same as `embed` without blocking the event loop."""
        ...


class PromptMessage(TypedDict):
    """A message to a language model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model answered.

    Args:
        text: The answer as it came; thinking aloud and fences may be in it, see `memoranda.salvage`.
        input_tokens: Tokens of the messages, None where the model doesn't say.
        output_tokens: Tokens of the answer, None where the model doesn't say.
        cut: Whether the answer ends because its tokens ran out.
    """

    text: str = field(repr=False)
    input_tokens: int | None = None
    output_tokens: int | None = None
    cut: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """Answers messages. `name` is stored with what its answers produced."""

    name: str

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return one answer of at most `max_tokens`, as JSON where a JSON schema is given and the model can."""
        ...

    async def acomplete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Do the same as `complete` without blocking the event loop."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Says how well texts answer a question: a cross-encoder, a service that reranks, a language model.

    It orders what a recall has found, and drops nothing; whether that is an answer at all was decided before. `name` is
    said where it fails, and to whoever watches. It is called from several threads at once; in an event loop `score` is
    called in a thread, unless the reranker has an `ascore` that does the same and is awaited. One that computes in this
    process, and waits for nobody, may say `local = True`: then no call is cut short.
    """

    name: str

    def score(self, query: str, texts: Sequence[str]) -> "Scores":
        """Return one finite number for each text, in the order of the texts: a higher one answers better.

        Any scale will do, as scores are compared within one call only; texts of equal scores stay in the order they
        came in, which is best first by the engine's own ranking.
        """
        ...


class Clock(Protocol):
    """Tells the time: any callable without arguments that returns an aware datetime."""

    def __call__(self) -> datetime:
        """Return the present moment, with a time zone."""
        ...
