"""The effects a pipeline may ask for, and the only two drivers that perform them.

A pipeline is a generator: it yields an effect, is sent what the effect gave, and returns its result. `run` performs the
effects with blocking clients, `arun` with async ones; an effect that fails is thrown into the pipeline at the place
that asked. A transaction is never open across a model or an embedding, for it is an effect of its own.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from sqlalchemy import Connection

from memoranda import telemetry
from memoranda.db.database import Database
from memoranda.db.schema import Tables
from memoranda.embedders.space import VectorSpace
from memoranda.errors import MemorandaError
from memoranda.models.checked import CheckedModel
from memoranda.protocols import Completion, PromptMessage, Purpose
from memoranda.rerankers import CheckedReranker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memoranda.embedders.cache import CachedEmbedder
    from memoranda.jobs import Background

    VectorList: TypeAlias = list[NDArray[np.float32]]
    MaybeVectors: TypeAlias = Sequence[NDArray[np.float32] | None]

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
    owner: tuple[str, str] | None = None
    """Tenant and persona they were left for, None for the whole store."""


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
    embedder: "CachedEmbedder | None" = None
    """Another embedder than the store's."""


@dataclass(frozen=True, slots=True)
class Rerank:
    """Score texts by how well they answer a question, within a time limit if there is one, in seconds."""

    reranker: CheckedReranker
    query: str = field(repr=False)
    texts: Sequence[str] = field(repr=False)
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


@dataclass(frozen=True, slots=True)
class Leased:
    """Drive a pipeline that holds a lease, renewing it meanwhile; give it back where the driver itself is stopped."""

    steps: "Steps[Any]"
    seconds: float
    renew: "Callable[[], Steps[bool]]"
    give_back: "Callable[[], Steps[object]]"


Effect: TypeAlias = Transact | Outside | Wake | Pause | Embed | Rerank | Complete | Compute | Apart | Leased
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


def wake(owner: tuple[str, str] | None = None, *, passing: bool = False) -> Steps[None]:
    """Have the jobs done that were left for a tenant and persona, or for any, as the engine does them."""
    yield Wake(passing, owner)


def pause(seconds: float) -> Steps[None]:
    """Wait, without holding anything up."""
    yield Pause(seconds)


def embed(
    texts: Sequence[str], purpose: Purpose, limit: float | None = None, embedder: "CachedEmbedder | None" = None
) -> "Steps[VectorList]":
    """Ask for texts to be embedded, by the store's embedder unless another is given, and return their vectors in order.

    `EmbedderUnavailable` is thrown where none come, or none within `limit` seconds.
    """
    return cast("VectorList", (yield Embed(texts, purpose, limit, embedder)))


def rerank(
    reranker: CheckedReranker, query: str, texts: Sequence[str], limit: float | None = None
) -> Steps[list[float]]:
    """Ask a reranker how well texts answer a question, and return a score a text, in order, higher is better.

    `RerankerUnavailable` is thrown where none come, or none within `limit` seconds.
    """
    return cast(list[float], (yield Rerank(reranker, query, texts, limit)))


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


def leased(
    steps: Steps[T], seconds: float, renew: Callable[[], Steps[bool]], give_back: Callable[[], Steps[object]]
) -> Steps[T]:
    """Have a pipeline driven that holds a lease, and return what it returns.

    Args:
        steps: The pipeline.
        seconds: After which `renew` is driven, again and again, until it returns False.
        renew: What renews the lease.
        give_back: Driven where the caller is cancelled or interrupted, so that others need not wait for the lease.
    """
    return cast(T, (yield Leased(steps, seconds, renew, give_back)))


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

    @contextmanager
    def _renewing(self, seconds: float, renew: Callable[[], Steps[bool]]) -> Iterator[None]:
        over = threading.Event()

        def go_on() -> None:
            while not over.wait(seconds):
                with suppress(MemorandaError):  # the next one may go through
                    if not self.run(renew()):
                        return

        thread = threading.Thread(target=go_on, name="memoranda-lease", daemon=True)
        with suppress(RuntimeError):  # no thread is to be had: the lease lasts as long as it lasts
            thread.start()
        try:
            yield
        finally:
            over.set()
            if thread.ident is not None:
                thread.join()

    async def _renewed(self, seconds: float, renew: Callable[[], Steps[bool]]) -> None:
        going_on = True
        while going_on:
            await asyncio.sleep(seconds)
            with suppress(MemorandaError):
                going_on = await self.arun(renew())

    def _leased(self, lease: Leased) -> Any:
        try:
            with self._renewing(lease.seconds, lease.renew):
                return self.run(lease.steps)
        except Exception:
            raise
        except BaseException:
            with suppress(MemorandaError):
                self.run(lease.give_back())
            raise

    async def _aleased(self, lease: Leased) -> Any:
        renewing = asyncio.create_task(self._renewed(lease.seconds, lease.renew))
        try:
            return await self.arun(lease.steps)
        except asyncio.CancelledError:
            with suppress(MemorandaError):
                await asyncio.shield(self.arun(lease.give_back()))
            raise
        finally:
            renewing.cancel()
            await asyncio.wait((renewing,))

    def _woken(self, passing: bool, owner: tuple[str, str] | None) -> Steps[int] | None:
        """Wake the worker, and return what is to be done here and now instead."""
        if self.background is None:
            return None
        if self.background.mode == "inline":
            return None if passing else self.background.at_once(owner)
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
            case Wake(passing, owner):
                if (steps := self._woken(passing, owner)) is not None:
                    self.run(steps)
            case Pause(seconds):
                time.sleep(seconds)
            case Embed(texts, purpose, limit, another):
                embedder = another or self._space.embedder
                with telemetry.embedding(embedder, len(texts), purpose):
                    return embedder.embed(texts, purpose, limit)
            case Rerank(reranker, query, texts, seconds):
                with telemetry.reranking(reranker.name, len(texts)):
                    return reranker.score(query, texts, seconds)
            case Complete(messages, schema, max_tokens, model):
                return (model or self._model).complete(messages, schema=schema, max_tokens=max_tokens)
            case Compute(fn, args):
                return fn(*args)
            case Apart(part, attributes):
                return self.run(part, attributes)
            case Leased():
                return self._leased(effect)

    async def _aperform(self, effect: Effect) -> Any:
        match effect:
            case Transact(fn, args, write=True):
                return await self._database.arun(fn, *args)
            case Transact(fn, args):
                return await self._database.aread(fn, *args)
            case Outside(fn, args):
                return await self._database.aoutside(fn, *args)
            case Wake(passing, owner):
                if (steps := self._woken(passing, owner)) is not None:
                    await self.arun(steps)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Embed(texts, purpose, limit, another):
                embedder = another or self._space.embedder
                with telemetry.embedding(embedder, len(texts), purpose):
                    return await embedder.aembed(texts, purpose, limit)
            case Rerank(reranker, query, texts, seconds):
                with telemetry.reranking(reranker.name, len(texts)):
                    return await reranker.ascore(query, texts, seconds)
            case Complete(messages, schema, max_tokens, model):
                return await (model or self._model).acomplete(messages, schema=schema, max_tokens=max_tokens)
            case Compute(fn, args):
                return await asyncio.to_thread(fn, *args)
            case Apart(part, attributes):
                return await self.arun(part, attributes)
            case Leased():
                return await self._aleased(effect)
