"""A pooler in transaction mode: each transaction may run on another connection of the server's."""

import asyncio

import pytest

from memoranda import MemoryEngine

pytestmark = pytest.mark.pgbouncer


def test_memories_are_written_corrected_and_recalled_through_a_pooler(pgbouncer_url, twin):
    engine = twin(MemoryEngine(pgbouncer_url, preset="ledger", embedder="hash/words"))
    me = engine.persona("main", user="ana")
    old = me.memories.write("Ana lives in Lisbon")
    me.memories.write_many([f"Parcel {n} arrived" for n in range(40)])
    new = me.memories.supersede(old.id, "Ana lives in Berlin")

    for n in range(50):
        assert me.recall("where does Ana live")[0].memory.content == "Ana lives in Berlin"
        assert me.recall(f"Parcel {n % 40}", limit=40)

    assert me.memories.get(new.id).access_count >= 50
    assert [memory.content for memory in me.memories.history(old.id)] == ["Ana lives in Lisbon", "Ana lives in Berlin"]
    engine.close()


def test_more_clients_than_server_connections_take_turns(pgbouncer_url):
    async def work():
        engines = [MemoryEngine(pgbouncer_url, embedder="hash/words") for _ in range(4)]
        handles = [engine.persona("main") for engine in engines]
        await asyncio.gather(
            *(me.memories.awrite(f"Parcel {n} of {i}") for i, me in enumerate(handles) for n in range(10))
        )
        answers = await asyncio.gather(*(me.arecall("parcel", limit=40) for me in handles for _ in range(10)))
        for engine in engines:
            await engine.aclose()
        return answers

    assert [len(answer) for answer in asyncio.run(work())] == [40] * 40
