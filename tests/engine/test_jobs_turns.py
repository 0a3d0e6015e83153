"""Whose job is done when, by whom, and for how long: turns, leases, callers that leave, engines without means."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoranda.db.queries import jobs
from memoranda.embedders.hash_words import HashWords
from memoranda.policies import JobPolicy
from memoranda.testing import DeferredEmbedder

TEXT = "The spare key hangs behind the door."


class Held(DeferredEmbedder):
    """Embeds when it is told to."""

    def __init__(self):
        super().__init__(HashWords())
        self.reached, self.told = threading.Event(), threading.Event()

    def embed(self, texts, purpose):
        self.calls += 1
        self.reached.set()
        assert self.told.wait(30)
        return HashWords().embed(texts)

    async def aembed(self, texts, purpose):
        self.calls += 1
        self.reached.set()
        while not self.told.is_set():
            await asyncio.sleep(0.005)
        return HashWords().embed(texts)


@pytest.fixture
def later():
    return DeferredEmbedder(HashWords())


@pytest.fixture
def shared(backend):
    """A database that a second engine can open."""
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: nobody else sees a store in memory")
    return backend


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def lease_of(engine):
    return engine.handle._database.read(
        lambda conn, tables: conn.scalar(tables.jobs.select().with_only_columns(tables.jobs.c.lease_until))
    )


# -- leases


@pytest.mark.behaviour("W07")
def test_a_lease_is_renewed_as_long_as_the_job_takes(make_engine):
    held = Held()
    engine = make_engine(embedder=held, background="external", job_policy=JobPolicy(lease_seconds=0.3))
    me = engine.persona("main")
    me.memories.write(TEXT)

    with ThreadPoolExecutor(1) as pool:
        draining = pool.submit(engine.drain)
        assert held.reached.wait(20)
        first = lease_of(engine)
        assert until(lambda: lease_of(engine) > first)
        held.told.set()
        assert draining.result(20) == 0
    assert (held.calls, me.stats().vectors, engine.jobs()) == (1, 1, [])
    assert not [thread for thread in threading.enumerate() if thread.name == "memoranda-lease"]


@pytest.mark.behaviour("W07")
def test_a_job_that_takes_longer_than_its_lease_is_done_once_by_two_workers(shared, make_engine):
    class Slow(DeferredEmbedder):
        def embed(self, texts, purpose):
            time.sleep(0.6)
            return super().embed(texts, purpose)

    policy = JobPolicy(lease_seconds=0.4)
    one, two = (make_engine(embedder=Slow(HashWords()), background="external", job_policy=policy) for _ in range(2))
    one.persona("main").memories.write(TEXT)

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(engine.handle.drain) for engine in (one, two)]
        assert [draining.result(30) for draining in both] == [0, 0]
    assert (one.persona("main").stats().vectors, one.jobs()) == (1, [])


# -- callers that leave


def test_a_caller_that_is_cancelled_gives_its_job_back(make_engine, later):
    held = Held()
    engine = make_engine(embedder=held, background="inline").handle

    async def left():
        for _ in range(6):
            writing = asyncio.create_task(engine.persona("main").memories.awrite(TEXT))
            while not held.reached.is_set():
                await asyncio.sleep(0.005)
            held.reached.clear()
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            await engine.persona("main").memories.awrite_many([])
            engine.persona("main").memories.delete(engine.persona("main").memories.list()[0].id)

    asyncio.run(left())
    assert {(job.status, job.attempts, job.running) for job in engine.jobs()} == {("waiting", 0, False)}


def test_a_worker_that_is_interrupted_gives_its_job_back(make_engine, later):
    engine = make_engine(embedder=later, background="external")
    engine.persona("main").memories.write(TEXT)
    later.errors = [KeyboardInterrupt()]

    with pytest.raises(KeyboardInterrupt):
        engine.handle.drain()
    [job] = engine.jobs()
    assert (job.status, job.attempts, job.running) == ("waiting", 0, False)


def test_a_worker_on_an_event_loop_ends_when_it_is_cancelled(shared, make_engine):
    held = Held()
    engine = make_engine(embedder=held, background="external").handle
    engine.persona("main").memories.write(TEXT)
    ended = []

    async def at_work(told):
        working = asyncio.create_task(engine.awork(threading.Event()))
        while not held.reached.is_set():
            await asyncio.sleep(0.005)
        working.cancel()
        await asyncio.sleep(0.05)
        ended.append(working.done())  # not before the job it is at
        told.set()
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(at_work(held.told))
    assert (ended, engine.jobs(), held.calls) == ([False], [], 1)


def test_an_idle_worker_on_an_event_loop_ends_when_it_is_cancelled(make_engine, later):
    engine = make_engine(embedder=later, background="external").handle

    async def at_work():
        await asyncio.wait_for(engine.awork(threading.Event()), 0.1)

    with pytest.raises(TimeoutError):
        asyncio.run(at_work())


# -- turns


def test_a_busy_persona_keeps_no_other_waiting(make_engine):
    class Feeding(DeferredEmbedder):
        def _fail_or_go_on(self):
            super()._fail_or_go_on()
            if self.calls < 12:
                busy.memories.write(f"Parcel {self.calls}.")

    engine = make_engine(embedder=Feeding(HashWords()), background="external").handle
    busy, quiet = engine.persona("busy"), engine.persona("quiet")
    busy.memories.write("Parcel 0.")
    quiet.memories.write(TEXT)
    seen = []

    engine.drain(progress=lambda done, total: seen.append(quiet.stats().vectors))
    assert seen.index(1) < 2 and len(seen) == 13


def test_a_call_does_the_jobs_of_its_own_persona_and_leaves_the_rest(shared, make_engine, later):
    left = make_engine(embedder=later, background="external")
    for tenant, name in (("acme", "main"), ("", "other"), ("", "main")):
        left.persona(name, tenant=tenant).memories.write(TEXT)

    inline = make_engine(embedder=later, background="inline")
    inline.persona("main").memories.write("The kettle is new.")
    assert sorted((job.tenant, job.persona) for job in inline.jobs()) == [("", "other"), ("acme", "main")]
    assert (later.calls, inline.persona("main").stats().vectors) == (2, 2)
    inline.persona("other").memories.write("The lamp is new.")
    assert [(job.tenant, job.persona) for job in inline.jobs()] == [("acme", "main")]


def test_a_call_begins_no_job_once_its_time_is_over(make_engine, later):
    engine = make_engine(embedder=later, background="inline", job_policy=JobPolicy(inline_seconds=1e-9))
    me = engine.persona("main")
    assert me.memories.write(TEXT).created
    assert ([job.attempts for job in engine.jobs()], later.calls) == ([0], 0)
    assert engine.drain() == 0 and me.stats().vectors == 1


# -- engines that lack something


@pytest.mark.parametrize("embedder", ["none", "hash/words"])
def test_an_engine_takes_up_what_it_has_the_means_for(shared, make_engine, embedder):
    first = make_engine(embedder=embedder, background="external")
    first.persona("main").memories.list()
    first.handle._database.run(jobs.enqueue, jobs.NOBODY, jobs.SCRUB, {})
    first.close()

    engine = make_engine(embedder=embedder, background="thread")
    engine.persona("main").recall("spare key")
    assert until(lambda: not engine.jobs())
