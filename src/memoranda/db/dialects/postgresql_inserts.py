"""How Postgres takes rows: one by an INSERT, many by COPY, which takes a fifth of the time.

COPY leaves no row out. Where one breaks a unique key it is taken back to a savepoint, and the rows follow one by one;
so they do where COPY is refused, as it is below row-level security.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pgvector.sqlalchemy import Vector as VectorType
from psycopg import Cursor, sql
from psycopg.adapt import Dumper
from psycopg.errors import FeatureNotSupported, UniqueViolation
from psycopg.pq import Format
from psycopg.types.numeric import Int4
from sqlalchemy import Connection, Integer, Table
from sqlalchemy.sql.compiler import SQLCompiler

from memoranda.db.driving import Processor
from memoranda.db.inserts import Values, Wire

FEW = 8
"""Rows that are inserted one by one in the time COPY takes with its savepoint."""
_FLOATS = np.dtype(">f4")


class _Packed:
    """A vector in pgvector's binary format: its length, two bytes of nothing, big-endian float32."""

    __slots__ = ("data",)

    def __init__(self, vector: Any) -> None:
        values = np.asarray(vector, _FLOATS)
        self.data = len(values).to_bytes(2) + b"\0\0" + values.tobytes()


class _PackedDumper(Dumper):
    """Sends a packed vector as it is; without an oid, for that differs by database, and the column says it."""

    format = Format.BINARY

    def dump(self, obj: _Packed) -> bytes:
        return obj.data


class PostgresqlInserts:
    """See `memoranda.db.inserts.Prepared`."""

    def __init__(
        self, conn: Connection, table: Table, names: Sequence[str], compiled: SQLCompiler, *, skip_conflicts: bool
    ) -> None:
        """Write the COPY that does what a compiled INSERT does."""
        # COPY takes numbers as wide as the column, where psycopg would send them as small as they are.
        own: dict[str, Processor] = {name: Int4 for name in names if isinstance(table.c[name].type, Integer)}
        vectors = {name: _Packed for name in names if isinstance(table.c[name].type, VectorType)}
        self._packs = bool(vectors)
        self._names = names
        self._wire = Wire.of(conn, table, names, names, own | vectors)
        self._insert = str(compiled)
        self._copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            sql.Identifier(*filter(None, (table.schema, table.name))), sql.SQL(", ").join(map(sql.Identifier, names))
        )
        self._instead = (FeatureNotSupported, UniqueViolation) if skip_conflicts else (FeatureNotSupported,)

    def run(self, cursor: Cursor[Any], rows: Sequence[Values]) -> int:
        """Insert rows, all at once where nothing stands against it."""
        if self._packs:
            cursor.adapters.register_dumper(_Packed, _PackedDumper)
        values = self._wire.values(rows)
        if len(values) > FEW and self._copied(cursor, values):
            return len(values)
        parameters = [dict(zip(self._names, row, strict=True)) for row in values]
        if len(parameters) > 1:
            cursor.executemany(self._insert, parameters)
        else:
            cursor.execute(self._insert, parameters[0])
        return cursor.rowcount

    def _copied(self, cursor: Cursor[Any], rows: Sequence[Values]) -> bool:
        """Copy rows, or none where that must not be."""
        cursor.execute("SAVEPOINT memoranda_copy")
        try:
            with cursor.copy(self._copy) as copy:
                for row in rows:
                    copy.write_row(row)
        except self._instead:
            cursor.execute("ROLLBACK TO SAVEPOINT memoranda_copy; RELEASE SAVEPOINT memoranda_copy")
            return False
        cursor.execute("RELEASE SAVEPOINT memoranda_copy")
        return True
