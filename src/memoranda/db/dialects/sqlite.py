"""SQLite: one file or memory, WAL, FTS5 over the encoded terms, exact vector search in numpy, no loadable extension."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    create_engine,
    event,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import Dialect as SqlDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool, SingletonThreadPool, StaticPool
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from memoranda.db.dialects import in_memory, sqlite_json, sqlite_resident, sqlite_scrubbing, sqlite_upkeep
from memoranda.db.dialects.base import (
    ROW_KEY,
    EngineOptions,
    Examination,
    Scrubbed,
    Upsert,
    VectorQuestion,
)
from memoranda.db.dialects.sqlite_inserts import PackedVector, SqliteInserts
from memoranda.db.dialects.sqlite_resident import ResidentRows
from memoranda.db.dialects.sqlite_search import SqliteSearch
from memoranda.db.dialects.sqlite_vectors import VectorCache
from memoranda.db.driving import driving
from memoranda.db.inserts import Prepared
from memoranda.db.statements import MOST
from memoranda.errors import ConfigurationError, PermissionMissing, StoreBusy, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.conditions import Condition
    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables
    from memoranda.protocols import Progress

_LEAST_VERSION = (3, 35)  # INSERT ... RETURNING
_TYPICAL_ROWS = 1_000_000_000  # more than any outer loop: or SQLite reads the whole table for a Bloom filter first
_SHARES = {  # of the rows that are left, how many share one value of the column; of others hardly two
    "tenant": 1.0,
    "persona": 1.0,
    "kind": 1.0,
    "model": 1.0,
    "author": 0.5,
    "user": 0.5,
    "status": 0.9,
    "type": 0.3,
    "importance": 0.2,
    "length": 0.02,
    "day": 0.003,
    "session": 0.001,
    "document_id": 0.001,
    "conversation_id": 0.001,
    "item_id": 0.001,
    "namespace": 0.01,
    "project_key": 0.01,
}
_CACHE_KIB = 16_384  # a connection; SQLite's 2 MB are too small for the indexes of some thousand memories
_PAGE_BYTES = 4096  # as the disk has them: what a batch logs costs half of 2,048, a single memory about the same
_CHECKPOINT_PAGES = 4000  # 16 MB: every checkpoint waits for the disk


class SqliteDialect(SqliteSearch):
    """See `Dialect`."""

    name = "sqlite"
    schema: str | None = None
    prefix = "memoranda_"
    wide_indexes = False  # two of them cost a sixth of a write; one persona's rows are sorted in memory instead
    laterals = False
    copies = False

    def __init__(self) -> None:
        """Begin with nothing in memory."""
        self.vectors = VectorCache()
        self.residents = ResidentRows()
        self._in_memory = False
        self.foreign = False

    # -- connections

    def isolation(self) -> None:
        """Leave it: `begin` says what a transaction is."""

    def create_engine(self, url: URL, options: EngineOptions) -> Engine:
        """Open a file with a small pool, or memory with its one connection."""
        if sqlite3.sqlite_version_info < _LEAST_VERSION:
            raise ConfigurationError(f"SQLite {sqlite3.sqlite_version} is too old: version 3.35 or newer is needed")
        arguments = {"check_same_thread": False, "timeout": options.timeout}
        self._in_memory = in_memory(url)
        if self._in_memory:
            engine = create_engine(
                url, poolclass=StaticPool, connect_args=arguments, hide_parameters=True, query_cache_size=MOST
            )
        else:
            engine = create_engine(
                url,
                poolclass=QueuePool,
                pool_size=options.pool_size,
                max_overflow=0,
                pool_timeout=options.timeout,
                pool_use_lifo=True,
                pool_reset_on_return=None,  # every transaction ends with its block
                connect_args=arguments,
                hide_parameters=True,
                query_cache_size=MOST,
            )

        @event.listens_for(engine, "connect")
        def _prepare(connection: sqlite3.Connection, _: object) -> None:
            connection.isolation_level = None  # every BEGIN is ours
            for pragma in (
                f"page_size = {_PAGE_BYTES}",  # of a new file; one that is there keeps its own
                "journal_mode = WAL",
                f"synchronous = {options.synchronous.upper()}",
                "foreign_keys = ON",
                f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
                f"cache_size = -{_CACHE_KIB}",
            ):
                connection.execute(f"PRAGMA {pragma}").close()

        return engine

    def adopt(self, engine: Engine) -> None:
        """Leave a caller's engine as it is; of one connection for everybody our transactions would end the caller's."""
        if in_memory(engine.url) or isinstance(engine.pool, StaticPool | SingletonThreadPool):
            raise ConfigurationError(
                "an engine on a database in memory, or with a single connection, cannot be shared: give the address "
                "sqlite:// instead of a StaticPool, or an engine on a file"
            )
        self.foreign = True

    def is_absent(self, url: URL) -> bool:
        """Look for the file."""
        return (
            not in_memory(url) and not (url.database or "").startswith("file:") and not Path(str(url.database)).exists()
        )

    def begin(self, conn: Connection, *, write: bool) -> None:
        """Begin at once for a write: two readers that both want to write would lose one of the two updates."""
        if not conn.in_transaction():
            conn.begin()  # where a caller's engine has an event that begins, it begins here
        driver = conn.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        if driver.in_transaction and write:
            conn.exec_driver_sql("ROLLBACK")
        if not driver.in_transaction:
            with driving(conn) as cursor:
                cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        self.vectors.begin(conn)

    def after_fork(self) -> None:
        """Begin with nothing in memory, and with locks that nobody holds."""
        self.vectors = VectorCache()
        self.residents = ResidentRows()

    def serial(self, engine: Engine) -> Literal["all", "writes", "none"]:
        """Share the one connection of a store in memory; queue up writes, for waiting in SQLite is a poll."""
        return "all" if isinstance(engine.pool, StaticPool) or in_memory(engine.url) else "writes"

    def translate(self, error: DBAPIError) -> StoreError | None:
        """Read the error's code."""
        message = str(error.orig)
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreBusy("Another process holds the database file locked: try again.")
        if code == sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable("The database file cannot be opened: check that its folder exists and is writable.")
        if code == sqlite3.SQLITE_READONLY:
            return PermissionMissing("The database file is read-only: check the rights of the file and its folder.")
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return StoreUnavailable("The file is not a database, or it is damaged: restore it from a backup.")
        if code == sqlite3.SQLITE_FULL:
            return StoreUnavailable("The disk is full: make room and try again.")
        if "no such module: fts5" in message:
            return StoreUnavailable("This Python's SQLite was built without FTS5: use a Python that has it.")
        return None

    # -- tables

    def key(self, *names: str, numbered: bool = False) -> list[SchemaItem]:
        """Make the columns the primary key; full text and the cache of vectors need numbers that VACUUM keeps."""
        if numbered:
            return [Column("n", Integer, primary_key=True), UniqueConstraint(*names, info={ROW_KEY: True})]
        return [PrimaryKeyConstraint(*names)]

    def search_columns(self) -> list[SchemaItem]:
        """Need none: FTS5 reads the terms where they are."""
        return []

    def search_indexes(self, table: Table) -> None:
        """Declare nothing: the FTS5 table is made by `create_search`."""

    def vector_type(self) -> TypeEngine[Any]:
        """Pack the numbers."""
        return PackedVector()

    # -- revisions

    def before_upgrade(self, conn: Connection) -> None:
        """Do nothing: the transaction holds the file's only write lock."""

    def create_search(self, op: "Operations", noun: str) -> None:
        """Create the FTS5 table over the terms, and the triggers that keep it in step."""
        name, columns = f"{self.prefix}{noun}", "cells, category_terms, content_terms"
        old, new = (", ".join(f"{row}.{c}" for c in columns.split(", ")) for row in ("old", "new"))
        remove = f"INSERT INTO {name}_fts({name}_fts, rowid, {columns}) VALUES ('delete', old.n, {old});"
        add = f"INSERT INTO {name}_fts(rowid, {columns}) VALUES (new.n, {new});"
        op.execute(
            f"CREATE VIRTUAL TABLE {name}_fts USING fts5({columns}, "
            # Only whether a row says a term is asked here: no positions, no lengths, and half the pages of a write.
            f"content='{name}', content_rowid='n', tokenize='ascii', detail='column', columnsize=0)"
        )
        op.execute(f"CREATE TRIGGER {name}_fts_insert AFTER INSERT ON {name} BEGIN {add} END")
        op.execute(f"CREATE TRIGGER {name}_fts_delete AFTER DELETE ON {name} BEGIN {remove} END")
        op.execute(f"CREATE TRIGGER {name}_fts_update AFTER UPDATE OF {columns} ON {name} BEGIN {remove} {add} END")
        self._tell_planner(op.get_bind())

    def _tell_planner(self, conn: Connection) -> None:
        """Say how rows are spread before there are any, in the words of ANALYZE.

        Without it SQLite takes every further column of an index for a tenfold narrowing, and would rather read all rows
        of an author than look up the ids it was given.
        """
        conn.exec_driver_sql("ANALYZE sqlite_schema")
        told = "SELECT tbl FROM sqlite_stat1"
        tables = conn.exec_driver_sql(f"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ({told})")
        for table_name in tables.scalars().all():
            if not table_name.startswith(self.prefix) or "_fts" in table_name:
                continue
            for index in conn.exec_driver_sql(f"PRAGMA index_list({table_name})").mappings().all():
                info = conn.exec_driver_sql(f"PRAGMA index_info({index['name']})").mappings()
                left, counts = _TYPICAL_ROWS, [_TYPICAL_ROWS]
                for entry in info:
                    left = max(1, int(left * _SHARES.get(entry["name"], 0)))
                    counts.append(left)
                conn.exec_driver_sql(
                    "INSERT INTO sqlite_stat1 VALUES (?, ?, ?)",
                    (table_name, index["name"], " ".join(map(str, counts))),
                )
        conn.exec_driver_sql("ANALYZE sqlite_schema")

    def note_changes(self, op: "Operations", kept: int) -> None:
        """Create the table of changes, and the triggers that fill it; of vectors none is changed, some are deleted."""
        sqlite_resident.note_changes(op, self.prefix, kept)

    def auto_upgrade(self) -> bool:
        """Set a file up on first use."""
        return True

    # -- erasing

    def traces(self) -> Literal["none", "file", "server"]:
        """Leave them in the file; a store in memory leaves none."""
        return "none" if self._in_memory else "file"

    def scrub(self, conn: Connection, tables: "Tables", patience: float) -> Scrubbed:
        """Write the file anew and empty its log."""
        return sqlite_scrubbing.scrub(conn, [corpus.fts for corpus in tables.corpora.values()], patience)

    def forget(self) -> None:
        """Let go of rows and vectors."""
        self.vectors.forget()
        self.residents.forget()

    # -- statements

    def insert(self, table: Table) -> Upsert:
        """Return an INSERT ... ON CONFLICT."""
        return insert(table)

    def prepared(
        self, conn: Connection, table: Table, names: Sequence[str], compiled: SQLCompiler, *, skip_conflicts: bool
    ) -> Prepared:
        """Take many rows in one statement."""
        return SqliteInserts(conn, table, names, compiled)

    def together(self, cursor: Any, rows: int) -> AbstractContextManager[object]:
        """Need nothing: no statement waits for a network."""
        return nullcontext()

    def compiling(self, conn: Connection) -> SqlDialect:
        """Return the connection's."""
        return conn.dialect

    def fetched(self, conn: Connection, text: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Execute it."""
        with driving(conn) as cursor:
            found: Sequence[Sequence[Any]] = cursor.execute(text, values).fetchall()
            return found

    @contextmanager
    def snapshot(self, conn: Connection) -> Iterator[None]:
        """Need nothing more: in a transaction every statement sees what the first one saw."""
        yield

    def now(self, conn: Connection) -> datetime:
        """Ask the machine, as SQLite does, which counts only milliseconds: two runs of an indexer may share one."""
        return datetime.now(UTC)

    def advise_lock(self, conn: Connection, key: str) -> None:
        """Do nothing: writers queue up for the whole file."""

    def shortened(self, conn: Connection, tables: "Tables", question: VectorQuestion) -> VectorQuestion:
        """Compare every row."""
        return question

    def learn_statistics(
        self, conn: Connection, tables: "Tables", corpus: "Corpus", tenant: str, persona: str, rows: int
    ) -> None:
        """Do nothing: the planner was told when the tables were made."""

    def build_vector_index(self, conn: Connection, tables: "Tables", model: str) -> bool:
        """Build nothing."""
        return False

    @contextmanager
    def searching(self, conn: Connection, question: VectorQuestion | None) -> Iterator[None]:
        """Set nothing."""
        yield

    def json_condition(self, column: ColumnElement[Any], condition: "Condition") -> ColumnElement[bool]:
        """Ask for the type first, then for the value."""
        return sqlite_json.condition(column, condition)

    # -- upkeep

    def backup(self, conn: Connection, tables: "Tables", target: str, progress: "Progress | None") -> None:
        """Copy the file, or what is in memory, with everything in it."""
        sqlite_upkeep.backup(conn, [corpus.fts for corpus in tables.corpora.values()], target, progress)

    def check_backup(self) -> None:
        """Refuse nothing."""

    def examine(self, conn: Connection, tables: "Tables", model: str | None) -> Examination:
        """Read what SQLite says of the file; vectors have no index here."""
        return sqlite_upkeep.examine(conn)

    def check_search(self, conn: Connection, tables: "Tables") -> list[str]:
        """Have FTS5 compare its indexes with their tables."""
        indexes = [corpus.fts for corpus in tables.corpora.values()]
        return [*sqlite_upkeep.check_search(conn, indexes), *sqlite_resident.check_noting(conn, self.prefix)]
