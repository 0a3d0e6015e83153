"""What the middleware records: every message once, whoever sends it again, and nobody else's."""

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, PIIMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from langchain_memoranda import FlushingSummarizationMiddleware, MemoryMiddleware, middleware
from memoranda import MemoryEngine
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


def test_a_summariser_and_no_checkpointer_double_nothing(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    summariser = FlushingSummarizationMiddleware(
        chat_model("Summary."), me, trigger=("messages", 4), keep=("messages", 2)
    )
    agent = create_agent(chat_model("a0", "a1", "a2", "a3"), middleware=[MemoryMiddleware(me), summariser])
    history = []
    for turn in range(4):
        history.append({"role": "user", "content": f"u{turn}"})
        call(agent, {"messages": history}, THREAD)
        history.append({"role": "assistant", "content": f"a{turn}"})
    stored = [message.content for message in me.conversation("thread-1").messages()]
    assert stored == [message["content"] for message in history]


@pytest.mark.parametrize("processes", ["one", "several"])
@pytest.mark.parametrize("ids", [True, False])
def test_an_answer_that_is_asked_for_anew_doubles_no_history(remembering, chat_model, call, processes, ids):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model("a0", "a1", "a1, anew", "a2")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)])

    def ask(*texts):
        nonlocal agent
        if processes == "several":
            agent = create_agent(model, middleware=[MemoryMiddleware(me)])
        history = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
        call(
            agent,
            {"messages": [one | {"id": one["content"]} if ids and "u" in one["content"] else one for one in history]},
            THREAD,
        )

    ask("u0")
    ask("u0", "a0", "u1")
    ask("u0", "a0", "u1")
    ask("u0", "a0", "u1", "a1, anew", "u2")
    found = [(message.content, message.pending) for message in me.conversation("thread-1").messages()]
    assert [text for text, _ in found] == ["u0", "a0", "u1", "a1", "a1, anew", "u2", "a2"]
    assert [text for text, is_pending in found if is_pending] == ["a1"]


def test_what_the_user_sends_again_after_a_failure_is_one_message(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    for saver in (None, InMemorySaver()):
        agent = create_agent(
            chat_model(ValueError("down"), "Hello."), middleware=[MemoryMiddleware(me)], checkpointer=saver
        )
        with pytest.raises(ValueError, match="down"):
            call(agent, {"messages": ["Hello?"]}, THREAD)
        state = call(agent, {"messages": ["Hello?"]}, THREAD)
        stored = [message.content for message in me.conversation("thread-1").messages()]
        assert stored == [message.text for message in state["messages"]], "a state that has it twice is kept as it is"
        me.conversation("thread-1").clear()


def test_calls_and_results_that_are_sent_again_are_in_sight(remembering, chat_model, call, calling):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model(calling("recall", query="Falcon"), "Nothing.", "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)])
    state = call(agent, {"messages": ["What of Falcon?"]}, THREAD)
    again = [message.model_copy(update={"id": None}) for message in state["messages"]]
    call(agent, {"messages": [*again, HumanMessage("Thanks.")]}, THREAD)
    assert [(message.role, message.pending) for message in me.conversation("thread-1").messages()] == [
        (role, False) for role in ("user", "assistant", "tool", "assistant", "user", "assistant")
    ]


def test_what_another_framework_said_leaves_sight_too(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    chat = me.conversation("thread-1")
    history = [{"role": "user", "content": "u0"}, {"role": "assistant", "content": "a0"}]
    chat.append(history)
    agent = create_agent(chat_model("a1", "a2"), middleware=[MemoryMiddleware(me)])
    call(agent, {"messages": [*history, {"role": "user", "content": "u1"}]}, THREAD)
    assert not chat.pending().messages
    call(agent, {"messages": [{"role": "user", "content": "u1"}, {"role": "assistant", "content": "a1"}, "u2"]}, THREAD)
    assert [(message.content, message.pending) for message in chat.messages()] == [
        ("u0", True),
        ("a0", True),
        ("u1", False),
        ("a1", False),
        ("u2", False),
        ("a2", False),
    ]


@pytest.mark.parametrize("processes", ["one", "several"])
def test_a_client_that_gives_ids_to_what_the_user_says_doubles_nothing(remembering, chat_model, call, processes):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model("a0 ", "a1 ", "a2 ")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)])
    history = []
    for turn in range(3):
        if processes == "several":
            agent = create_agent(model, middleware=[MemoryMiddleware(me)])
        history.append({"role": "user", "content": f"u{turn}", "id": f"h{turn}"})
        call(agent, {"messages": history}, THREAD)
        history.append({"role": "assistant", "content": f"a{turn}"})
    stored = [message.content for message in me.conversation("thread-1").messages()]
    assert stored == ["u0", "a0 ", "u1", "a1 ", "u2", "a2 "]


def test_ids_of_messages_that_are_long_gone_are_forgotten(remembering, chat_model, call, monkeypatch):
    monkeypatch.setattr(middleware, "_IDS_AT_HAND", 8)
    engine, _ = remembering()
    me = engine.persona("main")
    memory = MemoryMiddleware(me)
    agent = create_agent(chat_model("Yes."), middleware=[memory])
    history = []
    for turn in range(10):  # 110 ids in all
        history.append({"role": "user", "content": f"u{turn}"})
        call(agent, {"messages": history}, THREAD)
        history.append({"role": "assistant", "content": "Yes."})
    assert len(memory._transcripts._of(me.conversation("thread-1")).recorded) <= 4 * len(history)
    assert me.conversation("thread-1").record().messages == len(history)


def test_the_same_ids_in_another_database_are_other_messages(remembering, make_engine, chat_model, call):
    engines = {"1": remembering()[0], "2": MemoryEngine("sqlite:///:memory:", embedder="hash/words", background="off")}

    def whose(runtime):
        return engines[runtime.context["database"] if runtime else "1"].persona("main", user="ana")

    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(whose)], context_schema=dict)
    for number in engines:
        said = [HumanMessage(f"Hello, {number}.", id="m1")]
        call(agent, {"messages": said}, THREAD, context={"database": number})
    for number, engine in engines.items():
        stored = engine.persona("main", user="ana").conversation("thread-1").messages()
        assert [message.content for message in stored] == [f"Hello, {number}.", "Fine."]
    engines["2"].close()


# -- what is edited under its id


@pytest.mark.parametrize("first", ["redaction", "memory"])
@pytest.mark.parametrize("checkpointer", [True, False])
def test_what_is_redacted_is_not_kept(remembering, chat_model, call, first, checkpointer):
    engine, _ = remembering()
    me = engine.persona("main")
    redaction = PIIMiddleware("email", strategy="redact", apply_to_input=True, apply_to_output=True)
    order = [redaction, MemoryMiddleware(me)]
    saver = InMemorySaver() if checkpointer else None
    agent = create_agent(
        chat_model("Your mail is ana@example.org."),
        middleware=order if first == "redaction" else order[::-1],
        checkpointer=saver,
    )
    history = ["My mail is ana@example.org.", "Which is it?"]
    call(agent, {"messages": history[:1]}, THREAD)
    state = call(agent, {"messages": history[1:] if checkpointer else [*as_sent(history)]}, THREAD)
    stored = me.conversation("thread-1").messages()
    assert "@" not in repr(stored) and not me.conversations.search("example")
    assert [message.role for message in stored] == ["user", "assistant"] * 2
    if checkpointer:
        assert [(message.id, message.content) for message in stored] == [(m.id, m.text) for m in state["messages"]]


def as_sent(history):
    """What a client shows that has seen the redacted answer, and keeps what its user wrote."""
    yield {"role": "user", "content": history[0]}
    yield {"role": "assistant", "content": "Your mail is [REDACTED_EMAIL]."}
    yield {"role": "user", "content": history[1]}


class Guard(AgentMiddleware):
    """Takes an answer back."""

    def after_model(self, state, runtime):
        """Put a note in its place."""
        answer = state["messages"][-1]
        return {"messages": [answer.model_copy(update={"content": "[removed]"})]}

    async def aafter_model(self, state, runtime):
        """Put a note in its place."""
        return self.after_model(state, runtime)


def test_an_answer_that_a_guard_takes_back_is_not_kept(remembering, chat_model, call):
    engine, _ = remembering()
    for user, order in (("ana", [0, 1]), ("bo", [1, 0])):
        me = engine.persona("main", user=user)
        both = [Guard(), MemoryMiddleware(me)]
        agent = create_agent(chat_model("How to."), middleware=[both[i] for i in order], checkpointer=InMemorySaver())
        call(agent, {"messages": ["Hello."]}, THREAD)
        assert [message.content for message in me.conversation("thread-1").messages()] == ["Hello.", "[removed]"]


@pytest.mark.parametrize("processes", ["one", "several"])
def test_a_message_that_its_user_edits_is_kept_as_edited(remembering, chat_model, call, processes):
    engine, _ = remembering(preset=Policies(compaction=CompactionPolicy(flush_min_tokens=1)))
    me = engine.persona("main")
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    for code in ("wrong1", "right1"):
        call(agent, {"messages": [HumanMessage(f"The code of station 1 is {code}", id="h1")]}, THREAD)
        if processes == "several":
            again = MemoryMiddleware(me)
            agent = create_agent(chat_model("Fine."), middleware=[again], checkpointer=agent.checkpointer)
    me.conversation("thread-1").out_of_sight([])
    engine.drain()
    assert me.conversation("thread-1").messages()[0].content == "The code of station 1 is right1"
    assert [memory.content for memory in me.memories.list()] == ["The code of station 1 is right1."]


class Shortening(AgentMiddleware):
    """Says something else in place of a result, and of the caller's instructions."""

    def before_model(self, state, runtime):
        """Say it under the same ids."""
        found = [message for message in state["messages"] if message.type in ("system", "tool")]
        return {"messages": [message.model_copy(update={"content": "Shortened."}) for message in found]}

    async def abefore_model(self, state, runtime):
        """Say it under the same ids."""
        return self.before_model(state, runtime)


@pytest.mark.parametrize("first", [True, False])
def test_what_is_edited_when_it_is_sent_again_takes_nobody_else_s_place(remembering, chat_model, call, calling, first):
    engine, _ = remembering()
    me = engine.persona("main")
    history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What of Falcon?"}]
    model = chat_model(calling("recall", query="Falcon"), "It flies.", "Indeed.")
    state = call(create_agent(model, middleware=[MemoryMiddleware(me)]), {"messages": history}, THREAD)
    again = [message.model_copy(update={"id": None}) for message in state["messages"]]
    both = [MemoryMiddleware(me), Shortening()]
    agent = create_agent(model, middleware=both if first else both[::-1])
    call(agent, {"messages": [*again, HumanMessage("Really?")]}, THREAD)
    stored = [(message.role, message.content) for message in me.conversation("thread-1").messages()]
    spoken = [("user", "What of Falcon?"), ("assistant", "It flies."), ("user", "Really?"), ("assistant", "Indeed.")]
    assert [one for one in stored if one[0] in ("user", "assistant") and one[1]] == spoken
    assert [role for role, _ in stored] == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]


class KeepingSystem(AgentMiddleware):
    """A trimmer that shows the system messages of the state and the newest message."""

    def wrap_model_call(self, request, handler):
        """Show them."""
        systems = [message for message in request.messages if message.type == "system"]
        return handler(request.override(messages=[*systems, request.messages[-1]]))

    async def awrap_model_call(self, request, handler):
        """Show them."""
        systems = [message for message in request.messages if message.type == "system"]
        return await handler(request.override(messages=[*systems, request.messages[-1]]))


@pytest.mark.parametrize("first", [True, False])
def test_instructions_that_are_sent_again_hold_no_message_in_sight(remembering, chat_model, call, first):
    engine, _ = remembering()
    me = engine.persona("main")
    both = [MemoryMiddleware(me), KeepingSystem()]
    agent = create_agent(chat_model("Yes."), middleware=both if first else both[::-1])
    history = [{"role": "system", "content": "Be brief."}]
    for turn in range(2):
        history.append({"role": "user", "content": f"u{turn}"})
        call(agent, {"messages": history}, THREAD)
        history.append({"role": "assistant", "content": "Yes."})
    stored = me.conversation("thread-1").messages()
    assert [message.content for message in stored if message.pending] == ["u0", "Yes."]


def test_what_is_cleared_stays_cleared_when_its_thread_is_deleted_too(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    saver = InMemorySaver()
    model = chat_model("Fine.")
    call(create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=saver), {"messages": ["Secret."]}, THREAD)
    me.conversation("thread-1").clear()
    saver.delete_thread("thread-1")
    call(create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=saver), {"messages": ["Next."]}, THREAD)
    assert [message.content for message in me.conversation("thread-1").messages()] == ["Next.", "Fine."]


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
