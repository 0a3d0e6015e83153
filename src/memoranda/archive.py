r"""The export file: JSON lines that hold every row of a store as it is, and prove that they are all there.

Format "memoranda", version 1. UTF-8, one JSON object a line, each line ended by a line feed, and the whole of it
compressed with gzip where the file's name ends in `.gz`:

1. The header: `{"format": "memoranda", "version": 1, "revision": ..., "embedder": ..., "language": ..., "terms": ...,
   "vectors": ..., "tenant": ..., "persona": ...}`. `revision` is that of the tables, `terms` that of the index terms,
   `vectors` says whether vectors were taken along; `tenant` and `persona` are null where all of them were. How many
   rows follow is not known when it is written.
2. One line a row: `{"table": "memories", "row": {"tenant": "", "persona": "main", "id": ...}}`. The rows of a table
   follow each other, after those of the tables they refer to. Columns that the database works out by itself are left
   out.
3. The footer: `{"rows": {"memories": 2, ...}, "sha256": ...}`, the number of rows of each table and the SHA-256 digest,
   in hexadecimal, of every byte before this line. It tells a whole file from a cut or changed one; it is no signature.

A value is null or, by the kind of its column:

| kind | in the file |
| --- | --- |
| `text`, `integer`, `number`, `truth`, `json` | as JSON has them |
| `uuid` | its usual spelling |
| `moment`, `date` | ISO 8601, a moment with its offset from UTC |
| `metadata` | JSON in which values that JSON does not know are tagged, as `memoranda.metadata` does |
| `vector` | the float32 numbers, little-endian, in base64 |
| `bytes` | base64 |

Nobody is asked who may see what: the file holds every row of what was chosen, so keep it as you keep the database.
"""

import json
import math
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from gzip import BadGzipFile
from hashlib import sha256
from typing import Any, BinaryIO, Literal, TypeAlias
from uuid import UUID

import numpy as np

from memoranda import metadata
from memoranda.errors import InvalidInput
from memoranda.text import clean

FORMAT = "memoranda"
VERSION = 1
LONGEST_LINE = 1 << 28
"""The most bytes of a line: more than any row has, and less than the memory that a file made to hurt would take."""

_INTEGER_LIMIT = 2**31  # the integers of the tables have 32 bits

Kind: TypeAlias = Literal[
    "text", "integer", "number", "truth", "json", "uuid", "moment", "date", "metadata", "vector", "bytes"
]


class UnreadableArchive(InvalidInput):
    """The file is no complete export: nothing was imported."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        """Say what is wrong, and in which line, from 1."""
        place = "" if line is None else f"line {line:,}: "
        super().__init__(f"{place}{message}. Nothing was imported.", field="file")
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file says of itself before its rows; the format's description says what each field means."""

    revision: str | None = None
    embedder: str | None = None
    language: str | None = None
    terms: int | None = None
    vectors: bool = True
    tenant: str | None = None
    persona: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column as the file knows it."""

    kind: Kind
    nullable: bool = False
    optional: bool = False
    """Whether the database has a value for it where a row of an older revision has none."""


Shape: TypeAlias = Mapping[str, Mapping[str, Field]]
"""The columns of every table, by the names that stand in the file."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the file, not decoded yet."""

    number: int
    """Its line, from 1."""
    size: int
    """In bytes."""
    table: str
    row: Mapping[str, Any]


# -- values


def _vector(text: str) -> Any:
    vector = np.frombuffer(b64decode(text, validate=True), "<f4")
    if not len(vector) or not np.isfinite(vector).all():
        raise ValueError
    return vector


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC)


def _metadata(value: Any) -> Any:
    decoded = metadata.decode(value)
    if not isinstance(decoded, dict):
        raise ValueError
    metadata.encode(decoded)  # what could not be stored is found here, where the line is known
    return decoded


def _integer(value: Any) -> int:
    if type(value) is not int or not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        raise ValueError
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError
        return value

    return check


def _same(value: Any) -> Any:
    return value


_ENCODERS: Mapping[Kind, Callable[[Any], Any]] = {
    "text": _same,
    "integer": _same,
    "number": _same,
    "truth": _same,
    "json": _same,
    "uuid": str,
    "moment": lambda v: v.astimezone(UTC).isoformat(),
    "date": date.isoformat,
    "metadata": metadata.encode,
    "vector": lambda v: b64encode(np.asarray(v, "<f4").tobytes()).decode("ascii"),
    "bytes": lambda v: b64encode(v).decode("ascii"),
}
_DECODERS: Mapping[Kind, Callable[[Any], Any]] = {
    "text": _exactly(str),
    "integer": _integer,
    "number": _number,
    "truth": _exactly(bool),
    "json": _same,
    "uuid": UUID,
    "moment": _moment,
    "date": date.fromisoformat,
    "metadata": _metadata,
    "vector": _vector,
    "bytes": lambda v: b64decode(v, validate=True),
}
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, InvalidInput)


def decoded(line: Line, shape: Shape, *, complete: bool) -> dict[str, Any]:
    """Return the values of a row.

    Args:
        line: The row.
        shape: The tables that are known.
        complete: Whether every column must be there; those of an older revision have fewer.

    Raises:
        UnreadableArchive: table or columns are unknown or missing, or a value is not of its column's kind.
    """
    columns = shape.get(line.table)
    if columns is None:
        raise UnreadableArchive(f"this release knows no table {_shown(line.table)}", line=line.number)
    for name in line.row:
        if name not in columns:
            raise UnreadableArchive(f"{line.table} has no column {_shown(name)}", line=line.number)
    values: dict[str, Any] = {}
    for name, column in columns.items():
        if name not in line.row:
            if complete or not column.optional:
                raise UnreadableArchive(f"{line.table}.{name} is missing", line=line.number)
            continue
        value = line.row[name]
        try:
            if value is None and not column.nullable:
                raise ValueError
            values[name] = value if value is None else _DECODERS[column.kind](value)
        except _UNREADABLE:
            raise UnreadableArchive(f"{line.table}.{name} is no {column.kind}", line=line.number) from None
    return values


def _shown(name: str) -> str:
    return repr(name[:60])


# -- writing


class ArchiveWriter:
    """Writes header, rows and footer."""

    def __init__(self, write: Callable[[bytes], object], header: Header, shape: Shape) -> None:
        """Write the header.

        Args:
            write: Takes the bytes of a line.
            header: What the file says of itself.
            shape: The columns of the tables whose rows will come.
        """
        self._write = write
        self._digest = sha256()
        self._encoders = {
            table: {name: _ENCODERS[column.kind] for name, column in columns.items()}
            for table, columns in shape.items()
        }
        self._rows: Counter[str] = Counter()
        self._put({"format": FORMAT, "version": VERSION, **asdict(header)})

    def row(self, table: str, values: Mapping[Any, Any]) -> None:
        """Write a row."""
        encoders = self._encoders[table]
        row = {name: None if (v := values[name]) is None else encode(v) for name, encode in encoders.items()}
        self._put({"table": table, "row": row})
        self._rows[table] += 1

    def finish(self) -> tuple[Mapping[str, int], str]:
        """Write the footer, and return the numbers of rows and the digest that stand in it."""
        rows, digest = dict(self._rows), self._digest.hexdigest()
        self._put({"rows": rows, "sha256": digest})
        return rows, digest

    def _put(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        self._digest.update(line)
        self._write(line)


# -- reading


class ArchiveReader:
    """Reads the header at once, and the rows one by one; that they were all there is known after the last one."""

    def __init__(self, stream: BinaryIO) -> None:
        """Read the header.

        Raises:
            UnreadableArchive: it is none, or that of a version that is not known here.
        """
        self._stream = stream
        self._digest = sha256()
        self._number = 0
        value, raw = self._next("the file is empty")
        self._digest.update(raw)
        if value.get("format") != FORMAT:
            raise UnreadableArchive("this is no export of Memoranda", line=1)
        if type(value.get("version")) is not int or value["version"] != VERSION:
            raise UnreadableArchive(
                f"the format's version is not {VERSION}, the one this release reads: upgrade the `memoranda` package",
                line=1,
            )
        self.header = _header(value)

    def rows(self) -> Iterator[Line]:
        """Yield the rows, and look at the footer behind them.

        Raises:
            UnreadableArchive: a line cannot be read, the footer is missing, or it says something else.
        """
        counts: Counter[str] = Counter()
        while True:
            value, raw = self._next("the footer is missing: the file was cut off")
            if value.keys() == {"rows", "sha256"}:
                self._check(value, counts)
                return
            table, row = value.get("table"), value.get("row")
            if value.keys() != {"table", "row"} or not isinstance(table, str) or not isinstance(row, dict):
                raise UnreadableArchive("this is neither a row nor the footer", line=self._number)
            self._digest.update(raw)
            counts[table] += 1
            yield Line(self._number, len(raw), table, row)

    def _check(self, footer: Mapping[str, Any], counts: Mapping[str, int]) -> None:
        rows = footer["rows"]
        if rows != dict(counts):
            raise UnreadableArchive(
                "the footer counts other rows than there are: the file was changed", line=self._number
            )
        if footer["sha256"] != self._digest.hexdigest():
            raise UnreadableArchive("the digest is another one: the file was changed or damaged", line=self._number)
        if self._read():
            raise UnreadableArchive("something follows the footer", line=self._number)

    def _next(self, at_end: str) -> tuple[dict[str, Any], bytes]:
        raw = self._read()
        if not raw:
            raise UnreadableArchive(at_end, line=self._number)
        if not raw.endswith(b"\n"):
            what = "is too long" if len(raw) > LONGEST_LINE else "ends in its middle: the file was cut off"
            raise UnreadableArchive(f"the line {what}", line=self._number)
        try:
            text = raw.decode()
            value = json.loads(text, parse_constant=_refuse)
            if "\\u" in text and _unstorable(value):
                raise ValueError
        except (ValueError, RecursionError):
            raise UnreadableArchive("this is no JSON, or none that a database can hold", line=self._number) from None
        if not isinstance(value, dict):
            raise UnreadableArchive("this is no JSON object", line=self._number)
        return value, raw

    def _read(self) -> bytes:
        self._number += 1
        try:
            return self._stream.readline(LONGEST_LINE + 1)
        except (EOFError, BadGzipFile, zlib.error):
            raise UnreadableArchive("the compressed data is cut off or damaged", line=self._number) from None


def _header(value: Mapping[str, Any]) -> Header:
    found: dict[str, Any] = {field.name: value.get(field.name) for field in fields(Header)}
    texts = all(found[name] is None or isinstance(found[name], str) for name in found.keys() - {"terms", "vectors"})
    if not texts or not isinstance(found["vectors"], bool) or not isinstance(found["terms"], int | None):
        raise UnreadableArchive("the header cannot be read", line=1)
    return Header(**found)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _unstorable(value: Any) -> bool:
    """Say whether a string holds what neither database takes: NUL, or half of a surrogate pair."""
    if isinstance(value, str):
        return clean(value) != value
    if isinstance(value, dict):
        return any(_unstorable(key) or _unstorable(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_unstorable, value))
