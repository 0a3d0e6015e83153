"""What a doctor looks at in a whole store, whoever's rows they are; no text of a memory leaves it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, func, inspect, or_, select

from memoranda.db.dialects.base import Examination
from memoranda.db.queries import store
from memoranda.db.queries.store import EMBEDDER
from memoranda.db.queries.vectors import given, of_row, ours
from memoranda.db.schema import Tables

_OVERDUE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen at one moment."""

    settings: dict[str, Any]
    missing: tuple[str, ...]
    """What the declared tables have and the database has not, in words."""
    examination: Examination
    counts: "Counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much there is."""

    memories: int = 0
    chunks: int = 0
    items: int = 0
    item_texts: int = 0
    vectors: int = 0
    without_vector: int = 0
    other_vectors: int = 0
    ownerless_vectors: int = 0
    waiting_jobs: int = 0
    overdue_jobs: int = 0
    """Due for so long, and held by nobody, that no worker seems to run."""
    failed_jobs: int = 0
    oldest: datetime | None = field(default=None)


def look(conn: Connection, tables: Tables) -> Seen:
    """Look at everything that can be seen without changing anything."""
    with tables.dialect.snapshot(conn):
        missing = _missing(conn, tables)
        whole = not any(fault.startswith("the table") for fault in missing)
        settings = store.settings(conn, tables) if whole else {}
        model = settings.get(EMBEDDER) or None
        examination = tables.dialect.examine(conn, tables, model)
        # Counting may run into what is damaged, and then nothing would be said at all.
        counts = _counts(conn, tables, model) if whole and examination.readable else Counts()
        return Seen(settings=settings, missing=missing, examination=examination, counts=counts)


def check_search(conn: Connection, tables: Tables) -> list[str]:
    """Compare the indexes of full text with their tables."""
    return tables.dialect.check_search(conn, tables)


def _missing(conn: Connection, tables: Tables) -> tuple[str, ...]:
    """Compare the database with the declared tables: somebody may have dropped an index to load faster."""
    inspector, schema = inspect(conn), tables.dialect.schema
    preparer = conn.dialect.identifier_preparer
    there = set(inspector.get_table_names(schema=schema))
    faults: list[str] = []
    for table in tables.metadata.sorted_tables:
        if table.name not in there:
            faults.append(f"the table {table.name} is missing")
            continue
        columns = {column["name"] for column in inspector.get_columns(table.name, schema=schema)}
        faults += [f"the column {table.name}.{c.name} is missing" for c in table.columns if c.name not in columns]
        indexes = {index["name"] for index in inspector.get_indexes(table.name, schema=schema)}
        declared = (preparer.format_index(index).strip('"') for index in table.indexes)
        faults += [f"the index {name} is missing" for name in sorted(declared) if name not in indexes]
    return tuple(faults)


def _counts(conn: Connection, tables: Tables, model: str | None) -> Counts:
    m, v = tables.memories, tables.vectors
    current: ColumnElement[bool] = v.c.model == (model or "")
    embedded = [corpus for corpus in tables.corpora.values() if corpus.embedded]
    owned = [exists().where(of_row(tables, corpus.kind)) for corpus in embedded]
    having = [exists().where(of_row(tables, corpus.kind), current) for corpus in embedded]

    def counted(table: Any, *conditions: ColumnElement[bool]) -> int:
        return conn.scalar(select(func.count()).select_from(table).where(*conditions)) or 0

    j, now = tables.jobs, tables.dialect.now(conn)
    overdue = (j.c.due_at < now - _OVERDUE, or_(j.c.lease_until.is_(None), j.c.lease_until < now - _OVERDUE))
    vectors = counted(v, current)
    return Counts(
        memories=counted(m),
        chunks=counted(tables.knowledge_chunks),
        vectors=vectors,
        items=counted(tables.store_items),
        item_texts=counted(tables.store_item_texts),
        without_vector=sum(counted(x.table, ~has, ours(x.table)) for x, has in zip(embedded, having, strict=True))
        if model
        else 0,
        other_vectors=counted(v, ~given(v)) - vectors,
        ownerless_vectors=counted(v, *(~owner for owner in owned)),
        waiting_jobs=counted(j, j.c.status == "waiting"),
        overdue_jobs=counted(j, j.c.status == "waiting", *overdue),
        failed_jobs=counted(j, j.c.status == "failed"),
        oldest=conn.scalar(select(func.min(m.c.created_at))),
    )
