"""Exact vector search for SQLite: the vectors of one kind of a persona's as a matrix in memory, one product a question.

A matrix only grows: what was deleted stays in it, and SQL decides afterwards which of the nearest may be seen; of a
vector that was replaced zeros stay. What other processes write is read from the table before every search, by row
number. What a transaction has written itself stays out of the matrix until it is committed, for a number that is rolled
back is given to another row.
"""

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection, Integer, Select, String, bindparam, func, literal_column, select, type_coerce

from memoranda.db.dialects.sqlite_lists import listed
from memoranda.db.resident.rows import products, unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memoranda.db.dialects.base import VectorQuestion
    from memoranda.db.schema import Tables

BYTES_LIMIT = 1 << 30
"""Together the matrices hold at most this much; the one that was used longest ago goes first."""

_CHANGES = "memoranda_rows_changed"  # in the `info` of a connection: how many rows it had changed when it began
_KEY = ("tenant", "persona", "kind", "model")
_FIRST_CAPACITY = 256
_PAGE = 4096


@dataclass(slots=True)
class _Matrix:
    """The unit vectors of one persona, kind and model, with their owners."""

    dimensions: int
    lock: Lock = field(default_factory=Lock)
    rows: int = 0
    seen: int = 0
    owners: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    values: "NDArray[np.float32]" = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.empty((_FIRST_CAPACITY, self.dimensions), np.float32)

    def append(self, owners: list[str], vectors: "NDArray[np.float32]") -> None:
        needed = self.rows + len(owners)
        if needed > len(self.values):
            grown = np.empty((max(needed, 2 * len(self.values)), self.dimensions), np.float32)
            grown[: self.rows] = self.values[: self.rows]
            self.values = grown
        self.values[self.rows : needed] = unit(vectors)
        for place, owner in enumerate(owners, self.rows):
            before = self.places.get(owner)
            if before is not None:
                self.values[before] = 0
                self.owners[before] = ""
            self.places[owner] = place
        self.owners += owners
        self.rows = needed


class VectorCache:
    """The matrices of one store, shared by its threads."""

    def __init__(self) -> None:
        """Begin empty."""
        self._matrices: OrderedDict[tuple[str, str, str, str], _Matrix] = OrderedDict()
        self._lock = RLock()

    def begin(self, conn: Connection) -> None:
        """Take note of a transaction that begins: what it sees before its first change is committed."""
        conn.info[_CHANGES] = _changes(conn)

    def forget(self) -> None:
        """Begin empty again; the next search reads what the table holds."""
        with self._lock:
            self._matrices = OrderedDict()

    def nearest(
        self, conn: Connection, tables: "Tables", question: "VectorQuestion", first: int
    ) -> Iterator[list[tuple[str, float]]]:
        """Yield the rows of a persona in pages, nearest first: ids in hexadecimal, each with its cosine.

        Args:
            conn: A connection inside a transaction.
            tables: The store's tables.
            question: Whose rows, of which kind and model, and the vector to compare with theirs.
            first: How many rows the first page has; the next ones grow.
        """
        key, query = (question.tenant, question.persona, question.corpus.kind, question.model), unit(question.vector)
        matrix = self._matrix(key, len(query))
        with matrix.lock:
            own = self._refresh(conn, tables, key, matrix)
            owners, values = matrix.owners, matrix.values[: matrix.rows]
            replaced = [matrix.places[name] for name in own[0] if name in matrix.places] if own else []
        scores = products(values, query)
        if own:
            owners = owners[: len(scores)]
            for place in replaced:
                owners[place], scores[place] = "", 0
            owners, scores = owners + own[0], np.concatenate((scores, products(unit(own[1]), query)))
        if first < len(scores):
            best = np.argpartition(-scores, first)[:first]
            best = best[np.argsort(-scores[best], kind="stable")]
            yield [(owners[i], float(scores[i])) for i in best]
            # Sorting everything takes longer, so it waits until somebody asks. What was given is left out by its
            # number, for among equals the first page took any.
            rest = np.argsort(-scores, kind="stable")
            order = rest[~np.isin(rest, best)]
        else:
            order = np.argsort(-scores, kind="stable")
        page = max(first, 1)
        while len(order):
            yield [(owners[i], float(scores[i])) for i in order[:page]]
            order, page = order[page:], 4 * page

    def cosines(
        self, conn: Connection, tables: "Tables", question: "VectorQuestion", owners: Sequence[str]
    ) -> list[float | None]:
        """Return the cosine of each of some rows, named by their ids in hexadecimal; None where there is no vector."""
        key, query = (question.tenant, question.persona, question.corpus.kind, question.model), unit(question.vector)
        found: dict[str, float] = {}
        with self._lock:
            matrix = self._matrices.get(key)
        if matrix is not None:
            with matrix.lock:
                own = self._refresh(conn, tables, key, matrix)
                known = [owner for owner in owners if owner in matrix.places]
                values = matrix.values[[matrix.places[owner] for owner in known]]
            found = dict(zip(known, products(values, query).tolist(), strict=True))
            found |= dict(zip(own[0], products(unit(own[1]), query).tolist(), strict=True)) if own else {}
        if len(found) < len(owners):
            found |= self._read(conn, tables, key, query, [owner for owner in owners if owner not in found])
        return [found.get(owner) for owner in owners]

    def _read(
        self, conn: Connection, tables: "Tables", key: tuple[str, str, str, str], query: Any, owners: Sequence[str]
    ) -> dict[str, float]:
        """Return the cosines of rows whose vectors are not in memory."""
        v = tables.vectors

        def build() -> Select[Any]:
            own = [v.c[name] == bindparam(name) for name in _KEY]
            return select(type_coerce(v.c.owner, String), v.c.vector).where(*own, v.c.owner.in_(listed("owners")))

        values = {**dict(zip(_KEY, key, strict=True)), "owners": json.dumps(owners)}
        rows = tables.statements.rows(conn, "vectors of", build, values)
        if not rows:
            return {}
        scores = products(unit(np.stack([row[1] for row in rows])), query)
        return dict(zip((row[0] for row in rows), scores.tolist(), strict=True))

    def _matrix(self, key: tuple[str, str, str, str], dimensions: int) -> _Matrix:
        with self._lock:
            matrix = self._matrices.setdefault(key, _Matrix(dimensions))
            self._matrices.move_to_end(key)
            total = sum(m.values.nbytes for m in self._matrices.values())
            while total > BYTES_LIMIT and len(self._matrices) > 1:
                total -= self._matrices.popitem(last=False)[1].values.nbytes
            return matrix

    def _refresh(
        self, conn: Connection, tables: "Tables", key: tuple[str, str, str, str], matrix: _Matrix
    ) -> "tuple[list[str], NDArray[np.float32]] | None":
        """Read what is newer than the matrix into it, or return it where this transaction may still take it back."""
        last = partial(select, func.max(tables.vectors.c.n))
        [(newest,)] = tables.statements.rows(conn, "newest vector", last, {})
        if newest is None or newest <= matrix.seen:
            return None
        first = matrix.seen == 0
        fresh = tables.statements.get(("fresh vectors", first), lambda: _fresh(tables, first=first))
        span = {"seen": matrix.seen, "newest": newest}
        rows = conn.execute(fresh, {**dict(zip(_KEY, key, strict=True)), **span})
        owners: list[str] = []
        pages: list[NDArray[np.float32]] = []
        for page in rows.partitions(_PAGE):
            owners += [row[0] for row in page]
            pages.append(np.stack([row[1] for row in page]))
        if has_written(conn):
            return (owners, np.concatenate(pages)) if owners else None
        if owners:
            matrix.append(owners, np.concatenate(pages))
        matrix.seen = newest
        return None


def has_written(conn: Connection) -> bool:
    """Say whether the transaction has changed anything so far."""
    return bool(conn.info.get(_CHANGES) != _changes(conn))


def _changes(conn: Connection) -> int:
    """Return how many rows a connection has changed since it was opened."""
    driver = conn.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver.total_changes


def _fresh(tables: "Tables", *, first: bool) -> Select[Any]:
    """Return the statement for the vectors of one key that were stored since.

    The first time they are read by the persona's own index, which the sign keeps SQLite on; later by number, for there
    are few new rows, of whoever they are.
    """
    v = tables.vectors
    number = literal_column(f"+{v.name}.n", Integer) if first else v.c.n
    own = [v.c[name] == bindparam(name) for name in _KEY]
    bounds = (number > bindparam("seen", type_=Integer), v.c.n <= bindparam("newest", type_=Integer))
    return select(type_coerce(v.c.owner, String), v.c.vector).where(*own, *bounds)
