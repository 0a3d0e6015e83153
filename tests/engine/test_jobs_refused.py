"""An embedder that refuses a text, or every call: what it would take is not lost, and it is not asked in vain."""

import logging

import pytest

from memoranda.db.queries import jobs
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import EmbedderRefused, EmbedderUnavailable, InvalidInput
from memoranda.pipelines import working
from memoranda.testing import DeferredEmbedder, HashedEmbedder

TEXTS = [f"Parcel {number} is on its way." for number in range(19)]
POISON = "The poison stands in the cellar."


class Choosy(DeferredEmbedder):
    """Refuses a batch of more texts than `most`, or with one of some words in it; `sent` is what it was asked for."""

    def __init__(self, embedder, *words, status=400, most=1_000):
        super().__init__(embedder)
        self.words, self.status, self.most = words, status, most
        self.sent = []

    def embed(self, texts, purpose):
        self.sent.append(list(texts))
        if len(texts) > self.most or any(word in text for word in self.words for text in texts):
            raise EmbedderRefused(f"refuses the request (HTTP {self.status})", status=self.status)
        return super().embed(texts, purpose)

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


@pytest.mark.behaviour("W07", "W08")
@pytest.mark.parametrize("status", [400, 413, 422])
def test_one_text_that_is_refused_costs_the_others_nothing(make_engine, status):
    embedder = Choosy(HashWords(), "poison", status=status)
    engine = make_engine(embedder=embedder, background="external")
    me = engine.persona("main")
    me.memories.write_many([*TEXTS[:7], POISON, *TEXTS[7:]])

    assert engine.drain() == 0
    [job] = engine.jobs()
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error == f"1 of 20 texts were refused: refuses the request (HTTP {status})"
    assert me.stats().vectors == 19 and len(embedder.sent) <= 11  # two for each time that 20 can be halved
    assert POISON not in job.error and me.recall("poison in the cellar")[0].memory.content == POISON

    embedder.words = ()
    assert engine.backfill() == 1  # the one row, and no other with it
    engine.drain()
    assert (engine.jobs(), me.stats().vectors) == ([], 20)


@pytest.mark.parametrize("place", [0, 19])
def test_a_refused_text_is_found_wherever_it_stands(make_engine, place):
    engine = make_engine(embedder=Choosy(HashWords(), "poison"), background="external")
    me = engine.persona("main")
    me.memories.write_many([*TEXTS[:place], POISON, *TEXTS[place:]])

    engine.drain()
    assert me.stats().vectors == 19 and len(engine.jobs()) == 1


def test_a_service_that_takes_few_texts_at_a_time_gets_few(make_engine):
    embedder = Choosy(HashWords(), most=6, status=422)
    engine = make_engine(embedder=embedder, background="external")
    me = engine.persona("main")
    me.memories.write_many(TEXTS)

    engine.drain()
    assert (engine.jobs(), me.stats().vectors) == ([], 19)
    assert sorted(text for batch in embedder.sent if len(batch) <= 6 for text in batch) == sorted(TEXTS)


@pytest.mark.parametrize("status", [400, 401])
def test_an_embedder_that_refuses_every_call_is_not_asked_text_by_text(make_engine, status):
    embedder = Choosy(HashWords(), "", status=status)
    engine = make_engine(embedder=embedder, background="external")
    engine.persona("main").memories.write_many(TEXTS)

    engine.drain()
    [job] = engine.jobs()
    assert (job.status, job.error) == ("failed", f"refuses the request (HTTP {status})")
    assert len(embedder.sent) == 1 if status == 401 else len(embedder.sent) <= 7


@pytest.mark.behaviour("W07")
@pytest.mark.parametrize("background", ["external", "inline"])
def test_after_a_refused_key_no_other_job_is_tried_until_somebody_says_so(make_engine, background):
    embedder = Choosy(HashWords(), "", status=401)
    engine = make_engine(embedder=embedder, background=background)
    me = engine.persona("main")
    for text in TEXTS[:5]:
        me.memories.write(text)
    waiting = 4 if background == "inline" else engine.drain()

    states = [(job.status, job.attempts) for job in engine.jobs()]
    assert (waiting, states) == (4, [("failed", 1)] + [("waiting", 0)] * 4) and len(embedder.sent) == 1

    embedder.words = ()
    assert engine.retry_jobs() == 1
    assert engine.drain() == 0 and me.stats().vectors == 5


def test_a_thread_whose_service_refuses_every_call_looks_again_when_it_has_left_it_alone(make_engine):
    embedder = Choosy(HashWords(), "", status=401)
    engine = make_engine(embedder=embedder, background="external")
    me, background = engine.persona("main"), engine.handle._background
    for text in TEXTS[:3]:
        me.memories.write(text)
    engine.drain()

    assert set(background._worker.rests()) == {jobs.EMBED}
    assert 500 < background._runner.run(next_look(engine.handle)) <= 600
    background._worker.resting[jobs.EMBED] = 0.0  # long ago
    assert background._runner.run(next_look(engine.handle)) == 0


def next_look(engine):
    return working.next_look(engine._everything(), engine._background._worker)


# -- a store that moves


@pytest.mark.behaviour("E07")
def test_a_text_that_the_new_embedder_refuses_keeps_no_store_from_moving(backend, make_engine, caplog):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    caplog.set_level(logging.WARNING, "memoranda.jobs")
    make_engine().persona("main").memories.write_many([*TEXTS, POISON])
    embedder = Choosy(HashedEmbedder(64, name="test/other"), "poison")
    new = make_engine(embedder=embedder)

    assert new.reembed(prune=True) == 19
    me = new.persona("main")
    assert (me.stats().embedder, me.stats().vectors, me.stats().other_vectors) == ("test/other@64", 19, 0)
    [job] = new.jobs(kind="embed")
    assert (job.status, job.attempts) == ("failed", 1) and "HTTP 400" in job.error
    assert "the new embedder refused some texts, which are found by their words: 1" in caplog.text
    assert POISON not in caplog.text

    assert new.reembed() == 0 and len(new.jobs()) == 1  # the same again leaves no second job
    embedder.words = ()
    assert new.retry_jobs() == 1 and new.drain() == 0
    assert me.stats().vectors == 20


def test_a_move_that_the_embedder_refuses_altogether_changes_nothing(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    old = make_engine()
    old.persona("main").memories.write_many(TEXTS)
    new = make_engine(embedder=Choosy(HashedEmbedder(64, name="test/other"), ""))

    with pytest.raises(EmbedderUnavailable, match="HTTP 400"):
        new.reembed()
    assert old.persona("main").stats().embedder == "hash/words@512" and old.jobs() == []


# -- what is listed


def test_jobs_are_listed_by_kind(make_engine):
    engine = make_engine(embedder=DeferredEmbedder(HashWords()), background="external")
    engine.persona("main").memories.write(POISON)
    engine.handle._database.run(jobs.enqueue, jobs.NOBODY, jobs.SCRUB, {})

    assert [job.kind for job in engine.jobs()] == ["embed", "scrub"]
    assert [job.kind for job in engine.jobs(kind="scrub")] == ["scrub"]
    with pytest.raises(InvalidInput, match="kind must be one of"):
        engine.jobs(kind="unheard of")
