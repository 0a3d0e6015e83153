"""Reading rows at the driver's own price.

Of a select that is kept SQLAlchemy is asked once how it reads, and how values go to the driver and come back. Executed
through SQLAlchemy it costs ten times what a driver takes for few rows; and psycopg, which remembers no statement as
long as that of a recall, would look for its parameters anew each time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Float, Numeric, Select
from sqlalchemy.sql.compiler import SQLCompiler

from memoranda.db.driving import Processor

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

_FLOATS = (Float, Numeric)


@dataclass(frozen=True, slots=True, repr=False)
class KeptSelect:
    """A select as the driver takes it."""

    text: str
    names: Sequence[str]
    """Of the parameters, in the order in which the driver wants them."""
    own: Mapping[str, Any]
    """The values it was built with."""
    processors: Mapping[str, Processor]
    """What makes something else of the values of parameters."""
    read: Sequence[tuple[int, Processor]]
    """What makes something else of the values in a column."""

    @classmethod
    def of(cls, conn: Connection, dialect: "Dialect", statement: Select[Any]) -> "KeptSelect | None":
        """Compile a statement.

        None for one that SQLAlchemy has to execute: with lists, of which each length is another statement, or on an
        engine of a caller's.

        Args:
            conn: A connection of the store.
            dialect: The store's.
            statement: The statement.
        """
        if dialect.foreign:
            return None  # its owner may be watching what SQLAlchemy executes there
        compiled = statement.compile(dialect=dialect.compiling(conn))
        assert isinstance(compiled, SQLCompiler)
        if compiled.post_compile_params:
            return None
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        types = {name: bind.type.dialect_impl(conn.dialect) for name, bind in binds.items()}
        found = {name: kind.bind_processor(conn.dialect) for name, kind in types.items()}
        # Floats and what Postgres counts as NUMERIC come as such: SQLAlchemy would ask what the server calls them.
        columns = enumerate(column.type for column in statement.selected_columns)
        asked = ((place, kind.dialect_impl(conn.dialect)) for place, kind in columns if not isinstance(kind, _FLOATS))
        read = ((place, kind.result_processor(conn.dialect, None)) for place, kind in asked)
        return cls(
            str(compiled),
            tuple(compiled.positiontup or ()),
            {name: bind.value for name, bind in binds.items() if not bind.required},
            {name: process for name, process in found.items() if process},
            tuple((place, process) for place, process in read if process),
        )

    def rows(self, conn: Connection, dialect: "Dialect", values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """Return the rows it finds.

        Args:
            conn: A connection.
            dialect: The store's.
            values: Of its parameters; a parameter that has none is an error.
        """
        known = {**self.own, **values}
        given = [self.processors[name](known[name]) if name in self.processors else known[name] for name in self.names]
        found = dialect.fetched(conn, self.text, given)
        return [self._row(row) for row in found] if self.read else found

    def _row(self, raw: Sequence[Any]) -> list[Any]:
        row = list(raw)
        for place, process in self.read:
            row[place] = process(row[place])
        return row
