"""LangGraph's store on Memoranda's items: JSON values under a namespace and a key, found by words and by meaning.

What an agent remembers through a store is kept as it is given, apart from the persona's memories. Where the stores that
come with LangGraph disagree, this one compares numbers as numbers, drops the vectors of a text that was replaced, pages
exactly through the answers to a query, keeps when an item was made, and takes times of fractions of a minute.
"""

import asyncio
import logging
import math
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, TypeAlias
from unicodedata import category

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from langchain_memoranda.bursts import Bursts
from langchain_memoranda.models import LangChainEmbedder, embeddings_name
from memoranda import MemoryEngine
from memoranda import records as engine_records
from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not, Operator
from memoranda.errors import ConfigurationError, MemorandaError
from memoranda.item_operations import DeleteItem, GetItem, ItemOperation, ListNamespaces, PutItem, SearchItems
from memoranda.items import Items
from memoranda.metadata import encode
from memoranda.persona import Persona

_log = logging.getLogger("langchain_memoranda.store")
_ORDERS: Mapping[str, Literal["gt", "gte", "lt", "lte"]] = {"$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}
_SWEEP_INTERVAL = 5.0  # minutes


class MemoryStore(BaseStore):
    """A LangGraph store in a persona's items; one object serves plain code, threads, and any event loop.

    Args:
        memory: A persona, or an engine, whose persona `main` it is then.
        index: By which texts items are found. `fields` are JSON paths, `["$"]` for the whole value when left out.
            `embed` and `dims` name an embedder: an `Embeddings`, a function, or a string such as
            `openai:text-embedding-3-small`; when left out the engine's own is used. `False` indexes nothing.
        ttl: How long items are kept, in minutes or fractions of them: `default_ttl`, `refresh_on_read`,
            `omit_expired`, `sweep_interval_minutes`.

    Raises:
        ConfigurationError: the index names an embedder without `dims`.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Persona | MemoryEngine,
        *,
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._engine = memory if isinstance(memory, MemoryEngine) else None
        items = (memory.persona() if isinstance(memory, MemoryEngine) else memory).items
        self.index_config: IndexConfig | None = index or None
        self.ttl_config = ttl
        self.embeddings: Embeddings | None = None
        if (embed := (index or {}).get("embed")) is not None:
            if not (dims := (index or {}).get("dims")):
                raise ConfigurationError("An index with `embed` needs `dims`, the length of its vectors.")
            self.embeddings = ensure_embeddings(embed)
            embedder = LangChainEmbedder(_callable(self.embeddings), name=_name(embed), dimensions=dims)
            items = items.embedded_by(embedder)
        self._items: Items = items
        self._bursts = Bursts(items)
        self._fields = [] if index is False else _tokenized((index or {}).get("fields") or ["$"])
        self._sweeper: _Sweeper | None = None

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
        **engine: Any,
    ) -> Iterator["MemoryStore"]:
        """Open an engine and give a store on it; both are closed at the end of the block.

        A store that outlives a block, such as the one of a server, is made of an engine: `MemoryStore(engine)`.

        Args:
            conn_string: The address of the database, see `MemoryEngine`.
            index: See the class.
            ttl: See the class.
            **engine: Further arguments of `MemoryEngine`.
        """
        with MemoryEngine(conn_string, **engine) as memory:
            store = cls(memory, index=index, ttl=ttl)
            try:
                yield store
            finally:
                store.stop_ttl_sweeper()

    @classmethod
    @asynccontextmanager
    async def afrom_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
        **engine: Any,
    ) -> AsyncIterator["MemoryStore"]:
        """Async twin of `from_conn_string`."""
        # When an engine is made it reads files, such as the one of its time zone.
        async with await asyncio.to_thread(MemoryEngine, conn_string, **engine) as memory:
            store = cls(memory, index=index, ttl=ttl)
            try:
                yield store
            finally:
                await asyncio.to_thread(store.stop_ttl_sweeper)

    # -- operations

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations: what reads sees what was there before, what writes is one transaction."""
        asked = list(ops)
        return _results(asked, self._items.batch(self._operations(asked)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same without blocking the event loop; what is asked for in one turn of it is one batch."""
        asked = list(ops)
        return _results(asked, await self._bursts.run(self._operations(asked)))

    def _operations(self, ops: Sequence[Op]) -> list[ItemOperation]:
        for op in ops:
            validate_op_namespace(op)
        return [self._operation(op) for op in ops]

    def _operation(self, op: Op) -> ItemOperation:
        omit = bool((self.ttl_config or {}).get("omit_expired"))
        match op:
            case GetOp():
                return GetItem(namespace=op.namespace, key=op.key, refresh=op.refresh_ttl, omit_expired=omit)
            case PutOp(value=None):
                return DeleteItem(namespace=op.namespace, key=op.key)
            case PutOp():
                value: Any = op.value
                texts = self._texts(value, op.index)
                return PutItem(namespace=op.namespace, key=op.key, value=value, texts=texts, ttl_minutes=op.ttl)
            case SearchOp():
                return SearchItems(
                    namespace=op.namespace_prefix,
                    query=op.query,
                    where=condition(op.filter) if op.filter else None,
                    limit=op.limit,
                    offset=op.offset,
                    refresh=op.refresh_ttl,
                    omit_expired=omit,
                )
            case ListNamespacesOp():
                conditions: Sequence[MatchCondition] = op.match_conditions or ()
                if unknown := {c.match_type for c in conditions} - {"prefix", "suffix"}:
                    raise ValueError(f"Unsupported match type: {', '.join(map(str, unknown))}")
                return ListNamespaces(
                    prefixes=[tuple(c.path) for c in conditions if c.match_type == "prefix"],
                    suffixes=[tuple(c.path) for c in conditions if c.match_type == "suffix"],
                    max_depth=op.max_depth,
                    limit=op.limit,
                    offset=op.offset,
                    omit_expired=omit,
                )
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _texts(self, given: Any, index: Literal[False] | list[str] | None) -> dict[str, str]:
        """Return the texts of a value by the paths at which they stand."""
        if index is False or not self._fields or not isinstance(given, Mapping):
            return {}
        fields = self._fields if index is None else _tokenized(index)
        value = encode(dict(given), "value")
        found: dict[str, str] = {}
        for path, tokens in fields:
            texts = get_text_at_path(value, tokens)
            found |= {path if len(texts) == 1 else f"{path}.{place}": text for place, text in enumerate(texts)}
        return found

    # -- tables, and time that runs out

    def setup(self) -> None:
        """Create or upgrade the tables, and ask the embedder for one vector, so that a wrong one fails here.

        Raises:
            ConfigurationError: the store was made of a persona, and its engine has to be set up; or the embedder gives
                vectors of another length than `dims` says.
        """
        if self._engine is None:
            raise ConfigurationError("This store was made of a persona: call setup() of its engine.")
        self._engine.setup()
        if self._fields:
            self._items.check_embedder()

    async def asetup(self) -> None:
        """Do the same without blocking the event loop."""
        if self._engine is None:
            raise ConfigurationError("This store was made of a persona: call setup() of its engine.")
        await self._engine.asetup()
        if self._fields:
            await self._items.acheck_embedder()

    def sweep_ttl(self) -> int:
        """Delete the items whose time is over, and return how many there were."""
        return self._items.sweep()

    async def asweep_ttl(self) -> int:
        """Do the same without blocking the event loop."""
        return await self._items.asweep()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> "Future[None]":
        """Sweep now and then in a thread until `stop_ttl_sweeper` is called or the store is gone.

        Args:
            sweep_interval_minutes: How often; by default as the TTL configuration says, else every five minutes.

        Returns:
            A future that is done when the sweeping has ended.
        """
        if self._sweeper is None or self._sweeper.ended.done():
            minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes")
            self._sweeper = _Sweeper(self._items, 60 * (minutes or _SWEEP_INTERVAL))
            weakref.finalize(self, self._sweeper.stop.set)
        return self._sweeper.ended

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Let the sweeping end, and say whether it has within `timeout` seconds."""
        return self._sweeper is None or self._sweeper.close(timeout)


class _Sweeper:
    """Sweeps in a thread, which knows nothing of the store, so that a store nobody uses is gone."""

    def __init__(self, items: Items, seconds: float) -> None:
        self.stop = threading.Event()
        self.ended: Future[None] = Future()
        arguments = (items, seconds, self.stop, self.ended)
        threading.Thread(target=_sweep_on, args=arguments, name="memoranda-ttl", daemon=True).start()

    def close(self, timeout: float | None) -> bool:
        self.stop.set()
        try:
            self.ended.result(timeout)
        except TimeoutError:
            return False
        return True


def _sweep_on(items: Items, seconds: float, stop: threading.Event, ended: "Future[None]") -> None:
    try:
        while not stop.wait(seconds):
            try:
                items.sweep()
            except MemorandaError as error:
                _log.warning("items whose time is over could not be swept: %s", error)
    finally:
        ended.set_result(None)


# -- values in and out


def _results(ops: Sequence[Op], answers: Sequence[Any]) -> list[Result]:
    return [_result(op, answer) for op, answer in zip(ops, answers, strict=True)]


def _result(op: Op, answer: Any) -> Result:
    if isinstance(op, SearchOp):
        return [SearchItem(score=found.score, **_fields_of(found)) for found in answer]
    if isinstance(op, GetOp):
        return None if answer is None else Item(**_fields_of(answer))
    result: Result = answer
    return result


def _fields_of(found: engine_records.Item) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("namespace", "key", "value", "created_at", "updated_at")}


def _tokenized(paths: Sequence[str]) -> list[tuple[str, list[str] | str]]:
    if isinstance(paths, str) or not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
        raise ConfigurationError("An index is a list of JSON paths, such as ['text'].")
    return [(path, path if path == "$" else tokenize_path(path)) for path in paths]


# -- filters

_Paths: TypeAlias = tuple[tuple[str, ...], ...]
"""Where a value may lie: at one of these paths."""


def condition(filter: Mapping[str, Any]) -> Condition:
    """Return what a LangGraph filter asks for.

    Values are compared with their like, numbers as numbers. A mapping without operators is a part of what must be
    there. A key with full stops is that key, or a path. What is missing is equal to None, and different from all else.

    Raises:
        ValueError: an operator is unknown, or compares with what has no order.
    """
    return AllOf(tuple(_at(key, wanted) for key, wanted in filter.items()))


def _at(key: str, wanted: Any) -> Condition:
    if not isinstance(key, str) or not key or any(category(character) == "Cc" for character in key):
        raise ValueError("Invalid filter key: a key is a string that is not empty, without control characters.")
    parts = tuple(key.split("."))
    return _says(((key,), parts) if len(parts) > 1 and all(parts) else ((key,),), wanted)


def _says(paths: _Paths, wanted: Any) -> Condition:
    if not isinstance(wanted, Mapping):
        return _equal(paths, wanted)
    if any(str(name).startswith("$") for name in wanted):
        return AllOf(tuple(_compared(paths, operator, operand) for operator, operand in wanted.items()))
    if not wanted:
        return _somewhere(paths, "eq", {})
    return AllOf(tuple(_says(tuple((*path, name) for path in paths), part) for name, part in wanted.items()))


def _somewhere(paths: _Paths, operator: Operator, value: Any = None) -> Condition:
    first, *others = (Compare(path, operator, value) for path in paths)
    return AnyOf((first, *others)) if others else first


def _compared(paths: _Paths, operator: str, operand: Any) -> Condition:
    if operator == "$eq":
        return _equal(paths, operand)
    if operator == "$ne":
        return Not(_equal(paths, operand))
    if operator not in _ORDERS:
        raise ValueError(f"Unsupported operator: {operator}")
    if isinstance(operand, bool) or not isinstance(operand, int | float | str):
        raise ValueError(f"{operator} compares with a number or a string, not with {type(operand).__name__}")
    order = _ORDERS[operator]
    number = _number(operand) if not isinstance(operand, str) else operand
    if isinstance(number, float) and not math.isfinite(number):
        all_of_them = not math.isnan(number) and (number > 0) == (order in ("lt", "lte"))
        return AnyOf((_somewhere(paths, "lt", 0), _somewhere(paths, "gte", 0)) if all_of_them else ())
    return _somewhere(paths, order, number)


def _equal(paths: _Paths, wanted: Any) -> Condition:
    if wanted is None:
        return Not(_somewhere(paths, "exists"))
    number = _number(wanted)
    if isinstance(number, float) and not math.isfinite(number):
        return AnyOf(())
    return _somewhere(paths, "eq", encode(number, "filter"))


def _number(value: Any) -> Any:
    """Return whole numbers that no JSON of a database holds as the float that is nearest, all else as it is."""
    return float(value) if type(value) is int and abs(value) >= 2**63 else value


# -- embedders


def _name(embed: Any) -> str:
    """Return what the vectors of a model or a function are stamped with."""
    if isinstance(embed, str):
        return f"langchain/{embed}"
    if isinstance(embed, Embeddings):
        return embeddings_name(embed) or f"langchain/{type(embed).__name__}"
    return f"langchain/{getattr(embed, '__module__', '')}.{getattr(embed, '__qualname__', type(embed).__qualname__)}"


def _callable(embeddings: Embeddings) -> Embeddings:
    """Return embeddings that plain code can use, too."""
    awaited = getattr(embeddings, "afunc", None)
    return embeddings if awaited is None else _FromPlainCode(awaited)


class _FromPlainCode(Embeddings):
    """An async function as `Embeddings`, called by plain code on an event loop of its own."""

    def __init__(self, function: Callable[[Sequence[str]], Awaitable[list[list[float]]]]) -> None:
        self._function = function

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        with ThreadPoolExecutor(1) as pool:  # for this thread may run a loop already
            return pool.submit(asyncio.run, self.aembed_documents(texts)).result()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return await self._function(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]
