"""Whatever fails while a document is taken in, one whole version of it stands: the old one or the new one."""

import os
import traceback

import pytest
from sqlalchemy import delete, select

from memoranda import MemoryEngine
from memoranda.documents.chunking import normalise
from memoranda.effects import Embed, Runner, Transact
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import ConfigurationError
from memoranda.policies import ChunkingPolicy, JobPolicy, Policies
from memoranda.testing import BrokenEmbedder, DeferredEmbedder, HashedEmbedder, unwrap

SMALL = Policies(chunking=ChunkingPolicy(size=500, overlap=0))
DIED, FAILED = 7, 1


def text(count, what="pump"):
    """Return a text of so many small chunks."""
    return "\n\n".join(f"The {what} number {n} is painted green and stands in the cellar. " * 5 for n in range(count))


def said(me, source="pumps"):
    """Return the text of a document from its chunks, which lie in order without a gap."""
    chunks = me.knowledge.get(source)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    return "".join(chunk.content[chunk.overlap :] for chunk in chunks)


def vectors(engine):
    """Return how many chunks there are, how many vectors of chunks, and how many of these a chunk owns."""

    def read(conn, tables):
        v = tables.vectors
        owners = list(conn.scalars(select(v.c.owner).where(v.c.kind == "knowledge")))
        chunks = set(conn.scalars(select(tables.knowledge_chunks.c.id)))
        return len(chunks), len(owners), len(chunks & set(owners))

    return unwrap(engine)._database.read(read)


class TornEmbedder(HashedEmbedder):
    """Give vectors of another length than it declares, once it is torn."""

    torn = False

    def embed(self, texts, purpose):
        found = super().embed(texts, purpose)
        return [vector[:-1] for vector in found] if self.torn else found


# -- an embedder that fails


@pytest.mark.behaviour("K05", "R13")
def test_without_an_embedder_a_document_is_stored_and_found_by_words(make_engine):
    engine = make_engine(embedder="none", preset=SMALL)
    me = engine.persona("main")
    [answer] = me.knowledge.ingest("pumps", text=text(3))

    assert str(answer) == "Ingested pumps: 3 chunks (text only)"
    assert (answer.embedded, answer.degraded, said(me)) == (False, None, normalise(text(3)))
    assert vectors(engine) == (3, 0, 0)
    [first, *_] = me.recall("which pump is painted green?", kinds=["knowledge"])
    assert first.chunk.source == "pumps"


@pytest.mark.behaviour("K05", "R13")
def test_an_embedder_that_is_down_leaves_one_job_a_document(make_engine):
    broken = BrokenEmbedder(name=HashWords.name, dimensions=HashWords.dimensions)
    engine = make_engine(embedder=broken, background="external", preset=SMALL)
    me = engine.persona("main")
    answers = me.knowledge.ingest("pumps", text=text(4)) + me.knowledge.ingest("taps", text=text(2, "tap"))

    assert [answer.embedded for answer in answers] == [False, False]
    assert all("failed with ConnectionError" in answer.degraded for answer in answers)
    assert [job.kind for job in engine.jobs()] == ["embed", "embed"]
    assert me.recall("painted green", kinds=["knowledge"]).hits
    [again] = me.knowledge.ingest("pumps", text=text(4))
    assert (again.unchanged, again.embedded, len(engine.jobs())) == (True, False, 2)

    mended = make_engine(background="external", preset=SMALL)
    if unwrap(mended)._database.dialect.name == "sqlite" and not vectors(mended)[0]:
        return  # another store in memory
    assert mended.drain() == 0
    assert vectors(mended) == (6, 6, 6)
    assert mended.persona("main").knowledge.ingest("pumps", text=text(4))[0].embedded


@pytest.mark.behaviour("K05")
def test_a_deferred_embedder_makes_the_vectors_of_a_document_in_one_call(make_engine):
    embedder = DeferredEmbedder(HashWords(), [ConnectionError("the embedder is down")])
    policy = JobPolicy(delay_seconds=0)
    engine = make_engine(embedder=embedder, background="external", preset=SMALL, job_policy=policy)
    me = engine.persona("main")
    me.knowledge.ingest("pumps", text=text(5))
    assert (embedder.calls, vectors(engine)) == (0, (5, 0, 0))
    assert engine.drain() == 0
    assert (embedder.calls, vectors(engine)) == (2, (5, 5, 5))


@pytest.mark.behaviour("K05")
def test_a_document_that_was_replaced_or_removed_needs_no_old_vectors(make_engine):
    engine = make_engine(embedder=DeferredEmbedder(HashWords()), background="external", preset=SMALL)
    me = engine.persona("main")
    me.knowledge.ingest("pumps", text=text(5))
    me.knowledge.ingest("pumps", text=text(2, "tap"))
    me.knowledge.ingest("lamps", text=text(3, "lamp"))
    me.knowledge.delete("lamps")
    assert engine.drain() == 0
    assert vectors(engine) == (2, 2, 2)


@pytest.mark.behaviour("K05")
def test_backfill_makes_the_vectors_of_chunks_too(make_engine):
    engine = make_engine(embedder=DeferredEmbedder(HashWords(), [ConnectionError()]), background="off", preset=SMALL)
    me = engine.persona("main")
    assert not me.knowledge.ingest("pumps", text=text(3))[0].embedded
    assert (engine.backfill(), engine.drain()) == (3, 0)
    assert vectors(engine) == (3, 3, 3)


@pytest.mark.behaviour("K04")
def test_a_failure_half_way_leaves_the_old_chunks(make_engine):
    embedder = TornEmbedder(8)
    engine = make_engine(embedder=embedder, preset=SMALL)
    me = engine.persona("main")
    me.knowledge.ingest("pumps", text=text(10))
    before = me.knowledge.get("pumps")
    embedder.torn = True
    with pytest.raises(ConfigurationError, match="dimensions"):
        me.knowledge.ingest("pumps", text=text(3, "tap"))
    assert me.knowledge.get("pumps") == before
    assert vectors(engine) == (10, 10, 10)


# -- a process that dies


class Mortal(Runner):
    """Ends its process behind the embedding, or at the end of the transaction that stores a document."""

    death = ""

    def _perform(self, effect):
        match effect:
            case Transact(fn, args, write) if fn.__name__ == "replace" and self.death == "storing":
                effect = Transact(_deadly, (fn, *args), write)
        result = super()._perform(effect)
        if self.death == "embedding" and isinstance(effect, Embed):
            os._exit(DIED)
        return result


def _deadly(conn, tables, fn, *args):
    fn(conn, tables, *args)
    os._exit(DIED)


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request, tmp_path):
    """A store that outlives a process."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path}/memory.db"


def ingest_and_die(url, death):
    child = os.fork()
    if child == 0:
        try:
            engine = MemoryEngine(url, embedder="hash/words", background="off", preset=SMALL)
            engine._runner = mortal = Mortal(engine._database, engine._space)
            mortal.death = death
            engine.persona("main").knowledge.ingest("pumps", text=text(3, "tap"))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(FAILED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.behaviour("K04")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_dies_leaves_the_old_chunks(url):
    def opened():
        return MemoryEngine(url, embedder="hash/words", background="off", preset=SMALL)

    with opened() as engine:
        engine.persona("main").knowledge.ingest("pumps", text=text(10))
    for death in ("embedding", "storing"):
        assert ingest_and_die(url, death) == DIED
        with opened() as engine:
            assert said(engine.persona("main")) == normalise(text(10))
            assert vectors(engine) == (10, 10, 10)
    with opened() as engine:
        assert engine.persona("main").knowledge.ingest("pumps", text=text(3, "tap"))[0].replaced == 10
        assert vectors(engine) == (3, 3, 3)


# -- several at once


@pytest.mark.behaviour("K04")
def test_two_that_take_in_one_document_leave_one_whole_version(make_engine, at_once):
    engine = make_engine(preset=SMALL)
    me = engine.persona("main")
    me.memories.list()
    texts = [text(count, what) for count, what in ((2, "pump"), (5, "tap"), (7, "lamp"), (3, "bell"))]
    for _ in range(2):
        results = at_once([(Ingesting(me, "pumps", item), "ingest") for item in texts])
        assert [result for result in results if isinstance(result, Exception)] == []
        [document] = me.knowledge.list()
        assert said(me) in map(normalise, texts)
        assert document.chunks == len(me.knowledge.get("pumps"))
        assert vectors(engine) == (document.chunks,) * 3


@pytest.mark.behaviour("K04")
def test_taking_in_and_removing_at_once_leaves_all_or_nothing(make_engine, at_once):
    engine = make_engine(preset=SMALL)
    me = engine.persona("main")
    me.knowledge.ingest("pumps", text=text(4))
    results = at_once([(Ingesting(me, "pumps", text(3, "tap")), "ingest"), (me.knowledge, "delete", "pumps")] * 3)
    assert [result for result in results if isinstance(result, Exception)] == []
    assert said(me) in ("", normalise(text(3, "tap")))
    assert vectors(engine) == (len(me.knowledge.get("pumps")),) * 3


@pytest.mark.behaviour("K04")
def test_the_same_document_taken_in_at_once_is_one(make_engine, at_once):
    engine = make_engine(preset=SMALL)
    me = engine.persona("main")
    results = at_once([(Ingesting(me, "pumps", text(3)), "ingest")] * 4)
    assert sorted(answer.unchanged for [answer] in results) == [False, True, True, True]
    assert vectors(engine) == (3, 3, 3)


class Ingesting:
    """A call whose arguments have names, as `at_once` makes it."""

    def __init__(self, me, source, said):
        self.handle = self
        self._knowledge = unwrap(me).knowledge
        self._source, self._said = source, said

    def ingest(self):
        return self._knowledge.ingest(self._source, text=self._said)

    async def aingest(self):
        return await self._knowledge.aingest(self._source, text=self._said)


def test_a_doctor_counts_chunks_without_vectors_and_vectors_without_chunks(make_engine):
    engine = make_engine(embedder=DeferredEmbedder(HashWords(), [ConnectionError()]), background="off", preset=SMALL)
    me = engine.persona("main")
    me.knowledge.ingest("pumps", text=text(3))
    me.knowledge.ingest("taps", text=text(2, "tap"))
    me.memories.write("Tea is at four.")
    found = engine.doctor()
    assert (found.memories, found.chunks, found.vectors, found.without_vector) == (1, 5, 3, 3)
    assert "have no vector" in found.findings[0].message

    unwrap(engine)._database.run(lambda conn, tables: conn.execute(delete(tables.knowledge_chunks)))
    assert engine.doctor().ownerless_vectors == 2
