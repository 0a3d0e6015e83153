"""What comes between the search for repeats and the transaction that relies on it is seen all the same."""

from dataclasses import replace
from uuid import UUID

import pytest

from memoranda.db.queries import adding, newcomers, repeats
from memoranda.drafts import draft
from memoranda.fields import check
from memoranda.ids import new_short_id
from memoranda.testing import FixedEmbedder

TEXT = "The spare key hangs behind the door of the shed."


@pytest.fixture(params=["ledger", "statements"])
def me(request, make_engine):
    engine = make_engine(preset=request.param)
    me = engine.persona("main", user="ana").scoped(people=["ana"])
    me.memories.write("A kettle that has nothing to do with it.", about="person:ana")
    return me


def looked(me, *texts):
    """Return drafts with their vectors and what was found for them, and a function that stores them."""
    context, runner = me.handle._context, me.handle._runner
    setting, space = context.writing(), context.space
    drafts = [draft(*check(text, {"about": "person:ana"}), setting) for text in texts]
    vectors = list(space.embedder.embed([item.text for item in drafts]))
    database = runner._database
    found = database.read(repeats.look, drafts, vectors, space.model, setting)
    return lambda: [item.outcome for item in database.run(adding.add, drafts, vectors, space.model, setting, found)]


def test_what_another_stored_meanwhile_is_known(me):
    store = looked(me, TEXT)
    me.memories.write(TEXT, about="person:ana")
    assert store() == ["known"]


def test_what_was_taken_back_meanwhile_is_new(me):
    old = me.memories.write(TEXT, about="person:ana")
    store = looked(me, TEXT)
    me.memories.delete(old.id)
    assert store() == ["new"]


def test_what_stands_in_the_batch_before_is_known(me):
    assert looked(me, TEXT, "Something else entirely.", TEXT)() == ["new", "new", "known"]


def test_rows_that_cannot_be_told_from_older_ones_are_searched_for(me, monkeypatch):
    monkeypatch.setattr(newcomers, "_REMEMBERED", 1)
    store = looked(me, TEXT)
    # A host whose clock is behind: what it stores sorts before what was there.
    with monkeypatch.context() as behind:
        behind.setattr("memoranda.drafts.new_ids", lambda count: [(UUID(int=1), new_short_id(), UUID(int=2))])
        me.memories.write(TEXT, about="person:ana")
    assert store() == ["known"]


def test_newcomers_are_told_from_what_was_there(me):
    context, database = me.handle._context, me.handle._runner._database
    scope = context.writing().scope
    before = database.read(newcomers.mark, scope)
    assert database.read(newcomers.since, scope, before) == []
    ids = [me.memories.write(f"Parcel {number} is here.", about="person:ana").id for number in range(3)]
    assert sorted(database.read(newcomers.since, scope, before)) == sorted(ids)
    gone = replace(before, rows=before.rows + 1)
    assert database.read(newcomers.since, scope, gone) is None


@pytest.mark.behaviour("C23")
def test_what_is_told_twice_is_one_memory_and_a_page_tells_nothing(make_engine):
    me = make_engine(preset="ledger").persona("main", user="ana")
    page = me.memories.write(f"All about the shed. {TEXT}", metadata={"kind": "page"})
    first = me.memories.write(TEXT)
    assert first.created
    for again in (TEXT, TEXT.upper(), TEXT.rstrip(".")):
        told = me.memories.write(again)
        assert (told.created, told.id) == (False, first.id)
    assert {memory.id for memory in me.memories.list()} == {page.id, first.id}


@pytest.mark.behaviour("C24")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ana prefers Zed", "Ana prefers Cursor"),
        ("The limit is 1000 rows", "The limit is 2000 rows"),
        ("Ana likes tea", "Ana does not like tea"),
    ],
)
def test_a_correction_is_kept_though_no_vector_could_lie_nearer(make_engine, old, new):
    me = make_engine(preset="ledger", embedder=FixedEmbedder({old: [1, 0], new: [1, 0]})).persona("main", user="ana")
    assert [me.memories.write(text).created for text in (old, new, old)] == [True, True, False]
