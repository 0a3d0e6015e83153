"""Clearing erased rows out of Postgres' tables, and out of the samples the planner keeps of them.

VACUUM removes no row that an older transaction might still look at, and ANALYZE keeps the samples of a table that is
empty now: the first is waited for, the second seen to from Postgres 18 on and named before. What the server writes
elsewhere is beyond any statement, and is named.
"""

from collections.abc import Sequence
from time import monotonic, sleep

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from memoranda.db.dialects.base import Scrubbed

ELSEWHERE = (
    "the server's write-ahead log, replicas and backups may still hold it, and so may space in its files until it is "
    "written over (VACUUM FULL does that at once)"
)

_KEPT_SAMPLES = (
    "until they hold rows and are analyzed again, the planner's samples (pg_stats) of tables that are empty now may "
    "hold words of it, which only Postgres 18 and newer can forget: {}"
)

_THEN = "then run `memoranda erase --finish` (in Python `finish_erasures`)"
_WITHOUT_RIGHT = (
    "the database user may not VACUUM {}: let the tables' owner do this, or on Postgres 17 and newer GRANT MAINTAIN on "
    f"them, {_THEN}"
)
_OLDER = f"a transaction that began before the erasure is still open on the server: end it, {_THEN}"
_LOCKED = f"somebody else holds a table locked: wait for it to end, {_THEN}"

_MAY_NOT = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = CAST(:schema AS regnamespace) AND c.relname = ANY(:names) "
    "AND NOT pg_has_role(c.relowner, 'USAGE') AND NOT pg_has_role("
    "(SELECT datdba FROM pg_database WHERE datname = current_database()), 'USAGE')"
)
_MAY_NOT_MAINTAIN = " AND NOT has_table_privilege(c.oid, 'MAINTAIN')"
_HELD_BACK = (
    "SELECT EXISTS (SELECT FROM ("
    "SELECT unnest(ARRAY[backend_xmin, backend_xid]) AS oldest FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    "AND backend_type <> 'autovacuum worker' AND (datname = current_database() OR datname IS NULL) "
    "UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database() "
    "UNION ALL SELECT xmin FROM pg_replication_slots) AS held "
    "WHERE age(oldest) > age(CAST(CAST(:mine AS text) AS xid)))"
)
_SAMPLED = "SELECT attname FROM pg_stats WHERE schemaname = :schema AND tablename = :name"
_CLEAR = (
    "SELECT pg_clear_attribute_stats(schemaname => :schema, relname => :name, attname => :column, inherited => false)"
)
_PAUSE = 0.05


def scrub(conn: Connection, schema: str, names: Sequence[str], patience: float) -> Scrubbed:
    """Vacuum and analyze the tables, or say what stands in the way.

    Args:
        conn: A connection outside any transaction.
        schema: Where the tables are.
        names: Which tables.
        patience: How many seconds older transactions and locks are waited for.
    """
    version = conn.dialect.server_version_info or (0,)
    rights = _MAY_NOT + (_MAY_NOT_MAINTAIN if version >= (17,) else "")
    refused = conn.scalars(text(rights), {"schema": f'"{schema}"', "names": list(names)}).all()
    if refused:
        return Scrubbed(obstacle=_WITHOUT_RIGHT.format(", ".join(sorted(refused))), elsewhere=ELSEWHERE)
    if _held_back(conn, patience):
        return Scrubbed(obstacle=_OLDER, elsewhere=ELSEWHERE)
    conn.exec_driver_sql(f"SET lock_timeout = {max(1, int(1000 * patience))}")
    kept: list[str] = []
    try:
        for name in names:
            # Who shortens the file waits for who asks for its lock, five seconds: two at one table would both give up.
            conn.exec_driver_sql(f'VACUUM (ANALYZE, TRUNCATE FALSE) "{schema}"."{name}"')
            stale = _samples_of_nothing(conn, schema, name)
            if version >= (18,):
                for column in stale:
                    conn.execute(text(_CLEAR), {"schema": schema, "name": name, "column": column})
            elif stale:
                kept.append(name)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "55P03":
            raise
        return Scrubbed(obstacle=_LOCKED, elsewhere=ELSEWHERE)
    finally:
        if not conn.invalidated:
            conn.exec_driver_sql("RESET lock_timeout")
    elsewhere = "; ".join((ELSEWHERE, _KEPT_SAMPLES.format(", ".join(kept)))) if kept else ELSEWHERE
    return Scrubbed(elsewhere=elsewhere)


def _held_back(conn: Connection, patience: float) -> bool:
    """Say whether a transaction that is older than this call, and so perhaps than the erasure, outlasts the wait."""
    mine = conn.scalar(text("SELECT CAST(CAST(pg_current_xact_id() AS xid) AS text)"))
    end = monotonic() + patience
    while conn.scalar(text(_HELD_BACK), {"mine": mine}):
        if monotonic() >= end:
            return True
        sleep(_PAUSE)
    return False


def _samples_of_nothing(conn: Connection, schema: str, name: str) -> Sequence[str]:
    """Return the columns that the planner keeps samples of although the table is empty."""
    if conn.scalar(text(f'SELECT EXISTS (SELECT FROM "{schema}"."{name}")')):
        return ()
    return conn.scalars(text(_SAMPLED), {"schema": schema, "name": name}).all()
