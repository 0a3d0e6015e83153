"""Memories with their versions, sources, vectors and access counts; members of projects; settings.

Written out, not taken from `db/schema.py`: a revision says what was made at its time, whatever the tables become.
"""

from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, CheckConstraint, Column, Date, ForeignKeyConstraint, Integer, String, Text, Uuid, text
from sqlalchemy import UniqueConstraint as Unique

from memoranda.db.types import Json, UTCDateTime

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.dialects.base import Dialect


def upgrade(op: "Operations", dialect: "Dialect") -> None:
    """Create the first tables."""

    def axis(name: str, default: str = "") -> Column[str]:
        return Column(name, String, nullable=False, server_default=text(f"'{default}'"))

    def create(noun: str, *items: Any, numbered: bool = True, counted: bool = False) -> None:
        op.create_table(
            f"{dialect.prefix}{noun}",
            *items,
            schema=dialect.schema,
            sqlite_with_rowid=numbered,
            sqlite_autoincrement=counted,
        )

    def one_of(noun: str, column: str, *values: str) -> CheckConstraint:
        allowed = ", ".join(f"'{value}'" for value in values)
        return CheckConstraint(f"{column} IN ({allowed})", name=op.f(f"ck_{dialect.prefix}{noun}_{column}"))

    def check(noun: str, name: str, condition: str) -> CheckConstraint:
        return CheckConstraint(condition, name=op.f(f"ck_{dialect.prefix}{noun}_{name}"))

    def key(noun: str, *names: str, numbered: bool = False) -> list[Any]:
        items = dialect.key(*names, numbered=numbered)
        for item in items:
            if isinstance(item, Unique):
                item.name = op.f(f"uq_{dialect.prefix}{noun}_{'_'.join(names)}")
        return items

    def of_memory(noun: str) -> ForeignKeyConstraint:
        memories = f"{dialect.schema}.memories" if dialect.schema else f"{dialect.prefix}memories"
        return ForeignKeyConstraint(
            ["tenant", "persona", "memory_id"],
            [f"{memories}.tenant", f"{memories}.persona", f"{memories}.id"],
            ondelete="CASCADE",
            name=op.f(f"fk_{dialect.prefix}{noun}_{dialect.prefix}memories"),
        )

    def index(noun: str, *columns: str, where: str | None = None) -> None:
        condition = text(where) if where else None
        op.create_index(
            op.f(f"ix_{dialect.prefix}{noun}_{'_'.join(columns)}"),
            f"{dialect.prefix}{noun}",
            list(columns),
            schema=dialect.schema,
            sqlite_where=condition,
            postgresql_where=condition,
        )

    sources = ("user_message", "assistant_inference", "tool_result", "manual", "consolidation", "reflection")
    types = ("preference", "semantic", "episodic", "prospective", "procedural", "summary")
    prefix = dialect.prefix
    create(
        "memories",
        axis("tenant"),
        axis("persona", "main"),
        Column("id", Uuid, nullable=False),
        Column("short_id", String(8), nullable=False),
        axis("type", "semantic"),
        axis("status", "active"),
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
        Column("metadata", Json, nullable=False),
        Column("superseded_by", Uuid),
        Column("dedupe_key", String(32)),
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime, nullable=False),
        Column("cells", Text, nullable=False),
        Column("category_terms", Text, nullable=False),
        Column("content_terms", Text, nullable=False),
        Column("length", Integer, nullable=False),
        *dialect.search_columns(),
        *key("memories", "tenant", "persona", "id", numbered=True),
        one_of("memories", "type", *types),
        one_of("memories", "status", "active", "superseded", "retracted", "expired"),
        one_of("memories", "audience", "private", "project"),
        check("memories", "importance", "importance BETWEEN 1 AND 10"),
        check("memories", "confidence", "confidence BETWEEN 1 AND 10"),
        check("memories", "audience_project", "audience <> 'project' OR project <> ''"),
        check("memories", "window", "valid_to >= valid_from"),
        Unique("tenant", "persona", "short_id", name=op.f(f"uq_{prefix}memories_tenant_persona_short_id")),
        Unique("tenant", "persona", "dedupe_key", name=op.f(f"uq_{prefix}memories_tenant_persona_dedupe_key")),
    )
    index("memories", "tenant", "persona", "author", "status", "length")
    index("memories", "tenant", "persona", "created_at")
    index("memories", "tenant", "persona", "day")
    if dialect.wide_indexes:
        index("memories", "tenant", "persona", "importance", "created_at")
        index("memories", "tenant", "persona", "status", "type")
    index("memories", "tenant", "persona", "project_key", where="project_key <> ''")
    index("memories", "tenant", "persona", "superseded_by", where="superseded_by IS NOT NULL")
    index("memories", "tenant", "persona", "session", "position", where="session <> ''")
    create(
        "memory_versions",
        axis("tenant"),
        axis("persona", "main"),
        Column("memory_id", Uuid, nullable=False),
        Column("version", Integer, nullable=False),
        Column("change", String, nullable=False),
        axis("changed_by"),
        Column("changed_at", UTCDateTime, nullable=False),
        Column("image", Json, nullable=False),
        *key("memory_versions", "tenant", "persona", "memory_id", "version"),
        of_memory("memory_versions"),
        numbered=False,
    )
    create(
        "memory_access",
        axis("tenant"),
        axis("persona", "main"),
        Column("memory_id", Uuid, nullable=False),
        Column("count", Integer, nullable=False),
        Column("last_accessed_at", UTCDateTime, nullable=False),
        *key("memory_access", "tenant", "persona", "memory_id"),
        of_memory("memory_access"),
        numbered=False,
    )
    create(
        "sources",
        axis("tenant"),
        axis("persona", "main"),
        Column("id", Uuid, nullable=False),
        Column("memory_id", Uuid, nullable=False),
        Column("type", String, nullable=False),
        axis("session"),
        axis("channel"),
        axis("actor"),
        Column("excerpt", Text, nullable=False, server_default=text("''")),
        Column("created_at", UTCDateTime, nullable=False),
        *key("sources", "tenant", "persona", "memory_id", "id"),
        one_of("sources", "type", *sources),
        of_memory("sources"),
        numbered=False,
    )
    create(
        "vectors",
        axis("tenant"),
        axis("persona", "main"),
        Column("kind", String, nullable=False),
        Column("model", String, nullable=False),
        Column("owner", Uuid, nullable=False),
        Column("vector", dialect.vector_type(), nullable=False),
        *key("vectors", "tenant", "persona", "kind", "model", "owner", numbered=True),
        counted=True,
    )
    create(
        "project_members",
        axis("tenant"),
        axis("persona", "main"),
        axis("project"),
        axis("member"),
        Column("granted_at", UTCDateTime, nullable=False),
        *key("project_members", "tenant", "persona", "project", "member"),
        numbered=False,
    )
    create("settings", Column("key", String, primary_key=True), Column("value", Json, nullable=False))
    if dialect.schema:
        op.create_index(
            op.f("ix_memories_search"), "memories", ["search"], schema=dialect.schema, postgresql_using="gin"
        )
    dialect.create_search(op, "memories")
