"""The flush in line: once a rewrite of the state, never in a stream, and no turn fails of it."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_memoranda import FlushingSummarizationMiddleware, LangChainModel, MemoryMiddleware

THREAD = {"configurable": {"thread_id": "thread-1"}}
TRIGGERS = {"trigger": ("messages", 6), "keep": ("messages", 2)}
SUMMARY = "They spoke of stations."
FILLER = "So it goes, and goes on, and on. " * 20


def said(number):
    return f"The code of station {number} is x{number}. {FILLER}"


@pytest.fixture
def streamed(mode):
    """Send a text to an agent, and return the messages that its stream shows."""

    async def arun(agent, text):
        parts = agent.astream({"messages": [text]}, THREAD, stream_mode="messages")
        return [part async for part, _ in parts]

    def run(agent, text):
        if mode == "async":
            return asyncio.run(arun(agent, text))
        return [part for part, _ in agent.stream({"messages": [text]}, THREAD, stream_mode="messages")]

    return run


@pytest.mark.parametrize("which", ["the stock summariser", "ours"])
def test_it_happens_once_a_rewrite_and_never_in_the_stream(which, remembering, chat_model, streamed):
    hidden = chat_model('[{"content": "The code of station 0 is x0."}]')
    engine, _ = remembering(model=LangChainModel(hidden))
    me = engine.persona("main")
    if which == "ours":
        summariser = FlushingSummarizationMiddleware(chat_model(SUMMARY), me, **TRIGGERS)
        middleware = [MemoryMiddleware(me), summariser]
    else:
        middleware = [SummarizationMiddleware(chat_model(SUMMARY), **TRIGGERS), MemoryMiddleware(me, flush="inline")]
    agent = create_agent(chat_model("Noted."), middleware=middleware, checkpointer=InMemorySaver())
    shown = []
    for turn in range(4):
        shown += streamed(agent, said(turn))
        assert len(hidden.seen) == (turn == 3)
    assert [memory.content for memory in me.memories.list()] == ["The code of station 0 is x0."]
    told = {part.text for part in shown if isinstance(part, AIMessage)}
    assert told - {SUMMARY} == {"Noted."}  # older summarisers do show their own


def test_one_that_fails_costs_no_turn(remembering, chat_model, call):
    engine, flusher = remembering()
    flusher.answers[:] = [RuntimeError("asleep")] * 9
    me = engine.persona("main")
    summariser = SummarizationMiddleware(chat_model(SUMMARY), **TRIGGERS)
    middleware = [summariser, MemoryMiddleware(me, flush="inline")]
    agent = create_agent(chat_model("Noted."), middleware=middleware, checkpointer=InMemorySaver())
    for turn in range(4):
        state = call(agent, {"messages": [said(turn)]}, THREAD)
    assert state["messages"][-1].text == "Noted." and me.conversation("thread-1").pending().messages
    assert len(flusher.calls) == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_result_whose_text_is_cleared_is_out_of_sight(remembering, chat_model, call, calling, first):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    clearing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=10, keep=1)])
    both = [MemoryMiddleware(me), clearing]
    model = chat_model(*(calling("recall", id=f"call-{n}", query="When is Falcon released?") for n in range(2)), "So.")
    agent = create_agent(model, middleware=both if first else both[::-1], checkpointer=InMemorySaver())
    call(agent, {"messages": ["Hello."]}, THREAD)
    stored = me.conversation("thread-1").messages()
    assert [message.tool_call_id for message in stored if message.pending] == ["call-0"]
