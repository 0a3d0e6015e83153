"""The vectors of chunks are made, moved, counted and looked after as those of memories are."""

import pytest
from sqlalchemy import text

from memoranda.policies import FloorPolicy
from memoranda.testing import CountingEmbedder, HashedEmbedder, unwrap

MANUAL = "The kettle is descaled with vinegar once a month."
SAID = "Ana moved the kettle to the kitchen."


def other():
    """Return an embedder of another size than the store's."""
    return HashedEmbedder(128, name="test/other")


def execute(engine, statement):
    """Run a statement behind the engine's back."""
    prefix = "memoranda." if unwrap(engine)._database.dialect.schema else "memoranda_"
    unwrap(engine)._database.run(lambda conn, tables: conn.execute(text(statement.format(p=prefix))))


def stored(engine):
    me = engine.persona("main")
    me.memories.write(SAID)
    me.knowledge.ingest("kettle", text=MANUAL)
    return me


@pytest.mark.behaviour("K07")
def test_a_store_moves_chunks_and_memories_together(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    stored(make_engine())
    make_engine().persona("side").knowledge.ingest("alone", text=MANUAL)  # a persona without a memory
    new = make_engine(embedder=other())

    assert new.reembed(prune=True) == 3

    me = new.persona("main")
    found = me.recall("how is the kettle descaled", floor=FloorPolicy(enabled=False))
    assert {hit.kind for hit in found} == {"memory", "knowledge"} and all(hit.legs["vector"] for hit in found)
    assert [hit.legs["vector"] > 0 for hit in new.persona("side").recall("descaled with vinegar")] == [True]
    report = new.doctor()
    assert (report.vectors, report.other_vectors, report.without_vector) == (3, 0, 0)
    assert new.reembed() == 0


@pytest.mark.behaviour("K05")
def test_backfill_leaves_jobs_for_both_and_each_is_embedded_once(make_engine):
    counting = CountingEmbedder(HashedEmbedder(64))
    engine = make_engine(embedder=counting)
    me = stored(engine)
    execute(engine, "delete from {p}vectors")
    unwrap(engine)._database.dialect.forget()
    before = len(counting.texts)

    assert (engine.backfill(), engine.backfill()) == (2, 0)
    assert engine.drain() == 0

    assert sorted(counting.texts[before:]) in ([], sorted([SAID, MANUAL]))  # the cache may know them still
    assert all(hit.legs["vector"] > 0 for hit in me.recall("kettle", limit=10))
    assert engine.backfill() == 0


def test_numbers_tell_of_documents_and_chunks(engine):
    me = stored(engine)
    stats = me.stats()
    assert (stats.memories, stats.vectors, stats.documents, stats.chunks, stats.embedded_chunks) == (1, 1, 1, 1, 1)
    somebody = engine.persona("main", tenant="acme", user="ana").stats()
    assert (somebody.documents, somebody.chunks, somebody.embedded_chunks) == (0, 0, 0)


def test_a_doctor_looks_at_the_vectors_of_chunks(engine):
    stored(engine)
    whole = engine.doctor()
    assert whole.healthy and (whole.memories, whole.chunks, whole.vectors) == (1, 1, 2)

    execute(engine, "delete from {p}vectors where kind = 'knowledge'")
    found = engine.doctor()
    assert found.without_vector == 1
    assert "1 of 2 memories and chunks have no vector" in found.findings[0].message

    assert (engine.backfill(), engine.drain()) == (1, 0)
    execute(engine, "delete from {p}knowledge_chunks")
    assert [finding.name for finding in engine.doctor().findings] == ["ownerless vectors"]


def test_a_doctor_compares_the_text_index_of_every_table(backend, engine):
    if backend.is_postgres:
        pytest.skip("not applicable: Postgres generates the column of full text")
    stored(engine)
    engine.persona("main").conversation("chat").append("The ferry leaves at ten")
    for noun in ("knowledge_chunks", "messages"):
        execute(engine, f"insert into {{p}}{noun}_fts({{p}}{noun}_fts) values ('delete-all')")
    messages = [finding.message for finding in engine.doctor().findings]
    assert len(messages) == 2
    assert "knowledge_chunks" in messages[0] and "messages" in messages[1]
