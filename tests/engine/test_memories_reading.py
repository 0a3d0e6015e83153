"""Looking memories up, page by page and one by one, and counting what was recalled."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoranda.errors import InvalidInput, MemoryNotFound


def contents(memories):
    return [memory.content for memory in memories]


def test_an_id_a_short_id_and_their_printed_forms_name_the_same_memory(me):
    written = me.memories.write("The spare key is under the mat.")
    for form in (
        written.id,
        str(written.id),
        str(written.id).upper(),
        written.id.hex,
        written.short_id,
        written.short_id.upper(),
        f"[{written.short_id}]",
        f" {written.short_id} ",
    ):
        assert me.memories.get(form).memory == written.memory
        assert me.memories.history(form) == [written.memory]


@pytest.mark.behaviour("W34")
def test_what_names_no_memory_is_not_found(me):
    me.memories.write("Something is here.")
    for form in (
        "",
        "abcdefgh",
        "nonsense",
        "#12",
        "0" * 32,
        uuid.uuid4(),
        "a\x00bcdefg",
        "\ud800",
        12,
        None,
        b"abcdefgh",
        "é" * 8,
    ):
        assert me.memories.get(form) is None
        assert me.memories.history(form) == []
        with pytest.raises(MemoryNotFound):
            me.memories.mark(form, "expired")
        with pytest.raises(MemoryNotFound):
            me.memories.supersede(form, "Anything.")


def test_pages_follow_each_other_without_a_gap_or_a_repeat(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    written = []
    for number in range(23):
        if number % 3 == 0:
            frozen_clock.advance(microseconds=1)  # two in three share their moment
        written.append(me.memories.write(f"Note {number}.", importance=1 + number * 7 % 4).memory)
    orders = {
        "newest": sorted(written, key=lambda m: (m.created_at, m.id), reverse=True),
        "importance": sorted(written, key=lambda m: (m.importance, m.created_at, m.id), reverse=True),
    }
    for order, expected in orders.items():
        seen, last = [], None
        while page := me.memories.list(limit=5, order=order, before=last):
            assert len(page) <= 5
            seen += page
            last = page[-1].short_id
        assert seen == expected
        assert me.memories.list(order=order) == expected


def test_a_page_holds_fifty_unless_told_otherwise(me):
    me.memories.write_many([f"Note {number}." for number in range(60)])
    assert len(me.memories.list()) == 50
    assert len(me.memories.list(limit=1000)) == 60
    assert len(me.memories.list(limit=1)) == 1


def test_list_filters(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    me.memories.write("A.", type="preference", category="food", day="2026-01-05")
    me.memories.write("B.", type="semantic", category="food", project="apollo")
    me.memories.write("C.", type="semantic", category="work", project="zeus")
    me.memories.delete(me.memories.write("D.", type="semantic", category="work").id)
    cases: list[tuple[dict[str, Any], Any]] = [
        ({}, "CBA"),
        ({"types": "semantic"}, "CB"),
        ({"types": ["semantic", "preference"]}, "CBA"),
        ({"categories": "food"}, "BA"),
        ({"categories": ["food", "work"]}, "CBA"),
        ({"categories": []}, "CBA"),
        ({"project": "Apollo"}, "BA"),
        ({"date": "2026-01-05"}, "A"),
        ({"include_inactive": True}, "DCBA"),
        ({"include_inactive": True, "categories": "work"}, "DC"),
        ({"types": "semantic", "categories": "food", "project": "apollo"}, "B"),
    ]
    for filters, expected in cases:
        assert "".join(c[0] for c in contents(me.memories.list(**filters))) == expected, filters
    scoped = me.scoped(project="zeus")
    assert contents(scoped.memories.list()) == ["C.", "A."]
    assert contents(scoped.memories.list(project="apollo")) == ["B.", "A."]


BAD_FILTERS = [
    ("limit", 0),
    ("limit", 1001),
    ("limit", True),
    ("limit", "5"),
    ("limit", 2.0),
    ("types", "fact"),
    ("types", ["semantic", "fact"]),
    ("categories", 5),
    ("project", 5),
    ("date", "soon"),
    ("as_of", "soon"),
    ("include_inactive", "perhaps"),
    ("colour", "red"),
]


def test_a_filter_that_cannot_be_used_is_named(me):
    for name, value in BAD_FILTERS:
        with pytest.raises(InvalidInput) as error:
            me.memories.list(**{name: value})
        assert error.value.field == name
        with pytest.raises(InvalidInput) as error:
            me.recall("anything", **{name: value})
        assert error.value.field == name
    with pytest.raises(InvalidInput) as error:
        me.memories.list(order="oldest")
    assert error.value.field == "order"
    with pytest.raises(MemoryNotFound):
        me.memories.list(before="abcdefgh")


def test_a_filter_no_database_can_hold_matches_nothing(me):
    me.memories.write("A note.", category="food", project="apollo")
    for odd in ("a\x00b", "\x00", "\ud800", "food\ud800"):
        for filters in ({"categories": [odd]}, {"project": f"odd{odd}"}):
            assert [m for m in me.memories.list(**filters)] == []
            assert list(me.recall("note", **filters)) == []


@pytest.mark.behaviour("S13")
def test_only_what_is_active_valid_now_and_readable_is_current(make_engine, frozen_clock):
    engine, now = make_engine(clock=frozen_clock), frozen_clock()
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    day = timedelta(days=1)
    shown = [
        ana.memories.write("Lamp, plain."),
        ana.memories.write("Lamp, from now on.", valid_from=now),
        ana.memories.write("Lamp, until later.", valid_to=now + day),
        ana.memories.write("Lamp, in the middle.", valid_from=now - day, valid_to=now + day),
    ]
    ana.memories.write("Lamp, over.", valid_to=now - day)
    ana.memories.write("Lamp, over just now.", valid_to=now)
    ana.memories.write("Lamp, to come.", valid_from=now + day)
    for status in ("superseded", "retracted", "expired"):
        ana.memories.mark(ana.memories.write(f"Lamp, {status}.").id, status)
    bob.memories.write("Lamp, of Bob.")
    expected = {w.id for w in shown}
    assert {memory.id for memory in ana.memories.list()} == expected
    assert {hit.memory.id for hit in ana.recall("lamp", limit=100)} == expected
    assert ana.memories.nearest("Lamp, over.").memory.id in expected
    assert len(ana.memories.list(include_inactive=True)) == 10
    assert {hit.memory.id for hit in ana.recall("lamp", limit=100, include_inactive=True)} == {
        memory.id for memory in ana.memories.list(include_inactive=True)
    }


@pytest.mark.behaviour("S21")
def test_a_recall_is_counted_where_the_policy_says_so(make_engine, frozen_clock):
    engine = make_engine(clock=frozen_clock)
    ana = engine.persona("main", user="ana", preset="ledger")
    written, other = ana.memories.write("The cat is called Miso."), ana.memories.write("Unrelated sentence.")
    assert ana.memories.get(written.id).access_count == 0
    assert ana.memories.get(written.id).last_accessed_at is None
    for count in (1, 2):
        frozen_clock.advance(days=1)
        assert written.id in [hit.memory.id for hit in ana.recall("cat", limit=1)]
        record = ana.memories.get(written.id)
        assert (record.access_count, record.last_accessed_at) == (count, frozen_clock())
    last = frozen_clock()
    frozen_clock.advance(days=1)
    ana.recall("cat", include_inactive=True)
    ana.memories.list()
    ana.memories.nearest("cat")
    engine.persona("main", user="ana").recall("cat")  # a preset that does not count
    record = ana.memories.get(written.id)
    assert (record.access_count, record.last_accessed_at) == (2, last)
    assert ana.memories.get(other.id).access_count == 0
    assert record.memory == written.memory and record.versions == ()


@pytest.mark.behaviour("S23")
def test_an_identifier_is_found_whole_and_a_word_by_its_stem(make_engine):
    me = make_engine(embedder="none").persona("main")
    by_name = me.memories.write("The ranking lives in search.py of the service.")
    by_title = me.memories.write("See the runbook.", title="ERR-7F3A/9 after upgrades")
    me.memories.write("A search and some py files.")
    assert me.recall("search.py")[0].memory.id == by_name.id
    assert me.recall("ERR-7F3A/9")[0].memory.id == by_title.id
    assert [hit.memory.id for hit in me.recall("upgrading")] == [by_title.id]


def test_statistics_count_what_the_scope_may_see(make_engine, frozen_clock):
    engine = make_engine(clock=frozen_clock)
    me = engine.persona("main")
    empty = me.stats()
    assert (empty.memories, empty.by_status, empty.vectors, empty.first_day) == (0, {}, 0, None)
    me.memories.write("A.", category="x", day="2026-01-02")
    me.memories.write("B.", type="episodic", day="2026-03-04")
    me.memories.delete(me.memories.write("C.", category="x", day="2026-02-03").id)
    engine.persona("other").memories.write("D.")
    stats = me.stats()
    assert (stats.memories, stats.by_status) == (3, {"active": 2, "retracted": 1})
    assert stats.by_type == {"semantic": 2, "episodic": 1}
    assert stats.by_category == {"": 1, "x": 2}
    assert (stats.vectors, stats.other_vectors, stats.embedder) == (3, 0, "hash/words@512")
    assert (stats.first_day, stats.last_day) == (datetime(2026, 1, 2, tzinfo=UTC).date(), datetime(2026, 3, 4).date())
