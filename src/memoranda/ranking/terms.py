"""The terms of many texts as arrays of numbers: to cut hundreds of texts into strings costs more than to rank them."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]
Codes: TypeAlias = NDArray[np.uint64]

_BLANK = 32
_WIDTH = 8  # characters that a number holds
_FIRST = np.array([(1 << 8 * characters) - 1 for characters in range(_WIDTH + 1)], np.uint64)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd: Fibonacci hashing


class Terms:
    """The terms of texts, text by text.

    A term of up to eight characters is its own number, a longer one is hashed to 64 bits: two terms have one number
    with a probability of 2^-64.

    Attributes:
        codes: the number of each term.
        bounds: where in `codes` each text begins; the last one ends at the last of them.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Read texts in the format of `memoranda.text.join_terms`."""
        self.codes, begins = _codes("".join(texts))
        ends = np.cumsum([0, *map(len, texts)])
        self.bounds: Places = np.searchsorted(begins, ends)

    @classmethod
    def known(cls, codes: Codes, bounds: Places) -> "Terms":
        """Return the terms of texts whose numbers are known; see the attributes."""
        made = cls.__new__(cls)
        made.codes, made.bounds = codes, bounds
        return made

    def of(self, texts: Sequence[int] | Places) -> "Terms":
        """Return the terms of some of the texts, in their order."""
        places, sizes = self._places(texts)
        return Terms.known(self.codes[places], np.concatenate(([0], np.cumsum(sizes))))

    def _places(self, texts: Sequence[int] | Places) -> tuple[Places, Places]:
        """Return where in `codes` the terms of texts stand, and how many each of them has."""
        begins, ends = self.bounds[:-1][texts], self.bounds[1:][texts]
        sizes = ends - begins
        shifts = begins - np.cumsum(sizes) + sizes
        return np.arange(sizes.sum()) + np.repeat(shifts, sizes), sizes

    def counts(self, wanted: Codes) -> Floats:
        """Return how often each text says each of the wanted terms: terms by texts."""
        size = len(self.bounds) - 1
        text = np.repeat(np.arange(size), np.diff(self.bounds))
        counts = np.zeros((len(wanted), size))
        for said, code in zip(counts, wanted, strict=True):
            said[:] = np.bincount(text[self.codes == code], minlength=size)
        return counts

    def openings(self) -> Codes:
        """Return the first term of each text; 0, which is none, of an empty one."""
        padded = np.append(self.codes, np.uint64(0))
        first: Codes = np.where(np.diff(self.bounds) > 0, padded[self.bounds[:-1]], np.uint64(0))
        return first

    def said(self, texts: Sequence[int]) -> tuple[Codes, Bools]:
        """Return the distinct terms of some of the texts, and which of these says which: texts by terms."""
        places, sizes = self._places(texts)
        text = np.repeat(np.arange(len(texts)), sizes)
        distinct, number = np.unique(self.codes[places], return_inverse=True)
        said = np.zeros((len(texts), len(distinct)), np.bool_)
        said[text, number] = True
        return distinct, said


def codes(terms: Sequence[str]) -> Codes:
    """Return the number of each term."""
    return _codes(f" {'  '.join(terms)} ")[0]


def _codes(joined: str) -> tuple[Codes, Places]:
    """Return the numbers of the terms of a string, and where each begins in it."""
    text = joined.encode("ascii", "replace") + b" " * _WIDTH
    blank = np.frombuffer(text, np.uint8) == _BLANK
    edges = np.flatnonzero(blank[:-1] != blank[1:]) + 1
    begins, lengths = edges[::2], edges[1::2] - edges[::2]
    # at every place the eight characters from there on
    windows: Codes = np.ndarray(len(text) - _WIDTH + 1, "<u8", text, strides=(1,))
    found = windows[begins] & _FIRST.take(lengths, mode="clip")
    longer = np.flatnonzero(lengths > _WIDTH)
    read = _WIDTH
    while longer.size:
        rest = windows[begins[longer] + read] & _FIRST.take(lengths[longer] - read, mode="clip")
        found[longer] = (found[longer] ^ (found[longer] >> np.uint64(29))) * _MULTIPLIER + rest
        read += _WIDTH
        longer = longer[lengths[longer] > read]
    return found, begins
