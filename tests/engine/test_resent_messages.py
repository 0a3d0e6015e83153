"""A history that is sent again: what of it stands already is not added again, whichever ids it comes with."""

from dataclasses import replace
from typing import Any

import pytest

from memoranda.ids import new_id
from memoranda.messages import Message, ToolCall


def texts(messages):
    return [message.text for message in messages]


def positions(messages):
    return [message.position for message in messages]


def anew(*texts):
    """Return messages of user and assistant in turn, under ids that nobody has used before."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text, "id": new_id().hex} for n, text in enumerate(texts)]


def test_what_is_said_again_under_new_ids_is_not_added_again(me):
    chat = me.conversation("thread-1")
    first = chat.append(anew("Hello.", "Hello, Ana."), new_ids=True)
    again = chat.append(anew("Hello.", "Hello, Ana.", "Hello.", "Hello, Ana.", "How are you?"), new_ids=True)
    assert again[:2] == first and [message.position for message in again] == [1, 2, 3, 4, 5]
    window = chat.append(anew("Hello.", "Hello, Ana.", "How are you?", "Fine."), new_ids=True)
    assert [message.position for message in window] == [3, 4, 5, 6]
    assert chat.append(anew("Fine.")[:1], new_ids=True)[0].position == 7
    assert len(chat.append(anew("Hello.", "Hello, Ana."))) == 2 and chat.record().messages == 9


CALL: dict[str, Any] = {"role": "assistant", "id": "c", "tool_calls": [{"id": "t", "name": "look", "args": {}}]}
RESULT = {"role": "tool", "id": "r", "content": "nothing", "tool_call_id": "t"}


def test_calls_of_tools_may_be_left_out_when_it_is_said_again(me):
    chat = me.conversation("thread-1")
    question, answer = anew("What is new?", "Nothing.")
    chat.append([question, CALL, RESULT, answer], new_ids=True)
    assert positions(chat.append(anew("What is new?", "Nothing.", "Thanks."), new_ids=True)) == [1, 4, 5]
    other = me.conversation("thread-2")
    other.append([question, answer], new_ids=True)
    again, answer, thanks = anew("What is new?", "Nothing.", "Thanks.")
    assert positions(other.append([again, CALL, RESULT, answer, thanks], new_ids=True)) == [1, 2, 2, 2, 3]


def test_calls_and_results_that_are_sent_again_are_those_that_are_there(me):
    chat = me.conversation("thread-1")
    rules = {"role": "system", "content": "Be brief.", "id": "s"}
    two = {**CALL, "tool_calls": [*CALL["tool_calls"], {"id": "u", "name": "look", "args": {}}]}
    looked = [two, RESULT, {**RESULT, "id": "q", "tool_call_id": "u"}]
    question, answer, more = anew("What is new?", "Nothing.", "Look again.")
    first = chat.append([rules, question, *looked, answer, more, *({**one, "id": f"{one['id']}2"} for one in looked)])

    def again(said, by_words):
        ids = {id(one): new_id().hex for one in said}
        return positions(chat.append([{**one, "id": ids[id(one)]} for one in said], new_ids=by_words))

    cleared = [{**one, "content": "[cleared]"} if one["role"] == "tool" else one for one in looked]
    whole = [rules, question, *cleared, answer, more, *looked]
    assert again(whole, True) == positions(first) == [*range(1, 11)], "each by the id of its call, between what is said"
    assert again([*whole, answer, rules], True) == [*range(1, 13)], "a turn that stopped behind its results goes on"
    assert len(chat.messages()) == 12 and first == chat.messages(limit=12)[:10]


def test_some_ids_may_be_known_and_others_new_when_it_is_said_again(me):
    chat = me.conversation("thread-1")
    said = []
    for turn in range(3):
        said.append({"role": "user", "content": f"u{turn}", "id": f"h{turn}"})
        for one in (said, [*said, {"role": "assistant", "content": "So. ", "id": new_id().hex}]):
            chat.append(
                [one_ if one_["role"] == "user" else {**one_, "id": new_id().hex} for one_ in one], new_ids=True
            )
        said.append({"role": "assistant", "content": "So."})
    assert texts(chat.messages()) == ["u0", "So. ", "u1", "So. ", "u2", "So. "]
    said[0] = {**said[0], "content": "U0"}
    chat.append(said, new_ids=True)
    assert [message.position for message in chat.messages()] == [1, 2, 3, 4, 5, 6], "it stands where it stood"


def test_what_was_redacted_meanwhile_is_known_when_it_is_said_again(me):
    chat = me.conversation("thread-1")
    first = chat.append(anew("My mail is ana@example.org.", "Noted."), new_ids=True)
    chat.append(replace(first[0], content="My mail is [REDACTED]."))
    again = chat.append(anew("My mail is ana@example.org.", "Noted.", "And now?"), new_ids=True)
    assert [message.position for message in again] == [1, 2, 3] and again[0].content == "My mail is [REDACTED]."


def test_a_known_id_is_no_other_message_that_says_the_same(me):
    chat = me.conversation("thread-1")
    first = chat.append(anew("Yes.", "No.", "Yes.", "Go."), new_ids=True)
    again = chat.append([first[0], *anew("Yes.", "Go.")[1:]], new_ids=True)
    assert [message.position for message in again] == [1, 5]


def test_words_after_a_known_id_are_new_where_they_do_not_end_the_conversation(me):
    chat = me.conversation("thread-1")
    stored = chat.append(anew("Yes.", "No."), new_ids=True)
    more = chat.append([stored[1], *anew("Yes.", "No.")], new_ids=True)
    assert [message.position for message in more] == [2, 3, 4]


# -- another answer, another question


def talk(count):
    return [text for turn in range(count) for text in (f"u{turn}", f"a{turn}")]


def test_an_answer_that_is_asked_for_anew_adds_the_new_one_only(me):
    chat = me.conversation("thread-1")
    chat.append(anew(*talk(3)), new_ids=True)
    assert positions(chat.append(anew("u0", "a0", "u1"), new_ids=True)) == [1, 2, 3]
    [answer] = chat.append(anew("u1", "a1, anew")[1:], new_ids=True)
    assert answer.position == 7
    whole = chat.append(anew("u0", "a0", "u1", "a1, anew", "u2, too"), new_ids=True)
    assert positions(whole) == [1, 2, 3, 7, 8], "what is there behind it stays, and is in nobody's way"
    assert texts(chat.messages()) == [*talk(3), "a1, anew", "u2, too"]


def test_a_question_that_is_put_another_way_adds_it_and_its_answer(me):
    chat = me.conversation("thread-1")
    chat.append(anew(*talk(3)), new_ids=True)
    for count, last in enumerate(("u1, edited", "u1, edited again")):
        assert positions(chat.append(anew("u0", "a0", last), new_ids=True)) == [1, 2, 7 + 2 * count]
        assert positions(chat.append(anew("u0", "a0", last), new_ids=True))[-1] == 7 + 2 * count, "it failed at first"
        chat.append(anew("", f"Of {last}")[1:], new_ids=True)
    said = anew("u0", "a0", "u1, edited again", "Of u1, edited again", "u2")
    assert positions(chat.append(said, new_ids=True)) == [1, 2, 9, 10, 11]


def test_a_history_may_begin_with_a_greeting(me):
    chat = me.conversation("thread-1")
    greeting = {"role": "assistant", "content": "Welcome!"}
    chat.append([{**greeting, "id": "g"}, *anew(*talk(2))])
    assert positions(chat.append([{**greeting, "id": "h"}, *anew("u0", "a0", "u1")], new_ids=True)) == [1, 2, 3, 4]


def test_ids_of_the_user_s_messages_tell_where_another_answer_belongs(me):
    chat = me.conversation("thread-1")
    asked = [{"role": "user", "content": f"u{turn}", "id": f"h{turn}"} for turn in range(3)]
    chat.append([asked[0], *anew(*talk(1))[1:]])
    chat.append([asked[0], anew("", "a0, anew")[1], asked[1]], new_ids=True)
    again = chat.append([asked[0], anew("", "a0, anew")[1], asked[1], anew("", "a1")[1], asked[2]], new_ids=True)
    assert positions(again) == [1, 3, 4, 5, 6]


def test_few_words_from_further_back_are_said_once_more(me):
    chat = me.conversation("thread-1")
    chat.append(anew("Yes?", "Yes.", *talk(1)))
    assert positions(chat.append(anew("Yes?", "Yes."), new_ids=True)) == [5, 6], "a turn of its own"
    chat.append(anew(*talk(2)), new_ids=True)
    begun = chat.record().messages
    assert positions(chat.append(anew("u0", "a0", "u1", "a1", "a0")[3:], new_ids=True)) == [begun, begun + 1]


def test_what_the_user_says_again_because_nobody_answered_is_one_message(me):
    chat = me.conversation("thread-1")
    chat.append(anew("Hello?"), new_ids=True)
    assert positions(chat.append(anew("Hello? "), new_ids=True)) == [1]
    assert positions(chat.append(anew("Hello?"))) == [2], "whose ids are good says it twice"
    chat.append(anew("", "Hello.")[1:], new_ids=True)
    assert positions(chat.append(anew("Hello?"), new_ids=True)) == [4] and chat.record().messages == 4
    assert positions(chat.append(anew("", "Hello.")[1:], new_ids=True)) == [5]
    assert positions(chat.append(anew("", "Hello.")[1:], new_ids=True)) == [6], "an answer is never the one before"


# -- what was rewritten, and what has no id


@pytest.mark.parametrize("shown", ["Write to ana@example.org. ", "Write to ana@example.org."])
def test_a_form_that_was_replaced_is_known_but_for_the_space_around_it(me, shown):
    chat = me.conversation("thread-1")
    stored = chat.append(anew("Whom?", "Write to ana@example.org. "), new_ids=True)
    redacted = replace(stored[1], content="Write to [REDACTED].")
    chat.append(redacted)
    assert positions(chat.append(anew("Whom?", shown, "Thanks."), new_ids=True)) == [1, 2, 3]
    chat.append(replace(stored[1], content=shown))
    assert chat.messages()[1].content == redacted.content, "nor does it come back under its id"


def test_calls_may_be_rewritten_again_and_again_where_the_words_stay(me):
    chat = me.conversation("thread-1")

    def look(where):
        call = ToolCall(id="t", name="look", arguments={"in": where})
        return Message(role="assistant", content="I look.", id="m", tool_calls=(call,))

    for where in ("a", "b", "c", "a"):
        chat.append(look(where))
    assert chat.messages()[0].tool_calls[0].arguments == {"in": "c"}


def test_what_has_no_id_takes_the_one_it_is_said_again_under(make_engine):
    engine = make_engine(background="external")
    chat = engine.persona("main").conversation("thread-1")
    chat.append(["u0", CALL | {"id": None}, {"role": "assistant", "content": "a0"}])
    question, answer, more = anew("u0", "a0", "u1")
    again = chat.append([question, CALL, answer, more], new_ids=True)
    assert [message.id for message in again] == [question["id"], "c", answer["id"], more["id"]]
    assert again == chat.messages() and chat.append([question, CALL, answer, more]) == again
    chat.append({**answer, "content": "a0, edited"})
    chat.out_of_sight([more["id"]])
    found = [(message.text, message.pending) for message in chat.messages()]
    assert found == [("u0", True), ("", True), ("a0, edited", True), ("u1", False)]


def test_an_id_that_comes_twice_is_taken_by_one(me):
    chat = me.conversation("thread-1")
    chat.append(["u0", {"role": "assistant", "content": "a0"}])
    question, answer, other = anew("u0", "a0", "u1")
    chat.append([question, answer, {**other, "id": question["id"]}], new_ids=True)
    assert texts(chat.messages()) == ["u0", "a0", "u1"]
