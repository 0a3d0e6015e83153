"""Statements that are built once for each form they take, and executed with other values ever after.

Building one costs SQLAlchemy more than answering it costs the database. What differs from one execution to the next is
a parameter with a name; whatever else decides how the statement reads makes up its form.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Connection, FromClause, Select, bindparam

from memoranda.db.selects import KeptSelect

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

T = TypeVar("T")

MOST = 1000
"""Forms that are kept: a few dozen, times the numbers of words that questions have."""


Value: TypeAlias = Callable[[str, Any], Any]
"""How a condition puts a value into a statement: as `given` or as `named`."""


def given(name: str, value: Any) -> Any:
    """Put a value into a statement as it is."""
    return value


def named(name: str, value: Any) -> BindParameter[Any]:
    """Leave a value to whoever executes the statement: a kept one holds nobody's, and without it nothing runs."""
    return bindparam(name, required=True, expanding=isinstance(value, list | tuple))


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows a statement looks at, as a part of it."""

    where: Callable[[FromClause], ColumnElement[bool]]
    """The condition for the rows of a table, or of another name for it."""
    form: Hashable = None
    """What the condition depends on beside the values; None where it is nobody else's."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The values of the parameters it names."""


@dataclass(frozen=True, slots=True)
class Leg:
    """What is proposed as candidates, as a part of a statement."""

    build: Callable[[], Select[Any]]
    """Makes the statement for `id`, `score` (higher is better), `container` and `place`, the best first."""
    form: Hashable = None
    values: Mapping[str, Any] = field(default_factory=dict)
    cut: bool = False
    """Whether rows may have been left out that belong here where fewer are found than were asked for."""


class Statements:
    """The statements of one store."""

    def __init__(self, dialect: "Dialect") -> None:
        """Begin with none."""
        self._dialect = dialect
        self._built: dict[Hashable, Any] = {}
        self._selects: dict[Hashable, KeptSelect | Select[Any]] = {}

    def get(self, form: Hashable, build: Callable[[], T]) -> T:
        """Return the statement of a form, built now if it is its first time; None is a form that is never kept."""
        if form is None:
            return build()
        statement: T | None = self._built.get(form)
        if statement is None:
            if len(self._built) >= MOST:
                self._built.clear()
            statement = self._built[form] = build()
        return statement

    def rows(
        self, conn: Connection, form: Hashable, build: Callable[[], Select[Any]], values: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Return the rows that the select of a form finds, each a sequence of the values of its columns.

        Args:
            conn: A connection.
            form: What it depends on beside the values; None for a select that is never kept.
            build: Makes it.
            values: Of its parameters.
        """
        if form is None:
            return conn.execute(build(), values).all()
        kept = self._selects.get(form)
        if kept is None:
            if len(self._selects) >= MOST:
                self._selects.clear()
            statement = build()
            kept = self._selects[form] = KeptSelect.of(conn, self._dialect, statement) or statement
        if isinstance(kept, KeptSelect):
            return kept.rows(conn, self._dialect, values)
        return conn.execute(kept, values).all()
