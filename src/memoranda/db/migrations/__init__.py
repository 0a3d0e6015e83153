"""Ordered revisions of the tables, in a version table of our own.

A revision is a module of `revisions` with `upgrade(op, dialect)`. Revisions are only ever added: what has been released
never changes. Alembic is loaded when a revision runs, and only then.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select

from memoranda.errors import SchemaMissing, SchemaOutdated, SchemaTooNew

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

REVISIONS = (
    "0001_memories",
    "0002_spaces",
    "0003_erasures",
    "0004_jobs",
    "0005_user_model",
    "0006_knowledge",
    "0007_conversations",
    "0008_items",
    "0009_changes",
)
"""Every revision, oldest first."""

HEAD = REVISIONS[-1]


def version_table(dialect: "Dialect") -> Table:
    """Return the table whose one row names the newest revision that was applied."""
    return Table(
        f"{dialect.prefix}version", MetaData(schema=dialect.schema), Column("revision", String, primary_key=True)
    )


def current(conn: Connection, dialect: "Dialect") -> str | None:
    """Return the revision the tables are at, None when there are none."""
    table = version_table(dialect)
    if not inspect(conn).has_table(table.name, schema=dialect.schema):
        return None
    return conn.scalar(select(table.c.revision))


def check(conn: Connection, dialect: "Dialect") -> None:
    """Do nothing when the tables are those of this release.

    Raises:
        SchemaMissing: there are no tables.
        SchemaOutdated: revisions are missing.
        SchemaTooNew: a newer release made the tables.
    """
    revision = current(conn, dialect)
    if revision == HEAD:
        return
    if revision is None:
        raise SchemaMissing()
    raise SchemaOutdated() if revision in REVISIONS else SchemaTooNew()


def upgrade(conn: Connection, dialect: "Dialect") -> list[str]:
    """Apply the missing revisions inside the caller's transaction, and return their names.

    Raises:
        SchemaTooNew: a newer release made the tables.
    """
    dialect.before_upgrade(conn)
    revision = current(conn, dialect)
    if revision is not None and revision not in REVISIONS:
        raise SchemaTooNew()
    missing = REVISIONS[REVISIONS.index(revision) + 1 if revision else 0 :]
    if not missing:
        return []
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    op = Operations(MigrationContext.configure(conn))
    for name in missing:
        import_module(f"memoranda.db.migrations.revisions.r{name}").upgrade(op, dialect)
    table = version_table(dialect)
    if revision is None:
        table.create(conn)
    conn.execute(table.delete())
    conn.execute(table.insert().values(revision=HEAD))
    return list(missing)
