"""Jobs: what is left to be done in the background."""

from typing import TYPE_CHECKING

from sqlalchemy import CheckConstraint, Column, Integer, PrimaryKeyConstraint, String, UniqueConstraint, Uuid, text

from memoranda.db.types import Json, UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the table of jobs."""
    name = f"{dialect.prefix}jobs"
    op.create_table(
        name,
        Column("tenant", String, nullable=False, server_default=text("''")),
        Column("persona", String, nullable=False, server_default=text("'main'")),
        Column("id", Uuid, nullable=False),
        Column("kind", String, nullable=False),
        Column("payload", Json, nullable=False),
        Column("status", String, nullable=False, server_default=text("'waiting'")),
        Column("unique_key", String),
        Column("attempts", Integer, nullable=False, server_default=text("0")),
        Column("due_at", UTCDateTime, nullable=False),
        Column("lease_until", UTCDateTime),
        Column("worker", String, nullable=False, server_default=text("''")),
        Column("error", String, nullable=False, server_default=text("''")),
        Column("created_at", UTCDateTime, nullable=False),
        PrimaryKeyConstraint("tenant", "persona", "id", name=op.f(f"pk_{name}")),
        UniqueConstraint("tenant", "persona", "unique_key", name=op.f(f"uq_{name}_tenant_persona_unique_key")),
        CheckConstraint("status IN ('waiting', 'failed')", name=op.f(f"ck_{name}_status")),
        schema=dialect.schema,
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f(f"ix_{name}_tenant_persona_due_at"), name, ["tenant", "persona", "due_at"], schema=dialect.schema
    )
