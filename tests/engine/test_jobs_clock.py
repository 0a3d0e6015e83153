"""Jobs whose database has its clock moved: they are done once, none is lost, and none waits for days."""

import threading
from datetime import timedelta

import pytest

from memoranda.db.queries import jobs
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import ConfigurationError, EmbedderUnavailable
from memoranda.policies import JobPolicy
from memoranda.testing import DeferredEmbedder

OWNER, EMBEDS = ("", "main"), jobs.Means(kinds=[jobs.EMBED])
TEXT = "The spare key hangs behind the door."
FORWARD, DAYS = timedelta(minutes=10), timedelta(days=3)


@pytest.fixture
def later():
    return DeferredEmbedder(HashWords())


def step(engine, by, *names):
    """Have the clock go `by` further, as rows see it: what was to come is nearer, what is over further away."""

    def moved(conn, tables):
        j = tables.jobs
        for row in conn.execute(j.select()).all():
            values = {name: getattr(row, name) - by for name in names if getattr(row, name) is not None}
            conn.execute(j.update().where(j.c.id == row.id).values(**values))

    engine._database.run(moved)


@pytest.mark.behaviour("W07")
def test_after_a_step_forward_a_job_under_way_is_done_by_another_and_stored_once(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: nobody else sees a store in memory")
    reached, told = threading.Event(), threading.Event()

    class Held(DeferredEmbedder):
        def _fail_or_go_on(self):
            super()._fail_or_go_on()
            reached.set()
            assert told.wait(30)

    first = make_engine(embedder=Held(HashWords()), background="external")
    second = make_engine(embedder=DeferredEmbedder(HashWords()), background="external")
    first.persona("main").memories.write(TEXT)
    working = threading.Thread(target=first.handle.drain)
    working.start()
    assert reached.wait(20)

    step(second.handle, FORWARD, "due_at", "lease_until")
    assert second.drain() == 0 and second.jobs() == []
    told.set()
    working.join(20)
    stored = second.handle._database.read(lambda conn, tables: len(conn.execute(tables.vectors.select()).all()))
    assert (stored, second.persona("main").stats().vectors, second.jobs()) == (1, 1, [])


@pytest.mark.parametrize("back", [timedelta(seconds=2), timedelta(minutes=9)], ids=str)
def test_a_small_step_back_ends_no_wait_and_no_lease(make_engine, later, back):
    engine = make_engine(embedder=later, background="external")
    me, database = engine.persona("main"), engine.handle._database
    later.errors = [EmbedderUnavailable("quota", retry_after=86_400)]
    me.memories.write(TEXT)
    assert engine.drain(timeout=0) == 1

    step(engine.handle, -back, "due_at")
    assert 3_590 < database.read(jobs.seconds_until_due, EMBEDS) < 3_610 + back.total_seconds()
    assert engine.drain(timeout=0) == 1 and later.calls == 1

    me.memories.write("The kettle is new.")
    assert database.run(jobs.claim, OWNER, EMBEDS, "one", JobPolicy(lease_seconds=600)) is not None
    step(engine.handle, -back, "due_at", "lease_until")
    assert database.run(jobs.claim, OWNER, EMBEDS, "two", JobPolicy()) is None


@pytest.mark.behaviour("W07")
@pytest.mark.parametrize("names", [("lease_until",), ("due_at",), ("lease_until", "due_at")], ids=" ".join)
def test_a_clock_that_was_put_back_by_days_keeps_no_job_waiting(make_engine, later, names):
    engine = make_engine(embedder=later, background="external")
    engine.persona("main").memories.write(TEXT)
    if "lease_until" in names:
        engine.handle._database.run(jobs.claim, OWNER, EMBEDS, "dead", JobPolicy())

    step(engine.handle, -DAYS, *names)
    assert engine.drain(timeout=0) == 0
    assert (engine.jobs(), engine.persona("main").stats().vectors) == ([], 1)


def test_a_lease_lasts_as_long_as_its_own_policy_says(make_engine, later):
    engine = make_engine(embedder=later, background="external")
    engine.persona("main").memories.write(TEXT)
    database = engine.handle._database

    assert database.run(jobs.claim, OWNER, EMBEDS, "patient", JobPolicy(lease_seconds=600)) is not None
    assert database.run(jobs.claim, OWNER, EMBEDS, "hasty", JobPolicy(lease_seconds=1)) is None
    with pytest.raises(ConfigurationError, match="600 at most"):
        JobPolicy(lease_seconds=601)
