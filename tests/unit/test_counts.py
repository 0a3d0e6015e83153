"""What is remembered of a large scope, and which words of a question are looked up at all."""

import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memoranda.db import counts as counting
from memoranda.db.counts import Counts, KnownCounts
from memoranda.db.dialects import dialect_for
from memoranda.db.dialects.base import TextQuestion
from memoranda.db.schema import declare
from memoranda.ranking.evidence import inverse_frequency

ROWS = 1000
TABLES = declare(dialect_for("sqlite", schema="memoranda"))
QUESTION = TextQuestion(
    corpus=TABLES.corpora["memory"],
    cells=(),
    terms=(),
    weights=(),
    document_frequency=(),
    average_length=20.0,
    match="any",
)


def asked(frequencies, match="any"):
    weights = [inverse_frequency(ROWS, seen) for seen in frequencies]
    terms = [f"t{k}" for k in range(len(frequencies))]
    return replace(QUESTION, terms=terms, weights=weights, document_frequency=frequencies, match=match)


@given(st.lists(st.integers(0, ROWS), min_size=1, max_size=12), st.integers(1, 100))
def test_what_only_common_words_say_cannot_pass_what_a_rare_one_says(frequencies, limit):
    question = asked(frequencies)
    proposing, lending = question.proposing(limit)
    assert sorted([*proposing, *lending]) == list(range(len(frequencies)))
    assert proposing
    if lending:
        # So many rows hold one word of at least this weight, and a row of common words alone weighs no more.
        rare = [question.weights[k] for k in proposing if frequencies[k] >= limit]
        assert sum(question.weights[k] for k in lending) <= max(rare) + 1e-9


@given(st.lists(st.integers(0, ROWS), min_size=1, max_size=12))
def test_where_every_word_must_stand_every_word_is_looked_up(frequencies):
    proposing, lending = asked(frequencies, match="all").proposing(64)
    assert sorted(proposing) == list(range(len(frequencies)))
    assert not lending


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
