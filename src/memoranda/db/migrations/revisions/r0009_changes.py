"""What lets a database that holds rows in memory know which of them were changed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect

KEPT = 20_000
"""So many of the newest changes are kept: who comes later than that reads everything anew."""


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Have changes of the rows that are kept in memory noted, where any are."""
    dialect.note_changes(op, KEPT)
