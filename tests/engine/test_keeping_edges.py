"""Where keeping, taking back and looking back meet membership, presence, others' eyes and each other."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, NotAllowed
from memoranda.testing import FixedEmbedder


def contents(found):
    return [getattr(item, "memory", item).content for item in found]


@pytest.fixture
def shared(make_engine):
    """Two members of a project in one tenant."""
    engine = make_engine(preset="ledger")
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    for user in ("ana", "bob"):
        ana.projects.add_member("apollo", user)
    return ana, bob


@pytest.mark.behaviour("W25")
def test_who_has_left_a_project_changes_nothing_that_is_shared_with_it(shared):
    ana, bob = shared
    row = ana.memories.keep("The quay is shut.", about="everyone", project="apollo").memory
    gone = ana.memories.write("The mole is flooded.", project="apollo").memory
    ana.memories.mark(gone.id, "expired")
    ana.projects.remove_member("apollo", "ana")

    with pytest.raises(NotAllowed, match="member"):
        ana.memories.keep("Buy my boat, call Ana.", id=row.id, about="everyone")
    with pytest.raises(NotAllowed, match="member"):
        ana.memories.undo(gone.id)
    assert contents(bob.memories.list()) == ["The quay is shut."]


@pytest.mark.behaviour("W36")
def test_a_statement_about_somebody_absent_is_one_memory_and_shows_no_old_text(make_engine):
    me = make_engine(preset="statements").persona("main").scoped(people=["ana"])
    first = me.memories.keep("Bob has a brown dog that is called Luna by everybody", about="person:bob")
    again = me.memories.keep("Bob has a brown dog that is called Luna by everybody now", about="person:bob")
    assert (first.outcome, again.outcome, again.was) == ("remembered", "updated", None)
    with_bob = me.scoped(people=["bob"])
    assert contents(with_bob.memories.list()) == ["Bob has a brown dog that is called Luna by everybody now"]


@pytest.mark.behaviour("R28")
def test_the_search_of_statements_keeps_every_score_from_zero(make_engine):
    vectors = {"asked": [1, 0], "far": [0.29, (1 - 0.29**2) ** 0.5], "near": [0.9, (1 - 0.81) ** 0.5]}
    me = make_engine(preset="statements", embedder=FixedEmbedder(vectors)).persona("main")
    for text in ("far", "near"):
        me.memories.write(text, about="everyone")
    assert contents(me.recall("asked")) == ["near", "far"]


@pytest.mark.behaviour("W34")
def test_no_id_of_a_hidden_successor_reaches_a_reader(shared):
    ana, bob = shared
    old = ana.memories.write("The quay is shut.", project="apollo").memory
    new = ana.memories.supersede(old.id, "The quay reopens in May, keep quiet.", audience="private").memory
    ana.memories.mark(old.id, "expired")

    record = bob.memories.get(old.id)
    assert [record.memory.superseded_by, *(v.memory.superseded_by for v in record.versions)] == [None] * 3
    assert [m.superseded_by for m in bob.memories.history(old.id)] == [None]
    assert [m.superseded_by for m in bob.memories.list(include_inactive=True)] == [None]
    assert [hit.memory.superseded_by for hit in bob.recall("quay shut", include_inactive=True)] == [None]
    assert ana.memories.get(old.id).memory.superseded_by == new.id


@pytest.mark.parametrize("preset", ["standard", "ledger", "statements"])
def test_keeping_and_then_writing_the_same_text_is_one_row(make_engine, preset):
    me = make_engine(preset=preset).persona("main", user="ana")
    me.memories.keep("The spare fuse lies in the top drawer.", about="everyone")
    me.memories.write("The spare fuse lies in the top drawer.", about="everyone")
    assert len(me.memories.list()) == 1


@pytest.mark.behaviour("W20")
def test_a_question_about_the_past_finds_the_words_of_then(make_engine, frozen_clock):
    me = make_engine(preset="statements", clock=frozen_clock).persona("main")
    kept = me.memories.keep("Ana's boat is called Marlin.", about="everyone").memory
    then = frozen_clock()
    frozen_clock.advance(days=9)
    me.memories.keep("Everything was sold in spring.", id=kept.id, about="everyone")

    assert contents(me.recall("What is Ana's boat called?", as_of=then)) == ["Ana's boat is called Marlin."]
    assert contents(me.recall("What was sold in spring?")) == ["Everything was sold in spring."]


def test_undo_and_deletion_of_the_successor_never_wait_for_each_other(make_engine, frozen_clock, mode, backend):
    if mode == "async" or backend.name == "sqlite-memory":
        pytest.skip("not applicable: threads with an engine each")
    one, two = (make_engine(clock=frozen_clock).handle.persona("main") for _ in range(2))
    unexpected = []
    for number in range(40):
        old = one.memories.write(f"The fee {number} is 10.")
        later = frozen_clock() + timedelta(days=5)
        new = one.memories.supersede(old.id, f"The fee {number} is 12.", valid_from=later)
        together = threading.Barrier(2)

        def run(verb, identifier, together=together):
            together.wait()
            try:
                verb(identifier)
            except (MemoryNotActive, MemoryNotFound, InvalidInput):
                pass
            except Exception as error:
                unexpected.append(error)

        with ThreadPoolExecutor(2) as pool:
            pool.submit(run, one.memories.undo, old.id)
            pool.submit(run, two.memories.delete, new.id)
        assert contents(m for m in one.memories.list() if f"fee {number} " in m.content) == [f"The fee {number} is 10."]
    assert unexpected == []
