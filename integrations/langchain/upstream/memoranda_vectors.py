"""Our vector store and record manager in the place of LangChain's, in its tests of indexing.

`MEMORANDA_UPSTREAM_URL` says on which database. Those tests set the clock by patching `get_time`; ours asks the
database, so what is written under a patched clock is dated afterwards.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import langchain_core.indexing
import langchain_core.vectorstores
from sqlalchemy import update

from langchain_memoranda import KnowledgeRecordManager, KnowledgeVectorStore
from memoranda import MemoryEngine
from memoranda.persona import Persona

_engines: list[MemoryEngine] = []


def swap() -> None:
    """Swap the classes, before any test is imported."""
    langchain_core.indexing.InMemoryRecordManager = OurManager  # type: ignore[misc,assignment]
    langchain_core.vectorstores.InMemoryVectorStore = OurStore  # type: ignore[misc,assignment]


def _somebody() -> Persona:
    """Return a persona of its own each time: the classes we stand for begin empty."""
    if not _engines:
        _engines.append(MemoryEngine(os.environ["MEMORANDA_UPSTREAM_URL"], embedder="hash/words", background="off"))
    return _engines[0].persona(f"p{uuid4().hex}")


class _Held:
    """What a test reads of a store that holds everything in a mapping: its ids."""

    def __init__(self, store: "OurStore") -> None:
        self._store = store

    def __iter__(self) -> Iterator[str]:
        return iter([node.key for node in self._store._nodes.get()])

    def keys(self) -> list[str]:
        """Return the ids."""
        return list(self)


class OurStore(KnowledgeVectorStore):
    """In place of `InMemoryVectorStore`."""

    def __init__(self, embedding: Any) -> None:
        super().__init__(_somebody(), embedding=embedding)

    @property
    def store(self) -> _Held:
        """The ids that are held."""
        return _Held(self)


class OurManager(KnowledgeRecordManager):
    """In place of `InMemoryRecordManager`, with a clock that a test may set."""

    def __init__(self, namespace: str) -> None:
        self._persona = _somebody()
        super().__init__(self._persona, namespace)

    async def aget_time(self) -> float:
        """Ask the clock that a test sets for both halves of the API."""
        return self.get_time()

    def update(self, keys: Sequence[str], *, time_at_least: float | None = None, **options: Any) -> None:
        """Note keys, under the clock that a test has set."""
        set_ = "get_time" in vars(self)
        super().update(keys, time_at_least=None if set_ else time_at_least, **options)
        self._dated(keys, set_)

    async def aupdate(self, keys: Sequence[str], *, time_at_least: float | None = None, **options: Any) -> None:
        """Async twin of `update`."""
        set_ = "get_time" in vars(self)
        await super().aupdate(keys, time_at_least=None if set_ else time_at_least, **options)
        self._dated(keys, set_)

    def _dated(self, keys: Sequence[str], set_: bool) -> None:
        if not set_ or not keys:
            return
        moment, scope = self.get_time(), self._persona.scope

        def date(conn: Any, tables: Any) -> None:
            k = tables.record_keys
            own = (k.c.tenant == scope.tenant, k.c.persona == scope.persona, k.c.namespace == self.namespace)
            conn.execute(update(k).where(*own, k.c.key.in_(list(keys))).values(updated_at=moment))

        _engines[0]._database.run(date)
