"""Postgres with pgvector: generated tsvector, exact or HNSW vector search, schema of its own.

Statements are never prepared by our own connections, so that they pass a pooler in transaction mode and Postgres never
goes over to a generic plan, which would put an approximate index in front of a scope's filter.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pgvector.sqlalchemy import Vector as VectorType
from psycopg import RawCursor
from psycopg.rows import tuple_row
from sqlalchemy import (
    Column,
    ColumnElement,
    Computed,
    Connection,
    Engine,
    Index,
    PrimaryKeyConstraint,
    String,
    Table,
    bindparam,
    create_engine,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR, insert
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import Dialect as SqlDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from memoranda.db.dialects import postgresql_json, postgresql_scrubbing
from memoranda.db.dialects.base import (
    EngineOptions,
    Examination,
    Scrubbed,
    Upsert,
)
from memoranda.db.dialects.postgresql_inserts import FEW, PostgresqlInserts
from memoranda.db.dialects.postgresql_search import PostgresqlSearch
from memoranda.db.dialects.postgresql_upkeep import Upkeep
from memoranda.db.driving import driving
from memoranda.db.inserts import Prepared
from memoranda.db.statements import MOST
from memoranda.errors import (
    ConfigurationError,
    ExtensionMissing,
    PermissionMissing,
    SchemaMissing,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.conditions import Condition
    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables
    from memoranda.protocols import Progress

SEARCH = (
    "setweight(to_tsvector('simple'::regconfig, category_terms), 'A') || "
    "setweight(to_tsvector('simple'::regconfig, content_terms), 'B') || "
    "to_tsvector('simple'::regconfig, cells)"
)
"""Category weighs A, content B; the cells come last, so that they move no position, and weigh D."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")

_REFUSALS = {  # a connection that fails has no SQLSTATE, only libpq's words
    "password authentication failed": "the user name or password was refused",
    "no password supplied": "it asks for a password",
    "no pg_hba.conf entry": "it does not let this user in from here",
    "does not exist": "the database or the user does not exist",
}
_BUSY = {
    "55P03": "Somebody else holds what this call needs locked: try again.",
    "57014": "The database cancelled the statement, by its own time limit or an administrator's: try again.",
    "40P01": "Two calls waited for each other and this one was given up: try again.",
    "40001": "Somebody else changed the same rows at the same time: try again.",
    "53300": "The server takes no more connections: close some, or open engines with a smaller pool_size.",
}


_LOCK = select(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("key", type_=String), literal_column("0"))))

_numbered = partial(RawCursor, row_factory=tuple_row)
"""Makes a cursor for statements with numbered parameters."""


class PostgresqlDialect(PostgresqlSearch):
    """See `Dialect`."""

    name = "postgresql"
    prefix = ""
    wide_indexes = True
    laterals = True
    copies = True

    def __init__(self, schema: str) -> None:
        """Keep the schema's name."""
        if not _NAME.fullmatch(schema):
            raise ConfigurationError("schema must be lower-case letters, digits and underscores, at most 51 of them")
        self.schema: str | None = schema
        self.foreign = False
        self._numbering: SqlDialect | None = None
        self._timeout = 0
        self._upkeep = Upkeep(schema)

    # -- connections

    def isolation(self) -> Literal["AUTOCOMMIT"]:
        """Read without a transaction around, and begin those of writes ourselves: the driver would wait for each."""
        return "AUTOCOMMIT"

    def create_engine(self, url: URL, options: EngineOptions) -> Engine:
        """Connect without prepared statements; wait no longer than the time limit for a connection or a lock."""
        self._timeout = int(1000 * options.timeout)
        return create_engine(
            url,
            pool_size=options.pool_size,
            max_overflow=0,
            pool_timeout=options.timeout,
            pool_use_lifo=True,
            connect_args={"prepare_threshold": None, "connect_timeout": max(2, int(options.timeout))},
            hide_parameters=True,
            query_cache_size=MOST,
        )

    def adopt(self, engine: Engine) -> None:
        """Remember that the connections may prepare statements, which `searching` then takes care of."""
        if engine.dialect.driver != "psycopg":
            raise ConfigurationError("this engine's driver is not supported: create it for postgresql+psycopg://")
        self.foreign = True

    def is_absent(self, url: URL) -> bool:
        """Never create a database."""
        return False

    def begin(self, conn: Connection, *, write: bool) -> None:
        """Write on the level that row locks are made for, and wait for one no longer than for anything else."""
        if write:
            if not conn.in_transaction():  # else a caller's engine has an event that executes something
                conn.begin()
            # A caller's engine has a time limit of the caller's.
            limit = "" if self.foreign else f"; SET LOCAL lock_timeout = {self._timeout}"
            with driving(conn) as cursor:
                cursor.execute(f"BEGIN ISOLATION LEVEL READ COMMITTED{limit}")

    def after_fork(self) -> None:
        """Begin with a lock that nobody holds."""
        self._upkeep.after_fork()

    def serial(self, engine: Engine) -> Literal["all", "writes", "none"]:
        """Let everything run side by side."""
        return "none"

    def translate(self, error: DBAPIError) -> StoreError | None:
        """Read the SQLSTATE."""
        state = getattr(error.orig, "sqlstate", None)
        if state in ("3F000", "42P01"):
            return SchemaMissing()
        if state in ("42704", "42883") and "vector" in str(error.orig):
            return ExtensionMissing()
        if state == "42501":
            return PermissionMissing(
                f"The database user may not use the schema {self.schema!r}: grant USAGE on it, and SELECT, INSERT, "
                "UPDATE and DELETE on its tables; to create it with `memoranda db upgrade` the user needs CREATE on "
                "the database."
            )
        if state == "25006":
            return PermissionMissing("The database is read-only here: connect to the primary server to write.")
        if state in _BUSY:
            return StoreBusy(_BUSY[state])
        unreachable = state is None and error.statement is None  # it failed before there was anything to execute
        if error.connection_invalidated or unreachable or (state or "")[:2] in ("08", "57", "28", "3D"):
            reason = next((why for sign, why in _REFUSALS.items() if sign in str(error.orig)), None)
            return StoreUnavailable(f"The database cannot be used: {reason}." if reason else None)
        return None

    # -- tables

    def key(self, *names: str, numbered: bool = False) -> list[SchemaItem]:
        """Make the columns the primary key."""
        return [PrimaryKeyConstraint(*names)]

    def search_columns(self) -> list[SchemaItem]:
        """Generate the tsvector from the encoded terms."""
        return [Column("search", TSVECTOR, Computed(SEARCH, persisted=True))]

    def search_indexes(self, table: Table) -> None:
        """Index the tsvector; the index of vectors is built later, when it pays."""
        Index(None, table.c.search, postgresql_using="gin")

    def vector_type(self) -> TypeEngine[Any]:
        """Use pgvector's type without a length: the model's name carries it."""
        return VectorType()

    # -- revisions

    def before_upgrade(self, conn: Connection) -> None:
        """Queue up, and create the schema and the extension where they are missing."""
        self.advise_lock(conn, f"memoranda:upgrade:{self.schema}")
        if not conn.scalar(text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": self.schema}):
            conn.execute(text(f'CREATE SCHEMA "{self.schema}"'))
        if not conn.scalar(text("SELECT to_regtype('vector') IS NOT NULL")):
            elsewhere = conn.scalar(
                text("SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'vector'")
            )
            if elsewhere:
                raise ExtensionMissing(
                    f"The `vector` extension lives in the schema {elsewhere}, which is not on the search path: run "
                    f"`ALTER ROLE CURRENT_USER SET search_path = public, {elsewhere}` and connect anew."
                )
            try:
                conn.execute(text("CREATE EXTENSION vector"))
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) == "42501":
                    raise ExtensionMissing() from error
                raise ExtensionMissing(
                    "The server does not offer the `vector` extension: install pgvector 0.6 or newer on the server, "
                    "then have an administrator run `CREATE EXTENSION vector` in this database."
                ) from error

    def create_search(self, op: "Operations", noun: str) -> None:
        """Do nothing: column and index are part of the table."""

    def note_changes(self, op: "Operations", kept: int) -> None:
        """Note none: no rows are in memory."""

    def auto_upgrade(self) -> bool:
        """Leave a shared database to the person who looks after it."""
        return False

    # -- erasing

    def traces(self) -> Literal["none", "file", "server"]:
        """Leave them on the server."""
        return "server"

    def scrub(self, conn: Connection, tables: "Tables", patience: float) -> Scrubbed:
        """Vacuum every table that holds anybody's rows."""
        names = [table.name for table in tables.metadata.sorted_tables if "tenant" in table.c]
        return postgresql_scrubbing.scrub(conn, str(self.schema), names, patience)

    def forget(self) -> None:
        """Remember nothing of rows anyway."""

    # -- statements

    def insert(self, table: Table) -> Upsert:
        """Return an INSERT ... ON CONFLICT."""
        return insert(table)

    def prepared(
        self, conn: Connection, table: Table, names: Sequence[str], compiled: SQLCompiler, *, skip_conflicts: bool
    ) -> Prepared:
        """Take many rows by COPY."""
        return PostgresqlInserts(conn, table, names, compiled, skip_conflicts=skip_conflicts)

    def together(self, cursor: Any, rows: int) -> AbstractContextManager[object]:
        """Send few rows without waiting for the answer to each statement; COPY has to wait."""
        return cursor.connection.pipeline() if rows <= FEW else nullcontext()

    def compiling(self, conn: Connection) -> SqlDialect:
        """Return one that numbers the parameters, as the server wants them: psycopg need not read the statement."""
        if self._numbering is None:
            made: Callable[..., SqlDialect] = type(conn.dialect)
            self._numbering = made(paramstyle="numeric_dollar")
        return self._numbering

    def fetched(self, conn: Connection, text: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Have the rows sent in binary, which costs both sides half of what text does."""
        with driving(conn, _numbered) as cursor:
            found: Sequence[Sequence[Any]] = cursor.execute(text, values, binary=True).fetchall()
            return found

    @contextmanager
    def snapshot(self, conn: Connection) -> Iterator[None]:
        """Read in a transaction that sees nothing of what others write meanwhile."""
        conn.exec_driver_sql("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        try:
            yield
        except BaseException:
            if not conn.invalidated:
                conn.exec_driver_sql("ROLLBACK")
            raise
        conn.exec_driver_sql("COMMIT")

    def now(self, conn: Connection) -> datetime:
        """Ask the server, in the middle of a transaction too."""
        moment = conn.scalar(select(func.clock_timestamp()))
        assert isinstance(moment, datetime)
        return moment.astimezone(UTC)

    def advise_lock(self, conn: Connection, key: str) -> None:
        """Take an advisory lock until the transaction ends."""
        conn.execute(_LOCK, {"key": key})

    def json_condition(self, column: ColumnElement[Any], condition: "Condition") -> ColumnElement[bool]:
        """Compare jsonb with jsonb."""
        return postgresql_json.condition(column, condition)

    # -- upkeep

    def check_backup(self) -> None:
        """Refuse: the server's own tool copies a schema while it is in use."""
        raise ConfigurationError(
            f"On Postgres use pg_dump: `pg_dump --format=custom --schema={self.schema} --file=FILE DATABASE` copies "
            "the store while it is in use, and `pg_restore` brings it back. What `memoranda export` writes can be "
            "imported on SQLite, too."
        )

    def backup(self, conn: Connection, tables: "Tables", target: str, progress: "Progress | None") -> None:
        """Refuse."""
        self.check_backup()

    def examine(self, conn: Connection, tables: "Tables", model: str | None) -> Examination:
        """Read what the catalogues say of the schema."""
        return self._upkeep.examine(conn, tables, model)

    def check_search(self, conn: Connection, tables: "Tables") -> list[str]:
        """Find nothing: the column is generated, and `examine` looks at its index."""
        return []

    # -- the index of vectors

    def learn_statistics(
        self, conn: Connection, tables: "Tables", corpus: "Corpus", tenant: str, persona: str, rows: int
    ) -> None:
        """Have the planner's figures looked after."""
        self._upkeep.learn(conn, tables, corpus, tenant, persona, rows)

    def build_vector_index(self, conn: Connection, tables: "Tables", model: str) -> bool:
        """Build the approximate indexes without holding up writers, once one scope is large enough for them to pay."""
        return self._upkeep.build_vector_index(conn, tables, model)
