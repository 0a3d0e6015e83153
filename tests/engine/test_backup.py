"""A SQLite store is copied while it is in use; the copy is whole, and of one moment."""

import sqlite3
import threading
from contextlib import closing

import pytest
from sqlalchemy import create_engine

from memoranda import MemoryEngine
from memoranda.errors import ConfigurationError, InvalidInput, StoreError, StoreUnavailable


@pytest.fixture
def on_sqlite(backend):
    if backend.is_postgres:
        pytest.skip("not applicable: pg_dump copies a store on Postgres")


def contents(url):
    with MemoryEngine(url, embedder="hash/words") as engine:
        assert engine.doctor().healthy
        return sorted(memory.content for memory in engine.persona("main").memories.list(limit=1000))


@pytest.mark.usefixtures("on_sqlite")
def test_a_copy_is_a_store_of_its_own(engine, tmp_path):
    me = engine.persona("main")
    me.memories.write("Tea is at four.")

    assert engine.backup(tmp_path / "copy.db") == tmp_path / "copy.db"

    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob("*copy.db*")) == [tmp_path / "copy.db"]  # one file, no log beside it
    me.memories.write("Supper is at eight.")
    assert contents(f"sqlite:///{tmp_path / 'copy.db'}") == ["Tea is at four."]
    assert len(me.memories.list()) == 2


@pytest.mark.usefixtures("on_sqlite")
def test_a_file_that_is_there_is_never_replaced(engine, tmp_path):
    engine.persona("main").memories.write("Tea is at four.")
    (tmp_path / "copy.db").write_text("precious")

    with pytest.raises(InvalidInput, match=r"copy\.db is there already"):
        engine.backup(tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="no file can be made there"):
        engine.backup(tmp_path / "missing" / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"
    assert list(tmp_path.glob(".copy*")) == []


@pytest.mark.usefixtures("on_sqlite")
def test_progress_is_told_and_may_stop_it(engine, tmp_path):
    engine.persona("main").memories.write("Tea is at four.")
    told = []
    engine.backup(tmp_path / "copy.db", progress=lambda *at: told.append(at))

    assert told[-1][0] == told[-1][1] > 0

    def stop(done, total):
        raise StoreUnavailable("stopped")

    with pytest.raises(StoreUnavailable, match="stopped"):
        engine.backup(tmp_path / "other.db", progress=stop)
    assert [path.name for path in tmp_path.glob("*other*")] + [path.name for path in tmp_path.glob(".*other*")] == []


def test_a_copy_made_under_writers_is_of_one_moment(tmp_path):
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    stop, written = threading.Event(), []
    with MemoryEngine(url, embedder="hash/words") as engine, MemoryEngine(url, embedder="hash/words") as other:
        engine.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(300)])

        def work():
            n = 0
            while not stop.is_set() and n < 400:
                other.persona("main").memories.write_many([f"{half} of pair {n}." for half in ("One", "Two")])
                written.append(n)
                n += 1

        writer = threading.Thread(target=work)
        writer.start()
        while len(written) < 2:
            pass
        for number in range(3):
            engine.backup(tmp_path / f"copy{number}.db")
        stop.set()
        writer.join()

    sizes = []
    for number in range(3):
        found = contents(f"sqlite:///{tmp_path / f'copy{number}.db'}")
        pairs = [text.split()[-1] for text in found if " of pair " in text]
        assert len(found) - len(pairs) == 300
        assert sorted(pairs) == sorted(2 * list(dict.fromkeys(pairs)))  # both halves of each
        sizes.append(len(pairs))
    assert sizes == sorted(sizes)
    assert sizes[0] >= 4


def test_the_file_of_a_host_is_copied_with_its_own_tables(tmp_path, twin):
    host = create_engine(f"sqlite:///{tmp_path / 'host.db'}")
    with host.begin() as connection:
        connection.exec_driver_sql("create table own (x)")
        connection.exec_driver_sql("insert into own values (7)")
    engine = twin(MemoryEngine(host, embedder="hash/words"))
    engine.persona("main").memories.write("Tea is at four.")

    engine.backup(tmp_path / "copy.db")

    engine.close()
    host.dispose()
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("select x from own").fetchall() == [(7,)]
        assert copy.execute("select count(*) from memoranda_memories").fetchone() == (1,)


def test_a_damaged_store_makes_no_copy(tmp_path, twin):
    path = tmp_path / "memory.db"
    engine = twin(MemoryEngine(f"sqlite:///{path}", embedder="hash/words"))
    engine.persona("main").memories.write("Tea is at four.")
    engine.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("drop trigger memoranda_memories_fts_update")
        connection.execute("update memoranda_memories set content_terms = ' coffee '")
        connection.commit()
    engine = twin(MemoryEngine(f"sqlite:///{path}", embedder="hash/words"))

    with pytest.raises(StoreError, match="memoranda doctor"):
        engine.backup(tmp_path / "copy.db")

    engine.close()
    assert list(tmp_path.glob("*copy*")) == []


def test_on_postgres_pg_dump_is_named(make_engine, backend, tmp_path):
    if not backend.is_postgres:
        pytest.skip("not applicable: SQLite copies itself")
    engine = make_engine()

    with pytest.raises(ConfigurationError, match="pg_dump --format=custom --schema=memoranda"):
        engine.backup(tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
