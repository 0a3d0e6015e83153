"""A session's memory beside LlamaIndex's own, which keeps its messages in a SQL store as well.

No model summarises anything here: what is measured is storing a message and reading the window before a turn.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from peers import Bench, in_turn, told

from llama_index.memory.memoranda import MemorandaMemory
from memoranda import MemoryEngine

MESSAGES = 2000
TURNS = 60
TOKENS = 30_000
"""The stock memory's own limit; .7 of it is for messages."""


def measure(bench: Bench) -> dict[str, Any]:
    """Fill a session with the same messages, and let the memories take turns."""
    loop = asyncio.new_event_loop()
    bench.stack.callback(loop.close)
    memories: dict[str, Any] = {
        "Memory/sqlite": _stock(f"sqlite+aiosqlite:///{bench.folder / 'stock.db'}"),
        "Memory/pg": _stock(bench.postgres.replace("+psycopg:", "+asyncpg:")),
        "ours/sqlite": _ours(bench, f"sqlite:///{bench.folder / 'sessions.db'}"),
        "ours/pg": _ours(bench, bench.postgres),
    }
    texts = bench.sentences(MESSAGES + 4 * TURNS)
    history = [_message(n, text) for n, text in enumerate(texts[:MESSAGES])]
    for memory in memories.values():
        loop.run_until_complete(memory.aput_messages(history))
    steps: dict[str, Any] = {}
    later = [_message(n, text) for n, text in enumerate(texts[MESSAGES:])]

    def run(memory: Any, n: int, call: Callable[[Any, int], Coroutine[Any, Any, object]]) -> None:
        loop.run_until_complete(call(memory, n))

    async def turn(memory: Any, n: int) -> None:
        await memory.aput(later[2 * TURNS + 2 * n])
        await memory.aget()
        await memory.aput(later[2 * TURNS + 2 * n + 1])

    async def put(memory: Any, n: int) -> None:
        await memory.aput(later[n])

    async def get(memory: Any, n: int) -> None:
        await memory.aget()

    for label, call in (("put", put), ("get", get), ("put, get, put: one turn", turn)):
        runs = {name: [partial(run, memory, n, call) for n in range(TURNS)] for name, memory in memories.items()}
        steps[label] = in_turn(runs)
        told(f"{MESSAGES:,} messages: {label}, ms", steps[label])
    for memory in (memories["Memory/sqlite"], memories["Memory/pg"]):
        loop.run_until_complete(memory.sql_store._async_engine.dispose())
    return steps


def _message(n: int, text: str) -> ChatMessage:
    return ChatMessage(role=("user", "assistant")[n % 2], content=text)


def _stock(url: str) -> Memory:
    return Memory.from_defaults(session_id="bench", token_limit=TOKENS, async_database_uri=url)


def _ours(bench: Bench, url: str) -> MemorandaMemory:
    engine = bench.stack.enter_context(MemoryEngine(url, embedder="none", background="off"))
    engine.setup()
    return MemorandaMemory(persona=engine.persona("sessions"), session_id="bench", token_limit=TOKENS)
