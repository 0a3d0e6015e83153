"""The driver's own cursor, for statements that are executed too often for what SQLAlchemy does around each."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

Processor: TypeAlias = Callable[[Any], Any]
"""What makes of a value what the driver takes, or of what the driver gives a value."""

_DRIVEN = "(the driver's)"
"""What stands in an error for the statement; one without failed before there was any."""


@contextmanager
def driving(conn: Connection, opened: Callable[[Any], Any] | None = None) -> Iterator[Any]:
    """Give a cursor of the driver, and turn its errors into SQLAlchemy's, without the parameters.

    Args:
        conn: A connection.
        opened: Makes the cursor of the driver's connection; its usual one when left out.
    """
    dbapi, pooled = conn.dialect.loaded_dbapi, conn.connection
    try:
        with closing(pooled.cursor() if opened is None else opened(pooled.driver_connection)) as cursor:
            yield cursor
    except dbapi.Error as error:
        lost = conn.dialect.is_disconnect(error, pooled.dbapi_connection, None)
        if lost:
            _let_go(conn, error)
        raise DBAPIError.instance(
            _DRIVEN,
            None,
            error,
            dbapi.Error,
            hide_parameters=True,
            connection_invalidated=lost,
            dialect=conn.dialect,
        ) from error


def _let_go(conn: Connection, error: Exception) -> None:
    """Have SQLAlchemy find out that a connection is lost: it lets go of the others it holds of that server, too."""
    with suppress(DBAPIError):
        conn.exec_driver_sql("SELECT 1")
    conn.invalidate(error)
