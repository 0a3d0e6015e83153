"""What the tests of the LangChain adapters share: each runs on both databases, in one of the two modes."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from langchain_memoranda import MemoryStore
from memoranda.testing import ScriptedModel
from memoranda.testing.matrix import one_sqlite


def pytest_configure(config):
    """Register the markers of suites that come with `langchain_tests` and are not run here."""
    for name in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{name}: of langchain_tests")


def pytest_collection_modifyitems(config, items):
    """Run each test on Postgres and on one of the two SQLite databases."""
    one_sqlite(config, items, Path(__file__).parent)


class ScriptedChat(BaseChatModel):
    """Answer from a list: texts, messages, errors, or functions of what is shown; the last answer stays."""

    answers: list[Any] = Field(default_factory=list)
    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        self.seen.append(list(messages))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer = answer(messages) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        message = AIMessage(answer) if isinstance(answer, str) else answer.model_copy(update={"id": None})
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture
def mode(request, backend):
    """The half of the API that this test takes on this database: both halves are in turn."""
    number = crc32(request.node.originalname.encode()) + ("sqlite-memory", "sqlite-file", "postgres").index(
        backend.name
    )
    return ("sync", "async")[number % 2]


@pytest.fixture
def call(mode):
    """Call a runnable's verb in this test's mode, each time on an event loop of its own."""

    def call_(runnable, *args, verb="invoke", **options):
        if mode == "sync":
            return getattr(runnable, verb)(*args, **options)
        return asyncio.run(getattr(runnable, f"a{verb}")(*args, **options))

    return call_


def facts_of(messages):
    """Answer a flush with every fact that its messages hold."""
    said = "\n".join(message["content"] for message in messages)
    found = dict.fromkeys(re.findall(r"The code of station \d+ is \w+", said))
    return json.dumps([{"content": f"{fact}."} for fact in found])


@pytest.fixture
def remembering(make_engine):
    """An engine whose jobs wait for `drain`, and the model it asks: it saves the codes of stations."""

    def make(**options):
        model = ScriptedModel([facts_of] * 50)
        return make_engine(**{"model": model, "background": "external", **options}).handle, model

    return make


@pytest.fixture
def chat_model():
    """A chat model that says what the test wrote down."""
    return lambda *answers, **options: ScriptedChat(answers=list(answers), **options)


@pytest.fixture
def calling():
    """What a model says that calls a tool."""

    def calling_(name, id="call-1", **arguments):
        return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=id)])

    return calling_


class Letters(Embeddings):
    """Counts letters, and how often it is asked."""

    def __init__(self, dims=26):
        self.dims, self.calls = dims, 0

    def embed_documents(self, texts):
        self.calls += 1
        return [[0.01 + text.lower().count(chr(97 + n)) for n in range(self.dims)] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.fixture
def make_letters():
    """Make embedders that find what is spelled alike."""
    return Letters


@pytest.fixture
def make_store(make_engine):
    """Open stores on one engine."""

    def make(engine=None, **options):
        return MemoryStore((engine or make_engine()).handle, **options)

    return make


@pytest.fixture
def do(mode):
    """Call a verb of a store in this test's mode, each time on an event loop of its own."""

    def do_(store, verb, *args, **options):
        if mode == "sync":
            return getattr(store, verb)(*args, **options)
        return asyncio.run(getattr(store, f"a{verb}")(*args, **options))

    return do_


@pytest.fixture
def by_letters(make_store):
    """A store that finds what is spelled alike."""
    return make_store(index={"dims": 26, "embed": Letters(), "fields": ["text"]})
