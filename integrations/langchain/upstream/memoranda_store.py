"""A pytest plugin that puts `MemoryStore` in the place of LangGraph's own stores in LangGraph's own tests.

`MEMORANDA_UPSTREAM` says which: `store-core`, `store-sqlite` or `store-postgres`; `MEMORANDA_UPSTREAM_URL` is the
database to run them on: a Postgres one that has our tables, or SQLite. What the classes that are stood in for do by
themselves, and `MemoryStore` only when it is told to, is told here: they index nothing without an index configuration,
and the one on SQLite begins no time anew unless its configuration says so.
"""

import os
import re
import sys
import types
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from langchain_memoranda import MemoryStore
from memoranda import MemoryEngine
from memoranda.db.migrations import REVISIONS
from memoranda.namespaces import encode

_SUITE = os.environ.get("MEMORANDA_UPSTREAM", "")
_GIVEN = os.environ.get("MEMORANDA_UPSTREAM_URL", "")
_URL = "" if _GIVEN.startswith("sqlite") else _GIVEN
_SERVER = os.environ.get("MEMORANDA_UPSTREAM_SERVER", "")
"""A Postgres server on which the tests of the Postgres store make their databases, which stay empty."""


def pytest_configure(config: pytest.Config) -> None:
    """Swap the classes before any test is imported."""
    match _SUITE:
        case "store-core":
            import langgraph.store.memory

            setattr(langgraph.store.memory, "InMemoryStore", InMemory)  # noqa: B010
        case "store-sqlite":
            _module("langgraph.store.sqlite", SqliteStore=Store, AsyncSqliteStore=AsyncStore)
            private = ("NS_MATCH_FUNCTION", "BaseSqliteStore", "_escape_glob_literal", "_namespace_match_pattern")
            _module("langgraph.store.sqlite.base", SqliteIndexConfig=dict, **dict.fromkeys(private))
            _module("langgraph.store.sqlite.aio", AsyncSqliteStore=AsyncStore)
        case "store-postgres":
            _module("langgraph.store.postgres", PostgresStore=Store, AsyncPostgresStore=AsyncStore)
            private = ("_escape_like_literal", "_namespace_match_pattern")
            _module("langgraph.store.postgres.base", **dict.fromkeys(private))
            _module("langgraph.checkpoint.postgres", _ainternal=types.SimpleNamespace())


def pytest_collection_modifyitems() -> None:
    """Send the tests of the Postgres store to our server."""
    if _SUITE == "store-postgres":
        for name in ("tests.conftest", "tests.test_store", "tests.test_async_store"):
            if name in sys.modules:
                setattr(sys.modules[name], "DEFAULT_URI", _SERVER)  # noqa: B010


def pytest_unconfigure() -> None:
    """Close what the tests have used."""
    for engine in _engines.values():
        engine.close()


_engines: dict[str, MemoryEngine] = {}


def _engine(address: str) -> MemoryEngine:
    """Return an engine that stays open: the one on Postgres, else one a database of the tests."""
    file = address and ":" not in address
    url = _URL or (f"sqlite:///{address}" if file else "sqlite://")
    name = _URL or address or "memory"
    if name not in _engines:
        _engines[name] = MemoryEngine(url, embedder="hash/words", background="off")
    return _engines[name]


class Base(MemoryStore):
    """What the stand-ins have in common: a tenant a database, and what tests look at inside."""

    MIGRATIONS: Any = REVISIONS

    def __init__(self, address: str = "", *, index: Any = None, ttl: Any = None) -> None:
        if index is not None and "text_fields" in index:
            index = {**index, "fields": index["text_fields"]}
        if _SUITE == "store-sqlite":
            ttl = {"refresh_on_read": False, **(ttl or {})}
        tenant = uuid4().hex if address in ("", ":memory:") else re.sub(r"\W", "_", address)[-150:]
        engine = _engine("" if address == ":memory:" else address)
        super().__init__(engine.persona("main", tenant=tenant), index=index or False, ttl=ttl)
        self._of, self._tenant = engine, tenant

    def setup(self) -> Any:
        """Make the tables."""
        self._of.setup()

    def _look(self, statement: str, parameters: Any = ()) -> Any:
        """Do with our tables what a test does with the table of the store it is made for."""
        database = self._of._database
        i = database.tables.store_items
        *more, prefix, key = parameters or ("", "")
        own = (i.c.tenant == self._tenant, i.c.namespace == encode(prefix.split(".")), i.c.key == key)
        if "COUNT(*)" in statement:
            counted = select(func.count()).select_from(i).where(*own)
            return {"n": database.read(lambda conn, _: conn.scalar(counted))}
        if statement.startswith("SELECT expires_at"):
            return {"expires_at": database.read(lambda conn, _: conn.scalar(select(i.c.expires_at).where(*own)))}
        if statement.startswith("UPDATE"):
            from datetime import timedelta

            def change(conn: Any, tables: Any) -> None:
                now = tables.dialect.now(conn)
                past = now - timedelta(seconds=more[0] if more else 60)
                conn.execute(update(i).where(*own).values({"updated_at" if more else "expires_at": past}))

            database.run(change)
        return None


class Cursor:
    """A cursor of one row."""

    def __init__(self, store: Base) -> None:
        self._store = store
        self._row: Any = None

    def execute(self, statement: str, parameters: Any = ()) -> None:
        """Do a statement."""
        self._row = self._store._look(statement, parameters)

    def fetchone(self) -> Any:
        """Return what it gave."""
        return self._row


class AsyncCursor(Cursor):
    """The same for a loop."""

    async def execute(self, statement: str, parameters: Any = ()) -> None:  # type: ignore[override]
        """Do a statement."""
        super().execute(statement, parameters)

    async def fetchone(self) -> Any:
        """Return what it gave."""
        return self._row


class Store(Base):
    """In the place of the two synchronous stores."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_: Any) -> Iterator[Any]:
        """Give a store on an engine that stays open."""
        yield cls(conn_string, index=index, ttl=ttl)

    @contextmanager
    def _cursor(self) -> Iterator[Cursor]:
        yield Cursor(self)


class AsyncStore(Base):
    """In the place of the two asynchronous stores."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]
        cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_: Any
    ) -> AsyncIterator[Any]:
        """Give a store on an engine that stays open."""
        yield cls(conn_string, index=index, ttl=ttl)

    async def setup(self) -> None:
        """Make the tables."""
        await self._of.asetup()

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        """Sweep."""
        return await self.asweep_ttl()

    async def start_ttl_sweeper(self, minutes: float | None = None) -> Any:  # type: ignore[override]
        """Begin to sweep now and then."""
        return super().start_ttl_sweeper(minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # type: ignore[override]
        """End it."""
        return super().stop_ttl_sweeper(timeout)

    @asynccontextmanager
    async def _cursor(self) -> AsyncIterator[AsyncCursor]:
        yield AsyncCursor(self)


class InMemory(Base):
    """In the place of the store in memory."""

    def __init__(self, *, index: Any = None) -> None:
        super().__init__(index=index)


def _module(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
