"""What the tests of the LlamaIndex adapters share: each runs on both databases, in one of the two modes."""

import asyncio
import json
import re
from pathlib import Path
from zlib import crc32

import pytest
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import PrivateAttr

from memoranda.testing import ScriptedModel
from memoranda.testing.matrix import one_sqlite


def pytest_collection_modifyitems(config, items):
    """Run each test on Postgres and on one of the two SQLite databases."""
    one_sqlite(config, items, Path(__file__).parent)


@pytest.fixture
def mode(request, backend):
    """The half of the API that this test takes on this database: both halves are in turn."""
    name = getattr(request.node, "originalname", request.node.name)
    number = crc32(name.encode()) + ("sqlite-memory", "sqlite-file", "postgres").index(backend.name)
    return ("sync", "async")[number % 2]


@pytest.fixture
def call(mode):
    """Call a verb in this test's mode, each time on an event loop of its own."""

    def call_(thing, verb, *args, **options):
        if mode == "sync":
            return getattr(thing, verb)(*args, **options)

        async def on_a_loop():
            return await getattr(thing, f"a{verb}")(*args, **options)

        return asyncio.run(on_a_loop())

    return call_


def facts_of(messages):
    """Answer a flush with every fact that its messages hold, and a summary with a sentence."""
    said = "\n".join(message["content"] for message in messages)
    found = dict.fromkeys(re.findall(r"The code of station \d+ is \w+", said))
    return json.dumps([{"content": f"{fact}."} for fact in found]) if "JSON" in said else "They spoke of stations."


@pytest.fixture
def remembering(make_engine):
    """Make an engine whose jobs wait, and the model it asks."""

    def make(answers=None, **options):
        model = ScriptedModel([facts_of] * 50 if answers is None else answers)
        return make_engine(**{"model": model, "background": "external", **options}).handle, model

    return make


@pytest.fixture
def ana(engine):
    """The persona of a user."""
    return engine.handle.persona("main", user="ana")


class ScriptedLLM(FunctionCallingLLM):
    """A language model that answers with what a function of the messages returns, and keeps what it was shown."""

    _answer = PrivateAttr()
    _shown = PrivateAttr(default_factory=list)

    def __init__(self, answer):
        super().__init__()
        self._answer = answer

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, context_window=8_192)

    @property
    def shown(self):
        return self._shown

    def chat(self, messages, **options):
        self._shown.append([message.model_copy(deep=True) for message in messages])
        message = self._answer(messages)
        return ChatResponse(message=message, delta=message.content)

    async def achat(self, messages, **options):
        return self.chat(messages)

    def stream_chat(self, messages, **options):
        yield self.chat(messages)

    async def astream_chat(self, messages, **options):
        async def one():
            yield self.chat(messages)

        return one()

    def complete(self, prompt, formatted=False, **options):
        return CompletionResponse(text=self._answer([ChatMessage(role="user", content=prompt)]).content)

    async def acomplete(self, prompt, formatted=False, **options):
        return self.complete(prompt)

    def stream_complete(self, prompt, formatted=False, **options):
        raise NotImplementedError

    astream_complete = stream_complete

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **options):
        return {"messages": [*(chat_history or ()), *([user_msg] if user_msg else ())]}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **options):
        calls = response.message.additional_kwargs.get("calls", ())
        return [ToolSelection(tool_id=id, tool_name=name, tool_kwargs=kwargs) for id, name, kwargs in calls]


@pytest.fixture
def scripted():
    """Make a language model that answers with what a function returns."""
    return ScriptedLLM


@pytest.fixture
def calling():
    """Make an assistant's message that calls a tool, in the form of the installed LlamaIndex."""

    def call_(id, name, **arguments):
        calls = {"calls": [[id, name, arguments]]}
        if not hasattr(types, "ToolCallBlock"):
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls["tool_calls"] = [{"id": id, "type": "function", "function": function}]
            return ChatMessage(role="assistant", content="", additional_kwargs=calls)
        block = types.ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[block], additional_kwargs=calls)

    return call_
