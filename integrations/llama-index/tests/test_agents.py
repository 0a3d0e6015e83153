"""Agents and chat engines on our memory: streams, contexts, loops, threads, and runs that are broken off."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from workflows.context import JsonSerializer, PickleSerializer
from workflows.errors import WorkflowCancelledByUser

from llama_index.memory.memoranda import KnowledgeRetriever, MemorandaMemory, MemoryToolSpec

# A workflow looks at every attribute of its agent, deprecated ones too.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def user(text):
    return ChatMessage(role="user", content=text)


def assistant(text):
    return ChatMessage(role="assistant", content=text)


def contents(messages):
    return [message.content for message in messages]


def counting(messages):
    return assistant(f"saw {len([m for m in messages if m.role != 'system'])}")


@pytest.fixture
def memory(ana):
    return MemorandaMemory(persona=ana, session_id="s")


# -- agents


@pytest.mark.parametrize("serializer", [JsonSerializer(), PickleSerializer()])
async def test_an_agent_remembers_over_runs_of_one_context(memory, scripted, serializer):
    agent = FunctionAgent(llm=scripted(counting), tools=[], system_prompt="Be brief.")
    context = Context(agent)
    assert str(await agent.run("one", ctx=context, memory=memory)) == "saw 1"
    assert str(await agent.run("two", ctx=context)) == "saw 3"
    again = Context.from_dict(agent, context.to_dict(serializer=serializer), serializer=serializer)
    assert str(await agent.run("three", ctx=again)) == "saw 5"
    assert contents(await memory.aget_all())[::2] == ["one", "two", "three"]


async def test_a_history_is_given_beside_the_memory(memory, ana, scripted):
    agent = FunctionAgent(llm=scripted(counting), tools=[])
    await agent.run("one", memory=memory)
    ana.memories.write("Tea is at four.")
    history = [*await memory.aget_all(), user("between")]
    assert str(await agent.run("two", chat_history=history, memory=memory)) == "saw 4"
    assert contents(await memory.aget_all()) == ["one", "saw 1", "between", "two", "saw 4"]
    await agent.run("three", chat_history=[], memory=memory)
    assert len(ana.memories.list()) == 1, "what was remembered stays, whatever the history is"


@pytest.mark.parametrize("method", ["system", "user", "merged"])
async def test_an_agent_s_state_is_written_around_what_the_user_said(ana, scripted, method):
    ana.memories.write("Tea is at four.")
    ana.user_model.write("baseline", "based in Lisbon")
    memory = MemorandaMemory(persona=ana, session_id="s", insert_method=method)
    llm = scripted(counting)
    for text in ("one", "two"):
        await FunctionAgent(llm=llm, tools=[], initial_state={"n": 1}).run(text, memory=memory)
    assert llm.shown[-1][-1].blocks[-1].text.endswith("Current message:\ntwo\n")
    assert "Lisbon" in "".join(contents(llm.shown[-1]))
    assert contents(await memory.aget_all())[::2] == ["one", "two"]


async def test_calls_of_tools_are_kept_with_their_results_and_shown_again(memory, ana, scripted, calling):
    def answer(messages):
        if messages[-1].role == "user" and "four" in messages[-1].content:
            return calling("c1", "memory", action="write", content="Tea is at four.")
        return counting(messages)

    llm = scripted(answer)
    agent = FunctionAgent(llm=llm, tools=MemoryToolSpec(ana).to_tool_list())
    await agent.run("Remember that tea is at four.", memory=memory)
    assert [found.content for found in ana.memories.list()] == ["Tea is at four."]
    await agent.run("thanks", memory=memory)
    assert [message.role.value for message in llm.shown[-1]] == ["user", "assistant", "tool", "assistant", "user"]
    asked = memory.conversation.messages()[1].tool_calls[0]
    assert (asked.id, asked.name, asked.arguments["action"]) == ("c1", "memory", "write")


async def test_a_run_that_is_cancelled_leaves_what_was_said(memory, scripted, calling):
    started = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.sleep(60)
        return "late"

    def answer(messages):
        return calling("c1", "wait") if messages[-1].content == "wait" else counting(messages)

    agent = FunctionAgent(llm=scripted(answer), tools=[FunctionTool.from_defaults(async_fn=wait)])
    context = Context(agent)
    handler = agent.run("wait", ctx=context, memory=memory)
    await started.wait()
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    assert contents(await memory.aget_all()) == ["wait"]
    assert str(await agent.run("and now?", memory=memory)) == "saw 2"


async def test_a_turn_that_is_cancelled_while_it_is_stored_is_stored_whole_or_not_at_all(memory):
    tasks = [asyncio.create_task(memory.aput_messages([user(f"u{n}"), assistant(f"a{n}")])) for n in range(4)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await memory.aput_messages([user("u9"), assistant("a9")])
    stored = contents(await memory.aget_all())
    assert all(f"a{text[1:]}" == after for text, after in zip(stored[::2], stored[1::2], strict=True))
    assert stored[-2:] == ["u9", "a9"]


async def test_of_a_react_agent_s_trace_the_answer_is_what_was_said(memory, scripted):
    def look() -> str:
        """Look at the timetable."""
        return "nine\nAnswer: ten"

    said = iter(
        [
            "Thought: I need a tool.\nAction: look\nAction Input: {}",
            "Thought: I can answer.\nAnswer: At nine.\nAnswer: or so",
        ]
    )
    tools = [FunctionTool.from_defaults(look)]
    agent = ReActAgent(llm=scripted(lambda messages: assistant(next(said))), tools=tools)
    await agent.run("When?", memory=memory)
    [_, shown] = await memory.aget_all()
    assert "Observation: nine" in shown.content, "the agent reads its own trace"
    assert memory.conversation.messages()[1].text == "At nine.\nAnswer: or so"
    [_, whole] = memory.get()
    assert whole.content == shown.content and memory._sizes(memory.conversation.messages())[2] > 40
    memory.set([user("When?"), shown])
    memory.put(assistant("Thought: nothing else"))
    assert memory.conversation.messages()[2].text == "Thought: nothing else"


async def test_agents_of_one_workflow_have_memories_of_their_own(engine, memory, scripted, calling):
    own = {name: engine.handle.persona(name, user="ana") for name in ("cook", "waiter")}

    def answer(name):
        def answer_(messages):
            if messages[-1].role == "user":
                return calling(f"c-{name}", "memory", action="write", content=f"The {name} was here.")
            return counting(messages)

        return answer_

    agents = [
        FunctionAgent(
            name=name,
            description=name,
            llm=scripted(answer(name)),
            tools=MemoryToolSpec(persona).to_tool_list(),
        )
        for name, persona in own.items()
    ]
    await AgentWorkflow(agents=agents, root_agent="cook").run("hello", memory=memory)
    await AgentWorkflow(agents=agents, root_agent="waiter").run("hello", memory=memory)
    for name, persona in own.items():
        assert [found.content for found in persona.memories.list()] == [f"The {name} was here."]
    assert len(memory.get_all()) == 8, "the conversation is one"


# -- chat engines


def knowing(messages):
    asked = messages[-1].content
    return assistant("What does the kettle hold?" if "standalone" in asked else "Two litres.")


def simple(memory, llm, ana):
    return SimpleChatEngine.from_defaults(llm=llm, memory=memory, system_prompt="Be brief.")


def context(memory, llm, ana):
    return ContextChatEngine.from_defaults(KnowledgeRetriever(ana), llm=llm, memory=memory)


def condensing(memory, llm, ana):
    return CondensePlusContextChatEngine.from_defaults(KnowledgeRetriever(ana), llm=llm, memory=memory)


def chat(engine, text):
    engine.chat(text)


def stream(engine, text):
    list(engine.stream_chat(text).response_gen)


def achat(engine, text):
    asyncio.run(engine.achat(text))


def astream(engine, text):
    async def on_a_loop():
        answer = await engine.astream_chat(text)
        async for _ in answer.async_response_gen():
            pass

    asyncio.run(on_a_loop())


@pytest.mark.parametrize("make", [simple, context, condensing])
def test_a_chat_engine_says_and_streams_into_it(memory, ana, scripted, make):
    ana.knowledge.ingest("manual", text="The kettle holds two litres.")
    ana.memories.write("Tea is at four {context_str}.")
    llm = scripted(knowing)
    engine = make(memory, llm, ana)
    for n, how in enumerate((chat, stream, achat, astream)):
        how(engine, f"What does the kettle hold? {n}")
    said = contents(memory.get_all())
    assert said[::2] == [f"What does the kettle hold? {n}" for n in range(4)]
    assert said[1::2] == ["Two litres."] * 4
    seen = "\n".join(contents(llm.shown[-1]))
    assert "Tea is at four" in seen and "hold? 0" in seen and "{context_str}" not in seen
    engine.reset()
    assert memory.get_all() == [] and ana.memories.list()


def test_a_question_is_condensed_with_what_was_said(memory, ana, scripted):
    ana.knowledge.ingest("manual", text="The kettle holds two litres.")
    llm = scripted(knowing)
    asked = RetrieverQueryEngine.from_args(KnowledgeRetriever(ana), llm=llm)
    engine = CondenseQuestionChatEngine.from_defaults(asked, llm=llm, memory=memory)
    for text in ("What does the kettle hold?", "And how much?"):
        engine.chat(text)
    assert contents(memory.get_all()) == ["What does the kettle hold?", "Two litres.", "And how much?", "Two litres."]


# -- loops and threads


def test_a_chat_engine_works_after_a_loop_was_closed_in_a_running_one_and_in_threads(ana, scripted):
    def engine(session):
        return simple(MemorandaMemory(persona=ana, session_id=session), scripted(counting), ana)

    asyncio.run(engine("s").achat("in a loop"))
    asyncio.run(engine("s").achat("in another"))
    assert str(engine("s").chat("outside")) == "saw 5"

    async def inside():
        return engine("s").chat("plain, within a loop")

    assert str(asyncio.run(inside())) == "saw 7"
    one = engine("t")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one.chat, ["a", "b", "c", "d"]))
    assert sorted(contents(one.chat_history))[:4] == ["a", "b", "c", "d"] and len(one.chat_history) == 8
