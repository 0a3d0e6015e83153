"""The tables of conversations: messages, the snapshots of the prompt block, and what was extracted from where."""

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import (
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

from memoranda.db.columns import CLUSTERED, axis, one_of, scope, searched
from memoranda.db.types import Json, Metadata, UTCDateTime

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

ROLES = ("system", "user", "assistant", "tool")
EXTRACTIONS = ("flush", "review")


class ConversationTables(NamedTuple):
    """The tables of conversations."""

    conversations: Table
    messages: Table
    snapshots: Table
    snapshot_memories: Table
    extractions: Table


def declare(dialect: "Dialect", meta: MetaData) -> ConversationTables:
    """Return the tables of conversations."""
    conversations = Table(
        f"{dialect.prefix}conversations",
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        axis("author"),
        Column("name", String, nullable=False),
        Column("last_position", Integer, nullable=False, server_default=text("0")),  # of the newest message, from 1
        Column("folded_to", Integer, nullable=False, server_default=text("0")),  # the last one the summary speaks for
        Column("summary", Text, nullable=False, server_default=text("''")),
        Column("summary_version", String, nullable=False, server_default=text("''")),  # of the prompt that made it
        Column("user_turns", Integer, nullable=False, server_default=text("0")),  # since the last review
        Column("metadata", Metadata, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "id"),
        UniqueConstraint("tenant", "persona", "author", "name"),
        **CLUSTERED,
    )

    def of_conversation() -> ForeignKeyConstraint:
        return ForeignKeyConstraint(
            ["tenant", "persona", "conversation_id"],
            [conversations.c.tenant, conversations.c.persona, conversations.c.id],
            ondelete="CASCADE",
        )

    messages = Table(
        f"{dialect.prefix}messages",
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        Column("conversation_id", Uuid, nullable=False),
        axis("author"),
        Column("position", Integer, nullable=False),  # from 1, in the order of the database
        Column("key", String),  # the caller's own id of the message; NULL where there is none
        Column("digest", String(32), nullable=False),  # of role and content: what is sent again is known by it
        Column("role", String, nullable=False),
        Column("content", Text, nullable=False),  # what a person would read of it
        # What it is beyond its text, and the framework's own form: JSON as text, which keeps the order of keys and what
        # a database's own JSON refuses or rounds.
        Column("body", Text, nullable=False),
        axis("codec"),  # whose form the payload has; empty for none
        Column("payload", Text),
        Column("tokens", Integer, nullable=False),
        Column("said_in", Json, nullable=False),  # the axes of the scope it was said in, for what is taken from it
        Column("folded_at", UTCDateTime),
        Column("pending_at", UTCDateTime),  # when it left a model's sight, until what it says was extracted
        Column("created_at", UTCDateTime, nullable=False),
        *searched(dialect),
        *dialect.key("tenant", "persona", "id", numbered=True),
        UniqueConstraint("tenant", "persona", "conversation_id", "position"),
        UniqueConstraint("tenant", "persona", "conversation_id", "key"),
        one_of("role", ROLES),
        of_conversation(),
    )
    Index(None, messages.c.tenant, messages.c.persona, messages.c.author, messages.c.length)
    where = text("pending_at IS NOT NULL")
    c = messages.c
    Index(None, c.tenant, c.persona, c.conversation_id, c.pending_at, sqlite_where=where, postgresql_where=where)
    where = text("role = 'system'")  # few, and part of every window however old
    Index(None, c.tenant, c.persona, c.conversation_id, c.position, sqlite_where=where, postgresql_where=where)
    dialect.search_indexes(messages)

    snapshots = Table(
        f"{dialect.prefix}snapshots",
        meta,
        *scope(),
        Column("conversation_id", Uuid, nullable=False),
        Column("scope_key", String(32), nullable=False),  # a digest of who asks and of what shapes the block
        axis("user"),
        Column("block", Text, nullable=False),  # empty where there was nothing to remember
        Column("tokens", Integer, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "conversation_id", "scope_key"),
        of_conversation(),
        **CLUSTERED,
    )
    snapshot_memories = Table(
        f"{dialect.prefix}snapshot_memories",
        meta,
        *scope(),
        Column("memory_id", Uuid, nullable=False),
        Column("conversation_id", Uuid, nullable=False),
        Column("scope_key", String(32), nullable=False),
        *dialect.key("tenant", "persona", "memory_id", "conversation_id", "scope_key"),
        ForeignKeyConstraint(
            ["tenant", "persona", "conversation_id", "scope_key"],
            [snapshots.c.tenant, snapshots.c.persona, snapshots.c.conversation_id, snapshots.c.scope_key],
            ondelete="CASCADE",
        ),
        **CLUSTERED,
    )
    extractions = Table(
        f"{dialect.prefix}extractions",
        meta,
        *scope(),
        Column("conversation_id", Uuid, nullable=False),
        Column("kind", String, nullable=False),
        Column("first_position", Integer, nullable=False),
        Column("last_position", Integer, nullable=False),
        Column("prompt_version", String, nullable=False),
        axis("model"),
        Column("proposed", Integer, nullable=False),
        Column("written", Integer, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "conversation_id", "kind", "first_position", "last_position"),
        one_of("kind", EXTRACTIONS),
        of_conversation(),
        **CLUSTERED,
    )
    return ConversationTables(conversations, messages, snapshots, snapshot_memories, extractions)
