"""What lets a database that holds rows in memory know which of them were changed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Have changes of the rows that are searched noted, where somebody asks for them."""
    dialect.note_changes(op, ("memories", "knowledge_chunks", "messages", "store_item_texts"))
