"""The effects a pipeline may ask for, and the only two drivers that perform them.

A pipeline is a generator: it yields an effect, is sent what the effect gave, and returns its result. `run` performs the
effects with blocking clients, `arun` with async ones; an effect that fails is thrown into the pipeline at the place
that asked. A transaction is never open across a model or an embedding, for it is an effect of its own.
"""

import asyncio
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from sqlalchemy import Connection

from memoranda import telemetry
from memoranda.db.database import Database
from memoranda.db.schema import Tables
from memoranda.embedders.space import VectorSpace
from memoranda.models.checked import CheckedModel
from memoranda.protocols import Completion, PromptMessage, Purpose

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memoranda.jobs import Background

    VectorList: TypeAlias = list[NDArray[np.float32]]

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Transact:
    """Run a database function; `write` says whether it changes anything."""

    fn: Callable[..., Any]
    args: tuple[Any, ...] = field(repr=False)
    write: bool


@dataclass(frozen=True, slots=True)
class Outside:
    """Run a database function outside any transaction."""

    fn: Callable[..., Any]
    args: tuple[Any, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wake:
    """Say that jobs were left; `passing` for old ones that were met on the way."""

    passing: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Embed:
    """Turn texts into vectors, within a time limit if there is one, in seconds."""

    texts: Sequence[str] = field(repr=False)
    purpose: Purpose
    limit: float | None


@dataclass(frozen=True, slots=True)
class Complete:
    """Ask the language model."""

    messages: Sequence[PromptMessage] = field(repr=False)
    schema: Mapping[str, Any] | None = field(repr=False)
    max_tokens: int | None
    model: CheckedModel | None = None
    """Another model than the engine's."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Call a pure function that may take long enough to hold up an event loop."""

    fn: Callable[..., Any]
    args: tuple[Any, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Apart:
    """Drive a pipeline as an operation of its own, for whoever watches."""

    steps: "Steps[Any]"
    attributes: telemetry.Attributes


Effect: TypeAlias = Transact | Outside | Wake | Pause | Embed | Complete | Compute | Apart
Steps: TypeAlias = Generator[Effect, Any, T]


def read(fn: Callable[Concatenate[Connection, Tables, P], T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Ask for a function that only reads to be run, and return what it returns."""
    if kwargs:
        raise TypeError("effects take their arguments by position")
    return cast(T, (yield Transact(fn, args, write=False)))


def write(fn: Callable[Concatenate[Connection, Tables, P], T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Ask for a function to be run in a transaction of its own, and return what it returns."""
    if kwargs:
        raise TypeError("effects take their arguments by position")
    return cast(T, (yield Transact(fn, args, write=True)))


def outside(fn: Callable[Concatenate[Connection, Tables, P], T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Ask for a function to be run outside any transaction, and return what it returns."""
    if kwargs:
        raise TypeError("effects take their arguments by position")
    return cast(T, (yield Outside(fn, args)))


def wake(*, passing: bool = False) -> Steps[None]:
    """Have the jobs done that were left, as the engine does them."""
    yield Wake(passing)


def pause(seconds: float) -> Steps[None]:
    """Wait, without holding anything up."""
    yield Pause(seconds)


def embed(texts: Sequence[str], purpose: Purpose, limit: float | None = None) -> "Steps[VectorList]":
    """Ask for texts to be embedded, and return their vectors in order.

    `EmbedderUnavailable` is thrown where none come, or none within `limit` seconds.
    """
    return cast("VectorList", (yield Embed(texts, purpose, limit)))


def complete(
    messages: Sequence[PromptMessage],
    *,
    schema: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
    model: CheckedModel | None = None,
) -> Steps[Completion]:
    """Ask a language model, the engine's unless another is named, and return its answer.

    `ModelUnavailable` is thrown where it gives none.
    """
    return cast(Completion, (yield Complete(messages, schema, max_tokens, model)))


def compute(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Ask for a pure function to be called, and return what it returns."""
    if kwargs:
        raise TypeError("effects take their arguments by position")
    return cast(T, (yield Compute(fn, args)))


def apart(steps: Steps[T], attributes: telemetry.Attributes) -> Steps[T]:
    """Have a pipeline driven as an operation of its own, and return what it returns."""
    return cast(T, (yield Apart(steps, attributes)))


class Runner:
    """Performs the effects of pipelines."""

    def __init__(self, database: Database, space: VectorSpace, model: CheckedModel | None = None) -> None:
        """Keep what performs the effects."""
        self._database = database
        self._space = space
        self._model = model or CheckedModel(None)
        self.background: Background | None = None

    def run(self, steps: Steps[T], attributes: telemetry.Attributes | None = None) -> T:
        """Drive a pipeline to its end in the calling thread; `attributes` are for whoever watches."""
        with telemetry.operation(steps, attributes) as watched:
            return watched.saw(self._driven(steps))

    async def arun(self, steps: Steps[T], attributes: telemetry.Attributes | None = None) -> T:
        """Drive a pipeline to its end without blocking the event loop."""
        with telemetry.operation(steps, attributes) as watched:
            return watched.saw(await self._adriven(steps))

    def _driven(self, steps: Steps[T]) -> T:
        try:
            effect = next(steps)
            while True:
                try:
                    result = self._perform(effect)
                except Exception as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(result)
        except StopIteration as stop:
            return cast(T, stop.value)

    async def _adriven(self, steps: Steps[T]) -> T:
        try:
            effect = next(steps)
            while True:
                try:
                    result = await self._aperform(effect)
                except Exception as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(result)
        except StopIteration as stop:
            return cast(T, stop.value)

    def _woken(self, passing: bool) -> Steps[int] | None:
        """Wake the worker, and return what is to be done here and now instead."""
        if self.background is None:
            return None
        if self.background.mode == "inline":
            return None if passing else self.background.at_once()
        self.background.wake()
        return None

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Transact(fn, args, write=True):
                return self._database.run(fn, *args)
            case Transact(fn, args):
                return self._database.read(fn, *args)
            case Outside(fn, args):
                return self._database.outside(fn, *args)
            case Wake(passing):
                if (steps := self._woken(passing)) is not None:
                    self.run(steps)
            case Pause(seconds):
                time.sleep(seconds)
            case Embed(texts, purpose, limit):
                embedder = self._space.embedder
                with telemetry.embedding(embedder, len(texts), purpose):
                    return embedder.embed(texts, purpose, limit)
            case Complete(messages, schema, max_tokens, model):
                return (model or self._model).complete(messages, schema=schema, max_tokens=max_tokens)
            case Compute(fn, args):
                return fn(*args)
            case Apart(part, attributes):
                return self.run(part, attributes)

    async def _aperform(self, effect: Effect) -> Any:
        match effect:
            case Transact(fn, args, write=True):
                return await self._database.arun(fn, *args)
            case Transact(fn, args):
                return await self._database.aread(fn, *args)
            case Outside(fn, args):
                return await self._database.aoutside(fn, *args)
            case Wake(passing):
                if (steps := self._woken(passing)) is not None:
                    await self.arun(steps)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Embed(texts, purpose, limit):
                embedder = self._space.embedder
                with telemetry.embedding(embedder, len(texts), purpose):
                    return await embedder.aembed(texts, purpose, limit)
            case Complete(messages, schema, max_tokens, model):
                return await (model or self._model).acomplete(messages, schema=schema, max_tokens=max_tokens)
            case Compute(fn, args):
                return await asyncio.to_thread(fn, *args)
            case Apart(part, attributes):
                return await self.arun(part, attributes)
