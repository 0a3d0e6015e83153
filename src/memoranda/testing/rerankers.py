"""Rerankers for tests: one that gives the scores the test wrote down, and one that fails."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from memoranda.protocols import Scores

Script: TypeAlias = "Mapping[str, float] | Callable[[str, Sequence[str]], Any]"


@dataclass(frozen=True)
class RerankCall:
    """What the reranker was asked."""

    query: str
    texts: tuple[str, ...]


class ScriptedReranker:
    """Score from a table of texts, or by a function of the question and the texts; `calls` holds every call in order.

    A text that is not in the table is scored 0. What a function returns or raises is handed on as it is.

    >>> ScriptedReranker({"cats": 0.9}).score("which pets?", ["dogs", "cats"])
    [0.0, 0.9]
    """

    local = True

    def __init__(self, scores: Script, *, name: str = "test/scripted") -> None:
        self.name = name
        self.scores = scores
        self.calls: list[RerankCall] = []

    def score(self, query: str, texts: Sequence[str]) -> Any:
        """Return what the script says."""
        self.calls.append(RerankCall(query, tuple(texts)))
        if isinstance(self.scores, Mapping):
            return [float(self.scores.get(text, 0.0)) for text in texts]
        return self.scores(query, texts)


class BrokenReranker:
    """Raise at every call, as a service that is down does; `calls` counts the tries."""

    local = True

    def __init__(self, error: Exception | None = None, *, name: str = "test/broken") -> None:
        self.name = name
        self.error = error or ConnectionError("the reranker is down")
        self.calls = 0

    def score(self, query: str, texts: Sequence[str]) -> "Scores":
        """Raise the error."""
        self.calls += 1
        raise self.error
