"""What the middleware records: every message once, whoever sends it again, and nobody else's."""

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from langchain_memoranda import MemoryMiddleware
from memoranda.policies import CompactionPolicy, Policies
from memoranda.testing import FrozenClock

THREAD = {"configurable": {"thread_id": "thread-1"}}
MANY = Policies(compaction=CompactionPolicy(flush_min_tokens=300))


def said(number):
    return f"The code of station {number} is x{number}. " + "So it goes, and goes on, and on. " * 20


def test_every_message_is_recorded_once_with_its_calls(remembering, chat_model, call, calling):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model(calling("recall", query="Falcon"), "Nothing.", "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    call(agent, {"messages": ["What of Falcon?"]}, THREAD)
    state = call(agent, {"messages": ["Thanks."]}, THREAD)
    stored = me.conversation("thread-1").messages()
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [message.id for message in stored] == [message.id for message in state["messages"]]
    assert stored[1].tool_calls[0].name == "recall" and stored[2].tool_call_id == "call-1"
    fresh = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=agent.checkpointer)
    call(fresh, {"messages": ["Bye."]}, THREAD)
    assert me.conversation("thread-1").record().messages == 8


def test_without_a_checkpointer_what_is_sent_again_is_not_recorded_again(remembering, chat_model, call):
    engine, _ = remembering(preset=MANY)
    me = engine.persona("main")
    model = chat_model("Yes.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)])
    history = []
    for turn in range(4):
        history.append({"role": "user", "content": said(turn) if turn != 2 else "Yes?"})
        call(agent, {"messages": history}, THREAD)
        history.append({"role": "assistant", "content": "Yes."})
    stored = me.conversation("thread-1").messages()
    assert [message.content for message in stored] == [message["content"] for message in history]
    assert me.conversation("thread-1").pending().messages == 0
    call(agent, {"messages": [*history[-2:], {"role": "user", "content": "Bye."}]}, THREAD)
    assert [message.pending for message in me.conversation("thread-1").messages()] == [True] * 6 + [False] * 4


def test_each_new_turn_alone_is_recorded_though_it_says_the_same(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    agent = create_agent(chat_model("Yes."), middleware=[MemoryMiddleware(me)])
    for _ in range(3):
        call(agent, {"messages": ["Yes?"]}, THREAD)
    assert [message.content for message in me.conversation("thread-1").messages()] == ["Yes?", "Yes."] * 3


def test_an_agent_that_a_tool_runs_shows_memories_and_records_nothing(remembering, chat_model, call, calling):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    inner = chat_model("Inner answer.")
    sub = create_agent(inner, middleware=[MemoryMiddleware(me)])

    @tool
    def ask(question: str) -> str:
        """Ask a colleague."""
        return sub.invoke({"messages": [question]})["messages"][-1].text

    model = chat_model(calling("ask", question="Inner question."), "Outer answer.")
    call(create_agent(model, [ask], middleware=[MemoryMiddleware(me)]), {"messages": ["Hello."]}, THREAD)
    assert "Falcon" in str(inner.seen[0][0].content)
    contents = [message.content for message in me.conversation("thread-1").messages()]
    assert contents == ["Hello.", "", "Inner answer.", "Outer answer."]


def test_an_agent_that_is_a_node_of_a_graph_is_recorded(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    graph = StateGraph(MessagesState)
    graph.add_node("agent", create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me)]))
    graph.set_entry_point("agent")
    call(graph.compile(), {"messages": ["Hello."]}, THREAD)
    assert me.conversation("thread-1").record().messages == 2


class Telling(AgentMiddleware):
    """Puts something before the model that nobody said."""

    def wrap_model_call(self, request, handler):
        """Put it before what was said."""
        return handler(request.override(messages=[HumanMessage("Found on the web."), *request.messages]))

    async def awrap_model_call(self, request, handler):
        """Put it before what was said."""
        return await handler(request.override(messages=[HumanMessage("Found on the web."), *request.messages]))


def test_what_only_the_model_is_shown_is_not_recorded(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model("Fine.")
    agent = create_agent(model, middleware=[Telling(), MemoryMiddleware(me)], checkpointer=InMemorySaver())
    for turn in range(2):
        call(agent, {"messages": [f"Turn {turn}."]}, THREAD)
    assert all("Found on the web." in str(shown) for shown in model.seen)
    stored = [message.content for message in me.conversation("thread-1").messages()]
    assert stored == ["Turn 0.", "Fine.", "Turn 1.", "Fine."]


def test_what_is_said_in_one_instant_stays_in_its_order(remembering, chat_model, call, calling):
    engine, _ = remembering(clock=FrozenClock())
    me = engine.persona("main")
    model = chat_model(calling("recall", query="Falcon"), "Nothing.", "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    for text in ("b", "a", "c"):
        state = call(agent, {"messages": [text]}, THREAD)
    stored = me.conversation("thread-1").messages()
    assert [message.id for message in stored] == [message.id for message in state["messages"]]
    assert len({message.created_at for message in stored}) == 1


def test_what_a_database_cannot_hold_stops_no_turn(remembering, chat_model, call, calling):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model(calling("memory", action="write", content="The code is a\x00b."), "Fine \x00\ud83d.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    state = call(agent, {"messages": ["NUL \x00 and half a pair \ud83d."]}, THREAD)
    assert state["messages"][2].text.startswith("Saved memory")
    stored = me.conversation("thread-1").messages()
    assert [message.content for message in stored] == [message.content for message in state["messages"]]
    [memory] = me.memories.list()
    assert "\x00" not in memory.content and "code is a" in memory.content
