"""The rows of one author and kind as arrays and lists of columns. Rows are only ever added, and a changed one anew."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoranda.candidates import NOWHERE
from memoranda.db.resident.postings import Numbers, Postings, Rows32
from memoranda.ranking.terms import Bools, Codes, Floats, Places, Terms
from memoranda.text.unspaced import is_unspaced

S = TypeVar("S", bound=np.generic)

_FIRST_CAPACITY = 16
_BYTES = 8192  # what nobody's rows take already
_ROW_BYTES = 500  # what a row takes, by and large, beside its vector and its terms
_SPAN, _SHIFT = 1 << 33, 1 << 32  # of a container's seats: places lie between -2^31 and 2^31


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


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows at one moment. Whoever has them may go on reading while others are added."""

    ids: Sequence[Any]
    """These and the next two as the database gives them; there may be more than rows."""
    created_at: Sequence[Any]
    happened_at: Sequence[Any]
    names: Sequence[str]
    """Of the containers, by their numbers; the first one is none."""
    numbers: NDArray[np.int64]
    lengths: Floats
    importances: NDArray[np.int16]
    containers: NDArray[np.int32]
    places: NDArray[np.int64]
    """In the container, else `NOWHERE`."""
    alive: Bools
    """Which of them were not replaced or taken away since."""
    vectors: NDArray[np.float32]
    """Of length one; zeros where there is none."""
    embedded: Bools
    """Which of them have a vector."""
    unspaced: Bools
    """In which of them words are not parted."""
    content: Terms
    categories: Terms
    said: Postings
    """Which rows say a term."""
    seats: Postings
    """Which rows stand in a place of a container."""

    @property
    def size(self) -> int:
        """How many there are, dead ones included."""
        return len(self.numbers)

    def marked(self, places: Places) -> Bools:
        """Return of all rows which of them stand in these places."""
        marks = np.zeros(self.size, np.bool_)
        marks[places] = True
        return marks

    def saying(self, codes: Codes) -> list[Rows32]:
        """Return for each term the rows that say it, dead ones left out."""
        return [places[self.alive[places]] for places in self.said.each(codes)]

    def beside(self, places: Places, reach: int) -> Places:
        """Return the rows that stand no farther than `reach` from some of them, in the same container; maybe twice."""
        seated = places[(self.containers[places] != 0) & (self.places[places] != NOWHERE)]
        own = _seats(self.containers[seated], self.places[seated])
        steps = np.array([step for step in range(-reach, reach + 1) if step], np.int64)
        found = self.seats.any((own.astype(np.int64)[:, None] + steps).ravel().astype(np.uint64))
        found = found[found < self.size]
        return found[self.alive[found]].astype(np.intp)


def _seats(containers: NDArray[np.int32], places: NDArray[np.int64]) -> Numbers:
    return (containers.astype(np.int64) * _SPAN + places + _SHIFT).astype(np.uint64)


class _Growing(Generic[S]):
    """An array that grows at its end; who has a view of it keeps what he sees."""

    def __init__(self, dtype: type[S], width: int | None = None) -> None:
        self.values = np.zeros((_FIRST_CAPACITY,) if width is None else (_FIRST_CAPACITY, width), dtype)
        self.size = 0

    def add(self, more: Any) -> NDArray[S]:
        """Add values and return all of them."""
        size = self.size + len(more)
        if size > len(self.values):
            grown = np.zeros((max(size, len(self.values) * 3 // 2), *self.values.shape[1:]), self.values.dtype)
            grown[: self.size] = self.values[: self.size]
            self.values = grown
        self.values[self.size : size] = more
        self.size = size
        return self.values[:size]


class _GrowingTerms:
    """The terms of texts, of which more come."""

    def __init__(self) -> None:
        self._codes = _Growing(np.uint64)
        self._bounds = _Growing(np.intp)
        self._bounds.add([0])

    @property
    def nbytes(self) -> int:
        return self._codes.values.nbytes + self._bounds.values.nbytes

    def add(self, texts: Sequence[str]) -> tuple[Terms, Terms]:
        """Return the terms of all texts, and of those that came now."""
        fresh, before = Terms(texts), self._codes.size
        return Terms.known(self._codes.add(fresh.codes), self._bounds.add(before + fresh.bounds[1:])), fresh


class GrowingRows:
    """The rows of one author and kind, and what was seen of their tables so far. Whoever changes it holds a lock."""

    def __init__(self) -> None:
        """Begin with none."""
        self.dead = 0
        self._ids: list[Any] = []
        self._created_at: list[Any] = []
        self._happened_at: list[Any] = []
        self._names = [""]
        self._named = {"": 0}
        self._numbers = _Growing(np.int64)
        self._lengths = _Growing(np.float64)
        self._importances = _Growing(np.int16)
        self._containers = _Growing(np.int32)
        self._places = _Growing(np.int64)
        self._vectors = _Growing(np.float32, 0)  # as wide as the first one that comes
        self._embedded = _Growing(np.bool_)
        self._unspaced = _Growing(np.bool_)
        self._content = _GrowingTerms()
        self._categories = _GrowingTerms()
        self._by_number: dict[int, int] = {}
        self._by_id: dict[Any, int] = {}
        self._by_vector: dict[int, int] = {}
        self._vector_of: dict[int, int] = {}
        self.rows = self._all(np.empty(0, np.bool_), (), Postings(), Postings())

    @property
    def nbytes(self) -> int:
        """What it takes in memory, in bytes, by and large."""
        terms = self._content.nbytes + self._categories.nbytes + self.rows.said.nbytes + self.rows.seats.nbytes
        return _BYTES + self._vectors.values.nbytes + terms + self.rows.size * _ROW_BYTES

    def numbers_of(self, vectors: Iterable[int], owners: Iterable[Any]) -> set[int]:
        """Return the numbers of the rows here that have one of these vectors, or are one of these owners."""
        places = {self._by_vector.get(vector) for vector in vectors} | {self._by_id.get(owner) for owner in owners}
        return {int(self.rows.numbers[place]) for place in places if place is not None}

    def drop(self, numbers: Iterable[int]) -> None:
        """Take rows away, those that are here."""
        places = [place for number in numbers if (place := self._by_number.pop(number, None)) is not None]
        if not places:
            return
        alive = self.rows.alive.copy()  # others may be reading the old one
        alive[places] = False
        for place in places:
            self._by_id.pop(self._ids[place], None)
            if (vector := self._vector_of.pop(place, None)) is not None:
                self._by_vector.pop(vector, None)
        self.dead += len(places)
        self.rows = replace(self.rows, alive=alive)

    def add(self, fresh: Sequence[Fresh]) -> None:
        """Add rows; one that is here already is replaced."""
        if not fresh:
            return
        self.drop([row.number for row in fresh])
        alive = np.append(self.rows.alive, np.ones(len(fresh), np.bool_))
        self.rows = self._all(alive, fresh, self.rows.said, self.rows.seats)

    def _all(self, alive: Bools, fresh: Sequence[Fresh], said: Postings, seats: Postings) -> Rows:
        """Add the columns of rows, and return everything."""
        first = len(self._ids)
        self._ids += [row.id for row in fresh]
        self._created_at += [row.created_at for row in fresh]
        self._happened_at += [row.created_at if row.happened_at == row.created_at else row.happened_at for row in fresh]
        for place, row in enumerate(fresh, first):
            self._by_number[row.number] = self._by_id[row.id] = place
            if row.vector_number is not None:
                self._by_vector[row.vector_number], self._vector_of[place] = place, row.vector_number
            if row.container not in self._named:
                self._named[row.container] = len(self._names)
                self._names.append(row.container)
        containers = self._containers.add([self._named[row.container] for row in fresh])
        places = self._places.add([NOWHERE if row.place is None else row.place for row in fresh])
        at = np.arange(first, first + len(fresh), dtype=np.int32)
        seated = at[(containers[first:] != 0) & (places[first:] != NOWHERE)]
        content, said_now = self._content.add([row.content_terms for row in fresh])
        categories, named_now = self._categories.add([row.category_terms for row in fresh])
        both = (np.repeat(at, np.diff(said_now.bounds)), np.repeat(at, np.diff(named_now.bounds)))
        rows = np.concatenate(both)
        order = np.argsort(rows, kind="stable")
        return Rows(
            self._ids,
            self._created_at,
            self._happened_at,
            self._names,
            self._numbers.add([row.number for row in fresh]),
            self._lengths.add([row.length for row in fresh]),
            self._importances.add([row.importance for row in fresh]),
            containers,
            places,
            alive,
            *self._unit_vectors([row.vector for row in fresh]),
            self._unspaced.add([is_unspaced(row.content_terms) for row in fresh]),
            content,
            categories,
            said.grown(np.concatenate((said_now.codes, named_now.codes))[order], rows[order]),
            seats.grown(_seats(containers[seated], places[seated]), seated),
        )

    def _unit_vectors(self, packed: Sequence[bytes | None]) -> tuple[NDArray[np.float32], Bools]:
        """Return all vectors, and which rows have one: one as long as the others, for no other can be compared."""
        first = next((vector for vector in packed if vector is not None), None)
        if first is not None and not self._vectors.values.shape[1]:
            before = self._vectors.size
            self._vectors = _Growing(np.float32, len(first) // 4)
            self._vectors.add(np.zeros((before, self._vectors.values.shape[1]), np.float32))
        width = self._vectors.values.shape[1]
        usable = [vector for vector in packed if vector is not None and len(vector) == 4 * width]
        has = np.array([vector is not None and len(vector) == 4 * width for vector in packed], np.bool_)
        added = np.zeros((len(packed), width), np.float32)
        if usable:
            added[has] = unit(np.frombuffer(b"".join(usable), "<f4").reshape(len(usable), -1))
        return self._vectors.add(added), self._embedded.add(has)


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
