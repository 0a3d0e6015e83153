"""The effects a pipeline may ask for, and the only two drivers that perform them.

A pipeline is a generator: it yields an effect, is sent what the effect gave, and returns its result. `run` performs the
effects with blocking clients, `arun` with async ones; an effect that fails is thrown into the pipeline at the place
that asked. A transaction is never open across a model or an embedding, for it is an effect of its own.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from sqlalchemy import Connection

from memoranda.db.database import Database
from memoranda.db.schema import Tables
from memoranda.embedders.space import VectorSpace
from memoranda.protocols import Purpose

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
class Embed:
    """Turn texts into vectors."""

    texts: Sequence[str] = field(repr=False)
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Compute:
    """Call a pure function that may take long enough to hold up an event loop."""

    fn: Callable[..., Any]
    args: tuple[Any, ...] = field(repr=False)


Effect: TypeAlias = Transact | Embed | Compute
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


def embed(texts: Sequence[str], purpose: Purpose) -> "Steps[VectorList]":
    """Ask for texts to be embedded, and return their vectors in order."""
    return cast("VectorList", (yield Embed(texts, purpose)))


def compute(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Ask for a pure function to be called, and return what it returns."""
    if kwargs:
        raise TypeError("effects take their arguments by position")
    return cast(T, (yield Compute(fn, args)))


class Runner:
    """Performs the effects of pipelines."""

    def __init__(self, database: Database, space: VectorSpace) -> None:
        """Keep what performs the effects."""
        self._database = database
        self._space = space

    def run(self, steps: Steps[T]) -> T:
        """Drive a pipeline to its end in the calling thread."""
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

    async def arun(self, steps: Steps[T]) -> T:
        """Drive a pipeline to its end without blocking the event loop."""
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

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Transact(fn, args, write=True):
                return self._database.run(fn, *args)
            case Transact(fn, args):
                return self._database.read(fn, *args)
            case Embed(texts, purpose):
                return self._space.embedder.embed(texts, purpose)
            case Compute(fn, args):
                return fn(*args)

    async def _aperform(self, effect: Effect) -> Any:
        match effect:
            case Transact(fn, args, write=True):
                return await self._database.arun(fn, *args)
            case Transact(fn, args):
                return await self._database.aread(fn, *args)
            case Embed(texts, purpose):
                return await self._space.embedder.aembed(texts, purpose)
            case Compute(fn, args):
                return await asyncio.to_thread(fn, *args)
