"""The file: its settings, and what is said when it cannot be used."""

import os
import sqlite3
from uuid import UUID, uuid4

import numpy as np
import pytest
from sqlalchemy import text

from memoranda import MemoryEngine
from memoranda.db.dialects.base import VectorQuestion
from memoranda.errors import ConfigurationError, PermissionMissing, StoreUnavailable


def pragma(engine, name):
    with engine._database._engine.connect() as connection:
        return connection.scalar(text(f"pragma {name}"))


@pytest.mark.parametrize(("option", "level"), [("normal", 1), ("full", 2)])
def test_a_file_is_in_wal_with_the_durability_that_was_asked_for(tmp_path, option, level):
    with MemoryEngine(f"sqlite:///{tmp_path}/memory.db", synchronous=option, embedder="none") as engine:
        engine.persona("main").memories.write("Lisbon")
        assert pragma(engine, "journal_mode") == "wal"
        assert pragma(engine, "synchronous") == level
        assert pragma(engine, "foreign_keys") == 1


def test_durability_has_two_levels():
    with pytest.raises(ConfigurationError, match="normal or full"):
        MemoryEngine("sqlite://", synchronous="off")  # type: ignore[arg-type]


def test_a_file_in_a_folder_that_does_not_exist(tmp_path):
    with MemoryEngine(f"sqlite:///{tmp_path}/none/memory.db", embedder="none") as engine:
        with pytest.raises(StoreUnavailable, match="folder exists"):
            engine.persona("main").memories.write("Lisbon")
        with pytest.raises(StoreUnavailable, match="folder exists"):
            engine.persona("main").recall("Lisbon")


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "memory.db"
    path.write_bytes(b"This is a letter, not a database. " * 100)
    with (
        MemoryEngine(f"sqlite:///{path}", embedder="none") as engine,
        pytest.raises(StoreUnavailable, match="not a database"),
    ):
        engine.persona("main").recall("Lisbon")
    assert path.read_bytes().startswith(b"This is a letter")


def test_a_folder_instead_of_a_file(tmp_path):
    with MemoryEngine(f"sqlite:///{tmp_path}", embedder="none") as engine, pytest.raises(StoreUnavailable):
        engine.persona("main").recall("Lisbon")


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "memory.db"
    path.touch()
    with MemoryEngine(f"sqlite:///{path}", embedder="none") as engine:
        assert engine.persona("main").memories.write("Lisbon").created


def test_a_file_that_may_only_be_read(tmp_path):
    path = tmp_path / "memory.db"
    with MemoryEngine(f"sqlite:///{path}", embedder="none") as engine:
        engine.persona("main").memories.write("Lisbon")
    url = f"sqlite:///file:{path}?mode=ro&uri=true"
    with MemoryEngine(url, embedder="none") as engine:
        assert len(engine.persona("main").recall("Lisbon")) == 1
        with pytest.raises(PermissionMissing, match="read-only"):
            engine.persona("main").memories.write("Porto")
    if os.geteuid():  # root may write to any file
        path.chmod(0o444)
        with MemoryEngine(f"sqlite:///{path}", embedder="none") as engine, pytest.raises(PermissionMissing):
            engine.persona("main").memories.write("Porto")


def test_a_store_in_memory_ends_with_its_engine():
    with MemoryEngine("sqlite://", embedder="none") as one, MemoryEngine("sqlite://", embedder="none") as other:
        one.persona("main").memories.write("Lisbon")
        assert len(one.persona("main").recall("lisbon")) == 1
        assert other.persona("main").recall("lisbon").abstained


def test_the_index_of_words_follows_every_change(tmp_path):
    path = tmp_path / "memory.db"
    with MemoryEngine(f"sqlite:///{path}", embedder="none") as engine:
        me = engine.persona("main")
        memory = me.memories.write("Lisbon 0")
        for n in range(1, 30):
            memory = me.memories.supersede(memory.id, f"Lisbon {n}")
        me.memories.delete(memory.id)
    raw = sqlite3.connect(path)
    raw.execute("insert into memoranda_memories_fts(memoranda_memories_fts, rank) values ('integrity-check', 1)")
    assert raw.execute("select count(*) from memoranda_memories_fts('lisbon')").fetchone() == (30,)
    raw.execute("delete from memoranda_memories")
    raw.execute("insert into memoranda_memories_fts(memoranda_memories_fts, rank) values ('integrity-check', 1)")
    assert raw.execute("select count(*) from memoranda_memories_fts('lisbon')").fetchone() == (0,)
    raw.close()


def test_a_second_engine_on_the_file_sees_vectors_of_the_first(tmp_path):
    url = f"sqlite:///{tmp_path}/memory.db"
    with MemoryEngine(url, preset="statements") as one, MemoryEngine(url, preset="statements") as other:
        for n, what in enumerate(
            ("is by the sea", "has seven hills", "was shaken in 1755", "sells fine custard tarts")
        ):
            one.persona("main").memories.write(f"Lisbon {what}", about="everyone")
            assert len(other.persona("main").recall("Lisbon", limit=20)) == n + 1


def test_vectors_that_are_rolled_back_leave_nothing_in_memory(tmp_path):
    bread, cedar, apple = uuid4(), uuid4(), uuid4()
    own = {"tenant": "", "persona": "main", "kind": "memory", "model": "test/fixed@2"}

    def put(conn, tables, owner, vector):
        values = {**own, "owner": owner, "vector": np.array(vector, np.float32)}
        conn.execute(tables.vectors.insert(), [values])

    def nearest(conn, tables, vector):
        whose = {"corpus": tables.corpora["memory"], "tenant": "", "persona": "main", "model": "test/fixed@2"}
        question = VectorQuestion(**whose, vector=np.array(vector, np.float32), rows=3)
        pages = tables.dialect.vectors.nearest(conn, tables, question, 5)
        owner, likeness = next(pages)[0]
        return UUID(hex=owner), pytest.approx(likeness)

    def change_and_fail(conn, tables):
        assert nearest(conn, tables, [0, 1]) == (cedar, 1)
        conn.execute(tables.vectors.delete())
        put(conn, tables, bread, [1, 0])
        put(conn, tables, cedar, [-1, 0])
        assert nearest(conn, tables, [1, 0]) == (bread, 1)  # its own rows are compared while it lasts
        assert nearest(conn, tables, [-1, 0]) == (cedar, 1)
        raise RuntimeError

    with MemoryEngine(f"sqlite:///{tmp_path}/memory.db", embedder="none") as engine:
        database = engine._database
        database.run(put, cedar, [0, 1])
        with pytest.raises(RuntimeError):
            database.run(change_and_fail)
        assert database.read(nearest, [0, 1]) == (cedar, 1)
        database.run(put, apple, [1, 0])  # under the number that bread had
        assert database.read(nearest, [1, 0]) == (apple, 1)
