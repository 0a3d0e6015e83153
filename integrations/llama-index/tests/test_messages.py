"""Messages of LlamaIndex go in and come out as they were, and other frameworks read them."""

from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    AudioBlock,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
)

from langchain_memoranda.messages import all_from_memoranda as to_langchain
from langchain_memoranda.messages import all_to_memoranda as from_langchain
from llama_index.memory.memoranda import MemorandaMemory
from llama_index.memory.memoranda.messages import all_from_memoranda, from_memoranda, to_memoranda

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PICTURE = {"type": "image", "base64": "QUJD", "mime_type": "image/png"}
QUOTE = CitationBlock(cited_content=TextBlock(text="q"), source="s", title="t", additional_location_info={"page": 1})
# 0.14.0 has none of these: calls of tools are in a provider's own form there.
IS_RECENT = hasattr(types, "ToolCallBlock")
if IS_RECENT:
    VIDEO = [types.VideoBlock(url="https://x.test/v.mp4")]
    THOUGHT = [types.ThinkingBlock(content="hm", additional_information={"signature": b"\xff\0"})]
    CALL = [types.ToolCallBlock(tool_call_id="c1", tool_name="timetable", tool_kwargs={"day": "today"})]
    CALLS = {}
else:
    VIDEO, THOUGHT, CALL = [], [], []
    CALLS = {"tool_calls": [{"id": "c1", "function": {"name": "timetable", "arguments": '{"day": "today"}'}}]}
WHOLE = [
    ChatMessage(role="developer", content="Be brief."),
    ChatMessage(role="user", blocks=[TextBlock(text="Look:"), ImageBlock(image=PIXEL, image_mimetype="image/png")]),
    ChatMessage(role="user", blocks=[AudioBlock(audio=PIXEL, format="wav"), *VIDEO]),
    ChatMessage(
        role="user",
        blocks=[
            DocumentBlock(data=PIXEL, title="a.pdf", document_mimetype="application/pdf"),
            CitableBlock(title="t", source="s", content=[TextBlock(text="cite me")]),
            CachePoint(cache_control={"type": "ephemeral"}),
        ],
    ),
    ChatMessage(
        role="assistant",
        blocks=[*THOUGHT, TextBlock(text="a"), *CALL],
        additional_kwargs={"usage": {"n": 1}, "raw": b"\xff", **CALLS},
    ),
    ChatMessage(role="tool", content="nine\0", additional_kwargs={"tool_call_id": "c1", "name": "timetable"}),
    ChatMessage(
        role="assistant",
        blocks=[QUOTE],
    ),
    ChatMessage(role="assistant", blocks=[]),
    ChatMessage(role="chatbot", content=""),
]


def test_nothing_of_a_message_is_lost(ana, call):
    memory = MemorandaMemory(persona=ana, session_id="s")
    call(memory, "put_messages", WHOLE)
    assert call(memory, "get_all") == WHOLE


def test_a_message_is_counted_with_its_calls_thinking_and_media():
    assert to_memoranda(WHOLE[4]).tool_calls[0].arguments == {"day": "today"}
    said = [to_memoranda(message).content for message in WHOLE[1:5]]
    parts = [part["type"] for content in said if not isinstance(content, str) for part in content]
    recent = ["text", "image", "audio", "video", "file", "text", "reasoning", "text"]
    assert parts == (recent if IS_RECENT else ["text", "image", "audio", "file", "text"])


class Unknown:
    """An object of a provider's own."""


def test_what_no_store_could_give_back_is_kept_in_a_plain_form(ana, call):
    function = SimpleNamespace(model_dump=lambda: {"name": "f", "arguments": '{"a": 1}'})
    provider = SimpleNamespace(to_dict=lambda: {"id": "c9", "type": "function", "function": function.model_dump()})
    odd = ChatMessage(role="assistant", content="x", additional_kwargs={"tool_calls": [provider], "odd": Unknown()})
    memory = MemorandaMemory(persona=ana, session_id="s")
    call(memory, "put", odd)
    [read] = call(memory, "get_all")
    assert read.additional_kwargs["tool_calls"][0]["function"]["name"] == "f"
    assert "Unknown object" in read.additional_kwargs["odd"]
    endless: dict[str, object] = {}
    endless["self"] = endless
    call(memory, "put", ChatMessage(role="user", content="y", additional_kwargs=endless))
    stored, _ = memory.conversation.messages()
    assert (stored.tool_calls[0].id, stored.tool_calls[0].arguments) == ("c9", {"a": 1})


def test_what_cannot_be_read_back_hides_nothing_else(ana, call, tmp_path):
    memory = MemorandaMemory(persona=ana, session_id="s")
    picture = tmp_path / "a.png"
    picture.write_bytes(PIXEL)
    call(memory, "put", ChatMessage(role="user", blocks=[TextBlock(text="Look:"), ImageBlock(path=picture)]))
    assert isinstance(call(memory, "get")[0].blocks[1], ImageBlock)
    picture.unlink()
    later = to_memoranda(ChatMessage(role="user", content="hello", additional_kwargs={"kept": 1}))
    memory.conversation.append(replace(later, id="x", payload={**later.payload, "blocks": [{"block_type": "novel"}]}))
    [shown, other] = call(memory, "get")
    assert shown.blocks[0].text == "Look:" and "a.png" in shown.blocks[1].text
    assert other.content == "hello" and other.additional_kwargs == {"kept": 1}
    assert call(memory, "get_all") == [shown, other]


@pytest.mark.skipif(not IS_RECENT, reason="not applicable: blocks take no streams here")
def test_a_stream_is_stored_from_its_start(ana, call):
    memory = MemorandaMemory(persona=ana, session_id="s")
    stream = BytesIO(PIXEL)
    stream.read()  # as a model is shown it
    call(memory, "put", ChatMessage(role="user", blocks=[ImageBlock(image=stream, image_mimetype="image/png")]))
    assert call(memory, "get_all")[0].blocks[0].resolve_image().read() == PIXEL


def test_the_same_words_twice_are_two_messages(ana, call):
    memory = MemorandaMemory(persona=ana, session_id="s")
    for _ in range(2):
        call(memory, "put", ChatMessage(role="user", content="yes"))
    assert [message.content for message in call(memory, "get_all")] == ["yes", "yes"]
    call(memory, "put_messages", [])
    assert len(call(memory, "get_all")) == 2


def test_a_conversation_of_langchain_is_continued_and_handed_back(ana, call):
    chat = ana.conversation("shared")
    begun = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "Which?"}, PICTURE]),
        AIMessage("", tool_calls=[{"name": "timetable", "args": {"day": "today"}, "id": "c0", "type": "tool_call"}]),
        ToolMessage("nine", tool_call_id="c0", name="timetable"),
        AIMessage("At nine."),
    ]
    chat.append(from_langchain(begun))
    memory = MemorandaMemory(persona=ana, session_id="shared")
    read = call(memory, "get_all")
    assert [message.role.value for message in read] == ["system", "user", "assistant", "tool", "assistant"]
    if IS_RECENT:
        [asked] = read[2].blocks
        assert (asked.tool_call_id, asked.tool_name, asked.tool_kwargs) == ("c0", "timetable", {"day": "today"})
    else:
        assert read[2].additional_kwargs["tool_calls"][0]["function"]["name"] == "timetable"
    assert read[3].additional_kwargs == {"tool_call_id": "c0", "name": "timetable"}
    assert isinstance(read[1].blocks[1], ImageBlock)

    call(memory, "put_messages", [ChatMessage(role="user", content="And?"), WHOLE[4], WHOLE[5]])
    call(memory, "set", [*read, *call(memory, "get_all")[5:]])  # said again, it is what it was
    back = to_langchain(chat.messages())
    assert [message.model_dump(exclude={"id"}) for message in back[:5]] == [m.model_dump(exclude={"id"}) for m in begun]
    assert back[6].tool_calls[0]["args"] == {"day": "today"} and back[7].tool_call_id == "c1"
    assert all_from_memoranda(chat.messages())[6] == WHOLE[4]


@pytest.mark.parametrize("message", WHOLE)
def test_translation_alone_is_stable(message):
    assert from_memoranda(to_memoranda(message)) == message
