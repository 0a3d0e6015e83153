"""Erasures: what was erased and when, without a name, so that it can be erased again after an import."""

from typing import TYPE_CHECKING

from sqlalchemy import CheckConstraint, Column, Integer, PrimaryKeyConstraint, String, Uuid, text

from memoranda.db.types import UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the ledger of erasures."""
    name = f"{dialect.prefix}erasures"
    op.create_table(
        name,
        Column("tenant", String, nullable=False, server_default=text("''")),
        Column("persona", String, nullable=False, server_default=text("''")),
        Column("id", Uuid, nullable=False),
        Column("kind", String, nullable=False),
        Column("subject", String(64), nullable=False),
        Column("count", Integer, nullable=False),
        Column("erased_at", UTCDateTime, nullable=False),
        Column("finished_at", UTCDateTime),
        PrimaryKeyConstraint("tenant", "persona", "id", name=op.f(f"pk_{name}")),
        CheckConstraint("kind IN ('memory', 'user', 'about', 'persona')", name=op.f(f"ck_{name}_kind")),
        schema=dialect.schema,
        sqlite_with_rowid=False,
    )
