"""A pytest plugin that puts Memoranda's classes in the place of LangChain's own in LangChain's own tests.

`MEMORANDA_UPSTREAM` says which: `history`, `agents`, `prompts` (agents that remember something, and say so in their
prompt), or `indexing` (see `memoranda_vectors`), or one of the stores of `memoranda_store`; without it nothing is
changed, which is the baseline.
"""

import contextlib
import importlib
import os
import sys
import types
from typing import Any
from uuid import uuid4

import pytest

from memoranda import MemoryEngine

_ENGINE = MemoryEngine("sqlite:///:memory:", embedder="hash/words", background="off")


def pytest_configure(config: pytest.Config) -> None:
    """Swap the classes before any test is imported."""
    match os.environ.get("MEMORANDA_UPSTREAM"):
        case "history":
            _swap_histories()
        case "agents":
            _swap_create_agent("main", instructions=False)
        case "prompts":
            _ENGINE.persona("remembering").memories.write("Falcon is released on 12 March.")
            _swap_create_agent("remembering", instructions=True)
        case "indexing":
            importlib.import_module("memoranda_vectors").swap()
        case "store-core" | "store-sqlite" | "store-postgres":
            config.pluginmanager.import_plugin("memoranda_store")


@pytest.fixture(autouse=True)
def _plain_code_may_block(request: pytest.FixtureRequest) -> None:
    """Let plain code that a test calls inside an event loop wait for the database; async hooks may not."""
    if "blockbuster" in request.fixturenames:
        for name, function in request.getfixturevalue("blockbuster").functions.items():
            if name.startswith("sqlite3."):
                hooks = ("before_agent", "before_model", "after_model", "after_agent", "wrap_model_call")
                function.can_block_in("langchain_memoranda/middleware.py", hooks)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what failed, one test a line."""
    with open(os.environ["MEMORANDA_UPSTREAM_LOG"], "a", encoding="utf-8") as log:
        if report.failed:
            log.write(f"failed {report.nodeid}\n")
        elif report.when == "call":
            log.write(f"passed {report.nodeid}\n")


def _swap_histories() -> None:
    import langchain_core.chat_history

    from langchain_memoranda import MemoryChatHistory

    class History(MemoryChatHistory):
        """A history of its own each time, compared by what it holds, as the class it stands for."""

        def __init__(self, messages: Any = ()) -> None:
            super().__init__(_ENGINE.persona("main"), uuid4().hex)
            if messages:
                self.add_messages(messages)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, History) and self.messages == other.messages

        __hash__ = object.__hash__

    class Postgres(MemoryChatHistory):
        """The constructor of langchain-postgres' class."""

        def __init__(self, table: str, session_id: str, *, sync_connection: Any = None, async_connection: Any = None):
            super().__init__(_ENGINE.persona("main"), session_id)

        @staticmethod
        def drop_table(connection: Any, table: str) -> None:
            _ENGINE.persona("main").conversation(_SESSION).clear()

        @staticmethod
        async def adrop_table(connection: Any, table: str) -> None:
            await _ENGINE.persona("main").conversation(_SESSION).aclear()

        @staticmethod
        def create_tables(connection: Any, table: str) -> None:
            pass

        @staticmethod
        async def acreate_tables(connection: Any, table: str) -> None:
            pass

    History.__doc__ = langchain_core.chat_history.InMemoryChatMessageHistory.__doc__  # which a test reads
    setattr(langchain_core.chat_history, "InMemoryChatMessageHistory", History)  # noqa: B010
    _module("langchain_postgres")
    _module("langchain_postgres.chat_message_histories", PostgresChatMessageHistory=Postgres)
    if os.environ.get("MEMORANDA_UPSTREAM_POSTGRES"):
        client, aclient = contextlib.nullcontext, contextlib.nullcontext
        _module("tests.utils", syncpg_client=client, asyncpg_client=aclient)


_SESSION = "00000000-0000-0000-0000-00000000007b"  # the one of langchain-postgres' tests


def _module(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


def _swap_create_agent(persona: str, *, instructions: bool) -> None:
    import langchain.agents
    from langchain.agents import factory

    from langchain_memoranda import MemoryMiddleware

    plain = factory.create_agent

    def create_agent(*args: Any, middleware: Any = (), **options: Any) -> Any:
        ours = MemoryMiddleware(
            _ENGINE.persona(persona),
            conversation=uuid4().hex,
            tools=False,
            instructions=instructions,
            name="memoranda",
        )
        return plain(*args, middleware=[ours, *middleware], **options)

    factory.create_agent = langchain.agents.create_agent = create_agent  # type: ignore[assignment]
