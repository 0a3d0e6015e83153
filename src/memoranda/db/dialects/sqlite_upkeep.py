"""What looks after a SQLite store: a copy made while it is in use, and a look at its file and its text indexes."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from memoranda.db.dialects.base import Examination
from memoranda.errors import StoreError

if TYPE_CHECKING:
    from memoranda.protocols import Progress

_STEP_PAGES = 1024  # 4 MB: how often progress is told
_SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}
_REPORTED = 5  # of the faults of a broken file


def backup(conn: Connection, indexes: Iterable[str], target: str, progress: "Progress | None") -> None:
    """Copy the database into a new or empty file, and try the copy.

    Raises:
        StoreError: the copy does not pass SQLite's own checks, so the database does not either.
    """
    driver = conn.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    # The transaction begins with its first look: from here on writers change nothing in it, or the copy would start
    # again with each of them.
    conn.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar()

    def told(status: int, remaining: int, total: int) -> None:
        if progress:
            progress(total - remaining, total)

    try:
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            driver.backup(copy, pages=_STEP_PAGES, progress=told)
            # One file, without a log beside it: it opens from a medium that cannot be written, too.
            copy.execute("PRAGMA journal_mode = DELETE").close()
            whole = copy.execute(f"PRAGMA integrity_check({_REPORTED})").fetchall() == [("ok",)]
            whole = whole and all(_search_agrees(copy, fts) for fts in indexes if _has_table(copy, fts))
    except sqlite3.Error as error:
        raise DBAPIError.instance(
            "BACKUP", None, error, sqlite3.Error, hide_parameters=True, dialect=conn.dialect
        ) from error
    if not whole:
        raise StoreError("The copy is damaged because the store is: run `memoranda doctor` to learn more.")


def examine(conn: Connection) -> Examination:
    """Read what SQLite says of the file."""

    def pragma(name: str) -> object:
        return conn.exec_driver_sql(f"PRAGMA {name}").scalar()

    size, pages, free = (int(str(pragma(name))) for name in ("page_size", "page_count", "freelist_count"))
    checked = conn.exec_driver_sql(f"PRAGMA quick_check({_REPORTED})").scalars().all()
    faults = [str(fault) for fault in checked if fault != "ok"]
    log = _log_of(conn)
    return Examination(
        versions={"SQLite": str(conn.exec_driver_sql("SELECT sqlite_version()").scalar())},
        size=pages * size,
        storage={
            "page_size": size,
            "free_bytes": free * size,
            "wal_bytes": log.stat().st_size if log and log.exists() else 0,
            "journal_mode": str(pragma("journal_mode")),
            "synchronous": _SYNCHRONOUS.get(int(str(pragma("synchronous"))), "unknown"),
        },
        damage=tuple(f"the file is damaged: {fault}" for fault in faults),
        readable=not faults,
    )


def check_search(conn: Connection, indexes: Iterable[str]) -> list[str]:
    """Have FTS5 compare its indexes with their tables, and look for the triggers that keep them in step."""
    driver = conn.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    triggers = {name for (name,) in driver.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    faults: list[str] = []
    for fts in indexes:
        if not _has_table(driver, fts):
            faults.append(f"the text index {fts} is missing")
            continue
        names = {f"{fts}_{verb}" for verb in ("insert", "delete", "update")}
        missing = sorted(names - triggers)
        faults += [f"the trigger {name} is missing: the text index is not kept in step" for name in missing]
        if not _search_agrees(driver, fts):
            faults.append(f"the text index {fts} does not agree with its table")
    return faults


def _log_of(conn: Connection) -> Path | None:
    file = next((row[2] for row in conn.exec_driver_sql("PRAGMA database_list") if row[1] == "main"), "")
    return Path(f"{file}-wal") if file else None


def _has_table(driver: sqlite3.Connection, name: str) -> bool:
    return driver.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone() is not None


def _search_agrees(driver: sqlite3.Connection, fts: str) -> bool:
    try:
        # The 1 makes FTS5 read the table, too; without it only the index itself is looked at.
        driver.execute(f"INSERT INTO {fts}({fts}, rank) VALUES ('integrity-check', 1)").close()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT:
            return False
        raise
    return True
