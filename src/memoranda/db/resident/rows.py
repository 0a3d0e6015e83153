"""The rows of one author and kind as arrays and lists of columns. Rows are only ever added, and a changed one anew."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memoranda.db.resident.postings import Postings
from memoranda.ranking.terms import Bools, Codes, Floats, Places, Terms

_FIRST_CAPACITY = 256
_ROW_BYTES = 900  # what the columns of a row take, by and large, beside its vector and its terms


class Owner(NamedTuple):
    """Whose rows, of which kind, with the vectors of which model."""

    tenant: str
    persona: str
    author: str
    kind: str
    model: str


class Fresh(NamedTuple):
    """A row as the database gives it, in the order of the columns it is asked for."""

    number: int
    """Its own number in its table."""
    id: Any
    container: str
    """What it stands in, empty for nothing."""
    place: int | None
    importance: int
    created_at: Any
    happened_at: Any
    length: int
    category_terms: str
    content_terms: str
    vector_number: int | None
    """The number of its vector in the table of vectors, None where it has none."""
    vector: bytes | None
    """Packed little-endian float32."""


@dataclass(slots=True)
class _Columns:
    """What is only looked at for the rows that are proposed."""

    ids: list[Any] = field(default_factory=list)
    identifiers: list[UUID | None] = field(default_factory=list)
    """The ids as they are read once somebody wants them, None until then."""
    containers: list[str] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)
    importances: list[int] = field(default_factory=list)
    created_at: list[Any] = field(default_factory=list)
    happened_at: list[Any] = field(default_factory=list)
    category_terms: list[str] = field(default_factory=list)
    content_terms: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows at one moment. Whoever has them may go on reading while others are added."""

    columns: _Columns
    numbers: NDArray[np.int64]
    lengths: Floats
    alive: Bools
    """Which of them were not replaced or taken away since."""
    vectors: NDArray[np.float32]
    """Of length one; zeros where there is none."""
    embedded: Bools
    """Which of them have a vector."""
    postings: Postings
    seats: dict[tuple[str, int], tuple[int, ...]]
    """By container and place in it: where the rows stand here."""

    @property
    def size(self) -> int:
        """How many there are, dead ones included."""
        return len(self.numbers)

    def saying(self, codes: Codes) -> list[NDArray[np.int32]]:
        """Return for each term the rows that say it, dead ones left out."""
        found = (self.postings.find(code) for code in codes)
        return [places[self.alive[places]] for places in found]

    def identifiers(self, places: Sequence[int], read: Callable[[Sequence[Any]], list[UUID]]) -> list[UUID]:
        """Return the ids of some rows, reading those that nobody has read yet."""
        ids, known = self.columns.ids, self.columns.identifiers
        unread = [place for place in places if known[place] is None]
        for place, made in zip(unread, read([ids[place] for place in unread]), strict=True):
            known[place] = made
        return [identifier for place in places if (identifier := known[place]) is not None]

    def beside(self, places: Iterable[int], reach: int) -> set[int]:
        """Return the rows that stand no farther than `reach` from some of them, in the same container."""
        containers, own = self.columns.containers, self.columns.places
        steps = [step for step in range(-reach, reach + 1) if step]
        found: set[int] = set()
        for i in places:
            container, place = containers[i], own[i]
            if container and place is not None:
                for step in steps:
                    found.update(self.seats.get((container, place + step), ()))
        return {i for i in found if i < len(self.alive) and self.alive[i]}


class Held:
    """The rows of one author and kind, and what was seen of their tables so far. Whoever changes it holds the lock."""

    def __init__(self) -> None:
        """Begin with none."""
        self.rows = self._empty()
        self.dead = 0
        self._interned: dict[str, str] = {}
        self._by_number: dict[int, int] = {}
        self._by_id: dict[Any, int] = {}
        self._by_vector: dict[int, int] = {}

    def _empty(self) -> Rows:
        self._numbers = np.empty(_FIRST_CAPACITY, np.int64)
        self._lengths = np.empty(_FIRST_CAPACITY, np.float64)
        self._vectors = np.zeros((_FIRST_CAPACITY, 0), np.float32)  # as long as the first one that comes
        none = np.empty(0, np.bool_)
        return Rows(_Columns(), self._numbers[:0], self._lengths[:0], none, self._vectors[:0], none, Postings(), {})

    @property
    def nbytes(self) -> int:
        """What it takes in memory, in bytes, by and large."""
        return self._vectors.nbytes + self.rows.postings.nbytes + self.rows.size * _ROW_BYTES

    def numbers_of(self, vectors: Sequence[int], owners: Sequence[Any]) -> list[int]:
        """Return the numbers of the rows that have one of these vectors, or are one of these owners."""
        places = {self._by_vector.get(vector) for vector in vectors} | {self._by_id.get(owner) for owner in owners}
        return [int(self.rows.numbers[place]) for place in places if place is not None]

    def has(self, numbers: Sequence[int]) -> bool:
        """Say whether one of these rows is here."""
        return any(number in self._by_number for number in numbers)

    def drop(self, numbers: Sequence[int]) -> None:
        """Take rows away, those that are here."""
        places = [place for number in numbers if (place := self._by_number.pop(number, None)) is not None]
        if not places:
            return
        alive = self.rows.alive.copy()  # others may be reading the old one
        alive[places] = False
        for place in places:
            self._by_id.pop(self.rows.columns.ids[place], None)
        self.dead += len(places)
        self.rows = replace(self.rows, alive=alive)

    def add(self, fresh: Sequence[Fresh]) -> None:
        """Add rows; one that is here already is replaced."""
        if not fresh:
            return
        self.drop([row.number for row in fresh])
        first, size = self.rows.size, self.rows.size + len(fresh)
        self._make_room(size)
        added = slice(first, size)
        self._numbers[added] = [row.number for row in fresh]
        self._lengths[added] = [row.length for row in fresh]
        has = np.array([row.vector is not None for row in fresh])
        if has.any():
            packed = np.frombuffer(b"".join([row.vector for row in fresh if row.vector is not None]), "<f4")
            vectors = unit(packed.reshape(np.count_nonzero(has), -1))
            if not self._vectors.shape[1]:
                self._vectors = np.zeros((len(self._vectors), vectors.shape[1]), np.float32)
            self._vectors[first + np.flatnonzero(has)] = vectors
        columns = self.rows.columns
        self._extend(columns, fresh, first)
        terms = Terms([row.category_terms + row.content_terms for row in fresh])
        places = np.repeat(np.arange(first, size, dtype=np.int32), np.diff(terms.bounds))
        before = self.rows
        self.rows = Rows(
            columns,
            self._numbers[:size],
            self._lengths[:size],
            np.append(before.alive, np.ones(len(fresh), np.bool_)),
            self._vectors[:size],
            np.append(before.embedded, has),
            before.postings.grown(terms.codes, places),
            before.seats,
        )

    def _extend(self, columns: _Columns, fresh: Sequence[Fresh], first: int) -> None:
        once, seats = self._interned, self.rows.seats
        columns.ids += [row.id for row in fresh]
        columns.identifiers += [None] * len(fresh)
        columns.containers += [once.setdefault(row.container, row.container) for row in fresh]
        columns.places += [row.place for row in fresh]
        columns.importances += [row.importance for row in fresh]
        columns.created_at += [row.created_at for row in fresh]
        columns.happened_at += [
            row.created_at if row.happened_at == row.created_at else row.happened_at for row in fresh
        ]
        columns.category_terms += [once.setdefault(row.category_terms, row.category_terms) for row in fresh]
        columns.content_terms += [row.content_terms for row in fresh]
        for place, row in enumerate(fresh, first):
            self._by_number[row.number] = place
            self._by_id[row.id] = place
            if row.vector_number is not None:
                self._by_vector[row.vector_number] = place
            if row.container and row.place is not None:
                seat = (columns.containers[place], row.place)
                seats[seat] = (*seats.get(seat, ()), place)

    def _make_room(self, size: int) -> None:
        if size <= len(self._numbers):
            return
        rows, capacity = self.rows.size, max(size, len(self._numbers) * 3 // 2)
        for name in ("_numbers", "_lengths", "_vectors"):
            old = getattr(self, name)
            grown = np.zeros((capacity, *old.shape[1:]), old.dtype)
            grown[:rows] = old[:rows]
            setattr(self, name, grown)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors of length one; a zero vector stays zero and is like nothing."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), np.float32)


def products(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, the same wherever a row stands.

    A product of matrices (`@`) rounds by where a row stands, so that equal texts would change places; beside other work
    its threads wait for each other, and 10,000 rows take five times as long.
    """
    return np.asarray(np.einsum("ij,j->i", vectors, query), np.float32)


def best(scores: NDArray[Any], numbers: NDArray[np.int64], among: Places, most: int) -> Places:
    """Return the places of the highest scores, the best first; of equals the row with the higher number.

    Args:
        scores: Of each row.
        numbers: Of each row.
        among: The places to choose from.
        most: How many at most.
    """
    chosen = scores[among]
    if most < len(among):
        least = np.partition(chosen, len(chosen) - most)[len(chosen) - most]
        kept = chosen >= least
        among, chosen = among[kept], chosen[kept]
    return among[np.lexsort((-numbers[among], -chosen))][:most]
