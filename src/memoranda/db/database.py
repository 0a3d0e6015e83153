"""The one place that knows engines, connections, threads and event loops.

Database code is plain functions `fn(conn, tables, ...)`. `run` calls one in a transaction in the calling thread; `arun`
calls the same one in a thread of the database's own pool, so that an event loop never waits for a disk or a socket.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Concatenate, Literal, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy import exc as alchemy
from sqlalchemy.pool import Pool

from memoranda.db import migrations
from memoranda.db.dialects import dialect_for, parse_url
from memoranda.db.dialects.base import EngineOptions
from memoranda.db.schema import Tables, declare
from memoranda.errors import ConfigurationError, StoreBusy, StoreError, StoreUnavailable
from memoranda.forks import ForkGate, renew_after_fork

T = TypeVar("T")
P = ParamSpec("P")
Transaction = Callable[Concatenate[Connection, Tables, P], T]

_QUEUE_PER_THREAD = 64  # async calls that may wait for each thread before the next one is refused


class Database:
    """One database, opened lazily, used from any thread, any event loop and after a fork."""

    def __init__(self, target: str | Engine, *, schema: str, options: EngineOptions) -> None:
        """Keep the address or the caller's engine; nothing is opened yet.

        Raises:
            ConfigurationError: the address cannot be used.
        """
        self._options = options
        self._owned = isinstance(target, str)
        if isinstance(target, str):
            url = parse_url(target)
            self.dialect = dialect_for(url.get_backend_name(), schema=schema)
            self._engine = self.dialect.create_engine(url, options)
        elif isinstance(target, Engine):
            if getattr(target.dialect, "skip_autocommit_rollback", False):  # SQLAlchemy has it since 2.0.43
                raise ConfigurationError(
                    "this engine leaves transactions open that fail: create it without skip_autocommit_rollback"
                )
            self.dialect = dialect_for(target.dialect.name, schema=schema)
            self.dialect.adopt(target)
            self._engine = target
        else:
            raise ConfigurationError("give a database address or a SQLAlchemy Engine (not an AsyncEngine)")
        self._view = _at_level(self._engine, self.dialect.isolation())
        self.tables = declare(self.dialect)
        self._serial = self.dialect.serial(self._engine)
        self._closed = False
        self._inherited: list[Pool] = []
        self._left_behind = False
        self._start()
        renew_after_fork(self)

    def _start(self) -> None:
        self._ready = False
        self._preparing = threading.Lock()
        self._hiring = threading.Lock()
        self._turn = threading.RLock()
        self._forks = ForkGate(self._options.timeout)
        self._executor: ThreadPoolExecutor | None = None
        self._places = threading.BoundedSemaphore(self._options.pool_size * (1 + _QUEUE_PER_THREAD))

    # -- running functions

    def run(self, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a transaction that commits when it returns.

        Raises:
            StoreError: the database failed; the subclass says how.
        """
        return self._call(True, fn, *args, **kwargs)

    def read(self, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads."""
        return self._call(False, fn, *args, **kwargs)

    async def arun(self, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what `run` does without blocking the event loop; a cancelled call still commits what it had begun."""
        return await self._in_thread(lambda: self._call(True, fn, *args, **kwargs))

    async def aread(self, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what `read` does without blocking the event loop."""
        return await self._in_thread(lambda: self._call(False, fn, *args, **kwargs))

    async def aoutside(self, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what `outside` does without blocking the event loop."""
        return await self._in_thread(lambda: self.outside(fn, *args, **kwargs))

    def outside(self, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function outside any transaction, in turn with writes, for statements that refuse one."""
        self._enter()
        self._prepare()
        try:
            with self._taking_turns(True), self._gate(), self._engine.connect() as conn:
                return fn(conn.execution_options(isolation_level="AUTOCOMMIT"), self.tables, *args, **kwargs)
        except (alchemy.DBAPIError, alchemy.TimeoutError) as error:
            raise self._mapped(error) from _discreet(error)

    def _call(self, write: bool, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._enter()
        self._prepare()
        return self._attempt(write, fn, *args, **kwargs)

    def _attempt(self, write: bool, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return self._transact(write, fn, *args, **kwargs)
        except _ConnectionLost as lost:
            # A server that was restarted leaves dead connections in the pool, which is fresh now: so once more. Only a
            # transaction that had not reached its commit can be tried again without being done twice.
            if lost.committing:
                raise StoreUnavailable(
                    "The connection was lost while committing: the write may or may not have been stored. "
                    "Writing the same memory again is safe where duplicates are held off."
                ) from _discreet(lost.error)
        try:
            return self._transact(write, fn, *args, **kwargs)
        except _ConnectionLost as lost:
            raise self._mapped(lost.error) from _discreet(lost.error)

    def _transact(self, write: bool, fn: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        committing = False
        try:
            with self._taking_turns(write), self._gate(), self._view.connect() as conn:
                self.dialect.begin(conn, write=write)
                result = fn(conn, self.tables, *args, **kwargs)
                if write:
                    committing = True
                    conn.commit()
                return result
        except (alchemy.DBAPIError, alchemy.TimeoutError) as error:
            if isinstance(error, alchemy.DBAPIError) and error.connection_invalidated:
                raise _ConnectionLost(committing, error) from None
            raise self._mapped(error) from _discreet(error)

    def _gate(self) -> AbstractContextManager[None]:
        """Keep forks away from what they would copy in an unusable state.

        SQLite has locks of its own in this process, a server's client has none; but a child that is made while
        SQLAlchemy gets to know a database, in the first connection, would believe that this was done.
        """
        return nullcontext() if self._ready and self._serial == "none" else self._forks.passed()

    @contextmanager
    def _taking_turns(self, write: bool) -> Iterator[None]:
        if self._serial == "none" or (self._serial == "writes" and not write):
            yield
            return
        if not self._turn.acquire(timeout=self._options.timeout):
            raise StoreBusy()
        try:
            yield
        finally:
            self._turn.release()

    def _mapped(self, error: alchemy.DBAPIError | alchemy.TimeoutError) -> StoreError:
        """Return our error for a driver's, once for all; programming errors pass through untouched."""
        if isinstance(error, alchemy.TimeoutError):
            return StoreBusy()
        return self.dialect.translate(error) or StoreError(
            f"The database refused a statement: {type(error.orig).__name__}."
        )

    # -- threads

    async def _in_thread(self, call: Callable[[], T]) -> T:
        self._enter()
        if not self._places.acquire(blocking=False):
            raise StoreBusy()
        places, context = self._places, contextvars.copy_context()
        try:
            future = self._threads().submit(context.run, call)
        except BaseException:
            places.release()
            raise
        future.add_done_callback(lambda _: places.release())
        return await asyncio.wrap_future(future)

    def _threads(self) -> ThreadPoolExecutor:
        with self._hiring:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._options.pool_size, thread_name_prefix="memoranda")
            return self._executor

    # -- life

    def _enter(self) -> None:
        if self._closed:
            raise ConfigurationError("This engine was closed: make a new one.")
        if self._left_behind:
            raise ConfigurationError("A store in memory stays with the process that made it: make a new engine here.")

    def _prepare(self) -> None:
        if not self._ready:
            with self._preparing:
                self._prepare_once()

    def _prepare_once(self) -> None:
        if self._ready:
            return
        if not self._attempt(False, _is_current):
            if self.dialect.auto_upgrade():
                self._attempt(True, _upgrade)
            else:
                self._attempt(False, _check)
        self._ready = True

    @property
    def is_used(self) -> bool:
        """Whether anything was asked of it yet, and it is not closed."""
        return self._ready and not self._closed

    @property
    def is_absent(self) -> bool:
        """Whether connecting would create the database."""
        return self.dialect.is_absent(self._engine.url)

    def after_fork(self) -> None:
        """Neither use nor close the parent's connections, nor wait for threads and locks this child does not have."""
        self._inherited.append(self._engine.pool)
        self._left_behind = self._serial == "all"
        if not self._left_behind:
            self._engine.dispose(close=False)
        self.dialect.after_fork()
        self._start()

    def setup(self) -> list[str]:
        """Create or upgrade the tables, and return the names of the revisions that were applied."""
        self._enter()
        applied = self._attempt(True, _upgrade)
        self._ready = True
        return applied

    async def asetup(self) -> list[str]:
        """Do what `setup` does without blocking the event loop."""
        return await self._in_thread(self.setup)

    def revision(self) -> str | None:
        """Return the revision the tables are at, None when there are none."""
        self._enter()
        if self.is_absent:
            return None
        return self._attempt(False, lambda conn, tables: migrations.current(conn, tables.dialect))

    async def arevision(self) -> str | None:
        """Do what `revision` does without blocking the event loop."""
        return await self._in_thread(self.revision)

    def close(self) -> None:
        """Give back every connection and thread; an engine that a caller handed in stays open."""
        if self._closed:
            return
        self._closed = True
        if self._executor is not None:
            self._executor.shutdown(wait=True)
        if self._owned and not self._left_behind:
            self._engine.dispose()

    async def aclose(self) -> None:
        """Do what `close` does without blocking the event loop."""
        await asyncio.to_thread(self.close)


def _at_level(engine: Engine, level: Literal["AUTOCOMMIT"] | None) -> Engine:
    return engine.execution_options(isolation_level=level) if level else engine


class _ConnectionLost(Exception):
    """The server went away under a transaction."""

    def __init__(self, committing: bool, error: alchemy.DBAPIError) -> None:
        super().__init__()
        self.committing = committing
        self.error = error


class DriverError(Exception):
    """What the database said, without the row it said it of: tracebacks end in logs."""


def _discreet(error: alchemy.DBAPIError | alchemy.TimeoutError) -> DriverError:
    """Return the cause to show: kind, SQLSTATE and constraint, never a parameter or a row."""
    original = getattr(error, "orig", None) or error
    details = [type(original).__name__, getattr(original, "sqlstate", None)]
    details.append(getattr(getattr(original, "diag", None), "constraint_name", None))
    if getattr(error, "statement", None) is None:  # it failed to connect: what libpq says then names no row
        details.append(str(original))
    return DriverError(" ".join(str(detail) for detail in details if detail))


def _is_current(conn: Connection, tables: Tables) -> bool:
    return migrations.current(conn, tables.dialect) == migrations.HEAD


def _check(conn: Connection, tables: Tables) -> None:
    migrations.check(conn, tables.dialect)


def _upgrade(conn: Connection, tables: Tables) -> list[str]:
    return migrations.upgrade(conn, tables.dialect)
