"""The drop-in memory: every message kept, a window shown, a prefix that stays, and a model that may fail."""

import asyncio
import copy
import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.memory.memory import InsertMethod
from llama_index.core.storage.chat_store.base_db import MessageStatus
from workflows.context import JsonSerializer, PickleSerializer

from llama_index.memory.memoranda import MemorandaMemory, attach, detach
from memoranda.errors import ConfigurationError
from memoranda.policies import Policies, PromptPolicy

THINKING = getattr(types, "ThinkingBlock", None)  # not yet in 0.14.0


def user(text):
    return ChatMessage(role="user", content=text)


def assistant(text):
    return ChatMessage(role="assistant", content=text)


def contents(messages):
    return [message.content for message in messages]


def dumped(messages):
    return [message.model_dump_json() for message in messages]


def plain(shown):
    return [USER_MODEL.sub("", message.replace("\\n", "\n")) for message in shown]


def turns(count, first=0, width=100):
    said = range(first, first + count)
    return [
        message
        for n in said
        for message in (user(f"The code of station {n} is k{n}. {'x ' * width}"), assistant(f"Noted {n}."))
    ]


# -- the window


def test_what_is_remembered_stands_in_front_and_nothing_where_there_is_nothing(ana, call):
    memory = MemorandaMemory(persona=ana, session_id="s")
    call(memory, "put", user("hello"))
    assert contents(call(memory, "get")) == ["hello"]
    ana.memories.write("Tea is at four {query_str}.")
    other = MemorandaMemory(persona=ana, session_id="t")
    call(other, "put", user("hello"))
    block, said = call(other, "get", input="hello", unknown=1)
    assert block.role == "system" and "Tea is at four" in block.content and said.content == "hello"
    assert "{query_str}" not in block.content, "chat engines would fill it in"
    assert call(memory, "snapshot") == "" and "Tea" in call(other, "snapshot")


METHODS = ["system", "user", "merged", "none"]
USER_MODEL = re.compile(r"\s*<memoranda-user-model nonce=(\w+)>.*?</memoranda-user-model nonce=\1>", re.DOTALL)


@pytest.mark.parametrize("method", METHODS)
def test_the_prefix_stays_over_ten_turns_with_writes_at_each(ana, call, method):
    ana.memories.write("Tea is at four.")
    ana.user_model.write("baseline", "based in Lisbon")
    memory = MemorandaMemory(persona=ana, session_id="s", insert_method=method)
    call(memory, "put", ChatMessage(role="system", content="Be brief."))
    before: list[str] = []
    for n in range(10):
        call(memory, "put", user(f"question {n}"))
        shown = dumped(call(memory, "get", input=f"question {n}"))
        if n % 3:
            assert shown[: len(before)] == before
        else:  # the user model was written in the turn before: its text has changed, and no other
            assert plain(shown)[: len(before)] == plain(before)
        assert shown == dumped(call(memory, "get")), "the calls of one turn agree"
        before = shown[:-1]
        ana.memories.write(f"Written in turn {n}.")
        if n % 3 == 2:
            ana.user_model.write("baseline", f"based in city {n}")
        call(memory, "put", assistant(f"answer {n}"))
    last = "".join(shown)
    assert ("Tea is at four" in last and "city 8" in last) or method == "none"


def test_fresh_text_stands_on_the_newest_message_of_the_users(engine, ana, call):
    ana.memories.write("Tea is at four.")
    ana.user_model.write("baseline", "based in Lisbon")
    memory = MemorandaMemory(persona=ana, session_id="s", insert_method=InsertMethod.USER)
    assert "Tea" in call(memory, "get")[0].content, "also where nothing was said yet"
    for text in ("one", "two"):
        call(memory, "put_messages", [user(text), assistant(f"and {text}")])
    first, _, newest, _ = call(memory, "get")
    assert "Tea" in first.content and "Lisbon" not in first.content and "Lisbon" in newest.content
    *rest, coming = call(memory, "get", input="three")
    assert contents(rest)[1:] == ["and one", "two", "and two"] and "Lisbon" in coming.content
    merged = MemorandaMemory(persona=ana, session_id="s", insert_method="merged")
    assert [message.role.value for message in call(merged, "get")].count("system") == 1
    bare = MemorandaMemory(persona=engine.handle.persona("bare"), session_id="s", insert_method="merged")
    call(bare, "put_messages", [ChatMessage(role="system", content=text) for text in ("Be brief.", "Be kind.")])
    assert contents(call(bare, "get")) == ["Be brief.\nBe kind."], "also where nothing is remembered"
    plain = MemorandaMemory(persona=ana, session_id="s", insert_method="none")
    assert contents(call(plain, "get")) == ["one", "and one", "two", "and two"]


def test_the_window_counts_everything_and_never_parts_a_call_from_its_result(ana, call, calling):
    memory = MemorandaMemory(persona=ana, session_id="s", token_limit=300, chat_history_token_ratio=1)
    call(memory, "put", ChatMessage(role="system", content="Be brief."))
    for n in range(6):
        asked = calling(f"c{n}", "look", query="word " * (30 if THINKING else 90))
        if THINKING:
            asked.blocks.insert(0, THINKING(content="hm " * 30))
        call(
            memory,
            "put_messages",
            [
                user(f"question {n}"),
                asked,
                ChatMessage(role="tool", content="found", additional_kwargs={"tool_call_id": f"c{n}"}),
                assistant(f"answer {n}"),
            ],
        )
    shown = call(memory, "get")
    assert shown[0].content == "Be brief." and shown[1].content == "question 4" and shown[-1].content == "answer 5"
    fewer = call(memory, "get", initial_token_count=200)
    assert contents(fewer)[0] == "Be brief." and contents(fewer)[-1] in ("answer 5", "question 5")
    assert call(memory, "get", initial_token_count=10_000)[-1].content, "degrades, never raises"


def test_what_is_given_out_is_a_copy(ana, call):
    memory = MemorandaMemory(persona=ana, session_id="s")
    call(memory, "put", user("hello"))
    call(memory, "get")[-1].blocks[0].text = "Current state: {}"
    assert contents(call(memory, "get")) == ["hello"]


def test_recall_is_asked_once_a_user_message(make_engine, call):
    engine = make_engine(preset=Policies(prompt=PromptPolicy(turn=True, memories=0))).handle
    me = engine.persona("main", user="ana")
    me.memories.write("Tea is at four.")
    memory = MemorandaMemory(persona=me, session_id="s")
    call(memory, "put", user("When is tea?"))
    first = call(memory, "get")
    assert "Tea is at four" in first[-1].content
    me.memories.write("Tea is at five on Sundays.")
    assert call(memory, "get", input="When is tea?") == first
    call(memory, "put_messages", [assistant("At four."), user("And tea on Sundays?")])
    assert "five" in call(memory, "get", input=user("And tea on Sundays?"))[-1].content


# -- folding


def test_an_overflow_is_flushed_summed_up_and_taken_out_of_the_window(remembering, call):
    engine, model = remembering()
    me = engine.persona("main", user="ana")
    memory = MemorandaMemory(persona=me, session_id="s", token_limit=1_000)
    call(memory, "put", ChatMessage(role="system", content="Be brief."))
    call(memory, "put_messages", turns(4))
    assert not model.calls
    call(memory, "put_messages", turns(12, first=4))
    record = memory.conversation.record()
    assert record.summary and record.folded and len(model.calls) == 2
    assert any("station 0 is k0" in found.content for found in me.memories.list())
    shown = call(memory, "get")
    assert "They spoke of stations" in shown[0].content and shown[1].content == "Be brief."
    assert len(call(memory, "get_all")) == 33 > len(shown)


TRACE = (
    "Thought: a tool\nAction: look\nAction Input: {}\nObservation: " + "data " * 160 + "\nThought: done\nAnswer: yes"
)
DENSE = str([{"x": 1, "y": -2.5}] * 20)


@pytest.mark.parametrize("text", [TRACE, DENSE], ids=["trace", "dense"])
def test_nothing_leaves_the_window_before_it_is_summed_up_however_many_tokens_it_has(remembering, call, text):
    engine, _ = remembering()
    memory = MemorandaMemory(persona=engine.persona("main", user="ana"), session_id="s", token_limit=1_000)
    for n in range(6):
        call(memory, "put", user(f"{n}"))
        shown = [message for message in call(memory, "get") if message.role != "system"]
        record = memory.conversation.record()
        assert len(shown) == record.messages - record.folded
        call(memory, "put", assistant(text))
    assert record.folded and record.summary


def test_a_model_that_fails_costs_neither_turn_nor_message(remembering, call):
    engine, model = remembering([RuntimeError("down")] * 20)
    memory = MemorandaMemory(persona=engine.persona("main", user="ana"), session_id="s", token_limit=1_000)
    call(memory, "put_messages", turns(16))
    asked = len(model.calls)
    assert asked and memory.conversation.record().folded == 0
    for said in (memory, copy.deepcopy(memory)):
        call(said, "put", user("and then?"))
    assert len(model.calls) == asked, "not asked again at once, whichever object speaks"
    assert len(call(memory, "get_all")) == 34 and call(memory, "get")[-1].content == "and then?"
    assert call(memory, "flush").problem and memory.conversation.record().pending
    model.answers = ["[]", "They spoke."] * 4
    assert call(memory, "flush").problem is None


def test_a_short_session_is_saved_when_it_ends(remembering, call):
    engine, _ = remembering()
    me = engine.persona("main", user="ana")
    memory = MemorandaMemory(persona=me, session_id="s")
    assert not call(memory, "end_session")
    call(memory, "put_messages", turns(1))
    assert call(memory, "end_session")
    engine.drain()
    assert [found.content for found in me.memories.list()] == ["The code of station 0 is k0."]
    assert call(memory, "flush").skipped


# -- a history that is set


def test_a_history_that_is_set_keeps_what_agrees_and_what_was_remembered(remembering, call):
    engine, _ = remembering()
    me = engine.persona("main", user="ana")
    memory = MemorandaMemory(persona=me, session_id="s", token_limit=1_000)
    call(memory, "put_messages", turns(16))
    everything, folded = call(memory, "get_all"), memory.conversation.record().folded
    assert folded
    call(memory, "set", [*everything, user("more")])
    assert contents(call(memory, "get_all")) == [*contents(everything), "more"]
    assert memory.conversation.record().folded == folded
    call(memory, "set", call(memory, "get"))
    assert contents(call(memory, "get_all")) == [*contents(everything), "more"]
    assert memory.conversation.record().folded >= folded and call(memory, "get")[-1].content == "more"
    assert not any("<memoranda-" in (message.content or "") for message in call(memory, "get_all"))
    remembered = len(me.memories.list())
    call(memory, "set", [user("anew")])
    assert contents(call(memory, "get"))[-1] == "anew" and len(me.memories.list()) == remembered
    call(memory, "reset")
    assert call(memory, "get_all") == [] and len(me.memories.list()) == remembered


def test_what_a_history_says_otherwise_replaces_what_was_said(ana, call):
    memory = MemorandaMemory(persona=ana, session_id="s")
    call(memory, "put_messages", [user("one"), assistant("1")])
    [first, second] = call(memory, "get_all")
    second.additional_kwargs["rating"] = 5
    call(memory, "set", [first, second])
    assert call(memory, "get_all") == [first, second]


def test_what_was_out_of_the_window_is_archived_when_the_window_is_set(remembering, call):
    engine, _ = remembering([RuntimeError("down")] * 50)
    memory = MemorandaMemory(persona=engine.persona("main", user="ana"), session_id="s", token_limit=1_000)
    call(memory, "put_messages", [ChatMessage(role="system", content="Be brief."), *turns(16)])
    everything, shown = call(memory, "get_all"), call(memory, "get")
    assert len(shown) < len(everything)
    call(memory, "set", [*shown, user("between")])
    assert call(memory, "get_all") == [*everything, user("between")]
    assert call(memory, "get_all", status=MessageStatus.ACTIVE) == [*shown, user("between")]
    assert memory.conversation.record().pending == len(everything) - len(shown)
    call(memory, "set", [user("anew")])
    assert contents(call(memory, "get_all", status=MessageStatus.ACTIVE)) == ["anew"]


def test_a_system_message_stays_when_a_history_is_set_after_an_overflow(remembering, call):
    engine, _ = remembering()
    memory = MemorandaMemory(persona=engine.persona("main", user="ana"), session_id="s", token_limit=1_000)
    call(memory, "put_messages", [ChatMessage(role="system", content="Be brief."), *turns(16)])
    everything, stands = call(memory, "get_all"), memory.conversation.messages(folded=False)
    assert memory.conversation.record().folded and stands[0].role == "system"
    call(memory, "set", everything)
    assert memory.conversation.messages(folded=False) == stands


def test_two_sessions_of_one_persona_are_two(ana, call):
    one, two = (MemorandaMemory(persona=ana, session_id=name) for name in ("one", "two"))
    call(one, "put", user("a secret"))
    call(two, "put", user("hello"))
    assert contents(call(two, "get")) == ["hello"] and contents(call(one, "get_all")) == ["a secret"]
    assert one and MemorandaMemory(persona=ana), "truthy, however empty"


def test_an_object_that_is_given_another_session_knows_nothing_of_the_first(make_engine, call):
    engine = make_engine(preset=Policies(prompt=PromptPolicy(turn=True, memories=0))).handle
    ana, ben = (engine.persona("main", user=name) for name in ("ana", "ben"))
    ana.memories.write("Tea is at four.")
    memory = MemorandaMemory(persona=ana, session_id="a", token_limit=300)
    call(memory, "put", user("When is tea?"))
    assert "four" in call(memory, "get")[0].content
    memory.persona, memory.session_id = ben, "b"
    call(memory, "put", user("When is tea?"))
    assert contents(call(memory, "get")) == ["When is tea?"]
    memory.session_id = "c"
    call(memory, "put_messages", [user("word " * 300), assistant("yes"), user("so?")])
    assert contents(call(memory, "get")) == ["so?"]


# -- across serialisers


@pytest.mark.parametrize("serializer", [JsonSerializer(), PickleSerializer()])
def test_a_context_keeps_the_memory(engine, call, serializer):
    attach(engine.handle)
    try:
        me = engine.handle.persona("main", user="ana").scoped(people=["ben"])
        memory = MemorandaMemory.from_defaults(me, "s", token_limit=99, insert_method="merged", llm=None)
        text = serializer.serialize(memory)
        assert "sqlite" not in text and "postgres" not in text
        again = serializer.deserialize(text)
        assert (again.session_id, again.token_limit, again.insert_method) == ("s", 99, "merged")
        assert again.persona.scope == me.scope
        call(again, "put", user("hello"))
        for copied in (memory, copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
            assert contents(call(copied, "get_all")) == ["hello"]
        assert contents(MemorandaMemory.from_defaults(chat_history=[user("hi")]).get_all()) == ["hi"]
    finally:
        detach()
    with pytest.raises(ConfigurationError, match="attach"):
        serializer.deserialize(text)


def test_an_engine_that_nobody_attached_is_found_again_in_this_process(ana):
    memory = MemorandaMemory(persona=ana, session_id="s")
    assert MemorandaMemory.from_dict(memory.to_dict()).persona.scope == ana.scope


def test_an_engine_goes_by_the_name_it_was_given(make_engine):
    engine = make_engine().handle
    memory = MemorandaMemory(persona=engine.persona("main", user="ana"), session_id="s")
    assert memory.to_dict()["engine"].startswith("process-")
    attach(engine, "house")
    attach(engine, "ledger", preset="ledger")
    try:
        assert memory.to_dict()["engine"] == "house"
        strict = MemorandaMemory(persona=engine.persona("main", user="ana", preset="ledger"), session_id="s")
        assert strict.to_dict()["engine"] == "ledger"
        assert MemorandaMemory.from_dict(strict.to_dict()).persona._context == strict.persona._context
    finally:
        detach("house")
        detach("ledger")


# -- threads and loops


def test_one_object_serves_threads_loops_and_plain_calls(ana):
    memory = MemorandaMemory(persona=ana, session_id="s")

    async def on_a_loop(text):
        memory.put(user(f"sync {text}"))
        await memory.aput(user(text))
        return await memory.aget()

    for text in ("one", "two"):
        asyncio.run(on_a_loop(text))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: memory.put(user(f"thread {n}")), range(8)))
        list(pool.map(lambda n: asyncio.run(memory.aput(user(f"loop {n}"))), range(4)))
    assert len(memory.get_all()) == 16 == len(set(contents(memory.get())))


def test_a_message_with_nothing_but_a_block_of_ours_is_no_message(ana, call):
    memory = MemorandaMemory(persona=ana, session_id="s")
    block = "<memoranda-turn nonce=00000000>\nx\n</memoranda-turn nonce=00000000>"
    call(memory, "set", [ChatMessage(role="user", blocks=[TextBlock(text=block)]), user("hello")])
    assert contents(call(memory, "get_all")) == ["hello"]
