"""Chat history and classic memory: older chains on the same conversations."""

import asyncio
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from langchain_memoranda import ClassicMemory, MemoryChatHistory
from memoranda.errors import ConfigurationError
from memoranda.policies import CompactionPolicy, Policies
from memoranda.testing import ScriptedModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from langchain_core.runnables.history import RunnableWithMessageHistory

ANY_NAME = "7 / ana@example.org: a%b_c 'ü'"


def with_history(chain, history):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RunnableWithMessageHistory(chain, history)


@pytest.mark.parametrize("verb", ["sync", "async", "mixed"])
def test_one_object_serves_both_halves_and_any_session(me, verb):
    history = MemoryChatHistory(me.handle, ANY_NAME)
    said = [HumanMessage("Hello."), AIMessage("Hi.", id="a1"), HumanMessage("Hello."), HumanMessage("Hello.")]
    if verb == "sync":
        history.add_messages(said)
        history.add_message(said[1])
    elif verb == "async":
        asyncio.run(history.aadd_messages(said))
        asyncio.run(history.aadd_messages(said[1:2]))
    else:
        asyncio.run(history.aadd_messages(said))
        history.add_message(said[1])
    assert history.messages == asyncio.run(history.aget_messages()) == [*said, said[1]]
    assert MemoryChatHistory(me.handle, ANY_NAME).messages == [*said, said[1]]
    assert MemoryChatHistory(me.handle, "7").messages == []
    history.clear() if verb == "sync" else asyncio.run(history.aclear())
    assert history.messages == [] and me.conversation(ANY_NAME).messages() == []


def test_messages_can_be_replaced(me):
    history = MemoryChatHistory(me.handle, "thread-1")
    history.add_messages([HumanMessage("One."), AIMessage("Two."), HumanMessage("Three.")])
    history.messages = [HumanMessage("Two."), HumanMessage("Two.")]
    assert history.messages == [HumanMessage("Two."), HumanMessage("Two.")]
    assert [message.content for message in me.conversation("thread-1").messages()] == ["Two.", "Two."]


def test_what_is_folded_is_not_doubled_when_the_messages_are_set(make_engine):
    me = make_engine(model=ScriptedModel(["[]", "A summary."])).handle.persona("main")
    history = MemoryChatHistory(me, "thread-1")
    history.add_messages([SystemMessage("Be brief."), *[HumanMessage("a " * 50), AIMessage("b " * 50)] * 3])
    assert me.conversation("thread-1").compact(CompactionPolicy(keep_tokens=10)).folded
    before = me.conversation("thread-1").messages()
    history = MemoryChatHistory(me, "thread-1")
    shown = history.messages
    history.messages = shown
    assert me.conversation("thread-1").messages() == before and history.messages == shown
    history.messages = [*shown, HumanMessage("c")]
    assert MemoryChatHistory(me, "thread-1").messages == history.messages == [*shown, HumanMessage("c")]
    history.messages = [*shown[-2:], HumanMessage("d")]
    assert [message.text for message in history.messages[-2:]] == ["b " * 50, "d"]
    folded = [message for message in before if message.folded]
    assert [message for message in me.conversation("thread-1").messages() if message.folded] == folded


def test_a_chain_with_history_sees_what_was_said(me, call):
    seen = []
    chain = with_history(
        RunnableLambda(lambda messages: seen.append(len(messages)) or AIMessage("Fine.")),
        lambda session_id: MemoryChatHistory(me.handle, session_id),
    )
    for _ in range(3):
        call(chain, [HumanMessage("Hello.")], {"configurable": {"session_id": "thread-1"}})
    assert seen == [1, 3, 5]
    assert [m.content for m in me.conversation("thread-1").messages()] == ["Hello.", "Fine."] * 3


def test_a_turn_at_the_same_time_loses_no_message(me, call):
    other = MemoryChatHistory(me.handle, "thread-1")

    def answer(messages):
        other.add_messages([HumanMessage("Other."), AIMessage("Other answer.")])
        return AIMessage("Answer.")

    chain = with_history(RunnableLambda(answer), lambda session_id: MemoryChatHistory(me.handle, session_id))
    call(chain, [HumanMessage("Question.")], {"configurable": {"session_id": "thread-1"}})
    stored = [message.content for message in me.conversation("thread-1").messages()]
    assert stored == ["Other.", "Other answer.", "Question.", "Answer."]


def test_what_several_threads_add_in_the_same_moment_stays_in_order(me):
    def add(n):
        history = MemoryChatHistory(me.handle, "thread-1")
        history.add_messages([HumanMessage(f"{n}"), AIMessage(f"answer {n}")])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(12)))
    said = [message.content for message in MemoryChatHistory(me.handle, "thread-1").messages]
    assert len(said) == 24 and all(said[n + 1] == f"answer {said[n]}" for n in range(0, 24, 2))


# -- memory= of classic chains


def test_a_classic_chain_goes_on_where_it_was(me, call, chat_model):
    from langchain_core.prompts import PromptTemplate

    me.memories.write("Falcon is released on 12 March.")
    model = chat_model("Fine.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_classic.chains import ConversationChain, LLMChain

        chain = ConversationChain(llm=model, memory=ClassicMemory(persona=me.handle, session_id="thread-1"))
    call(chain, {"input": "Hello."})
    call(chain, {"input": "And then?"})
    last = model.seen[-1][0].content
    assert "Falcon" in last and "Human: Hello.\nAI: Fine." in last
    prompt = PromptTemplate.from_template("{known}|{talk}|{language}|{question}")
    options = {"memory_key": "talk", "recall_key": "known", "input_key": "question", "human_prefix": "Ana"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memory = ClassicMemory(persona=me.handle, session_id="thread-1", **options)
        chain = LLMChain(llm=model, prompt=prompt, memory=memory)
    call(chain, {"question": "Well?", "language": "English"})
    known, talk, *_ = model.seen[-1][0].content.split("|")
    assert "Falcon" in known and "Falcon" not in talk and talk.startswith("Ana: Hello.")
    assert me.conversation("thread-1").record().user_turns == 3


def test_classic_variables_are_messages_for_chat_models(me, call):
    memory = ClassicMemory(persona=me.handle, session_id="thread-1", return_messages=True)
    assert memory.memory_variables == ["history"]
    assert call(memory, {}, verb="load_memory_variables") == {"history": []}
    call(memory, {"input": "Hello."}, {"output": "Hi."}, verb="save_context")
    call(memory, {"input": "Hello."}, {"output": "Hi."}, verb="save_context")
    me.user_model.write("baseline", "lives in Lisbon")
    found = call(memory, {"input": "Well?"}, verb="load_memory_variables")["history"]
    assert [message.type for message in found] == ["system", "human", "ai", "human", "ai"] and "Lisbon" in found[0].text
    call(memory, verb="clear")
    assert me.conversation("thread-1").messages() == [] and me.user_model.list()


def test_messages_that_a_classic_chain_hands_on_are_kept_as_what_they_say(me, call):
    memory = ClassicMemory(persona=me.handle, session_id="thread-1")
    call(memory, {"input": HumanMessage("Hello.")}, {"output": AIMessage("Hi.")}, verb="save_context")
    assert [message.content for message in me.conversation("thread-1").messages()] == ["Hello.", "Hi."]


def test_what_a_classic_chain_is_not_shown_any_more_is_saved(remembering, call):
    engine, _ = remembering(preset=Policies(compaction=CompactionPolicy(flush_min_tokens=1)))
    me = engine.persona("main")
    memory = ClassicMemory(persona=me, session_id="thread-1", max_tokens=60)
    for number in range(4):
        said = f"The code of station {number} is x{number}. " + "So it goes. " * 8
        call(memory, {"input": said}, {"output": "Noted."}, verb="save_context")
    shown = call(memory, {"input": "Well?"}, verb="load_memory_variables")["history"]
    engine.drain()
    assert "station 3" in shown and "station 0" not in shown
    assert "station 0" in str([memory.content for memory in me.memories.list()])


@pytest.mark.parametrize("max_tokens", [1, 40, 80, 120, 160, 1_000])
def test_a_window_begins_with_a_turn_and_parts_no_result_from_its_call(me, call, calling, max_tokens):
    history = MemoryChatHistory(me.handle, "thread-1")
    for turn in range(3):
        said = [HumanMessage(f"Turn {turn}: look. " * 4), calling("look", id=f"c{turn}", day=turn)]
        said += [ToolMessage("Found it. " * 8, tool_call_id=f"c{turn}"), AIMessage("There it is.")]
        call(history, said, verb="add_messages")
    options = {"return_messages": True, "max_tokens": max_tokens}
    memory = ClassicMemory(persona=me.handle, session_id="thread-1", **options)
    shown = call(memory, {"input": "Well?"}, verb="load_memory_variables")["history"]
    assert shown[0].type == "human" and len(shown) >= 1
    calls = [one["id"] for message in shown if isinstance(message, AIMessage) for one in message.tool_calls]
    results = [message.tool_call_id for message in shown if isinstance(message, ToolMessage)]
    assert calls == results
    assert (len(shown) == 12) is (max_tokens == 1_000)


def test_a_chain_with_several_outputs_says_which_is_the_answer(me):
    memory = ClassicMemory(persona=me.handle, session_id="thread-1")
    with pytest.raises(ConfigurationError, match="output_key"):
        memory.save_context({"input": "Hello."}, {"a": "1", "b": "2"})


def test_tool_messages_are_part_of_a_history(me, call):
    history = MemoryChatHistory(me.handle, "thread-1")
    said = [SystemMessage("Be brief."), ToolMessage("Found.", tool_call_id="c1", artifact={"raw": b"\x00"})]
    call(history, said, verb="add_messages")
    assert history.messages == said
