"""The driver's own cursor, for statements that are executed too often for what SQLAlchemy does around each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

Processor: TypeAlias = Callable[[Any], Any]
"""What makes of a value what the driver takes, or of what the driver gives a value."""

_DRIVEN = "(the driver's)"
"""What stands in an error for the statement; one without failed before there was any."""


@contextmanager
def driving(conn: Connection) -> Iterator[Any]:
    """Give the driver's own cursor, and turn its errors into SQLAlchemy's, without the parameters."""
    dbapi = conn.dialect.loaded_dbapi
    cursor = conn.connection.cursor()
    try:
        yield cursor
    except dbapi.Error as error:
        lost = conn.dialect.is_disconnect(error, conn.connection.dbapi_connection, cursor)
        if lost:
            conn.invalidate(error)
        raise DBAPIError.instance(
            _DRIVEN,
            None,
            error,
            dbapi.Error,
            hide_parameters=True,
            connection_invalidated=lost,
            dialect=conn.dialect,
        ) from error
    finally:
        cursor.close()
