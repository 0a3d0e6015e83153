"""Corrections of corrections: plans, second steps back, what is named and what is not, and two at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, StoreError


def contents(found):
    return [getattr(item, "memory", item).content for item in found]


@pytest.fixture
def pair(make_engine, backend, mode):
    """Two engines' personas for threads."""
    if mode == "async" or backend.name == "sqlite-memory":
        pytest.skip("not applicable: threads with an engine each")
    return [make_engine().handle.persona("main", tenant="acme", user="ana") for _ in range(2)]


def race(*calls):
    """Call everything at once, and return the errors that are no answer to a race."""
    together, unexpected = threading.Barrier(len(calls)), []

    def run(call):
        together.wait()
        try:
            call()
        except (MemoryNotActive, MemoryNotFound, InvalidInput):
            pass
        except Exception as error:
            unexpected.append(error)

    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(run, calls))
    return unexpected


def test_each_undo_takes_one_step_back(me):
    memory = me.memories.write("The rent is 900.").memory
    me.memories.mark(memory.id, "expired")
    me.memories.mark(memory.id, "superseded")

    assert me.memories.undo(memory.id).memory.status == "expired"
    assert me.memories.undo(memory.id).memory.status == "active"
    with pytest.raises(InvalidInput, match="nothing to undo"):
        me.memories.undo(memory.id)
    assert contents(me.memories.list()) == ["The rent is 900."]


def test_what_corrects_a_plan_begins_when_the_plan_would_have(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    first = me.memories.write("The rent is 900.")
    later = frozen_clock() + timedelta(days=30)
    plan = me.memories.supersede(first.id, "The rent is 950.", valid_from=later)
    me.memories.supersede(plan.id, "The rent is 980.")

    assert contents(me.memories.list()) == ["The rent is 900."]
    frozen_clock.advance(days=31)
    assert contents(me.memories.list()) == ["The rent is 980."]


def test_a_plan_that_was_marked_does_not_come_back_beside_what_it_was_to_replace(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    first = me.memories.write("The rent is 900.")
    plan = me.memories.supersede(first.id, "The rent is 950.", valid_from=frozen_clock() + timedelta(days=30))
    me.memories.mark(plan.id, "expired")

    with pytest.raises(InvalidInput, match="write it anew"):
        me.memories.undo(plan.id)
    assert me.memories.write("The rent is 900.").created is False  # it holds off duplicates again
    frozen_clock.advance(days=31)
    assert contents(me.memories.list()) == ["The rent is 900."]


def test_a_memory_that_took_over_and_was_there_before_stays_when_that_is_undone(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    known = me.memories.write("The rent is 950.")
    old = me.memories.write("The rent is 900.")
    me.memories.supersede(old.id, "The rent is 950.")

    undone = me.memories.undo(old.id)
    assert undone.retracted is None
    assert sorted(contents(me.memories.list())) == ["The rent is 900.", "The rent is 950."]
    assert me.memories.get(known.id).memory.status == "active"


def test_nothing_is_replaced_by_what_does_not_hold(me):
    old, gone = me.memories.write("The rent is 900."), me.memories.write("The rent is 950.")
    me.memories.delete(gone.id)
    with pytest.raises(InvalidInput, match="does not hold"):
        me.memories.mark(old.id, "superseded", by=gone.id)
    assert contents(me.memories.list()) == ["The rent is 900."]


@pytest.mark.behaviour("W43")
def test_a_memory_that_was_replaced_is_not_given_a_new_text(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    old = me.memories.keep("The rent is 900.", about="everyone").memory
    me.memories.supersede(old.id, "The rent is 950.", valid_from=frozen_clock() + timedelta(days=3))
    with pytest.raises(MemoryNotActive):
        me.memories.keep("The rent is 1000.", id=old.id, about="everyone")
    ended = me.memories.keep("The gym is open.", about="everyone", valid_to=frozen_clock() + timedelta(days=2)).memory
    frozen_clock.advance(days=5)
    for memory in (old, ended):
        with pytest.raises(MemoryNotActive):
            me.memories.keep("Something else.", id=memory.id, about="everyone")


def test_a_new_text_never_moves_a_memory(make_engine):
    engine = make_engine()
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    for user in ("ana", "bob"):
        ana.projects.add_member("apollo", user)
    row = ana.memories.keep("The quay is shut.", about="everyone", project="apollo", audience="project").memory

    for fields in ({"audience": "private", "project": "apollo"}, {"project": "zeus"}, {"about": "person:ana"}):
        with pytest.raises(InvalidInput, match="another one"):
            ana.memories.keep("My salary is 4000 euros.", id=row.id, **({"about": "everyone"} | fields))
    assert contents(bob.memories.list()) == ["The quay is shut."]


@pytest.mark.behaviour("W37", "W42")
def test_the_same_text_with_something_else_named_changes_that(me):
    me.memories.keep("The spare fuse lies in the drawer.", about="everyone", importance=3, title="Fuse")
    kept = me.memories.keep("The spare fuse lies in the drawer.", about="everyone", importance=9, category="house")
    assert (kept.outcome, kept.was, str(kept)) == ("updated", None, f"Updated [{kept.memory.short_id}].")
    assert (kept.memory.importance, kept.memory.category, kept.memory.title) == (9, "house", "Fuse")
    again = me.memories.keep("The spare fuse lies in the drawer.", about="everyone", importance=9)
    assert again.outcome == "known" and len(me.memories.list()) == 1


def test_a_new_text_keeps_the_title_and_moves_the_day_with_the_event(me):
    kept = me.memories.keep("The fair is on the green.", about="everyone", title="Fair").memory
    moved = me.memories.keep(
        "The fair is in the hall.", about="everyone", id=kept.id, event_time="2026-05-03T10:00:00+00:00"
    ).memory
    assert (moved.title, moved.day.isoformat()) == ("Fair", "2026-05-03")
    assert contents(me.memories.list(date="2026-05-03")) == ["The fair is in the hall."]


def test_a_window_that_would_end_before_it_begins_is_refused(me):
    kept = me.memories.keep("The pass is open.", about="everyone", valid_to="2030-01-01").memory
    with pytest.raises(InvalidInput, match="valid_to"):
        me.memories.keep("The pass is open by day.", about="everyone", id=kept.id, valid_from="2031-01-01")
    assert contents(me.memories.list()) == ["The pass is open."]


def test_what_was_so_long_ago_never_displaces_what_is_so(make_engine):
    me = make_engine(preset="statements").persona("main")
    now = me.memories.keep(
        "Ana works at the old mill in the valley by the lake", about="everyone", valid_from="2024-01-01"
    )
    then = me.memories.keep(
        "Ana works at the old mill in the valley by the lake now",
        about="everyone",
        valid_from="2010-01-01",
        valid_to="2012-01-01",
    )
    assert (now.outcome, then.outcome) == ("remembered", "remembered")
    assert contents(me.memories.list()) == ["Ana works at the old mill in the valley by the lake"]


@pytest.mark.parametrize("preset", ["standard", "ledger", "statements"])
@pytest.mark.parametrize("verb", ["write", "keep"])
def test_a_repeat_about_somebody_absent_tells_nothing_its_caller_did_not_say(make_engine, preset, verb):
    eve = make_engine(preset=preset).persona("main", user="eve")
    said = "Ana is ill and stays in the house by the sea."
    first = eve.scoped(people=["ana"]).memories.keep(said, about="person:ana", category="health", metadata={"ward": 7})

    again = getattr(eve.scoped(people=["bob"]).memories, verb)(said, about="person:ana")

    assert again.memory.id == first.memory.id
    assert (again.memory.content, again.memory.category, again.memory.metadata) == (said, None, {})
    assert len(eve.scoped(people=["ana"]).memories.list()) == 1


def test_a_repeat_that_is_to_be_always_in_mind_is(make_engine):
    me = make_engine(preset="ledger").persona("main", user="ana")
    first = me.memories.write("The alarm code is with Mara.")
    again = me.memories.write("The alarm code is with Mara.", core=True)
    assert (again.created, again.id) == (False, first.id)
    assert contents(me.memories.core()) == ["The alarm code is with Mara."]


def test_crossed_marks_make_no_circle(pair):
    one, two = pair
    for number in range(15):
        a, b = (one.memories.write(f"Fee {number} is {value}.").id for value in (10, 12))
        assert (
            race(
                lambda a=a, b=b: one.memories.mark(a, "superseded", by=b),
                lambda a=a, b=b: two.memories.mark(b, "superseded", by=a),
            )
            == []
        )
        assert len([m for m in one.memories.list() if f"Fee {number} " in m.content]) == 1


def test_two_texts_that_become_one_at_once_are_two_rows_and_no_error(pair):
    one, two = pair
    for number in range(15):
        a, b = (
            one.memories.keep(f"{what} {number} stands alone.", about="everyone").memory.id for what in ("Oak", "Elm")
        )
        assert (
            race(
                lambda a=a, n=number: one.memories.keep(f"The tree {n} is gone.", about="everyone", id=a),
                lambda b=b, n=number: two.memories.keep(f"The tree {n} is gone.", about="everyone", id=b),
                lambda n=number: two.memories.write(f"The tree {n} is gone.", about="everyone"),
            )
            == []
        )


def test_keeping_and_superseding_in_one_project_never_wait_for_each_other(pair):
    one, two = pair
    one.projects.add_member("apollo", "ana")
    unexpected = []
    for number in range(20):
        row = one.memories.keep(f"Pier {number} is shut.", about="everyone", project=f"harbour {number}").memory
        unexpected += race(
            lambda r=row, n=number: one.memories.keep(f"Pier {n} is open.", about="everyone", id=r.id),
            lambda r=row, n=number: two.memories.supersede(r.id, f"Pier {n} is gone.", project=f"Harbour-{n}"),
        )
    assert [error for error in unexpected if isinstance(error, StoreError)] == []
