"""Our vector store in the place of LlamaIndex's own, and of the one for Postgres, in their own tests.

The tests of the Postgres package speak to a server and to two drivers by themselves: they are given what takes the
calls and does nothing. What its constructor asks for that ours has no use for, engines and a function that joins a
table of the caller's, is done here, for the tests to get as far as what they test.
"""

import os
import sys
import types
from typing import Any
from uuid import uuid4

import llama_index.core.vector_stores
import sqlalchemy
import sqlalchemy.ext.asyncio
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryResult
from pydantic import PrivateAttr

from llama_index.memory.memoranda import KnowledgeVectorStore
from memoranda import MemoryEngine
from memoranda.persona import Persona

_engines: list[MemoryEngine] = []
_others: list[sqlalchemy.Engine] = []


def _somebody() -> Persona:
    """Return a persona of its own each time: the classes we stand for begin empty."""
    if not _engines:
        _engines.append(MemoryEngine(os.environ["MEMORANDA_UPSTREAM_URL"], embedder="hash/words", background="off"))
    return _engines[0].persona(f"p{uuid4().hex}")


class OurSimpleStore(KnowledgeVectorStore):
    """In place of `SimpleVectorStore`."""

    def __init__(self) -> None:
        super().__init__(persona=_somebody())


class PGVectorStore(KnowledgeVectorStore):
    """In place of the class of that name."""

    _engine: Any = PrivateAttr(default=None)
    _join: Any = PrivateAttr(default=None)

    def __init__(self, **options: Any) -> None:
        if ("engine" in options) != ("async_engine" in options):
            raise ValueError("both engines or none")
        super().__init__(persona=_somebody(), collection=options.get("table_name", "nodes"))
        self._join = options.get("customize_query_fn")

    @classmethod
    def from_params(cls, **options: Any) -> "PGVectorStore":
        """Take what theirs takes."""
        return cls(**options)

    async def close(self) -> None:
        """Close nothing: the engine is nobody's alone."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Join the caller's table, if there is one, with what was found."""
        return self._joined(super().query(query, **kwargs))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Async twin of `query`."""
        return self._joined(await super().aquery(query, **kwargs))

    def _joined(self, found: VectorStoreQueryResult) -> VectorStoreQueryResult:
        if self._join is None or not found.ids:
            return found
        ids = [sqlalchemy.select(sqlalchemy.literal(node_id).label("node_id")) for node_id in found.ids]
        rows = sqlalchemy.union_all(*ids).subquery("nodes")
        statement = self._join(sqlalchemy.select(rows.c.node_id), types.SimpleNamespace(node_id=rows.c.node_id))
        with _others[-1].connect() as connection:
            said = {row.pop("node_id"): row for row in map(dict, connection.execute(statement).mappings())}
        for node in found.nodes or ():
            if node.node_id in said:
                node.metadata["custom_fields"] = said[node.node_id]
        return found


class _Silent:
    """A connection that takes every call and answers nothing."""

    autocommit = False

    def __enter__(self) -> "_Silent":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def cursor(self) -> "_Silent":
        return self

    def execute(self, *statement: object) -> None:
        pass

    def fetchone(self) -> tuple[int]:
        return (0,)

    def commit(self) -> None:
        pass

    def close(self) -> None:
        pass


def swap_simple_store() -> None:
    """Put ours in the place of LlamaIndex's own store."""
    llama_index.core.vector_stores.SimpleVectorStore = OurSimpleStore  # type: ignore[misc,assignment]


def swap_postgres_store() -> None:
    """Put ours in the place of the store for Postgres, and silence in the place of its drivers."""
    _module("psycopg2", connect=lambda **options: _Silent())
    _module("asyncpg")
    _module("llama_index.vector_stores")
    _module("llama_index.vector_stores.postgres", PGVectorStore=PGVectorStore)
    plain = sqlalchemy.create_engine

    def create_engine(url: Any, **options: Any) -> Any:
        if not str(url).startswith("postgresql+psycopg2"):
            return plain(url, **options)
        _others.append(plain("sqlite://", poolclass=sqlalchemy.StaticPool))
        return _others[-1]

    async def dispose() -> None:
        pass

    sqlalchemy.create_engine = create_engine
    sqlalchemy.ext.asyncio.create_async_engine = lambda url: types.SimpleNamespace(dispose=dispose)  # type: ignore[assignment]


def _module(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
