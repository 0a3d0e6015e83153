"""All rows of a store, one after the other, on their way into a file.

What there is to move is read off the declared tables, so a table that comes later is moved without a word here. Who may
see what is not asked: these are an administrator's.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Date,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    Numeric,
    Select,
    Table,
    UniqueConstraint,
    Uuid,
    func,
    select,
)
from sqlalchemy import String as Textual
from sqlalchemy.types import JSON, TypeEngine

from memoranda.archive import ArchiveWriter, Field, Header, Kind, Shape
from memoranda.db import migrations
from memoranda.db.dialects.base import ROW_KEY
from memoranda.db.queries import store
from memoranda.db.queries.store import EMBEDDER, WORDS
from memoranda.db.schema import Tables
from memoranda.db.types import Metadata, UTCDateTime
from memoranda.protocols import Progress
from memoranda.reports import Exported

_PAGE = 500  # rows read at once
_TOLD = 1000  # rows between two reports of progress

_KINDS: tuple[tuple[type[TypeEngine[Any]] | type, Kind], ...] = (
    (Metadata, "metadata"),
    (UTCDateTime, "moment"),
    (DateTime, "moment"),
    (Uuid, "uuid"),
    (Date, "date"),
    (Boolean, "truth"),
    (Integer, "integer"),
    (Numeric, "number"),
    (Float, "number"),
    (JSON, "json"),
    (LargeBinary, "bytes"),
    (Textual, "text"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows go into a file: those of a tenant, of a persona, or of both; all where neither is named."""

    tenant: str | None = None
    persona: str | None = None
    vectors: bool = True


# -- what there is to move


def shape(tables: Tables) -> Shape:
    """Return the columns of every table by the names that stand in a file, parents before their children."""
    return {
        noun(tables, table): {column.name: _field(tables, column) for column in columns(table)}
        for table in tables.metadata.sorted_tables
    }


def noun(tables: Tables, table: Table) -> str:
    """Return a table's name without the prefix that some databases need."""
    return table.name.removeprefix(tables.dialect.prefix)


def row_key(table: Table) -> list[Column[Any]]:
    """Return the columns that name a row, on every database the same."""
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint) and constraint.info.get(ROW_KEY):
            return list(constraint.columns)
    return list(table.primary_key.columns)


def columns(table: Table) -> list[Column[Any]]:
    """Return the columns that are moved: neither what the database generates nor the numbers it gives to rows."""
    key = row_key(table)
    return [c for c in table.columns if c.computed is None and (c in key or not c.primary_key)]


def _field(tables: Tables, column: Column[Any]) -> Field:
    optional = bool(column.nullable or column.server_default is not None)
    return Field(kind=_kind(tables, column), nullable=bool(column.nullable), optional=optional)


def _kind(tables: Tables, column: Column[Any]) -> Kind:
    if isinstance(column.type, type(tables.dialect.vector_type())):
        return "vector"
    for known, kind in _KINDS:
        if isinstance(column.type, known):
            return kind
    raise TypeError(f"no kind is known for {column.table.name}.{column.name}")


# -- out


def dump(
    conn: Connection,
    tables: Tables,
    selection: Selection,
    create: Callable[[Header, Shape], AbstractContextManager[ArchiveWriter]],
    progress: Progress | None,
) -> Exported:
    """Write every chosen row to a file, as they are at one moment.

    Args:
        conn: A connection of a reading function.
        tables: The store's tables.
        selection: Which rows.
        create: Opens the file.
        progress: Is told how many rows are written, and of how many.
    """
    with tables.dialect.snapshot(conn):
        chosen = {noun(tables, table): table for table in _chosen(tables, selection)}
        total = sum(_count(conn, tables, table, selection) for table in chosen.values()) if progress else 0
        known, done = shape(tables), 0
        with create(_header(conn, tables, selection), {name: known[name] for name in chosen}) as file:
            for name, table in chosen.items():
                for row in conn.execute(_ordered(tables, table, selection)).mappings():
                    file.row(name, row)
                    done += 1
                    if progress and done % _TOLD == 0:
                        progress(done, total)
            counts, digest = file.finish()
            if progress:
                progress(done, total)
        return Exported(rows=counts, sha256=digest)


def _header(conn: Connection, tables: Tables, selection: Selection) -> Header:
    made = store.settings(conn, tables)
    words = made.get(WORDS) or {}
    return Header(
        revision=migrations.current(conn, tables.dialect),
        embedder=made.get(EMBEDDER),
        language=words.get("language"),
        terms=words.get("version"),
        vectors=selection.vectors,
        tenant=selection.tenant,
        persona=selection.persona,
    )


def _chosen(tables: Tables, selection: Selection) -> list[Table]:
    """Return the tables that have rows of the selection; what belongs to nobody goes with the whole store only."""
    whole = selection.tenant is None and selection.persona is None
    return [
        table
        for table in tables.metadata.sorted_tables
        if (selection.vectors or table is not tables.vectors) and (whole or "tenant" in table.c)
    ]


def _own(tables: Tables, table: Table, selection: Selection) -> list[ColumnElement[bool]]:
    if table is tables.settings:
        return [table.c.key.not_in([EMBEDDER, WORDS])]  # they stand in the header
    axes = {"tenant": selection.tenant, "persona": selection.persona}
    return [table.c[axis] == value for axis, value in axes.items() if value is not None]


def _count(conn: Connection, tables: Tables, table: Table, selection: Selection) -> int:
    return conn.scalar(select(func.count()).select_from(table).where(*_own(tables, table, selection))) or 0


def _ordered(tables: Tables, table: Table, selection: Selection) -> Select[Any]:
    return (
        select(*columns(table))
        .where(*_own(tables, table, selection))
        .order_by(*row_key(table))
        .execution_options(yield_per=_PAGE)
    )
