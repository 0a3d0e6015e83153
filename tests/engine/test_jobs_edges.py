"""Jobs that meet a closed engine, a locked or refusing database, a worker without means, an erasure, or nobody."""

import gc
import logging
import sqlite3
import threading
import time
import weakref

import numpy as np
import pytest

from memoranda import MemoryEngine
from memoranda.db.queries import jobs
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import EmbedderRefused, EmbedderUnavailable, StoreBusy
from memoranda.policies import JobPolicy
from memoranda.testing import DeferredEmbedder

AT_ONCE = JobPolicy(delay_seconds=0, attempts=2)
OWNER, EMBEDS = ("", "main"), jobs.Means(kinds=[jobs.EMBED])
TEXT = "The spare key hangs behind the door."


class Keyless(DeferredEmbedder):
    """Lacks its key, and says so when it is called."""

    configured = False

    def _fail_or_go_on(self):
        raise EmbedderRefused("has no key")


class Wide(DeferredEmbedder):
    """Makes vectors that are longer than Postgres takes."""

    def __init__(self):
        super().__init__(HashWords())
        self.name, self.dimensions = "test/wide", 16_001

    def embed(self, texts, purpose):
        return np.ones((len(texts), self.dimensions))

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


class Waiting(DeferredEmbedder):
    """Embeds when it is told to."""

    def __init__(self):
        super().__init__(HashWords())
        self.reached, self.told = threading.Event(), threading.Event()

    def _fail_or_go_on(self):
        super()._fail_or_go_on()
        self.reached.set()
        assert self.told.wait(30)


@pytest.fixture
def later():
    return DeferredEmbedder(HashWords())


@pytest.fixture
def shared(backend):
    """A database that a second engine can open."""
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: nobody else sees a store in memory")
    return backend


@pytest.fixture
def file(tmp_path):
    return f"sqlite:///{tmp_path}/memory.db"


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


# -- workers without the means


@pytest.mark.parametrize("background", ["thread", "inline"])
def test_an_engine_without_a_key_leaves_the_jobs_to_one_that_has_it(shared, make_engine, later, background):
    engine = make_engine(embedder=later, background="external")
    me = engine.persona("main")
    me.memories.write(TEXT)

    keyless = make_engine(embedder=Keyless(HashWords()), background=background)
    assert [memory.content for memory in keyless.persona("main").memories.list()] == [TEXT]
    assert keyless.drain() == 0
    assert [(job.status, job.attempts) for job in engine.jobs()] == [("waiting", 0)]
    engine.drain()
    assert me.stats().vectors == 1


def test_jobs_of_a_kind_nobody_here_knows_do_not_count(make_engine, later):
    engine = make_engine(embedder=later, background="external")
    engine.persona("main").memories.write(TEXT)
    engine.handle._database.run(jobs.enqueue, OWNER, "unheard of", {})

    assert engine.drain(timeout=0) == 0
    assert [(job.kind, job.status) for job in engine.jobs()] == [("unheard of", "waiting")]


def test_the_next_look_is_when_the_first_job_can_be_begun(make_engine, later):
    policy = JobPolicy()
    engine = make_engine(embedder=later, background="external")
    me, database = engine.persona("main"), engine.handle._database
    me.memories.write(TEXT)
    database.run(jobs.claim, OWNER, EMBEDS, "one", policy)
    assert 100 < database.read(jobs.seconds_until_due, EMBEDS) <= 120
    me.memories.write("The kettle stands on the stove.")
    second = database.run(jobs.claim, OWNER, EMBEDS, "two", policy)
    database.run(jobs.postpone, second, 5.0, "it is down")
    assert 0 < database.read(jobs.seconds_until_due, EMBEDS) <= 5
    assert database.read(jobs.seconds_until_due, jobs.Means(kinds=["unheard of"])) is None


# -- attempts


def test_a_job_that_the_database_refuses_is_given_up(backend, make_engine):
    made = Wide() if backend.is_postgres else DeferredEmbedder(HashWords())
    engine = make_engine(embedder=made, background="external", job_policy=AT_ONCE)
    engine.persona("main").memories.write(TEXT)
    if not backend.is_postgres:
        refuse = "CREATE TRIGGER refuse BEFORE INSERT ON memoranda_vectors BEGIN SELECT RAISE(ABORT, 'no'); END"
        engine.handle._database.run(lambda conn, tables: conn.exec_driver_sql(refuse))

    assert engine.drain() == 0
    [job] = engine.jobs()
    assert (job.status, job.attempts) == ("failed", 2)
    assert job.error.startswith("The database refused") and TEXT not in job.error


def test_a_job_that_kills_every_process_is_given_up(make_engine, later, caplog):
    engine = make_engine(embedder=later, background="external", job_policy=AT_ONCE)
    engine.persona("main").memories.write(TEXT)
    database = engine.handle._database
    long_ago = {"lease_until": None, "attempts": 2}
    database.run(lambda conn, tables: conn.execute(tables.jobs.update().values(**long_ago)))

    assert engine.drain() == 0 and later.calls == 0
    [job] = engine.jobs()
    assert (job.status, job.attempts) == ("failed", 2)
    assert "never ended" in job.error
    assert engine.retry_jobs() == 1
    engine.drain()
    assert engine.jobs() == [] and later.calls == 1


def test_an_attempt_whose_lease_ended_cannot_end_the_next_one(make_engine, later):
    engine = make_engine(embedder=later, background="external")
    engine.persona("main").memories.write(TEXT)
    database, over = engine.handle._database, JobPolicy(lease_seconds=1e-6)
    first = database.run(jobs.claim, OWNER, EMBEDS, "thread and drain", over)
    time.sleep(0.01)
    second = database.run(jobs.claim, OWNER, EMBEDS, "thread and drain", over)

    assert (first.attempts, second.attempts) == (1, 2)
    assert not database.run(jobs.finish, first)
    database.run(jobs.fail, first, "late", 1)
    assert database.run(jobs.finish, second)


# -- the thread


def test_a_locked_file_does_not_fail_a_write_that_is_stored(file, tmp_path, caplog):
    locks = []

    class Locking(DeferredEmbedder):
        def _fail_or_go_on(self):
            locks.append(sqlite3.connect(tmp_path / "memory.db", isolation_level=None))
            locks[-1].execute("BEGIN IMMEDIATE")

    with MemoryEngine(file, embedder=Locking(HashWords()), background="inline", timeout=0.2) as engine:
        assert engine.persona("main").memories.write(TEXT).created
        with pytest.raises(StoreBusy):
            engine.persona("main").memories.write("Not stored.")
        for lock in locks:
            lock.close()
        assert [job.status for job in engine.jobs()] == ["waiting"]
    assert "left for later" in caplog.text and TEXT not in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_is_replaced(file):
    class Dies(BaseException):
        pass

    class Deadly(DeferredEmbedder):
        def _fail_or_go_on(self):
            self.calls += 1
            if self.calls == 1:
                raise Dies

    policy = JobPolicy(lease_seconds=0.5)
    with MemoryEngine(file, embedder=Deadly(HashWords()), background="thread", job_policy=policy) as engine:
        me = engine.persona("main")
        me.memories.write(TEXT)
        assert until(lambda: engine._background._thread is None)
        me.memories.write("The kettle stands on the stove.")
        assert until(lambda: me.stats().vectors == 2)


def test_closing_while_a_job_is_done_leaves_the_job(file, caplog, monkeypatch):
    monkeypatch.setattr("memoranda.jobs._LEAVES", 0.05)
    caplog.set_level(logging.WARNING, "memoranda")
    embedder = Waiting()
    engine = MemoryEngine(file, embedder=embedder, background="thread")
    engine.persona("main").memories.write(TEXT)
    assert embedder.reached.wait(20)
    thread = engine._background._thread
    assert thread is not None
    engine.close()
    embedder.told.set()
    thread.join(20)

    assert not thread.is_alive() and caplog.records == []
    with MemoryEngine(file, embedder=DeferredEmbedder(HashWords()), background="external") as other:
        assert [(job.status, job.error) for job in other.jobs()] == [("waiting", "")]


def _left_with_a_job(file):
    down = [EmbedderUnavailable("it is down", retry_after=600)]
    engine = MemoryEngine(file, embedder=DeferredEmbedder(HashWords(), down), background="thread")
    engine.persona("main").memories.write(TEXT)
    thread = engine._background._thread
    assert until(lambda: engine.jobs()[0].error)
    return thread, weakref.ref(engine)


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_nobody_has_any_more_takes_its_thread_along(file):
    thread, gone = _left_with_a_job(file)

    def ended():
        gc.collect()
        return gone() is None and not thread.is_alive()

    assert until(ended, 60)


def test_a_job_leaves_no_text_in_memory_that_was_erased_meanwhile(file):
    embedder = Waiting()
    with MemoryEngine(file, embedder=embedder, background="thread") as engine:
        engine.persona("main").memories.write(TEXT)
        assert embedder.reached.wait(20)
        engine.erase(persona="main")
        embedder.told.set()
        assert engine.drain() == 0
        assert until(lambda: engine._background._thread is None)
        assert not engine._space.embedder._seen and engine.jobs() == []


# -- a store that moves


class Renamed(DeferredEmbedder):
    """Hashed words under another name."""

    def __init__(self):
        super().__init__(HashWords())
        self.name = "test/other"


def test_an_engine_of_the_old_embedder_leaves_jobs_to_the_new_one(shared, make_engine, later):
    old = make_engine(embedder=later, background="external")
    old.persona("main").memories.write(TEXT)
    old.drain()
    new = make_engine(embedder=Renamed(), background="external")
    new.reembed()
    me = new.persona("main")
    me.memories.write("The kettle stands on the stove.")
    old.persona("main").memories.write("The safe is empty.")

    assert old.drain() == 0 and len(new.jobs()) == 2
    assert new.drain() == 0 and new.jobs() == []
    assert me.stats().vectors == 3


def test_a_job_that_was_begun_before_the_move_is_left_to_the_new_embedder(shared, make_engine):
    embedder = Waiting()
    old = make_engine(embedder=embedder, background="external")
    old.persona("main").memories.write(TEXT)
    worker = threading.Thread(target=old.handle.drain)
    worker.start()
    assert embedder.reached.wait(20)
    new = make_engine(embedder=Renamed(), background="external")
    new.reembed()
    embedder.told.set()
    worker.join(20)

    [job] = new.jobs()
    assert (job.status, job.attempts, job.running) == ("waiting", 0, False)
    assert new.drain() == 0 and new.persona("main").stats().vectors == 1


def test_what_an_engine_of_the_old_embedder_embedded_itself_is_caught_up_with(shared, make_engine):
    old = make_engine(embedder="hash/words")
    old.persona("main").memories.write(TEXT)
    new = make_engine(embedder=Renamed(), background="external")
    new.reembed()
    old.persona("main").memories.write("The safe is empty.")

    assert new.backfill() == 1
    new.drain()
    assert new.persona("main").stats().vectors == 2
