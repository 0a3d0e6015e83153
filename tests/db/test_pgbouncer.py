"""A pooler in transaction mode: each transaction may run on another connection of the server's."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from memoranda import MemoryEngine

pytestmark = pytest.mark.pgbouncer


def test_memories_are_written_corrected_and_recalled_through_a_pooler(pgbouncer_url, twin):
    with twin(MemoryEngine(pgbouncer_url, preset="ledger", embedder="hash/words")) as engine:
        me = engine.persona("main", user="ana")
        old = me.memories.write("Ana lives in Lisbon")
        me.memories.write_many([f"Parcel {n} arrived" for n in range(40)])
        new = me.memories.supersede(old.id, "Ana lives in Berlin")

        for n in range(50):
            assert me.recall("Ana lives in")[0].memory.content == "Ana lives in Berlin"
            assert me.recall(f"Parcel {n % 40}", limit=40)

        assert me.memories.get(new.id).access_count >= 50
        contents = [memory.content for memory in me.memories.history(old.id)]
        assert contents == ["Ana lives in Lisbon", "Ana lives in Berlin"]


def test_more_clients_than_server_connections_take_turns(pgbouncer_url):
    async def work():
        async with AsyncExitStack() as stack:
            engines = [
                await stack.enter_async_context(MemoryEngine(pgbouncer_url, embedder="hash/words")) for _ in range(4)
            ]
            handles = [engine.persona("main") for engine in engines]
            await asyncio.gather(
                *(me.memories.awrite(f"Parcel {n} of {i}") for i, me in enumerate(handles) for n in range(10))
            )
            return await asyncio.gather(*(me.arecall("parcel", limit=40) for me in handles for _ in range(10)))

    assert [len(answer) for answer in asyncio.run(work())] == [40] * 40
