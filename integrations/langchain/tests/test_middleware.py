"""The middleware of an agent: what the model is shown, what is recorded, and what is saved of it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    dynamic_prompt,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.types import Command

from langchain_memoranda import LangChainModel, MemoryMiddleware, ScopeResolver
from memoranda.errors import ConfigurationError, NotAllowed
from memoranda.policies import CompactionPolicy, Policies, PromptPolicy, ReviewPolicy

THREAD = {"configurable": {"thread_id": "thread-1"}}
ANA = {"configurable": {"thread_id": "thread-1", "user_id": "ana"}}
FILLER = "So it goes, and goes on, and on. " * 20
MANY = Policies(compaction=CompactionPolicy(flush_min_tokens=300))


def said(number):
    return f"The code of station {number} is {'abcdefgh'[number]}{number}x{number}. {FILLER}"


def calling(name, id="call-1", **arguments):
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=id)])


def saying(text):
    return {"messages": [{"role": "user", "content": text}]}


def systems(model):
    """What stood in the system message of each call, block by block."""
    return [[block["text"] for block in shown[0].content_blocks] for shown in model.seen]


# -- what the model is shown


def test_the_block_follows_the_system_prompt_and_stays_the_same_while_memories_change(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    model = chat_model("Fine.")
    agent = create_agent(
        model, system_prompt="Be brief.", middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver()
    )
    for turn in range(6):
        if turn == 3:
            me.user_model.write("baseline", "lives in Lisbon")
        state = call(agent, saying(f"Turn {turn}."), THREAD)
        me.memories.write(f"Something new in turn {turn}.")
    shown = systems(model)
    assert [blocks[0] for blocks in shown] == ["Be brief."] * 6
    assert len({tuple(blocks) for blocks in shown[:3]}) == len({tuple(blocks) for blocks in shown[3:]}) == 1
    assert shown[5][: len(shown[0])] == shown[0] and "Lisbon" in shown[5][-1]
    assert "Falcon" in shown[0][2] and "Something new" not in str(shown[0])
    assert "Falcon" not in str(state) and [message.type for message in state["messages"]] == ["human", "ai"] * 6


def test_without_memories_and_instructions_the_prompt_is_the_caller_s(remembering, chat_model, call):
    engine, _ = remembering()
    model = chat_model("Fine.")
    memory = MemoryMiddleware(engine.persona("main"), instructions=False, tools=False)
    for prompt in ("Be brief.", None):
        call(create_agent(model, system_prompt=prompt, middleware=[memory]), saying("Hello."), THREAD)
    first, second = model.seen
    assert [m.content for m in first] == ["Be brief.", "Hello."] and [m.type for m in second] == ["human"]


def test_for_providers_that_take_no_list_everything_is_one_text(remembering, chat_model, call):
    policies = Policies(prompt=PromptPolicy(user_model="tail"))
    engine, _ = remembering(preset=policies)
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    me.user_model.write("baseline", "lives in Lisbon")
    model = chat_model("Fine.")
    memory = MemoryMiddleware(me, concatenate=True, instructions=False)
    call(create_agent(model, system_prompt="Be brief.", middleware=[memory]), saying("Hello."), THREAD)
    [[system, human]] = model.seen
    assert system.content.startswith("Be brief.\n\n") and "Falcon" in system.content
    assert human.content.startswith("Hello.\n\n") and "Lisbon" in human.content and "Lisbon" not in system.content


def test_what_goes_to_the_tail_stands_behind_what_the_user_said_and_not_in_the_state(remembering, chat_model, call):
    engine, _ = remembering(preset=Policies(prompt=PromptPolicy(user_model="tail", turn=True)))
    me = engine.persona("main")
    me.user_model.write("baseline", "lives in Lisbon")
    model = chat_model(calling("recall", query="Falcon"), "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)])
    state = call(agent, {"messages": [HumanMessage("Hello.", additional_kwargs={"kept": 1})]}, THREAD)
    for shown in model.seen:
        human = shown[1]
        assert human.content_blocks[0]["text"] == "Hello." and "Lisbon" in human.text
        assert human.additional_kwargs == {"kept": 1}
    assert state["messages"][0].content == "Hello."


def test_it_stands_beside_a_dynamic_prompt(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    model = chat_model("Fine.")
    prompt = dynamic_prompt(lambda request: "Be brief.")
    call(create_agent(model, middleware=[prompt, MemoryMiddleware(me)]), saying("Hello."), THREAD)
    assert systems(model)[0][0] == "Be brief." and "Falcon" in systems(model)[0][2]


def test_its_tools_are_on_the_agent_and_two_of_them_need_names(remembering, chat_model, call):
    engine, _ = remembering()
    one, two = engine.persona("main"), engine.persona("work")
    model = chat_model(calling("memory", action="write", content="Falcon is out."), "Fine.")
    agent = create_agent(
        model,
        middleware=[MemoryMiddleware(one), MemoryMiddleware(two, tools=False, instructions=False, name="work")],
    )
    call(agent, saying("Hello."), THREAD)
    assert [memory.content for memory in one.memories.list()] == ["Falcon is out."] and not two.memories.list()
    assert one.conversation("thread-1").record().messages == two.conversation("thread-1").record().messages == 4
    with pytest.raises(AssertionError, match="duplicate"):
        create_agent(model, middleware=[MemoryMiddleware(one), MemoryMiddleware(two)])


# -- what is recorded


def test_every_message_is_recorded_once_with_its_calls(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model(calling("recall", query="Falcon"), "Nothing.", "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    call(agent, saying("What of Falcon?"), THREAD)
    state = call(agent, saying("Thanks."), THREAD)
    stored = me.conversation("thread-1").messages()
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [message.id for message in stored] == [message.id for message in state["messages"]]
    assert stored[1].tool_calls[0].name == "recall" and stored[2].tool_call_id == "call-1"
    fresh = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=agent.checkpointer)
    call(fresh, saying("Bye."), THREAD)
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
        call(agent, saying("Yes?"), THREAD)
    assert [message.content for message in me.conversation("thread-1").messages()] == ["Yes?", "Yes."] * 3


def test_an_agent_that_a_tool_runs_shows_memories_and_records_nothing(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    inner = chat_model("Inner answer.")
    sub = create_agent(inner, middleware=[MemoryMiddleware(me)])

    @tool
    def ask(question: str) -> str:
        """Ask a colleague."""
        return sub.invoke(saying(question))["messages"][-1].text

    model = chat_model(calling("ask", question="Inner question."), "Outer answer.")
    call(create_agent(model, [ask], middleware=[MemoryMiddleware(me)]), saying("Hello."), THREAD)
    assert "Falcon" in str(inner.seen[0][0].content)
    contents = [message.content for message in me.conversation("thread-1").messages()]
    assert contents == ["Hello.", "", "Inner answer.", "Outer answer."]


def test_an_agent_that_is_a_node_of_a_graph_is_recorded(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    graph = StateGraph(MessagesState)
    graph.add_node("agent", create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me)]))
    graph.set_entry_point("agent")
    call(graph.compile(), saying("Hello."), THREAD)
    assert me.conversation("thread-1").record().messages == 2


# -- what leaves the model's sight


class Removing(AgentMiddleware):
    """A trimmer that rewrites the state."""

    def before_model(self, state, runtime):
        """Remove all but the newest messages."""
        return {"messages": [RemoveMessage(id=message.id) for message in state["messages"][:-3]]}

    async def abefore_model(self, state, runtime):
        """Remove all but the newest messages."""
        return self.before_model(state, runtime)


class Showing(AgentMiddleware):
    """A trimmer that shows the newest messages only."""

    def wrap_model_call(self, request, handler):
        """Show the newest messages."""
        return handler(request.override(messages=request.messages[-3:]))

    async def awrap_model_call(self, request, handler):
        """Show the newest messages."""
        return await handler(request.override(messages=request.messages[-3:]))


def summariser(chat_model):
    return SummarizationMiddleware(chat_model("They spoke of stations."), trigger=("messages", 6), keep=("messages", 2))


WAYS = {
    "summariser before": lambda memory, summary: ([summary, memory], True),
    "summariser after": lambda memory, summary: ([memory, summary], True),
    "removing before": lambda memory, summary: ([Removing(), memory], True),
    "removing after": lambda memory, summary: ([memory, Removing()], True),
    "showing less": lambda memory, summary: ([Showing(), memory], True),
    "no checkpointer": lambda memory, summary: ([summary, memory], False),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_left_the_window_is_recalled_in_a_new_thread(way, remembering, chat_model, call):
    engine, flusher = remembering(preset=MANY)
    me = engine.persona("main")
    model = chat_model("Noted.")
    middleware, keeps = WAYS[way](MemoryMiddleware(me, instructions=False), summariser(chat_model))
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver() if keeps else None)
    history = []
    for turn in range(6):
        history.append({"role": "user", "content": said(turn)})
        before = len(flusher.calls)
        call(agent, {"messages": history[-1:] if keeps else history}, THREAD)
        assert len(flusher.calls) == before
        history.append({"role": "assistant", "content": "Noted."})
        if turn == 4:
            engine.drain()
    chat = me.conversation("thread-1")
    assert [message.content for message in chat.messages()] == [message["content"] for message in history]
    assert len({tuple(message.content for message in shown if message.type == "system") for shown in model.seen}) == 1
    chat.end_session()
    engine.drain()
    seen = str([message.content for message in model.seen[-1]])
    new = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    call(new, saying("Hello."), {"configurable": {"thread_id": "thread-2"}})
    for turn in range(6):
        code = f"{'abcdefgh'[turn]}{turn}x{turn}"
        if code not in seen:
            assert code in str(model.seen[-1][0].content), (way, turn)
            assert code in str(me.recall(f"What is the code of station {turn}?"))
    assert "a0x0" not in seen


def test_with_a_sliding_trimmer_a_job_waits_for_enough_tokens(remembering, chat_model, call):
    policies = Policies(compaction=CompactionPolicy(flush_min_tokens=1_000), review=ReviewPolicy(every=0))
    engine, flusher = remembering(preset=policies)
    me = engine.persona("main")
    agent = create_agent(
        chat_model("Noted."), middleware=[Showing(), MemoryMiddleware(me)], checkpointer=InMemorySaver()
    )
    for turn in range(8):
        call(agent, saying(said(turn)), THREAD)
        assert len(flusher.calls) == 0 or turn > 5
        engine.drain()
    tokens = sum(message.tokens for message in me.conversation("thread-1").messages())
    assert 1 <= len(flusher.calls) <= tokens / 1_000


def test_a_flush_in_line_happens_once_a_rewrite_and_never_in_the_stream(remembering, chat_model, call):
    hidden = chat_model('[{"content": "The code of station 0 is a0x0."}]')
    engine, _ = remembering(model=LangChainModel(hidden))
    me = engine.persona("main")
    memory = MemoryMiddleware(me, flush="inline")
    agent = create_agent(
        chat_model("Noted."), middleware=[summariser(chat_model), memory], checkpointer=InMemorySaver()
    )
    streamed = []
    for turn in range(4):
        streamed += [part for part, _ in agent.stream(saying(said(turn)), THREAD, stream_mode="messages")]
        assert len(hidden.seen) == (turn == 3)
    assert [memory.content for memory in me.memories.list()] == ["The code of station 0 is a0x0."]
    told = {part.text for part in streamed if isinstance(part, AIMessage)}
    assert told - {"They spoke of stations."} == {"Noted."}  # older summarisers do show their own


def test_a_flush_in_line_that_fails_costs_no_turn(remembering, chat_model, call):
    engine, flusher = remembering()
    flusher.answers[:] = [RuntimeError("asleep")] * 9
    me = engine.persona("main")
    middleware = [summariser(chat_model), MemoryMiddleware(me, flush="inline")]
    agent = create_agent(chat_model("Noted."), middleware=middleware, checkpointer=InMemorySaver())
    for turn in range(4):
        state = call(agent, saying(said(turn)), THREAD)
    assert state["messages"][-1].text == "Noted." and me.conversation("thread-1").pending().messages
    assert len(flusher.calls) == 1


# -- turns that do not go as planned


def test_an_interrupted_turn_is_recorded_once_and_counts_once(remembering, chat_model, call):
    engine, _ = remembering(preset=Policies(review=ReviewPolicy(every=2)))
    me = engine.persona("main")
    asks = HumanInTheLoopMiddleware(interrupt_on={"memory": True})
    model = chat_model(calling("memory", action="write", content="Falcon is out."), "Done.", "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me), asks], checkpointer=InMemorySaver())
    state = call(agent, saying("Remember that Falcon is out."), THREAD)
    assert "__interrupt__" in state and not me.memories.list()
    assert [message.role for message in me.conversation("thread-1").messages()] == ["user"]
    call(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    chat = me.conversation("thread-1")
    assert [message.role for message in chat.messages()] == ["user", "assistant", "tool", "assistant"]
    assert len(me.memories.list()) == 1 and chat.record().user_turns == 1
    call(agent, saying("Thanks."), THREAD)
    assert [job.kind for job in engine.jobs()] == ["review"]


def test_a_model_that_fails_loses_no_message(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model("Fine.", ValueError("down"), "Back again.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    call(agent, saying("One."), THREAD)
    with pytest.raises(ValueError, match="down"):
        call(agent, saying("Two."), THREAD)
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
    call(create_agent(model, middleware=[retry, MemoryMiddleware(me)]), saying("One."), THREAD)
    assert [m.content for m in model.seen[0]] == [m.content for m in model.seen[1]]
    assert me.conversation("thread-1").record().messages == 2


def test_a_stream_that_nobody_reads_to_its_end_is_recorded_with_the_next_turn(remembering, chat_model, mode):
    engine, _ = remembering()
    me = engine.persona("main")
    model = chat_model("Fine.", "Well.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())

    async def abandoned():
        async for part in agent.astream(saying("One."), THREAD, stream_mode="updates"):
            if "model" in part:
                break

    if mode == "async":
        asyncio.run(abandoned())
    else:
        stream = agent.stream(saying("One."), THREAD, stream_mode="updates")
        next(part for part in stream if "model" in part)
        stream.close()
    assert me.conversation("thread-1").messages()[0].content == "One."
    state = agent.invoke(saying("Two."), THREAD)
    stored = me.conversation("thread-1").messages()
    assert {message.id for message in stored} == {message.id for message in state["messages"]}
    assert len(stored) == len(state["messages"])


# -- who asks


def test_a_run_without_a_user_or_a_thread_is_refused(remembering, chat_model, call):
    engine, _ = remembering()
    model = chat_model("Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(engine)])
    with pytest.raises(ConfigurationError, match="No user is named"):
        call(agent, saying("Hello."), THREAD)
    with pytest.raises(ConfigurationError, match="no conversation"):
        call(agent, saying("Hello."), {"configurable": {"user_id": "ana"}})
    assert not model.seen


def test_users_of_one_agent_share_nothing(remembering, chat_model, call):
    engine, _ = remembering()
    ana, bo = engine.persona("main", user="ana"), engine.persona("main", user="bo")
    ana.memories.write("Ana is allergic to nuts.")
    model = chat_model("Fine.", calling("memory", action="write", content="Bo likes tea."), "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(engine)])
    call(agent, saying("Hello."), {"configurable": {"thread_id": "thread-1", "user_id": "ana"}})
    call(agent, saying("Hello."), {"configurable": {"thread_id": "thread-1"}}, context={"user": "bo"})
    assert "nuts" in str(model.seen[0][0].content) and "nuts" not in str(model.seen[1])
    assert [memory.content for memory in bo.memories.list()] == ["Bo likes tea."] and len(ana.memories.list()) == 1
    assert (ana.conversation("thread-1").record().messages, bo.conversation("thread-1").record().messages) == (2, 4)


# -- loops and threads


def test_one_agent_serves_worker_threads_and_event_loops_at_once(remembering, chat_model):
    engine, _ = remembering()
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(engine)])

    def config(n):
        return {"configurable": {"thread_id": f"thread-{n % 4}", "user_id": "ana"}}

    def sync(n):
        return agent.invoke(saying(f"Turn {n}."), config(n))

    def on_a_loop(n):
        return asyncio.run(agent.ainvoke(saying(f"Turn {n}."), config(n)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: (on_a_loop if n % 2 else sync)(n), range(12)))
    me = engine.persona("main", user="ana")
    assert [me.conversation(f"thread-{n}").record().messages for n in range(4)] == [6] * 4


def test_plain_code_works_inside_a_running_loop(remembering, chat_model):
    engine, _ = remembering()
    me = engine.persona("main")
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me)])

    async def inside():
        agent.invoke(saying("Hello."), THREAD)
        await agent.ainvoke(saying("Hello again."), THREAD)

    asyncio.run(inside())
    assert me.conversation("thread-1").record().messages == 4


def test_whom_the_server_has_authenticated_nobody_overrules(remembering):
    engine, _ = remembering()
    server = SimpleNamespace(user=SimpleNamespace(identity="ana"))
    resolver = ScopeResolver(engine)
    runtime = SimpleNamespace(context=None, config={}, server_info=server)
    assert resolver.persona_of(runtime).scope.user == "ana"
    runtime.context = {"user": "bo"}
    with pytest.raises(NotAllowed):
        resolver.persona_of(runtime)
    runtime.context, runtime.config = None, {"configurable": {"user_id": "ana", "tenant": "acme", "project": "falcon"}}
    scope = resolver.persona_of(runtime).scope
    assert (scope.user, scope.tenant, scope.project) == ("ana", "acme", "falcon")
    runtime.context = {"persona": object()}
    with pytest.raises(ConfigurationError, match="persona is no name"):
        resolver.persona_of(runtime)
