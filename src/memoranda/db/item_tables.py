"""The tables of items: JSON values under a namespace and a key, the texts they are found by, and keys of records."""

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import (
    Column,
    Float,
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

from memoranda.db.columns import CLUSTERED, axis, scope, searched
from memoranda.db.types import Metadata, Namespace, UTCDateTime

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect


class ItemTables(NamedTuple):
    """The tables of items and of record keys."""

    store_items: Table
    store_item_texts: Table
    record_keys: Table


def declare(dialect: "Dialect", meta: MetaData) -> ItemTables:
    """Return the tables of items and of record keys."""
    items = Table(
        f"{dialect.prefix}store_items",
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        axis("author"),
        Column("namespace", Namespace, nullable=False),  # its labels, each followed by a full stop
        Column("key", String, nullable=False),
        Column("value", Metadata, nullable=False),
        Column("ttl_minutes", Float),  # how long it lives from when it is written or refreshed; NULL for ever
        Column("expires_at", UTCDateTime),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        *dialect.key("tenant", "persona", "id"),
        UniqueConstraint("tenant", "persona", "author", "namespace", "key"),
        **CLUSTERED,
    )
    Index(None, items.c.tenant, items.c.persona, items.c.author, items.c.updated_at)
    where = text("expires_at IS NOT NULL")
    Index(None, items.c.tenant, items.c.persona, items.c.expires_at, sqlite_where=where, postgresql_where=where)
    texts = Table(
        f"{dialect.prefix}store_item_texts",
        meta,
        *scope(),
        Column("id", Uuid, nullable=False),
        axis("author"),
        Column("item_id", Uuid, nullable=False),
        Column("namespace", Namespace, nullable=False),  # the item's, for texts are looked for inside one
        Column("position", Integer, nullable=False),  # among the texts of its item, from 0
        Column("path", String, nullable=False),  # where in the value it was found
        Column("content", Text, nullable=False),
        Column("embedder", String),  # what its vector is made by, as name@dimensions; NULL for the store's own
        Column("created_at", UTCDateTime, nullable=False),
        *searched(dialect),
        *dialect.key("tenant", "persona", "id", numbered=True),
        UniqueConstraint("tenant", "persona", "item_id", "position"),
        ForeignKeyConstraint(
            ["tenant", "persona", "item_id"], [items.c.tenant, items.c.persona, items.c.id], ondelete="CASCADE"
        ),
    )
    Index(None, texts.c.tenant, texts.c.persona, texts.c.author, texts.c.namespace, texts.c.length)
    dialect.search_indexes(texts)
    keys = Table(
        f"{dialect.prefix}record_keys",
        meta,
        *scope(),
        axis("author"),
        Column("namespace", String, nullable=False),
        Column("key", String, nullable=False),
        Column("group_id", String),
        Column("updated_at", Float, nullable=False),  # seconds since 1970, as callers compare them
        *dialect.key("tenant", "persona", "author", "namespace", "key"),
        **CLUSTERED,
    )
    Index(None, keys.c.tenant, keys.c.persona, keys.c.author, keys.c.namespace, keys.c.updated_at)
    return ItemTables(items, texts, keys)
