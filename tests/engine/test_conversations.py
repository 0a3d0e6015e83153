"""Conversations: messages in order, each once, whole, and nobody else's."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from memoranda.errors import InvalidInput, NotAllowed
from memoranda.messages import Message, ToolCall
from memoranda.messages.windowing import window
from memoranda.pipelines import conversing
from memoranda.policies import CompactionPolicy
from memoranda.testing import ScriptedModel
from memoranda.testing.twin import unwrap

TURN = [
    {"role": "user", "content": "Which boats leave today?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": "timetable", "arguments": '{"day": "today"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "the nine and the noon"},
    {"role": "assistant", "content": "Two: at nine and at noon."},
]


def texts(messages):
    return [message.text for message in messages]


def reconcile(chat, messages):
    """Do what adapters do where a framework sets a whole history."""
    chat = unwrap(chat)
    return chat._runner.run(conversing.reconcile(chat._context, chat.name, messages))


def stored(engine, noun):
    """Count the rows of a table."""

    def read(conn, tables):
        return conn.scalar(select(func.count()).select_from(getattr(tables, noun)))

    return unwrap(engine)._database.read(read)


# -- in and out


def test_messages_come_back_in_order_as_they_were_given(make_engine, frozen_clock):
    chat = make_engine(clock=frozen_clock).persona("main").conversation("thread-1")
    appended = [*chat.append("Hello!"), *chat.append(TURN)]

    assert chat.messages() == appended
    assert [message.position for message in appended] == [1, 2, 3, 4, 5]
    assert [message.role for message in appended] == ["user", "user", "assistant", "tool", "assistant"]
    assert appended[2].tool_calls == (ToolCall(id="c1", name="timetable", arguments={"day": "today"}),)
    assert {message.created_at for message in appended} == {frozen_clock()}
    assert all(message.tokens and message.id is None for message in appended)


def test_nothing_of_a_message_is_lost(me):
    said = Message(
        role="assistant",
        content=({"type": "text", "text": "a\0b \ud800 c"}, {"type": "image_url", "image_url": {"url": "data:,x"}}),
        id="m-1\0",
        name="bot",
        tool_calls=(
            ToolCall(id="", name="f", arguments='{"broken": '),
            ToolCall(id="2", name="f", arguments={"n": 1e16}),
        ),
        extra={"usage": {"total": 10**30, "minus": -0.0}, "raw": b"\0", "z": 1, "a": 2},
        codec="langchain",
        payload={"type": "ai", "data": {"content": "x\0", "id": None}},
        created_at=datetime(2020, 1, 1, tzinfo=UTC),
    )
    [appended] = me.conversation("thread-1").append(said)
    [read] = me.conversation("thread-1").messages()
    assert read == appended and (read.content, read.extra, read.payload) == (said.content, said.extra, said.payload)
    assert (read.id, read.name, read.codec, read.created_at) == (said.id, said.name, said.codec, said.created_at)
    assert [call.arguments for call in read.tool_calls] == ['{"broken": ', {"n": 1e16}] and list(read.extra)[-1] == "a"


def test_the_newest_messages_and_those_before(me):
    chat = me.conversation("thread-1")
    chat.append([f"line {n}" for n in range(1, 11)])
    assert texts(chat.messages(limit=2)) == ["line 9", "line 10"]
    assert texts(chat.messages(limit=2, before=9)) == ["line 7", "line 8"]
    assert texts(chat.messages(before=3)) == ["line 1", "line 2"]
    assert chat.messages(before=1) == []
    wrong: list[dict[str, Any]] = [{"limit": 0}, {"limit": True}, {"before": -1}, {"limit": "2"}]
    for arguments in wrong:
        with pytest.raises(InvalidInput, match="positive whole number"):
            chat.messages(**arguments)


def test_what_is_no_message_leaves_nothing_behind(engine):
    chat = engine.persona("main").conversation("thread-1")
    odd: dict[Any, Any] = {1: 2}
    for said in (7, ["hello", 7], [{"role": "robot", "content": "x"}], ["hello", Message(role="user", extra=odd)]):
        with pytest.raises(InvalidInput):
            chat.append(said)
    assert chat.append([]) == [] and stored(engine, "conversations") == 0
    assert chat.messages() == [] and chat.window(100) == [] and chat.record() is None and chat.clear().messages == 0


def test_a_preset_that_wants_an_author_wants_one_here(make_engine):
    engine = make_engine(preset="ledger")
    with pytest.raises(NotAllowed):
        engine.persona("main").conversation("thread-1").append("hello")
    engine.persona("main", user="ana").conversation("thread-1").append("hello")


def test_a_preset_that_wants_an_author_shows_nothing_to_nobody(engine):
    anybody, nobody = engine.persona("main"), engine.persona("main", preset="ledger")
    anybody.conversation("thread-1").append("The crane is stuck.")
    chat = nobody.conversation("thread-1")
    assert (chat.messages(), chat.window(100), chat.size(), chat.record()) == ([], [], 0, None)
    assert (nobody.conversations.list(), nobody.conversations.names()) == ([], [])
    assert nobody.conversations.search("crane") == [] and chat.turn_block() == ""
    assert anybody.conversations.search("crane")


# -- each once


def test_a_message_with_an_id_is_stored_once_and_says_what_was_last_said_under_it(me):
    chat = me.conversation("thread-1")
    chat.append([Message(role="user", content=f"line {n}", id=f"m{n}") for n in range(3)])
    again = chat.append(
        [Message(role="user", content="line 1, changed", id="m1"), Message(role="user", content="line 3", id="m3")]
    )
    assert texts(again) == ["line 1, changed", "line 3"] and [message.position for message in again] == [2, 4]
    both = chat.append([Message(role="user", content=text, id="m4") for text in ("line 4", "line four")])
    assert texts(both) == ["line four", "line four"]
    assert texts(chat.messages()) == ["line 0", "line 1, changed", "line 2", "line 3", "line four"]


def test_a_message_that_is_rewritten_keeps_its_place_and_nothing_of_what_it_said(make_engine):
    engine = make_engine(background="external")
    me = engine.persona("main")
    chat = me.conversation("thread-1")
    mail = Message(role="user", content="My mail is ana@example.org.", id="m1", codec="x", payload={"raw": "ana@"})
    call = ToolCall(id="c", name="send", arguments={"to": "ana@example.org"})
    first = chat.append([mail, Message(role="assistant", id="m2", tool_calls=(call,)), "Done?"])
    chat.pending([1])
    redacted = replace(mail, content="My mail is [REDACTED].", payload={"raw": "[REDACTED]"})
    edited = Message(role="assistant", id="m2", tool_calls=(replace(call, arguments={"to": "nobody"}),))
    again = chat.append([redacted, edited])
    stands = chat.messages()
    assert again == stands[:2] and [message.position for message in stands] == [1, 2, 3]
    assert stands[0].pending and stands[0].created_at == first[0].created_at and stands[0].tokens
    assert stands[0].payload == {"raw": "[REDACTED]"} and stands[1].tool_calls[0].arguments == {"to": "nobody"}
    assert "ana@" not in repr(stands) and not me.conversations.search("ana example")
    assert me.conversations.search("REDACTED")
    before = chat.append([mail, edited])
    assert before == stands[:2], "a form that was replaced does not come back"


def test_what_was_extracted_from_is_not_extracted_from_again_when_it_is_rewritten(make_engine):
    model = ScriptedModel(["[]"] * 2)
    engine = make_engine(model=model, background="external")
    chat = engine.persona("main").conversation("thread-1")
    chat.append([{"role": "user", "content": text, "id": id} for id, text in enumerate_ids("moved to Ghent", "hi")])
    chat.pending([1])
    assert chat.flush().messages == 1
    chat.append({"role": "user", "content": "moved to Bruges", "id": "1"})
    assert chat.out_of_sight([]).messages == 1 and texts(chat.messages()) == ["moved to Bruges", "hi"]


def test_threads_that_rewrite_one_message_leave_one_of_their_forms(me):
    chat = unwrap(me).conversation("thread-1")
    chat.append({"role": "user", "content": "form 0", "id": "m"})
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: chat.append({"role": "user", "content": f"form {n}", "id": "m"}), range(1, 5)))
    [left] = chat.messages()
    assert chat.append({"role": "user", "content": "form 0", "id": "m"}) == [left] and left.content != "form 0"


def test_a_batch_that_begins_with_the_end_adds_only_the_rest(me):
    chat = me.conversation("thread-1")
    chat.append(TURN[:2])
    chat.append(TURN[1:3])
    assert [message.position for message in chat.append(TURN)] == [1, 2, 3, 4]
    chat.append(TURN)
    assert len(chat.messages()) == 4
    assert [message.position for message in chat.append([*TURN, "Thanks"])] == [1, 2, 3, 4, 5]


def test_the_same_words_are_another_message_where_others_stand_between(me):
    chat = me.conversation("thread-1")
    for turn in range(3):
        chat.append("yes")
        chat.append({"role": "assistant", "content": f"Then {turn}"})
    assert len(chat.messages()) == 6
    chat.append(["no", "no"])
    assert texts(chat.messages(limit=3)) == ["Then 2", "no", "no"]


def test_ids_and_places_together_tell_what_is_known(me):
    chat = me.conversation("thread-1")
    first = [Message(role="user", content="hi", id="u1"), {"role": "assistant", "content": "hello"}]
    chat.append([*first, Message(role="user", content="and?", id="u2")])
    positions = [message.position for message in chat.append([*first, Message(role="user", content="hi", id="u3")])]
    assert positions == [1, 2, 4]
    assert texts(chat.messages()) == ["hi", "hello", "and?", "hi"]


# -- another history


def test_a_history_that_is_set_keeps_what_agrees_with_it(me):
    chat = me.conversation("thread-1")
    chat.append(["one", "two", "three"])
    assert [(m.text, m.position) for m in reconcile(chat, ["one", "too", "four"])] == [
        ("one", 1),
        ("too", 4),
        ("four", 5),
    ]
    assert texts(reconcile(chat, ["one"])) == ["one"]
    same = Message(role="user", content="six", id="m6")
    assert texts(reconcile(chat, ["one", same, same, "seven"])) == ["one", "six", "seven"]
    assert texts(reconcile(chat, [Message(role="user", content="6", id="m6")])) == ["6"]
    assert reconcile(chat, []) == [] and chat.messages() == []


# -- windows


@pytest.mark.behaviour("C10")
def test_what_is_pending_outlives_a_history_that_is_set_without_it(make_engine):
    model = ScriptedModel(["[]"])
    engine = make_engine(model=model, background="external")
    chat = engine.persona("main").conversation("thread-1")
    said = [
        {"role": "user", "content": text, "id": id} for id, text in enumerate_ids("moved to Ghent", "yes", "hi", "x")
    ]
    chat.append(said)
    assert chat.out_of_sight(["3", "4"]).messages == 2 and not engine.jobs()

    assert [message.id for message in reconcile(chat, said[2:])] == ["3", "4"]
    assert [message.id for message in chat.window(1_000)] == ["3", "4"]
    assert [(message.id, message.pending) for message in chat.messages()][:2] == [("1", True), ("2", True)]
    assert [job.kind for job in engine.jobs()] == ["flush"]
    engine.drain()
    assert "moved to Ghent" in model.calls[0].text and chat.record().pending == 0
    assert [message.position for message in reconcile(chat, said)] == [3, 4], "what is folded is there already"


def test_what_is_pending_and_said_again_is_in_sight_again(make_engine):
    engine = make_engine(background="external")
    chat = engine.persona("main").conversation("thread-1")
    said = [{"role": "user", "content": text, "id": id} for id, text in enumerate_ids("one", "two", "three")]
    chat.append(said)
    chat.pending([1, 2])
    assert [message.position for message in reconcile(chat, said)] == [1, 2, 3], "all of it agrees"
    assert [message.id for message in reconcile(chat, [said[2], said[1]])] == ["3", "2"]
    assert [(message.id, message.pending) for message in chat.messages()] == [("1", True), ("3", False), ("2", False)]
    assert len(engine.jobs()) == 1


def enumerate_ids(*texts):
    return [(str(number), text) for number, text in enumerate(texts, 1)]


def test_an_old_message_in_a_batch_is_the_one_that_is_stored(me):
    chat = me.conversation("thread-1")
    chat.append({"role": "system", "content": "Be brief.", "id": "s"})
    chat.append([{"role": "user", "content": f"number {n}", "id": f"m{n}"} for n in range(600)])
    again = [
        {"role": "system", "content": "Be brief.", "id": "s"},
        *({"role": "user", "content": f"number {n}", "id": f"m{n}"} for n in range(599)),
    ]
    appended = chat.append([*again, {"role": "user", "content": "new", "id": "new"}])
    assert [message.position for message in appended] == [*range(1, 601), 602]
    assert texts(appended)[:2] == ["Be brief.", "number 0"] and len(chat.messages()) == 602


def test_what_is_long_is_prepared_beside_the_event_loop(make_engine):
    threads = set()

    class Watched(dict):
        def items(self):
            threads.add(threading.get_ident())
            return super().items()

    chat = make_engine().handle.persona("main").conversation("thread-1")
    said = Message(role="user", content="hello", id="1", extra=Watched(a=1))

    async def say():
        await chat.aappend(said)
        await chat.areconcile([said, "and more"])

    asyncio.run(say())
    assert threads and threading.get_ident() not in threads


def test_a_window_read_in_pages_is_the_window_of_the_whole(me):
    chat = me.conversation("thread-1")
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f", "args": {}}]}
    said = [
        "begin",
        call,
        *(f"meanwhile {n}" for n in range(62)),
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    stored = chat.append([*said, "end"])
    for max_tokens in (5, 60, 200, 250, 10_000):
        assert chat.window(max_tokens) == window(stored, max_tokens)


def test_a_window_is_read_from_the_end(me):
    chat = me.conversation("thread-1")
    chat.append({"role": "system", "content": "Be brief."})
    for n in range(300):
        chat.append([f"question {n}", {"role": "assistant", "content": f"answer {n}"}])
    window = chat.window(60)
    assert texts(window)[0] == "Be brief." and texts(window)[-1] == "answer 299" and window[1].role == "user"
    assert sum(message.tokens for message in window) <= 60 < sum(message.tokens for message in chat.messages(limit=9))
    assert chat.window(10**6) == chat.messages()


def test_the_user_s_message_is_found_however_far_it_lies_back(me):
    chat = me.conversation("thread-1")
    chat.append("Count to a thousand.")
    for n in range(100):
        call = {"id": f"c{n}", "function": {"name": "count", "arguments": "{}"}}
        chat.append({"role": "assistant", "content": "", "tool_calls": [call]})
        chat.append({"role": "tool", "tool_call_id": f"c{n}", "content": "x" * 400})
    window = chat.window(500)
    assert texts(window)[0] == "Count to a thousand." and window[1].tool_calls
    assert sum(message.tokens for message in window) <= 500


def test_a_window_needs_a_size(me):
    for size in (0, -1, 1.5, None, True):
        with pytest.raises(InvalidInput, match="max_tokens"):
            me.conversation("thread-1").window(size)


# -- how it stands


@pytest.mark.behaviour("S33")
def test_a_conversation_says_how_it_stands(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    began = frozen_clock()
    me.conversation("old").append("hello")
    frozen_clock.advance(hours=1)
    me.conversation("new").append(["hello", "there"])
    frozen_clock.advance(hours=1)
    me.conversation("old").append("again")

    record = me.conversation("old").record()
    assert (record.name, record.messages, record.folded, record.pending, record.user_turns) == ("old", 2, 0, 0, 0)
    assert (record.summary, record.created_at, record.updated_at) == ("", began, began + timedelta(hours=2))
    assert [found.name for found in me.conversations.list()] == ["old", "new"]
    assert [found.messages for found in me.conversations.list(limit=1)] == [2]
    with pytest.raises(InvalidInput, match="at most 1,000"):
        me.conversations.list(limit=1_001)


# -- some of it


def test_archived_messages_are_kept_pending_and_out_of_the_window(me):
    chat = me.conversation("thread-1")
    chat.append([{"role": "system", "content": "Be brief."}, "one", "two", "three"])
    whole = chat.size()
    assert texts(chat.archive([2, 3])) == ["one", "two"] and chat.archive([2, 99]) == []
    assert texts(chat.window(1_000)) == texts(chat.messages(folded=False)) == ["Be brief.", "three"]
    assert texts(chat.messages()) == ["Be brief.", "one", "two", "three"]
    assert chat.record().pending == 2 and 0 < chat.size() < whole
    chat.archive(chat.append("four"))
    assert texts(chat.window(1_000)) == ["Be brief.", "three"]
    assert texts(reconcile(chat, ["three", "five"])) == ["three", "five"]
    assert texts(chat.messages()) == ["one", "two", "three", "four", "five"]


def test_removed_messages_are_gone(me):
    chat = me.conversation("thread-1")
    [first, *_] = chat.append(["one", "two", "three"])
    assert texts(chat.remove([first, 3, 99])) == ["one", "three"] and texts(chat.messages()) == ["two"]
    assert me.conversations.names() == ["thread-1"]
    chat.remove([2])
    assert me.conversations.names() == [] and chat.size() == 0 and me.conversation("none").size() == 0
    for wrong in ("two", ["two"], [None], [True]):
        with pytest.raises(InvalidInput):
            chat.remove(wrong)


# -- an end to it


def test_a_cleared_conversation_holds_nothing(engine):
    me = engine.persona("main")
    chat, other = me.conversation("thread-1"), me.conversation("thread-2")
    me.memories.write("Tea is at four.")
    me.user_model.write("baseline", "based in Lisbon")
    chat.append(TURN)
    other.append(TURN)

    assert chat.clear().messages == 4
    assert chat.messages() == [] and chat.window(100) == [] and chat.clear().messages == 0
    record = chat.record()
    assert (record.messages, record.summary, record.user_turns) == (0, "", 0)
    assert len(other.messages()) == 4 and len(me.memories.list()) == len(me.user_model.list()) == 1
    assert [message.position for message in chat.append(TURN)] == [5, 6, 7, 8], "a place is never given twice"


# -- whose it is


def test_a_conversation_of_the_same_name_is_nobody_else_s(engine):
    handles = [
        engine.persona("main"),
        engine.persona("main", user="ana"),
        engine.persona("main", tenant="acme", user="ana"),
        engine.persona("main", tenant="acme", user="ben"),
        engine.persona("other", tenant="acme", user="ben"),
    ]
    for number, me in enumerate(handles):
        me.conversation("thread-1").append([f"from {number}", Message(role="user", content=f"id {number}", id="m1")])
    for number, me in enumerate(handles):
        chat = me.conversation("thread-1")
        assert texts(chat.messages()) == texts(chat.window(100)) == [f"from {number}", f"id {number}"]
        assert [(record.name, record.messages) for record in me.conversations.list()] == [("thread-1", 2)]
    assert handles[3].conversation("thread-1").clear().messages == 2
    assert [len(me.conversation("thread-1").messages()) for me in handles] == [2, 2, 2, 0, 2]


@pytest.mark.parametrize("whole", [True, False])
def test_an_erasure_takes_the_conversations(engine, whole):
    ana, ben = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "ben"))
    for me in (ana, ben):
        me.conversation("thread-1").append(TURN)
        me.conversation("thread-1").system_block()
    assert stored(engine, "messages") == 8 and stored(engine, "snapshots") == 2
    target = {"tenant": "acme", "persona": "main"} if whole else {"tenant": "acme", "user": "ana"}
    assert engine.erase(**target, dry_run=True).rows == engine.erase(**target).rows
    assert ana.conversation("thread-1").messages() == [] and ana.conversations.list() == []
    left = [stored(engine, noun) for noun in ("conversations", "messages", "snapshots")]
    assert left == ([0, 0, 0] if whole else [1, 4, 1])
    ana.conversation("thread-1").append("back again")
    assert texts(ana.conversation("thread-1").messages()) == ["back again"]


def test_setting_a_history_again_after_a_compaction_changes_nothing(make_engine):
    model = ScriptedModel(['{"memories": []}', "They talked."])
    conversation = make_engine(model=model).persona("main").conversation("thread-1")
    said = [{"role": role, "content": f"{role} {n}"} for n in range(5) for role in ("user", "assistant")]
    conversation.append([{"role": "system", "content": "Be brief."}, *said])
    assert conversation.compact(CompactionPolicy(keep_tokens=30)).folded
    stands = conversation.messages(folded=False)
    assert stands[0].role == "system" and 1 < len(stands) < 11
    again = [{"role": message.role, "content": message.content} for message in stands]
    for history in (stands, again):
        assert conversation.reconcile(history) == stands
    assert conversation.record().folded == 11 - len(stands)
    assert conversation.reconcile(again[1:]) == stands[1:], "an old system message may go by itself"


def test_a_message_takes_the_id_it_is_set_with(me):
    conversation = me.conversation("thread-1")
    conversation.append(["One.", {"role": "assistant", "content": "Two."}])
    conversation.reconcile([{"role": "user", "content": "One.", "id": "a"}, {"role": "assistant", "content": "Two."}])
    conversation.append([{"role": "user", "content": "One.", "id": "a"}])
    assert [(message.id, message.position) for message in conversation.messages()] == [("a", 1), (None, 2)]
