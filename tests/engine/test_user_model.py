"""What is known of a user, by dimension: one text each, written in place, nothing of the past lost."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from memoranda.db.queries import user_model
from memoranda.errors import InvalidInput, NotAllowed
from memoranda.scope import Scope


def texts(dimensions):
    return [(dimension.dimension, dimension.content) for dimension in dimensions]


@pytest.mark.behaviour("S31", "W13")
def test_a_dimension_is_one_row_that_is_written_in_place(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    first = me.user_model.write("baseline", "based in Lisbon", confidence=9)
    frozen_clock.advance(days=1)
    second = me.user_model.write("baseline", "based in Ghent")

    assert (first.confidence, second.confidence, second.content) == (9, 9, "based in Ghent")
    assert second.created_at == first.created_at and second.updated_at - first.updated_at == timedelta(days=1)
    assert me.user_model.list() == [second]
    assert me.user_model.write("goals", "a marathon").confidence == 5


@pytest.mark.behaviour("S34")
def test_every_earlier_text_is_kept(me):
    for text in ("based in Lisbon", "based in Ghent", "based in Turku"):
        me.user_model.write("baseline", text)
    assert [dimension.content for dimension in me.user_model.history("baseline")] == [
        "based in Lisbon",
        "based in Ghent",
        "based in Turku",
    ]
    assert me.user_model.history("goals") == []


@pytest.mark.behaviour("W14")
def test_any_name_will_do_and_spellings_of_one_are_one(me):
    me.user_model.write("Working patterns", "mornings")
    me.user_model.write("working-patterns", "early mornings")
    me.user_model.write("workingPatterns", "very early mornings")
    me.user_model.write("health", "allergic to peanuts")
    assert texts(me.user_model.list()) == [
        ("health", "allergic to peanuts"),
        ("working_patterns", "very early mornings"),
    ]


def test_the_surest_stands_first_then_the_name_decides(me):
    for name, confidence in (("goals", 5), ("baseline", 9), ("feedback", 5), ("zodiac", 9)):
        me.user_model.write(name, f"about {name}", confidence=confidence)
    lines = [str(dimension) for dimension in me.user_model.list()]
    assert lines == [
        "- [baseline, conf=9] about baseline",
        "- [zodiac, conf=9] about zodiac",
        "- [feedback, conf=5] about feedback",
        "- [goals, conf=5] about goals",
    ]


def test_as_of_returns_what_was_known_then(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    began = frozen_clock()
    me.user_model.write("baseline", "based in Lisbon")
    frozen_clock.advance(days=10)
    me.user_model.write("baseline", "based in Ghent")
    me.user_model.write("goals", "a marathon")

    assert me.user_model.as_of(began - timedelta(days=1)) == []
    assert texts(me.user_model.as_of(began + timedelta(days=5))) == [("baseline", "based in Lisbon")]
    assert texts(me.user_model.as_of(frozen_clock())) == [("baseline", "based in Ghent"), ("goals", "a marathon")]


def test_undo_takes_the_last_change_back_and_the_history_keeps_it(me):
    me.user_model.write("baseline", "based in Lisbon")
    me.user_model.write("baseline", "based in Ghent", confidence=8)

    assert me.user_model.undo("baseline").content == "based in Lisbon"
    assert [d.content for d in me.user_model.history("baseline")] == [
        "based in Lisbon",
        "based in Ghent",
        "based in Lisbon",
    ]


def test_undo_of_the_first_text_removes_the_dimension_and_it_can_come_back(me):
    me.user_model.write("goals", "a marathon")
    assert me.user_model.undo("goals") is None
    assert me.user_model.list() == []
    me.user_model.write("goals", "a nap")
    me.user_model.write("goals", "two naps")
    assert [d.content for d in me.user_model.history("goals")] == ["a marathon", "a nap", "two naps"]
    with pytest.raises(InvalidInput, match="nothing to undo"):
        me.user_model.undo("baseline")


def test_undo_goes_back_step_by_step_through_what_was_written(me):
    for text in ("a marathon", "a triathlon", "a nap"):
        me.user_model.write("goals", text)
    back = [me.user_model.undo("goals") for _ in range(3)]
    assert [dimension and dimension.content for dimension in back] == ["a triathlon", "a marathon", None]
    assert [d.content for d in me.user_model.history("goals")] == [
        "a marathon",
        "a triathlon",
        "a nap",
        "a triathlon",
        "a marathon",
    ]


def test_what_was_undone_is_not_what_the_next_undo_gives_back(me):
    me.user_model.write("goals", "a marathon")
    me.user_model.write("goals", "a triathlon")
    me.user_model.undo("goals")
    me.user_model.write("goals", "a nap")
    assert me.user_model.undo("goals").content == "a marathon"
    assert me.user_model.undo("goals") is None

    me.user_model.write("goals", "two naps")
    assert me.user_model.undo("goals") is None


def test_a_user_s_model_is_nobody_else_s(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    ana.user_model.write("baseline", "Ana is based in Lisbon")
    assert bob.user_model.list() == [] and bob.user_model.history("baseline") == []
    assert engine.persona("other", tenant="acme", user="ana").user_model.list() == []
    bob.user_model.write("baseline", "Bob is based in Ghent")
    assert texts(ana.user_model.list()) == [("baseline", "Ana is based in Lisbon")]


def test_an_erased_user_has_no_model_left(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    for user in (ana, bob):
        user.user_model.write("baseline", "based in Lisbon")
        user.user_model.write("baseline", "based in Ghent")
    engine.erase(tenant="acme", user="ana")
    assert ana.user_model.list() == [] and ana.user_model.history("baseline") == []
    assert len(bob.user_model.history("baseline")) == 2


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("dimension", "content", "confidence"),
    [
        ("", "text", None),
        ("a b c!", "text", None),
        ("x" * 65, "text", None),
        (7, "text", None),
        ("goals", "", None),
        ("goals", " \n", None),
        ("goals", 7, None),
        ("goals", "x" * 2001, None),
        ("goals", "text", 0),
        ("goals", "text", 11),
        ("goals", "text", True),
        ("goals", "text", 5.5),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_is_stored(me, dimension, content, confidence):
    with pytest.raises(InvalidInput):
        me.user_model.write(dimension, content, confidence)
    assert me.user_model.list() == []


def test_without_a_user_a_ledger_keeps_no_model(engine):
    with pytest.raises(NotAllowed, match="user"):
        engine.persona("main", preset="ledger").user_model.write("goals", "a marathon")


@pytest.mark.behaviour("W26")
def test_secrets_are_taken_out_and_texts_stay_out_of_reprs(me):
    written = me.user_model.write("feedback", "my token is ghp_0123456789abcdefghijABCDEFGHIJ012345")
    assert written.content == "my token is [REDACTED:github-token]"
    assert "token" not in repr(written)


def test_concurrent_writes_lose_no_text(make_engine):
    engine = make_engine()
    me = engine.handle.persona("main")
    me.memories.list()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: me.user_model.write("goals", f"goal {number}"), range(40)))
    history = me.user_model.history("goals")
    assert sorted(d.content for d in history) == sorted(f"goal {number}" for number in range(40))
    assert [d.version for d in history] == list(range(1, 41))


def test_writes_and_undos_that_meet_leave_a_history_without_gaps(make_engine):
    me = make_engine().handle.persona("main")
    me.user_model.write("goals", "goal 0")

    def change(number):
        if number % 2:
            me.user_model.write("goals", f"goal {number}")
            return
        with suppress(InvalidInput):
            me.user_model.undo("goals")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(1, 121)))
    me.user_model.write("goals", "the last")
    versions = [d.version for d in me.user_model.history("goals")]
    assert versions == list(range(1, len(versions) + 1))


def test_a_write_waits_for_an_undo_that_removes_the_dimension(make_engine):
    engine = make_engine().handle
    me = engine.persona("main")
    me.user_model.write("goals", "a marathon")
    undone, go_on = threading.Event(), threading.Event()

    def slow_undo(conn, tables):
        user_model.undo(conn, tables, Scope(), "goals", datetime.now(UTC))
        undone.set()
        go_on.wait(1)

    with ThreadPoolExecutor(2) as pool:
        undo = pool.submit(engine._database.run, slow_undo)
        undone.wait(10)
        writing = pool.submit(me.user_model.write, "goals", "a nap")
        time.sleep(0.2)  # long enough to read, were it not to wait
        go_on.set()
        undo.result()
        assert writing.result().version == 2
    assert me.user_model.write("goals", "two naps").version == 3
    assert me.user_model.undo("goals").content == "a nap"


def test_a_preset_that_wants_an_author_shows_nothing_to_nobody(engine, frozen_clock):
    anybody, nobody = engine.persona("main"), engine.persona("main", preset="ledger")
    anybody.user_model.write("baseline", "based in Lisbon")
    assert nobody.user_model.list() == nobody.user_model.history("baseline") == []
    assert nobody.user_model.as_of("2100-01-01") == [] and nobody.conversation("a").user_model_block() == ""
    assert anybody.user_model.list()
