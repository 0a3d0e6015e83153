"""How often words are said in a large scope, remembered for a while.

What a word is worth depends on how many rows say it. Counting that takes an index longer than finding the rows that
answer, and a few rows more or less change nothing; so a large scope is counted anew only when it has grown, or after
some minutes, for other processes write as well. A small scope is counted every time.
"""

import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

LARGE = 1000
"""Rows from which a scope is counted only now and then."""
_SECONDS = 600.0
_GROWN = 0.05  # of the rows: a word's worth moves by less than a hundredth
_SCOPES, _TERMS = 1000, 10_000


@dataclass(slots=True)
class Counts:
    """What was counted in one scope."""

    rows: int
    average: float
    """The mean number of indexed terms of these rows."""
    terms: dict[str, int] = field(default_factory=dict)
    """In how many of these rows a term stands."""


@dataclass(slots=True)
class _Kept:
    counts: Counts
    added: int
    until: float


class KnownCounts:
    """The counts of one store, shared by its threads: whoever comes second counts for nothing and harms nothing."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def of(self, scope: Hashable, added: int) -> Counts | None:
        """Return what is known of a scope, None where it has to be counted.

        Args:
            scope: Whose rows.
            added: How many rows this process has added to their table so far.
        """
        kept = self._kept.get(scope)
        if kept is None or time.monotonic() > kept.until or added - kept.added > _GROWN * kept.counts.rows:
            return None
        return kept.counts

    def keep(self, scope: Hashable, added: int, counts: Counts) -> None:
        """Remember what was counted, where it is worth it."""
        if counts.rows < LARGE:
            return
        self._kept[scope] = _Kept(counts, added, time.monotonic() + _SECONDS)
        while len(self._kept) > _SCOPES:
            self._kept.popitem(last=False)

    def learn(self, counts: Counts, terms: Mapping[str, int]) -> None:
        """Add terms that were counted later."""
        # Another dictionary, for others may be reading the old one.
        counts.terms = {**counts.terms, **terms} if len(counts.terms) + len(terms) <= _TERMS else dict(terms)
