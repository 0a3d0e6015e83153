"""A pytest plugin that puts Memoranda's classes in the place of LlamaIndex's own in LlamaIndex's own tests.

`MEMORANDA_UPSTREAM` says which, one of `SWAPS`; without it nothing is changed, which is the baseline.
`MEMORANDA_UPSTREAM_URL` says on which database.
"""

import os
import sys
import types
from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import signature
from typing import Any
from uuid import uuid4

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from memoranda_vectors import swap_postgres_store, swap_simple_store

from llama_index.memory.memoranda import (
    MemorandaChatStore,
    MemorandaMemory,
    MemorandaSyncChatStore,
    MemoryBlock,
    RecallBlock,
)
from memoranda import MemoryEngine
from memoranda.persona import Persona

_engines: list[MemoryEngine] = []


def pytest_configure(config: pytest.Config) -> None:
    """Swap the classes before any test is imported, and after everything that knows theirs."""
    for module in ("agent.workflow", "chat_engine"):
        import_module(f"llama_index.core.{module}")
    if swap := os.environ.get("MEMORANDA_UPSTREAM"):
        SWAPS[swap]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Do not wait for a container that is none."""
    for item in items:
        if "postgres_container" in getattr(item, "fixturenames", ()):
            vars(item.module)["time"] = types.SimpleNamespace(sleep=lambda seconds: None)  # type: ignore[attr-defined]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what failed, one test a line."""
    with open(os.environ["MEMORANDA_UPSTREAM_LOG"], "a", encoding="utf-8") as log:
        if report.failed:
            log.write(f"failed {report.nodeid}\n")
        elif report.when == "call":
            log.write(f"{report.outcome} {report.nodeid}\n")


def _somebody() -> Persona:
    """Return a persona of its own each time: the classes we stand for begin empty."""
    if not _engines:
        _engines.append(MemoryEngine(os.environ["MEMORANDA_UPSTREAM_URL"], embedder="hash/words", background="off"))
    return _engines[0].persona(f"p{uuid4().hex}")


# -- our classes under the constructors of theirs


class OurMemory(MemorandaMemory):
    """In place of `Memory` and of `ChatMemoryBuffer`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"persona": _somebody(), **options})

    @classmethod
    def from_defaults(cls, persona: Persona | None = None, *args: Any, **options: Any) -> Any:  # noqa: D102
        return super().from_defaults(persona or _somebody(), *args, **options)


class MemoryOnOurs(Memory):
    """The stock `Memory` with our blocks beside its own, and on our store where it takes one."""

    def __init__(self, **options: Any) -> None:
        somebody = _somebody()
        ours = [MemoryBlock(persona=somebody), RecallBlock(persona=somebody)]
        if "chat_store" in signature(Memory.from_defaults).parameters:
            options["sql_store"] = MemorandaChatStore(persona=somebody)
        super().__init__(**{**options, "memory_blocks": [*options.get("memory_blocks", ()), *ours]})


class OurStore(MemorandaChatStore):
    """In place of `SQLAlchemyChatStore`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(persona=_somebody())


class OurSyncStore(MemorandaSyncChatStore):
    """In place of `SimpleChatStore`, and of the stores of two packages."""

    def __init__(self, store: Any = None, persona: Persona | None = None) -> None:
        super().__init__(persona=persona or _somebody())
        for key, messages in (store or {}).items():
            self.set_messages(key, [ChatMessage.model_validate(message) for message in messages])

    @classmethod
    def from_uri(cls, uri: str, **options: Any) -> "OurSyncStore":  # noqa: D102
        return cls()


# -- swaps


def _swap_memory() -> None:
    _replace(Memory, OurMemory)


def _swap_agent_memory() -> None:
    _replace(ChatMemoryBuffer, OurMemory)
    _replace(Memory, OurMemory)


def _swap_blocks() -> None:
    _replace(Memory, MemoryOnOurs)


def _swap_store() -> None:
    _replace(SQLAlchemyChatStore, OurStore)


def _swap_simple_store() -> None:
    _replace(SimpleChatStore, OurSyncStore)


def _swap_sqlite_package() -> None:
    _module("llama_index.storage.chat_store.sqlite", SQLiteChatStore=OurSyncStore)


def _swap_postgres_package() -> None:
    container = types.SimpleNamespace(
        reload=lambda: None,
        stop=lambda: None,
        remove=lambda: None,
        attrs={"NetworkSettings": {"Ports": {"5432/tcp": [{"HostPort": "0"}]}}},
    )
    containers = types.SimpleNamespace(run=lambda *args, **options: container)
    client = types.SimpleNamespace(containers=containers, close=lambda: None)
    _module("asyncpg")  # the tests are skipped where it is not
    _module("docker", from_env=lambda: client)
    _module("docker.models")
    _module("docker.models.containers", Container=object)
    _module("llama_index.storage.chat_store.postgres", PostgresChatStore=OurSyncStore)
    _module("llama_index.storage.chat_store.postgres.base", get_data_model=None)


SWAPS: dict[str, Callable[[], None]] = {
    "memory": _swap_memory,
    "blocks": _swap_blocks,
    "stores": _swap_store,
    "sqlite-store": _swap_sqlite_package,
    "postgres-store": _swap_postgres_package,
    "buffers": _swap_simple_store,
    "agents": _swap_agent_memory,
    "chat-engines": _swap_agent_memory,
    "vectors": swap_simple_store,
    "postgres-vectors": swap_postgres_store,
}
"""What is put in the place of what, for each of the suites of `run.py`."""


def _replace(theirs: type, ours: type) -> None:
    """Put a class wherever the other is known by name, as a default too."""
    for name, module in list(sys.modules.items()):
        if name.startswith("llama_index.core") and name != theirs.__module__:
            for known, value in list(vars(module).items()):
                if value is theirs:
                    setattr(module, known, ours)
                elif isinstance(value, type) and "from_defaults" in vars(value):
                    function = value.from_defaults.__func__  # type: ignore[attr-defined]
                    function.__defaults__ = _with(ours, theirs, function.__defaults__)
    # Its own module last: tests import it from there, and it goes on using the class as it is.
    setattr(sys.modules[theirs.__module__], theirs.__name__, ours)


def _with(ours: type, theirs: type, values: Iterable[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(ours if value is theirs else value for value in values)


def _module(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
