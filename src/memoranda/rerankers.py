"""What stands between the engine and any reranker: it is given its time and no more, and its scores are checked."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from memoranda.errors import ConfigurationError, MemorandaError, RerankerUnavailable
from memoranda.protocols import Reranker
from memoranda.time_limits import TimeLimit

__all__ = ["CheckedReranker", "scores_of_order"]


class CheckedReranker:
    """A reranker that keeps nobody waiting and vouches for its scores: what goes wrong is an error without any text.

    Safe to share between threads and event loops.
    """

    def __init__(self, reranker: Reranker) -> None:
        """Stand before a reranker.

        Raises:
            ConfigurationError: the object is none.
        """
        if not isinstance(reranker, Reranker) or not callable(reranker.score) or not isinstance(reranker.name, str):
            raise ConfigurationError(f"{type(reranker).__name__} is not a reranker: it needs `name` and `score`.")
        if inspect.iscoroutinefunction(reranker.score):
            raise ConfigurationError(
                f"The `score` of {type(reranker).__name__} is a coroutine: call that one `ascore`, and let `score` do "
                "the same for plain code."
            )
        self.name = reranker.name
        self._score = reranker.score
        self._ascore: Callable[[str, Sequence[str]], Awaitable[Any]] | None = getattr(reranker, "ascore", None)
        self._local = bool(getattr(reranker, "local", False))
        self._time = TimeLimit("reranker")

    def __repr__(self) -> str:
        """Show the reranker's name."""
        return f"CheckedReranker({self.name!r})"

    def score(self, query: str, texts: Sequence[str], limit: float | None = None) -> list[float]:
        """Return a finite number for each text, in order; higher is better.

        Args:
            query: The question.
            texts: What may answer it.
            limit: Seconds it may take, unless the reranker is local. What comes later is not heard.

        Raises:
            RerankerUnavailable: it failed, took too long, or gave something else.
        """
        asked = partial(self._asked, query, texts)
        if limit is None or self._local:
            return asked()
        try:
            return self._time.within(limit, asked)
        except TimeoutError:
            raise self._too_late(limit) from None

    async def ascore(self, query: str, texts: Sequence[str], limit: float | None = None) -> list[float]:
        """Do the same with the reranker's `ascore`, which is cancelled at the limit, else with `score` in a thread."""
        asked = partial(self._asked, query, texts)
        if limit is None or self._local:
            return await (asyncio.to_thread(asked) if self._ascore is None else self._awaited(query, texts))
        try:
            if self._ascore is None:
                return await self._time.beside(limit, asked)
            return await self._time.awithin(limit, self._awaited(query, texts))
        except TimeoutError:
            raise self._too_late(limit) from None

    def _asked(self, query: str, texts: Sequence[str]) -> list[float]:
        failed = None
        try:
            given = self._score(query, texts)
        except Exception as exc:
            failed = self._failed(exc)
        if failed is not None:
            raise failed  # not from the reranker's own error, which may quote a text
        return self._checked(given, len(texts))

    async def _awaited(self, query: str, texts: Sequence[str]) -> list[float]:
        assert self._ascore is not None
        failed = None
        try:
            given = await self._ascore(query, texts)
        except Exception as exc:
            failed = self._failed(exc)
        if failed is not None:
            raise failed
        return self._checked(given, len(texts))

    def _checked(self, given: Any, expected: int) -> list[float]:
        try:
            scores = np.asarray(given)
        except Exception:  # of the many things an object may do when it is looked at as an array
            scores = np.asarray(None)
        if scores.dtype.kind not in "fiub" or scores.ndim != 1:
            raise self._unusable("something that is not a list of numbers")
        if len(scores) != expected:
            raise self._unusable(f"{len(scores)} scores for {expected} texts")
        if not np.isfinite(scores).all():
            raise self._unusable("numbers that are not finite")
        return [float(score) for score in scores]

    def _unusable(self, what: str) -> RerankerUnavailable:
        return RerankerUnavailable(
            f"Reranker {self.name!r} gave {what}: have its score() return one finite number for each text."
        )

    def _too_late(self, limit: float) -> RerankerUnavailable:
        return RerankerUnavailable(
            f"Reranker {self.name!r} gave no answer within {limit:g} s: see that it is up, show it less with "
            "RerankPolicy, or wait longer with TimeoutPolicy(rerank=...)."
        )

    def _failed(self, exc: Exception) -> MemorandaError:
        """Return the error to raise: our own as it is, anything else by its type, since its text may quote ours."""
        if isinstance(exc, MemorandaError):
            return exc
        return RerankerUnavailable(
            f"Reranker {self.name!r} failed with {type(exc).__name__}: call its score() to see why."
        )


def scores_of_order(count: int, order: Iterable[tuple[int, float | None]]) -> list[float]:
    """Return the scores that put texts in an order, for what returns some of them, best first, instead of scores.

    Where each of them comes with a number, and these fall along the order, the numbers are the scores; else the scores
    tell the order and nothing else, from 1 down. What is left out comes last, and stays as it came.

    Args:
        count: How many texts there are.
        order: The places of texts, best first, and what each was given, if anything. Of a place that comes again the
            first time counts.

    >>> scores_of_order(4, [(2, 0.9), (0, 0.4)])
    [0.4, -0.6, 0.9, -0.6]
    >>> scores_of_order(4, [(2, None), (0, None)])
    [0.75, -0.25, 1.0, -0.25]
    """
    given: dict[int, float | None] = {}
    for place, number in order:
        given.setdefault(place, number)
    # twice a number must be finite, too, for what is left out lies below the last one
    numbers = [number for number in given.values() if number is not None and math.isfinite(2 * number)]
    if len(numbers) < len(given) or any(one <= after for one, after in pairwise(numbers)):
        numbers = [1 - place / count for place in range(len(given))]
    last = numbers[-1] - max(1.0, abs(numbers[-1])) if numbers else 0.0
    scores = dict(zip(given, numbers, strict=True))
    return [scores.get(place, last) for place in range(count)]
