"""Column types that mean the same on every database."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

from memoranda import metadata

Json = JSON().with_variant(JSONB(), "postgresql")

Namespace = String().with_variant(String(collation="C"), "postgresql")
"""Text ordered by its bytes, so that what begins with the same letters is a range of an index."""


def in_utc(value: datetime) -> datetime:
    """Return a moment in UTC; a naive one is a mistake of ours, never of a caller's."""
    if value.tzinfo is None:
        raise TypeError("a naive datetime reached the database")
    return value if value.tzinfo is UTC else value.astimezone(UTC)


class UTCDateTime(TypeDecorator[datetime]):
    """An aware moment: UTC in the database and when it comes back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC."""
        if value is None:
            return None
        value = in_utc(value)
        return value if dialect.name == "postgresql" else value.replace(tzinfo=None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Read a text in one step, not in three."""
        if dialect.name != "sqlite":
            return super().result_processor(dialect, coltype)
        return lambda value: None if value is None else datetime.fromisoformat(f"{value}+00:00")

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return an aware moment in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Metadata(TypeDecorator[dict[str, Any]]):
    """A mapping of the caller's, tagged so that every value comes back as it was."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Use the database's own JSON type."""
        return dialect.type_descriptor(Json)

    def process_bind_param(self, value: dict[str, Any] | None, dialect: Dialect) -> Any:
        """Tag what JSON does not know."""
        return metadata.encode(value or {})

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Encode no mapping once, for most have nothing in them."""
        process = super().bind_processor(dialect)
        assert process is not None
        nothing = process({})
        return lambda value: process(value) if value else nothing

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Decode no text of an empty mapping, for most are."""
        process = super().result_processor(dialect, coltype)
        assert process is not None
        return lambda value: {} if value == "{}" else process(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> dict[str, Any]:
        """Take the tags off."""
        decoded = metadata.decode(value or {})
        assert isinstance(decoded, dict)
        return decoded
