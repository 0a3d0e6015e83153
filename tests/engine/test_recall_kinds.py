"""Recall finds memories and knowledge together: one list of labelled hits, each kind ranked and judged by itself."""

import re
from datetime import date
from pathlib import Path

import pytest

from memoranda import KnowledgeHit, MemoryHit
from memoranda.errors import InvalidInput
from memoranda.policies import FloorPolicy
from memoranda.testing import FixedEmbedder

OPEN = FloorPolicy(enabled=False)
QUESTION = "How is the kettle descaled?"
MANUAL = "The kettle is descaled with vinegar once a month."
SAID = "Ana descaled the kettle in March."
OTHER = "The tram to the harbour leaves at ten."


def told(hits):
    return [(hit.kind, hit.content) for hit in hits]


@pytest.fixture
def me(make_engine):
    """A persona that has a memory and a document about the kettle, and one of each about something else."""
    table: dict[str, list[float]] = {
        QUESTION: [1, 0, 0],
        MANUAL: [0.9, 0.1, 0],
        SAID: [0.8, 0.2, 0],
        OTHER: [0, 0, 1],
        "tram": [0, 0, 1],
    }
    me = make_engine(embedder=FixedEmbedder(table)).persona("main")
    me.memories.write_many([SAID, OTHER])
    me.knowledge.ingest("kettle manual", text=MANUAL)
    return me


@pytest.mark.behaviour("R01", "R11")
def test_memories_and_knowledge_stand_in_one_list_and_say_what_they_are(me):
    found = me.recall(QUESTION, limit=2)

    assert told(found) == [("knowledge", MANUAL), ("memory", SAID)]
    assert [hit.id for hit in found] == [found.chunks[0].id, found.memories[0].id]
    assert isinstance(found[0], KnowledgeHit) and isinstance(found[1], MemoryHit)
    assert re.fullmatch(r"\[knowledge kettle manual#0\] The kettle .* a month\.", str(found[0]))
    assert str(found).splitlines() == [str(hit) for hit in found]
    assert all(0 < hit.confidence <= 1 and hit.legs and hit.reasons for hit in found)


def test_the_limit_bounds_the_whole_list(me):
    assert told(me.recall(QUESTION, limit=1)) == [("knowledge", MANUAL)]


def test_one_kind_alone_is_asked_where_the_caller_says_so(me):
    assert {hit.kind for hit in me.recall(QUESTION, kinds=("memory",))} == {"memory"}
    assert {hit.kind for hit in me.recall(QUESTION, kinds=["knowledge"])} == {"knowledge"}
    assert {hit.kind for hit in me.recall(QUESTION, kinds="knowledge")} == {"knowledge"}
    for kinds in ((), ("message",), ("memory", "books"), 7, [None]):
        with pytest.raises(InvalidInput, match="memory, knowledge"):
            me.recall(QUESTION, kinds=kinds)


def test_filters_that_knowledge_has_nothing_for_ask_memories_alone(me):
    today = me.memories.list()[0].day
    for filters in ({"date": today}, {"types": ["semantic"]}, {"categories": "kitchen"}, {"as_of": "2100-01-01"}):
        assert {hit.kind for hit in me.recall(QUESTION, floor=OPEN, **filters)} <= {"memory"}
        with pytest.raises(InvalidInput, match=next(iter(filters))):
            me.recall(QUESTION, kinds=("knowledge",), **filters)
    assert me.recall(QUESTION, date=date(2020, 1, 1)).abstained
    assert {hit.kind for hit in me.recall(QUESTION, include_inactive=True)} == {"memory", "knowledge"}


def test_sources_ask_the_documents_of_these_names_alone(me):
    me.knowledge.ingest("teapot manual", text=MANUAL)
    assert {chunk.source for chunk in me.recall(QUESTION, sources="teapot manual").chunks} == {"teapot manual"}
    found = me.recall(QUESTION, sources=["teapot manual", "kettle manual"], limit=10)
    assert {hit.kind for hit in found} == {"knowledge"} and len(found) == 2
    assert me.recall(QUESTION, sources=["nowhere"]).abstained
    for refused in ({"kinds": ("memory",)}, {"types": ["semantic"]}, {"sources": [7]}):
        with pytest.raises(InvalidInput, match="sources"):
            me.recall(QUESTION, **{"sources": ["teapot manual"], **refused})
    with pytest.raises(InvalidInput, match="sources"):
        me.memories.list(sources=["teapot manual"])


def test_a_project_narrows_knowledge_as_it_narrows_memories(make_engine):
    me = make_engine(embedder="none").persona("main")
    me.knowledge.ingest("bridge", text="Lisbon for the bridge", project="Bridge-Works")
    me.knowledge.ingest("tunnel", text="Lisbon for the tunnel", project="tunnel")
    me.knowledge.ingest("any", text="Lisbon for nobody")

    def sources(**filters):
        return {chunk.source for chunk in me.recall("lisbon", **filters).chunks}

    assert sources() == {"bridge", "tunnel", "any"}
    assert sources(project="bridge_works") == {"bridge", "any"}


def test_the_floor_judges_each_kind_by_itself_and_abstains_only_when_both_do(me):
    found = me.recall(QUESTION, limit=10)
    assert ("memory", OTHER) in told(me.recall(QUESTION, limit=10, floor=OPEN))
    assert not found.abstained and found.nearest == ()

    only_tram = me.recall("tram", limit=10, floor=FloorPolicy(dense_max=0.5))
    assert told(only_tram) == [("memory", OTHER)]

    none = me.recall("tram", floor=FloorPolicy(least=1.0, each=1.0), kinds=("knowledge",))
    assert none.abstained and none.reason and {hit.kind for hit in none.nearest} == {"knowledge"}


@pytest.mark.behaviour("P12")
def test_knowledge_is_never_put_before_a_model_that_did_not_ask(me):
    for n in range(20):
        me.knowledge.ingest(f"copy {n}", text=MANUAL)
    assert {hit.kind for hit in me.memories.relevant(QUESTION)} == {"memory"}
    assert me.memories.nearest(QUESTION).memory.content == SAID
    assert me.memories.core() == []


@pytest.mark.behaviour("R12")
def test_knowledge_scores_by_words_and_meaning_and_not_by_age(make_engine, frozen_clock):
    content = "The Lisbon office opened."
    embedder = FixedEmbedder({"lisbon": [1, 0], content: [0.8, 0.6]})
    me = make_engine(preset="journal", embedder=embedder, clock=frozen_clock).persona("main")
    me.knowledge.ingest("office.md", text=content)
    for _ in range(2):
        (hit,) = me.recall("lisbon")
        assert hit.score == pytest.approx(0.5772683, abs=5e-7)
        frozen_clock.advance(days=365)


@pytest.mark.behaviour("R13", "K05")
def test_knowledge_is_found_by_its_words_where_there_is_no_embedder(make_engine):
    me = make_engine(embedder="none").persona("main")
    me.knowledge.ingest("kettle manual", text=MANUAL)
    assert told(me.recall("descaled with vinegar")) == [("knowledge", MANUAL)]
    assert told(me.recall("manual")) == [("knowledge", MANUAL)]  # the source is part of what is searched


@pytest.mark.parametrize("preset", ["standard", "journal", "ledger", "statements"])
def test_every_preset_finds_knowledge_by_words_alone(make_engine, preset):
    me = make_engine(embedder="none", preset=preset).persona("main", user="ana")
    me.knowledge.ingest("kettle manual", text=MANUAL)
    assert told(me.recall("descaled with vinegar")) == [("knowledge", MANUAL)]
    assert me.recall("zeppelin").abstained


def test_knowledge_is_seen_by_its_author_and_by_members_it_is_shared_with(make_engine):
    engine = make_engine(embedder="none")
    ana, bob, cem = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob", "cem"))
    for user in (ana, bob):
        user.projects.add_member("harbour", user.handle.scope.user)
    ana.knowledge.ingest("private", text="The crane key hangs by the door")
    ana.knowledge.ingest("shared", text="The crane lifts nine tonnes", project="harbour", audience="project")

    def sources(persona):
        return {chunk.source for chunk in persona.recall("crane").chunks}

    assert sources(ana) == {"private", "shared"}
    assert sources(bob) == {"shared"}
    assert sources(cem) == sources(engine.persona("side", tenant="acme", user="ana")) == set()
    assert sources(engine.persona("main", tenant="acme")) == set()


def test_neighbouring_chunks_speak_for_each_other(make_engine):
    me = make_engine(embedder="none").persona("main")
    filler = "Nothing of interest is said on this page. " * 60
    text = f"{filler}\n\nWhich valve closes the boiler?\n\n{filler}"
    me.knowledge.ingest("boiler", text=text)
    found = me.recall("valve boiler", limit=10, floor=OPEN)
    assert "valve" in found.chunks[0].content
    assert [chunk.source for chunk in found.chunks] == ["boiler"] * len(found)


def test_a_persona_without_documents_costs_one_look(backend, make_engine):
    from sqlalchemy import create_engine, event

    from memoranda import MemoryEngine

    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a caller's engine cannot be on a store in memory")
    make_engine(embedder="none").persona("main").memories.write(OTHER)
    own = create_engine(backend.url)
    statements = []
    with MemoryEngine(own, embedder="none", background="off") as engine:
        me = engine.persona("main")
        me.recall("tram")

        @event.listens_for(own, "before_cursor_execute")
        def _noted(conn, cursor, statement, parameters, context, many):
            statements.append(statement)

        me.recall("tram")
    own.dispose()
    assert len([statement for statement in statements if "knowledge_chunks" in statement]) == 1


def test_knowledge_alone_is_asked_without_a_look_at_memories(backend, make_engine):
    from sqlalchemy import create_engine, event

    from memoranda import MemoryEngine

    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a caller's engine cannot be on a store in memory")
    make_engine(embedder="none").persona("main").knowledge.ingest("manual", text=MANUAL)
    own = create_engine(backend.url)
    statements = []
    with MemoryEngine(own, embedder="none", background="off") as engine:
        me = engine.persona("main")
        me.recall("kettle")

        @event.listens_for(own, "before_cursor_execute")
        def _noted(conn, cursor, statement, parameters, context, many):
            statements.append(statement)

        assert len(me.recall("kettle", kinds=("knowledge",))) == 1
    own.dispose()
    assert statements and not [statement for statement in statements if "memories" in statement]


def test_a_replaced_document_is_found_in_its_new_words_only(me, tmp_path):
    file = Path(tmp_path / "kettle.txt")
    file.write_text(OTHER, encoding="utf-8")
    me.knowledge.ingest("kettle manual", path=file, root=tmp_path)
    assert told(me.recall("tram", kinds=("knowledge",))) == [("knowledge", OTHER)]
    assert not me.recall(QUESTION, kinds=("knowledge",)).hits
