"""Inputs that broke other memory systems in the hands of their users; the numbers are those of the project's survey."""

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text

from memoranda import MemoryEngine
from memoranda.testing import unwrap

EVERY_EMBEDDER = pytest.mark.parametrize("embedder", ["hash/words", "none"])


# -- 10: the newest fact answers, without anybody having said that the old one is over


@EVERY_EMBEDDER
def test_where_the_user_lives_now_stands_before_where_they_lived(make_engine, frozen_clock, embedder):
    me = make_engine(clock=frozen_clock, embedder=embedder).persona("main")
    old = me.memories.write("The user lives in Lisbon.")
    me.memories.write_many([f"The user ordered book number {n} and paid by card." for n in range(8)])
    frozen_clock.advance(days=40)
    new = me.memories.write("The user lives in Berlin.")
    order = [hit.memory.id for hit in me.recall("Where does the user live?", limit=10)]
    assert order[0] == new.id
    assert old.id not in order or order.index(old.id) > 0


@EVERY_EMBEDDER
def test_where_the_user_lives_after_a_correction_is_one_place(make_engine, frozen_clock, embedder):
    me = make_engine(clock=frozen_clock, embedder=embedder).persona("main")
    old = me.memories.write("The user lives in Lisbon.")
    frozen_clock.advance(days=40)
    new = me.memories.supersede(old.id, "The user lives in Berlin.")
    assert [hit.memory.id for hit in me.recall("Where does the user live?")] == [new.id]
    assert "Lisbon" not in str(me.recall("Does the user live in Lisbon?"))


# -- 12: a wrong fact is corrected in one call and never outranks what is right


@EVERY_EMBEDDER
def test_a_corrected_fact_never_outranks_its_correction(make_engine, frozen_clock, embedder):
    me = make_engine(clock=frozen_clock, embedder=embedder).persona("main")
    questions = ("What port does the staging server listen on?", "port 8080", "staging server port", "listen")
    wrong = me.memories.write(
        "The staging server listens on port 8080, port 8080 it is: staging, port 8080.", importance=10, confidence=10
    )
    me.memories.write_many([f"The staging server was rebooted, round {n}." for n in range(10)])
    frozen_clock.advance(days=1)
    right = me.memories.supersede(wrong.id, "The staging server listens on port 9090.", importance=1)
    for question in questions:
        shown = [hit.memory.id for hit in me.recall(question, limit=50)]
        assert wrong.id not in shown
    for question in (questions[0], questions[2]):
        assert me.recall(question, limit=50)[0].memory.id == right.id


# -- 14: what is deleted in one scope is deleted there only


def picture(persona):
    rows = persona.memories.list(limit=1000, include_inactive=True)
    found = persona.recall("the parcel arrived", limit=100, include_inactive=True)
    return (
        rows,
        [persona.memories.get(row.id) for row in rows],
        [persona.memories.history(row.id) for row in rows],
        [(hit.memory, hit.score, hit.confidence, hit.reasons) for hit in (*found.hits, *found.nearest)],
        persona.stats(),
        persona.projects.members("apollo"),
    )


@pytest.mark.behaviour("W21", "W34")
def test_deleting_everything_in_one_scope_changes_nothing_in_any_other(make_engine, frozen_clock):
    engine = make_engine(clock=frozen_clock)
    scopes = {
        "target": engine.persona("main", tenant="acme", user="ana"),
        "other user": engine.persona("main", tenant="acme", user="bob"),
        "no user": engine.persona("main", tenant="acme"),
        "other persona": engine.persona("main2", tenant="acme", user="ana"),
        "other tenant": engine.persona("main", tenant="acme2", user="ana"),
        "own tenant": engine.persona("main", user="ana"),
        "nobody": engine.persona("main"),
    }
    for persona in scopes.values():
        persona.projects.add_member("apollo", persona.scope.user or "ana")
        for number in range(2):
            audience = "project" if persona.scope.user and number == 1 else "private"
            persona.memories.write(f"The parcel arrived, number {number}.", project="apollo", audience=audience)
        old = persona.memories.write("The parcel is late.")
        persona.memories.supersede(old.id, "The parcel arrived after all.")
    target = scopes.pop("target")
    bob = scopes["other user"]
    mine = [row.id for row in target.memories.list(limit=1000) if row.author == "ana"]
    shared_with_bob = {row.id for row in bob.memories.list() if row.author == "ana"}
    assert len(mine) == 3 and len(shared_with_bob) == 1
    del scopes["other user"]  # he loses the row that was shared with him, and nothing else: see below
    before = {name: picture(persona) for name, persona in scopes.items()}
    bobs_before = [row for row in bob.memories.list(include_inactive=True) if row.author == "bob"]

    for id in mine:
        target.memories.delete(id)
    assert [row for row in target.memories.list() if row.author == "ana"] == []
    assert {name: picture(persona) for name, persona in scopes.items()} == before
    assert [row for row in bob.memories.list(include_inactive=True) if row.author == "bob"] == bobs_before
    assert not shared_with_bob & {row.id for row in bob.memories.list()}


# -- 20: many adds at once, and a reader while a writer is at work


def test_twenty_adds_at_once_are_all_kept(make_engine, mode):
    memories = unwrap(make_engine().persona("main").memories)
    texts = [f"Parallel add number {n}." for n in range(20)]
    if mode == "sync":
        with ThreadPoolExecutor(20) as pool:
            written = list(pool.map(memories.write, texts))
    else:

        async def all_at_once():
            return await asyncio.gather(*(memories.awrite(text) for text in texts))

        written = asyncio.run(all_at_once())
    assert [w.memory.content for w in written] == texts and all(w.created for w in written)
    assert {memory.content for memory in memories.list()} == set(texts)


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
def test_a_reader_does_not_wait_for_a_writer(make_engine, backend):
    me = make_engine(timeout=5).persona("main")
    written = me.memories.write("Seen before the write.")
    with writing(backend):  # another process is in the middle of a transaction
        assert [hit.memory.id for hit in me.recall("seen before the write")] == [written.id]
        assert [memory.content for memory in me.memories.list()] == ["Seen before the write."]
        assert me.memories.get(written.id).memory == written.memory
    assert me.memories.write("Written afterwards.").created


@pytest.mark.parametrize("backend", ["sqlite-file"], indirect=True)
def test_a_writer_waits_for_another_and_both_are_kept(make_engine, backend):
    me = make_engine(timeout=20).persona("main")
    me.memories.write("First.")
    holding, done = threading.Event(), threading.Event()

    def hold():
        with writing(backend):
            holding.set()
            done.wait(0.4)

    other = threading.Thread(target=hold)
    other.start()
    holding.wait()
    assert me.memories.write("Second.").created
    other.join()
    assert me.stats().memories == 2


@pytest.mark.parametrize("backend", ["sqlite-file"], indirect=True)
def test_a_writer_that_waits_too_long_is_told_so_and_may_try_again(make_engine, backend):
    from memoranda.errors import StoreBusy

    me = make_engine(timeout=0.2).persona("main")
    me.memories.write("First.")
    with writing(backend):
        with pytest.raises(StoreBusy):
            me.memories.write("Second.")
        assert me.stats().memories == 1
    assert me.memories.write("Second.").created


class writing:
    """Hold a write transaction open on a connection of one's own, and roll it back."""

    def __init__(self, backend):
        self.engine = create_engine(backend.url, poolclass=NullPool)
        self.table = "memoranda.memories" if backend.is_postgres else "memoranda_memories"

    def __enter__(self):
        self.connection = self.engine.connect()
        driver: Any = self.connection.connection.dbapi_connection
        if isinstance(driver, sqlite3.Connection):
            driver.isolation_level = None
            driver.execute("BEGIN IMMEDIATE")
        self.connection.execute(text(f"UPDATE {self.table} SET content = 'Not committed.'"))

    def __exit__(self, *exc_info):
        driver: Any = self.connection.connection.dbapi_connection
        driver.rollback()
        self.connection.close()


# -- 21: the unique key is the database's


def test_eight_threads_with_the_same_fact_make_one_row(make_engine, mode):
    memories = unwrap(make_engine().persona("main").memories)
    if mode == "sync":
        barrier = threading.Barrier(8)

        def add(_):
            barrier.wait()
            return memories.write("The user is allergic to penicillin.")

        with ThreadPoolExecutor(8) as pool:
            written = list(pool.map(add, range(8)))
    else:

        async def all_at_once():
            return await asyncio.gather(*(memories.awrite("The user is allergic to penicillin.") for _ in range(8)))

        written = asyncio.run(all_at_once())
    assert len({w.id for w in written}) == 1
    assert sorted(w.created for w in written) == [False] * 7 + [True]
    assert len(memories.list()) == 1


# -- 23: nothing happens behind the user's back (that nothing reaches the network is a rule of the whole suite)


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
def test_nothing_is_written_outside_the_store(backend, twin, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(elsewhere))
    monkeypatch.chdir(elsewhere)
    others = set(threading.enumerate())  # what another test has begun is not this one's
    engine = twin(MemoryEngine(backend.url, embedder="hash/words"))
    me = engine.persona("main")
    old = me.memories.write("The shop opens at nine.")
    me.memories.supersede(old.id, "The shop opens at ten.")
    me.recall("when does the shop open")
    me.stats()
    engine.close()
    assert list(elsewhere.rglob("*")) == []
    mine = set(threading.enumerate()) - others
    assert [thread.name for thread in mine if thread.name.startswith("memoranda")] == []
