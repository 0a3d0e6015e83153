"""What the database tells a ranker about a row that might answer a query.

Gathering stops here and judging begins: a ranker is a pure function of these records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar, overload
from uuid import UUID

T = TypeVar("T")

NOWHERE = -(1 << 63)
"""The number that stands for no position: the lowest one of 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Query:
    """A question as the rankers see it, with the statistics of the rows it is asked of.

    Frequencies are counted over the asker's own rows and those shared with them, never over anybody else's.
    """

    text: str
    terms: tuple[str, ...]
    """The distinct encoded terms to look for, in the order of the question; empty when no word carries meaning."""
    words: frozenset[str]
    """The question's words for the overlap score."""
    embedded: bool
    """Whether the question has a vector: without one the answer comes from text alone."""
    now: datetime
    rows: int = 0
    """How many rows the scope can see."""
    average_length: float = 0.0
    """Their mean number of indexed terms."""
    document_frequency: tuple[int, ...] = ()
    """For each of `terms`, in how many of these rows it occurs."""
    timeless: bool = False
    """Whether age and importance count for nothing among these rows, as in documents."""


# Not frozen, and made by position: there may be hundreds a question, and freezing doubles what one costs. No repr: it
# would show texts.
@dataclass(slots=True, repr=False)
class Candidate:
    """One row that one of the legs proposed, or that stands beside one in the same container."""

    id: UUID
    content: str
    category_terms: str
    """Encoded terms of the category, of a chunk its source, in the format of `memoranda.text.join_terms`."""
    content_terms: str
    """Encoded terms of title and content, in the same format."""
    length: int
    """The number of indexed terms, category included."""
    cosine: float | None
    """-1..1, higher is nearer; None when the row or the question has no vector."""
    by_words: bool
    """Whether the text leg proposed it."""
    by_meaning: bool
    """Whether the vector leg did: it is among the nearest."""
    importance: int
    """1..10, higher matters more; 0 among rows that have none."""
    created_at: datetime
    """When the row was stored."""
    happened_at: datetime
    """When it happened, if that is known, else when it was stored."""
    session: str
    """The container the row belongs to, a session, a document or a conversation; empty for none."""
    position: int | None
    """The row's place in it."""

    @property
    def proposed(self) -> bool:
        """Whether a leg proposed it; a row that is only here as a neighbour lends its evidence, and is ranked too."""
        return self.by_words or self.by_meaning


class Raw(Sequence[T]):
    """Some of the values of a column as the driver gives it, each read when somebody asks for it."""

    def __init__(self, raw: Sequence[Any], places: Sequence[int], read: Callable[[Sequence[Any]], list[T]]) -> None:
        """Take the column, where in it the values stand, and what reads many of them at once."""
        self._raw = raw
        self._places = places
        self._read = read

    def read(self, numbers: Sequence[int]) -> list[T]:
        """Return some of the values."""
        return self._read([self._raw[self._places[number]] for number in numbers])

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, number: int) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> list[T]: ...
    def __getitem__(self, number: int | slice) -> T | list[T]:
        if isinstance(number, slice):
            return self.read(range(*number.indices(len(self))))
        return self.read([number])[0]


class Candidates(Sequence[Candidate]):
    """Hundreds of candidates column by column: a row is made of them only when somebody asks for it."""

    def __init__(self, columns: Sequence[Sequence[Any]], **known: Any) -> None:
        """Take the columns in the order of a candidate's fields.

        Args:
            columns: All equally long.
            known: What stands in place of a column where somebody has it as numbers already: of `category_terms` and
                `content_terms` their `memoranda.ranking.terms.Terms`, of `session` an array of numbers, -1 for none, of
                `position` an array, `NOWHERE` for none. And `unspaced`, an array that tells in which contents words are
                not parted.
        """
        self.column = dict(zip(_FIELDS, columns, strict=True))
        self.known = known
        self._rows: list[Candidate | None] = [None] * len(columns[0])

    @classmethod
    def of(cls, rows: Sequence[Candidate]) -> "Candidates":
        """Return rows as columns; what is columns already comes back as it is."""
        if isinstance(rows, cls):
            return rows
        made = cls([[getattr(row, name) for row in rows] for name in _FIELDS])
        made._rows = list(rows)
        return made

    def changed(self, **columns: Sequence[Any]) -> "Candidates":
        """Return the same rows with other columns in place of some."""
        return Candidates(tuple((self.column | columns).values()), **self.known)

    def values(self, name: str, places: Sequence[int]) -> list[Any]:
        """Return what a column has in some places."""
        column = self.column[name]
        return column.read(places) if isinstance(column, Raw) else [column[place] for place in places]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> list[Candidate]: ...
    def __getitem__(self, place: int | slice) -> Candidate | list[Candidate]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        row = self._rows[place]
        if row is None:
            row = self._rows[place] = Candidate(*(column[place] for column in self.column.values()))
        return row


_FIELDS = tuple(field.name for field in fields(Candidate))
