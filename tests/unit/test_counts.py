"""What is remembered of a large scope."""

import time

from memoranda.db import counts as counting
from memoranda.db.counts import Counts, KnownCounts


def test_a_small_scope_is_counted_every_time():
    known = KnownCounts()
    known.keep("small", 0, Counts(counting.LARGE - 1, 20.0))
    known.keep("large", 0, Counts(counting.LARGE, 20.0, {"tea": 5}))
    assert known.of("small", 0) is None
    assert known.of("large", 0) == Counts(counting.LARGE, 20.0, {"tea": 5})


def test_a_large_scope_is_counted_anew_when_it_has_grown_or_after_a_while(monkeypatch):
    known = KnownCounts()
    known.keep("large", 100, Counts(2000, 20.0))
    assert known.of("large", 200) is not None
    assert known.of("large", 201) is None
    later = time.monotonic() + 601
    monkeypatch.setattr("memoranda.db.counts.time.monotonic", lambda: later)
    assert known.of("large", 100) is None


def test_what_is_remembered_is_bounded():
    known = KnownCounts()
    for scope in range(1100):
        known.keep(scope, 0, Counts(2000, 20.0))
    assert known.of(0, 0) is None
    counts = known.of(1099, 0)
    assert counts is not None
    for first in range(0, 20_000, 50):
        known.learn(counts, {f"t{k}": 1 for k in range(first, first + 50)})
    assert len(counts.terms) <= 10_000
    assert "t19999" in counts.terms
