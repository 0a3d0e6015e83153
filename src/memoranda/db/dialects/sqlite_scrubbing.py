"""Leaving no trace of erased rows in a SQLite file, its log and its indexes of words.

A deleted row stays readable in three places: in pages that are free or half empty, in segments of a full-text index,
which only note that it is gone, and in the write-ahead log. So each index is merged into one segment, the file is
written anew, and the log is emptied. The log cannot be emptied while somebody reads the file as it was.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from memoranda.db.dialects.base import Scrubbed
from memoranda.db.driving import driving

_IN_USE = (
    "another connection reads the database file as it was before, or writes to it: end it, then run "
    "`memoranda erase --finish` (in Python `finish_erasures`); an engine that is opened or closed later tries it too"
)


def scrub(conn: Connection, indexes: Sequence[str], patience: float) -> Scrubbed:
    """Rewrite indexes, file and log, or say who stands in the way; nobody is waited for longer than `patience` seconds.

    Args:
        conn: A connection outside any transaction.
        indexes: The names of the full-text tables.
        patience: How long to wait for each lock.
    """
    with driving(conn) as cursor:
        usual = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {int(1000 * patience)}")
        try:
            done = _log_emptied(cursor) and _rewritten(cursor, indexes) and _log_emptied(cursor)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            done = False
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual}")
    return Scrubbed(obstacle=None if done else _IN_USE)


def _log_emptied(cursor: Any) -> bool:
    """Move the log into the file and cut it off; False when a reader needs it. Tried first, for it costs little."""
    busy: int = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return not busy


def _rewritten(cursor: Any, indexes: Sequence[str]) -> bool:
    for index in indexes:
        cursor.execute(f"INSERT INTO {index}({index}) VALUES ('optimize')")
    cursor.execute("VACUUM")
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] == "persist":  # a caller's: old pages stay in the journal
        cursor.execute("PRAGMA journal_mode = DELETE").fetchone()
        cursor.execute("PRAGMA journal_mode = PERSIST").fetchone()
    return True
