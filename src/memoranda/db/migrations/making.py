"""What a revision makes tables with: the names of keys, checks and indexes as the declared schema gives them."""

from typing import TYPE_CHECKING, Any

from sqlalchemy import CheckConstraint, Column, ForeignKeyConstraint, Integer, String, Text, UniqueConstraint, text

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def axis(name: str, default: str = "") -> Column[str]:
    """Return a column of text that is never NULL."""
    return Column(name, String, nullable=False, server_default=text(f"'{default}'"))


def number(name: str, default: int | None = None) -> Column[int]:
    """Return a column of whole numbers that is never NULL."""
    return Column(name, Integer, nullable=False, server_default=None if default is None else text(str(default)))


class Making:
    """Makes one table of a revision, with its indexes."""

    def __init__(self, op: "Operations", dialect: "Dialect", noun: str) -> None:
        """Name the table."""
        self._op = op
        self._dialect = dialect
        self._noun = noun
        self._name = f"{dialect.prefix}{noun}"

    def create(self, *items: Any, numbered: bool = False) -> None:
        """Create it; rows that nothing numbers lie in their key's own tree."""
        scope = (axis("tenant"), axis("persona", "main"))
        self._op.create_table(self._name, *scope, *items, schema=self._dialect.schema, sqlite_with_rowid=numbered)

    def key(self, *names: str, numbered: bool = False) -> list[Any]:
        """Return what makes these columns the key of the rows."""
        items = self._dialect.key(*names, numbered=numbered)
        for item in items:
            if isinstance(item, UniqueConstraint):
                item.name = self._op.f(f"uq_{self._name}_{'_'.join(names)}")
        return items

    def unique(self, *names: str) -> UniqueConstraint:
        """Return the constraint that no two rows share these values."""
        return UniqueConstraint(*names, name=self._op.f(f"uq_{self._name}_{'_'.join(names)}"))

    def one_of(self, column: str, *values: str) -> CheckConstraint:
        """Return the constraint that a column holds one of these words."""
        return self.check(column, f"{column} IN ({', '.join(repr(value) for value in values)})")

    def check(self, name: str, condition: str) -> CheckConstraint:
        """Return a constraint of another kind."""
        return CheckConstraint(condition, name=self._op.f(f"ck_{self._name}_{name}"))

    def reference(self, noun: str, columns: tuple[str, ...], referred: tuple[str, ...]) -> ForeignKeyConstraint:
        """Return the constraint that a row goes with the row of another table that it names."""
        other = f"{self._dialect.prefix}{noun}"
        table = f"{self._dialect.schema}.{other}" if self._dialect.schema else other
        return ForeignKeyConstraint(
            list(columns),
            [f"{table}.{column}" for column in referred],
            ondelete="CASCADE",
            name=self._op.f(f"fk_{self._name}_{other}"),
        )

    def searched(self) -> list[Any]:
        """Return the columns from which a row is found by its words."""
        terms = [Column(name, Text, nullable=False) for name in ("cells", "category_terms", "content_terms")]
        return [*terms, number("length"), *self._dialect.search_columns()]

    def index(self, *columns: str, where: str | None = None) -> None:
        """Index columns, of all rows or of those that meet a condition."""
        condition = text(where) if where else None
        self._op.create_index(
            self._op.f(f"ix_{self._name}_{'_'.join(columns)}"),
            self._name,
            list(columns),
            schema=self._dialect.schema,
            sqlite_where=condition,
            postgresql_where=condition,
        )

    def unique_index(self, *columns: str, where: str) -> None:
        """Let no two of the rows that meet a condition share these values."""
        self._op.create_index(
            self._op.f(f"ux_{self._name}_{'_'.join(columns)}"),
            self._name,
            list(columns),
            unique=True,
            schema=self._dialect.schema,
            sqlite_where=text(where),
            postgresql_where=text(where),
        )

    def extend(self, column: Column[Any]) -> None:
        """Add a column to a table that is there."""
        self._op.add_column(self._name, column, schema=self._dialect.schema)

    def search(self) -> None:
        """Create what full text needs beside the columns."""
        if self._dialect.schema:
            self._op.create_index(
                self._op.f(f"ix_{self._name}_search"),
                self._name,
                ["search"],
                schema=self._dialect.schema,
                postgresql_using="gin",
            )
        self._dialect.create_search(self._op, self._noun)
