"""Conversations: their messages, the snapshots of the prompt block, and what was extracted from where."""

from typing import TYPE_CHECKING

from sqlalchemy import Column, String, Text, Uuid, text

from memoranda.db.migrations.making import Making, axis, number
from memoranda.db.types import Json, UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect

_CONVERSATION = (("tenant", "persona", "conversation_id"), ("tenant", "persona", "id"))


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the tables of conversations."""

    def empty(name: str, kind: type[String] | type[Text] = String) -> Column[str]:
        return Column(name, kind, nullable=False, server_default=text("''"))

    conversations = Making(op, dialect, "conversations")
    conversations.create(
        Column("id", Uuid, nullable=False),
        axis("author"),
        Column("name", String, nullable=False),
        number("last_position", 0),
        number("folded_to", 0),
        empty("summary", Text),
        empty("summary_version"),
        number("user_turns", 0),
        Column("metadata", Json, nullable=False),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *conversations.key("tenant", "persona", "id"),
        conversations.unique("tenant", "persona", "author", "name"),
    )
    messages = Making(op, dialect, "messages")
    messages.create(
        Column("id", Uuid, nullable=False),
        Column("conversation_id", Uuid, nullable=False),
        axis("author"),
        number("position"),
        Column("key", String),
        Column("digest", String(32), nullable=False),
        Column("role", String, nullable=False),
        Column("content", Text, nullable=False),
        Column("body", Text, nullable=False),
        axis("codec"),
        Column("payload", Text),
        number("tokens"),
        Column("said_in", Json, nullable=False),
        Column("folded_at", UTCDateTime),
        Column("pending_at", UTCDateTime),
        Column("created_at", UTCDateTime, nullable=False),
        *messages.searched(),
        *messages.key("tenant", "persona", "id", numbered=True),
        messages.unique("tenant", "persona", "conversation_id", "position"),
        messages.unique("tenant", "persona", "conversation_id", "key"),
        messages.one_of("role", "system", "user", "assistant", "tool"),
        messages.reference("conversations", *_CONVERSATION),
        numbered=True,
    )
    messages.index("tenant", "persona", "author", "length")
    messages.index("tenant", "persona", "conversation_id", "pending_at", where="pending_at IS NOT NULL")
    messages.index("tenant", "persona", "conversation_id", "position", where="role = 'system'")
    messages.search()

    snapshots = Making(op, dialect, "snapshots")
    snapshots.create(
        Column("conversation_id", Uuid, nullable=False),
        Column("scope_key", String(32), nullable=False),
        axis("user"),
        Column("block", Text, nullable=False),
        number("tokens"),
        Column("created_at", UTCDateTime, nullable=False),
        *snapshots.key("tenant", "persona", "conversation_id", "scope_key"),
        snapshots.reference("conversations", *_CONVERSATION),
    )
    shown = Making(op, dialect, "snapshot_memories")
    shown.create(
        Column("memory_id", Uuid, nullable=False),
        Column("conversation_id", Uuid, nullable=False),
        Column("scope_key", String(32), nullable=False),
        *shown.key("tenant", "persona", "memory_id", "conversation_id", "scope_key"),
        shown.reference(
            "snapshots",
            ("tenant", "persona", "conversation_id", "scope_key"),
            ("tenant", "persona", "conversation_id", "scope_key"),
        ),
    )
    extractions = Making(op, dialect, "extractions")
    extractions.create(
        Column("conversation_id", Uuid, nullable=False),
        Column("kind", String, nullable=False),
        number("first_position"),
        number("last_position"),
        Column("prompt_version", String, nullable=False),
        axis("model"),
        number("proposed"),
        number("written"),
        Column("created_at", UTCDateTime, nullable=False),
        *extractions.key("tenant", "persona", "conversation_id", "kind", "first_position", "last_position"),
        extractions.one_of("kind", "flush", "review"),
        extractions.reference("conversations", *_CONVERSATION),
    )
