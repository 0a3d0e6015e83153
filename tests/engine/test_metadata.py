"""Metadata comes back as it was given, or is refused at the call; the same on every database."""

import dataclasses
import enum
import math
import uuid
from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput

SAMPLE = {
    "datetime": datetime(2026, 5, 8, 23, 30, 15, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    "naive": datetime(2026, 5, 8, 23, 30),
    "date": date(2026, 5, 8),
    "time": time(23, 30, 1, 5),
    "timedelta": timedelta(days=-1, seconds=3, microseconds=7),
    "uuid": uuid.UUID("12345678-1234-7234-8234-123456789abc"),
    "decimal": Decimal("1.10"),
    "big decimal": Decimal("1E+500"),
    "set": {1, "a", (2, 3)},
    "frozenset": frozenset({date(2026, 1, 1)}),
    "tuple": (1, [2, (3,)], {"a": (4,)}),
    "empty": [(), [], {}, set(), "", b""],
    "bytes": b"\x00\xff\x80",
    "floats": [0.1, -0.0, 1e16, 1e300, 5e-324, 1.7976931348623157e308, 2.0],
    "whole": [0, -1, 2**63 - 1, -(2**63)],
    "truth": [True, False, None],
    "text": 'Ünïcödé 日本語 😀 \u200d \u2028 " \\ \x01 \x7f',
    "nested": {"a": {"b": {"c": [{"d": [1, [2, [3]]]}]}}},
    "tags": {"$type": "decimal", "value": "1.10"},
    "tagged": [{"$type": "uuid"}, {"$type": {"$type": 1}}],
    "": "an empty key",
    "a.b c/d'\"": "an odd key",
    "1": "a key of digits",
}


def exact(value):
    """Return a form in which 1, 1.0 and True differ, and so do 0.0 and -0.0, 1.10 and 1.1."""
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [exact(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(repr(exact(item)) for item in value)
    return type(value), repr(value)


def test_every_kind_of_value_comes_back_as_it_was(me):
    written = me.memories.write("It has metadata.", metadata=SAMPLE)
    for memory in (
        written.memory,
        me.memories.get(written.id).memory,
        me.memories.list()[0],
        me.recall("It has metadata.")[0].memory,
        me.memories.history(written.id)[0],
    ):
        assert exact(dict(memory.metadata)) == exact(SAMPLE)
    me.memories.mark(written.id, "expired")
    record = me.memories.get(written.id)
    assert exact(dict(record.memory.metadata)) == exact(SAMPLE)
    assert exact(dict(record.versions[0].memory.metadata)) == exact(SAMPLE)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Name(enum.StrEnum):
    ANA = "ana"


class Model(pydantic.BaseModel):
    x: int = 1


@dataclasses.dataclass
class Point:
    x: int = 1


class Text(str):
    pass


class Whole(int):
    pass


loop: list = []
loop.append(loop)

REFUSED = [
    (Colour.RED, r"\.value"),
    (Level.LOW, r"\.value"),
    (Name.ANA, r"\.value"),
    (Model(), r"model_dump\(\)"),
    (Point(), "Point"),
    (math.nan, "finite"),
    (math.inf, "finite"),
    (-math.inf, "finite"),
    (2**63, "string"),
    (-(2**63) - 1, "string"),
    (object(), "object"),
    (1j, "complex"),
    (OrderedDict(a=1), "OrderedDict"),
    (defaultdict(list), "defaultdict"),
    (Text("x"), "Text"),
    (Whole(1), "Whole"),
    (bytearray(b"x"), "bytearray"),
    (range(3), "range"),
    (loop, "nested deeper"),
    ({1: "x"}, "key that is not a string"),
    ({Name.ANA: "x"}, "key that is not a string"),
    ({b"a": "x"}, "key that is not a string"),
    ({("a",): "x"}, "key that is not a string"),
    ({None: "x"}, "key that is not a string"),
]


def test_what_would_not_come_back_is_refused_with_the_remedy(me):
    for value, remedy in REFUSED:
        for metadata in ({"deep": [{"x": (value,)}]}, {"x": value}):
            with pytest.raises(InvalidInput, match=remedy) as error:
                me.memories.write("Refused.", metadata=metadata)
            assert error.value.field == "metadata", value
            assert "x" in str(error.value)  # the place
    assert me.memories.list(include_inactive=True) == []


def test_the_keys_of_the_mapping_itself_are_strings(me):
    for key in (1, None, ("a",), b"a", Name.ANA, 1.5):
        with pytest.raises(InvalidInput) as error:
            me.memories.write("Refused.", metadata={key: 1})
        assert str(error.value.field).split(".")[0] == "metadata", key
    for wrong in ([("a", 1)], "a", 5, None, Model()):
        with pytest.raises(InvalidInput) as error:
            me.memories.write("Refused.", metadata=wrong)
        assert error.value.field == "metadata", wrong
    assert me.memories.list(include_inactive=True) == []


def test_what_neither_database_can_hold_is_cleaned_alike(me):
    given_: Any
    given_, kept = {"a\x00b": "x\x00y", "s": ["\ud800z", ("\udfff",)]}, {"ab": "xy", "s": ["\ufffdz", ("\ufffd",)]}
    written = me.memories.write("Cleaned.", metadata=given_)
    assert exact(dict(me.memories.get(written.id).memory.metadata)) == exact(kept)
    assert exact(dict(written.memory.metadata)) == exact(kept)


def test_two_keys_that_would_become_one_are_refused(me):
    with pytest.raises(InvalidInput) as error:
        me.memories.write("Two keys.", metadata={"a\x00": 1, "a": 2})
    assert error.value.field == "metadata"


def test_the_callers_mapping_is_left_alone_and_not_shared(me):
    given_: Any = {"list": [1, 2], "text": "a\x00"}
    written = me.memories.write("Mine.", metadata=given_)
    assert given_ == {"list": [1, 2], "text": "a\x00"}
    given_["list"].append(3)
    assert me.memories.get(written.id).memory.metadata["list"] == [1, 2]


# -- anything at all


def unfold(moment):
    """Leave out which of two repeated hours is meant: ISO 8601 cannot say it, and Python calls the two equal."""
    return moment.replace(fold=0)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.binary(max_size=8)
    | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))]) | st.none()).map(unfold)
    | st.dates()
    | st.times().map(unfold)
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False, allow_infinity=False)
)
hashable = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts | st.sampled_from(["$type", "value"]), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(hashable, max_size=3)
    ),
    max_leaves=12,
)
mappings = st.dictionaries(texts | st.sampled_from(["$type", "value"]), values, max_size=5)


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(mappings, min_size=1, max_size=6))
def test_any_metadata_makes_the_round_trip(make_plain, batch):
    written = make_plain.memories.write_many([{"content": "Any.", "metadata": metadata} for metadata in batch])
    stored = {memory.id: memory for memory in make_plain.memories.list(limit=len(batch))}
    for metadata, answer in zip(batch, written, strict=True):
        assert exact(dict(stored[answer.id].metadata)) == exact(metadata)


@pytest.fixture
def make_plain(make_engine):
    """A persona that neither redacts nor holds off duplicates, so that random values stay as they are."""
    from memoranda import Policies
    from memoranda.policies import DedupePolicy, RedactionPolicy

    policies = Policies(dedupe=DedupePolicy(name="none"), redaction=RedactionPolicy(enabled=False))
    return make_engine(embedder="none").persona("main", preset=policies)


@pytest.mark.parametrize("wrap", [lambda v: {"k": v}, lambda v: [v], lambda v: (v,)], ids=["dict", "list", "tuple"])
def test_metadata_of_32_levels_goes_through_every_verb(me, wrap):
    value: Any = "leaf"
    for _ in range(31):
        value = wrap(value)
    deep = {"k": value}
    old = me.memories.write("It is deep.", metadata=deep)

    new = me.memories.supersede(old.id, "It is deeper.", metadata=deep)
    me.memories.mark(new.id, "expired")
    me.memories.delete(new.id)

    assert [memory.metadata for memory in me.memories.history(old.id)] == [deep, deep]
    assert me.memories.get(new.id).memory.status == "retracted"
    with pytest.raises(InvalidInput, match="32"):
        me.memories.write("It is too deep.", metadata={"k": deep})
