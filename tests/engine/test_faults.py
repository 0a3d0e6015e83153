"""What breaks outside the engine: servers, connections, processes, embedders, clocks."""

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from datetime import UTC, datetime

import pytest
from sqlalchemy import NullPool, create_engine, text

from memoranda import MemoryEngine
from memoranda.db.queries import store
from memoranda.errors import MemorandaError, StoreError, StoreUnavailable
from memoranda.testing import BrokenEmbedder, FrozenClock

KILL_OTHERS = text(
    "select count(pg_terminate_backend(pid)) from pg_stat_activity"
    " where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
)


def cut_connections(url):
    host = create_engine(url, poolclass=NullPool)
    with host.begin() as connection:
        return connection.scalar(KILL_OTHERS)


def contents(hits):
    return {hit.memory.content for hit in hits}


def test_a_server_that_comes_and_goes(own_postgres):
    with MemoryEngine(own_postgres.url(), embedder="none", pool_size=3, timeout=5) as engine:
        engine.setup()
        me = engine.persona("main")
        me.memories.write("Lisbon one")

        own_postgres.restart()
        me.memories.write("Lisbon two")
        own_postgres.restart()
        assert contents(me.recall("lisbon")) == {"Lisbon one", "Lisbon two"}

        own_postgres.stop()
        for verb in (lambda: me.recall("lisbon"), lambda: me.memories.write("Lisbon lost"), engine.setup):
            with pytest.raises(StoreUnavailable) as caught:
                verb()
            assert str(own_postgres.folder) not in str(caught.value)
            assert "lisbon" not in str(caught.value).lower()
        with pytest.raises(StoreUnavailable):
            MemoryEngine(own_postgres.url(), embedder="none").persona("main").recall("lisbon")

        own_postgres.start()
        me.memories.write("Lisbon three")
        assert contents(me.recall("lisbon")) == {"Lisbon one", "Lisbon two", "Lisbon three"}


async def test_a_server_that_comes_and_goes_under_a_running_loop(own_postgres):
    async with MemoryEngine(own_postgres.url(), embedder="none", pool_size=3, timeout=5) as engine:
        await engine.asetup()
        me = engine.persona("main")
        await me.memories.awrite("Lisbon one")
        own_postgres.restart()
        await me.memories.awrite("Lisbon two")
        own_postgres.stop()
        with pytest.raises(StoreUnavailable):
            await me.arecall("lisbon")
        own_postgres.start()
        assert contents(await me.arecall("lisbon")) == {"Lisbon one", "Lisbon two"}


def test_where_all_connections_were_dropped_one_read_learns_it_for_all(postgres_url):
    with MemoryEngine(postgres_url, embedder="none", pool_size=3) as engine:
        me = engine.persona("main")
        me.memories.write("Lisbon one")
        together = threading.Barrier(3)
        readers = [
            threading.Thread(target=engine._database.read, args=(lambda conn, tables: together.wait(20),))
            for _ in range(3)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert cut_connections(postgres_url) >= 3
        assert contents(me.recall("lisbon")) == {"Lisbon one"}


def test_a_connection_that_is_closed_under_a_read_is_replaced(postgres_url):
    with MemoryEngine(postgres_url, embedder="none") as engine:
        engine.persona("main").memories.write("Lisbon one")
        tries = []

        def read(conn, tables):
            tries.append(conn)
            if len(tries) == 1:
                conn.connection.driver_connection.close()
            return store.settings(conn, tables)

        assert engine._database.read(read) and len(tries) == 2


def test_a_dropped_connection_is_replaced_before_anybody_notices(postgres_url, twin):
    engine = twin(MemoryEngine(postgres_url, embedder="none"))
    me = engine.persona("main")
    memory = me.memories.write("Lisbon 0")
    for n in range(1, 5):
        assert cut_connections(postgres_url) >= 1
        memory = me.memories.supersede(memory.id, f"Lisbon {n}")
        assert cut_connections(postgres_url) >= 1
        assert contents(me.recall("lisbon")) == {f"Lisbon {n}"}
    engine.close()


def test_connections_cut_in_the_middle_lose_no_acknowledged_write_and_double_none(postgres_url):
    engine = MemoryEngine(postgres_url, embedder="none", preset="journal", pool_size=4)
    me = engine.persona("main")
    acknowledged, failed, cuts, stop = [], [], [], threading.Event()
    me.memories.write("Lisbon before")

    def work(name):
        for n in range(40):
            try:
                acknowledged.append(me.memories.write(f"Lisbon {name} {n}").memory.content)
            except StoreUnavailable as error:
                failed.append((f"Lisbon {name} {n}", error))

    def cut():
        while not stop.is_set():
            cuts.append(cut_connections(postgres_url))
            time.sleep(0.03)

    cutter, workers = threading.Thread(target=cut), [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in (cutter, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    cutter.join()
    stored = [memory.content for memory in me.memories.list(limit=1000)]
    engine.close()

    assert sum(cuts) >= 1
    assert len(acknowledged) >= 40
    assert len(acknowledged) + len(failed) == 160
    acknowledged.append("Lisbon before")
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored))
    assert set(stored) <= set(acknowledged) | {content for content, _ in failed}


WRITER = """
import sys
from memoranda import MemoryEngine
me = MemoryEngine(sys.argv[1], embedder="hash/words").persona("main")
for n in range(1000):
    print(me.memories.write(f"Ledger entry entry{n} for the harbour").id, n, flush=True)
"""


def test_a_writer_that_is_killed_leaves_every_acknowledged_write(backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory dies with its process")
    after = 130
    writer = subprocess.Popen([sys.executable, "-c", WRITER, backend.url], stdout=subprocess.PIPE, text=True)
    assert writer.stdout
    acknowledged = [writer.stdout.readline().split() for _ in range(after)]
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read()
    acknowledged += [line.split() for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    assert writer.wait() == -signal.SIGKILL
    writer.stdout.close()

    with MemoryEngine(backend.url, embedder="hash/words") as engine:
        me = engine.persona("main")
        stored = {str(memory.id): memory.content for memory in me.memories.list(limit=1000)}
        assert after <= len(acknowledged) < 1000
        assert {i: f"Ledger entry entry{n} for the harbour" for i, n in acknowledged}.items() <= stored.items()
        assert len(stored) - len(acknowledged) in (0, 1)  # the one that was stored but not yet told
        assert me.stats().vectors == len(stored)
        for n in (0, after // 2, len(acknowledged) - 1):
            assert me.recall(f"entry{n}")[0].content == f"Ledger entry entry{n} for the harbour"
        assert me.memories.write("Ledger entry after the accident").created
        assert me.recall("accident")
    if backend.name == "sqlite-file":
        host = create_engine(backend.url, poolclass=NullPool)
        with host.begin() as connection:
            assert connection.scalar(text("pragma integrity_check")) == "ok"
            fts = "memoranda_memories_fts"
            connection.execute(text(f"insert into {fts}({fts}, rank) values ('integrity-check', 1)"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not applicable: this platform does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_of_a_fork_and_its_parent_go_on(backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory belongs to one process")
    with MemoryEngine(backend.url, embedder="hash/words") as engine:
        me = engine.persona("main")
        me.memories.write("Lisbon before the fork")
        me.recall("lisbon")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                me.memories.write("Lisbon from the child")
                if {"Lisbon before the fork", "Lisbon from the child"} <= contents(me.recall("lisbon")):
                    code = 0
            finally:
                os._exit(code)
        me.memories.write("Lisbon from the parent")
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        names = {"Lisbon before the fork", "Lisbon from the child", "Lisbon from the parent"}
        assert contents(me.recall("lisbon")) == names


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not applicable: this platform does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_that_is_made_amid_the_first_connection_goes_on(backend, monkeypatch):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory belongs to one process")
    with MemoryEngine(backend.url) as engine:
        engine.setup()
    connecting, alchemy = threading.Event(), create_engine(backend.url)
    get_to_know = alchemy.dialect.initialize

    def take_long(connection):
        connecting.set()
        time.sleep(0.2)
        get_to_know(connection)

    monkeypatch.setattr(alchemy.dialect, "initialize", take_long)
    with MemoryEngine(alchemy) as engine:
        first = threading.Thread(target=engine.persona("main").memories.list)
        first.start()
        assert connecting.wait(20)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            code = 1
            try:
                code = 0 if engine.persona("main").memories.write("The child counts the gulls.").created else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        first.join()
    alchemy.dispose()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not applicable: this platform does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_goes_on_though_others_were_at_work_when_it_was_forked(backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory belongs to one process")
    with MemoryEngine(backend.url, embedder="hash/words") as engine:
        me, done = engine.persona("main"), threading.Event()

        def work(number):
            while not done.is_set():
                me.memories.write(f"Thread {number} counts the boats.")
                me.memories.list(limit=1)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for worker in workers:
            worker.start()
        codes = []
        for number in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                code = 1
                try:
                    code = 0 if me.memories.write(f"Child {number} counts the gulls.").created else 2
                finally:
                    os._exit(code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()
        for worker in workers:
            worker.join()
        assert codes == [0] * 10


def test_a_broken_embedder_degrades_in_words(make_engine):
    embedder = BrokenEmbedder(RuntimeError("token sk-secret refused for text Lisbon"))
    me = make_engine(embedder=embedder).persona("main")

    answers = [me.memories.write("Lisbon one"), *me.memories.write_many(["Lisbon two", "Porto"])]
    answers.append(me.memories.supersede(answers[2].id, "Lisbon three"))
    recall = me.recall("lisbon")

    assert embedder.calls >= 4
    assert contents(recall) == {"Lisbon one", "Lisbon two", "Lisbon three"}
    assert all(answer.degraded for answer in answers)
    for sentence in (recall.degraded, *(answer.degraded for answer in answers)):
        assert "RuntimeError" in sentence
        assert "sk-secret" not in sentence
        assert "Lisbon" not in sentence
    assert me.memories.nearest("lisbon") is not None


class Wrong:
    name, dimensions = "test/wrong", 2

    def __init__(self, answer):
        self.answer = answer

    def embed(self, texts, purpose):
        return self.answer(texts)

    async def aembed(self, texts, purpose):
        return self.answer(texts)


@pytest.mark.parametrize(
    "answer",
    [lambda texts: [], lambda texts: [[float("nan"), 1.0]] * len(texts), lambda texts: [[1e308, 1.0]] * len(texts)],
    ids=["too few", "not a number", "infinite"],
)
def test_an_embedder_that_answers_nonsense_degrades_in_words(make_engine, answer):
    me = make_engine(embedder=Wrong(answer)).persona("main")
    assert me.memories.write("Lisbon").degraded
    assert contents(me.recall("lisbon")) == {"Lisbon"}
    assert me.stats().vectors == 0


def test_a_text_without_direction_is_like_nothing(make_engine):
    me = make_engine(embedder=Wrong(lambda texts: [[0.0, 0.0]] * len(texts))).persona("main")
    me.memories.write("Lisbon")
    assert contents(me.recall("lisbon")) == {"Lisbon"}
    assert me.recall("porto").abstained


def test_a_clock_that_goes_backwards_breaks_nothing(make_engine):
    clock = FrozenClock(datetime(2026, 6, 1, tzinfo=UTC))
    for preset in ("standard", "journal", "ledger"):
        me = make_engine(preset=preset, clock=clock, embedder="none").persona(preset, user="ana")
        first = me.memories.write("Ana lives in Lisbon")
        clock.advance(days=-400)
        second = me.memories.supersede(first.id, "Ana lives in Berlin")
        assert second.superseded.valid_to is not None
        hits = me.recall("where does Ana live")
        assert contents(hits) == {"Ana lives in Berlin"}
        assert all(hit.score > 0 for hit in hits)
        me.memories.delete(second.id)
        assert me.recall("where does Ana live").abstained
        assert len(me.memories.history(second.id)) == 2


RULES = {
    "constraint": ["alter table memoranda.memories add constraint hosts check (content not like '%{word}%')"],
    "trigger": [
        "create function memoranda.refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'refused: %', new.content; end $$",
        "create trigger refuse before insert on memoranda.memories for each row"
        " when (new.content like '%{word}%') execute function memoranda.refuse()",
    ],
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_the_traceback_of_a_refused_write_shows_no_text(blank_postgres_url, rule, many):
    word = f"abracadabra{2**70}"  # counted, so that no line of this file that a traceback shows has it either
    with MemoryEngine(blank_postgres_url, embedder="hash/words") as engine:
        engine.setup()
        host = create_engine(blank_postgres_url, poolclass=NullPool)
        with host.begin() as connection:
            for statement in RULES[rule]:
                connection.execute(text(statement.replace("{word}", word)))
        me = engine.persona("main")
        with pytest.raises(StoreError) as caught:
            if many:
                me.memories.write_many(["Harmless", f"It opens with {word}"])
            else:
                me.memories.write(f"It opens with {word}")
        shown = "".join(traceback.format_exception(caught.value))
        assert me.memories.list() == []
    assert "StoreError" in shown
    assert word not in shown


def test_errors_carry_no_text_of_a_memory(make_engine):
    me = make_engine().persona("main")
    secret = "the vault opens with ABRACADABRA"
    caught = []
    for verb in (
        lambda: me.memories.write(secret, importance=99),
        lambda: me.memories.write(secret, category=secret * 20),
        lambda: me.memories.write(secret, metadata={"x": object()}),
        lambda: me.memories.write_many([secret, {"content": secret, "typo": secret}]),
        lambda: me.memories.supersede("aaaaaaaa", secret),
        lambda: me.recall(secret, date=secret),
    ):
        with pytest.raises(MemorandaError) as error:
            verb()
        caught.append(str(error.value))
    assert not [message for message in caught if "ABRACADABRA" in message]
