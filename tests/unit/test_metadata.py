"""The JSON form of metadata: plain JSON, tagged where JSON knows no word, and back."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.metadata import decode, encode

TAGGED = [
    (datetime(2026, 5, 8, 1, 2, 3, 4, tzinfo=UTC), "datetime", "2026-05-08T01:02:03.000004+00:00"),
    (date(2026, 5, 8), "date", "2026-05-08"),
    (time(1, 2), "time", "01:02:00"),
    (timedelta(days=-1, microseconds=5), "timedelta", [-1, 0, 5]),
    (UUID(int=5), "uuid", "00000000-0000-0000-0000-000000000005"),
    (Decimal("1.10"), "decimal", "1.10"),
    (b"\x00\xff", "bytes", "00ff"),
    ((1, "a"), "tuple", [1, "a"]),
    ({2, 1}, "set", [1, 2]),
    (frozenset({"b", "a"}), "frozenset", ["a", "b"]),
    (1e16, "float", "1e+16"),
    (-0.0, "float", "-0.0"),
    ({"$type": 1}, "mapping", [["$type", 1]]),
]


@pytest.mark.parametrize(("value", "tag", "form"), TAGGED, ids=[tag for _, tag, _ in TAGGED])
def test_the_stored_form_stays_as_it_is(value, tag, form):
    assert encode(value) == {"$type": tag, "value": form}
    back = decode(json.loads(json.dumps(encode(value))))
    assert back == value and type(back) is type(value)


def test_what_json_knows_is_left_plain():
    value = {"a": [1, 1.5, "x", None, True, {"b": []}], "c": {}}
    assert encode(value) == value and decode(value) == value


def test_text_is_cleaned_like_any_other():
    assert encode({"a\x00": ["b\x00", "\ud800"]}) == {"a": ["b", "\ufffd"]}


def test_a_refusal_names_the_place_and_not_the_value():
    for value, place in (
        ({"a": [1, {"b": object()}]}, "metadata.a[1].b"),
        ({"a": {"b": ({1: 2},)}}, "metadata.a.b[0]"),
        ({"a" * 100: float("nan")}, "metadata." + "a" * 40),
    ):
        with pytest.raises(InvalidInput) as error:
            encode(value)
        assert str(error.value).startswith(f"{place} ")
        assert error.value.field == "metadata"


def test_depth_has_an_end():
    value: list = []
    for _ in range(32):
        value = [value]
    assert decode(encode(value)) == value
    with pytest.raises(InvalidInput, match="nested deeper than 32"):
        encode([value])


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"))
    | st.binary()
    | st.datetimes()
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(
            st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.just("$type"), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(values)
def test_json_and_back_gives_the_same(value):
    text = json.dumps(encode(value), allow_nan=False)
    back = decode(json.loads(text))
    assert back == value and repr(back).replace(", fold=1", "") == repr(value).replace(", fold=1", "")


@given(values)
def test_what_is_encoded_can_be_encoded_and_decoded_again(value):
    form = encode(value)
    assert decode(encode(form)) == form
