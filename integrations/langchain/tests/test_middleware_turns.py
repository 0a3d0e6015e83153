"""Turns that do not go as planned: interrupted, failed, tried again, abandoned; and the review that follows turns."""

import asyncio
import json

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelRetryMiddleware
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from langchain_memoranda import LangChainModel, MemoryMiddleware, memory_tools
from memoranda.policies import JobPolicy, Policies, ReviewPolicy

THREAD = {"configurable": {"thread_id": "thread-1"}}


def test_an_interrupted_turn_is_recorded_once_and_counts_once(remembering, chat_model, call, calling):
    engine, _ = remembering(preset=Policies(review=ReviewPolicy(every=2)))
    me = engine.persona("main")
    asks = HumanInTheLoopMiddleware(interrupt_on={"memory": True})
    model = chat_model(calling("memory", action="write", content="Falcon is out."), "Done.", "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me), asks], checkpointer=InMemorySaver())
    state = call(agent, {"messages": ["Remember that Falcon is out."]}, THREAD)
    assert "__interrupt__" in state and not me.memories.list()
    assert [message.role for message in me.conversation("thread-1").messages()] == ["user"]
    call(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    chat = me.conversation("thread-1")
    assert [message.role for message in chat.messages()] == ["user", "assistant", "tool", "assistant"]
    assert len(me.memories.list()) == 1 and chat.record().user_turns == 1
    call(agent, {"messages": ["Thanks."]}, THREAD)
    assert [job.kind for job in engine.jobs()] == ["review"]


def test_a_model_that_fails_loses_no_message(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model("Fine.", ValueError("down"), "Back again.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    call(agent, {"messages": ["One."]}, THREAD)
    with pytest.raises(ValueError, match="down"):
        call(agent, {"messages": ["Two."]}, THREAD)
    assert [message.content for message in me.conversation("thread-1").messages()] == ["One.", "Fine.", "Two."]
    call(agent, None, THREAD)
    chat = me.conversation("thread-1")
    assert [message.content for message in chat.messages()] == ["One.", "Fine.", "Two.", "Back again."]
    assert chat.record().user_turns == 2


def test_a_model_call_that_is_tried_again_changes_nothing(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model(ValueError("down"), "Fine.")
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    call(create_agent(model, middleware=[retry, MemoryMiddleware(me)]), {"messages": ["One."]}, THREAD)
    assert [m.content for m in model.seen[0]] == [m.content for m in model.seen[1]]
    assert me.conversation("thread-1").record().messages == 2


def test_a_stream_that_nobody_reads_to_its_end_is_recorded_with_the_next_turn(remembering, chat_model, mode):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model("Fine.", "Well.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())

    async def abandoned():
        async for part in agent.astream({"messages": ["One."]}, THREAD, stream_mode="updates"):
            if "model" in part:
                break

    if mode == "async":
        asyncio.run(abandoned())
    else:
        stream = agent.stream({"messages": ["One."]}, THREAD, stream_mode="updates")
        next(part for part in stream if "model" in part)
        stream.close()
    assert me.conversation("thread-1").messages()[0].content == "One."
    state = agent.invoke({"messages": ["Two."]}, THREAD)
    stored = me.conversation("thread-1").messages()
    assert {message.id for message in stored} == {message.id for message in state["messages"]}
    assert len(stored) == len(state["messages"])


def test_a_review_is_a_job_that_is_seen_waited_for_and_says_what_failed(remembering, chat_model, call):
    reviewer = chat_model("I am asleep.")
    policies = Policies(review=ReviewPolicy(every=2))
    once = JobPolicy(delay_seconds=0, attempts=1)
    engine, _ = remembering(preset=policies, model=LangChainModel(reviewer), job_policy=once)
    me = engine.persona("main")
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    for turn in range(2):
        assert engine.jobs() == []
        call(agent, {"messages": [f"Turn {turn}. Ana lives in Lisbon."]}, THREAD)
    [job] = engine.jobs()
    assert (job.kind, job.status, job.attempts) == ("review", "waiting", 0) and not reviewer.seen
    engine.drain()
    [job] = engine.jobs()
    assert (job.status, job.attempts) == ("failed", 1) and "reply" in job.error
    assert "Turn 0." in str(reviewer.seen[0]) and "Turn 1." in str(reviewer.seen[0])
    found = {"user_model": [{"dimension": "baseline", "content": "lives in Lisbon", "confidence": 9}]}
    reviewer.answers[:] = [json.dumps(found)]
    assert engine.retry_jobs() == 1 and engine.drain() == 0 and engine.jobs() == []
    assert [known.content for known in me.user_model.list()] == ["lives in Lisbon"]


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["without a checkpointer", "with one"])
def test_an_agent_that_a_tool_runs_with_a_config_of_its_own_is_not_recorded(
    saver, remembering, chat_model, call, calling
):
    engine, _ = remembering()
    me = engine.persona("main")
    inner = create_agent(chat_model("Inner."), middleware=[MemoryMiddleware(me)], checkpointer=saver)

    def ask(question: str) -> str:
        """Ask another agent."""
        return call(inner, {"messages": [question]}, {"configurable": {"thread_id": "thread-1"}})["messages"][-1].text

    async def aask(question: str) -> str:
        """Ask another agent."""
        run = {"configurable": {"thread_id": "thread-1"}}
        return (await inner.ainvoke({"messages": [question]}, run))["messages"][-1].text

    tool = StructuredTool.from_function(ask, coroutine=aask, name="ask")
    model = chat_model(calling("ask", question="Well?"), "Outer.")
    call(create_agent(model, [tool], middleware=[MemoryMiddleware(me)]), {"messages": ["Hello."]}, THREAD)
    chat = me.conversation("thread-1")
    assert [message.content for message in chat.messages()] == ["Hello.", "", "Inner.", "Outer."]
    assert chat.record().user_turns == 1 and chat.pending().messages == 0


def test_nor_is_one_that_runs_in_a_tool_node_of_another_name(remembering, chat_model, call, calling):
    engine, _ = remembering()
    me = engine.persona("main")
    inner = create_agent(chat_model("Inner."), middleware=[MemoryMiddleware(me)])

    def ask(question: str) -> str:
        """Ask another agent."""
        return inner.invoke({"messages": [question]})["messages"][-1].text

    graph = StateGraph(MessagesState)
    graph.add_node("act", ToolNode([ask], name="act"))
    graph.add_edge(START, "act")
    call(graph.compile(), {"messages": [calling("ask", question="Well?")]}, THREAD)
    assert me.conversation("thread-1").record() is None


def test_an_agent_that_runs_when_a_tool_is_done_is_recorded(remembering, chat_model):
    engine, _ = remembering()
    me = engine.persona("main")
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me)])
    [tool] = memory_tools(me, names=["recall"])

    def failing() -> None:
        """Fail."""
        raise ValueError("down")

    async def one_after_the_other():
        await tool.ainvoke({"query": "Falcon"})
        with pytest.raises(ValueError, match="down"):
            StructuredTool.from_function(failing).invoke({})
        await agent.ainvoke({"messages": ["Hello."]}, THREAD)

    asyncio.run(one_after_the_other())
    assert me.conversation("thread-1").record().messages == 2
