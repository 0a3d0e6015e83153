"""The export file: what goes in comes out, and what was cut off or changed is refused with its line."""

import io
import json
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memoranda.archive import (
    ArchiveReader,
    ArchiveWriter,
    Field,
    Header,
    Kind,
    UnreadableArchive,
    decoded,
)
from memoranda.errors import InvalidInput

KINDS: dict[str, Kind] = {
    "text": "text",
    "integer": "integer",
    "number": "number",
    "truth": "truth",
    "json": "json",
    "id": "uuid",
    "moment": "moment",
    "day": "date",
    "metadata": "metadata",
    "vector": "vector",
    "raw": "bytes",
}
SHAPE = {"things": {name: Field(kind=kind, nullable=True, optional=True) for name, kind in KINDS.items()}}
HEADER = Header(revision="0001", embedder="hash/words@512", language="english", terms=1)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
tagged = (
    plain
    | st.uuids()
    | st.dates()
    | st.binary(max_size=8)
    | st.tuples(texts, st.integers(0, 9))
    | st.decimals(allow_nan=False, allow_infinity=False)
)
offsets = st.integers(-720, 720).map(lambda minutes: timezone(timedelta(minutes=minutes)))
values = {
    "text": texts,
    "integer": st.integers(-(2**31), 2**31 - 1),
    "number": numbers,
    "truth": st.booleans(),
    "json": plain.filter(lambda value: value is not None),
    "id": st.uuids(),
    "moment": st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=offsets),
    "day": st.dates(),
    "metadata": st.dictionaries(texts, tagged, max_size=3),
    "vector": arrays(
        np.float32, st.integers(1, 5), elements=st.floats(allow_nan=False, allow_infinity=False, width=32)
    ),
    "raw": st.binary(max_size=10),
}
rows = st.fixed_dictionaries({name: st.none() | strategy for name, strategy in values.items()})


def written(*things, header=HEADER):
    lines: list[bytes] = []
    writer = ArchiveWriter(lines.append, header, SHAPE)
    for thing in things:
        writer.row("things", {**dict.fromkeys(KINDS), **thing})
    writer.finish()
    return b"".join(lines)


def read(data):
    reader = ArchiveReader(io.BytesIO(data))
    return reader.header, [decoded(line, SHAPE, complete=True) for line in reader.rows()]


def refused(data):
    with pytest.raises(UnreadableArchive) as caught:
        read(data)
    assert isinstance(caught.value, InvalidInput)
    assert str(caught.value).endswith("Nothing was imported.")
    assert caught.value.line is None or str(caught.value).startswith(f"line {caught.value.line}: ")
    return caught.value


def sealed(*lines, rows=None, sha256=None):
    """Return a file of these lines with a header and a footer that fit."""
    from hashlib import sha256 as digest

    head = written().splitlines(keepends=True)[0] + b"".join(line.encode() + b"\n" for line in lines)
    footer = {"rows": {"things": len(lines)} if rows is None else rows, "sha256": sha256 or digest(head).hexdigest()}
    return head + json.dumps(footer).encode() + b"\n"


def same(one, other):
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.tobytes() == other.tobytes()
    return type(one) is type(other) and one == other


@given(st.lists(rows, max_size=3))
def test_every_value_comes_back_as_it_was(things):
    header, back = read(written(*things))

    assert header == HEADER
    assert len(back) == len(things)
    for thing, found in zip(things, back, strict=True):
        for name, value in thing.items():
            assert same(value, found[name]), name


def test_a_moment_comes_back_in_utc():
    noon = datetime(2025, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    [found] = read(written({"moment": noon}))[1]

    assert (found["moment"], found["moment"].tzinfo) == (datetime(2025, 3, 1, 10, tzinfo=UTC), UTC)


def test_the_same_rows_make_the_same_bytes():
    things = [{"text": "tea", "id": UUID(int=7), "metadata": {"b": 1, "a": (1, 2)}}, {"day": date(2025, 1, 1)}]

    assert written(*things) == written(*things)


# -- what is not whole


WHOLE = written(*({"text": f"tea {n}", "integer": n, "id": UUID(int=n)} for n in range(3)))


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_off_anywhere_is_refused(place):
    refused(WHOLE[:place])


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_a_file_with_one_byte_changed_is_refused(place, byte):
    if WHOLE[place] != byte:
        refused(WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :])


@given(st.integers(0, 2), st.integers(0, 2))
def test_a_file_with_a_line_lost_or_moved_is_refused(one, other):
    lines = WHOLE.splitlines(keepends=True)
    moved = lines[:]
    moved[1 + one], moved[1 + other] = moved[1 + other], moved[1 + one]

    refused(b"".join(lines[: 1 + one] + lines[2 + one :]))
    if one != other:
        refused(b"".join(moved))


def test_the_line_is_named():
    lines = WHOLE.splitlines(keepends=True)

    assert refused(b"").line == 1
    assert refused(b"".join(lines[:3])).line == 4
    assert refused(b"".join(lines[:3])[:-5]).line == 3
    assert refused(b"".join([*lines[:2], b"oops\n", *lines[3:]])).line == 3
    assert "footer is missing" in str(refused(b"".join(lines[:3])))
    assert "cut off" in str(refused(b"".join(lines[:3])[:-5]))


def test_a_wrong_count_and_a_wrong_digest_are_told_apart():
    row = '{"table":"things","row":' + json.dumps(dict.fromkeys(KINDS)) + "}"

    assert read(sealed(row))[1] == [dict.fromkeys(KINDS)]
    assert "counts other rows" in str(refused(sealed(row, rows={"things": 2})))
    assert "counts other rows" in str(refused(sealed(row, rows={})))
    assert "digest" in str(refused(sealed(row, sha256="0" * 64)))


def test_what_follows_the_footer_is_refused():
    assert "follows the footer" in str(refused(WHOLE + b"\n"))
    assert "follows the footer" in str(refused(WHOLE + WHOLE))


# -- what is not ours, or not yet


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("{}", "no export"),
        ('{"format":"other","version":1}', "no export"),
        ('{"format":"memoranda"}', "version"),
        ('{"format":"memoranda","version":2}', "upgrade"),
        ('{"format":"memoranda","version":true}', "version"),
        ('{"format":"memoranda","version":1,"vectors":"yes"}', "header"),
        ('{"format":"memoranda","version":1,"vectors":true,"language":7}', "header"),
        ("[]", "no JSON object"),
        ("content,day", "no JSON"),
    ],
    ids=str,
)
def test_another_kind_of_file_is_refused_at_its_first_line(first, said):
    error = refused(first.encode() + b"\n")

    assert error.line == 1
    assert said in str(error)


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[1]",
        '{"table":"things"}',
        '{"table":7,"row":{}}',
        '{"table":"things","row":[]}',
        '{"table":"things","row":{},"more":1}',
        '{"table":"things","row":{"number":NaN}}',
        '{"table":"things","row":{"text":"\\u0000"}}',
        '{"table":"things","row":{"json":{"\\ud800":1}}}',
        '{"table":"things","row":{"json":' + "[" * 5000 + "]" * 5000 + "}}",
        '{"table":"others","row":{}}',
        '{"table":"things","row":{"other":1}}',
    ],
    ids=lambda line: line[:44],
)
def test_a_line_that_is_no_row_is_refused(line):
    assert refused(sealed(line)).line == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", 7),
        ("integer", "7"),
        ("integer", 7.0),
        ("integer", True),
        ("integer", 2**31),
        ("number", "1"),
        ("truth", 1),
        ("id", "not-an-id"),
        ("id", 7),
        ("moment", "2025-03-01T12:00:00"),
        ("moment", "soon"),
        ("moment", 0),
        ("day", "2025-13-01"),
        ("metadata", []),
        ("metadata", {"a": {"$type": "unknown", "value": 1}}),
        ("metadata", {"a": {"$type": "uuid"}}),
        ("vector", "AAA"),
        ("vector", ""),
        ("vector", "AACAfw=="),  # infinity
        ("vector", [1.0]),
        ("raw", "é"),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_refused_and_not_quoted(name, value):
    row = {**dict.fromkeys(KINDS), name: value}

    error = refused(sealed(json.dumps({"table": "things", "row": row})))

    assert error.line == 2
    assert f"things.{name} is no {KINDS[name]}" in str(error)


def test_null_is_refused_where_the_table_takes_none():
    shape = {"things": {"text": Field(kind="text")}}
    [line] = ArchiveReader(io.BytesIO(sealed('{"table":"things","row":{"text":null}}'))).rows()

    with pytest.raises(UnreadableArchive):
        decoded(line, shape, complete=True)


def test_a_row_of_an_older_revision_may_lack_what_the_database_fills_in():
    shape = {"things": {"text": Field(kind="text"), "new": Field(kind="text", optional=True)}}
    [line] = ArchiveReader(io.BytesIO(sealed('{"table":"things","row":{"text":"tea"}}'))).rows()
    [lacking] = ArchiveReader(io.BytesIO(sealed('{"table":"things","row":{"new":"tea"}}'))).rows()

    assert decoded(line, shape, complete=False) == {"text": "tea"}
    for row, complete in ((line, True), (lacking, False)):
        with pytest.raises(UnreadableArchive, match="is missing"):
            decoded(row, shape, complete=complete)


def test_rows_are_read_and_written_one_by_one():
    lines: list[bytes] = []
    writer = ArchiveWriter(lines.append, HEADER, SHAPE)
    for n in range(1000):
        writer.row("things", {**dict.fromkeys(KINDS), "id": uuid4(), "integer": n})
        assert len(lines) == n + 2
    writer.finish()

    stream = io.BytesIO(b"".join(lines))
    reader = ArchiveReader(stream)
    for n, line in enumerate(reader.rows()):
        assert (line.number, line.row["integer"], line.size) == (n + 2, n, len(lines[n + 1]))
        assert stream.tell() == sum(map(len, lines[: n + 2]))
