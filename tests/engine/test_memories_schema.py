"""The tables as the real databases hold them: looked at through connections of the test's own."""

import uuid

import pytest
from sqlalchemy import NullPool, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError

from memoranda import MemoryEngine

pytestmark = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)

# name: (may be NULL, default)
COLUMNS = {
    "tenant": (False, ""),
    "persona": (False, "main"),
    "id": (False, None),
    "short_id": (False, None),
    "type": (False, "semantic"),
    "status": (False, "active"),
    "category": (True, None),
    "title": (True, None),
    "content": (False, None),
    "importance": (False, "5"),
    "confidence": (False, "8"),
    "core": (False, "false"),
    "day": (False, None),
    "event_time": (True, None),
    "valid_from": (True, None),
    "valid_to": (True, None),
    "author": (False, ""),
    "audience": (False, "private"),
    "project": (False, ""),
    "project_key": (False, ""),
    "space": (False, ""),
    "about": (False, ""),
    "session": (False, ""),
    "position": (True, None),
    "metadata": (False, None),
    "superseded_by": (True, None),
    "dedupe_key": (True, None),
    "created_at": (False, None),
    "updated_at": (False, None),
    "cells": (False, None),
    "category_terms": (False, None),
    "content_terms": (False, None),
    "length": (False, None),
}


class Raw:
    """Plain SQL on the store of a backend."""

    def __init__(self, backend):
        self.postgres = backend.is_postgres
        self.schema = "memoranda" if self.postgres else None
        self.engine = create_engine(backend.url, poolclass=NullPool)

    def table(self, noun):
        return noun if self.postgres else f"memoranda_{noun}"

    def name(self, noun):
        return f"memoranda.{noun}" if self.postgres else f"memoranda_{noun}"

    def inspect(self):
        return inspect(self.engine)

    def run(self, statement, **values):
        with self.engine.begin() as conn:
            result = conn.execute(text(statement), values)
            return result.all() if result.returns_rows else []

    def insert(self, **values):
        row = {
            "id": uuid.uuid4().hex,
            "short_id": uuid.uuid4().hex[:8],
            "content": "Put there by hand.",
            "day": "2026-01-01",
            "metadata": "{}",
            "created_at": "2026-01-01 00:00:00.000000",
            "updated_at": "2026-01-01 00:00:00.000000",
            "cells": "",
            "category_terms": "",
            "content_terms": "",
            "length": 0,
        } | values
        names = ", ".join(row)
        places = ", ".join(f":{name}" for name in row)
        self.run(f"INSERT INTO {self.name('memories')} ({names}) VALUES ({places})", **row)
        return row["short_id"]


@pytest.fixture
def opened(backend):
    engine = MemoryEngine(backend.url, embedder="hash/words")
    engine.setup()
    yield engine
    engine.close()


@pytest.fixture
def raw(backend, opened):
    return Raw(backend)


def plain(default):
    if default is None or default.startswith("NULL"):
        return None
    return {"0": "false"}.get(default, default).split("::")[0].strip("()'")


@pytest.mark.behaviour("S01")
def test_the_columns_of_a_memory_their_nullability_and_their_defaults(raw):
    found = {
        column["name"]: (column["nullable"], plain(column["default"]))
        for column in raw.inspect().get_columns(raw.table("memories"), schema=raw.schema)
        if column["name"] not in ("n", "search")
    }
    assert found == COLUMNS


@pytest.mark.behaviour("S01")
def test_a_written_memory_is_a_row_with_these_values(raw, opened):
    written = opened.persona("trader").memories.write("The vote passed.", category="board", importance=7)
    columns = "id, persona, category, content, importance, day, created_at"
    [row] = raw.run(f"SELECT {columns} FROM {raw.name('memories')}")
    assert str(row.id).replace("-", "") == written.id.hex
    assert (row.persona, row.category, row.content, row.importance) == ("trader", "board", "The vote passed.", 7)
    assert str(row.day) == written.memory.day.isoformat()
    assert str(row.created_at)[:19] == written.memory.created_at.strftime("%Y-%m-%d %H:%M:%S")
    [vector] = raw.run(f"SELECT model, owner, kind FROM {raw.name('vectors')}")
    assert (vector.model, str(vector.owner).replace("-", ""), vector.kind) == (
        "hash/words@512",
        written.id.hex,
        "memory",
    )


@pytest.mark.behaviour("S08", "S24")
def test_the_indexes_of_memories_start_with_tenant_and_persona(raw):
    inspector = raw.inspect()
    found = {
        tuple(index["column_names"])
        for index in inspector.get_indexes(raw.table("memories"), schema=raw.schema)
        if index["column_names"] != ["search"] and not index["unique"]
    }
    expected = {
        ("author", "status", "length"),
        ("created_at",),
        ("day",),
        ("project_key",),
        ("superseded_by",),
        ("session", "position"),
    }
    if raw.schema:  # on SQLite these two cost more at every write than they save
        expected |= {("importance", "created_at"), ("status", "type")}
    assert found == {("tenant", "persona", *columns) for columns in expected}


@pytest.mark.behaviour("S08", "S24")
def test_every_index_and_unique_key_of_every_table_starts_with_tenant_and_persona(raw):
    inspector, seen = raw.inspect(), 0
    nouns = ("memories", "memory_versions", "memory_access", "sources", "vectors", "project_members")
    for noun in nouns:
        table = raw.table(noun)
        keys = [index["column_names"] for index in inspector.get_indexes(table, schema=raw.schema)]
        keys += [key["column_names"] for key in inspector.get_unique_constraints(table, schema=raw.schema)]
        primary = inspector.get_pk_constraint(table, schema=raw.schema)["constrained_columns"]
        for columns in [*keys, primary]:
            if columns in (["search"], ["n"]):  # full text and SQLite's row number
                continue
            seen += 1
            assert columns[:2] == ["tenant", "persona"], (noun, columns)
    assert seen >= len(nouns)


@pytest.mark.behaviour("S08")
def test_full_text_is_indexed_and_no_vector_index_stands_on_a_small_store(raw, opened):
    opened.persona("main").memories.write("A first memory.")
    assert opened.build_indexes() is False
    if raw.postgres:
        rows = raw.run("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'memoranda'")
        words = {r.indexname for r in rows if "USING gin (search)" in r.indexdef}
        searched = ("memories", "knowledge_chunks", "messages", "store_item_texts")
        assert words == {f"ix_{table}_search" for table in searched}
        assert not [r.indexname for r in rows if "hnsw" in r.indexdef]
    else:
        [table] = raw.run("SELECT sql FROM sqlite_master WHERE name = 'memoranda_memories_fts'")
        assert "USING fts5(cells, category_terms, content_terms" in table.sql


@pytest.mark.behaviour("S07")
def test_the_weighted_search_vector_follows_the_terms_by_itself(raw, opened, backend):
    memory = opened.persona("main").memories.write("The harvest was late.", category="orchard").memory
    if raw.postgres:
        [column] = raw.run(
            "SELECT is_generated FROM information_schema.columns "
            "WHERE table_schema = 'memoranda' AND table_name = 'memories' AND column_name = 'search'"
        )
        assert column.is_generated == "ALWAYS"
        [scores] = raw.run(
            "SELECT ts_rank(search, 'orchard'::tsquery) AS category, ts_rank(search, 'harvest'::tsquery) AS content "
            "FROM memoranda.memories"
        )
        assert scores.category == pytest.approx(0.6079271, abs=1e-6)
        assert scores.content == pytest.approx(0.2431708, abs=1e-6)
        with pytest.raises(DBAPIError):
            raw.run("UPDATE memoranda.memories SET search = 'other'::tsvector")
    raw.run(f"UPDATE {raw.name('memories')} SET content_terms = ' glacier '")
    with MemoryEngine(backend.url, embedder="none", preset="journal") as words_only:
        main = words_only.persona("main")
        assert [hit.id for hit in main.recall("glacier")] == [memory.id]
        assert [hit.id for hit in main.recall("orchard")] == [memory.id]
        assert list(main.recall("harvest")) == []


@pytest.mark.behaviour("S18")
def test_a_row_without_author_and_audience_is_private_and_nobodys(raw, opened):
    short_id = raw.insert(short_id="abcdefgh")
    memory = opened.persona("main").memories.get(short_id).memory
    assert (memory.audience, memory.author, memory.tenant, memory.persona) == ("private", "", "", "main")


@pytest.mark.behaviour("S18", "S19")
def test_the_author_is_stored_with_the_row(raw, opened):
    ana = opened.persona("main", tenant="acme", user="ana")
    ana.projects.add_member("apollo", "ana")
    ana.memories.write("Launch is in May.", project="apollo", audience="project")
    [row] = raw.run(f"SELECT author, audience, project FROM {raw.name('memories')}")
    assert tuple(row) == ("ana", "project", "apollo")


REFUSED = [
    ("audience", "public"),
    ("importance", 0),
    ("importance", 11),
    ("confidence", 0),
    ("confidence", 11),
    ("type", "fact"),
    ("status", "gone"),
]


@pytest.mark.behaviour("S04", "S09", "S15", "S19")
def test_the_database_itself_refuses_what_is_out_of_range(raw):
    for column, value in REFUSED:
        with pytest.raises(DBAPIError, match=r"(?i)check constraint"):
            raw.insert(**{column: value})
    with pytest.raises(DBAPIError, match=r"(?i)check constraint"):
        raw.insert(audience="project")  # no project
    with pytest.raises(DBAPIError, match=r"(?i)check constraint"):
        raw.insert(valid_from="2026-02-01 00:00:00.000000", valid_to="2026-01-01 00:00:00.000000")
    assert raw.run(f"SELECT count(*) FROM {raw.name('memories')}") == [(0,)]
    raw.insert(audience="project", project="apollo")


@pytest.mark.behaviour("S01")
def test_no_required_column_takes_null(raw):
    for column, (nullable, _) in COLUMNS.items():
        if not nullable:
            with pytest.raises(DBAPIError, match=r"(?i)null"):
                raw.insert(**{column: None})


@pytest.mark.behaviour("S14", "W17")
def test_a_correction_adds_a_row_and_takes_none_away(raw, opened):
    count = f"SELECT count(*) FROM {raw.name('memories')}"
    memories = opened.persona("main").memories
    old = memories.write("The office is in Lisbon.")
    assert raw.run(count) == [(1,)]
    memories.supersede(old.id, "The office is in Porto.")
    assert raw.run(count) == [(2,)]
    memories.delete(old.id)
    assert raw.run(count) == [(2,)]
    rows = raw.run(f"SELECT content, status FROM {raw.name('memories')} ORDER BY created_at, id")
    assert [tuple(row) for row in rows] == [
        ("The office is in Lisbon.", "retracted"),
        ("The office is in Porto.", "active"),
    ]


@pytest.mark.behaviour("S22")
def test_each_vector_is_stamped_and_models_are_never_compared(raw, backend):
    from memoranda.testing import FixedEmbedder

    vectors: dict[str, list[float]] = {"red": [1, 0], "green": [0.8, 0.6], "crimson": [1, 0]}
    first = MemoryEngine(backend.url, embedder=FixedEmbedder(vectors, name="test/colours"), preset="journal")
    stale = first.persona("main").memories.write("red")
    kept = first.persona("main").memories.write("green")
    first.close()
    assert raw.run(f"SELECT DISTINCT model FROM {raw.name('vectors')}") == [("test/colours@2",)]
    owner = str(stale.id) if raw.postgres else stale.id.hex
    raw.run(f"UPDATE {raw.name('vectors')} SET model = 'test/older@2' WHERE owner = :owner", owner=owner)

    second = MemoryEngine(backend.url, embedder=FixedEmbedder(vectors, name="test/colours"), preset="journal")
    me = second.persona("main")
    assert [hit.id for hit in me.recall("crimson")] == [kept.id]
    stats = me.stats()
    assert (stats.vectors, stats.other_vectors, stats.embedder) == (1, 1, "test/colours@2")
    second.close()


@pytest.mark.behaviour("S17")
def test_each_memory_has_one_source_row(raw, opened):
    memories = opened.persona("main").memories
    memories.write("One.")
    memories.write_many(["Two.", {"content": "Three.", "source": {"type": "tool_result", "channel": "shell"}}])
    memories.write("One.")  # there already
    rows = raw.run(
        f"SELECT m.content, s.type, s.channel FROM {raw.name('sources')} s "
        f"JOIN {raw.name('memories')} m ON m.id = s.memory_id ORDER BY m.created_at, m.id"
    )
    assert [tuple(row) for row in rows] == [
        ("One.", "manual", ""),
        ("Two.", "manual", ""),
        ("Three.", "tool_result", "shell"),
    ]
