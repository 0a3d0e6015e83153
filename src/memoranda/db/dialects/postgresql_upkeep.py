"""What keeps Postgres quick as a store grows: the planner's figures, and the approximate index of vectors."""

import re
import time
from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy import ClauseElement, Connection, Executable, Select, Table, func, literal_column, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles

from memoranda.db.dialects.base import EXACT_LIMIT, Examination, VectorIndex

if TYPE_CHECKING:
    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables

_JOINED = {  # the columns that joins and conditions look at, not the texts and vectors
    *("tenant", "persona", "id", "author", "audience", "project", "project_key", "space", "about"),
    *("status", "type", "day", "session", "position", "superseded_by", "kind", "model", "owner"),
    *("document_id", "chunk_index", "conversation_id"),
}
FEW_ROWS = 128
"""Up to so many rows even the worst plan is quick."""
_FAR_OFF = 8
_KNOWN_PERSONAS = 10_000
_SECONDS = 60.0  # an index that another process built is walked from then on
_INDEXED_DIMENSIONS = 2000  # pgvector indexes no longer vectors
_BUILD_MEMORY = "512MB"  # an index that outgrows it while it is built takes several times as long


def joined(table: Table) -> str:
    """Return the names of the columns that the planner has to know something of."""
    return ", ".join(column.name for column in table.columns if column.name in _JOINED)


class Explained(Executable, ClauseElement):
    """The plan of a statement, as JSON."""

    inherit_cache = False

    def __init__(self, statement: Select[Any]) -> None:
        """Keep the statement."""
        self.statement = statement


@compiles(Explained, "postgresql")
def _compile_explained(element: Explained, compiler: Any, **options: Any) -> str:
    return f"EXPLAIN (FORMAT JSON) {compiler.process(element.statement, **options)}"


class Upkeep:
    """Looks after one store's tables; shared by its threads."""

    def __init__(self, schema: str) -> None:
        """Begin knowing of no persona."""
        self._schema = schema
        self._known: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        self._indexed: dict[str, tuple[float, float | None]] = {}
        self._version: tuple[int, ...] | None = None
        self._lock = Lock()

    def after_fork(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = Lock()

    def learn(self, conn: Connection, tables: "Tables", corpus: "Corpus", tenant: str, persona: str, rows: int) -> None:
        """Analyze what joins look at, where the planner is far off the mark.

        It takes a persona it has not heard of for a row or two, until autovacuum comes by, and joins every row with
        every other: a recall over 1,000 new rows took .6 s instead of .03 s. Looked at when a persona has doubled.
        """
        key = (corpus.kind, tenant, persona)
        with self._lock:
            if rows < max(FEW_ROWS, 2 * self._known.get(key, 0)):
                return
            self._known[key] = rows
            self._known.move_to_end(key)
            while len(self._known) > _KNOWN_PERSONAS:
                self._known.popitem(last=False)
        for table in (corpus.table, *((tables.vectors,) if corpus.embedded else ())):
            own: Select[Any] = select(literal_column("1")).where(table.c.tenant == tenant, table.c.persona == persona)
            plan = conn.execute(Explained(own)).scalar_one()
            if plan[0]["Plan"]["Plan Rows"] * _FAR_OFF >= rows:
                continue
            try:
                # Who holds the table, a VACUUM say, is not waited for.
                conn.exec_driver_sql("BEGIN; SET LOCAL lock_timeout = '50ms'")
                conn.exec_driver_sql(f'ANALYZE "{self._schema}"."{table.name}" ({joined(table)})')
                conn.exec_driver_sql("COMMIT")
            except DBAPIError:
                if conn.invalidated:
                    raise
                conn.exec_driver_sql("ROLLBACK")
                return  # or a server that only reads: its planner learns from the primary

    def indexed(self, conn: Connection, kind: str, model: str) -> float | None:
        """Return how many rows the table has whose approximate index is there to be walked, None where there is none.

        It is remembered for a while: where it is gone meanwhile, every row is compared.
        """
        name, now = vector_index_name(kind, model), time.monotonic()
        until, rows = self._indexed.get(name, (now, None))
        if until <= now:
            found = conn.execute(
                text(
                    "SELECT c.reltuples FROM pg_index i "
                    "JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class n ON n.oid = i.indexrelid "
                    "WHERE n.relname = :name AND n.relnamespace = CAST(:schema AS regnamespace) AND i.indisvalid"
                ),
                {"name": name, "schema": f'"{self._schema}"'},
            )
            rows = found.scalar()
            self._indexed[name] = (now + _SECONDS, rows)
        return rows

    def vector_version(self, conn: Connection) -> tuple[int, ...]:
        """Return the version of pgvector in this database, as it was when somebody first asked."""
        if self._version is None:
            found = conn.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
            self._version = tuple(map(int, re.findall(r"\d+", str(found or "0"))[:3]))  # "0.8.0.google-3" is one
        return self._version

    def build_vector_index(self, conn: Connection, tables: "Tables", model: str) -> bool:
        """Build an approximate index a kind without holding up writers, once one scope is so large that it pays."""
        built = any([self._build(conn, tables, kind, model) for kind in self._paying(conn, tables, model)])
        self._indexed.clear()
        return built

    def _build(self, conn: Connection, tables: "Tables", kind: str, model: str) -> bool:
        v = tables.vectors
        size = int(model.rpartition("@")[2])
        name, quoted = vector_index_name(kind, model), model.replace("'", "''")
        if self._index_state(conn, name) is False:  # an earlier attempt broke off
            conn.exec_driver_sql(f'DROP INDEX CONCURRENTLY "{self._schema}"."{name}"')
        conn.exec_driver_sql(f"SET maintenance_work_mem = '{_BUILD_MEMORY}'")
        try:
            conn.exec_driver_sql(
                f'CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}" ON "{self._schema}"."{v.name}" '
                f"USING hnsw ((vector::vector({size})) vector_cosine_ops) WHERE kind = '{kind}' AND model = '{quoted}'"
            )
        finally:
            if not conn.invalidated:
                conn.exec_driver_sql("RESET maintenance_work_mem")
        return self._index_state(conn, name) is True

    def _paying(self, conn: Connection, tables: "Tables", model: str) -> list[str]:
        """Return the kinds of which one scope has so many that an approximate index pays, where one can be built."""
        v = tables.vectors
        if int(model.rpartition("@")[2]) > _INDEXED_DIMENSIONS:
            return []
        large = (
            select(v.c.kind)
            .where(v.c.model == model)
            .group_by(v.c.tenant, v.c.persona, v.c.kind)
            .having(func.count() > EXACT_LIMIT)
            .subquery()
        )
        return list(conn.scalars(select(large.c.kind).distinct().order_by(large.c.kind)))

    def examine(self, conn: Connection, tables: "Tables", model: str | None) -> Examination:
        """Read versions, sizes and the state of the indexes from the catalogues."""
        own = {"schema": f'"{self._schema}"'}
        broken = conn.scalars(
            text(
                "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                "WHERE c.relnamespace = CAST(:schema AS regnamespace) AND NOT (i.indisvalid AND i.indisready) "
                "AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid) "
                "ORDER BY c.relname"
            ),
            own,
        ).all()
        size = conn.scalar(
            text(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
                "WHERE relkind = 'r' AND relnamespace = CAST(:schema AS regnamespace)"
            ),
            own,
        )
        settings = ("server_version", "server_encoding", "synchronous_commit")
        server, encoding, synchronous = (str(conn.scalar(text(f"SHOW {name}"))) for name in settings)
        vector = conn.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
        return Examination(
            versions={"PostgreSQL": server, "vector": str(vector or "missing")},
            size=int(size or 0),
            storage={"schema": self._schema, "encoding": encoding, "synchronous_commit": synchronous},
            vector_index=self._vector_index(conn, tables, model),
            damage=tuple(f"the index {name} is not valid" for name in broken),
        )

    def _vector_index(self, conn: Connection, tables: "Tables", model: str | None) -> VectorIndex:
        if model is None:
            return "not needed"
        embedded = (corpus.kind for corpus in tables.corpora.values() if corpus.embedded)
        states = {str(kind): self._index_state(conn, vector_index_name(kind, model)) for kind in embedded}
        if False in states.values():
            return "damaged"
        if any(states.get(kind) is None for kind in self._paying(conn, tables, model)):
            return "advised"
        return "built" if True in states.values() else "not needed"

    def _index_state(self, conn: Connection, name: str) -> bool | None:
        """Say whether an index is whole, None when there is none."""
        state: bool | None = conn.scalar(
            text(
                "SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                "WHERE c.relname = :name AND c.relnamespace = CAST(:schema AS regnamespace)"
            ),
            {"name": name, "schema": f'"{self._schema}"'},
        )
        return state


def vector_index_name(kind: str, model: str) -> str:
    """Return the name of the approximate index over one model's vectors of rows of one kind."""
    return f"ix_vectors_hnsw_{kind}_{sha256(model.encode()).hexdigest()[:12]}"
