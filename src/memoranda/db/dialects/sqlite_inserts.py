"""How SQLite takes rows: many in one statement.

FTS5 writes what it has gathered to its tables once for each statement that fires a trigger. Row by row that costs more
than all indexes together, and a hundred rows a statement are stored in half the time.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection, Date, Dialect, LargeBinary, Table, Uuid
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeDecorator, TypeEngine

from memoranda.db.driving import Processor
from memoranda.db.inserts import Values, Wire
from memoranda.db.types import UTCDateTime, in_utc

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 100  # a statement: five hundred save another tenth, and keep its compiled form as many times as large


class PackedVector(TypeDecorator["NDArray[np.float32]"]):
    """A vector as packed little-endian float32."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        """Pack."""
        return None if value is None else _packed(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> "NDArray[np.float32] | None":
        """Unpack."""
        return None if value is None else np.frombuffer(value, "<f4")


def _packed(vector: Any) -> bytes:
    return np.asarray(vector, "<f4").tobytes()


def _moment(value: datetime) -> str:
    return in_utc(value).isoformat(" ", "microseconds").removesuffix("+00:00")


_AT_ONCE: Mapping[type[TypeEngine[Any]], Processor] = MappingProxyType(
    {Uuid: attrgetter("hex"), UTCDateTime: _moment, Date: date.isoformat, PackedVector: _packed}
)
"""What SQLAlchemy's processors of these types do, in one call each instead of three."""


class SqliteInserts:
    """See `memoranda.db.inserts.Prepared`."""

    def __init__(self, conn: Connection, table: Table, names: Sequence[str], compiled: SQLCompiler) -> None:
        """Take the compiled statement apart at its row of parameters."""
        kinds = ((name, _AT_ONCE.get(type(table.c[name].type))) for name in names)
        own = {name: processor for name, processor in kinds if processor is not None}
        self._wire = Wire.of(conn, table, names, compiled.positiontup or (), own)
        self._width = len(names)
        self._row = f"({', '.join('?' * self._width)})"
        self._head, row, self._tail = str(compiled).partition(self._row)
        assert row
        self._statements: dict[int, str] = {}

    def run(self, cursor: sqlite3.Cursor, rows: Sequence[Values]) -> int:
        """Insert rows, so many at a time as a statement may have parameters for."""
        values = self._wire.values(rows)
        if len(values) == 1:
            cursor.execute(self._statement(1), values[0])
            return cursor.rowcount
        parameters = cursor.connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        size, inserted = min(_ROWS, parameters // self._width), 0
        for start in range(0, len(values), size):
            some = values[start : start + size]
            cursor.execute(self._statement(len(some)), tuple(chain.from_iterable(some)))
            inserted += cursor.rowcount
        return inserted

    def _statement(self, rows: int) -> str:
        statement = self._statements.get(rows)
        if statement is None:
            statement = self._statements[rows] = f"{self._head}{', '.join([self._row] * rows)}{self._tail}"
        return statement
