"""Corrections that begin later: planned, begun, called off; and what may be linked to what."""

from datetime import timedelta

import pytest

from memoranda.errors import InvalidInput, MemoryNotActive


@pytest.fixture
def main(make_engine, frozen_clock):
    return make_engine(clock=frozen_clock).persona("main")


def contents(memories):
    return [memory.content for memory in memories]


def recalled(main, query):
    return [hit.memory.content for hit in main.recall(query)]


@pytest.mark.behaviour("W17")
def test_a_coming_event_is_known_at_once(main, frozen_clock):
    now = frozen_clock()
    old = main.memories.write("The fair is in May.")

    new = main.memories.supersede(old.id, "The fair is in June.", event_time=now + timedelta(days=90))

    assert (new.superseded.status, new.superseded.valid_to) == ("superseded", now)
    assert contents(main.memories.list()) == recalled(main, "fair") == ["The fair is in June."]


@pytest.mark.behaviour("W17", "W18")
@pytest.mark.parametrize("ends", [None, 60], ids=["open", "with an end of its own"])
def test_when_a_planned_takeover_is_deleted_the_old_holds_again(main, frozen_clock, ends):
    day = timedelta(days=1)
    fields = {"valid_to": frozen_clock() + ends * day} if ends else {}
    old = main.memories.write("The fee is 10.", **fields)
    plan = main.memories.supersede(old.id, "The fee is 12.", valid_from=frozen_clock() + 10 * day)
    frozen_clock.advance(days=1)

    main.memories.delete(plan.id)

    for days in (0, 20):
        frozen_clock.advance(days=days)
        assert contents(main.memories.list()) == recalled(main, "fee") == ["The fee is 10."]
        assert main.memories.get(old.id).memory.status == "active"
        assert main.memories.get(old.id).memory.valid_to == fields.get("valid_to")
    again = main.memories.supersede(old.id, "The fee is 14.")
    assert again.superseded.status == "superseded"
    assert contents(main.memories.list()) == recalled(main, "fee") == ["The fee is 14."]
    assert set(contents(main.memories.history(again.id))) >= {"The fee is 10.", "The fee is 14."}


@pytest.mark.behaviour("W17")
def test_when_a_takeover_has_begun_its_deletion_revives_nothing(main, frozen_clock):
    old = main.memories.write("The fee is 10.")
    new = main.memories.supersede(old.id, "The fee is 12.", valid_from=frozen_clock() + timedelta(days=10))
    frozen_clock.advance(days=11)

    main.memories.delete(new.id)

    assert main.memories.list() == []
    assert main.recall("fee").abstained
    with pytest.raises(MemoryNotActive):
        main.memories.supersede(old.id, "The fee is 14.")


@pytest.mark.behaviour("S15")
def test_what_was_superseded_is_not_superseded_by_another(main):
    first, second, third = (main.memories.write(f"Plan {name}.") for name in "ABC")
    corrected = main.memories.supersede(first.id, "Plan A, corrected.")
    main.memories.mark(second.id, "superseded", by=third.id)

    for old, successor in ((first, corrected), (second, third)):
        for other in {first.id, second.id, third.id} - {old.id, successor.id}:
            with pytest.raises((InvalidInput, MemoryNotActive)):
                main.memories.mark(old.id, "superseded", by=other)
        assert main.memories.get(old.id).memory.superseded_by == successor.id
    assert contents(main.memories.history(corrected.id)) == ["Plan A.", "Plan A, corrected."]
