"""What a write leaves for later is done once, whoever does it, and nothing of it is lost."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, text

from memoranda import MemoryEngine
from memoranda.db.database import Database
from memoranda.db.dialects.base import EngineOptions
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import EmbedderRefused, EmbedderUnavailable, StoreError
from memoranda.policies import JobPolicy
from memoranda.testing import DeferredEmbedder

AT_ONCE = JobPolicy(delay_seconds=0)
DOWN = EmbedderUnavailable("the service is down")


@pytest.fixture
def later():
    return DeferredEmbedder(HashWords())


@pytest.fixture
def host(backend):
    """The database as another program sees it."""
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: nobody else sees a store in memory")
    engine = create_engine(backend.url)
    yield engine
    engine.dispose()


def table(host, name):
    return f"memoranda.{name}" if host.dialect.name == "postgresql" else f"memoranda_{name}"


def set_jobs(host, **values):
    named = ", ".join(f"{name} = :{name}" for name in values)
    spelled = {
        name: value.strftime("%Y-%m-%d %H:%M:%S.%f")
        if isinstance(value, datetime) and host.dialect.name == "sqlite"
        else value
        for name, value in values.items()
    }
    with host.begin() as connection:
        connection.execute(text(f"update {table(host, 'jobs')} set {named}"), spelled)


@pytest.mark.behaviour("W04", "S06")
def test_a_memory_is_found_by_its_words_until_its_vector_is_made(make_engine, later):
    engine = make_engine(embedder=later, background="external")
    me = engine.persona("main")

    written = me.memories.write("The heating engineer is called Bruno.")
    assert written.degraded and later.calls == 0
    [job] = engine.jobs()
    assert (job.kind, job.status, job.attempts, job.persona) == ("embed", "waiting", 0, "main")
    assert me.stats().vectors == 0
    assert [hit.memory.id for hit in me.recall("Bruno the engineer")] == [written.id]

    assert engine.drain() == 0
    assert (me.stats().vectors, engine.jobs(), later.calls) == (1, [], 2)  # the question was embedded as well
    [hit] = me.recall("Bruno the engineer")
    assert hit.legs["vector"] > 0


REFUSE = {  # jobs of one kind, by the database itself
    "sqlite": (
        "CREATE TRIGGER refuse BEFORE INSERT ON memoranda_jobs BEGIN SELECT RAISE(ABORT, 'no'); END",
        "DROP TRIGGER refuse",
    ),
    "postgresql": (
        "ALTER TABLE memoranda.jobs ADD CONSTRAINT refuse CHECK (kind <> 'embed')",
        "ALTER TABLE memoranda.jobs DROP CONSTRAINT refuse",
    ),
}


@pytest.mark.behaviour("W04")
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_memory_whose_job_cannot_be_left_is_not_stored_either(make_engine, later, many):
    engine = make_engine(embedder=later, background="external")
    me, database = engine.persona("main"), engine.handle._database
    me.memories.list()
    refuse, allow = REFUSE[database.dialect.name]

    database.run(lambda conn, tables: conn.exec_driver_sql(refuse))
    try:
        with pytest.raises(StoreError):
            me.memories.write_many(["The kettle is new.", "So is the lamp."]) if many else me.memories.write(
                "Not kept."
            )
        assert (me.stats().memories, me.memories.list(), engine.jobs()) == (0, [], [])
    finally:
        database.run(lambda conn, tables: conn.exec_driver_sql(allow))
    assert me.memories.write("Kept.").created and len(engine.jobs()) == 1


@pytest.mark.behaviour("E08")
def test_a_batch_is_one_job_and_one_call(make_engine, later):
    engine = make_engine(embedder=later, background="external")
    me = engine.persona("main")
    me.memories.write_many([f"Parcel {number} is on its way." for number in range(40)])

    assert len(engine.jobs()) == 1
    engine.drain()
    assert (later.calls, me.stats().vectors) == (1, 40)


@pytest.mark.parametrize("background", ["thread", "inline"])
def test_jobs_are_done_without_being_asked_for(make_engine, later, background):
    engine = make_engine(embedder=later, background=background)
    me = engine.persona("main")
    me.memories.write("The spare key hangs behind the door.")

    assert engine.drain() == 0  # waits for the thread where there is one
    assert (me.stats().vectors, later.calls) == (1, 1)


@pytest.mark.behaviour("W07")
def test_an_outage_heals_itself(make_engine, later):
    later.errors = [DOWN] * 4
    engine = make_engine(embedder=later, background="inline", job_policy=AT_ONCE)
    me = engine.persona("main")
    me.memories.write("The spare key hangs behind the door.")

    assert (later.calls, me.stats().vectors, engine.jobs()) == (5, 1, [])


@pytest.mark.behaviour("W07")
def test_after_five_attempts_a_job_is_given_up_and_kept(make_engine, later):
    later.errors = [DOWN] * 5
    engine = make_engine(embedder=later, background="inline", job_policy=AT_ONCE)
    me = engine.persona("main")
    me.memories.write("The spare key hangs behind the door.")

    [job] = engine.jobs()
    assert (job.status, job.attempts, job.error) == ("failed", 5, str(DOWN))
    assert engine.drain() == 0 and later.calls == 5
    assert [hit.memory.content for hit in me.recall("spare key")]

    assert engine.retry_jobs() == 1
    engine.drain()
    assert (engine.jobs(), me.stats().vectors) == ([], 1)


@pytest.mark.behaviour("W07")
def test_a_refused_key_is_not_tried_again(make_engine, later):
    later.errors = [EmbedderRefused("the key was revoked", status=401)]
    engine = make_engine(embedder=later, background="inline", job_policy=AT_ONCE)
    engine.persona("main").memories.write("The spare key hangs behind the door.")

    [job] = engine.jobs()
    assert (job.status, job.attempts, later.calls) == ("failed", 1, 1)


def test_a_failed_attempt_waits_as_long_as_the_service_asks_for(make_engine, later):
    later.errors = [EmbedderUnavailable("too many requests", retry_after=600)]
    engine = make_engine(embedder=later, background="inline")
    engine.persona("main").memories.write("The spare key hangs behind the door.")

    [job] = engine.jobs()
    assert timedelta(minutes=9) < job.due_at - job.created_at < timedelta(minutes=11)
    assert engine.drain(timeout=0) == 1


@pytest.mark.behaviour("W07")
@pytest.mark.behaviour("D25")
def test_nothing_is_deleted_for_its_age(make_engine, frozen_clock):
    engine = make_engine(background="external", clock=frozen_clock)
    me = engine.persona("main")
    me.memories.write_many([f"It rained on day {n}." for n in range(3)])
    for _ in range(24):
        frozen_clock.advance(days=31)
        me.memories.write("Another month went by.", importance=1)
        engine.drain()
    assert me.stats().memories == 4 == len(me.memories.list(limit=50))


def test_the_waits_grow_and_differ():
    policy = JobPolicy()
    assert [policy.delay(attempt, 0) for attempt in (1, 2, 3, 4)] == [17, 19, 23, 31]
    assert policy.delay(1, 1) == pytest.approx(17 * 1.1)


def test_an_embedder_that_fails_in_the_write_leaves_a_job(make_engine, later):
    later.deferred = False
    later.errors = [DOWN]
    engine = make_engine(embedder=later, background="external")
    me = engine.persona("main")

    assert me.memories.write("The spare key hangs behind the door.").degraded == str(DOWN)
    assert len(engine.jobs()) == 1
    engine.drain()
    assert me.stats().vectors == 1


def test_without_background_nothing_is_left(make_engine, later):
    later.errors = [DOWN]
    engine = make_engine(embedder=later, background="off")
    engine.persona("main").memories.write("The spare key hangs behind the door.")
    assert (engine.jobs(), later.calls) == ([], 1)  # it was tried in the write


@pytest.mark.behaviour("W08")
def test_backfill_says_how_many_it_left_jobs_for_and_then_none(make_engine, later):
    later.errors = [DOWN] * 3
    engine = make_engine(embedder=later, background="off")
    me, other = engine.persona("main"), engine.persona("other", user="ana")
    for number in range(2):
        me.memories.write(f"Parcel {number}.")
    other.memories.write("A third parcel.")

    assert engine.backfill() == 3
    assert engine.backfill() == 0
    assert engine.drain() == 0
    assert engine.backfill() == 0
    assert (me.stats().vectors, other.stats().vectors) == (2, 1)


def test_backfill_takes_up_what_was_given_up(make_engine, later):
    later.errors = [DOWN] * 5
    engine = make_engine(embedder=later, background="inline", job_policy=AT_ONCE)
    me = engine.persona("main")
    me.memories.write("The spare key hangs behind the door.")

    assert engine.backfill() == 1
    assert me.stats().vectors == 1


def test_a_text_that_is_revised_meanwhile_is_embedded_as_it_stands(make_engine, later):
    engine = make_engine(embedder=later, background="external", preset="statements")
    me = engine.persona("main").scoped(people=["ana"])
    later.errors = [DOWN, DOWN]
    kept = me.memories.keep("Ana keeps two grey cats in the house", about="person:ana")
    me.memories.keep("Ana keeps three black dogs in the yard", about="person:ana", id=kept.memory.id)

    engine.drain()
    [nearest] = [me.memories.nearest("Ana keeps three black dogs in the yard")]
    assert (me.stats().vectors, nearest.confidence) == (1, pytest.approx(1))


# -- workers that meet, die, or have another clock


@pytest.mark.behaviour("W07")
def test_two_workers_share_the_jobs_and_do_each_once(make_engine, backend):
    made = DeferredEmbedder(HashWords())
    engine = make_engine(embedder=made, background="external")
    me = engine.persona("main")
    for number in range(24):
        me.memories.write(f"Parcel {number} went to address {number * 7}.")

    workers = [engine.handle] if backend.name == "sqlite-memory" else []
    while len(workers) < 4:
        other = engine.handle
        if backend.name != "sqlite-memory":
            other = MemoryEngine(backend.url, embedder=made, background="external")
        workers.append(other)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda worker: worker.drain(), workers)) == [0] * 4
    for worker in workers:
        if worker is not engine.handle:
            worker.close()

    assert (made.calls, me.stats().vectors, engine.jobs()) == (24, 24, [])


def test_what_a_dead_worker_held_is_done_when_its_lease_ends(make_engine, later, host):
    engine = make_engine(embedder=later, background="external")
    me = engine.persona("main")
    me.memories.write("The spare key hangs behind the door.")
    now = datetime.now(UTC).replace(tzinfo=None) if host.dialect.name == "sqlite" else datetime.now(UTC)

    set_jobs(host, lease_until=now + timedelta(seconds=60), worker="dead", attempts=1)
    assert engine.drain(timeout=0) == 1 and later.calls == 0
    set_jobs(host, lease_until=now - timedelta(seconds=1))
    assert engine.drain() == 0
    assert me.stats().vectors == 1


def test_a_worker_that_lost_its_lease_stores_its_vectors_and_leaves_the_job(backend, make_engine, later, host, caplog):
    caplog.set_level(logging.INFO, "memoranda.jobs")
    engine = make_engine(embedder=later, background="external")
    me = engine.persona("main")
    me.memories.write("The spare key hangs behind the door.")

    class Slow:
        """Loses the lease while it embeds."""

        name, dimensions, deferred = later.name, later.dimensions, True

        def embed(self, texts, purpose):
            set_jobs(host, worker="another")
            return later.embed(texts, purpose)

        async def aembed(self, texts, purpose):
            return self.embed(texts, purpose)

    with MemoryEngine(backend.url, embedder=Slow(), background="external") as slow:
        slow.drain(timeout=0)
    assert (me.stats().vectors, len(engine.jobs())) == (1, 1)
    assert "is left to another worker" in caplog.text and "is done" not in caplog.text
    set_jobs(host, worker="", lease_until=None)
    assert engine.drain() == 0
    assert (me.stats().vectors, later.calls, engine.jobs()) == (1, 1, [])  # nothing is embedded twice


def _killed_while_embedding(url, reached):
    class Stuck:
        name, dimensions, deferred, distinguishes_purpose = HashWords.name, HashWords().dimensions, True, False

        def embed(self, texts, purpose):
            reached.set()
            time.sleep(600)
            raise AssertionError

        async def aembed(self, texts, purpose):
            return self.embed(texts, purpose)

    policy = JobPolicy(lease_seconds=1)
    with MemoryEngine(url, embedder=Stuck(), background="external", job_policy=policy) as engine:
        engine.drain()


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(backend, make_engine, later, host):
    engine = make_engine(embedder=later, background="external")
    me = engine.persona("main")
    me.memories.write("The spare key hangs behind the door.")
    spawn = multiprocessing.get_context("spawn")
    reached = spawn.Event()
    process = spawn.Process(target=_killed_while_embedding, args=(backend.url, reached))
    process.start()
    assert reached.wait(60)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()

    assert engine.drain() == 0  # waits until its lease ends, of a second
    assert (me.stats().vectors, engine.jobs()) == (1, [])


def test_the_next_engine_goes_on_with_what_the_last_one_left(backend, make_engine, later, host):
    with MemoryEngine(backend.url, embedder=later, background="external") as first:
        first.setup()
        first.persona("main").memories.write("The spare key hangs behind the door.")
    engine = make_engine(embedder=later, background="thread")
    me = engine.persona("main")

    me.memories.list()
    assert me.recall("spare key")
    assert engine.drain() == 0
    assert me.stats().vectors == 1


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_after_a_fork_the_child_does_its_own_jobs(backend, later, host):
    with MemoryEngine(backend.url, embedder=later, background="thread") as engine:
        engine.setup()
        me = engine.persona("main")
        me.memories.write("The parent's key hangs behind the door.")
        engine.drain()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                me.memories.write("The child's key lies under the mat.")
                code = 0 if engine.drain() == 0 and me.stats().vectors == 2 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (me.stats().vectors, engine.jobs()) == (2, [])


def test_a_worker_stops_when_it_is_told_to(backend, later, host):
    with MemoryEngine(backend.url, embedder=later, background="external") as engine:
        engine.setup()
        stop, me = threading.Event(), engine.persona("main")
        worker = threading.Thread(target=engine.work, args=(stop,))
        worker.start()
        me.memories.write("The spare key hangs behind the door.")
        deadline = time.monotonic() + 30
        while me.stats().vectors == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        stop.set()
        worker.join(40)
        assert not worker.is_alive()
        assert me.stats().vectors == 1


def test_jobs_are_claimed_by_the_database_s_clock(backend, make_engine):
    engine = make_engine()
    engine.persona("main").memories.list()
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: nobody else sees a store in memory")
    database = Database(backend.url, schema="memoranda", options=EngineOptions())
    moment = database.read(lambda conn, tables: tables.dialect.now(conn))
    database.close()
    assert moment.tzinfo is not None
    assert abs(moment - datetime.now(UTC)) < timedelta(minutes=1)
