"""The tables, declared once.

A store's tables differ by database in a few ways only, and the dialect supplies them: their names, their row keys, the
columns and indexes of full text, and the indexes that pay on one of them only. Every unique key and every btree index
starts with tenant and persona, so that the schema can be distributed by hash on the tenant as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
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

from memoranda.db import conversation_tables, corpora, item_tables, knowledge_tables
from memoranda.db.columns import CLUSTERED, axis, one_of, scale, scope, searched
from memoranda.db.corpora import Corpus, Kind
from memoranda.db.counts import KnownCounts
from memoranda.db.inserts import Inserts
from memoranda.db.statements import Statements
from memoranda.db.types import Json, Metadata, UTCDateTime

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

MEMORY_TYPES = ("preference", "semantic", "episodic", "prospective", "procedural", "summary")
STATUSES = ("active", "superseded", "retracted", "expired")
AUDIENCES = knowledge_tables.AUDIENCES
JOB_STATUSES = ("waiting", "failed")
ERASURES = ("memory", "user", "about", "persona")
SOURCE_TYPES = ("user_message", "assistant_inference", "tool_result", "manual", "consolidation", "reflection")

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one store, and the dialect that knows its database."""

    dialect: "Dialect"
    inserts: Inserts
    statements: Statements
    counts: KnownCounts
    metadata: MetaData
    corpora: Mapping[Kind, Corpus]
    """The tables that are searched, by what their rows are."""
    memories: Table
    memory_versions: Table
    memory_access: Table
    sources: Table
    vectors: Table
    project_members: Table
    spaces: Table
    erasures: Table
    jobs: Table
    user_model: Table
    user_model_versions: Table
    knowledge_documents: Table
    knowledge_chunks: Table
    conversations: Table
    messages: Table
    snapshots: Table
    snapshot_memories: Table
    extractions: Table
    store_items: Table
    store_item_texts: Table
    record_keys: Table
    settings: Table


def declare(dialect: "Dialect") -> Tables:
    """Return the tables as the dialect's database holds them."""
    meta = MetaData(schema=dialect.schema, naming_convention=NAMES)

    def name(noun: str) -> str:
        return f"{dialect.prefix}{noun}"

    def of_memory() -> ForeignKeyConstraint:
        return ForeignKeyConstraint(
            ["tenant", "persona", "memory_id"],
            [memories.c.tenant, memories.c.persona, memories.c.id],
            ondelete="CASCADE",
        )

    memories = Table(
        name("memories"),
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        Column("short_id", String(8), nullable=False),
        Column("type", String, nullable=False, server_default=text("'semantic'")),
        Column("status", String, nullable=False, server_default=text("'active'")),
        Column("category", String),
        Column("title", Text),
        Column("content", Text, nullable=False),
        Column("importance", Integer, nullable=False, server_default=text("5")),
        Column("confidence", Integer, nullable=False, server_default=text("8")),
        Column("core", Boolean, nullable=False, server_default=text("false")),
        Column("day", Date, nullable=False),
        Column("event_time", UTCDateTime),
        Column("valid_from", UTCDateTime),
        Column("valid_to", UTCDateTime),
        axis("author"),
        axis("audience", "private"),
        axis("project"),
        axis("project_key"),
        axis("space"),
        axis("about"),
        axis("session"),
        Column("position", Integer),
        Column("metadata", Metadata, nullable=False),
        Column("superseded_by", Uuid),
        Column("dedupe_key", String(32)),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *searched(dialect),
        *dialect.key("tenant", "persona", "id", numbered=True),
        one_of("type", MEMORY_TYPES),
        one_of("status", STATUSES),
        one_of("audience", AUDIENCES),
        scale("importance"),
        scale("confidence"),
        CheckConstraint("audience <> 'project' OR project <> ''", name="audience_project"),
        CheckConstraint("valid_to >= valid_from", name="window"),
        UniqueConstraint("tenant", "persona", "short_id"),
        UniqueConstraint("tenant", "persona", "dedupe_key"),
    )
    c = memories.c
    Index(None, c.tenant, c.persona, c.author, c.status, c.length)
    Index(None, c.tenant, c.persona, c.created_at)
    Index(None, c.tenant, c.persona, c.day)
    if dialect.wide_indexes:
        Index(None, c.tenant, c.persona, c.importance, c.created_at)
        Index(None, c.tenant, c.persona, c.status, c.type)
    for column, condition in (
        (c.project_key, "project_key <> ''"),
        (c.superseded_by, "superseded_by IS NOT NULL"),
    ):
        where = text(condition)
        Index(None, c.tenant, c.persona, column, sqlite_where=where, postgresql_where=where)
    where = text("session <> ''")
    Index(None, c.tenant, c.persona, c.session, c.position, sqlite_where=where, postgresql_where=where)
    dialect.search_indexes(memories)

    memory_versions = Table(
        name("memory_versions"),
        meta,
        *scope(),
        Column("memory_id", Uuid, nullable=False),
        Column("version", Integer, nullable=False),
        Column("change", String, nullable=False),
        axis("changed_by"),
        Column("changed_at", UTCDateTime, nullable=False),
        Column("image", Json, nullable=False),
        *dialect.key("tenant", "persona", "memory_id", "version"),
        of_memory(),
        **CLUSTERED,
    )
    memory_access = Table(
        name("memory_access"),
        meta,
        *scope(),
        Column("memory_id", Uuid, nullable=False),
        Column("count", Integer, nullable=False),
        Column("last_accessed_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "memory_id"),
        of_memory(),
        **CLUSTERED,
    )
    sources = Table(
        name("sources"),
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        Column("memory_id", Uuid, nullable=False),
        Column("type", String, nullable=False),
        axis("session"),
        axis("channel"),
        axis("actor"),
        Column("excerpt", Text, nullable=False, server_default=text("''")),
        Column("created_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "memory_id", "id"),
        one_of("type", SOURCE_TYPES),
        of_memory(),
        **CLUSTERED,
    )
    vectors = Table(
        name("vectors"),
        meta,
        *scope(),
        Column("kind", String, nullable=False),  # what the owner is: a kind of `memoranda.db.corpora`
        Column("model", String, nullable=False),  # name@dimensions: vectors of two models are never compared
        Column("owner", Uuid, nullable=False),
        Column("vector", dialect.vector_type(), nullable=False),
        *dialect.key("tenant", "persona", "kind", "model", "owner", numbered=True),
        sqlite_autoincrement=True,  # a number is never given twice: caches ask for what is newer than they have seen
    )
    project_members = Table(
        name("project_members"),
        meta,
        *scope(),
        axis("project"),
        axis("member"),
        Column("granted_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "project", "member"),
        **CLUSTERED,
    )
    spaces = Table(
        name("spaces"),
        meta,
        *scope(),
        Column("name", String, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("archived_at", UTCDateTime),
        *dialect.key("tenant", "persona", "name"),
        **CLUSTERED,
    )
    erasures = Table(
        name("erasures"),
        meta,
        axis("tenant"),  # empty where it would name the one who was erased
        axis("persona"),  # empty for all of them, and where it was erased itself
        Column("id", Uuid, nullable=False),
        Column("kind", String, nullable=False),
        Column("subject", String(64), nullable=False),  # a digest: the ledger holds no name
        Column("count", Integer, nullable=False),
        Column("erased_at", UTCDateTime, nullable=False),
        Column("finished_at", UTCDateTime),  # NULL until nothing is left in the file either
        *dialect.key("tenant", "persona", "id"),
        one_of("kind", ERASURES),
        **CLUSTERED,
    )
    jobs = Table(
        name("jobs"),
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        Column("kind", String, nullable=False),
        Column("payload", Json, nullable=False),
        Column("status", String, nullable=False, server_default=text("'waiting'")),
        Column("unique_key", String),  # of what there may be one at a time; NULL where there may be many
        Column("attempts", Integer, nullable=False, server_default=text("0")),
        Column("due_at", UTCDateTime, nullable=False),
        Column("lease_until", UTCDateTime),
        axis("worker"),
        axis("error"),
        Column("created_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "id"),
        UniqueConstraint("tenant", "persona", "unique_key"),
        one_of("status", JOB_STATUSES),
        **CLUSTERED,
    )
    Index(None, jobs.c.tenant, jobs.c.persona, jobs.c.due_at)
    user_model = Table(
        name("user_model"),
        meta,
        *scope(),
        axis("user"),
        Column("dimension", String, nullable=False),
        Column("content", Text, nullable=False),
        Column("confidence", Integer, nullable=False, server_default=text("5")),
        Column("version", Integer, nullable=False, server_default=text("1")),
        Column("follows", Integer),  # the version undo goes back to; NULL for none
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "user", "dimension"),
        scale("confidence"),
        **CLUSTERED,
    )
    user_model_versions = Table(
        name("user_model_versions"),
        meta,
        *scope(),
        axis("user"),
        Column("dimension", String, nullable=False),
        Column("version", Integer, nullable=False),
        Column("follows", Integer),
        Column("content", Text, nullable=False),
        Column("confidence", Integer, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("replaced_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "user", "dimension", "version"),
        scale("confidence"),
        **CLUSTERED,
    )
    documents, chunks = knowledge_tables.declare(dialect, meta)
    chats = conversation_tables.declare(dialect, meta)
    items = item_tables.declare(dialect, meta)
    settings = Table(
        name("settings"),
        meta,
        Column("key", String, primary_key=True),
        Column("value", Json, nullable=False),
    )
    return Tables(
        dialect=dialect,
        inserts=Inserts(dialect),
        statements=Statements(dialect),
        counts=KnownCounts(),
        metadata=meta,
        corpora=corpora.declare(memories, chunks, chats.messages, items.store_item_texts),
        memories=memories,
        memory_versions=memory_versions,
        memory_access=memory_access,
        sources=sources,
        vectors=vectors,
        project_members=project_members,
        spaces=spaces,
        erasures=erasures,
        jobs=jobs,
        user_model=user_model,
        user_model_versions=user_model_versions,
        knowledge_documents=documents,
        knowledge_chunks=chunks,
        **chats._asdict(),
        **items._asdict(),
        settings=settings,
    )
