"""On SQLite rows are held in memory: whatever was written by whom, an answer is that of the file."""

import random
import sqlite3
import threading
from typing import Any

import pytest

from memoranda import MemoryEngine
from memoranda.db.dialects import sqlite_resident
from memoranda.db.dialects.sqlite import SqliteDialect
from memoranda.db.migrations.revisions.r0009_changes import KEPT
from memoranda.db.queries import store
from memoranda.db.resident import rows
from memoranda.embedders.hash_words import HashWords
from memoranda.policies import FloorPolicy
from memoranda.testing import DeferredEmbedder

OPEN = FloorPolicy(enabled=False)
WHO, DID, WHAT = ("Ana", "Bruno", "Carla"), ("sold", "painted", "lost", "found"), ("kettle", "boat", "bicycle", "hat")
WHERE = ("Lisbon", "Porto", "Faro")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'm.db'}"


def sentence(rnd):
    who, did, what, where = map(rnd.choice, (WHO, DID, WHAT, WHERE))
    return f"{who} {did} a {what} in {where}, {rnd.random()}."


def asked(engine, **scope):
    """Return what a few questions find, with what decides of the order."""
    me = engine.persona("main", user="ana").scoped(**scope)
    questions = ("Who sold a boat?", "kettle Porto", "What did Carla lose in Faro?")
    found = [me.recall(question, limit=8, floor=OPEN) for question in questions]
    found.append(me.recall("hat", limit=3, floor=OPEN, categories="things"))
    return [[(hit.id, hit.content, round(hit.score, 5), round(hit.confidence, 5)) for hit in hits] for hits in found]


def changed(rnd, me):
    """Do one of the things that may happen to a memory."""
    one = rnd.choice(me.memories.list(limit=100)).id
    act = rnd.choice(["keep", "supersede", "undo", "delete", "mark", "write"])
    if act == "keep":
        me.memories.keep(sentence(rnd), id=one, about="everyone")
    elif act == "supersede":
        me.memories.supersede(one, sentence(rnd))
    elif act == "undo":
        me.memories.supersede(one, sentence(rnd))
        me.memories.undo(one)
    elif act == "delete":
        me.memories.delete(one)
    elif act == "mark":
        me.memories.mark(one, "expired")
    else:
        session = {"session": rnd.choice(["walk", "talk"]), "position": rnd.randrange(20)} if rnd.random() < 0.7 else {}
        category = {"category": "things"} if rnd.random() < 0.3 else {}
        me.memories.write_many([{"content": sentence(rnd), **session, **category} for _ in range(rnd.randint(1, 4))])


@pytest.mark.parametrize("seed", [1, 2])
def test_what_others_change_is_answered_as_by_who_opens_the_file(url, seed):
    rnd = random.Random(seed)
    with MemoryEngine(url, embedder="hash/words") as one, MemoryEngine(url, embedder="hash/words") as two:
        for engine in (one, two):
            engine.persona("main", user="ana").memories.write_many([sentence(rnd) for _ in range(12)])
        for _ in range(8):
            here = rnd.choice((one, two)).persona("main", user=rnd.choice(("ana", "ana", "bruno")))
            here = here.scoped(space=rnd.choice((None, None, "work")))
            if not here.memories.list(limit=1):
                here.memories.write(sentence(rnd))
            changed(rnd, here)
            assert asked(one) == asked(two)
            assert asked(one, space="work") == asked(two, space="work")
        with MemoryEngine(url, embedder="hash/words") as anew:
            assert asked(one) == asked(anew) and asked(one, space="work") == asked(anew, space="work")


def test_candidates_are_those_that_the_file_proposes(url, monkeypatch):
    rnd = random.Random(3)
    with MemoryEngine(url, embedder="hash/words") as engine:
        me = engine.persona("main", user="ana")
        turns = [{"content": sentence(rnd), "session": "walk", "position": n} for n in range(60)]
        me.memories.write_many(turns + [{"content": sentence(rnd), "category": "things"} for _ in range(60)])
        me.scoped(space="work").memories.write_many([sentence(rnd) for _ in range(60)])
        held = asked(engine), asked(engine, space="work")
        monkeypatch.setattr(SqliteDialect, "resident", lambda *_: None)
        assert (asked(engine), asked(engine, space="work")) == held


def test_a_vector_that_comes_later_counts_from_then_on(url):
    later = DeferredEmbedder(HashWords())
    with (
        MemoryEngine(url, embedder=later, background="external") as asks,
        MemoryEngine(url, embedder=later, background="inline") as works,
    ):
        me = asks.persona("main")
        me.memories.write("The kettle is blue.")
        assert me.recall("Which kettle is blue?", floor=OPEN)[0].legs["vector"] == 0
        works.persona("main").memories.write("The tram is late.")
        assert me.stats().vectors == 2
        assert me.recall("Which kettle is blue?", floor=OPEN)[0].legs["vector"] > 0


def test_what_was_erased_is_gone_for_an_engine_that_held_it(url):
    with MemoryEngine(url, embedder="hash/words") as one, MemoryEngine(url, embedder="hash/words") as two:
        me = one.persona("main", user="ana")
        me.memories.write_many(["The kettle is blue.", "The tram leaves at ten."])
        assert me.recall("Which kettle is blue?")
        two.erase(user="ana")
        assert not me.recall("Which kettle is blue?").nearest
        me.memories.write("The kettle is green.")  # under the number of one that is gone
        assert [hit.content for hit in me.recall("Which kettle is green?")] == ["The kettle is green."]


def test_after_more_changes_than_are_kept_everything_is_read_anew(url, tmp_path):
    with MemoryEngine(url, embedder="hash/words") as one, MemoryEngine(url, embedder="hash/words") as two:
        me = one.persona("main")
        kettle = me.memories.write("The kettle is blue.")
        assert me.recall("kettle")
        two.persona("main").memories.delete(kettle.id)
        with sqlite3.connect(tmp_path / "m.db") as file:
            count = (
                "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) SELECT 'none', 0 FROM c"
            )
            file.execute(f"INSERT INTO memoranda_changes(source, number) {count}", (KEPT + 5,))
        file.close()
        two.persona("main").memories.keep(
            "The tram is late.", id=me.memories.write("The tram is slow.").id, about="everyone"
        )
        assert me.recall("kettle").abstained
        assert [hit.content for hit in me.recall("tram")] == ["The tram is late."]
        with sqlite3.connect(tmp_path / "m.db") as file:
            (kept,) = file.execute("SELECT count(*) FROM memoranda_changes").fetchone()
        file.close()
        assert kept == KEPT


def test_no_more_is_held_than_fits(url, monkeypatch):
    monkeypatch.setattr(sqlite_resident, "BYTES_LIMIT", 100_000)
    with MemoryEngine(url, embedder="hash/words") as engine:
        people = [engine.persona("main", user=f"user {n}") for n in range(6)]
        for n, me in enumerate(people):
            me.memories.write_many([f"The {thing} number {n} is blue." for thing in WHAT])
        for _ in range(2):
            for n, me in enumerate(people):
                assert me.recall("Which kettle is blue?", limit=1)[0].content == f"The kettle number {n} is blue."


def test_many_ask_while_others_write(url):
    with MemoryEngine(url, embedder="hash/words") as one, MemoryEngine(url, embedder="hash/words") as two:
        one.persona("main").memories.write("The kettle is blue.")
        failed = []

        def write(engine, mine):
            for n in range(15):
                engine.persona("main").memories.write(f"The {mine} has the number {n}.")

        def ask(engine):
            try:
                for _ in range(15):
                    assert engine.persona("main").recall("Which kettle is blue?")
            except BaseException as error:
                failed.append(error)

        work: list[tuple[Any, tuple[Any, ...]]]
        work = [(write, (one, "boat")), (write, (two, "hat")), (ask, (one,)), (ask, (two,)), (ask, (one,))]
        threads = [threading.Thread(target=call, args=arguments) for call, arguments in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        for engine in (one, two):
            for mine in ("boat", "hat"):
                found = engine.persona("main").recall(f"The {mine} has the number", limit=50, floor=OPEN)
                assert len([hit for hit in found if mine in hit.content]) == 15


@pytest.mark.parametrize("preset", ["standard", "journal", "ledger", "statements"])
def test_every_ranker_judges_as_it_does_by_the_file(url, monkeypatch, preset):
    rnd = random.Random(4)
    with MemoryEngine(url, embedder="hash/words", preset=preset) as engine:
        me = engine.persona("main", user="ana")
        me.memories.write_many([{"content": sentence(rnd), "about": "everyone"} for _ in range(80)])

        def judged():
            answers = [me.recall(question) for question in ("Who sold a boat?", "kettle Porto", "Carla Faro hat")]
            hits = [[*answer, *answer.nearest] for answer in answers]
            return [
                [(hit.id, pytest.approx(hit.score, abs=1e-3), hit.confidence, hit.reasons) for hit in found]
                for found in hits
            ]

        held = judged()
        monkeypatch.setattr(SqliteDialect, "resident", lambda *_: None)
        assert any(held) and judged() == held


def test_a_floor_is_measured_as_it_is_by_the_file(url, monkeypatch):
    rnd = random.Random(5)
    with MemoryEngine(url, embedder="hash/words") as engine:
        engine.persona("main").memories.write_many([sentence(rnd) for _ in range(150)])
        held = engine.calibrate()
        monkeypatch.setattr(SqliteDialect, "resident", lambda *_: None)
        by_file = engine.calibrate()
        assert (held.floor, held.auroc, held.absent_answered) == (by_file.floor, by_file.auroc, by_file.absent_answered)
        assert held.auroc < 1


def test_a_fact_that_is_replaced_meanwhile_is_found_in_the_form_of_the_moment(url, monkeypatch):
    begun, go, look = threading.Event(), threading.Event(), store.standing
    found: list[Any] = []

    def pausing(*asked):
        told = look(*asked)  # from here on the transaction sees the file as it is now
        if threading.current_thread().name == "old":
            begun.set()
            assert go.wait(20)
        return told

    monkeypatch.setattr(store, "standing", pausing)
    with MemoryEngine(url, embedder="hash/words") as engine:
        me = engine.persona("main")
        kettle = me.memories.write("The kettle is blue.")
        me.recall("kettle")
        old = threading.Thread(target=lambda: found.extend(me.recall("Which kettle?", floor=OPEN)), name="old")
        old.start()
        assert begun.wait(20)
        me.memories.supersede(kettle.id, "The kettle is green.")
        assert [hit.content for hit in me.recall("Which kettle?", floor=OPEN)] == ["The kettle is green."]
        go.set()
        old.join()
    assert [hit.id for hit in found] == [kettle.id]


def test_what_is_half_read_is_begun_anew(url, monkeypatch):
    with MemoryEngine(url, embedder="hash/words") as engine:
        me = engine.persona("main")
        me.memories.write("The kettle is blue.")
        assert me.recall("kettle")
        me.memories.write_many(["The tram is late.", "The boat is red."])
        with monkeypatch.context() as broken:
            broken.setattr(rows, "unit", lambda vectors: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                me.recall("tram")
        for thing in ("kettle", "tram", "boat"):
            assert thing in me.recall(f"Where is the {thing}?", limit=1)[0].content


def test_a_vector_of_another_length_is_none(url, tmp_path):
    with MemoryEngine(url, embedder="hash/words") as engine:
        me = engine.persona("main")
        me.memories.write("The kettle is blue.")
        assert me.recall("kettle")
        me.memories.write("The tram is late.")
        with sqlite3.connect(tmp_path / "m.db") as file:
            file.execute("UPDATE memoranda_vectors SET vector = x'0000803f' WHERE n = 2")
        file.close()
        assert me.recall("Is the tram late?")[0].content == "The tram is late."


def test_a_file_that_was_put_back_from_a_copy_is_read_anew(url, tmp_path):
    with MemoryEngine(url, embedder="hash/words") as engine:
        me = engine.persona("main")
        kettle = me.memories.write("The kettle is blue.")
        engine.backup(tmp_path / "copy.db")
        me.memories.supersede(kettle.id, "The kettle is green.")
        assert me.recall("Which kettle?", floor=OPEN)[0].content == "The kettle is green."
        with sqlite3.connect(tmp_path / "copy.db") as copy, sqlite3.connect(tmp_path / "m.db") as file:
            copy.backup(file)
        copy.close()
        file.close()
        assert me.recall("Which kettle?", floor=OPEN)[0].content == "The kettle is blue."
        me.memories.supersede(me.memories.write("The tram is slow.").id, "The tram is late.")
        assert {hit.content for hit in me.recall("kettle tram", floor=OPEN)} == {
            "The kettle is blue.",
            "The tram is late.",
        }


def test_nobody_waits_for_who_reads_for_long(url, monkeypatch):
    begun, go, add = threading.Event(), threading.Event(), rows.GrowingRows.add

    def long(held, fresh):
        begun.set()
        assert go.wait(20)
        add(held, fresh)

    with MemoryEngine(url, embedder="hash/words", pool_size=2, timeout=5) as engine:
        me = engine.persona("main")
        me.memories.write("The kettle is blue.")
        monkeypatch.setattr(rows.GrowingRows, "add", long)
        first = threading.Thread(target=me.recall, args=("kettle",))
        first.start()
        assert begun.wait(20)
        for _ in range(3):
            assert me.recall("Which kettle is blue?")
        go.set()
        first.join()
