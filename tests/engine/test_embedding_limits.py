"""An embedder that hangs keeps nobody waiting: words decide, the caller is told, and what comes late harms nothing."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from memoranda import MemoryEngine
from memoranda.embedders.cache import CachedEmbedder
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import ConfigurationError, EmbedderUnavailable
from memoranda.policies import DedupePolicy, TimeoutPolicy
from memoranda.presets import resolve
from memoranda.time_limits import MOST_GIVEN_UP, TimeLimit

TEXT = "The spare key hangs behind the door."
SHORT = TimeoutPolicy(compare=0.05, question=0.05)
LATE = "gave no answer within 0.05 s"


class Hanging:
    """Hashed words that are given out when the test says so; `given_up` counts calls that were cancelled."""

    name, dimensions, distinguishes_purpose = HashWords.name, HashWords.dimensions, False

    def __init__(self):
        self.told = threading.Event()
        self.calls = self.given_up = 0

    def embed(self, texts, purpose):
        self.calls += 1
        assert self.told.wait(60)
        return HashWords().embed(texts)

    async def aembed(self, texts, purpose):
        self.calls += 1
        try:
            while not self.told.is_set():
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return HashWords().embed(texts)


class Stubborn(Hanging):
    """Does not heed that it was cancelled."""

    async def aembed(self, texts, purpose):
        while not self.told.is_set():
            try:
                await super().aembed(texts, purpose)
            except asyncio.CancelledError:
                continue
        return HashWords().embed(texts)


@pytest.fixture
def hanging():
    embedder = Hanging()
    yield embedder
    embedder.told.set()
    for thread in waiting_threads():
        thread.join(20)


def policies(preset, **changes):
    return replace(resolve(preset), timeout=SHORT, **changes)


def waiting_threads():
    return [thread for thread in threading.enumerate() if thread.name == "memoranda-embedder"]


def test_a_caller_waits_two_seconds_for_a_comparison_and_five_for_an_answer_unless_the_host_says_otherwise():
    policy = TimeoutPolicy()
    assert [policy.seconds(texts, "compare") for texts in (1, 128, 129, 1280)] == [2, 2, 4, 20]
    assert (policy.seconds(1, "question"), policy.seconds(129, "store")) == (5, 60)
    with pytest.raises(ConfigurationError, match="positive"):
        TimeoutPolicy(compare=0)


def test_a_statement_is_kept_by_its_words_where_its_vector_does_not_come(make_engine, hanging):
    engine = make_engine(embedder=hanging, preset=policies("statements"), background="external")
    me = engine.persona("main").scoped(people=["ana"])

    first = me.memories.keep(TEXT, about="person:ana")
    again = me.memories.keep(TEXT, about="person:ana")
    assert LATE in first.degraded and LATE in again.degraded
    assert (first.outcome, again.outcome) == ("remembered", "known")
    assert again.memory.id == first.memory.id

    hanging.told.set()
    assert engine.drain() == 0
    assert me.stats().vectors == 1


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("dedupe", ["novelty", "same"])
def test_what_would_be_compared_is_stored_all_the_same(make_engine, hanging, dedupe, many):
    engine = make_engine(embedder=hanging, preset=policies("standard", dedupe=DedupePolicy(name=dedupe)))
    memories = engine.persona("main").memories
    written = memories.write_many([TEXT, "The kettle is new."]) if many else [memories.write(TEXT)]

    assert all(item.created and LATE in item.degraded for item in written)
    assert not memories.write(TEXT).created  # the same words are known without a vector


@pytest.mark.parametrize("background", ["off", "thread"])
def test_what_is_compared_with_nothing_waits_longer_and_not_for_ever(make_engine, hanging, background):
    limits = TimeoutPolicy(store=0.05, question=0.05)
    patient = replace(resolve("standard"), timeout=limits, dedupe=DedupePolicy(name="key"))
    engine = make_engine(embedder=hanging, preset=patient, background=background)
    me = engine.persona("main")
    written = me.memories.write(TEXT)
    [taken_in] = me.knowledge.ingest("manual", text=TEXT)
    assert written.created and taken_in.chunks == 1
    assert all(answer.degraded for answer in (written, taken_in))

    hanging.told.set()
    engine.backfill()
    assert engine.drain() == 0
    assert me.stats().vectors == 1 and me.knowledge.ingest("manual", text=TEXT)[0].embedded


def test_a_question_is_answered_from_words_where_its_vector_does_not_come(make_engine, hanging):
    hanging.told.set()
    engine = make_engine(embedder=hanging, preset=policies("standard"))
    me = engine.persona("main")
    old = me.memories.write(TEXT)
    before = old.memory.created_at
    hanging.told.clear()
    me.memories.supersede(old.id, TEXT)  # has its vector from before
    engine.handle._space.embedder.forget()

    found = me.recall("spare key")
    assert LATE in found.degraded and [hit.memory.content for hit in found] == [TEXT]
    assert LATE in me.recall("spare key", as_of=before).degraded
    assert LATE in me.memories.relevant("spare key").degraded
    assert me.memories.nearest("The spare key hangs").memory.content == TEXT


def test_nearest_asks_an_embedder_that_takes_a_while(make_engine, hanging):
    hanging.deferred = True
    hanging.told.set()
    engine = make_engine(embedder=hanging, background="external")
    me = engine.persona("main")
    me.memories.write(TEXT)
    engine.drain()
    assert me.memories.nearest(TEXT).legs["vector"] > 0


def test_an_embedder_of_this_process_is_given_its_time(make_engine):
    class Thorough(HashWords):
        def embed(self, texts, purpose="text"):
            time.sleep(0.1)
            return super().embed(texts)

        async def aembed(self, texts, purpose="text"):
            return self.embed(texts)

    engine = make_engine(embedder=Thorough(), preset=policies("ledger"))
    me = engine.persona("main", user="ana")
    assert me.memories.write(TEXT).degraded is None
    assert me.recall("spare key").degraded is None


# -- what is left of a call that was given up


def test_calls_that_hang_hold_a_few_threads_and_the_next_ones_are_refused_at_once(hanging):
    cached = CachedEmbedder(hanging)
    for number in range(MOST_GIVEN_UP + 8):
        with pytest.raises(EmbedderUnavailable, match=r"no answer within 0\.01 s"):
            cached.embed([f"text {number}"], "query", 0.01)
    assert (hanging.calls, len(waiting_threads())) == (MOST_GIVEN_UP, MOST_GIVEN_UP)

    hanging.told.set()
    for thread in waiting_threads():
        thread.join(20)
    assert len(cached.embed(["another text"], "query", 20)) == 1


def test_an_answer_that_comes_late_is_remembered_and_nothing_else(hanging):
    cached = CachedEmbedder(hanging)
    for text in ("a question", "an erased question"):
        if "erased" in text:
            cached.forget()
        with pytest.raises(EmbedderUnavailable):
            cached.embed([text], "query", 0.01)
    hanging.told.set()
    for thread in waiting_threads():
        thread.join(20)
    cached.embed(["an erased question"], "query", 20)
    assert hanging.calls == 2
    cached.embed(["a question"], "query", 20)  # it was forgotten while the embedder was at it
    assert hanging.calls == 3


def test_a_coroutine_that_hangs_is_cancelled(hanging):
    async def ask():
        cached = CachedEmbedder(hanging)
        with pytest.raises(EmbedderUnavailable, match="no answer"):
            await cached.aembed(["a question"], "query", 0.01)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (hanging.given_up, len(asyncio.all_tasks())) == (1, 1)

    asyncio.run(ask())


def test_a_coroutine_that_will_not_be_cancelled_holds_nobody_up():
    async def ask():
        stubborn = Stubborn()
        with pytest.raises(EmbedderUnavailable, match="no answer"):
            await CachedEmbedder(stubborn).aembed(["a question"], "query", 0.01)
        assert not stubborn.told.is_set()
        stubborn.told.set()

    asyncio.run(ask())


def test_a_caller_that_is_cancelled_cancels_the_call(hanging):
    async def ask():
        asking = asyncio.create_task(CachedEmbedder(hanging).aembed(["a question"], "query", 60))
        while not hanging.calls:
            await asyncio.sleep(0.005)
        asking.cancel()
        await asyncio.wait((asking,))
        for _ in range(100):
            await asyncio.sleep(0)
        assert (hanging.given_up, len(asyncio.all_tasks())) == (1, 1)

    asyncio.run(ask())


@pytest.mark.parametrize("how", ["sync", "async"])
def test_what_an_embedder_raises_within_its_time_reaches_the_caller(how):
    class Failing(Hanging):
        def embed(self, texts, purpose):
            raise TimeoutError("a secret of its own")

        async def aembed(self, texts, purpose):
            return self.embed(texts, purpose)

    cached = CachedEmbedder(Failing())
    with pytest.raises(EmbedderUnavailable, match="failed with TimeoutError"):
        if how == "sync":
            cached.embed(["a question"], "query", 20)
        else:
            asyncio.run(cached.aembed(["a question"], "query", 20))


def test_a_child_begins_without_the_threads_of_its_parent():
    limit = TimeLimit("embedder")
    limit._given_up = MOST_GIVEN_UP
    limit.after_fork()
    assert limit.within(20, lambda: 1) == 1


def test_a_closed_engine_waits_for_no_call_that_was_given_up(tmp_path, hanging):
    with MemoryEngine(f"sqlite:///{tmp_path}/memory.db", embedder=hanging, preset=policies("ledger")) as engine:
        assert LATE in str(engine.persona("main", user="ana").memories.write(TEXT).degraded)
    assert waiting_threads()
