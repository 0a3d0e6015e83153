"""A hand-written graph: block, record and flush as bodies of nodes."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from langchain_memoranda import nodes
from memoranda.policies import Policies, PromptPolicy

THREAD = {"configurable": {"thread_id": "thread-1"}}


@pytest.fixture
def graph(chat_model):
    """A graph of one node that shows what is remembered and records what is said, and its model."""
    saver = InMemorySaver()

    def make(persona, model, checkpointer=saver):
        def talk(state, config):
            chat = persona.conversation(config["configurable"]["thread_id"])
            nodes.record(chat, state["messages"])
            known = nodes.block(chat, text=str(state["messages"][-1].text), instructions=False)
            answer = model.invoke([*([known] if known else []), *state["messages"][-3:]])
            nodes.record(chat, [*state["messages"][-3:], answer])
            return {"messages": [answer]}

        async def atalk(state, config):
            chat = persona.conversation(config["configurable"]["thread_id"])
            await nodes.arecord(chat, state["messages"])
            known = await nodes.ablock(chat, text=str(state["messages"][-1].text), instructions=False)
            answer = await model.ainvoke([*([known] if known else []), *state["messages"][-3:]])
            await nodes.arecord(chat, [*state["messages"][-3:], answer])
            return {"messages": [answer]}

        from langchain_core.runnables import RunnableLambda

        graph = StateGraph(MessagesState)
        graph.add_node("talk", RunnableLambda(talk, atalk))
        graph.set_entry_point("talk")
        return graph.compile(checkpointer=checkpointer)

    return make


def test_a_graph_shows_records_and_flushes(remembering, chat_model, call, graph, mode):
    engine, _ = remembering(preset=Policies(prompt=PromptPolicy(turn=True)))
    me = engine.persona("main")
    me.user_model.write("baseline", "lives in Lisbon")
    model = chat_model("Noted.")
    compiled = graph(me, model)
    for number in range(4):
        call(compiled, {"messages": [HumanMessage(f"The code of station {number} is x{number}.")]}, THREAD)
    chat = me.conversation("thread-1")
    assert chat.record().messages == 8 and "Lisbon" in model.seen[0][0].text
    assert chat.pending().messages == 4
    done = nodes.flush(chat) if mode == "sync" else asyncio.run(nodes.aflush(chat))
    assert done.written == 2 and nodes.flush(chat).messages == 0


def test_without_a_checkpointer_what_is_sent_again_is_recorded_once(remembering, chat_model, call, graph):
    engine, _ = remembering()
    me = engine.persona("main")
    compiled = graph(me, chat_model("a0", "a1 ", "a2"), checkpointer=None)
    history = []
    for turn in range(3):
        history.append({"role": "user", "content": f"u{turn}"})
        state = call(compiled, {"messages": history}, THREAD)
        history.append({"role": "assistant", "content": state["messages"][-1].text.strip()})
    stored = [message.text.strip() for message in me.conversation("thread-1").messages()]
    assert stored == [message["content"] for message in history]


def test_nothing_to_show_is_no_message(remembering):
    engine, _ = remembering()
    chat = engine.persona("main").conversation("thread-1")
    assert nodes.block(chat, instructions=False) is None and "remember" in nodes.block(chat).text.lower()


def test_a_summary_is_not_recorded(remembering):
    engine, _ = remembering()
    chat = engine.persona("main").conversation("thread-1")
    summary = HumanMessage("A summary.", id="s", additional_kwargs={"lc_source": "summarization"})
    nodes.record(chat, [summary, AIMessage("Hi.", id="a")])
    assert [message.content for message in chat.messages()] == ["Hi."]
