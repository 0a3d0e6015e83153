"""The doctor finds what is wrong with a store, says what helps, and changes nothing."""

import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import create_engine, text

from memoranda import MemoryEngine
from memoranda.db import migrations
from memoranda.errors import EmbedderMismatch, StoreUnavailable
from memoranda.policies import FloorPolicy, Policies
from memoranda.reports import Diagnosis, Finding
from memoranda.testing import BrokenEmbedder, FixedEmbedder
from memoranda.testing.twin import unwrap


def names(diagnosis):
    return [finding.name for finding in diagnosis.findings]


def execute(engine, statement):
    """Run a statement behind the engine's back."""
    unwrap(engine)._database.run(lambda conn, tables: conn.execute(text(statement.format(p=tables.dialect.prefix))))


@pytest.fixture
def schema(backend):
    return "memoranda." if backend.is_postgres else "memoranda_"


def test_a_healthy_store(engine, backend):
    me = engine.persona("main")
    me.memories.write_many(["Tea is at four.", "Supper is at eight."])
    me.memories.supersede(me.memories.write("It rains.").id, "The sun shines.")

    found = engine.doctor()

    assert (found.findings, found.suggestions, found.healthy) == ((), found.suggestions, True)
    assert str(found).splitlines()[0] == "nothing is wrong"
    assert (found.revision, found.head) == (migrations.HEAD, migrations.HEAD)
    assert (found.embedder, found.language, found.floor) == ("hash/words@512", "english", 0.3)
    assert (found.memories, found.vectors, found.without_vector) == (4, 4, 0)
    assert (found.other_vectors, found.ownerless_vectors) == (0, 0)
    assert (found.search, found.vector_index) == ("whole", "not needed")
    assert found.size > 10_000
    assert abs((found.oldest - datetime.now(UTC)).total_seconds()) < 600
    if backend.is_postgres:
        assert list(found.versions) == ["PostgreSQL", "vector"]
        assert found.storage["encoding"] == "UTF8"
    else:
        assert list(found.versions) == ["SQLite"]
        assert (found.storage["page_size"], found.storage["synchronous"]) == (4096, "normal")
        assert (found.storage["wal_bytes"] > 0) == (backend.name == "sqlite-file")


@pytest.mark.blank
def test_an_unused_store_is_healthy_and_stays_unused(engine):
    assert engine.setup() is not None

    found = engine.doctor()

    assert found.healthy
    assert (found.memories, found.embedder, found.language, found.oldest) == (0, None, None, None)
    assert engine.doctor().language is None  # looking did not make it


def test_it_looks_at_everybodys_rows(engine):
    engine.persona("main", tenant="acme", user="ana").memories.write("Tea is at four.")
    engine.persona("other").memories.write("Supper is at eight.")

    assert engine.doctor().memories == 2


@pytest.mark.parametrize(
    ("floor", "expected"), [(FloorPolicy(least=0.7), 0.7), (FloorPolicy(enabled=False), None)], ids=["own", "none"]
)
def test_the_floor_is_the_policys(make_engine, floor, expected):
    engine = make_engine(preset=Policies(floor=floor))
    engine.persona("main").memories.write("Tea is at four.")

    assert engine.doctor().floor == expected


# -- vectors


def test_memories_without_a_vector_are_counted(make_engine):
    broken = BrokenEmbedder(name="hash/words", dimensions=512)
    engine = make_engine(embedder=broken, background="off")
    engine.persona("main").memories.write("Tea is at four.")

    found = engine.doctor()

    assert names(found) == ["missing vectors"]
    assert (found.memories, found.vectors, found.without_vector) == (1, 0, 1)


@pytest.mark.behaviour("S22")
def test_vectors_of_another_model_are_counted_and_never_searched(engine, schema):
    me = engine.persona("main")
    me.memories.write_many(["Tea is at four.", "Supper is at eight."])
    tea = f"(select id from {schema}memories where content like 'Tea%')"
    execute(engine, f"update {schema}vectors set model = 'other@512' where owner = {tea}")

    found = engine.doctor()

    assert names(found) == ["missing vectors", "stale vectors"]
    assert (found.vectors, found.without_vector, found.other_vectors) == (1, 1, 1)
    assert "1 of 2 memories have no vector of 'hash/words@512'" in found.findings[0].message
    assert "memoranda backfill" in found.findings[0].remedy
    assert "1 vectors were made by another embedder" in found.findings[1].message
    assert me.stats().other_vectors == 1
    assert me.recall("supper at eight").hits[0].memory.content == "Supper is at eight."
    assert me.recall("tea at four").hits[0].memory.content == "Tea is at four."  # by its words


def test_vectors_without_an_owner_are_counted(engine, schema):
    engine.persona("main").memories.write_many(["Tea is at four.", "Supper is at eight."])
    execute(engine, f"delete from {schema}memories where content like 'Tea%'")

    found = engine.doctor()

    assert names(found) == ["ownerless vectors"]
    assert found.ownerless_vectors == 1


def test_a_store_that_goes_by_words_lacks_no_vector(make_engine):
    engine = make_engine(embedder="none")
    engine.persona("main").memories.write("Tea is at four.")

    found = engine.doctor()

    assert found.healthy
    assert (found.embedder, found.vectors, found.without_vector) == (None, 0, 0)
    assert found.floor == 0.275


def test_an_embedder_that_is_not_at_hand_or_another_one_is_a_finding(make_engine, backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: two engines share no store in memory")
    fixed = FixedEmbedder({"Tea is at four.": [1, 0]})
    make_engine(embedder=fixed).persona("main").memories.write("Tea is at four.")
    unnamed, wrong = make_engine(embedder="auto").doctor(), make_engine().doctor()

    assert names(unnamed) == ["embedder"]
    assert "test/fixed" in unnamed.findings[0].message
    assert names(wrong) == ["settings"]
    assert wrong.findings[0].message == str(EmbedderMismatch("test/fixed@2", "hash/words@512")).rstrip(".")


def test_the_language_it_is_opened_in_is_no_fault_of_the_store(make_engine, backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: two engines share no store in memory")
    make_engine(language="german").persona("main").memories.write("Der Tee ist fertig.")

    found = make_engine().doctor()

    assert (found.healthy, found.language) == (True, "german")


# -- jobs


def test_jobs_that_were_given_up_or_wait_for_nobody_are_findings(make_engine, schema):
    engine = make_engine(background="off")
    engine.persona("main").memories.write("Tea is at four.")
    stamp = "2020-01-01 00:00:00" + (".000000" if schema.endswith("_") else "+00")
    rows = (("waiting", "0" * 31 + "1"), ("failed", "0" * 31 + "2"))
    for status, identifier in rows:
        execute(
            engine,
            f"insert into {schema}jobs (tenant, persona, id, kind, payload, status, due_at, created_at) "
            f"values ('', 'main', '{identifier}', 'later', '1', '{status}', '{stamp}', '{stamp}')",
        )

    found = engine.doctor()

    assert names(found) == ["failed jobs", "orphaned jobs"]
    assert (found.waiting_jobs, found.failed_jobs) == (1, 1)
    assert "memoranda worker" in found.findings[1].remedy


# -- tables and indexes


def test_a_text_index_out_of_step_is_found(engine, backend):
    if backend.is_postgres:
        pytest.skip("not applicable: Postgres generates the column and keeps its index")
    engine.persona("main").memories.write("Tea is at four.")
    assert engine.doctor().search == "whole"
    execute(engine, "drop trigger memoranda_memories_fts_update")
    execute(engine, "update memoranda_memories set content_terms = ' coffee '")

    found = engine.doctor()

    assert found.search == "damaged"
    assert names(found) == ["text index", "text index"]
    assert "memoranda_memories_fts_update is missing" in found.findings[0].message
    assert "does not agree" in found.findings[1].message
    assert "memoranda export" in found.findings[1].remedy


def test_the_remedy_for_a_text_index_helps(engine, backend, tmp_path):
    if backend.is_postgres:
        pytest.skip("not applicable: Postgres generates the column and keeps its index")
    engine.persona("main").memories.write("Tea is at four.")
    execute(engine, "insert into memoranda_memories_fts(memoranda_memories_fts) values ('delete-all')")
    assert not engine.doctor().healthy

    engine.export_to(tmp_path / "x.jsonl")
    with MemoryEngine(f"sqlite:///{tmp_path / 'new.db'}", embedder="hash/words") as new:
        new.import_from(tmp_path / "x.jsonl")
        assert new.doctor().healthy
        assert new.persona("main").recall("tea?").hits


def test_a_lost_index_or_table_is_found(engine, schema, backend):
    engine.persona("main").memories.write("Tea is at four.")
    index = f"{'memoranda.' if backend.is_postgres else ''}ix_{'' if backend.is_postgres else 'memoranda_'}memories"
    execute(engine, f"drop index {index}_tenant_persona_day")
    try:
        found = engine.doctor()
        assert names(found) == ["tables"]
        assert "_memories_tenant_persona_day is missing" in found.findings[0].message.replace("ix_mem", "_mem")
    finally:
        execute(
            engine,
            f"create index ix_{'' if backend.is_postgres else 'memoranda_'}memories_tenant_persona_day "
            f"on {schema}memories (tenant, persona, day)",
        )
    assert engine.doctor().healthy


def test_an_index_that_is_not_valid_is_found(make_engine, backend):
    if not backend.is_postgres:
        pytest.skip("not applicable: SQLite has no such indexes")
    engine = make_engine()
    engine.persona("main").memories.write("Tea is at four.")
    mark = "update pg_index set indisvalid = {} where indexrelid = 'memoranda.ix_memories_search'::regclass"
    execute(engine, mark.format("false"))
    try:
        found = engine.doctor()
    finally:
        execute(engine, mark.format("true"))

    assert names(found) == ["damage"]
    assert found.findings[0].message == "the index ix_memories_search is not valid"
    assert "REINDEX" in found.findings[0].remedy


@pytest.mark.blank
def test_tables_of_another_release_are_left_alone(backend, make_engine, twin):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory is always new")
    first = make_engine()
    first.setup()
    for revision, said in (
        ("0001_memories", "memoranda db upgrade"),
        ("9999_later", "Upgrade the `memoranda` package"),
    ):
        execute(
            first, f"update {'memoranda.' if backend.is_postgres else 'memoranda_'}version set revision = '{revision}'"
        )
        other = make_engine()
        found = other.doctor()
        assert names(found) == ["tables"]
        assert said in found.findings[0].remedy
        assert (found.revision, other.revision()) == (revision, revision)
    execute(
        first,
        f"update {'memoranda.' if backend.is_postgres else 'memoranda_'}version set revision = '{migrations.HEAD}'",
    )
    assert first.doctor().healthy


def test_a_store_without_tables_says_how_to_make_them(twin, tmp_path, blank_postgres_url):
    for url in (f"sqlite:///{tmp_path / 'memory.db'}", blank_postgres_url):
        engine = twin(MemoryEngine(url, embedder="hash/words"))

        found = engine.doctor()

        assert names(found) == ["tables"]
        assert (found.revision, found.findings[0].remedy) == (None, "Run `memoranda db upgrade`")
        engine.close()
    assert not (tmp_path / "memory.db").exists()


# -- faults


@pytest.mark.behaviour("O04")
def test_a_store_that_cannot_be_reached_is_an_error_and_no_diagnosis(twin, tmp_path):
    (tmp_path / "memory.db").write_bytes(b"not a database" * 100)
    for url in (f"sqlite:///{tmp_path / 'memory.db'}", "postgresql://ana@127.0.0.1:1/memories"):
        engine = twin(MemoryEngine(url, embedder="hash/words", timeout=5))
        with pytest.raises(StoreUnavailable):
            engine.doctor()
        engine.close()


def test_a_damaged_page_is_found(tmp_path, twin):
    path = tmp_path / "memory.db"
    with MemoryEngine(f"sqlite:///{path}", embedder="hash/words") as engine:
        engine.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(300)])
    with closing(sqlite3.connect(path)) as connection:
        root = connection.execute(
            "select rootpage from sqlite_schema where name = 'ix_memoranda_memories_tenant_persona_session_position'"
        ).fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    engine = twin(MemoryEngine(f"sqlite:///{path}", embedder="hash/words"))

    found = engine.doctor()

    engine.close()
    assert "damage" in names(found)
    assert "backup" in next(finding for finding in found.findings if finding.name == "damage").remedy


def test_a_writer_that_holds_the_file_leaves_the_text_index_unchecked(tmp_path, twin):
    path = tmp_path / "memory.db"
    engine = twin(MemoryEngine(f"sqlite:///{path}", embedder="hash/words", timeout=0.5))
    engine.persona("main").memories.write("Tea is at four.")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        found = engine.doctor()

        other.execute("ROLLBACK")
    assert (found.search, found.healthy) == ("not checked", True)
    assert "the text index was not compared" in found.suggestions[-1] + found.suggestions[0]
    assert engine.doctor().search == "whole"
    engine.close()


def test_writers_go_on_while_it_looks(make_engine, backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: two engines share no store in memory")
    engine, writer = make_engine(), MemoryEngine(backend.url, embedder="hash/words")
    engine.persona("main").memories.write("Tea is at four.")

    def work():
        for n in range(30):
            writer.persona("main").memories.write(f"The shelf number {n} is green.")

    thread = threading.Thread(target=work)
    thread.start()
    looks = [engine.doctor() for _ in range(5)]
    thread.join()
    writer.close()

    assert all(found.healthy for found in looks)
    assert engine.doctor().memories == 31


def test_what_it_says_in_lines():
    finding = Finding(name="stale vectors", message="2 are old", remedy="Leave them")
    diagnosis = Diagnosis(database="sqlite", revision="1", head="1", findings=(finding,), suggestions=("install more",))

    assert str(diagnosis) == "stale vectors: 2 are old. Leave them.\nsuggestion: install more"
    assert not diagnosis.healthy


def test_a_host_engine_is_examined_too(tmp_path, twin):
    host = create_engine(f"sqlite:///{tmp_path / 'host.db'}")
    engine = twin(MemoryEngine(host, embedder="hash/words"))
    engine.persona("main").memories.write("Tea is at four.")

    assert engine.doctor().healthy
    engine.close()
    host.dispose()
