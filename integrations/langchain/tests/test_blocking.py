"""Nothing that an adapter does blocks the event loop."""

import asyncio

import pytest
from blockbuster import BlockingError, blockbuster_ctx
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolCall

from langchain_memoranda import (
    ClassicMemory,
    FlushingSummarizationMiddleware,
    KnowledgeRetriever,
    MemoryChatHistory,
    MemoryMiddleware,
    MemoryRetriever,
)


@pytest.fixture
def mode():
    """The tests below run on loops of their own."""
    return "sync"


def test_nothing_blocks_the_event_loop(remembering, chat_model, backend):
    engine, _ = remembering()
    me = engine.persona("main")
    call = AIMessage("", tool_calls=[ToolCall(name="memory", args={"action": "write", "content": "Tea."}, id="1")])
    options = {"trigger": ("messages", 4), "keep": ("messages", 1)}
    summariser = FlushingSummarizationMiddleware(chat_model("A summary."), me, **options)
    agent = create_agent(chat_model(call, "Fine."), middleware=[MemoryMiddleware(me, flush="inline"), summariser])

    async def everything():
        said = [HumanMessage("Hello."), AIMessage("Hi."), HumanMessage("Remember tea.")]
        await agent.ainvoke({"messages": said}, {"configurable": {"thread_id": "thread-1"}})
        await MemoryRetriever(persona=me).ainvoke("What of tea?")
        await KnowledgeRetriever(persona=me).ainvoke("What of tea?")
        history = MemoryChatHistory(me, "thread-2")
        await history.aadd_messages(said)
        assert await history.aget_messages() == said
        await history.aclear()
        memory = ClassicMemory(persona=me, session_id="thread-3")
        await memory.asave_context({"input": "Hello."}, {"output": "Hi."})
        assert await memory.aload_memory_variables({"input": "Well?"})
        await memory.aclear()

    async def blocking():
        me.memories.list()

    with blockbuster_ctx():
        if not backend.is_postgres:  # a driver in C waits unseen
            with pytest.raises(BlockingError):
                asyncio.run(blocking())
        asyncio.run(everything())
        asyncio.run(everything())
    assert [memory.content for memory in me.memories.list()] == ["Tea."]
