"""Spaces: the places in which statements are learned."""

from typing import TYPE_CHECKING

from sqlalchemy import Column, PrimaryKeyConstraint, String, text

from memoranda.db.types import UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the table of spaces."""
    op.create_table(
        f"{dialect.prefix}spaces",
        Column("tenant", String, nullable=False, server_default=text("''")),
        Column("persona", String, nullable=False, server_default=text("'main'")),
        Column("name", String, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("archived_at", UTCDateTime),
        PrimaryKeyConstraint("tenant", "persona", "name", name=op.f(f"pk_{dialect.prefix}spaces")),
        schema=dialect.schema,
        sqlite_with_rowid=False,
    )
