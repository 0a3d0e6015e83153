"""The user model: what is known of a user, by dimension, and what was known before."""

from typing import TYPE_CHECKING

from sqlalchemy import CheckConstraint, Column, Integer, PrimaryKeyConstraint, String, Text, text

from memoranda.db.types import UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the table of dimensions, and the one of their earlier texts."""

    def scope() -> list[Column[str]]:
        return [
            Column("tenant", String, nullable=False, server_default=text("''")),
            Column("persona", String, nullable=False, server_default=text("'main'")),
            Column("user", String, nullable=False, server_default=text("''")),
            Column("dimension", String, nullable=False),
        ]

    name = f"{dialect.prefix}user_model"
    op.create_table(
        name,
        *scope(),
        Column("content", Text, nullable=False),
        Column("confidence", Integer, nullable=False, server_default=text("5")),
        Column("version", Integer, nullable=False, server_default=text("1")),
        Column("follows", Integer),  # the version undo goes back to; NULL for none
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        PrimaryKeyConstraint("tenant", "persona", "user", "dimension", name=op.f(f"pk_{name}")),
        CheckConstraint("confidence BETWEEN 1 AND 10", name=op.f(f"ck_{name}_confidence")),
        schema=dialect.schema,
        sqlite_with_rowid=False,
    )
    name = f"{dialect.prefix}user_model_versions"
    op.create_table(
        name,
        *scope(),
        Column("version", Integer, nullable=False),
        Column("follows", Integer),
        Column("content", Text, nullable=False),
        Column("confidence", Integer, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("replaced_at", UTCDateTime, nullable=False),
        PrimaryKeyConstraint("tenant", "persona", "user", "dimension", "version", name=op.f(f"pk_{name}")),
        CheckConstraint("confidence BETWEEN 1 AND 10", name=op.f(f"ck_{name}_confidence")),
        schema=dialect.schema,
        sqlite_with_rowid=False,
    )
