"""How Postgres takes rows: one by an INSERT, many by COPY, which takes a fifth of the time.

COPY leaves no row out. Where one breaks a unique key it is taken back to a savepoint, and the rows follow one by one;
so they do where COPY is refused, as it is below row-level security.

A small table that nobody has analyzed is analyzed in the transaction that fills it, and stays locked against VACUUM
until that ends. Until autovacuum comes by, the planner would take every index that begins with tenant and persona for
as good as the key, and each check of a foreign key would read all rows of the persona: 2 ms a row at 8,000 rows,
instead of 10 µs.
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

from memoranda.db.dialects.postgresql_upkeep import FEW_ROWS, joined
from memoranda.db.driving import Processor
from memoranda.db.inserts import Values, Wire

FEW = 8
"""Rows that are inserted one by one in the time COPY takes with its savepoint."""
_LARGE = 16 * 2**20  # bytes: what takes some 50 ms to analyze
_FLOATS = np.dtype(">f4")


def _packed(vector: Any) -> bytes:
    """Return a vector in pgvector's binary format: its length, two bytes of nothing, big-endian float32."""
    values = np.asarray(vector, _FLOATS)
    return len(values).to_bytes(2) + b"\0\0" + values.tobytes()


class _Packed(bytes):
    """A packed vector that is no `bytea`."""


class _PackedDumper(Dumper):
    """Sends a packed vector as it is; without an oid, for that differs by database, and the column says it."""

    format = Format.BINARY

    def dump(self, obj: _Packed) -> bytes:
        return obj


class PostgresqlInserts:
    """See `memoranda.db.inserts.Prepared`."""

    def __init__(
        self, conn: Connection, table: Table, names: Sequence[str], compiled: SQLCompiler, *, skip_conflicts: bool
    ) -> None:
        """Write the COPY that does what a compiled INSERT does."""
        # COPY takes numbers as wide as the column, where psycopg would send them as small as they are.
        own: dict[str, Processor] = {name: Int4 for name in names if isinstance(table.c[name].type, Integer)}
        vectors = {name: _packed for name in names if isinstance(table.c[name].type, VectorType)}
        self._vectors = tuple(vectors)
        self._names = names
        self._wire = Wire.of(conn, table, names, names, own | vectors)
        self._insert = str(compiled)
        name = sql.Identifier(*filter(None, (table.schema, table.name)))
        self._copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            name, sql.SQL(", ").join(map(sql.Identifier, names))
        )
        # Who holds the table, a VACUUM say, is not waited for; who does not own it is told, and goes on.
        self._analyze = sql.SQL("ANALYZE (SKIP_LOCKED) {} ({})").format(name, sql.SQL(joined(table)))
        self._table = table
        self._rows, self._next_look = 0, FEW_ROWS
        self._instead = (FeatureNotSupported, UniqueViolation) if skip_conflicts else (FeatureNotSupported,)

    def run(self, cursor: Cursor[Any], rows: Sequence[Values]) -> int:
        """Insert rows, all at once where nothing stands against it."""
        inserted = self._inserted(cursor, self._wire.values(rows))
        self._rows += len(rows)
        if self._rows >= self._next_look:
            # What was learnt goes with a transaction that is taken back.
            self._next_look = self._rows + FEW_ROWS if self._learns(cursor) else 2 * self._rows
        return inserted

    def _inserted(self, cursor: Cursor[Any], rows: Sequence[Values]) -> int:
        if len(rows) > FEW and self._copied(cursor, rows):
            return len(rows)
        parameters = [dict(zip(self._names, row, strict=True)) for row in rows]
        if self._vectors:
            cursor.adapters.register_dumper(_Packed, _PackedDumper)
            for values in parameters:
                values.update({name: _Packed(values[name]) for name in self._vectors})
        if len(parameters) > 1:
            cursor.executemany(self._insert, parameters)
        else:
            cursor.execute(self._insert, parameters[0])
        return cursor.rowcount

    def _learns(self, cursor: Cursor[Any]) -> bool:
        """Have the planner learn of the table if it is small and nobody has analyzed it, and say whether it was."""
        known = (
            "SELECT pg_relation_size(format('%%I.%%I', %(schema)s::text, %(name)s::text)::regclass) > %(large)s"
            " OR EXISTS (SELECT FROM pg_stats WHERE schemaname = %(schema)s AND tablename = %(name)s)"
        )
        found = cursor.execute(known, {"schema": self._table.schema, "name": self._table.name, "large": _LARGE})
        [done] = found.fetchone() or (True,)
        if not done:
            cursor.execute(self._analyze)
        return not done

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
