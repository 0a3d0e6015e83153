"""LangChain's messages: back as they were."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.tool import invalid_tool_call

from langchain_memoranda import from_memoranda, to_memoranda
from langchain_memoranda.messages import said

USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
MESSAGES = [
    HumanMessage("Hello."),
    HumanMessage(["Look:", IMAGE], id="h1", name="ana", additional_kwargs={"seen": True}),
    HumanMessage("NUL \x00 and half a pair \ud83d."),
    SystemMessage("Be brief."),
    AIMessage("Fine.", usage_metadata=USAGE, response_metadata={"model": "m"}, id="a1"),
    AIMessage("", tool_calls=[ToolCall(name="look", args={"day": [1, {"x": None}]}, id="c1")]),
    AIMessage("", invalid_tool_calls=[invalid_tool_call(name="look", args="{day", id="c2", error="no JSON")]),
    AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "So."}]),
    AIMessageChunk("Fi", id="a2"),
    ToolMessage("Found.", tool_call_id="c1", artifact={"raw": b"\x00\xff", "at": datetime(2026, 3, 1, tzinfo=UTC)}),
    ToolMessage("Failed.", tool_call_id="c2", status="error", artifact=[Decimal("1.10"), UUID(int=3), 1.5, None]),
    FunctionMessage("Found.", name="look"),
    ChatMessage("Hi.", role="developer"),
    ChatMessage("Hi.", role="narrator"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.type)
def test_every_message_comes_back_as_it_was(me, message):
    chat = me.conversation("thread-1")
    chat.append([to_memoranda(message)])
    back = from_memoranda(chat.messages()[0])
    assert back == message and type(back) is type(message)


class Colour(Enum):
    """Nothing JSON knows."""

    RED = "red"


class Thing:
    """Nothing that could be stored."""

    def __repr__(self):
        return "<Thing>"


class OwnMessage(BaseMessage):
    """A message of a class of somebody's own."""

    type: str = "own"


def test_what_no_store_could_give_back_is_kept_as_text(me):
    chat = me.conversation("thread-1")
    artifact = {"thing": Thing(), "colour": Colour.RED, "set": {1}, "model": HumanMessage("x"), 3: float("inf")}
    chat.append(
        [to_memoranda(ToolMessage("Found.", tool_call_id="c1", artifact=artifact)), to_memoranda(OwnMessage("Hi."))]
    )
    tool, own = map(from_memoranda, chat.messages())
    assert (tool.artifact["thing"], tool.artifact["colour"], tool.artifact["set"]) == ("<Thing>", "red", [1])
    assert tool.artifact["model"]["content"] == "x" and own == HumanMessage("Hi.")


def deep(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def cyclic():
    value = {"list": []}
    value["list"].append(value)
    return value


class Day(date):
    """A class of somebody's own, such as those of data frames."""


class Silent:
    """It cannot even say what it is."""

    def __repr__(self):
        raise ValueError


UNHEARD_OF = {
    "deep": deep(120),
    "deeper": deep(2_000),
    "cyclic": cyclic(),
    "long": 10**5_000,
    "big": 10**30,
    "own class": Day(2026, 3, 1),
    "silent": Silent(),
    "zone": time(tzinfo=ZoneInfo("Europe/Lisbon")),
}


@pytest.mark.parametrize("kind", UNHEARD_OF)
def test_no_turn_fails_of_what_a_tool_returned(me, kind):
    artifact, chat = UNHEARD_OF[kind], me.conversation("thread-1")
    chat.append([to_memoranda(ToolMessage("Found.", tool_call_id="c1", id="t1", artifact=artifact))])
    [back] = map(from_memoranda, chat.messages())
    assert (back.content, back.tool_call_id, back.id) == ("Found.", "c1", "t1") and back.artifact
    assert back.artifact == artifact or kind != "big"


def test_nor_of_what_a_call_holds(me):
    chat = me.conversation("thread-1")
    args = {"thing": Thing(), "set": {1}, "deep": deep(120), "long": 10**5_000}
    chat.append([to_memoranda(AIMessage("", tool_calls=[ToolCall(name="look", args=args, id="c1")]))])
    [stored] = chat.messages()
    [call] = from_memoranda(stored).tool_calls
    for held in (call["args"], stored.tool_calls[0].arguments):
        assert (held["thing"], held["set"], held["long"]) == ("<Thing>", [1], hex(10**5_000)) and held["deep"]


def test_what_another_framework_has_written_is_put_together_anew(me):
    chat = me.conversation("thread-1")
    call = {"id": "c1", "name": "look", "args": {"day": 1}}
    unread = {"id": "c2", "name": "look", "args": "{day"}
    chat.append(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hello."}], "name": "ana"},
            {"role": "assistant", "content": None, "tool_calls": [call, unread], "id": "a1"},
            {"role": "tool", "content": "Found.", "tool_call_id": "c1"},
        ]
    )
    system, human, ai, tool = map(from_memoranda, chat.messages())
    assert system == SystemMessage("Be brief.") and tool == ToolMessage("Found.", tool_call_id="c1")
    assert human == HumanMessage([{"type": "text", "text": "Hello."}], name="ana")
    assert (ai.id, ai.tool_calls) == ("a1", [ToolCall(name="look", args={"day": 1}, id="c1", type="tool_call")])
    assert ai.invalid_tool_calls[0]["args"] == "{day"


def test_what_nobody_said_is_left_out():
    summary = HumanMessage("A summary.", additional_kwargs={"lc_source": "summarization"})
    assert said([HumanMessage("Hi."), summary, RemoveMessage(id="h1")]) == [HumanMessage("Hi.")]
