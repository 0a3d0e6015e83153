"""Inserting rows at the driver's own price.

SQLAlchemy compiles an insert and says how each value goes to the driver; that is asked once a table. Executing it anew
for every row costs three times what the database does with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

_Processor: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An insert as the driver takes it."""

    statement: str
    names: tuple[str, ...]
    processors: tuple[_Processor | None, ...]
    positional: bool

    def parameters(self, row: Mapping[str, Any]) -> Any:
        values = [
            value if (value := row[name]) is None or process is None else process(value)
            for name, process in zip(self.names, self.processors, strict=True)
        ]
        return tuple(values) if self.positional else dict(zip(self.names, values, strict=True))


@contextmanager
def driving(conn: Connection) -> Iterator[Any]:
    """Give the driver's own cursor, and turn its errors into SQLAlchemy's, without the parameters."""
    dbapi = conn.dialect.loaded_dbapi
    cursor = conn.connection.cursor()
    try:
        yield cursor
    except dbapi.Error as error:
        lost = conn.dialect.is_disconnect(error, conn.connection.dbapi_connection, cursor)
        if lost:
            conn.invalidate(error)
        raise DBAPIError.instance(
            "INSERT", None, error, dbapi.Error, hide_parameters=True, connection_invalidated=lost, dialect=conn.dialect
        ) from error
    finally:
        cursor.close()


class Inserts:
    """The inserts of one store, each prepared when it is first used."""

    def __init__(self, dialect: "Dialect") -> None:
        """Begin with none."""
        self._dialect = dialect
        self._prepared: dict[tuple[str, tuple[str, ...], bool], _Prepared] = {}

    def add(
        self, conn: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, skip_conflicts: bool = False
    ) -> int:
        """Insert rows that have the same columns, and return how many were inserted.

        With `skip_conflicts` a row that breaks a unique key is left out; without, it is an error.
        """
        if not rows:
            return 0
        key = (table.name, tuple(rows[0]), skip_conflicts)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepared[key] = self._prepare(conn, table, tuple(rows[0]), skip_conflicts)
        parameters = [prepared.parameters(row) for row in rows]
        with driving(conn) as cursor:
            if len(parameters) > 1:
                cursor.executemany(prepared.statement, parameters)
            else:
                cursor.execute(prepared.statement, parameters[0])
            return int(cursor.rowcount)

    def _prepare(self, conn: Connection, table: Table, names: tuple[str, ...], skip_conflicts: bool) -> _Prepared:
        insert = self._dialect.insert(table)
        statement = insert.on_conflict_do_nothing() if skip_conflicts else insert
        compiled = statement.compile(dialect=conn.dialect, column_keys=list(names))
        ordered = tuple(compiled.positiontup) if compiled.positiontup else names
        processors = (table.c[name].type.dialect_impl(conn.dialect).bind_processor(conn.dialect) for name in ordered)
        return _Prepared(str(compiled), ordered, tuple(processors), positional=compiled.positiontup is not None)
