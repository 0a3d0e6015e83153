"""A store moves from one embedder to another while it is in use, however often the move is interrupted."""

import os
import signal
import traceback

import pytest

from memoranda import MemoryEngine
from memoranda.errors import ConfigurationError, EmbedderMismatch, EmbedderUnavailable
from memoranda.testing import CountingEmbedder, DeferredEmbedder, HashedEmbedder

DOWN = EmbedderUnavailable("the service is down")

THINGS = ("printer", "kettle", "safe", "sofa")
TEXTS = [f"The {THINGS[number % 4]} stands in room {number}." for number in range(32)]


def other():
    """Return an embedder of another size than the store's."""
    return HashedEmbedder(128, name="test/other")


@pytest.fixture
def stored(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    engine = make_engine()
    engine.persona("main").memories.write_many(TEXTS)
    engine.persona("other", user="ana").memories.write("Somebody else's kettle.")
    return engine


def test_a_store_moves_and_old_vectors_stay_until_they_are_pruned(stored, make_engine):
    new = make_engine(embedder=other())
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
    counting = CountingEmbedder(other())
    failing = DeferredEmbedder(counting)
    for _ in range(3):
        failing.errors = []
        new = make_engine(embedder=failing)

        def interrupt(done, total):
            failing.errors = [DOWN]

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


@pytest.mark.behaviour("S22")
def test_vectors_that_were_missing_are_made_though_it_is_interrupted(make_engine, monkeypatch):
    monkeypatch.setattr("memoranda.pipelines.reembedding.PAGE", 8)
    counting = CountingEmbedder(other())
    failing = DeferredEmbedder(counting)
    engine = make_engine(embedder=failing, background="external")
    me = engine.persona("main")
    me.memories.write_many(TEXTS)

    for done in (8, 16, 24):
        with pytest.raises(EmbedderUnavailable):
            engine.reembed(progress=lambda done, total: failing.errors.append(DOWN))
        assert me.stats().vectors == done
        assert "sofa" in me.recall("where is the sofa?")[0].memory.content
    engine.reembed()
    assert me.stats().vectors == len(TEXTS)
    assert sorted(set(counting.texts) - {"where is the sofa?"}) == sorted(TEXTS)


def move_until_killed(url):
    """Move the store in a child, which is killed after its first page."""
    child = os.fork()
    if child == 0:
        try:
            with MemoryEngine(url, embedder=other(), background="off") as new:
                new.reembed(progress=lambda done, total: os.kill(os.getpid(), signal.SIGKILL))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


@pytest.mark.behaviour("E07", "S22")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_move_that_is_killed_three_times_ends_complete_and_every_recall_is_answered(
    backend, stored, make_engine, monkeypatch
):
    monkeypatch.setattr("memoranda.pipelines.reembedding.PAGE", 8)
    stored.close()
    for _ in range(3):
        child = move_until_killed(backend.url)  # before anything is open here, which would be shared
        reader, status = make_engine(), None
        while not status:
            found = reader.persona("main").recall("where is the sofa?")
            assert "sofa" in found[0].memory.content and not found.degraded
            ended, status = os.waitpid(child, os.WNOHANG)
        assert (ended, os.waitstatus_to_exitcode(status)) == (child, -signal.SIGKILL)
        reader.close()

    new = make_engine(embedder=other())
    left: list[int] = []
    new.reembed(progress=lambda done, total: left.append(total))
    assert left[0] == len(TEXTS) + 1 - 3 * 8  # each was stopped after a page, which stayed
    assert new.persona("main").stats().vectors == len(TEXTS)
    assert "sofa" in new.persona("main").recall("where is the sofa?")[0].memory.content


def test_what_is_written_during_the_move_is_moved_too(stored, make_engine):
    new = make_engine(embedder=other())
    written: list[object] = []

    def write_meanwhile(done, total):
        if len(written) < 3:
            written.append(stored.handle.persona("main").memories.write(f"A lamp came into room {len(written) + 90}."))

    new.reembed(progress=write_meanwhile)
    assert written
    assert new.persona("main").stats().vectors == len(TEXTS) + len(written)


@pytest.mark.parametrize("prune", [False, True], ids=["kept", "pruned"])
def test_an_engine_that_is_still_open_says_that_the_store_has_moved(stored, make_engine, prune):
    comparing = stored.persona("main", preset="ledger", user="ana")
    comparing.memories.write("The lamp is new.")
    make_engine(embedder=other()).reembed(prune=prune)

    found = stored.persona("main").recall("where is the sofa?")
    assert "open it anew" in found.degraded and found.degraded.startswith("the store has moved")
    assert bool(found[0].legs.get("vector")) == (not prune) and "sofa" in found[0].memory.content
    assert "open it anew" in comparing.memories.write("The lamp is old.").degraded
    assert not make_engine(embedder=other()).persona("main").recall("where is the sofa?").degraded


def test_a_move_needs_an_embedder_that_was_named(stored, backend):
    with MemoryEngine(backend.url) as engine, pytest.raises(ConfigurationError, match="embedder"):
        engine.reembed()


def test_a_move_keeps_the_language_of_the_words(stored, make_engine):
    german = make_engine(embedder=other(), language="german")
    with pytest.raises(ConfigurationError, match="english"):
        german.reembed()
    with pytest.raises(ConfigurationError, match="english"):
        german.persona("main").memories.write("Die Häuser")
    assert stored.persona("main").stats().embedder == "hash/words@512"


def test_a_move_of_an_empty_store_settles_its_language_too(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    make_engine(embedder=other()).reembed()
    with pytest.raises(ConfigurationError, match="english"):
        make_engine(embedder=other(), language="german").persona("main").memories.write("Die Häuser")
