"""The summariser that loses nothing, beside the stock one, which does."""

from inspect import signature

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langchain_memoranda import FlushingSummarizationMiddleware, MemoryMiddleware, nodes
from langchain_memoranda.summarization import _whole
from memoranda.errors import ConfigurationError
from memoranda.policies import CompactionPolicy, Policies

THREAD = {"configurable": {"thread_id": "thread-1"}}
FILLER = "So it goes, and goes on, and on. " * 20


def talk(count, start=0):
    """A talk whose first message says what must not be lost."""
    said = [HumanMessage(f"My allergy is peanuts. {FILLER}") if start == 0 else HumanMessage("And then?")]
    for number in range(start + 1, start + count):
        said.append(
            AIMessage(f"Answer {number}. {FILLER}") if number % 2 else HumanMessage(f"Message {number}. {FILLER}")
        )
    return said


def called(id):
    return AIMessage("", tool_calls=[ToolCall(name="look", args={}, id=id)])


@pytest.fixture(params=["stock", "ours"])
def made(request, remembering, chat_model):
    """The stock summariser or ours, the model that it asks, and whether it is ours."""
    engine, _ = remembering()

    def make(*summaries, **options):
        model = chat_model(*summaries)
        options = {"trigger": ("messages", 10), "keep": ("messages", 4), **options}
        if request.param == "stock":
            return SummarizationMiddleware(model, **options), model, False
        return FlushingSummarizationMiddleware(model, engine.persona("main"), **options), model, True

    return make


def run(call, chat_model, middleware, messages, saver=None):
    model = chat_model("Fine.")
    agent = create_agent(model, middleware=[middleware], checkpointer=saver)
    return call(agent, {"messages": messages}, THREAD)["messages"]


def test_the_oldest_messages_are_summarised_only_by_ours(made, chat_model, call):
    middleware, model, ours = made("A summary.")
    run(call, chat_model, middleware, talk(40))
    assert ("peanuts" in str(model.seen)) is ours


def test_the_summary_before_is_carried_on_only_by_ours(made, chat_model, call):
    middleware, model, ours = made("They are allergic to peanuts.", "A second summary.")
    saver = InMemorySaver()
    run(call, chat_model, middleware, talk(40), saver)
    run(call, chat_model, middleware, talk(40, start=40), saver)
    assert len(model.seen) == 2 and ("They are allergic to peanuts." in str(model.seen[1])) is ours


def test_one_long_run_of_tools_is_summarised_only_by_ours(made, chat_model, call):
    middleware, model, ours = made("A summary.")
    long = [HumanMessage("My allergy is peanuts.")]
    for number in range(30):
        long += [called(f"c{number}"), ToolMessage(f"Result {number}. {FILLER}", tool_call_id=f"c{number}")]
    state = run(call, chat_model, middleware, long)
    assert bool(model.seen) is ours
    assert ("too long to summarize" in str(state)) is not ours


def test_the_facts_of_a_long_run_of_tools_survive_beside_the_stock_class_too(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    stock = SummarizationMiddleware(chat_model("Never asked."), trigger=("messages", 10), keep=("messages", 4))
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me), stock])
    long = [HumanMessage("The code of station 1 is b1x1.")]
    for number in range(30):
        long += [called(f"c{number}"), ToolMessage(f"Result {number}. {FILLER}", tool_call_id=f"c{number}")]
    state = call(agent, {"messages": long}, THREAD)["messages"]
    assert "too long to summarize" in str(state)
    engine.drain()
    assert "b1x1" in str(me.recall("What is the code of station 1?"))
    assert me.conversation("thread-1").record().messages == len(long) + 1


def test_a_result_stays_with_its_call_only_in_ours(made, chat_model, call):
    middleware, _, ours = made("A summary.", keep=("messages", 3))
    mixed = [
        *talk(8),
        called("c1"),
        HumanMessage("Hurry up."),
        ToolMessage("Found.", tool_call_id="c1"),
        AIMessage("So."),
    ]
    state = run(call, chat_model, middleware, mixed)
    calls = {call["id"] for message in state if isinstance(message, AIMessage) for call in message.tool_calls}
    results = {message.tool_call_id for message in state if isinstance(message, ToolMessage)}
    assert results == {"c1"} and (results <= calls) is ours


def test_interleaved_calls_are_taken_in_one_after_the_other(remembering, chat_model, call):
    engine, _ = remembering()
    memory = engine.persona("main")
    options = {"trigger": ("messages", 8), "keep": ("messages", 2)}
    middleware = FlushingSummarizationMiddleware(chat_model("A summary."), memory, **options)
    first = [called("a"), called("b"), ToolMessage("A.", tool_call_id="a"), HumanMessage("Well?")]
    state = run(call, chat_model, middleware, [*talk(3), *first, ToolMessage("B.", tool_call_id="b"), AIMessage("So.")])
    assert [message.type for message in state] == ["human", "ai", "ai", "tool", "human", "tool", "ai", "ai"]
    whole = [called("a"), *talk(8)[1:], ToolMessage("A.", tool_call_id="a")]
    state = run(call, chat_model, middleware, whole)
    assert [message.id for message in state[: len(whole)]] == [message.id for message in whole]


KINDS = st.lists(st.sampled_from(["human", "ai", "call", "two calls", "result"]), min_size=1, max_size=16)


def thread(kinds):
    """A thread in which a result may come long after its call, with talk between them."""
    messages, open_calls = [], []
    for number, kind in enumerate(kinds):
        if kind == "result" and open_calls:
            messages.append(ToolMessage("Found.", tool_call_id=open_calls.pop(0), id=str(number)))
        elif kind in ("call", "two calls"):
            new = [f"c{number}.{n}" for n in range(1 if kind == "call" else 2)]
            open_calls += new
            messages.append(
                AIMessage("", tool_calls=[ToolCall(name="look", args={}, id=id) for id in new], id=str(number))
            )
        else:
            messages.append((HumanMessage if kind == "human" else AIMessage)(f"Message {number}.", id=str(number)))
    return messages


@given(kinds=KINDS, data=st.data())
def test_whatever_is_kept_has_no_result_without_its_call_and_ends_the_thread(kinds, data):
    before = thread(kinds)
    first = data.draw(st.integers(0, len(before)))
    head = [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("A summary.", id="summary")]
    update = _whole(before, {"messages": [*head, *before[first:]]})
    if update is None:  # all would be kept: there is nothing to sum up
        kept = before
    else:
        assert update["messages"][:2] == head
        kept = update["messages"][2:]
        assert kept == before[len(before) - len(kept) :] and len(before) > len(kept) >= len(before) - first
    calls = {call["id"] for message in kept if isinstance(message, AIMessage) for call in message.tool_calls}
    assert {message.tool_call_id for message in kept if isinstance(message, ToolMessage)} <= calls


def test_a_call_s_id_that_comes_again_takes_no_later_result_away():
    before = [
        HumanMessage("Go.", id="0"),
        called("c1").model_copy(update={"id": "1"}),
        HumanMessage("Well?", id="2"),
        ToolMessage("First.", tool_call_id="c1", id="3"),
        called("c1").model_copy(update={"id": "4"}),
        ToolMessage("Second.", tool_call_id="c1", id="5"),
    ]
    for first, kept in ((3, "12345"), (4, "45"), (5, "45")):
        update = _whole(before, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *before[first:]]})
        assert [message.id for message in update["messages"][1:]] == list(kept)


def test_the_answer_to_a_call_that_could_not_be_read_stays_with_it():
    unread = invalid_tool_call(name="look", args="{day", id="c1", error="no JSON")
    before = [
        HumanMessage("Go.", id="0"),
        AIMessage("", invalid_tool_calls=[unread], id="1"),
        HumanMessage("Well?", id="2"),
        ToolMessage("No JSON.", tool_call_id="c1", id="3"),
    ]
    update = _whole(before, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *before[2:]]})
    assert [message.id for message in update["messages"][1:]] == list("123")


def test_without_a_checkpointer_what_stays_is_not_pending(remembering, chat_model, call):
    engine, _ = remembering()
    chat = engine.persona("main").conversation("thread-1")
    talk = [HumanMessage("Go."), called("c1"), ToolMessage("Found.", tool_call_id="c1"), AIMessage("There it is.")]
    nodes.record(chat, [message.model_copy(update={"id": str(n)}) for n, message in enumerate(talk)])
    options = {"trigger": ("messages", 5), "keep": ("messages", 2), "flush": "job"}
    ours = FlushingSummarizationMiddleware(chat_model("A summary."), engine.persona("main"), **options)
    run(call, chat_model, ours, [*talk, HumanMessage("Thanks.")])
    assert [message.content for message in chat.messages() if message.pending] == ["Go.", "", "Found."]


def test_a_run_of_nobody_costs_no_summary(remembering, chat_model, call):
    engine, _ = remembering()
    model = chat_model("A summary.")
    middleware = FlushingSummarizationMiddleware(model, engine, trigger=("messages", 2), keep=("messages", 1))
    with pytest.raises(ConfigurationError, match="No user is named"):
        run(call, chat_model, middleware, talk(3))
    assert not model.seen


def test_what_is_replaced_is_recorded_and_flushed_first(remembering, chat_model, call):
    engine, flusher = remembering()
    me = engine.persona("main")
    options = {"trigger": ("messages", 3), "keep": ("messages", 1)}
    middleware = FlushingSummarizationMiddleware(chat_model("A summary."), me, **options)
    said = [HumanMessage("The code of station 1 is b1x1."), AIMessage("Noted."), HumanMessage("Thanks.")]
    state = run(call, chat_model, middleware, said)
    assert [memory.content for memory in me.memories.list()] == ["The code of station 1 is b1x1."]
    assert len(flusher.calls) == 1 and "Thanks" not in str(flusher.calls[0].text)
    assert [m.content for m in me.conversation("thread-1").messages()] == [m.content for m in said]
    assert state[0].additional_kwargs == {"lc_source": "summarization"} and state[1].content == "Thanks."


def test_beside_the_middleware_each_message_is_recorded_and_flushed_once(remembering, chat_model, call):
    engine, flusher = remembering(preset=Policies(compaction=CompactionPolicy(flush_min_tokens=100_000)))
    me = engine.persona("main")
    options = {"trigger": ("messages", 4), "keep": ("messages", 2)}
    ours = FlushingSummarizationMiddleware(chat_model("A summary."), me, name="SummarizationMiddleware", **options)
    agent = create_agent(chat_model("Noted."), middleware=[MemoryMiddleware(me), ours], checkpointer=InMemorySaver())
    for number in range(6):
        call(agent, {"messages": [HumanMessage(f"The code of station {number} is x{number}.")]}, THREAD)
    assert me.conversation("thread-1").record().messages == 12 and len(flusher.calls) >= 3
    saved = sorted(memory.content for memory in me.memories.list())
    assert saved == [f"The code of station {number} is x{number}." for number in range(len(saved))] and len(saved) >= 4


def test_a_flush_that_fails_stops_no_summary_and_is_done_later(remembering, chat_model, call):
    engine, flusher = remembering()
    flusher.answers[:] = ["no JSON"]
    me = engine.persona("main")
    options = {"trigger": ("messages", 3), "keep": ("messages", 1)}
    middleware = FlushingSummarizationMiddleware(chat_model("A summary."), me, **options)
    said = [HumanMessage("The code of station 1 is b1x1."), AIMessage("Noted."), HumanMessage("Thanks.")]
    state = run(call, chat_model, middleware, said)
    assert "A summary." in state[0].content and me.conversation("thread-1").pending().messages == 2


def test_a_summary_that_fails_changes_nothing(remembering, chat_model, call):
    def down(messages):
        raise ValueError("down")

    engine, flusher = remembering()
    me = engine.persona("main")
    options = {"trigger": ("messages", 3), "keep": ("messages", 1)}
    if "summarizer" in signature(SummarizationMiddleware.__init__).parameters:
        options["summarizer"] = down  # a model would be asked three times, for seconds
    with pytest.raises(ValueError, match="down"):
        run(call, chat_model, FlushingSummarizationMiddleware(chat_model(down), me, **options), talk(3))
    assert not flusher.calls and me.conversation("thread-1").record() is None


def test_left_to_a_job_it_costs_no_call(remembering, chat_model, call):
    engine, flusher = remembering(preset=Policies(compaction=CompactionPolicy(flush_min_tokens=0)))
    me = engine.persona("main")
    options = {"trigger": ("messages", 3), "keep": ("messages", 1), "flush": "job"}
    middleware = FlushingSummarizationMiddleware(chat_model("A summary."), me, **options)
    run(call, chat_model, middleware, [HumanMessage("The code of station 1 is b1x1."), AIMessage("Noted."), "Thanks."])
    assert not flusher.calls
    engine.drain()
    assert [memory.content for memory in me.memories.list()] == ["The code of station 1 is b1x1."]
