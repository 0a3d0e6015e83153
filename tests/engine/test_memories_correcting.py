"""Corrections close what no longer holds and destroy nothing."""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, NotTheAuthor

PAST, FUTURE = datetime(2025, 6, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def main(make_engine, frozen_clock):
    return make_engine(clock=frozen_clock).persona("main")


def contents(memories):
    return [memory.content for memory in memories]


# -- supersede


@pytest.mark.behaviour("W17", "S14")
def test_a_supersede_stores_the_new_and_closes_the_old(main, frozen_clock):
    old = main.memories.write("Ana works at Acme.")
    later = frozen_clock.advance(days=3)
    new = main.memories.supersede(old.short_id, "Ana works at Globex.")
    assert new.created and str(new) == f"saved [{new.short_id}], superseded [{old.short_id}]"
    closed = new.superseded
    assert (closed.id, closed.status, closed.valid_to, closed.superseded_by) == (old.id, "superseded", later, new.id)
    assert (closed.content, closed.created_at, closed.updated_at) == (old.memory.content, old.memory.created_at, later)
    assert main.memories.get(old.id).memory == closed
    assert main.memories.get(new.id).memory == new.memory
    assert (new.memory.status, new.memory.created_at, new.memory.valid_from) == ("active", later, None)
    assert contents(main.memories.list()) == ["Ana works at Globex."]
    assert contents(main.memories.list(include_inactive=True)) == ["Ana works at Globex.", "Ana works at Acme."]
    assert [hit.memory.id for hit in main.recall("Ana works at")] == [new.id]
    assert {hit.memory.id for hit in main.recall("Ana works at", include_inactive=True)} == {old.id, new.id}


@pytest.mark.behaviour("W17")
def test_the_old_holds_until_the_new_begins(main, frozen_clock):
    now = frozen_clock()
    cases = [
        ({"valid_from": PAST, "event_time": now}, PAST),
        ({"event_time": PAST}, PAST),
        ({}, now),
    ]
    for number, (fields, takeover) in enumerate(cases):
        old = main.memories.write(f"Case {number} stands.")
        closed = main.memories.supersede(old.id, f"Case {number} fell.", **fields).superseded
        assert (closed.valid_to, closed.status) == (takeover, "superseded")


@pytest.mark.behaviour("W17", "S13")
def test_a_correction_that_begins_later_leaves_the_old_standing_until_then(main, frozen_clock):
    old = main.memories.write("The fee is 10.")
    change = frozen_clock() + timedelta(days=10)
    new = main.memories.supersede(old.id, "The fee is 12.", valid_from=change)
    assert new.superseded.valid_to == change
    assert contents(main.memories.list()) == ["The fee is 10."]
    assert [hit.memory.id for hit in main.recall("fee")] == [old.id]
    frozen_clock.advance(days=10)
    assert contents(main.memories.list()) == ["The fee is 12."]
    assert [hit.memory.id for hit in main.recall("fee")] == [new.id]
    with pytest.raises(MemoryNotActive) as error:
        main.memories.supersede(old.id, "The fee is 14.")
    assert error.value.status == "superseded"


@pytest.mark.behaviour("W18")
def test_the_window_of_the_old_is_never_made_longer(main, frozen_clock):
    now = frozen_clock()
    far = main.memories.write("The lease runs.", valid_to=FUTURE)
    assert main.memories.supersede(far.id, "The lease ended.").superseded.valid_to == now
    near = main.memories.write("The guest stays.", valid_from=PAST, valid_to=now + timedelta(days=1))
    closed = main.memories.supersede(near.id, "The guest left.", valid_from=now + timedelta(days=9)).superseded
    assert closed.valid_to == now + timedelta(days=1)
    ahead = main.memories.write("The sale begins.", valid_from=FUTURE)
    closed = main.memories.supersede(ahead.id, "The sale is off.").superseded
    assert closed.valid_from <= closed.valid_to


@pytest.mark.behaviour("W19")
def test_a_second_supersede_names_the_status(main):
    old = main.memories.write("Version 1.")
    main.memories.supersede(old.id, "Version 2.")
    with pytest.raises(MemoryNotActive, match="superseded") as error:
        main.memories.supersede(old.id, "Version 3.")
    assert error.value.status == "superseded"
    for status in ("retracted", "expired", "superseded"):
        marked = main.memories.write(f"Marked {status}.")
        main.memories.mark(marked.id, status)
        with pytest.raises(MemoryNotActive, match=status):
            main.memories.supersede(marked.id, "Too late.")
    assert "Version 3." not in contents(main.memories.list(include_inactive=True))
    assert "Too late." not in contents(main.memories.list(include_inactive=True))


def test_a_supersede_inherits_what_is_left_out(make_engine):
    engine = make_engine()
    ana = engine.persona("main", tenant="acme", user="ana")
    ana.projects.add_member("apollo", "ana")
    kept = {
        "type": "preference",
        "category": "tools",
        "importance": 9,
        "core": True,
        "about": "person:ana",
        "audience": "project",
        "project": "apollo",
    }
    left = {"title": "T", "metadata": {"a": 1}, "confidence": 2, "event_time": PAST, "session": "s", "position": 4}
    old = ana.memories.write("Prefers Vim.", **kept, **left)
    new = ana.memories.supersede(old.id, "Prefers Zed.").memory
    assert {name: getattr(new, name) for name in kept} == kept
    assert (new.title, new.metadata, new.confidence, new.event_time, new.session, new.position) == (
        None,
        {},
        8,
        None,
        "",
        None,
    )
    newer = ana.memories.supersede(new.id, "Prefers Helix.", importance=2, audience="private", category=None).memory
    assert (newer.importance, newer.audience, newer.category, newer.type) == (2, "private", None, "preference")


def test_a_correction_is_seen_wherever_the_old_was(engine):
    me = engine.persona("main")
    old = me.memories.write("The kettle is in the kitchen.")
    new = me.scoped(space="garden").memories.supersede(old.id, "The kettle is broken.")
    assert [hit.memory.id for hit in me.recall("kettle")] == [new.id]
    assert [hit.memory.id for hit in me.scoped(space="office").recall("kettle")] == [new.id]


def test_a_correction_may_say_the_same_words(main):
    old = main.memories.write("The meeting is on Monday.", event_time=PAST)
    new = main.memories.supersede(old.id, "The meeting is on Monday.", event_time=PAST)
    assert new.created and new.id != old.id and new.superseded.superseded_by == new.id
    assert contents(main.memories.list()) == ["The meeting is on Monday."]


def test_a_correction_by_a_memory_that_is_there_links_the_two(main):
    old, other = main.memories.write("Bob is away."), main.memories.write("Bob is back.")
    new = main.memories.supersede(old.id, "Bob is back.")
    assert (new.created, new.id) == (False, other.id)
    assert main.memories.get(old.id).superseded_by.id == other.id
    assert contents(main.memories.list()) == ["Bob is back."]


def test_a_refused_correction_leaves_the_old_alone(main):
    old = main.memories.write("The door is green.")
    refused: list[tuple[Any, dict[str, Any]]] = [
        ("", {}),
        ("  \n", {}),
        (None, {}),
        ("The door is red.", {"importance": 11}),
        ("The door is red.", {"colour": "red"}),
        ("The door is red.", {"valid_from": FUTURE, "valid_to": PAST}),
        ("The door is red.", {"audience": "project"}),
        ("The door is red.", {"metadata": {"x": object()}}),
    ]
    for content, fields in refused:
        with pytest.raises(InvalidInput):
            main.memories.supersede(old.id, content, **fields)
    assert main.memories.get(old.id).memory == old.memory
    assert main.memories.get(old.id).versions == ()
    assert main.memories.list(include_inactive=True) == [old.memory]
    assert not main.memories.write("The door is green.").created  # it kept its key


# -- the chain


@pytest.mark.behaviour("S14", "W33")
def test_history_is_the_whole_chain_from_any_of_its_links(main, frozen_clock):
    chain = [main.memories.write("Draft 0.")]
    for number in range(1, 5):
        frozen_clock.advance(hours=1)
        chain.append(main.memories.supersede(chain[-1].id, f"Draft {number}."))
    main.memories.write("Another story.")
    for link in chain:
        assert contents(main.memories.history(link.short_id)) == [f"Draft {number}." for number in range(5)]
    assert [memory.status for memory in main.memories.history(chain[0].id)] == ["superseded"] * 4 + ["active"]


def test_history_of_a_merger_holds_all_that_went_into_it(main):
    one, two, unrelated = (main.memories.write(f"Number {n}.") for n in (1, 2, 3))
    whole = main.memories.write("Numbers 1 and 2.")
    for part in (one, two):
        main.memories.mark(part.id, "superseded", by=whole.id)
    for link, chain in ((one, [one, whole]), (two, [two, whole]), (whole, [one, two, whole])):
        assert [memory.id for memory in main.memories.history(link.id)] == [w.id for w in chain]
    assert [memory.id for memory in main.memories.get(whole.id).supersedes] == [one.id, two.id]
    assert [memory.id for memory in main.memories.history(unrelated.id)] == [unrelated.id]


def test_a_chain_of_replacements_has_one_next_link_and_no_circle(main):
    one, two, three = (main.memories.write(text) for text in ("One.", "Two.", "Three."))
    main.memories.mark(one.id, "superseded", by=two.id)
    with pytest.raises(InvalidInput):
        main.memories.mark(two.id, "superseded", by=one.id)
    with pytest.raises(MemoryNotActive):
        main.memories.mark(one.id, "superseded", by=three.id)
    assert [memory.id for memory in main.memories.history(one.id)] == [one.id, two.id]
    assert main.memories.get(one.id).superseded_by.id == two.id


@pytest.mark.behaviour("W33", "W17")
def test_get_tells_the_chain_the_author_and_the_sources(make_engine, frozen_clock):
    ana = make_engine(clock=frozen_clock).persona("main", tenant="acme", user="ana")
    ana.projects.add_member("apollo", "ana")
    old = ana.memories.write(
        "The launch is on May 3.",
        project="apollo",
        audience="project",
        category="plan",
        importance=9,
        source={"type": "user_message", "channel": "chat", "excerpt": "so, May 3\nthen"},
    )
    frozen_clock.advance(days=1)
    new = ana.memories.supersede(old.id, "The launch is on May 9.", source={"type": "tool_result"})
    assert str(ana.memories.get(old.id)) == (
        f"[{old.short_id}] (semantic plan imp=9 [superseded] @apollo, 2026-01-01 valid ...->2026-01-02) "
        "The launch is on May 3.\n"
        "author: ana (project)\n"
        f"superseded by: {new.short_id}\n"
        "changed by: tool_result\n"
        "source: user_message via chat -- so, May 3 then"
    )
    assert str(ana.memories.get(new.id)) == (
        f"[{new.short_id}] (semantic plan imp=9 @apollo, 2026-01-02) The launch is on May 9.\n"
        "author: ana (project)\n"
        f"supersedes: {old.short_id}\n"
        "source: tool_result"
    )


@pytest.mark.behaviour("W20")
def test_what_was_believed_then_and_why_it_changed(make_engine, frozen_clock):
    frozen_clock.set(datetime(2026, 3, 1, 12, tzinfo=UTC))
    me = make_engine(clock=frozen_clock).persona("main")
    old = me.memories.write("The deploy target is the old cluster.")
    stored = frozen_clock()
    changed = frozen_clock.advance(days=30)
    new = me.memories.supersede(
        old.id,
        "The deploy target is the new cluster.",
        source={"type": "user_message", "excerpt": "we moved on Monday"},
    )
    frozen_clock.advance(days=30)
    question = "What is the deploy target?"
    for moment, expected in (
        (stored - timedelta(seconds=1), []),
        (stored, [old.id]),
        (changed - timedelta(microseconds=1), [old.id]),
        (changed, [new.id]),
        (frozen_clock(), [new.id]),
    ):
        assert [hit.memory.id for hit in me.recall(question, as_of=moment)] == expected
        assert [memory.id for memory in me.memories.list(as_of=moment)] == expected
    assert [hit.memory.content for hit in me.recall(question, as_of="2026-03-15")] == [old.memory.content]
    record = me.memories.get(old.id)
    assert record.superseded_by.id == new.id
    [source] = me.memories.get(record.superseded_by.id).sources
    assert (source.type, source.excerpt) == ("user_message", "we moved on Monday")


@pytest.mark.behaviour("W20")
def test_what_was_deleted_never_held(main, frozen_clock):
    wrong = main.memories.write("The server is in Oslo.")
    then = frozen_clock()
    frozen_clock.advance(days=1)
    main.memories.delete(wrong.id)
    assert main.memories.list(as_of=then) == [] and not main.recall("server", as_of=then)
    with contextlib.suppress(MemoryNotFound, MemoryNotActive):
        main.memories.mark(wrong.id, "expired")  # whatever is said of it afterwards
    assert main.memories.list(as_of=then) == [] and not main.recall("server", as_of=then)


# -- mark, delete, versions


@pytest.mark.behaviour("S15", "S13")
def test_mark_knows_its_statuses_and_closes_the_window(main, frozen_clock):
    for status in ("superseded", "retracted", "expired"):
        written = main.memories.write(f"This will be {status}.")
        later = frozen_clock.advance(hours=1)
        marked = main.memories.mark(written.short_id, status)
        assert (marked.status, marked.valid_to, marked.updated_at) == (status, later, later)
        assert main.memories.get(written.id).memory == marked
        assert not main.recall(f"This will be {status}.")
    written = main.memories.write("This stays.")
    for wrong in ("gone", "active", "", None, "Expired", ["expired"]):
        with pytest.raises(InvalidInput) as error:
            main.memories.mark(written.id, wrong)
        assert error.value.field == "status"
    assert main.memories.get(written.id).memory == written.memory


@pytest.mark.behaviour("S15")
def test_mark_may_name_what_displaces_a_memory(main):
    old, new = main.memories.write("Plan A."), main.memories.write("Plan B.")
    assert main.memories.mark(old.id, "superseded", by=new.short_id).superseded_by == new.id
    assert main.memories.get(new.id).supersedes[0].id == old.id
    with pytest.raises(InvalidInput) as error:
        main.memories.mark(new.id, "superseded", by=new.id)
    assert error.value.field == "by"
    with pytest.raises(MemoryNotFound):
        main.memories.mark(new.id, "superseded", by="abcdefgh")
    assert main.memories.get(new.id).memory.status == "active"


@pytest.mark.behaviour("W18")
def test_mark_and_delete_never_lengthen_a_window(main, frozen_clock):
    for change in (lambda id: main.memories.mark(id, "expired"), main.memories.delete):
        ended = main.memories.write("It ran.", valid_to=PAST)
        assert change(ended.id).valid_to == PAST
        ahead = main.memories.write("It will run.", valid_from=FUTURE)
        closed = change(ahead.id)
        assert closed.valid_from <= closed.valid_to


def test_delete_is_soft_and_only_once(main, frozen_clock):
    written = main.memories.write("The blue folder is lost.")
    later = frozen_clock.advance(hours=2)
    gone = main.memories.delete(written.short_id)
    assert (gone.id, gone.status, gone.valid_to) == (written.id, "retracted", later)
    assert main.memories.list() == [] and not main.recall("folder") and main.memories.nearest("folder") is None
    assert contents(main.memories.list(include_inactive=True)) == ["The blue folder is lost."]
    assert main.memories.get(written.id).memory == gone and main.memories.history(written.id) == [gone]
    with pytest.raises(MemoryNotFound):
        main.memories.delete(written.id)
    for many in ([written.id], (written.short_id,)):
        with pytest.raises(InvalidInput) as error:
            main.memories.delete(many)
        assert error.value.field == "id"


@pytest.mark.behaviour("W09", "W10")
def test_a_persona_deletes_its_own_and_one_at_a_time(make_engine):
    engine = make_engine()
    written = engine.persona("main").memories.write("The blue folder is lost.")
    for other in (engine.persona("trader"), engine.persona("main", tenant="acme"), engine.persona("main", user="ana")):
        with pytest.raises(MemoryNotFound):
            other.memories.delete(written.id)
    with pytest.raises(InvalidInput):
        engine.persona("main").memories.delete([written.id, written.id])
    assert engine.persona("main").memories.delete(written.id).status == "retracted"


@pytest.mark.behaviour("S34")
def test_every_change_leaves_the_image_from_before(main, frozen_clock):
    first = main.memories.write("Rent is 900.", metadata={"paid": True, "on": PAST})
    frozen_clock.advance(days=1)
    marked = main.memories.mark(first.id, "expired")
    frozen_clock.advance(days=1)
    main.memories.delete(first.id)
    versions = main.memories.get(first.id).versions
    assert [(v.version, v.change) for v in versions] == [(1, "mark"), (2, "delete")]
    assert [v.memory for v in versions] == [first.memory, marked]
    assert [v.changed_at for v in versions] == [first.memory.created_at + timedelta(days=n) for n in (1, 2)]
    assert {v.memory_id for v in versions} == {first.id}


@pytest.mark.behaviour("S34", "S14")
def test_a_supersede_leaves_the_image_of_the_old(make_engine):
    ana = make_engine().persona("main", user="ana")
    old = ana.memories.write("Rent is 900.")
    new = ana.memories.supersede(old.id, "Rent is 950.")
    [version] = ana.memories.get(old.id).versions
    assert (version.change, version.changed_by, version.memory) == ("supersede", "ana", old.memory)
    assert ana.memories.get(new.id).versions == ()


# -- by whom


@pytest.mark.behaviour("W21", "W34", "S18")
def test_only_the_author_may_correct(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    for user in ("ana", "bob"):
        engine.persona("main", tenant="acme").projects.add_member("apollo", user)
    shared = ana.memories.write("The budget is 5000.", project="apollo", audience="project")
    private = ana.memories.write("The bonus is 300.", project="apollo")
    attempts = [
        lambda id: bob.memories.supersede(id, "The budget is 1."),
        lambda id: bob.memories.mark(id, "expired"),
        lambda id: bob.memories.delete(id),
    ]
    for attempt in attempts:
        for id in (shared.id, shared.short_id):
            with pytest.raises(NotTheAuthor, match="you may read it"):
                attempt(id)
        for id in (private.id, private.short_id):
            with pytest.raises(MemoryNotFound):
                attempt(id)
    with pytest.raises(MemoryNotFound):
        bob.memories.mark(bob.memories.write("Bob's.").id, "superseded", by=private.id)
    assert ana.memories.get(shared.id).memory == shared.memory
    assert ana.memories.get(private.id).memory == private.memory
    assert "The budget is 1." not in contents(bob.memories.list(include_inactive=True))
