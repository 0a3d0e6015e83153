"""What each database does in its own way; elsewhere the code asks the dialect, never for its name."""

from typing import TYPE_CHECKING

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from memoranda.errors import ConfigurationError, ExtraMissing

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}


def parse_url(text: str) -> URL:
    """Return an address with the driver that Memoranda uses.

    Raises:
        ConfigurationError: the text is no database address, or of a database that is not supported.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the original message may hold the whole address, password included
        raise ConfigurationError(
            "the database address cannot be read: write sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        ) from None
    name, _, driver = url.drivername.partition("+")
    if name not in _DRIVERS:
        raise ConfigurationError(f"{name} is not supported: use sqlite or postgresql")
    wanted = _DRIVERS[name]
    if driver and wanted != f"{url.get_backend_name()}+{driver}":
        raise ConfigurationError(f"the driver {driver} is not supported: write {wanted}://")
    return url.set(drivername=wanted)


def in_memory(url: URL) -> bool:
    """Say whether a database lives in this process's memory and ends with it."""
    file = url.database or ""
    return url.get_backend_name() == "sqlite" and (
        not file or ":memory:" in file or "mode=memory" in file or url.query.get("mode") == "memory"
    )


def dialect_for(backend: str, *, schema: str) -> "Dialect":
    """Return the dialect of a database by SQLAlchemy's name for it.

    Raises:
        ExtraMissing: the drivers of the database are not installed.
        ConfigurationError: the database is not supported.
    """
    if backend == "sqlite":
        from memoranda.db.dialects.sqlite import SqliteDialect

        return SqliteDialect()
    if backend == "postgresql":
        try:
            import pgvector.sqlalchemy  # noqa: F401
            import psycopg  # noqa: F401
        except ImportError:
            raise ExtraMissing('Postgres needs its drivers: pip install "memoranda[postgres]"') from None
        from memoranda.db.dialects.postgresql import PostgresqlDialect

        return PostgresqlDialect(schema)
    raise ConfigurationError(f"{backend} is not supported: use sqlite or postgresql")
