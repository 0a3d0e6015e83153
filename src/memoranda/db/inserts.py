"""Inserting rows at the driver's own price.

SQLAlchemy compiles an insert and says how each value goes to the driver; that is asked once a table. Executing it anew
for every row costs three times what the database does with it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from sqlalchemy import Connection, Table
from sqlalchemy.sql.compiler import SQLCompiler

from memoranda.db.driving import Processor, driving

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

Values: TypeAlias = Sequence[Any]
"""Of one row."""


class Addition(NamedTuple):
    """Rows of one table, as their values in the order of the names of their columns."""

    table: Table
    names: tuple[str, ...]
    rows: Sequence[Values]

    @classmethod
    def of(cls, table: Table, rows: Sequence[Mapping[str, Any]]) -> "Addition":
        """Take rows that have the same columns, by name."""
        names = tuple(rows[0]) if rows else ()
        return cls(table, names, list(map(itemgetter(*names), rows)) if rows else ())


class Prepared(Protocol):
    """An insert as the driver takes it."""

    def run(self, cursor: Any, rows: Sequence[Values]) -> int:
        """Insert rows, and return how many were inserted."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """How rows go to the driver: which of their values stands where, and what makes something else of it."""

    pick: Callable[[Values], Values]
    processors: tuple[tuple[int, Processor], ...]

    @classmethod
    def of(
        cls,
        conn: Connection,
        table: Table,
        names: Sequence[str],
        ordered: Sequence[str],
        own: Mapping[str, Processor] = MappingProxyType({}),
    ) -> "Wire":
        """Ask the types of a table's columns.

        Args:
            conn: A connection of the store.
            table: Whose rows.
            names: The columns as the rows have them.
            ordered: The columns as the driver wants them.
            own: What makes something else of the values of columns whose types are not to be asked.
        """
        dialect = conn.dialect
        found = (own.get(name) or table.c[name].type.dialect_impl(dialect).bind_processor(dialect) for name in ordered)
        return cls(
            itemgetter(*map(names.index, ordered)),
            tuple((place, process) for place, process in enumerate(found) if process),
        )

    def values(self, rows: Sequence[Values]) -> list[list[Any]]:
        """Return the values of rows, in order and processed; None is always NULL."""
        values = [list(row) for row in map(self.pick, rows)]
        for place, process in self.processors:
            last = processed = None
            for row in values:
                if (value := row[place]) is not last:  # rows of one call have moments and much else in common
                    last, processed = value, None if value is None else process(value)
                row[place] = processed
        return values


class Inserts:
    """The inserts of one store, each prepared when it is first used."""

    def __init__(self, dialect: "Dialect") -> None:
        """Begin with none."""
        self._dialect = dialect
        self._prepared: dict[tuple[str, tuple[str, ...], bool], Prepared] = {}
        self.added: Counter[str] = Counter()
        """How many rows this process has inserted into each table, by and large: some may have been taken back."""

    def add(
        self, conn: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, skip_conflicts: bool = False
    ) -> int:
        """Insert rows that have the same columns, and return how many were inserted.

        With `skip_conflicts` a row that breaks a unique key is left out; without, it is an error.
        """
        return self.add_values(conn, *Addition.of(table, rows), skip_conflicts=skip_conflicts)

    def add_values(
        self,
        conn: Connection,
        table: Table,
        names: tuple[str, ...],
        rows: Sequence[Values],
        *,
        skip_conflicts: bool = False,
    ) -> int:
        """Do what `add` does with rows that are only their values, in the order of the names of their columns."""
        if not rows:
            return 0
        prepared = self._prepare(conn, table, names, skip_conflicts)
        with driving(conn) as cursor:
            inserted = prepared.run(cursor, rows)
        self.added[table.name] += inserted
        return inserted

    def add_together(
        self,
        conn: Connection,
        additions: Sequence[Addition],
        first: Callable[[], object] | None = None,
    ) -> None:
        """Insert rows of several tables, in this order, each as `add_values` does.

        Args:
            conn: A connection.
            additions: The rows.
            first: Executes what goes before them, and asks for no answer.
        """
        most = max(len(addition.rows) for addition in additions)
        if not most and first is None:
            return
        with driving(conn) as cursor, self._dialect.together(cursor, most):
            if first is not None:
                first()
            for table, names, rows in additions:
                if rows:
                    self._prepare(conn, table, names, False).run(cursor, rows)
                    self.added[table.name] += len(rows)

    def _prepare(self, conn: Connection, table: Table, names: tuple[str, ...], skip_conflicts: bool) -> Prepared:
        key = (table.name, names, skip_conflicts)
        found = self._prepared.get(key)
        if found is None:
            found = self._prepared[key] = self._prepared_anew(conn, table, names, skip_conflicts)
        return found

    def _prepared_anew(self, conn: Connection, table: Table, names: tuple[str, ...], skip_conflicts: bool) -> Prepared:
        insert = self._dialect.insert(table)
        statement = insert.on_conflict_do_nothing() if skip_conflicts else insert
        compiled = statement.compile(dialect=conn.dialect, column_keys=list(names))
        assert isinstance(compiled, SQLCompiler)
        return self._dialect.prepared(conn, table, names, compiled, skip_conflicts=skip_conflicts)
