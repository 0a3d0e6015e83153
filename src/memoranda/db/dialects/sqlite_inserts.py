"""How SQLite takes rows: many in one statement.

FTS5 writes what it has gathered to its tables once for each statement that fires a trigger. Row by row that costs more
than all indexes together, and fifty rows a statement are stored in half the time.
"""

import sqlite3
from collections.abc import Sequence
from itertools import chain

from sqlalchemy import Connection, Table
from sqlalchemy.sql.compiler import SQLCompiler

from memoranda.db.inserts import Values, Wire

_ROWS = 50  # a statement: more gain nothing


class SqliteInserts:
    """See `memoranda.db.inserts.Prepared`."""

    def __init__(self, conn: Connection, table: Table, names: Sequence[str], compiled: SQLCompiler) -> None:
        """Take the compiled statement apart at its row of parameters."""
        self._wire = Wire.of(conn, table, names, compiled.positiontup or ())
        self._width = len(names)
        self._row = f"({', '.join('?' * self._width)})"
        self._head, row, self._tail = str(compiled).partition(self._row)
        assert row

    def run(self, cursor: sqlite3.Cursor, rows: Sequence[Values]) -> int:
        """Insert rows, so many at a time as a statement may have parameters for."""
        parameters = cursor.connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        size = min(_ROWS, parameters // self._width)
        values, inserted = self._wire.values(rows), 0
        for start in range(0, len(values), size):
            some = values[start : start + size]
            statement = f"{self._head}{', '.join([self._row] * len(some))}{self._tail}"
            cursor.execute(statement, tuple(chain.from_iterable(some)))
            inserted += cursor.rowcount
        return inserted
