"""Knowledge: documents, and the chunks they were cut into."""

from typing import TYPE_CHECKING

from sqlalchemy import Column, String, Text, Uuid

from memoranda.db.migrations.making import Making, axis, number
from memoranda.db.types import Json, UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the tables of documents and chunks."""

    def placed() -> list[Column[str]]:
        return [axis("author"), axis("audience", "private"), axis("project"), axis("project_key")]

    documents = Making(op, dialect, "knowledge_documents")
    documents.create(
        Column("id", Uuid, nullable=False),
        *placed(),
        Column("source", String, nullable=False),
        Column("digest", String(64), nullable=False),
        Column("media_type", String, nullable=False),
        number("chunks"),
        number("characters"),
        Column("metadata", Json, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *documents.key("tenant", "persona", "id"),
        documents.unique("tenant", "persona", "author", "source"),
        documents.one_of("audience", "private", "project"),
        documents.check("audience_project", "audience <> 'project' OR project <> ''"),
    )
    chunks = Making(op, dialect, "knowledge_chunks")
    chunks.create(
        Column("id", Uuid, nullable=False),
        Column("document_id", Uuid, nullable=False),
        *placed(),
        Column("source", String, nullable=False),
        number("chunk_index"),
        Column("content", Text, nullable=False),
        number("overlap"),
        number("start"),
        Column("headings", Json, nullable=False),
        Column("metadata", Json, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        *chunks.searched(),
        *chunks.key("tenant", "persona", "id", numbered=True),
        chunks.unique("tenant", "persona", "document_id", "chunk_index"),
        chunks.reference("knowledge_documents", ("tenant", "persona", "document_id"), ("tenant", "persona", "id")),
        numbered=True,
    )
    chunks.index("tenant", "persona", "author", "length")
    chunks.search()
