"""What cannot be stored as it is is refused by name, before anything is stored."""

import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from memoranda.errors import InvalidInput
from memoranda.testing import CountingEmbedder

FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)

CONTENT: list[Any] = [
    "",
    " ",
    "\n\t ",
    "\x00",
    "\x00 \x00",
    None,
    5,
    b"bytes",
    ["a list"],
    {"a": 1},
    ("a",),
    True,
    "x" * 10_000_001,
]

# field: (values that are refused, the name in the error where it is another)
WRONG: dict[str, list[Any]] = {
    "type": ["fact", "", None, 5, ["semantic"]],
    "category": [5, ["a"], "x" * 201, {"a": 1}],
    "title": [5, ["a"], "x" * 1001],
    "importance": [0, 11, -5, 2**70, 5.5, 5.0, "5", "high", None, True, [5]],
    "confidence": [0, 11, 0.8, "8", None, False],
    "core": ["perhaps", None, 2, [True]],
    "day": ["yesterday", "2026-02-30", "", 5, datetime(2026, 1, 1, 12), [2026, 1, 1], True],
    "event_time": ["yesterday", "2026-13-01", "", [], True, "25:00", "2026-01-01T25:00:00"],
    "valid_from": ["soon", {}, False],
    "valid_to": [
        "later",
        object(),
        "9999-12-31T23:59:59-05:00",
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
    ],
    "about": ["ana", "", "person:", 5, "person:" + "x" * 210],
    "audience": ["public", "", None, True, "Private"],
    "project": [5, ["a"], "x" * 201],
    "session": [5, ["a"], "x" * 201, uuid.uuid4()],
    "position": [-1, 2**31, 1.0, "1", True],
    "metadata": [[], "a", None, 5],
    "source": ["manual", None, 5, []],
    "colour": ["red", None],
    "id": [uuid.uuid4()],
    "author": ["ana"],
    "tenant": ["acme"],
    "created_at": [FIRST],
    "status": ["active"],
}

WRONG_SOURCES: dict[str, list[Any]] = {
    "type": ["rumour", None, 5],
    "session": ["x" * 201, 5],
    "channel": ["x" * 201],
    "actor": [5],
    "excerpt": ["x" * 100_001, 5],
    "colour": ["red"],
}

CONTRADICTIONS: list[Any] = [
    ({"valid_from": LAST, "valid_to": FIRST}, "valid_to"),
    ({"audience": "project"}, "audience"),
    ({"audience": "project", "project": ""}, "audience"),
]


def refusals():
    for field, values in WRONG.items():
        yield from (({field: value}, field) for value in values)
    for field, values in WRONG_SOURCES.items():
        yield from (({"source": {field: value}}, f"source.{field}") for value in values)
    yield from CONTRADICTIONS


@pytest.fixture
def watched(make_engine):
    from memoranda.embedders.hash_words import HashWords

    embedder = CountingEmbedder(HashWords())
    me = make_engine(embedder=embedder).persona("main")
    yield me
    assert me.memories.list(include_inactive=True) == []
    assert me.stats().memories == 0
    assert embedder.calls == []


def test_a_text_that_is_none_is_refused(watched):
    for content in CONTENT:
        with pytest.raises(InvalidInput, match="content") as error:
            watched.memories.write(content)
        assert (error.value.field, error.value.index) == ("content", None)


@pytest.mark.behaviour("S04", "S09", "S15", "S19")
def test_a_field_that_is_wrong_is_named(watched):
    for fields, name in refusals():
        with pytest.raises(InvalidInput) as error:
            watched.memories.write("Refused.", **fields)
        assert (error.value.field, error.value.index) == (name, None), fields
        assert "Refused" not in str(error.value)


def test_a_wrong_row_of_many_is_named_and_nothing_is_stored(watched):
    fine = ["One.", {"content": "Two.", "category": "x"}]
    rows: list[Any] = [({"content": "Three.", **fields}, name) for fields, name in refusals()]
    rows += [({"content": content}, "content") for content in CONTENT]
    rows += [({}, "content"), ({"category": "x"}, "content"), ("", "content"), (" ", "content")]
    rows += [(5, None), (None, None), (["Three."], None)]
    for row, name in rows:
        with pytest.raises(InvalidInput, match=r"^row 2: ") as error:
            watched.memories.write_many([*fine, row, "Four."])
        assert (error.value.field, error.value.index) == (name, 2), row
    for wrong in ("One text.", {"content": "One mapping."}):
        with pytest.raises(InvalidInput, match="`write`"):
            watched.memories.write_many(wrong)


def test_secrets_and_texts_stay_out_of_a_refusal(watched):
    secret = "sk-ant-" + "a1B2" * 8
    for fields in (
        {"importance": secret},
        {"type": secret},
        {"about": secret},
        {"day": secret},
        {"event_time": secret},
        {"audience": secret},
        {"metadata": {"x": {secret}, "y": object()}},
        {"category": secret * 30},
        {"source": {"type": secret}},
    ):
        with pytest.raises(InvalidInput) as error:
            watched.memories.write(f"It is {secret}.", **fields)
        assert secret not in str(error.value) and secret not in repr(error.value)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__


def test_a_number_is_no_moment(me):
    for field in ("event_time", "valid_from", "valid_to"):
        for value in (5, 1_700_000_000, 1.5, "1700000000"):
            with pytest.raises(InvalidInput) as error:
                me.memories.write("When?", **{field: value})
            assert error.value.field == field, value
    with pytest.raises(InvalidInput):
        me.memories.write("When?", day=86_400)


def test_a_project_is_a_name_of_one_line_with_a_letter_in_it(me):
    for value in ("a\nb", "a\x1bb", "--", " _ ", "   "):
        with pytest.raises(InvalidInput) as error:
            me.memories.write("For a project.", project=value)
        assert error.value.field == "project", value


def test_the_limits_themselves_are_accepted(me):
    fields = {
        "category": "x" * 200,
        "title": "x" * 1000,
        "project": "x" * 200,
        "session": "x" * 200,
        "about": "person:" + "x" * 193,
        "position": 2**31 - 1,
        "day": date.max,
        "event_time": datetime.max,
        "valid_from": datetime.min,
        "valid_to": datetime.max.replace(tzinfo=UTC),
        "source": {"excerpt": "x" * 100_000, "session": "x" * 200, "channel": "x" * 200, "actor": "x" * 200},
    }
    written = me.memories.write("At the limits.", **fields)
    record = me.memories.get(written.id)
    assert record.memory == written.memory
    assert record.memory.valid_from == datetime.min.replace(tzinfo=UTC)
    assert record.sources[0].excerpt == "x" * 100_000
    at_once = me.memories.write("A window of no length.", valid_from=FIRST, valid_to=FIRST)
    assert at_once.memory.valid_from == at_once.memory.valid_to == FIRST


def test_none_means_left_out_where_nothing_is_a_value(me):
    names = (
        "category",
        "title",
        "day",
        "event_time",
        "valid_from",
        "valid_to",
        "about",
        "project",
        "session",
        "position",
    )
    written = me.memories.write("Nothing else.", **dict.fromkeys(names))
    assert me.memories.get(written.id).memory == written.memory
    assert (written.memory.category, written.memory.project, written.memory.position) == (None, "", None)


def test_a_text_is_stored_as_it_is_but_for_what_no_database_holds(me):
    for given, kept in (
        ("  spaces \n and lines\t", "  spaces \n and lines\t"),
        ("a\x00b", "ab"),
        ("lone \ud83d half", "lone \ufffd half"),
        ("\u200bzero\u200dwidth\ufeff", "\u200bzero\u200dwidth\ufeff"),
        ("'quoted' \"text\" %s %(x)s :name $1 \\ {}", "'quoted' \"text\" %s %(x)s :name $1 \\ {}"),
        ("\x01\x1f\x7f\x85", "\x01\x1f\x7f\x85"),
    ):
        written = me.memories.write(given, title=given, category=given)
        memory = me.memories.get(written.id).memory
        assert memory == written.memory
        assert (memory.content, memory.title, memory.category) == (kept, kept, kept)


def test_a_question_is_a_string(me):
    for wrong in (None, 5, b"x", ["x"]):
        with pytest.raises(InvalidInput) as error:
            me.recall(wrong)
        assert error.value.field == "query"
        with pytest.raises(InvalidInput) as error:
            me.memories.nearest(wrong)
        assert error.value.field == "content"
    with pytest.raises(InvalidInput):
        me.memories.nearest("  ")
