"""Which rows have a number, a term's or a seat's: a sorted array of what was there, a small one of what came since."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoranda.ranking.terms import Places

Numbers: TypeAlias = NDArray[np.uint64]
Rows32: TypeAlias = NDArray[np.int32]

_LEAST_TAIL = 4096  # numbers: so few are put in order in less time than a search takes
_TAIL_SHARE = 8  # of the numbers that are there one in so many may be new, before all of them are put in order again


@dataclass(frozen=True, slots=True)
class _Segment:
    """Numbers in order, and beside each the place of a row that has it; a pair stands once."""

    numbers: Numbers
    places: Rows32

    def each(self, wanted: Numbers) -> list[Rows32]:
        spans = zip(*(bound.tolist() for bound in self._spans(wanted)), strict=True)
        return [self.places[begin:end] for begin, end in spans]

    def any(self, wanted: Numbers) -> Rows32:
        begins, ends = self._spans(wanted)
        sizes = ends - begins
        found: Rows32 = self.places[np.arange(sizes.sum()) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)]
        return found

    def _spans(self, wanted: Numbers) -> tuple[Places, Places]:
        return self.numbers.searchsorted(wanted), self.numbers.searchsorted(wanted, "right")

    def joined(self, numbers: Numbers, places: Rows32) -> "_Segment":
        """Return it with more pairs, whose places are higher than those it has and do not fall."""
        numbers, places = np.concatenate((self.numbers, numbers)), np.concatenate((self.places, places))
        order = np.argsort(numbers, kind="stable")  # mostly two runs that are in order: merging them is quick
        numbers, places = numbers[order], places[order]
        once = np.ones(len(numbers), np.bool_)
        once[1:] = (numbers[1:] != numbers[:-1]) | (places[1:] != places[:-1])
        return _Segment(numbers[once], places[once])


_EMPTY = _Segment(np.empty(0, np.uint64), np.empty(0, np.int32))


@dataclass(frozen=True, slots=True)
class Postings:
    """The places of the rows that have each number. It never changes: `grown` makes another."""

    _base: _Segment = _EMPTY
    _tail: _Segment = _EMPTY

    @property
    def nbytes(self) -> int:
        """What it takes, in bytes."""
        return sum(part.numbers.nbytes + part.places.nbytes for part in (self._base, self._tail))

    def grown(self, numbers: Numbers, places: Rows32) -> "Postings":
        """Return the postings with the numbers of rows that stand behind all others, row by row."""
        tail = self._tail.joined(numbers, places)
        if len(tail.numbers) <= max(_LEAST_TAIL, len(self._base.numbers) // _TAIL_SHARE):
            return Postings(self._base, tail)
        return Postings(self._base.joined(tail.numbers, tail.places))

    def each(self, wanted: Numbers) -> list[Rows32]:
        """Return for each number the places of the rows that have it, each once."""
        base = self._base.each(wanted)
        if not self._tail.numbers.size:
            return base
        both = zip(base, self._tail.each(wanted), strict=True)
        return [np.concatenate(pair) if pair[1].size else pair[0] for pair in both]

    def any(self, wanted: Numbers) -> Rows32:
        """Return the places of the rows that have one of these numbers; a row that has several comes as often."""
        return np.concatenate((self._base.any(wanted), self._tail.any(wanted)))
