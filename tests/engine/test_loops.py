"""One engine object for plain code, running loops, second loops and threads, and what a loop may expect of it."""

import asyncio
import contextvars
import sqlite3
import threading
import time
from typing import Any

import pytest

from memoranda import MemoryEngine
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import StoreBusy


@pytest.fixture
def engine(backend):
    with MemoryEngine(backend.url, embedder="hash/words") as engine:
        yield engine


@pytest.fixture
def me(engine):
    return engine.persona("main")


def contents(hits):
    return {hit.memory.content for hit in hits}


@pytest.mark.blank
def test_one_engine_serves_plain_code_two_loops_and_threads(me):
    me.memories.write("Lisbon plain")

    async def in_a_loop(name):
        await me.memories.awrite(f"Lisbon {name}")
        me.memories.write(f"Lisbon {name} blocking")
        assert contents(me.recall("lisbon")) == contents(await me.arecall("lisbon"))

    asyncio.run(in_a_loop("first"))
    asyncio.run(in_a_loop("second"))
    thread = threading.Thread(target=lambda: asyncio.run(in_a_loop("thread")))
    thread.start()
    thread.join()
    other = threading.Thread(target=me.memories.write, args=("Lisbon worker",))
    other.start()
    other.join()

    assert len(contents(me.recall("lisbon", limit=20))) == 8


async def test_many_calls_of_one_loop_run_side_by_side(me):
    written = await asyncio.gather(*(me.memories.awrite(f"Lisbon {n}") for n in range(20)))
    answers = await asyncio.gather(*(me.arecall(f"Lisbon {n}") for n in range(20)))

    assert len({answer.id for answer in written}) == 20
    assert [answer[0].memory.content for answer in answers] == [f"Lisbon {n}" for n in range(20)]


class Gate:
    """Hashed words behind a gate: whoever embeds while it is shut is in flight until it opens."""

    name, dimensions = "test/gate", 512

    def __init__(self):
        self.words = HashWords()
        self.opened = asyncio.Event()
        self.waiting = 0

    def embed(self, texts, purpose):
        return self.words.embed(texts, purpose)

    async def aembed(self, texts, purpose):
        self.waiting += 1
        await self.opened.wait()
        return self.words.embed(texts, purpose)


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_call_cancelled_while_it_embeds_stores_nothing(backend):
    gate = Gate()
    async with MemoryEngine(backend.url, embedder=gate) as engine:
        me = engine.persona("main")
        me.memories.write("Lisbon 0")
        tasks: list[asyncio.Task[Any]]
        tasks = [asyncio.create_task(me.memories.awrite(f"Lisbon {n}")) for n in range(1, 9)]
        tasks += [asyncio.create_task(me.arecall(f"lisbon {n}")) for n in range(4)]
        await until(lambda: gate.waiting == 12)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} == {asyncio.CancelledError}

        gate.opened.set()
        await me.memories.awrite("Lisbon 9")
        assert contents(await me.arecall("lisbon", limit=20)) == {"Lisbon 0", "Lisbon 9"}
        assert (await me.astats()).memories == (await me.astats()).vectors == 2


async def test_a_call_cancelled_while_it_stores_leaves_the_engine_whole(tmp_path):
    path = tmp_path / "memory.db"
    async with MemoryEngine(f"sqlite:///{path}", embedder="hash/words", pool_size=4) as engine:
        me = engine.persona("main")
        await me.memories.awrite("Lisbon 0")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")  # so that what has begun is still in flight when it is cancelled
        tasks = [asyncio.create_task(me.memories.awrite(f"Lisbon {n}")) for n in range(1, 9)]
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} == {asyncio.CancelledError}
        other.execute("rollback")
        other.close()

        await me.memories.awrite("Lisbon 9")
        stored: set[str] = set()
        for _ in range(100):  # what had begun when it was cancelled still commits
            before, stored = stored, {memory.content for memory in await me.memories.alist()}
            if before == stored:
                break
            await asyncio.sleep(0.1)
        assert {"Lisbon 0", "Lisbon 9"} <= stored <= {f"Lisbon {n}" for n in range(10)}
        assert contents(await me.arecall("lisbon", limit=20)) == stored
        assert (await me.astats()).vectors == len(stored)


async def test_a_timeout_ends_the_wait_and_not_the_engine(tmp_path):
    path = tmp_path / "memory.db"
    async with MemoryEngine(f"sqlite:///{path}", embedder="none") as engine:
        me = engine.persona("main")
        await me.memories.awrite("Lisbon one")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(me.memories.awrite("Lisbon two"), 0.1)
        assert contents(await me.arecall("lisbon")) == {"Lisbon one"}
        other.execute("rollback")
        other.close()
        await me.memories.awrite("Lisbon three")
        assert {"Lisbon one", "Lisbon three"} <= contents(await me.arecall("lisbon"))


async def longest_pause(work):
    """Return for how long at most the loop did not come round while `work` ran, in seconds."""
    longest, done = 0.0, False

    async def tick():
        nonlocal longest
        last = time.perf_counter()
        while not done:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0.001)
            last = time.perf_counter()

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        await work
    finally:
        done = True
        await ticking
    return longest


async def test_a_loop_is_never_held_up(tmp_path):
    async with MemoryEngine(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hash/words") as engine:
        me = engine.persona("main")
        await me.memories.awrite_many([f"Parcel {n} arrived in Lisbon" for n in range(200)])
        await me.arecall("parcel")

        async def work(turn):
            writes = (me.memories.awrite(f"Letter {turn}.{n} arrived in Porto") for n in range(10))
            await asyncio.gather(*writes, *(me.arecall(f"parcel {n}") for n in range(10)))

        # A busy machine may pause any process: the best of some tries says what the engine does, and the pause of a
        # loop that only waits says what the machine does.
        pauses, idle = [], []
        for turn in range(8):
            pauses.append(await longest_pause(work(turn)))
            idle.append(await longest_pause(asyncio.sleep(0.1)))
            if pauses[-1] < 0.05:
                break
        assert min(pauses) < max(0.05, 3 * min(idle)), (pauses, idle)


async def test_a_lock_held_elsewhere_does_not_hold_up_the_loop(tmp_path):
    path = tmp_path / "memory.db"
    async with MemoryEngine(f"sqlite:///{path}", embedder="none") as engine:
        me = engine.persona("main")
        await me.memories.awrite("Lisbon one")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        waiting = asyncio.create_task(me.memories.awrite("Lisbon two"))
        pauses = [await longest_pause(asyncio.sleep(0.2)) for _ in range(3)]
        assert not waiting.done()
        other.execute("rollback")
        other.close()
        assert (await waiting).created
        assert min(pauses) < 0.15, pauses


async def test_too_many_waiting_calls_are_refused_and_the_others_done(tmp_path):
    path = tmp_path / "memory.db"
    async with MemoryEngine(f"sqlite:///{path}", embedder="none", pool_size=1) as engine:
        me = engine.persona("main")
        await me.memories.awrite("Lisbon")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        tasks = [asyncio.create_task(me.memories.awrite(f"Parcel {n}")) for n in range(100)]
        await asyncio.sleep(0.05)
        other.execute("rollback")
        other.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)

        refused = [result for result in results if isinstance(result, StoreBusy)]
        stored = [result for result in results if not isinstance(result, BaseException)]
        assert len(refused) + len(stored) == 100
        assert len(refused) >= 1
        assert len(stored) >= 50
        assert len(await me.memories.alist(limit=200)) == 1 + len(stored)
        assert (await me.memories.awrite("Parcel after the rush")).created


def test_a_lock_that_is_never_released_is_an_error_after_the_timeout(tmp_path):
    path = tmp_path / "memory.db"
    with MemoryEngine(f"sqlite:///{path}", embedder="none", timeout=0.2) as engine:
        me = engine.persona("main")
        me.memories.write("Lisbon one")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        with pytest.raises(StoreBusy):
            me.memories.write("Lisbon two")
        assert contents(me.recall("lisbon")) == {"Lisbon one"}
        other.execute("rollback")
        other.close()
        me.memories.write("Lisbon two")
        assert contents(me.recall("lisbon")) == {"Lisbon one", "Lisbon two"}


async def test_context_variables_reach_the_embedder_and_the_clock(backend):
    from datetime import UTC, datetime

    name = contextvars.ContextVar("name", default="nobody")
    seen = []

    def clock():
        seen.append(name.get())
        return datetime(2026, 1, 1, tzinfo=UTC)

    async with MemoryEngine(backend.url, embedder="none", clock=clock) as engine:
        name.set("ana")
        await engine.persona("main").memories.awrite("Lisbon")
    assert set(seen) == {"ana"}


def test_an_engine_may_be_closed_twice_and_then_says_so(backend):
    from memoranda.errors import ConfigurationError

    engine = MemoryEngine(backend.url, embedder="none")
    me = engine.persona("main")
    me.memories.write("Lisbon")
    asyncio.run(me.arecall("lisbon"))
    engine.close()
    engine.close()
    with pytest.raises(ConfigurationError, match="closed"):
        me.recall("lisbon")
    with pytest.raises(ConfigurationError, match="closed"):
        asyncio.run(me.arecall("lisbon"))
