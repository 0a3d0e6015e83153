"""Keeps authors' rows in memory in step with a SQLite file, whoever writes to it.

New rows and vectors are known by their numbers, which rise; rows that were changed or deleted by the table of changes,
which triggers fill. A question reads what came since it was last asked, before it looks. What a transaction has written
itself is in none of this until it is committed: such a transaction asks the file.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
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

from memoranda.db.dialects.sqlite_vectors import has_written
from memoranda.db.resident import Fresh, Held, Owner, Rows

if TYPE_CHECKING:
    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables

BYTES_LIMIT = 1 << 30
"""Together the rows in memory take at most this much; those asked for longest ago go first."""

CHANGES = "changes"
"""The table of what was changed or deleted."""

_PAGE = 4096
_BY_NUMBER = 1000  # so many new rows are read by their numbers, whoever's they are; of more only an author's own
KEPT_CHANGES = 20_000
"""So many of the newest changes are kept: who comes later than that reads everything anew."""


class _Seen(NamedTuple):
    """How far the tables had been written: the highest numbers."""

    row: int
    vector: int
    change: int


@dataclass(slots=True)
class _Resident:
    held: Held = field(default_factory=Held)
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
        """Return an author's rows as they are now; None in a transaction that has written something itself.

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
        with resident.lock:
            changed = self._refresh(conn, tables, corpus, owner, resident)
            rows = resident.held.rows
        if changed:
            self._make_room(owner, resident)
        return rows

    def _make_room(self, owner: Owner, grown: _Resident) -> None:
        """Count what an owner's rows take now, and let go of others' where that is too much."""
        with self._lock:
            if self._residents.get(owner) is not grown:
                return  # it was let go of meanwhile
            now = grown.held.nbytes
            self._nbytes += now - grown.nbytes
            grown.nbytes = now
            while self._nbytes > BYTES_LIMIT and len(self._residents) > 1:
                self._nbytes -= self._residents.popitem(last=False)[1].nbytes

    def _refresh(self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: Owner, resident: _Resident) -> bool:
        """Read what came since, and say whether there was anything; one that fails leaves everything as it was."""
        row, vector, oldest, change = conn.execute(
            tables.statements.get(("how far", corpus.kind), lambda: _how_far(tables, corpus))
        ).one()
        now, seen, held = _Seen(row or 0, vector or 0, change or 0), resident.seen, resident.held
        if seen is None or seen.change < (oldest or 1) - 1 or 2 * held.dead > held.rows.size > _PAGE:
            held = Held()
            for page in self._read(conn, tables, corpus, owner, "all", {}):
                held.add(page)
            resident.held, resident.seen = held, now
            return True
        if now.change < seen.change or (
            now.change == seen.change and now.row <= seen.row and now.vector <= seen.vector
        ):
            return False  # nothing came, or others have read on, in a transaction that began later
        gone = self._changed(conn, tables, corpus, owner, held, seen, now)
        fresh: list[Fresh] = []
        if gone:
            listed = {"listed": json.dumps(sorted(gone))}
            fresh += chain.from_iterable(self._read(conn, tables, corpus, owner, "some", listed))
        if now.row > seen.row:
            which = "own since" if now.row - seen.row > max(_BY_NUMBER, held.rows.size) else "since"
            span = {"seen_row": seen.row, "newest_row": now.row}
            since = chain.from_iterable(self._read(conn, tables, corpus, owner, which, span))
            fresh += [item for item in since if item.number not in gone]
        held.drop(gone)
        held.add(fresh)
        resident.seen = now
        return True

    def _changed(
        self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: Owner, held: Held, seen: _Seen, now: _Seen
    ) -> set[int]:
        """Return the numbers of the rows that were changed or deleted, or have another vector or none now."""
        numbers: set[int] = set()
        if now.change > seen.change:
            statement = tables.statements.get("changes", lambda: _noted(tables))
            span = {"seen_change": seen.change, "newest_change": now.change}
            noted = conn.execute(statement, span).all()
            numbers |= {number for source, number in noted if source == corpus.table.name}
            numbers |= held.numbers_of([number for source, number in noted if source == tables.vectors.name], ())
        if now.vector > seen.vector:
            statement = tables.statements.get(("new vectors", corpus.kind), lambda: _new_vectors(tables, corpus.kind))
            values = {**_named(owner), "seen_vector": seen.vector, "newest_vector": now.vector}
            numbers |= held.numbers_of((), conn.scalars(statement, values).all())
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
        f"{tables.dialect.prefix}{CHANGES}", column("n", Integer), column("source", String), column("number", Integer)
    )


def _how_far(tables: "Tables", corpus: "Corpus") -> Select[Any]:
    """Ask for each number by itself, or SQLite reads the whole table."""
    log = _changes(tables)
    asked = (func.max(corpus.table.c.n), func.max(tables.vectors.c.n), func.min(log.c.n), func.max(log.c.n))
    return select(*(select(number).scalar_subquery() for number in asked))


def _noted(tables: "Tables") -> Select[Any]:
    log = _changes(tables)
    span = (log.c.n > bindparam("seen_change", type_=Integer), log.c.n <= bindparam("newest_change", type_=Integer))
    return select(log.c.source, log.c.number).where(*span)


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
        asked = [*_own(m), m.c.n.in_(_listed())]
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


def _listed() -> Select[Any]:
    return select(func.json_each(bindparam("listed", type_=String)).table_valued("value").c.value)
