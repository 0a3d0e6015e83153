"""Which rows say a term: a sorted array of what was there, and a small one of what came since."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoranda.ranking.terms import Codes

Rows32: TypeAlias = NDArray[np.int32]

_LEAST_TAIL = 4096  # terms: so few are put in order in less time than a search takes
_TAIL_SHARE = 8  # of the terms that are there one in so many may be new, before all of them are put in order again


@dataclass(frozen=True, slots=True)
class _Segment:
    """Terms in order, and beside each the place of a row that says it; a pair stands once."""

    codes: Codes
    places: Rows32

    def find(self, code: np.uint64) -> Rows32:
        first = int(np.searchsorted(self.codes, code))
        last = first + int(np.searchsorted(self.codes[first:], code, "right"))
        return self.places[first:last]

    def joined(self, codes: Codes, places: Rows32) -> "_Segment":
        """Return it with more pairs, whose places are higher than those it has and do not fall."""
        codes, places = np.concatenate((self.codes, codes)), np.concatenate((self.places, places))
        order = np.argsort(codes, kind="stable")  # two or more runs that are in order: merging them is quick
        codes, places = codes[order], places[order]
        once = np.empty(len(codes), np.bool_)
        once[:1] = True
        once[1:] = (codes[1:] != codes[:-1]) | (places[1:] != places[:-1])
        return _Segment(codes[once], places[once])


_EMPTY = _Segment(np.empty(0, np.uint64), np.empty(0, np.int32))


@dataclass(frozen=True, slots=True)
class Postings:
    """The places of the rows that say each term. It never changes: `grown` makes another."""

    _base: _Segment = _EMPTY
    _tail: _Segment = _EMPTY

    @property
    def nbytes(self) -> int:
        """What it takes, in bytes."""
        return sum(part.codes.nbytes + part.places.nbytes for part in (self._base, self._tail))

    def grown(self, codes: Codes, places: Rows32) -> "Postings":
        """Return the postings with more: the terms of rows that stand behind all others, row by row."""
        tail = self._tail.joined(codes, places)
        if len(tail.codes) <= max(_LEAST_TAIL, len(self._base.codes) // _TAIL_SHARE):
            return Postings(self._base, tail)
        return Postings(self._base.joined(tail.codes, tail.places))

    def find(self, code: np.uint64) -> Rows32:
        """Return the places of the rows that say a term, each once."""
        base, tail = self._base.find(code), self._tail.find(code)
        return base if not tail.size else np.concatenate((base, tail))
