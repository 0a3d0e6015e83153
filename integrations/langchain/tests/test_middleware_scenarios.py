"""Six turns with a summariser, a trimmer or a mishap: the prompt stands still, and nothing that leaves it is lost."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_memoranda import FlushingSummarizationMiddleware, MemoryMiddleware
from memoranda.policies import CompactionPolicy, Policies, ReviewPolicy

THREAD = {"configurable": {"thread_id": "thread-1"}}
FILLER = "So it goes, and goes on, and on. " * 20
CODES = [f"{letter}{number}x{number}" for number, letter in enumerate("abcdefgh")]
MISHAP = 3
"""The turn that does not go as planned, where one does not."""


def said(number):
    return f"The code of station {number} is {CODES[number]}. {FILLER}"


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


WAYS = {
    "summariser before": lambda memory, stock, ours: [stock, memory],
    "summariser after": lambda memory, stock, ours: [memory, stock],
    "our summariser before": lambda memory, stock, ours: [ours, memory],
    "our summariser after": lambda memory, stock, ours: [memory, ours],
    "removing before": lambda memory, stock, ours: [Removing(), memory],
    "removing after": lambda memory, stock, ours: [memory, Removing()],
    "showing less": lambda memory, stock, ours: [Showing(), memory],
    "showing less after": lambda memory, stock, ours: [memory, Showing()],
    "no checkpointer": lambda memory, stock, ours: [stock, memory],
    "interrupted": lambda memory, stock, ours: [
        stock,
        memory,
        HumanInTheLoopMiddleware(interrupt_on={"memory": True}),
    ],
    "model fails": lambda memory, stock, ours: [stock, memory],
    "stream abandoned": lambda memory, stock, ours: [stock, memory],
}


@pytest.fixture
def abandon(mode):
    """Read a stream until the model has answered, and no further."""

    async def on_a_loop(agent, said):
        async for part in agent.astream(said, THREAD, stream_mode="updates"):
            if "model" in part:
                break

    def run(agent, said):
        if mode == "async":
            return asyncio.run(on_a_loop(agent, said))
        stream = agent.stream(said, THREAD, stream_mode="updates")
        next(part for part in stream if "model" in part)
        stream.close()

    return run


@pytest.mark.parametrize("way", WAYS)
def test_the_prompt_stands_still_and_what_leaves_it_is_recalled_elsewhere(
    way, remembering, chat_model, call, abandon, calling
):
    policies = Policies(compaction=CompactionPolicy(flush_min_tokens=300), review=ReviewPolicy(every=0))
    engine, flusher = remembering(preset=policies)
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    noted, heron = ["Noted."] * MISHAP, "Heron follows in May."
    answers = {
        "interrupted": [*noted, calling("memory", action="write", content=heron), "Noted."],
        "model fails": [*noted, ValueError("down"), "Noted."],
    }
    model = chat_model(*answers.get(way, ["Noted."]))
    summary = "They spoke of stations."
    options = {"trigger": ("messages", 6), "keep": ("messages", 2)}
    stock = SummarizationMiddleware(chat_model(summary), **options)
    ours = FlushingSummarizationMiddleware(chat_model(summary), me, flush="job", **options)
    keeps = way != "no checkpointer"
    agent = create_agent(
        model,
        system_prompt="Be brief.",
        middleware=WAYS[way](MemoryMiddleware(me, instructions=False), stock, ours),
        checkpointer=InMemorySaver() if keeps else None,
    )
    history, prompts = [], []
    for turn in range(6):
        if turn == 4:
            me.user_model.write("baseline", "lives in Lisbon")
        history.append({"role": "user", "content": said(turn)})
        before, seen = len(flusher.calls), len(model.seen)
        asked = {"messages": history[-1:] if keeps else history}
        if way == "stream abandoned" and turn == MISHAP:
            abandon(agent, asked)
        elif way == "model fails" and turn == MISHAP:
            with pytest.raises(ValueError, match="down"):
                call(agent, asked, THREAD)
            call(agent, None, THREAD)
        else:
            call(agent, asked, THREAD)
            if way == "interrupted" and turn == MISHAP:
                call(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
        history.append({"role": "assistant", "content": "Noted."})
        assert len(flusher.calls) == before, "a model was asked in the path of a turn"
        assert len(model.seen) > seen
        prompts.append({tuple(block["text"] for block in shown[0].content_blocks) for shown in model.seen[seen:]})
        if turn == MISHAP:
            me.memories.write("Written meanwhile.")
            engine.drain()
    assert all(len(shown) == 1 for shown in prompts)
    early, late = set.union(*prompts[:4]), set.union(*prompts[4:])
    assert len(early) == len(late) == 1
    [[given, block]], [[same, unchanged, known]] = early, late
    assert given == same == "Be brief." and block == unchanged and "Lisbon" in known
    assert "Falcon" in block and "Written meanwhile" not in block

    chat = me.conversation("thread-1")
    told = [message.content for message in chat.messages() if message.role == "user"]
    assert told == [said(turn) for turn in range(6)]
    chat.end_session()
    engine.drain()
    in_sight = str([message.content for message in model.seen[-1]])
    lost = [turn for turn in range(6) if CODES[turn] not in in_sight]
    assert {0, 1, 2} <= set(lost)
    new = create_agent(model, middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver())
    call(new, {"messages": ["Hello."]}, {"configurable": {"thread_id": "thread-2"}})
    for turn in lost:
        assert CODES[turn] in str(model.seen[-1][0].content), turn
        assert CODES[turn] in str(me.recall(f"What is the code of station {turn}?")), turn


def test_with_a_sliding_trimmer_there_is_one_flush_per_2000_tokens_at_most(remembering, chat_model, call):
    engine, flusher = remembering(preset=Policies(review=ReviewPolicy(every=0)))
    me = engine.persona("main")
    middleware = [Showing(), MemoryMiddleware(me)]
    agent = create_agent(chat_model("Noted."), middleware=middleware, checkpointer=InMemorySaver())
    for turn in range(8):
        before = len(flusher.calls)
        call(agent, {"messages": [said(turn) + FILLER * 4]}, THREAD)
        assert len(flusher.calls) == before
        engine.drain()
    tokens = sum(message.tokens for message in me.conversation("thread-1").messages())
    assert tokens > 6_000 and 1 <= len(flusher.calls) <= tokens // 2_000
