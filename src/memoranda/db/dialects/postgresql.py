"""Postgres with pgvector: generated tsvector, exact or HNSW vector search, schema of its own.

Statements are never prepared by our own connections, so that they pass a pooler in transaction mode and Postgres never
goes over to a generic plan, which would put an approximate index in front of a scope's filter.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from pgvector.sqlalchemy import Vector as VectorType
from psycopg import Connection as Driver
from psycopg.pq import TransactionStatus
from sqlalchemy import (
    Column,
    ColumnElement,
    Computed,
    Connection,
    Engine,
    Float,
    FromClause,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Select,
    String,
    Table,
    and_,
    bindparam,
    cast,
    create_engine,
    func,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSVECTOR, array, insert
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeEngine, UserDefinedType

from memoranda.db.dialects import postgresql_json, postgresql_scrubbing
from memoranda.db.dialects.base import (
    EXACT_LIMIT,
    EngineOptions,
    Examination,
    Scrubbed,
    TextQuestion,
    Upsert,
    VectorQuestion,
)
from memoranda.db.dialects.postgresql_inserts import FEW, PostgresqlInserts
from memoranda.db.dialects.postgresql_upkeep import Upkeep, vector_index_name
from memoranda.db.inserts import Prepared
from memoranda.db.statements import MOST, Leg, Selection
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
    from memoranda.db.resident import Owner, Rows
    from memoranda.db.schema import Tables
    from memoranda.protocols import Progress

SEARCH = (
    "setweight(to_tsvector('simple'::regconfig, category_terms), 'A') || "
    "setweight(to_tsvector('simple'::regconfig, content_terms), 'B') || "
    "to_tsvector('simple'::regconfig, cells)"
)
"""Category weighs A, content B; the cells come last, so that they move no position, and weigh D."""

_EF_SEARCH = 200  # as many as the legs propose; pgvector's default of 40 would cut them short
_LEAST_SHARE = (
    0.02  # of the table: an index scan gives up after 20,000 rows, and must have met 200 of the scope by then
)
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


class _TsQuery(UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "tsquery"


def _tsquery(name: str) -> ColumnElement[Any]:
    return cast(bindparam(name, type_=String), _TsQuery)


def _distance(vectors: Table, size: int, *, indexed: bool) -> ColumnElement[float]:
    asked = cast(bindparam("asked", type_=VectorType(size)), VectorType(size))
    column: ColumnElement[Any] = cast(vectors.c.vector, VectorType(size)) if indexed else vectors.c.vector
    return column.op("<=>", return_type=Float())(asked)


def _is_any(column: ColumnElement[Any], array: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return `column = ANY (array)`; negated, SQLAlchemy 2.0 makes `!=` of an equality, which is no negation here."""
    return column.bool_op("=")(func.any(array))


class PostgresqlDialect:
    """See `Dialect`."""

    name = "postgresql"
    prefix = ""
    wide_indexes = True

    def __init__(self, schema: str) -> None:
        """Keep the schema's name."""
        if not _NAME.fullmatch(schema):
            raise ConfigurationError("schema must be lower-case letters, digits and underscores, at most 51 of them")
        self.schema: str | None = schema
        self._foreign = False
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
        self._foreign = True

    def is_absent(self, url: URL) -> bool:
        """Never create a database."""
        return False

    def begin(self, conn: Connection, *, write: bool) -> None:
        """Write on the level that row locks are made for, and wait for one no longer than for anything else."""
        if write:
            conn.exec_driver_sql(f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {self._timeout}")

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

    def note_changes(self, op: "Operations", nouns: Sequence[str]) -> None:
        """Note none: no rows are held in memory."""

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

    def approximate(self, conn: Connection, corpus: "Corpus", model: str, rows: int) -> bool:
        """Walk the index where there is one, the scope is large, and it is no needle in the table's haystack."""
        if rows <= EXACT_LIMIT:
            return False
        found = conn.execute(
            text(
                "SELECT c.reltuples FROM pg_index i "
                "JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class n ON n.oid = i.indexrelid "
                "WHERE n.relname = :name AND n.relnamespace = CAST(:schema AS regnamespace) AND i.indisvalid"
            ),
            {"name": vector_index_name(corpus.kind, model), "schema": f'"{self.schema}"'},
        ).scalar()
        return found is not None and rows >= found * _LEAST_SHARE

    @contextmanager
    def searching(self, conn: Connection, question: VectorQuestion | None) -> Iterator[None]:
        """Keep plans custom on a caller's connections, and let an approximate scan go on until enough rows fit."""
        commands = ["SET LOCAL plan_cache_mode = force_custom_plan"] if self._foreign else []
        if question is not None and question.approximate:
            commands.append(f"SET LOCAL hnsw.ef_search = {_EF_SEARCH}")
            if self.vector_version(conn) >= (0, 8):
                commands.append("SET LOCAL hnsw.iterative_scan = relaxed_order")
        if not commands:
            yield
            return
        driver = conn.connection.driver_connection
        assert isinstance(driver, Driver)
        if driver.info.transaction_status != TransactionStatus.IDLE:
            # Inside a write, which has to end as a whole, and the settings with it.
            conn.exec_driver_sql("; ".join(commands))
            yield
            return
        conn.exec_driver_sql("; ".join(["BEGIN", *commands]))
        try:
            yield
        except BaseException:
            if not conn.invalidated:
                conn.exec_driver_sql("ROLLBACK")
            raise
        conn.exec_driver_sql("COMMIT")

    def resident(self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: "Owner") -> "Rows | None":
        """Hold none: the server does."""
        return None

    def text_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: TextQuestion, limit: int
    ) -> Leg:
        """Search the generated tsvector, starting from the cells; `ts_rank` is gated by the match."""
        m = question.corpus.table

        def build() -> Select[Any]:
            score = func.ts_rank(m.c.search, _tsquery("said"))
            return (
                select(m.c.id, score.label("score"), *question.corpus.standing)
                .where(wanted.where(m), m.c.search.bool_op("@@")(_tsquery("matched")))
                .order_by(score.desc(), m.c.id.desc())
                .limit(bindparam("words_limit", type_=Integer))
            )

        proposing, _ = question.proposing(limit)
        joined = {"any": " | ", "all": " & "}[question.match].join(question.terms[k] for k in proposing)
        matched = f"({' | '.join(question.cells)}) & ({joined})"
        values = {"said": " | ".join(question.terms), "matched": matched, "words_limit": limit}
        return Leg(build, wanted.form and ("words", wanted.form), {**wanted.values, **values})

    def vector_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: VectorQuestion, limit: int
    ) -> Leg:
        """Compare one by one in a small scope; walk the index in a large one that has it."""
        m, v, size = question.corpus.table, tables.vectors, len(question.vector)

        def build() -> Select[Any]:
            distance = _distance(v, size, indexed=question.approximate)
            kind: ColumnElement[str] = literal_column(f"'{question.corpus.kind}'")
            most = bindparam("meaning_limit", type_=Integer)
            compared = (
                select(m.c.id, distance.label("distance"), *question.corpus.standing)
                .select_from(m.join(v, and_(v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.owner == m.c.id)))
                .where(wanted.where(m), v.c.kind == kind, v.c.model == bindparam("model"))
            )
            # The offset keeps the planner from an approximate index where an exact answer is cheap, and the vectors out
            # of the sort, where each would be unpacked a second time.
            ordered = compared.order_by(distance).limit(most) if question.approximate else compared.offset(0)
            near = ordered.subquery()
            columns = (near.c.id, (1 - near.c.distance).label("score"), near.c.container, near.c.place)
            return select(*columns).order_by(near.c.distance).limit(most)

        form = wanted.form and ("meaning", wanted.form, size, question.approximate)
        return Leg(build, form, {**wanted.values, **question.values, "meaning_limit": limit})

    def with_cosines(
        self, rows: FromClause, tables: "Tables", question: VectorQuestion
    ) -> tuple[FromClause, ColumnElement[Any]]:
        """Compute the cosine in the statement."""
        m, v = question.corpus.table, tables.vectors
        own = and_(v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.owner == m.c.id)
        kind = v.c.kind == literal_column(f"'{question.corpus.kind}'")
        joined = rows.outerjoin(v, and_(own, kind, v.c.model == bindparam("model")))
        return joined, 1 - _distance(v, len(question.vector), indexed=False)

    def cosines(
        self, conn: Connection, tables: "Tables", evidence: Sequence[Any], question: VectorQuestion
    ) -> list[float | None]:
        """Pass on what the statement computed; a zero vector has no direction and is like nothing."""
        return [None if c is None else float(c) if c == c else 0.0 for c in evidence]

    def frequencies(self, corpus: "Corpus", terms: int, most: int | None = None) -> Select[Any]:
        """Count by the index, one look a term."""
        m = corpus.table
        if most is None:
            # One pass over the rows that hold any: an index has to find most of them again for each term.
            times = (func.count().filter(m.c.search.bool_op("@@")(_tsquery(f"counted_{i}"))) for i in range(terms))
            any_of = m.c.search.bool_op("@@")(_tsquery("counted"))
            return select(array(list(times)).label("frequencies")).select_from(m).where(any_of)
        found = (
            select(literal_column("1")).select_from(m).where(m.c.search.bool_op("@@")(query)).limit(most).subquery()
            for query in (_tsquery("cells").op("&&")(_tsquery(f"counted_{i}")) for i in range(terms))
        )
        seen = (select(func.count()).select_from(rows).scalar_subquery() for rows in found)
        return select(array(list(seen)).label("frequencies"))

    def counting(self, cells: Sequence[str], terms: Sequence[str]) -> Mapping[str, Any]:
        """Return the terms as queries."""
        joined = f"({' | '.join(cells)})"
        each = {f"counted_{i}": term for i, term in enumerate(terms)}
        return {"cells": joined, "counted": f"{joined} & ({' | '.join(terms)})", **each} if terms else {}

    def moments(self, raw: Sequence[Any]) -> list[datetime]:
        """Pass them on: they are aware."""
        return list(raw)

    def identifiers(self, raw: Sequence[Any]) -> list[UUID]:
        """Pass them on."""
        return list(raw)

    def ids_in(self, column: ColumnElement[UUID], ids: Sequence[UUID], name: str | None = None) -> ColumnElement[bool]:
        """Send one array."""
        return _is_any(column, cast(bindparam(name, self.id_list(ids), ARRAY(PG_UUID)), ARRAY(PG_UUID)))

    def id_list(self, ids: Sequence[UUID]) -> Any:
        """Return a list."""
        return list(ids)

    def texts_in(self, column: ColumnElement[str], texts: Sequence[str]) -> ColumnElement[bool]:
        """Send one array."""
        return _is_any(column, cast(literal(list(texts), ARRAY(String)), ARRAY(String)))

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

    def vector_version(self, conn: Connection) -> tuple[int, ...]:
        """Return the version of pgvector in this database."""
        found = conn.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
        return tuple(int(part) for part in str(found or "0").split("."))

    def learn_statistics(
        self, conn: Connection, tables: "Tables", corpus: "Corpus", tenant: str, persona: str, rows: int
    ) -> None:
        """Have the planner's figures looked after."""
        self._upkeep.learn(conn, tables, corpus, tenant, persona, rows)

    def build_vector_index(self, conn: Connection, tables: "Tables", model: str) -> bool:
        """Build the approximate indexes without holding up writers, once one scope is large enough for them to pay."""
        return self._upkeep.build_vector_index(conn, tables, model)
