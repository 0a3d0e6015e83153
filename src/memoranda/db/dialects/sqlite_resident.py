"""Keeps authors' rows in memory in step with a SQLite file, whoever writes to it.

New rows and vectors are found by their numbers, rows that were changed or deleted by the table of changes, which
triggers fill: the number of a row that is gone may be given again, and stands there then. A question reads what came
since the last one, before it looks. The file is asked itself by a transaction that has written something, for that is
not committed yet, by one that began before what was read last, and while somebody else reads an author's rows for long.
What was erased is let go of when its author is asked again, in this process as in every other.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    column,
    func,
    literal_column,
    select,
    table,
    type_coerce,
)
from sqlalchemy.types import NullType

from memoranda.db.dialects.sqlite_lists import listed
from memoranda.db.dialects.sqlite_vectors import has_written
from memoranda.db.resident import Fresh, GrowingRows, Owner, Rows

if TYPE_CHECKING:
    from alembic.operations import Operations

    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables

BYTES_LIMIT = 1 << 30
"""Together the rows in memory take at most this much; those asked for longest ago go first."""

_CHANGES = "changes"
_NOTED = (
    *((noun, change) for noun in ("memories", "knowledge_chunks", "messages") for change in ("update", "delete")),
    ("vectors", "delete"),
)

_PAGE = 4096
_BY_NUMBER = 1000  # so many new rows are read by their numbers, whoever's they are; of more only an author's own
_PATIENCE = 0.05  # seconds to wait for who reads what came since


class _Seen(NamedTuple):
    """How far the tables had been written: the highest numbers, and what stood there."""

    row: int
    vector: int
    change: int
    newest: str | None
    """The id of the row."""
    noted: str | None
    """The change."""

    @property
    def bounds(self) -> dict[str, int]:
        """What the statement names that looks how far they have been written now."""
        return {"seen_row": self.row, "seen_change": self.change}

    def is_replaced(self, now: "_Seen", newest: str | None, noted: str | None) -> bool:
        """Say whether something else stands there now without a change that says so.

        Args:
            now: How far the tables have been written now.
            newest: The id of the row that has the number of the newest one of then.
            noted: The change that has the number of the newest one of then.
        """
        return noted != self.noted or (now.change == self.change and newest != self.newest)

    def is_before(self, other: "_Seen") -> bool:
        """Say whether it was seen in an older state of the file."""
        if self.change != other.change:
            return self.change < other.change
        return self.row < other.row or self.vector < other.vector


@dataclass(slots=True)
class _Resident:
    growing: GrowingRows = field(default_factory=GrowingRows)
    seen: _Seen | None = None
    """None until they were read for the first time."""
    nbytes: int = 0
    lock: Lock = field(default_factory=Lock)


class ResidentRows:
    """The rows of one store that are in memory, shared by its threads."""

    def __init__(self) -> None:
        """Begin empty."""
        self._residents: OrderedDict[Owner, _Resident] = OrderedDict()
        self._nbytes = 0
        self._lock = Lock()

    def forget(self) -> None:
        """Begin empty again."""
        with self._lock:
            self._residents, self._nbytes = OrderedDict(), 0

    def rows(self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: Owner) -> Rows | None:
        """Return an author's rows as they are now, None where the file is to be asked itself.

        Args:
            conn: A connection inside a transaction.
            tables: The store's tables.
            corpus: What they are.
            owner: Whose they are.
        """
        if has_written(conn):
            return None
        with self._lock:
            resident = self._residents.get(owner)
            if resident is None:
                resident = self._residents[owner] = _Resident()
            self._residents.move_to_end(owner)
        if not resident.lock.acquire(timeout=_PATIENCE):
            return None
        before = resident.growing.rows
        try:
            is_current = self._refresh(conn, tables, corpus, owner, resident)
            rows = resident.growing.rows
        except BaseException:
            resident.growing, resident.seen = GrowingRows(), None  # what is half done is begun anew
            raise
        finally:
            resident.lock.release()
        if rows is not before:
            self._make_room(owner, resident)
        return rows if is_current else None

    def _make_room(self, owner: Owner, resident: _Resident) -> None:
        """Count what an owner's rows take now, and let go of others' where that is too much."""
        with self._lock:
            if self._residents.get(owner) is not resident:
                return  # it was let go of meanwhile
            now = resident.growing.nbytes
            self._nbytes += now - resident.nbytes
            resident.nbytes = now
            while self._nbytes > BYTES_LIMIT and len(self._residents) > 1:
                self._nbytes -= self._residents.popitem(last=False)[1].nbytes

    def _refresh(self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: Owner, resident: _Resident) -> bool:
        """Read what came since; False in a transaction that began before what was read last."""
        seen, growing = resident.seen, resident.growing
        bounds = {"seen_row": -1, "seen_change": -1} if seen is None else seen.bounds
        asked = partial(_how_far, tables, corpus)
        [(row, vector, oldest, change, *there)] = tables.statements.rows(conn, ("how far", corpus.kind), asked, bounds)
        now = _Seen(row or 0, vector or 0, change or 0, *there[:2])
        if seen is not None and now.is_before(seen):
            return False
        # Of a file that was put back from a copy the numbers go on, and mean something else.
        if (
            seen is None
            or seen.change < (oldest or 1) - 1
            or seen.is_replaced(now, *there[2:])
            or 2 * growing.dead > growing.rows.size > _PAGE
        ):
            growing = GrowingRows()
            for page in self._read(conn, tables, corpus, owner, "all", {}):
                growing.add(page)
            resident.growing, resident.seen = growing, now
            return True
        if now == seen:
            return True
        gone = self._changed(conn, tables, corpus, owner, growing, seen, now)
        fresh: list[Fresh] = []
        if gone:
            listed = {"listed": json.dumps(sorted(gone))}
            fresh += chain.from_iterable(self._read(conn, tables, corpus, owner, "some", listed))
        if now.row > seen.row:
            which = "own since" if now.row - seen.row > max(_BY_NUMBER, growing.rows.size) else "since"
            span = {"seen_row": seen.row, "newest_row": now.row}
            since = chain.from_iterable(self._read(conn, tables, corpus, owner, which, span))
            fresh += [item for item in since if item.number not in gone]
        growing.drop(gone)
        growing.add(fresh)
        resident.seen = now
        return True

    def _changed(
        self,
        conn: Connection,
        tables: "Tables",
        corpus: "Corpus",
        owner: Owner,
        growing: GrowingRows,
        seen: _Seen,
        now: _Seen,
    ) -> set[int]:
        """Return the numbers of the rows that were changed or deleted, or have another vector or none now."""
        numbers: set[int] = set()
        if now.change > seen.change:
            span = {"seen_change": seen.change, "newest_change": now.change}
            asked = partial(_noted, tables, corpus)
            noted = tables.statements.rows(conn, ("changes", corpus.kind), asked, span)
            numbers |= {number for source, number in noted if source == corpus.table.name}
            numbers |= growing.numbers_of([number for source, number in noted if source == tables.vectors.name], ())
        if now.vector > seen.vector:
            values = {**_named(owner), "seen_vector": seen.vector, "newest_vector": now.vector}
            asked = partial(_new_vectors, tables, corpus.kind)
            fresh = tables.statements.rows(conn, ("new vectors", corpus.kind), asked, values)
            numbers |= growing.numbers_of((), [row[0] for row in fresh])
        return numbers

    def _read(
        self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: Owner, which: str, values: dict[str, Any]
    ) -> Iterator[list[Fresh]]:
        statement = tables.statements.get(("resident", corpus.kind, which), lambda: _rows(tables, corpus, which))
        found = conn.execute(statement, {**_named(owner), **values})
        for page in found.partitions(_PAGE):
            yield list(map(Fresh._make, page))


def _named(owner: Owner) -> dict[str, str]:
    return {"tenant": owner.tenant, "persona": owner.persona, "author": owner.author, "model": owner.model}


def _changes(tables: "Tables") -> Any:
    return table(
        f"{tables.dialect.prefix}{_CHANGES}", column("n", Integer), column("source", String), column("number", Integer)
    )


def _how_far(tables: "Tables", corpus: "Corpus") -> Select[Any]:
    """Ask for each number by itself, or SQLite reads the whole table."""
    m, log = corpus.table, _changes(tables)
    change = log.c.source + literal_column("' '", String) + log.c.number
    last = [select(func.max(rows.c.n)).scalar_subquery() for rows in (m, log)]
    numbers = [bindparam(name, type_=Integer) for name in ("seen_row", "seen_change")]
    asked: list[Select[Any]] = [select(func.max(m.c.n)), select(func.max(tables.vectors.c.n))]
    asked += [select(func.min(log.c.n)), select(func.max(log.c.n))]
    for newest, noted in (last, numbers):
        asked += [select(type_coerce(m.c.id, String)).where(m.c.n == newest), select(change).where(log.c.n == noted)]
    return select(*(one.scalar_subquery() for one in asked))


def _noted(tables: "Tables", corpus: "Corpus") -> Select[Any]:
    log = _changes(tables)
    span = (log.c.n > bindparam("seen_change", type_=Integer), log.c.n <= bindparam("newest_change", type_=Integer))
    sources = [literal_column(f"'{noted.name}'", String) for noted in (corpus.table, tables.vectors)]
    return select(log.c.source, log.c.number).where(*span, log.c.source.in_(sources))


def _new_vectors(tables: "Tables", kind: str) -> Select[Any]:
    v = tables.vectors
    span = (v.c.n > bindparam("seen_vector", type_=Integer), v.c.n <= bindparam("newest_vector", type_=Integer))
    own = (v.c[name] == bindparam(name) for name in ("tenant", "persona", "model"))
    return select(type_coerce(v.c.owner, String)).where(*own, v.c.kind == kind, *span)


def _rows(tables: "Tables", corpus: "Corpus", which: str) -> Select[Any]:
    """Return the statement for rows in the order of `Fresh`, as the driver gives them."""
    m, v, kind = corpus.table, tables.vectors, literal_column(f"'{corpus.kind}'", String)
    if which == "since":
        asked = [*_own(m), *_since(m.c.n)]
    elif which == "some":
        asked = [*_own(m), m.c.n.in_(listed("listed"))]
    else:
        # Found by the author's index and read in the order they lie in: the sign keeps SQLite on that index.
        found = m.alias("found")
        number: ColumnElement[int] = literal_column("+found.n", Integer)
        theirs = [*_own(found), *(_since(number) if which == "own since" else ())]
        asked = [m.c.n.in_(select(found.c.n).where(*theirs))]
    owned = (v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.owner == m.c.id)
    joined = m.outerjoin(v, and_(*owned, v.c.kind == kind, v.c.model == bindparam("model")))
    happened = [m.c[name] for name in ("event_time", "valid_from") if name in m.c]
    columns = (
        m.c.n,
        m.c.id,
        m.c[corpus.container],
        m.c[corpus.place],
        m.c.importance if "importance" in m.c else literal_column("0"),
        m.c.created_at,
        func.coalesce(*happened, m.c.created_at) if happened else m.c.created_at,
        m.c.length,
        m.c.category_terms,
        m.c.content_terms,
        v.c.n,
        v.c.vector,
    )
    return select().add_columns(*(type_coerce(item, NullType()) for item in columns)).select_from(joined).where(*asked)


def _own(m: FromClause) -> list[ColumnElement[bool]]:
    own: list[ColumnElement[bool]] = [m.c[name] == bindparam(name) for name in ("tenant", "persona", "author")]
    return [*own, m.c.status == "active"] if "status" in m.c else own


def _since(number: ColumnElement[int]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return number > bindparam("seen_row", type_=Integer), number <= bindparam("newest_row", type_=Integer)


def note_changes(op: "Operations", prefix: str, kept: int) -> None:
    """Create the table of changes, and the triggers that fill it and keep it small."""
    name = f"{prefix}{_CHANGES}"
    op.execute(
        f"CREATE TABLE {name} (n INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, number INTEGER NOT NULL)"
    )
    for noun, change in _NOTED:
        own = f"{prefix}{noun}"
        only = "WHEN old.kind <> 'item' " if noun == "vectors" else ""  # items are not in memory
        op.execute(
            f"CREATE TRIGGER {own}_{change}_noted AFTER {change.upper()} ON {own} {only}BEGIN "
            f"INSERT INTO {name}(source, number) VALUES ('{own}', old.n); "
            f"DELETE FROM {name} WHERE n <= last_insert_rowid() - {kept}; END"
        )


def check_noting(conn: Connection, prefix: str) -> list[str]:
    """Look for the table of changes and its triggers, and return what is wrong."""
    there = set(conn.exec_driver_sql("SELECT name FROM sqlite_schema WHERE type IN ('table', 'trigger')").scalars())
    if f"{prefix}{_CHANGES}" not in there:
        return [f"the table {prefix}{_CHANGES} is missing: rows in memory cannot be kept in step"]
    triggers = (f"{prefix}{noun}_{change}_noted" for noun, change in _NOTED)
    return [
        f"the trigger {name} is missing: rows in memory are not kept in step" for name in triggers if name not in there
    ]
