"""What a model is shown of a conversation: whole exchanges from the end, whatever was stored."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memoranda.messages import Message, ToolCall
from memoranda.messages.windowing import suffices, window


def said(role, tokens=10, calls=(), answers=None, position=None):
    return Message(
        role=role,
        content=f"{role} {position}",
        tool_calls=tuple(ToolCall(id=call, name="look") for call in calls),
        tool_call_id=answers,
        tokens=tokens,
        position=position,
    )


def talk(text, tokens=10):
    """Read a conversation from a line: `s`, `u`, `a`, `cX` calls X (`cXY` both), `rX` answers X."""
    made = []
    for place, word in enumerate(text.split(), 1):
        roles = {"s": "system", "u": "user", "a": "assistant", "c": "assistant", "r": "tool"}
        calls = word[1:] if word[0] == "c" else ""
        made.append(said(roles[word[0]], tokens, calls, word[1:] if word[0] == "r" else None, place))
    return made


def shown(text, max_tokens, tokens=10):
    words = text.split()
    return " ".join(words[(message.position or 0) - 1] for message in window(talk(text, tokens), max_tokens))


def test_the_newest_that_fit_begin_with_the_user():
    assert shown("u a u a u a", 60) == "u a u a u a"
    assert shown("u a u a u a", 50) == "u a u a"
    assert shown("u a u a u a", 10) == "u"
    assert shown("a a u a", 40) == "u a"
    assert shown("a a a", 20) == "a a"
    assert shown("", 10) == ""


def test_a_call_stays_with_its_results():
    assert shown("u cx rx a u a", 50) == "u a"
    assert shown("u cx rx a u a", 60) == "u cx rx a u a"
    assert shown("u a u cxy rx ry a", 50) == "u cxy rx ry a"
    assert shown("u cx rx cy ry", 30) == "u cy ry", "the user's message is there though the turn does not fit"
    assert shown("u cx u rx a", 30) == "u a", "somebody spoke between call and result"
    assert shown("u cx u rx a", 50) == "u cx u rx a"


def test_the_user_s_newest_message_is_there_even_where_it_is_too_long():
    messages = [*talk("u a u"), said("user", 1_000, position=4), said("assistant", 10, position=5)]
    assert [message.position for message in window(messages, 100)] == [4]
    assert [message.position for message in window(messages[:4], 1)] == [4]


def test_system_messages_stay():
    assert shown("s u a s u a", 50) == "s s u a"
    assert shown("s u a", 1) == "s u"
    assert shown("s cx s rx", 40) == "s cx s rx"


def test_what_a_provider_refuses_is_left_out():
    assert shown("rx u a", 100) == "u a", "a result without a call"
    assert shown("u rx cx u", 100) == "u u", "a result before its call"
    assert shown("u cx u a", 100) == "u u a", "a call that was never answered"
    assert shown("u cxy rx u a", 100) == "u u a", "a call that was answered by half"
    assert shown("u cx rx rx u", 100) == "u cx rx u", "a second result"
    assert shown("u cx cx rx a", 100) == "u cx rx a", "two calls of one id and one result"
    assert shown("u cx rx cx rx a", 100) == "u cx rx cx rx a", "an id that is used again"


def test_calls_that_only_an_assistant_makes_are_no_calls_of_others():
    odd = [said(role, 10, calls="x", position=place) for place, role in enumerate(("system", "user", "tool"), 1)]
    assert [message.position for message in window(odd, 100)] == [1, 2]


def test_a_call_that_is_being_answered_is_shown():
    assert shown("u a u cx", 100) == "u a u cx"
    assert shown("u a u cxy rx", 100) == "u a u cxy rx"


def test_without_counts_of_tokens_they_are_counted():
    assert len(window([replace(message, tokens=None) for message in talk("u a u a")], 1_000)) == 4


def total(messages):
    return sum(message.tokens for message in messages)


words = st.lists(
    st.sampled_from(["s", "u", "u", "a", "a", "cx", "cxy", "cxx", "c", "rx", "ry", "rz", "r"]), max_size=25
)
conversations = st.builds(
    lambda line, sizes: [
        replace(message, tokens=size) for message, size in zip(talk(" ".join(line)), sizes, strict=False)
    ],
    words,
    st.lists(st.integers(0, 40), min_size=25, max_size=25),
)


@given(conversations, st.integers(1, 300))
def test_whatever_is_stored_the_window_can_be_sent(messages, max_tokens):
    result = window(messages, max_tokens)
    positions = [message.position or 0 for message in result]
    assert positions == sorted(set(positions))
    assert all(message in messages for message in result)

    systems = [message for message in messages if message.role == "system"]
    assert [message for message in result if message.role == "system"] == systems
    users = [message for message in messages if message.role == "user"]
    others = [message for message in result if message.role != "system"]
    if users:
        assert users[-1] in result and others[0].role == "user"
    assert total(result) <= max(max_tokens, total([*systems, *users[-1:]]))

    waiting: Counter[str] = Counter()
    for message in result:
        waiting.update(call.id for call in message.tool_calls)
        if message.role == "tool":
            waiting[message.tool_call_id or ""] -= 1
        assert min(waiting.values(), default=0) >= 0, "a result without a call"
    last = max((place for place, message in enumerate(result) if message.role not in ("tool", "system")), default=0)
    if not (result and result[last].tool_calls):
        assert not +waiting, "a call without its results"


@given(conversations, st.integers(1, 300))
def test_a_larger_window_holds_what_a_smaller_one_does(messages, max_tokens):
    smaller = {message.position for message in window(messages, max_tokens)}
    assert smaller <= {message.position for message in window(messages, max_tokens + 20)}


@given(conversations)
def test_a_window_in_which_everything_fits_leaves_out_nothing_usable(messages):
    result = window(messages, 10_000)
    assert window(result, 10_000) == result


@given(conversations, st.integers(1, 150))
def test_an_end_that_suffices_gives_the_window_of_the_whole(messages, max_tokens):
    users = [message for message in messages if message.role == "user"][-1:]
    for start in range(len(messages)):
        end = messages[start:]
        if suffices(end, max_tokens):
            older = [message for message in messages[:start] if message.role == "system"]
            older += [message for message in users if message in messages[:start]]
            older.sort(key=lambda message: message.position)
            assert window([*older, *end], max_tokens) == window(messages, max_tokens)


turns = st.lists(st.sampled_from(["u a", "u cx rx a", "u cxy ry rx cz rz a", "s u a"]), max_size=12)


@given(turns, st.integers(1, 400), st.integers(1, 9))
def test_reading_from_the_end_finds_the_same_window(line, max_tokens, size):
    messages = talk(" ".join(line))
    read: list[Message] = []
    rest = messages
    while rest and not suffices(read, max_tokens):
        rest, read = rest[:-size], [*rest[-size:], *read]
    older = [message for message in rest if message.role == "system"]
    if not any(message.role == "user" for message in read):
        older += [message for message in rest if message.role == "user"][-1:]
    older.sort(key=lambda message: message.position)
    assert window([*older, *read], max_tokens) == window(messages, max_tokens)
