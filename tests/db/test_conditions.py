"""Conditions on JSON mean the same in SQLite, in Postgres, and in a few lines of Python."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, NullPool, Table, create_engine, insert, select

from memoranda.conditions import AllOf, AnyOf, Compare, Not
from memoranda.db.dialects.postgresql import PostgresqlDialect
from memoranda.db.dialects.sqlite import SqliteDialect
from memoranda.db.types import Json
from memoranda.errors import InvalidInput

DOCUMENTS: list[dict[str, Any]] = [
    {},
    {"k": None},
    {"k": True},
    {"k": False},
    {"k": 1},
    {"k": 1.0},
    {"k": 2.5},
    {"k": -10},
    {"k": 100},
    {"k": "1"},
    {"k": "007"},
    {"k": ""},
    {"k": "Zebra"},
    {"k": "apple"},
    {"k": 'O\'Brien said "no"'},
    {"k": "zürich Ünder"},
    {"k": "日本 100%_"},
    {"k": []},
    {"k": {}},
    {"k": [1, "a", None, True]},
    {"k": ["a", ["b"]]},
    {"k": [{"x": 1}, {"x": 1, "y": 2}]},
    {"k": {"x": 1}},
    {"k": {"x": 1, "y": [1, 2]}},
    {"k": {"x": {"deep": "a"}}},
    {'a"b': 1, "é": {"ü": "x"}, "back\\slash": [1], "a.b": 2, "[0]": 3, "$": 4, "": 5},
]
PATHS = [
    *(("k",), ("k", "x"), ("k", "y"), ("k", "x", "deep"), ("none",), ('a"b',), ("é",), ("é", "ü"), ("back\\slash",)),
    *(("a.b",), ("[0]",), ("$",), ("",), ("a", "b"), ("k", "é")),
]
scalars = st.sampled_from(
    [None, True, False, 0, 1, 1.0, 2, 2.5, -10, 100, "", "1", "007", "Zebra", "apple", "a", "x", "zürich Ünder", "日本"]
)
values = scalars | st.sampled_from([[], {}, [1, "a", None, True], ["b"], {"x": 1}, {"x": 1, "y": [1, 2]}, [1]])
orders = st.sampled_from([0, 1, 2.5, 50, -10.5, "", "1", "B", "apple", "Ü"])
parts = st.sampled_from(["", "a", "OB", "o'b", "Z", "ZÜRICH", "ü", "%", "_", '"no"'])
paths = st.sampled_from(PATHS)
comparisons = st.one_of(
    st.builds(Compare, paths, st.sampled_from(["eq", "has"]), values),
    st.builds(Compare, paths, st.just("in"), st.lists(values, max_size=4)),
    st.builds(Compare, paths, st.sampled_from(["gt", "gte", "lt", "lte"]), orders),
    st.builds(Compare, paths, st.sampled_from(["text", "text_insensitive"]), parts),
    st.builds(Compare, paths, st.sampled_from(["exists", "empty"])),
)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(AllOf, st.lists(inner, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=4,
)


def same(left, right):
    return (
        json.dumps(left) == json.dumps(right)
        or (number(left) and number(right) and left == right)
        or inside(left, right)
    )


def inside(left, right):
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return False


def number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def lowered(said):
    return "".join(letter.lower() if letter.isascii() else letter for letter in said)


def holds(document, wanted):
    if isinstance(wanted, AllOf):
        return all(holds(document, one) for one in wanted.conditions)
    if isinstance(wanted, AnyOf):
        return any(holds(document, one) for one in wanted.conditions)
    if isinstance(wanted, Not):
        return not holds(document, wanted.condition)
    value, there = document, True
    for key in wanted.path:
        there = isinstance(value, dict) and key in value
        if not there:
            break
        value = value[key]
    other = wanted.value
    match wanted.operator:
        case "exists":
            return there and value is not None
        case "empty":
            return not there or value is None or value in ("", [], {})
        case _ if not there:
            return False
        case "eq":
            return same(value, other)
        case "in":
            return any(same(value, one) for one in other)
        case "has":
            return isinstance(value, list) and any(same(item, other) for item in value)
        case "text":
            return isinstance(value, str) and other in value
        case "text_insensitive":
            return isinstance(value, str) and lowered(other) in lowered(value)
    if not (isinstance(value, str) and isinstance(other, str)) and not (number(value) and number(other)):
        return False
    return {"gt": value > other, "gte": value >= other, "lt": value < other, "lte": value <= other}[wanted.operator]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def found(request):
    """Return a function that tells which of the documents meet a condition, by their places."""
    dialect: Any = SqliteDialect() if request.param == "sqlite" else PostgresqlDialect("memoranda")
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres_server").url()
    documents = Table("documents", MetaData(), Column("n", Integer), Column("said", Json), prefixes=["TEMPORARY"])
    engine = create_engine(url, poolclass=NullPool) if "postgres" in url else create_engine(url)
    with engine.connect() as connection:
        documents.create(connection)
        connection.execute(insert(documents), [{"n": n, "said": said} for n, said in enumerate(DOCUMENTS)])

        def ask(condition):
            wanted = dialect.json_condition(documents.c.said, condition)
            return set(connection.scalars(select(documents.c.n).where(wanted)))

        yield ask
    engine.dispose()


@given(condition=conditions)
@example(condition=Compare(("k",), "gte", 1))
@example(condition=Not(Compare(("k",), "eq", None)))
@example(condition=Compare(("k",), "eq", {"x": 1, "y": [1, 2]}))
@example(condition=Compare(("k",), "in", [1, "1", None, {"x": 1}]))
@example(condition=Compare(('a"b',), "eq", 1))
@example(condition=Compare(("é", "ü"), "eq", "x"))
@example(condition=Compare(("k",), "has", {"x": 1}))
def test_a_condition_means_the_same_everywhere(found, condition):
    assert found(condition) == {n for n, said in enumerate(DOCUMENTS) if holds(said, condition)}


def test_a_value_is_never_part_of_the_statement(found):
    for said in ("zz' OR '1'='1", "'; DROP TABLE documents; --", "\\", "$.k", "{}"):
        assert not found(Compare(("k",), "eq", said))
        assert not found(Compare((said,), "exists"))
    assert found(Compare(("k",), "eq", 'O\'Brien said "no"')) == {14}


@pytest.mark.parametrize(
    ("path", "operator", "value", "remedy"),
    [
        ((), "eq", 1, "one key or more"),
        (("k",), "like", "a", "filters know"),
        (("k",), "gt", True, "a number or a string"),
        (("k",), "gt", [1], "a number or a string"),
        (("k",), "in", "abc", "a list"),
        (("k",), "text", 1, "takes a string"),
        (("k",), "exists", 1, "takes no value"),
        (("k",), "eq", float("nan"), "what JSON knows"),
        (("k",), "eq", object(), "what JSON knows"),
    ],
)
def test_what_no_row_could_meet_is_refused(path, operator, value, remedy):
    with pytest.raises(InvalidInput, match=remedy):
        Compare(path, operator, value)
