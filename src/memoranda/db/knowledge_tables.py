"""The tables of knowledge: documents, and the chunks they were cut into."""

from typing import TYPE_CHECKING

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from memoranda.db.columns import CLUSTERED, one_of, placed, scope, searched
from memoranda.db.types import Json, Metadata, UTCDateTime

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

AUDIENCES = ("private", "project")


def declare(dialect: "Dialect", meta: MetaData) -> tuple[Table, Table]:
    """Return the tables of documents and of their chunks."""
    documents = Table(
        f"{dialect.prefix}knowledge_documents",
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        *placed(),
        Column("source", String, nullable=False),
        Column("digest", String(64), nullable=False),  # of everything the chunks depend on
        Column("media_type", String, nullable=False),
        Column("chunks", Integer, nullable=False),
        Column("characters", Integer, nullable=False),
        Column("metadata", Metadata, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "id"),
        UniqueConstraint("tenant", "persona", "author", "source"),
        one_of("audience", AUDIENCES),
        CheckConstraint("audience <> 'project' OR project <> ''", name="audience_project"),
        **CLUSTERED,
    )
    chunks = Table(
        f"{dialect.prefix}knowledge_chunks",
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        Column("document_id", Uuid, nullable=False),
        *placed(),
        Column("source", String, nullable=False),
        Column("chunk_index", Integer, nullable=False),
        Column("key", String),  # the caller's name of a node of a collection; NULL for a chunk that we cut
        Column("content", Text, nullable=False),
        Column("overlap", Integer, nullable=False),  # characters of the content that the chunk before has, too
        Column("start", Integer, nullable=False),  # where its own text begins in the document's
        Column("headings", Json, nullable=False),
        Column("metadata", Metadata, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        *searched(dialect),
        *dialect.key("tenant", "persona", "id", numbered=True),
        UniqueConstraint("tenant", "persona", "document_id", "chunk_index"),
        ForeignKeyConstraint(
            ["tenant", "persona", "document_id"],
            [documents.c.tenant, documents.c.persona, documents.c.id],
            ondelete="CASCADE",
        ),
    )
    Index(None, chunks.c.tenant, chunks.c.persona, chunks.c.author, chunks.c.length)
    where = text("key IS NOT NULL")
    columns = (chunks.c.tenant, chunks.c.persona, chunks.c.document_id, chunks.c.key)
    name = f"ux_{chunks.name}_tenant_persona_document_id_key"
    Index(name, *columns, unique=True, sqlite_where=where, postgresql_where=where)
    dialect.search_indexes(chunks)
    return documents, chunks
