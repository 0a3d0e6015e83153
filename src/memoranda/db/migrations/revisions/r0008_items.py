"""Items of a store, the texts they are found by, keys of records, and chunks with a key of the caller's."""

from typing import TYPE_CHECKING

from sqlalchemy import Column, Float, String, Text, Uuid

from memoranda.db.migrations.making import Making, axis, number
from memoranda.db.types import Json, Namespace, UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the tables of items and record keys, and give chunks a key."""
    items = Making(op, dialect, "store_items")
    items.create(
        Column("id", Uuid, nullable=False),
        axis("author"),
        Column("namespace", Namespace, nullable=False),
        Column("key", String, nullable=False),
        Column("value", Json, nullable=False),
        Column("ttl_minutes", Float),
        Column("expires_at", UTCDateTime),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *items.key("tenant", "persona", "id"),
        items.unique("tenant", "persona", "author", "namespace", "key"),
    )
    items.index("tenant", "persona", "author", "updated_at")
    items.index("tenant", "persona", "expires_at", where="expires_at IS NOT NULL")
    texts = Making(op, dialect, "store_item_texts")
    texts.create(
        Column("id", Uuid, nullable=False),
        axis("author"),
        Column("item_id", Uuid, nullable=False),
        Column("namespace", Namespace, nullable=False),
        number("position"),
        Column("path", String, nullable=False),
        Column("content", Text, nullable=False),
        Column("embedder", String),
        Column("created_at", UTCDateTime, nullable=False),
        *texts.searched(),
        *texts.key("tenant", "persona", "id", numbered=True),
        texts.unique("tenant", "persona", "item_id", "position"),
        texts.reference("store_items", ("tenant", "persona", "item_id"), ("tenant", "persona", "id")),
        numbered=True,
    )
    texts.index("tenant", "persona", "author", "namespace", "length")
    texts.search()
    keys = Making(op, dialect, "record_keys")
    keys.create(
        axis("author"),
        Column("namespace", String, nullable=False),
        Column("key", String, nullable=False),
        Column("group_id", String),
        Column("updated_at", Float, nullable=False),
        *keys.key("tenant", "persona", "author", "namespace", "key"),
    )
    keys.index("tenant", "persona", "author", "namespace", "updated_at")
    chunks = Making(op, dialect, "knowledge_chunks")
    chunks.extend(Column("key", String))
    chunks.unique_index("tenant", "persona", "document_id", "key", where="key IS NOT NULL")
