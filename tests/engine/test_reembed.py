"""A store moves from one embedder to another while it is in use, however often the move is interrupted."""

import pytest

from memoranda import MemoryEngine
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import ConfigurationError, EmbedderMismatch, EmbedderUnavailable
from memoranda.testing import CountingEmbedder, DeferredEmbedder

THINGS = ("printer", "kettle", "safe", "sofa")
TEXTS = [f"The {THINGS[number % 4]} stands in room {number}." for number in range(32)]


class Renamed:
    """Hashed words under another name and folded to another size."""

    name, dimensions, distinguishes_purpose = "test/other", 128, False

    def embed(self, texts, purpose):
        return HashWords().embed(texts).reshape(len(texts), 128, 4).sum(axis=2)

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


@pytest.fixture
def stored(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    engine = make_engine()
    engine.persona("main").memories.write_many(TEXTS)
    engine.persona("other", user="ana").memories.write("Somebody else's kettle.")
    return engine


def test_a_store_moves_and_old_vectors_stay_until_they_are_pruned(stored, make_engine):
    new = make_engine(embedder=Renamed())
    with pytest.raises(EmbedderMismatch):
        new.persona("main").recall("the kettle")

    told = []
    assert new.reembed(progress=lambda done, total: told.append((done, total))) == len(TEXTS) + 1
    assert told[-1] == (len(TEXTS) + 1, len(TEXTS) + 1)

    me = new.persona("main")
    assert (me.stats().vectors, me.stats().other_vectors, me.stats().embedder) == (len(TEXTS), 0, "test/other@128")
    assert "kettle" in me.recall("where does the kettle stand?")[0].memory.content
    assert stored.persona("main").recall("where does the kettle stand?")[0].legs["vector"] > 0
    assert new.reembed(prune=True) == 0
    with pytest.raises(EmbedderMismatch):
        make_engine(embedder="hash/words").persona("main").recall("the kettle")


@pytest.mark.behaviour("E07", "S22")
def test_a_move_that_is_interrupted_goes_on_where_it_was_while_recall_works(backend, stored, make_engine, monkeypatch):
    monkeypatch.setattr("memoranda.pipelines.reembedding.PAGE", 8)
    counting = CountingEmbedder(Renamed())
    failing = DeferredEmbedder(counting)
    for _ in range(3):
        failing.errors = []
        new = make_engine(embedder=failing)

        def interrupt(done, total):
            failing.errors = [EmbedderUnavailable("the service is down")]

        with pytest.raises(EmbedderUnavailable):
            new.reembed(progress=interrupt)
        reader = make_engine(embedder=None)
        assert "sofa" in reader.persona("main").recall("where is the sofa?")[0].memory.content
        assert reader.persona("main").stats().embedder == "hash/words@512"

    failing.errors = []
    new = make_engine(embedder=failing)
    new.reembed()
    assert sorted(counting.texts) == sorted([*TEXTS, "Somebody else's kettle."])  # none was embedded twice
    assert new.persona("main").stats().vectors == len(TEXTS)


def test_what_is_written_during_the_move_is_moved_too(stored, make_engine):
    new = make_engine(embedder=Renamed())
    written: list[object] = []

    def write_meanwhile(done, total):
        if len(written) < 3:
            written.append(stored.handle.persona("main").memories.write(f"A lamp came into room {len(written) + 90}."))

    new.reembed(progress=write_meanwhile)
    assert written
    assert new.persona("main").stats().vectors == len(TEXTS) + len(written)


def test_a_move_needs_an_embedder_that_was_named(stored, backend):
    with MemoryEngine(backend.url) as engine, pytest.raises(ConfigurationError, match="embedder"):
        engine.reembed()


def test_a_move_keeps_the_language_of_the_words(stored, make_engine):
    german = make_engine(embedder=Renamed(), language="german")
    with pytest.raises(ConfigurationError, match="english"):
        german.reembed()
    with pytest.raises(ConfigurationError, match="english"):
        german.persona("main").memories.write("Die Häuser")
    assert stored.persona("main").stats().embedder == "hash/words@512"


def test_a_move_of_an_empty_store_settles_its_language_too(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    make_engine(embedder=Renamed()).reembed()
    with pytest.raises(ConfigurationError, match="english"):
        make_engine(embedder=Renamed(), language="german").persona("main").memories.write("Die Häuser")
