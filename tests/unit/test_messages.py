"""Messages in other forms: nothing of them is lost, and what is none is refused with its row."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.drafts import Setting
from memoranda.errors import InvalidInput
from memoranda.messages import Message, ToolCall
from memoranda.messages import drafts as message_drafts
from memoranda.messages import forms as message_forms
from memoranda.presets import resolve
from memoranda.scope import Scope
from memoranda.text import Tokenizer

NOW = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
SETTING = Setting(
    scope=Scope(user="ana"), policies=resolve("standard"), tokenizer=Tokenizer("english"), zone=UTC, now=NOW
)


def read(said, zone=UTC):
    return message_forms.given(said, zone)


def stored(message):
    """Send a message through the row it becomes."""
    draft = message_drafts.draft(message, SETTING)
    texts = (draft.key, draft.content, draft.body, draft.payload)
    assert all("\0" not in text and text.encode() is not None for text in texts if text is not None)
    row = SimpleNamespace(
        role=message.role,
        content=draft.content,
        body=draft.body,
        key=draft.key,
        codec=message.codec,
        payload=draft.payload,
        created_at=NOW,
        position=None,
        tokens=None,
        folded_at=None,
        pending_at=None,
    )
    return message_forms.stored(row)


# -- what is given


def test_a_text_is_the_user_s_message():
    assert read("hello") == [Message(role="user", content="hello")]
    assert read(["hello", "there"]) == [Message(role="user", content="hello"), Message(role="user", content="there")]
    assert read([]) == []


def test_a_mapping_is_in_openai_s_form():
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"for": "Lisbon"}'}}
    said = read([{"role": "assistant", "content": None, "tool_calls": [call], "id": "m1", "refusal": None}])
    assert said == [
        Message(
            role="assistant",
            id="m1",
            tool_calls=(ToolCall(id="c1", name="look", arguments={"for": "Lisbon"}),),
            extra={"refusal": None},
        )
    ]
    assert read({"role": "tool", "tool_call_id": "c1", "content": ["42", {"type": "text", "text": "!"}]}) == [
        Message(role="tool", tool_call_id="c1", content=({"type": "text", "text": "42"}, {"type": "text", "text": "!"}))
    ]


def test_other_names_of_roles_are_known_and_kept():
    names = ("developer", "human", "ai", "function", "chatbot")
    said = read([{"role": name, "content": "x"} for name in names])
    assert [message.role for message in said] == ["system", "user", "assistant", "tool", "assistant"]
    assert [message_forms.chat_form(message)["role"] for message in said] == list(names)


@pytest.mark.parametrize("arguments", ['{"a": 1', "", "[1]", '{"a": NaN}', "no", '{"a": ' + "[" * 500, "7" * 5_000])
def test_arguments_that_are_no_json_are_kept_as_the_model_wrote_them(arguments):
    said = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": arguments}}],
    }
    [message] = read(said)
    assert message.tool_calls[0].arguments == arguments
    assert stored(message).tool_calls == message.tool_calls
    assert message_forms.chat_form(message)["tool_calls"][0]["function"]["arguments"] == arguments


def test_the_chat_form_is_what_was_given():
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"for": "Lisbon", "a": 1}'}}
    said = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
        {"role": "user", "content": "Thanks", "name": "ana"},
    ]
    assert [message_forms.chat_form(stored(message)) for message in read(said)] == said


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (7, "not int"),
        (b"hello", "not bytes"),
        (["hello", None], "row 1: .* not NoneType"),
        ([{"content": "x"}], "row 0: role"),
        ([{"role": "robot", "content": "x"}], "row 0: role"),
        ([{"role": [], "content": "x"}], "row 0: role"),
        ([{"role": "user", "content": 7}], "row 0: content"),
        ([{"role": "user", "content": {"type": "text"}}], "row 0: content"),
        ([{"role": "user", "content": [7]}], "row 0: content"),
        ([{"role": "user", "content": "x", "id": 7}], "row 0: id"),
        ([{"role": "assistant", "content": "x", "tool_calls": "c"}], "row 0: tool_calls"),
        ([{"role": "assistant", "content": "x", "tool_calls": ["c"]}], "row 0: each of tool_calls"),
        ([{"role": "assistant", "content": "x", "tool_calls": [{"id": 1, "name": "f"}]}], "row 0: tool_calls"),
        ([Message(role="user", extra=7)], "row 0: extra"),  # type: ignore[arg-type]
        ([Message(role="user", created_at="now")], "row 0: created_at"),  # type: ignore[arg-type]
        ([Message(role="user", codec=None)], "row 0: codec"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_message_is_refused_with_its_row(said, problem):
    with pytest.raises(InvalidInput, match=problem):
        read(said)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"extra": {"a": [object()]}}, r"extra.a\[0\] is of type object"),
        ({"extra": {1: "a"}}, "extra has a key that is not a string"),
        ({"payload": {"a": object()}}, "payload.a is of type object"),
        ({"content": ({"type": "x", "raw": object()},)}, r"content\[0\].raw is of type object"),
    ],
)
def test_what_cannot_be_stored_is_named(fields, problem):
    with pytest.raises(InvalidInput, match=problem) as caught:
        message_drafts.draft(Message(role="user", **fields), SETTING, 3)
    assert caught.value.index == 3 and caught.value.field == next(iter(fields))


def test_a_structure_that_contains_itself_is_refused():
    loop: dict[str, object] = {}
    loop["again"] = loop
    with pytest.raises(InvalidInput, match="extra is nested deeper"):
        message_drafts.draft(Message(role="user", extra=loop), SETTING)


def test_members_of_an_enum_are_taken_for_their_values():
    class Role(StrEnum):
        USER = "user"

    for said in (Message(role=Role.USER, content="x"), {"role": Role.USER, "content": "x"}):  # type: ignore[arg-type]
        [message] = read(said)
        assert type(message.role) is str and message.role == "user"


def test_a_moment_without_an_offset_is_read_in_the_zone():
    [message] = read(Message(role="user", created_at=datetime(2026, 5, 1, 12)))
    assert message.created_at == datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_what_only_a_stored_message_has_is_taken_off():
    [message] = read(Message(role="user", content="x", position=4, tokens=5, folded=True, pending=True))
    assert message == Message(role="user", content="x")


# -- what is stored


def test_everything_comes_back():
    message = Message(
        role="assistant",
        content=({"type": "text", "text": "a\0b\ud800"}, {"type": "image_url", "image_url": {"url": "data:,x"}}),
        id="m\0" + "x" * 300,
        name="ana",
        tool_calls=(ToolCall(id="", name="f", arguments={"$type": "mine", "big": 10**30, "none": None}),),
        tool_call_id="c1",
        extra={"usage": {"input": 1e16, "minus": -0.0}, "raw": b"\0\xff", "at": NOW, "sum": Decimal("1.10")},
        codec="langchain",
        payload={"z": 1, "a": [UUID(int=7), {"$type": "x"}], "n\0": "\ud800"},
        created_at=datetime(2020, 1, 1, tzinfo=UTC),
    )
    back = stored(message)
    assert back == message and back.id == message.id
    assert list(back.payload) == ["z", "a", "n\0"]


def test_a_plain_message_is_stored_as_its_text_alone():
    assert message_drafts.draft(Message(role="user", content="hello"), SETTING).body == "{}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
texts = st.text(st.characters(), max_size=20)
mappings = st.dictionaries(texts, json_values, max_size=3)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=texts | st.lists(mappings, max_size=3).map(tuple),
    id=st.none() | texts,
    name=st.none() | texts,
    tool_calls=st.lists(st.builds(ToolCall, id=texts, name=texts, arguments=texts | mappings), max_size=2).map(tuple),
    tool_call_id=st.none() | texts,
    extra=mappings,
    codec=st.sampled_from(["", "langchain"]),
    payload=json_values,
)


@given(messages)
def test_any_message_comes_back_as_it_was(message):
    back = stored(message)
    assert spelled(replace(back, created_at=None)) == spelled(message)


def spelled(message):
    """Write a message out, with two halves of a surrogate pair as one character wherever they meet."""
    text = repr([getattr(message, name) for name in ("role", "content", "id", "name", "tool_calls", "tool_call_id")])
    # `repr` of a ToolCall hides its arguments.
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    rest = repr([calls, message.extra, message.codec, message.payload])
    return (text + rest).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# -- what a message is known by


def test_the_same_words_have_the_same_digest_whatever_a_provider_adds():
    plain = Message(role="user", content="hello")
    digest = message_forms.digest(plain)
    assert message_forms.digest(replace(plain, extra={"usage": 1}, payload={"x": 1}, id="m1")) == digest
    others = [
        replace(plain, role="assistant"),
        replace(plain, content="Hello"),
        replace(plain, name="ana"),
        replace(plain, tool_call_id="1"),
        replace(plain, tool_calls=(ToolCall(id="1", name="f"),)),
        replace(plain, content=({"type": "text", "text": "hello"},)),
    ]
    assert len({digest, *map(message_forms.digest, others)}) == 7


def test_the_order_of_keys_makes_no_other_message():
    one, other = (
        Message(role="assistant", tool_calls=(ToolCall(id="1", name="f", arguments=json.loads(text)),))
        for text in ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}')
    )
    assert message_forms.digest(one) == message_forms.digest(other)


def test_an_id_that_fits_into_no_index_is_found_by_its_digest():
    for identifier in ("x" * 201, "é" * 150, "a\0b", "\ud800"):
        key = message_forms.key(Message(role="user", id=identifier))
        assert key is not None and key.startswith("sha256:") and len(key) == 71
    assert message_forms.key(Message(role="user", id="m1")) == "m1"
    assert message_forms.key(Message(role="user", id="")) is None


def test_only_what_people_and_the_assistant_say_is_indexed_and_no_secret_of_it():
    secret = "sk-proj-" + "a1B2c3D4" * 6
    said = [Message(role=role, content=f"the wharf {secret}") for role in ("user", "assistant", "system", "tool")]
    user, assistant, system, tool = (message_drafts.draft(message, SETTING) for message in said)
    assert user.content_terms == assistant.content_terms and " wharf " in user.content_terms
    assert user.length == len(user.content_terms.split()) and user.cells == assistant.cells != ""
    assert secret.lower() not in user.content_terms.replace(" ", "") and secret in user.content
    for other in (system, tool, message_drafts.draft(Message(role="user", content=" \n"), SETTING)):
        assert (other.cells, other.content_terms, other.length) == ("", "", 0)


# -- what is sent again


@given(st.lists(st.sampled_from("ab"), max_size=9), st.lists(st.sampled_from("ab"), max_size=9))
def test_the_overlap_is_the_longest_beginning_that_is_an_end(end, batch):
    expected = max(n for n in range(min(len(end), len(batch)) + 1) if end[len(end) - n :] == batch[:n])
    assert message_drafts.overlap(end, batch) == expected
