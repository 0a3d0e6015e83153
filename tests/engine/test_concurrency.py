"""Many at once: nothing is lost, nothing is done twice, nobody waits for ever."""

import asyncio
import contextlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoranda import MemoryEngine
from memoranda.errors import MemoryNotActive


def at_once(calls, threads=8):
    """Run the calls in threads and return their results or errors, in order."""

    def run(call):
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, calls))


@pytest.fixture
def engine(backend):
    with MemoryEngine(backend.url, preset="ledger", embedder="none") as engine:
        yield engine


@pytest.fixture
def me(engine):
    return engine.persona("main", user="ana")


@pytest.mark.behaviour("S21")
def test_200_recalls_in_threads_are_counted_200_times(me):
    written = [me.memories.write("The office is in Lisbon."), me.memories.write("The office has a terrace.")]

    answers = at_once([lambda: me.recall("office")] * 200)

    assert [len(answer) for answer in answers] == [2] * 200
    assert {answer.degraded for answer in answers} == {None}
    assert [me.memories.get(memory.id).access_count for memory in written] == [200, 200]


@pytest.mark.behaviour("S21")
async def test_200_recalls_in_one_loop_are_counted_200_times(me):
    written = await me.memories.awrite("The office is in Lisbon.")

    answers = await asyncio.gather(*(me.arecall("office") for _ in range(200)))

    assert [len(answer) for answer in answers] == [1] * 200
    assert (await me.memories.aget(written.id)).access_count == 200


@pytest.mark.behaviour("W19")
@pytest.mark.parametrize("loop", [False, True], ids=["threads", "loop"])
def test_of_concurrent_corrections_of_one_memory_exactly_one_wins(me, loop):
    old = me.memories.write("The office is in Lisbon.")
    texts = [f"The office is in town {n}." for n in range(24)]

    if loop:

        async def race():
            calls = (me.memories.asupersede(old.id, text) for text in texts)
            return await asyncio.gather(*calls, return_exceptions=True)

        results = asyncio.run(race())
    else:
        results = at_once([lambda text=text: me.memories.supersede(old.id, text) for text in texts])

    winners = [result for result in results if not isinstance(result, Exception)]
    losers = [result for result in results if isinstance(result, Exception)]
    assert len(winners) == 1
    assert {(type(error), getattr(error, "status", "")) for error in losers} == {(MemoryNotActive, "superseded")}
    assert [hit.memory.id for hit in me.recall("office")] == [winners[0].id]
    assert len(me.memories.history(old.id)) == 2


CHAINS, CORRECTIONS = 10, 200
CHAIN_OF = [k // 3 % CHAINS for k in range(CORRECTIONS)]  # neighbours meet in one chain, the others work beside them


@pytest.mark.behaviour("W19")
@pytest.mark.parametrize("loop", [False, True], ids=["threads", "loop"])
def test_of_200_corrections_of_corrections_none_is_lost(backend, me, loop):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory answers one call after the other")
    numbers = range(CHAINS)
    firsts = me.memories.write_many([{"content": f"Counter {n} at 0", "metadata": {"count": 0}} for n in numbers])

    def next_count(chain):
        [newest] = [memory for memory in chain if memory.superseded_by is None]
        return newest.id, newest.metadata["count"] + 1

    def increment(n):
        while True:  # whoever loses was overtaken by a winner, so there is an end
            newest, count = next_count(me.memories.history(firsts[n].id))
            with contextlib.suppress(MemoryNotActive):
                return me.memories.supersede(newest, f"Counter {n} at {count}", metadata={"count": count}).created

    async def aincrement(n, places):
        async with places:
            while True:
                newest, count = next_count(await me.memories.ahistory(firsts[n].id))
                with contextlib.suppress(MemoryNotActive):
                    text = f"Counter {n} at {count}"
                    return (await me.memories.asupersede(newest, text, metadata={"count": count})).created

    if loop:

        async def race():
            places = asyncio.Semaphore(12)
            return await asyncio.gather(*(aincrement(n, places) for n in CHAIN_OF))

        results = asyncio.run(race())
    else:
        results = at_once([lambda n=n: increment(n) for n in CHAIN_OF])

    assert results == [True] * CORRECTIONS
    for n in numbers:
        chain = me.memories.history(firsts[n].id)
        counts = sorted(memory.metadata["count"] for memory in chain)
        assert counts == [*range(CHAIN_OF.count(n) + 1)]
        assert [memory.content for memory in chain if memory.status == "active"] == [f"Counter {n} at {counts[-1]}"]
    assert me.stats().memories == CHAINS + CORRECTIONS
    assert {hit.memory.metadata["count"] for hit in me.recall("counter", limit=50)} == {*map(CHAIN_OF.count, numbers)}


@pytest.mark.parametrize("batch", [False, True], ids=["single", "batches"])
def test_the_same_memories_written_at_once_are_stored_once(me, batch):
    texts = [f"Fact number {n}" for n in range(10)]
    if batch:
        calls = [lambda n=n: me.memories.write_many(texts[n % 10 :] + texts[: n % 10]) for n in range(12)]
        results = [written for answer in at_once(calls) for written in answer]
    else:
        results = at_once([lambda n=n: me.memories.write(texts[n % 10]) for n in range(120)])

    assert len(results) == 120
    assert sum(written.created for written in results) == 10
    assert sorted(memory.content for memory in me.memories.list()) == sorted(texts)
    assert {written.id for written in results} == {memory.id for memory in me.memories.list()}


def test_readers_are_served_while_writers_write(engine):
    me = engine.persona("main", user="ana")
    me.memories.write("The office is in Lisbon.")

    def work(n):
        return len(me.recall("Lisbon office")) if n % 2 else me.memories.write(f"Parcel {n} arrived").created

    assert at_once([lambda n=n: work(n) for n in range(40)]) == [True, 1] * 20


HAMMER = """
import sys
from memoranda import MemoryEngine
me = MemoryEngine(sys.argv[1], preset="ledger", embedder="none").persona("main", user="ana")
for n in range(20):
    me.recall("office")
    me.memories.write(f"note {sys.argv[2]} {n}")
"""


@pytest.mark.behaviour("S21")
def test_processes_share_a_store(backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory belongs to one process")
    with MemoryEngine(backend.url, preset="ledger", embedder="none") as engine:
        me = engine.persona("main", user="ana")
        written = me.memories.write("The office is in Lisbon.")
        processes = [subprocess.Popen([sys.executable, "-c", HAMMER, backend.url, str(n)]) for n in range(2)]
        assert [process.wait() for process in processes] == [0, 0]

        record = me.memories.get(written.id)
        assert record is not None
        assert record.access_count == 40
        assert len(me.memories.list(limit=1000)) == 41
