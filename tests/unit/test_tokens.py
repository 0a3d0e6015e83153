"""How many tokens a text has, by and large: never fewer for more text, and no surprise for anything odd."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memoranda import tokens
from memoranda.messages import Message, ToolCall


def test_four_bytes_are_a_token():
    assert [tokens.count(text) for text in ("", "a", "four", "fives", "東京", "naïve")] == [0, 1, 1, 2, 2, 2]


@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer(one, other):
    assert tokens.count(one) <= tokens.count(one + other) <= tokens.count(one) + tokens.count(other)


def test_halves_of_surrogate_pairs_count_too():
    assert tokens.count("\ud800\0") == 1


def test_a_message_counts_its_calls_and_its_pictures():
    plain = tokens.of_message(Message(role="user", content="four"))
    assert plain == 5
    call = ToolCall(id="1", name="look", arguments={"query": "Lisbon"})
    assert tokens.of_message(Message(role="assistant", content="four", tool_calls=(call,))) == plain + 1 + 5
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    parts: tuple[dict[str, Any], ...]
    parts = ({"type": "text", "text": "four"}, picture, {"type": "thinking", "thinking": "well"}, {})
    assert 1_000 < tokens.of_message(Message(role="user", content=parts)) < 1_050
