"""The columns and constraints that tables have in common."""

from typing import TYPE_CHECKING, Any

from sqlalchemy import CheckConstraint, Column, Integer, String, Text, text

if TYPE_CHECKING:
    from sqlalchemy.sql.schema import SchemaItem

    from memoranda.db.dialects.base import Dialect

CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}
"""Rows lie in their key's own tree: one page less a write."""


def one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """Return the constraint that a column holds one of these words."""
    return CheckConstraint(f"{column} IN ({', '.join(repr(v) for v in values)})", name=column)


def scale(column: str) -> CheckConstraint:
    """Return the constraint that a column holds a whole number from 1 to 10."""
    return CheckConstraint(f"{column} BETWEEN 1 AND 10", name=column)


def axis(name: str, default: str = "") -> Column[str]:
    """Return a column that is never NULL, for a NULL would slip through every unique key."""
    return Column(name, String, nullable=False, server_default=text(f"'{default}'"))


def scope() -> tuple[Column[str], Column[str]]:
    """Return the two columns that every table of a persona's begins with."""
    return axis("tenant"), axis("persona", "main")


def placed() -> tuple[Column[str], ...]:
    """Return who wrote a row, and whom it is shared with."""
    return axis("author"), axis("audience", "private"), axis("project"), axis("project_key")


def searched(dialect: "Dialect") -> "list[SchemaItem]":
    """Return the columns from which a row is found by its words: encoded terms, and what the database makes of them."""
    return [
        Column("cells", Text, nullable=False),
        Column("category_terms", Text, nullable=False),
        Column("content_terms", Text, nullable=False),
        Column("length", Integer, nullable=False),
        *dialect.search_columns(),
    ]
