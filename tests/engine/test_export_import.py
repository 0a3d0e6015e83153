"""A store in a file: every row of it comes back as it was, on the other database too, or nothing is stored at all."""

import gzip
import io
import json
import signal
import subprocess
import sys
import threading
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from hashlib import sha256
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import and_, insert, select, update

from memoranda import MemoryEngine
from memoranda.archive import UnreadableArchive
from memoranda.db.queries import conversations, jobs, moving
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import ConfigurationError, EmbedderUnavailable, InvalidInput, StoreUnavailable
from memoranda.messages import Message
from memoranda.nodes import Node
from memoranda.reports import Imported
from memoranda.testing import DeferredEmbedder, FixedEmbedder
from memoranda.testing.twin import unwrap

OWN = ("erasures", "jobs", "snapshots", "snapshot_memories")
"""Tables that speak of the store they are in, and come along into an empty one only."""

METADATA = {
    "none": None,
    "flags": [True, False],
    "numbers": {"int": 2**53 + 1, "float": 1e16, "minus": -0.0, "decimal": Decimal("1.10")},
    "times": (datetime(2025, 3, 1, 9, 30, tzinfo=UTC), date(2025, 3, 1), time(9, 30, 15), timedelta(days=1, seconds=2)),
    "id": UUID(int=7),
    "bytes": b"\x00\xff",
    "sets": {1, 2},
    "tagged": {"$type": "mine", "value": 1},
    "text": "naïve 東京 \u2028 \\u0000 \n",
}


@pytest.fixture
def somewhere(tmp_path, twin, empty_store):
    """Open a new store in a file of its own."""
    engines = []

    def open_one(name="other.db", *, url=None, embedder="hash/words", **options):
        if url is None and not (tmp_path / name).exists():
            empty_store.copy_to(tmp_path / name)
        engine = twin(MemoryEngine(url or f"sqlite:///{tmp_path / name}", embedder=embedder, **options))
        engines.append(engine)
        return engine

    yield open_one
    for engine in engines:
        engine.close()


def fill(engine):
    """Store something of every kind."""
    ana = engine.persona("main", tenant="acme", user="ana")
    ana.projects.add_member("Apollo", "ana")
    ana.projects.add_member("Apollo", "ben")
    ana.user_model.write("baseline", "Based in Lisbon.", 9)
    ana.user_model.write("baseline", "Moved to Porto.")
    ana.spaces.create("office")
    ana.spaces.create("attic")
    ana.spaces.archive("attic")
    first = ana.memories.write(
        "The release is on the 12th.",
        title="Release 東京",
        category="plan",
        importance=9,
        confidence=3,
        core=True,
        day=date(2025, 3, 1),
        event_time=datetime(2025, 3, 1, 9, 30, 0, 123456, tzinfo=UTC),
        valid_from=datetime(2025, 3, 1, tzinfo=UTC),
        valid_to=datetime(2030, 1, 1, tzinfo=UTC),
        about="person:ana",
        audience="project",
        project="Apollo",
        session="standup",
        position=3,
        metadata=METADATA,
        source={
            "type": "user_message",
            "session": "standup",
            "channel": "mail",
            "actor": "bot",
            "excerpt": "on the 12",
        },
    )
    second = ana.memories.supersede(first.id, "The release is on the 14th.", metadata={"moved": True})
    ana.memories.supersede(second.id, "The release is on the 16th.", valid_from="2090-01-01T00:00:00Z")
    ana.memories.mark(ana.memories.write("A passing whim.").id, "expired")
    ana.memories.delete(ana.memories.write("A slip of the tongue.").id)
    ana.scoped(space="office").memories.write("The kettle leaks.")
    ana.knowledge.ingest("manual", text="# Boats\n\nThe first one leaves at nine.", metadata=METADATA)
    ana.collection("boats", model="mine").add([Node(key="ferry", content="", metadata=METADATA, vector=[1.0, 0.5])])
    ana.record_keys("index").note(["ferry", "raft"], groups=["boats", None])
    ana.items.put(("boats", "a.b"), "ferry", {"leaves": METADATA}, texts={"name": "The ferry"}, ttl_minutes=50_000.5)
    said = [Message(role="user", content="a\0b", id="m1", extra={"raw": b"\0", "minus": -0.0}), "Thanks."]
    ana.conversation("thread-1").append(said)
    assert "14th" in ana.conversation("thread-1").system_block()
    unwrap(engine)._database.run(extracted, ana.scope)
    me = engine.persona("main")
    me.memories.write("Tea is at four.")
    assert me.recall("when is tea?").hits
    counting = engine.persona("diary", tenant="acme", user="ana", preset="ledger")
    counting.memories.write("Went for a swim in the lake.")
    assert counting.recall("a swim in the lake").hits
    assert counting.recall("a swim in the lake").hits
    engine.persona("other").memories.write_many([f"The shelf number {n} is green." for n in range(30)])
    unwrap(engine)._database.run(partial(jobs.enqueue, unique_key="one"), ("", "main"), "later", {"ids": [1, 2.5]})
    engine.persona("gone").memories.write("Nobody shall read this.")
    engine.erase(persona="gone")


def extracted(conn, tables, scope):
    """Enter that messages of a conversation were looked through."""
    row = conversations.found(conn, tables, scope, "thread-1")
    assert row is not None
    key = {"tenant": scope.tenant, "persona": scope.persona, "conversation_id": row.id, "kind": "flush"}
    numbers = {"first_position": 1, "last_position": 2, "proposed": 3, "written": 1}
    values = {"prompt_version": "1", "model": "test/scripted", "created_at": datetime(2025, 3, 1, tzinfo=UTC)}
    tables.inserts.add(conn, tables.extractions, [key | numbers | values])


VALUES = {
    "metadata": {"a": [1]},
    "json": {"b": [2.5, None]},
    "moment": datetime(2025, 3, 1, 9, 30, 0, 5, tzinfo=UTC),
    "uuid": UUID(int=9),
    "truth": True,
    "integer": 3,
    "number": 2.5,
    "text": "said",
}
"""What a column holds that nothing else has filled, by what it takes."""


def plain(value):
    return not isinstance(value, np.ndarray | bytes) and value in (None, "", 0, False, {}, [])


def varied(conn, tables):
    """Give every column that holds one plain value so far another one, in one row."""
    conn.execute(insert(tables.settings).values(key="measured", value=VALUES["json"]))
    for name, fields in moving.shape(tables).items():
        table = next(table for table in tables.metadata.sorted_tables if moving.noun(tables, table) == name)
        rows = conn.execute(select(*moving.columns(table))).mappings().all()
        key = [column.name for column in moving.row_key(table)]
        one = and_(*(table.c[column] == rows[0][column] for column in key))
        for column, field in fields.items():
            held = [row[column] for row in rows]
            if column not in key and all(plain(value) for value in held):
                conn.execute(update(table).where(one).values({column: VALUES[field.kind]}))


def contents(engine):
    """Return every row of every table, by its key; index terms and vectors among them."""

    def read(conn, tables):
        found = {}
        for table in tables.metadata.sorted_tables:
            key = [column.name for column in moving.row_key(table)]
            for row in conn.execute(select(*moving.columns(table))).mappings():
                values = {n: np.asarray(v, "<f4").tobytes() if n == "vector" else v for n, v in row.items()}
                found[moving.noun(tables, table), *(str(values[name]) for name in key)] = values
        return found

    return unwrap(engine)._database.read(read)


def exported(engine, **options):
    stream = io.BytesIO()
    answer = engine.export_to(stream, **options)
    return stream.getvalue(), answer


def axes(row):
    return {name: row[name] for name in ("tenant", "persona") if name in row}


def counts(rows, *tables):
    return [sum(key[0] == table for key in rows) for table in tables]


def sealed(lines):
    """Return a file of a header and rows with the footer that fits."""
    head = b"".join(lines)
    found: dict[str, int] = {}
    for line in lines[1:]:
        name = json.loads(line)["table"]
        found[name] = found.get(name, 0) + 1
    return head + json.dumps({"rows": found, "sha256": sha256(head).hexdigest()}).encode() + b"\n"


def edited(data, table, **values):
    """Return a whole file in which the first row of a table has other values."""
    lines = data.splitlines(keepends=True)[:-1]
    place = next(n for n, line in enumerate(lines) if f'"table":"{table}"'.encode() in line)
    row = json.loads(lines[place])
    row["row"] |= values
    lines[place] = json.dumps(row).encode() + b"\n"
    return sealed(lines), place + 1


# -- there and back


def test_a_store_goes_from_sqlite_to_postgres_and_back(somewhere, postgres_url, tmp_path, twin):
    start, middle, end = somewhere("start.db"), somewhere(url=postgres_url), somewhere("end.db")
    fill(start)
    unwrap(start)._database.run(varied)
    before = contents(start)
    empty = [name for name in moving.shape(unwrap(start)._database.tables) if counts(before, name) == [0]]
    assert empty == [], "fill() has to store something in every table"

    unsaid = {
        (table, column)
        for table in {table for table, *_ in before}
        for column in next(row for (name, *_), row in before.items() if name == table)
        if column not in ("tenant", "persona")
        and all(plain(row[column]) for (name, *_), row in before.items() if name == table)
    }
    assert unsaid == set(), "a column that holds nothing could be left behind unseen"

    start.export_to(tmp_path / "one.jsonl")
    there = middle.import_from(tmp_path / "one.jsonl")
    assert contents(middle) == before
    middle.export_to(tmp_path / "two.jsonl.gz")
    back = end.import_from(tmp_path / "two.jsonl.gz")

    assert contents(end) == before
    for imported in (there, back):
        assert not imported.already_there
        assert (imported.renamed, imported.unkeyed, imported.reindexed, imported.erased) == (0, 0, 0, 0)
        assert sum(imported.rows.values()) == len(before) - 2  # the header carries two settings
    me = end.persona("main", tenant="acme", user="ana")
    [memory] = [memory for memory in me.memories.list(limit=50) if memory.content == "The release is on the 14th."]
    chain = [found.content for found in me.memories.history(memory.id)]
    assert [text.split()[-1] for text in chain] == ["12th.", "14th.", "16th."]
    assert me.memories.get(me.memories.history(memory.id)[0].id).memory.metadata == METADATA
    assert me.recall("when is the release?").hits
    assert end.persona("diary", tenant="acme", user="ana").memories.list()[0].content.startswith("Went for a swim")


def test_what_every_table_declares_is_moved(engine):
    tables = unwrap(engine)._database.tables
    for table in tables.metadata.sorted_tables:
        left_out = {column.name for column in table.columns} - set(moving.shape(tables)[moving.noun(tables, table)])
        assert left_out <= {"n", "search"}
        assert "n" not in {column.name for column in moving.row_key(table)}
    # Whoever adds index terms to another table has to have them made anew by an import.
    searched = {table for table in tables.metadata.sorted_tables if "content_terms" in table.c}
    assert searched == {tables.memories, tables.knowledge_chunks, tables.messages, tables.store_item_texts}


def test_the_same_store_makes_the_same_file(engine, tmp_path):
    fill(engine)

    assert exported(engine) == exported(engine)
    engine.export_to(tmp_path / "one.gz")
    engine.export_to(tmp_path / "two.gz")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.gz").read_bytes()) == exported(engine)[0]


def test_the_answers_say_how_much_it_was(engine, somewhere):
    engine.persona("main").memories.write_many(["Tea is at four.", "Supper is at eight."])
    data, answer = exported(engine)

    assert answer.rows == {"memories": 2, "sources": 2, "vectors": 2}
    assert str(answer) == "exported 2 memories, 6 rows in all"
    assert json.loads(data.splitlines()[-1]) == {"rows": dict(answer.rows), "sha256": answer.sha256}
    assert str(somewhere().import_from(io.BytesIO(data))) == "imported 2 memories, 6 rows in all"


def test_a_second_import_changes_nothing(engine, somewhere):
    fill(engine)
    data, _ = exported(engine)
    other = somewhere()
    other.import_from(io.BytesIO(data))
    for store in (other, engine):
        before = contents(store)

        again = store.import_from(io.BytesIO(data))

        assert contents(store) == before
        assert (again.rows, again.renamed, again.unkeyed, again.erased) == ({}, 0, 0, 0)
        assert sum(again.already_there.values()) == data.count(b'"row":') - sum(counts(before, *OWN))


def test_an_empty_store_makes_a_file_that_can_be_imported(engine, somewhere):
    data, answer = exported(engine)

    assert answer.rows == {}
    assert somewhere().import_from(io.BytesIO(data)).rows == {}


# -- a part of a store


def test_a_tenant_or_a_persona_alone(engine, somewhere):
    fill(engine)
    for selection in ({"tenant": "acme"}, {"persona": "main"}, {"tenant": "acme", "persona": "main"}, {"tenant": ""}):
        other = somewhere(f"{len(selection)}{selection}.db")

        other.import_from(io.BytesIO(exported(engine, **selection)[0]))

        found = {key: row for key, row in contents(other).items() if key[0] != "settings"}
        assert found == {key: row for key, row in contents(engine).items() if selection.items() <= axes(row).items()}
        assert found


@pytest.mark.parametrize("selection", [{"persona": ""}, {"persona": 7}, {"tenant": "a\nb"}], ids=str)
def test_a_name_that_cannot_be_one_is_refused(engine, tmp_path, selection):
    with pytest.raises(InvalidInput):
        engine.export_to(tmp_path / "x.jsonl", **selection)
    assert list(tmp_path.glob("x*")) == []


# -- vectors and words


def test_vectors_may_be_left_out_of_the_file_or_of_the_store(engine, somewhere):
    engine.persona("main").memories.write_many(["Tea is at four.", "Supper is at eight."])
    whole, without = exported(engine)[0], exported(engine, vectors=False)[0]
    assert b'"vectors"' not in without.split(b"\n", 1)[1]
    for name, data, options in (("1", without, {}), ("2", whole, {"vectors": False})):
        other = somewhere(f"{name}.db")

        imported = other.import_from(io.BytesIO(data), **options)

        assert counts(contents(other), "memories", "vectors") == [2, 0]
        assert imported.without_vectors == (2 if options else 0)
        assert other.persona("main").recall("when is tea?").hits
        assert other.backfill() == 2
        other.drain()
        assert contents(other) == contents(engine)


def test_vectors_of_another_embedder_are_refused_unless_they_are_left_out(engine, somewhere):
    engine.persona("main").memories.write("Tea is at four.")
    data, _ = exported(engine)
    fixed = FixedEmbedder({"Supper is at eight.": [1, 0]})
    used, new, silent = (
        somewhere("used.db", embedder=fixed),
        somewhere("new.db", embedder=fixed),
        somewhere("silent.db", embedder="none"),
    )
    used.persona("main").memories.write("Supper is at eight.")
    for other in (used, new, silent):
        before = contents(other)

        with pytest.raises(ConfigurationError, match="--no-vectors"):
            other.import_from(io.BytesIO(data))

        assert contents(other) == before
        assert other.import_from(io.BytesIO(data), vectors=False).rows["memories"] == 1
    assert used.doctor().embedder == "test/fixed@2"
    assert silent.doctor().embedder is None


def test_a_new_store_is_made_with_the_embedder_of_the_file(make_engine, somewhere):
    engine = make_engine(embedder="none")
    engine.persona("main").memories.write("Tea is at four.")
    worded = somewhere("worded.db")
    worded.persona("main").memories.write("Supper is at eight.")
    silent, talking = somewhere("silent.db", embedder="auto"), somewhere("talking.db", embedder="auto")

    silent.import_from(io.BytesIO(exported(engine)[0]))
    talking.import_from(io.BytesIO(exported(worded)[0]))

    assert silent.doctor().embedder is None
    assert talking.doctor().embedder == "hash/words@512"
    assert talking.doctor().healthy
    written = talking.persona("main").memories.write("Tea is at four.")
    assert written.degraded is None


def test_words_are_indexed_anew_in_the_language_of_the_store(make_engine, somewhere):
    engine = make_engine(language="german")
    engine.persona("main").memories.write("The runners were running.", category="Sports")
    english = somewhere()

    imported = english.import_from(io.BytesIO(exported(engine)[0]))

    assert imported.reindexed == 1
    native = somewhere("native.db")
    native.persona("main").memories.write("The runners were running.", category="Sports")
    terms = ("cells", "category_terms", "content_terms", "length")
    found, expected = (
        [{name: row[name] for name in terms} for key, row in contents(store).items() if key[0] == "memories"]
        for store in (english, native)
    )
    assert found == expected
    assert english.persona("main").recall("did they run?").hits


def test_words_of_another_release_are_indexed_anew(engine, somewhere):
    engine.persona("main").memories.write("Tea is at four.")
    lines = exported(engine)[0].splitlines(keepends=True)[:-1]
    header = json.loads(lines[0]) | {"terms": 0}
    data, _ = edited(sealed([json.dumps(header).encode() + b"\n", *lines[1:]]), "memories", content_terms=" stale ")
    other = somewhere()

    assert other.import_from(io.BytesIO(data)).reindexed == 1
    assert contents(other) == contents(engine)


# -- into a store that has rows of its own


def test_a_short_id_that_is_taken_gives_way(engine, somewhere):
    mine = engine.persona("main").memories.write("Tea is at four.")
    other = somewhere()
    theirs = other.persona("main").memories.write("Supper is at eight.")
    data, _ = edited(exported(engine)[0], "memories", short_id=theirs.short_id)

    imported = other.import_from(io.BytesIO(data))

    assert (imported.rows["memories"], imported.renamed, imported.unkeyed) == (1, 1, 0)
    assert "1 with a new short id" in str(imported)
    found = other.persona("main").memories.get(mine.id).memory
    assert found.content == "Tea is at four."
    assert found.short_id != theirs.short_id
    assert other.persona("main").memories.get(found.short_id).memory == found
    assert other.persona("main").memories.get(theirs.short_id).memory.content == "Supper is at eight."


def test_a_memory_that_another_one_says_too_is_kept_beside_it(engine, somewhere):
    engine.persona("main").memories.write("Tea is at four.")
    other = somewhere()
    other.persona("main").memories.write("Tea is at four.")
    data, _ = exported(engine)

    imported = other.import_from(io.BytesIO(data))

    assert (imported.rows["memories"], imported.renamed, imported.unkeyed) == (1, 0, 1)
    rows = [row for key, row in contents(other).items() if key[0] == "memories"]
    assert sorted(row["dedupe_key"] is None for row in rows) == [False, True]
    assert other.persona("main").memories.write("Tea is at four.").created is False
    assert other.import_from(io.BytesIO(data)).rows == {}


def test_rows_that_are_there_are_left_alone(engine, somewhere):
    memory = engine.persona("main").memories.write("Tea is at four.")
    data, _ = exported(engine)
    engine.persona("main").memories.supersede(memory.id, "Tea is at five.")
    before = contents(engine)

    imported = engine.import_from(io.BytesIO(data))

    assert contents(engine) == before
    assert imported.already_there == {"memories": 1, "sources": 1, "vectors": 1}


def test_a_row_that_is_there_keeps_its_history_and_no_other(engine, somewhere):
    me = engine.persona("main")
    me.user_model.write("baseline", "Based in Lisbon.", 9)
    memory = me.memories.write("Tea is at four.", source={"type": "manual"})
    copy = somewhere()
    copy.import_from(io.BytesIO(exported(engine)[0]))
    for home in ("Porto", "Braga"):
        me.user_model.write("baseline", f"Moved to {home}.", 9)
    me.memories.supersede(memory.id, "Tea is at five.")

    imported = copy.import_from(io.BytesIO(exported(engine)[0]))

    there = copy.persona("main")
    assert imported.already_there["user_model_versions"] == 2
    assert counts(contents(copy), "user_model_versions", "memory_versions") == [0, 0]
    assert [memory.content for memory in there.memories.list()] == ["Tea is at five.", "Tea is at four."]
    there.user_model.write("baseline", "Moved to Faro.", 9)
    assert [row.content for row in there.user_model.history("baseline")] == ["Based in Lisbon.", "Moved to Faro."]
    assert there.user_model.undo("baseline").content == "Based in Lisbon."


@pytest.mark.behaviour("W04")
def test_a_text_that_was_revised_here_gets_no_vector_of_the_old_one(make_engine):
    embedder = DeferredEmbedder(HashWords())
    engine = make_engine(embedder=embedder, background="external", preset="statements")
    me = engine.persona("main").scoped(people=["ana"])
    kept = me.memories.keep("Ana keeps two grey cats in the house", about="person:ana")
    engine.drain()
    data, _ = exported(engine)
    embedder.errors = [EmbedderUnavailable("down")]
    me.memories.keep("Ana owns three black dogs in the yard", about="person:ana", id=kept.memory.id)

    assert engine.import_from(io.BytesIO(data)).already_there["vectors"] == 1

    assert engine.drain() == 0
    assert me.memories.nearest("Ana owns three black dogs in the yard").legs["vector"] == pytest.approx(1, abs=1e-5)


def test_vectors_still_to_come_are_made_in_the_store_they_come_to(make_engine, somewhere):
    engine = make_engine(embedder=DeferredEmbedder(HashWords()), background="external")
    engine.persona("main").memories.write("Tea is at four.")
    other = somewhere(embedder=DeferredEmbedder(HashWords()), background="external")
    other.persona("main").memories.write("The kettle leaks.")
    other.drain()
    other.import_from(io.BytesIO(exported(engine)[0]))
    assert [job.kind for job in other.jobs()] == ["embed"]
    assert other.drain() == 0
    assert other.persona("main").stats().vectors == 2


def test_what_was_erased_here_does_not_come_back(engine):
    engine.persona("main").memories.write("Tea is at four.")
    engine.persona("main", user="ana").memories.write("Ana likes tea.")
    data, _ = exported(engine)
    engine.erase(user="ana")
    before = {key: row for key, row in contents(engine).items() if key[0] != "erasures"}

    imported = engine.import_from(io.BytesIO(data))

    assert {key: row for key, row in contents(engine).items() if key[0] != "erasures"} == before
    assert imported.erased == imported.rows["memories"] * 3 == 3
    assert "3 rows erased again" in str(imported)


def test_what_was_erased_does_not_come_back_into_a_store_that_has_nothing_else(engine):
    engine.persona("main").memories.write("Tea is at four.")
    data, _ = exported(engine)
    engine.erase(persona="main")

    assert engine.import_from(io.BytesIO(data)).erased == 3
    assert counts(contents(engine), "memories", "sources", "vectors") == [0, 0, 0]


def test_what_was_erased_elsewhere_says_nothing_about_rows_here(engine, somewhere):
    other = somewhere()
    other.persona("main").memories.write("Tea is at four.")
    engine.persona("main").memories.write("Supper is at eight.")
    engine.erase(persona="main")
    data, _ = exported(engine)
    empty = somewhere("empty.db")

    assert other.import_from(io.BytesIO(data)).erased == 0
    assert other.reapply_erasures() == 0
    assert counts(contents(other), "memories", "erasures") == [1, 0]
    empty.import_from(io.BytesIO(data))
    assert counts(contents(empty), "memories", "erasures") == [0, 1]


# -- files


def test_a_file_is_its_owners_and_none_is_replaced_unasked(engine, tmp_path):
    path = tmp_path / "x.jsonl"
    engine.persona("main").memories.write("Tea is at four.")
    engine.export_to(path)
    before = path.read_bytes()
    engine.persona("main").memories.write("Supper is at eight.")

    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidInput, match="is there already"):
        engine.export_to(path)
    assert path.read_bytes() == before
    assert engine.export_to(path, overwrite=True).rows["memories"] == 2
    assert sorted(file.name for file in tmp_path.glob("*x.jsonl*")) == ["x.jsonl"]


@pytest.mark.parametrize("place", ["", "no/such/folder/x.jsonl", 7, None], ids=repr)
def test_a_place_that_cannot_be_one_is_refused(engine, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    for verb in (engine.export_to, engine.import_from, engine.backup):
        with pytest.raises((InvalidInput, ConfigurationError)):
            verb(place)


def test_an_export_that_fails_leaves_no_file(engine, tmp_path):
    engine.persona("main").memories.write("Tea is at four.")

    def stop(done, total):
        raise StoreUnavailable("stopped")

    with pytest.raises(StoreUnavailable, match="stopped"):
        engine.export_to(tmp_path / "x.jsonl", progress=stop)
    assert list(tmp_path.glob("*jsonl*")) + list(tmp_path.glob(".*jsonl*")) == []


def test_progress_goes_from_the_first_row_to_the_last(engine, somewhere, tmp_path):
    engine.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(600)])
    told, read = [], []
    engine.export_to(tmp_path / "x.jsonl", progress=lambda *at: told.append(at))
    somewhere().import_from(tmp_path / "x.jsonl", progress=lambda *at: read.append(at))

    assert told == [(1000, 1800), (1800, 1800)]
    assert read == sorted(read)
    assert len(read) > 3
    assert read[-1] == ((tmp_path / "x.jsonl").stat().st_size,) * 2


def test_what_is_written_meanwhile_is_not_in_the_file(make_engine, backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory has one connection, and nobody writes meanwhile")
    engine, writer = make_engine(), MemoryEngine(backend.url, embedder="hash/words")
    engine.persona("main").memories.write("Tea is at four.")
    late: list[object] = []

    class Stream(io.BytesIO):
        def write(self, data):
            if not late:
                late.append(writer.persona("main").memories.write("Supper is at eight."))
            return super().write(data)

    stream = Stream()
    answer = engine.export_to(stream)
    writer.close()

    assert answer.rows == {"memories": 1, "sources": 1, "vectors": 1}
    assert b"Supper" not in stream.getvalue()
    assert engine.persona("main").stats().memories == 2


# -- what is wrong with a file


def test_a_file_cut_off_anywhere_stores_nothing(engine, somewhere, tmp_path):
    fill(engine)
    engine.export_to(tmp_path / "x.gz")
    plain, packed = exported(engine)[0], (tmp_path / "x.gz").read_bytes()
    other = somewhere()
    other.persona("main").memories.write("The kettle is blue.")
    before = contents(other)
    for data in (plain, packed):
        for share in (0, 0.01, 0.3, 0.5, 0.9, 0.999):
            path = tmp_path / f"{share}"
            path.write_bytes(data[: int(share * len(data))])
            with pytest.raises(InvalidInput, match=r"^line \d+: .*Nothing was imported\.$") as caught:
                other.import_from(path)
            assert "release" not in str(caught.value)
    assert contents(other) == before


def test_a_damaged_file_stores_nothing(engine, somewhere):
    fill(engine)
    data, _ = exported(engine)
    packed = bytearray(gzip.compress(data))
    packed[len(packed) // 2] ^= 0xFF
    lines = data.splitlines()
    first = next(n for n, line in enumerate(lines, start=1) if b'"table":"memories"' in line)
    last = len(lines)
    other = somewhere()
    for bad, line in (
        (data.replace(b"Tea is at four.", b"Tea is at five.", 1), last),
        (data.replace(b'"memories":', b'"memories": 1', 1), last),
        (data.replace(b'"version":1', b'"version":9', 1), 1),
        (data.replace(b'"revision":"000', b'"revision":"999', 1), 1),
        (data.replace(b'"day":', b'"days":', 1), first),
        (data.replace(b'"day":"20', b'"day":"2O', 1), first),
        (data + data, last + 1),
        (b"\n".join(lines[:5]) + b"\n", 6),
        (bytes(packed), None),
    ):
        with pytest.raises(UnreadableArchive) as caught:
            other.import_from(io.BytesIO(bad))
        assert line in (None, caught.value.line), (str(caught.value), line)
    assert counts(contents(other), "memories", "sources", "vectors") == [0, 0, 0]


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("memories", {"importance": 11}),
        ("memories", {"status": "lost"}),
        ("memories", {"short_id": "longer-than-eight"}),
        ("memories", {"valid_from": "2031-01-01T00:00:00+00:00", "valid_to": "2030-01-01T00:00:00+00:00"}),
        ("sources", {"memory_id": str(UUID(int=1))}),
        ("sources", {"type": "rumour"}),
        ("vectors", {"vector": "AACAPw=="}),
        ("vectors", {"model": "hash/words"}),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
@pytest.mark.in_turn
def test_a_row_that_the_tables_do_not_take_is_named_by_its_line(engine, somewhere, backend, table, values):
    if "short_id" in values and not backend.is_postgres:
        pytest.skip("not applicable: SQLite counts no characters")
    engine.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(20)])
    data, line = edited(exported(engine)[0], table, **values)
    before = contents(engine)
    if backend.is_postgres:
        engine.erase(persona="main")
        before = contents(engine)
        target = engine
    else:
        target = somewhere()
        before = contents(target)
    with pytest.raises(UnreadableArchive) as caught:
        target.import_from(io.BytesIO(data))

    assert caught.value.line == line
    assert "shelf" not in str(caught.value)
    assert counts(contents(target), "memories", "sources") == counts(before, "memories", "sources")


# -- faults


_IMPORTING = """
import os, signal, sys
from memoranda import MemoryEngine
calls = []
def progress(done, total):
    calls.append(done)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
MemoryEngine(sys.argv[1], embedder="hash/words").import_from(sys.argv[2], progress=progress)
"""


def test_an_import_that_is_killed_leaves_nothing(backend, somewhere, make_engine, tmp_path):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory ends with its process")
    source = somewhere()
    source.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(700)])
    source.export_to(tmp_path / "x.jsonl")
    engine = make_engine()
    engine.persona("main").memories.write("Tea is at four.")
    before = contents(engine)

    done = subprocess.run([sys.executable, "-c", _IMPORTING, backend.url, str(tmp_path / "x.jsonl")], check=False)

    assert done.returncode == -signal.SIGKILL
    assert contents(engine) == before
    assert engine.import_from(tmp_path / "x.jsonl").rows["memories"] == 700
    assert len(contents(engine)) == len(before) + 2100
    assert engine.doctor().healthy


def test_two_imports_of_one_file_at_once_store_it_once(backend, make_engine, somewhere, tmp_path):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: two engines share no store in memory")
    source = somewhere()
    source.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(700)])
    source.export_to(tmp_path / "x.jsonl")
    make_engine().persona("main").stats()
    answers, engines = [], [MemoryEngine(backend.url, embedder="hash/words") for _ in range(3)]

    def work(engine):
        answers.append(engine.import_from(tmp_path / "x.jsonl"))

    threads = [threading.Thread(target=work, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = contents(engines[0])
    for engine in engines:
        engine.close()

    assert sorted(answer.rows.get("memories", 0) for answer in answers) == [0, 0, 700]
    assert found == contents(source)


def test_writers_and_an_import_lose_nothing_to_each_other(backend, make_engine, somewhere, tmp_path):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: two engines share no store in memory")
    source = somewhere()
    source.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(600)])
    source.export_to(tmp_path / "x.jsonl")
    engine, writer = make_engine(), MemoryEngine(backend.url, embedder="hash/words")
    engine.persona("main").stats()
    written = []

    def write():
        for n in range(0, 600, 20):
            written.append(writer.persona("main").memories.write(f"The shelf number {n} is green."))

    thread = threading.Thread(target=write)
    thread.start()
    imported = engine.import_from(tmp_path / "x.jsonl")
    thread.join()
    writer.close()

    assert imported.rows["memories"] == 600
    rows = [row for key, row in contents(engine).items() if key[0] == "memories"]
    new = sum(answer.created for answer in written)
    assert len(rows) == 600 + new
    # Of two rows that say the same, the one that came first holds the other off.
    assert sum(row["dedupe_key"] is None for row in rows) == imported.unkeyed == new


def test_an_open_file_is_not_read_twice(own_postgres, somewhere, twin):
    source = somewhere()
    source.persona("main").memories.write_many([f"The shelf number {n} is green." for n in range(30)])
    data = exported(source)[0]
    engine = twin(MemoryEngine(own_postgres.url(), embedder="hash/words", timeout=5))
    engine.setup()
    engine.persona("main").stats()

    class Stream(io.BytesIO):
        def readline(self, size=-1):
            line = super().readline(size)
            if b'"rows"' in line[:8]:
                own_postgres.restart()
            return line

    with pytest.raises(StoreUnavailable):
        engine.import_from(Stream(data))
    assert engine.persona("main").stats().memories == 0
    engine.close()


def test_what_an_import_says_in_words():
    nothing = Imported(rows={}, already_there={})
    everything = Imported(
        rows={"memories": 1000, "sources": 234},
        already_there={"memories": 1},
        renamed=2,
        unkeyed=3,
        reindexed=1000,
        without_vectors=1,
        erased=4,
    )

    assert str(nothing) == "imported 0 memories, 0 rows in all"
    assert str(everything) == (
        "imported 1,000 memories, 1,234 rows in all, 1 row already there, 2 with a new short id, "
        "3 that another memory says, too, 1,000 with their words indexed anew, 1 vector left out, "
        "4 rows erased again, as before"
    )
