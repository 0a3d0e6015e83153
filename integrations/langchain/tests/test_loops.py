"""Event loops and threads: nothing that an adapter does blocks a loop, and one agent serves all of them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy
from blockbuster import BlockingError, blockbuster_ctx
from langchain.agents import create_agent
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage

from langchain_memoranda import (
    ClassicMemory,
    FlushingSummarizationMiddleware,
    KnowledgeRetriever,
    LangChainEmbedder,
    LangChainModel,
    MemoryChatHistory,
    MemoryMiddleware,
    MemoryRetriever,
    MemoryToolkit,
    nodes,
)

THREAD = {"configurable": {"thread_id": "thread-1"}}


@pytest.fixture
def mode():
    """The tests below run on loops of their own."""
    return "sync"


@pytest.fixture
def statements():
    """The SQL statements that were sent from the thread of a running event loop."""
    sent = []

    def look(connection, cursor, statement, parameters, context, many):
        if asyncio._get_running_loop() is not None:
            sent.append(statement)

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", look)
    yield sent
    sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", look)


def test_nothing_blocks_the_event_loop(remembering, chat_model, calling, backend, statements):
    model = LangChainModel(chat_model("[]"))
    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=8), name="fake", dimensions=8)
    engine, _ = remembering(model=model, embedder=embedder)
    me = engine.persona("main")
    call = calling("memory", action="write", content="Tea.")
    options = {"trigger": ("messages", 4), "keep": ("messages", 1)}
    summariser = FlushingSummarizationMiddleware(chat_model("A summary."), me, **options)
    agent = create_agent(chat_model(call, "Fine."), middleware=[MemoryMiddleware(me, flush="inline"), summariser])
    said = [HumanMessage("Hello."), AIMessage("Hi."), HumanMessage("Remember tea.")]

    async def everything():
        await agent.ainvoke({"messages": said}, THREAD)
        assert [part async for part in agent.astream({"messages": said}, THREAD, stream_mode="messages")]
        await MemoryRetriever(persona=me).ainvoke("What of tea?")
        await KnowledgeRetriever(persona=me).ainvoke("What of tea?")
        [recall] = MemoryToolkit(memory=me, names=("recall",)).get_tools()
        assert await recall.ainvoke({"query": "What of tea?"})
        history = MemoryChatHistory(me, "thread-2")
        await history.aadd_messages(said)
        assert await history.aget_messages() == said
        await history.aclear()
        memory = ClassicMemory(persona=me, session_id="thread-3")
        await memory.asave_context({"input": "Hello."}, {"output": "Hi."})
        assert await memory.aload_memory_variables({"input": "Well?"})
        await memory.aclear()
        chat = me.conversation("thread-4")
        await nodes.arecord(chat, said)
        await nodes.arecord(chat, said[2:])
        assert await nodes.ablock(chat)
        assert (await nodes.aflush(chat)).messages == 2

    async def blocking():
        me.memories.list()

    with blockbuster_ctx():
        if not backend.is_postgres:  # a driver in C waits unseen
            with pytest.raises(BlockingError):
                asyncio.run(blocking())
        statements.clear()
        asyncio.run(everything())
        me.conversation("thread-4").clear()
        asyncio.run(everything())
    assert not statements
    assert [memory.content for memory in me.memories.list()] == ["Tea."]
    asyncio.run(blocking())
    assert statements, "what is sent from a loop is seen on this database"


def test_one_agent_serves_worker_threads_and_event_loops_at_once(remembering, chat_model):
    engine, _ = remembering()
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(engine)])

    def config(n):
        return {"configurable": {"thread_id": f"thread-{n % 4}", "user_id": "ana"}}

    def sync(n):
        return agent.invoke({"messages": [f"Turn {n}."]}, config(n))

    def on_a_loop(n):
        return asyncio.run(agent.ainvoke({"messages": [f"Turn {n}."]}, config(n)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: (on_a_loop if n % 2 else sync)(n), range(12)))
    me = engine.persona("main", user="ana")
    assert [me.conversation(f"thread-{n}").record().messages for n in range(4)] == [6] * 4


def test_plain_code_works_inside_a_running_loop(remembering, chat_model):
    engine, _ = remembering()
    me = engine.persona("main")
    agent = create_agent(chat_model("Fine."), middleware=[MemoryMiddleware(me)])

    async def inside():
        agent.invoke({"messages": ["Hello."]}, THREAD)
        await agent.ainvoke({"messages": ["Hello again."]}, THREAD)

    asyncio.run(inside())
    assert me.conversation("thread-1").record().messages == 4
