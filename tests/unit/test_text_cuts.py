"""Which rows that say a word of the question are not looked at: none that could be among the best."""

from dataclasses import replace
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.db.dialects import dialect_for
from memoranda.db.dialects.base import TextQuestion
from memoranda.db.dialects.text_cuts import least, proposing
from memoranda.db.schema import declare
from memoranda.ranking.evidence import K1, B, inverse_frequency

ROWS = 1000
QUESTION = TextQuestion(
    corpus=declare(dialect_for("sqlite", schema="memoranda")).corpora["memory"],
    cells=(),
    terms=(),
    weights=(),
    document_frequency=(),
    average_length=20.0,
    match="any",
)
SHORTEST = (1 + K1 * (1 - B)) / (1 + K1)  # what a row of average length scores against an empty one


def asked(frequencies, rows=ROWS):
    weights = [inverse_frequency(rows, seen) for seen in frequencies]
    terms = [f"t{k}" for k in range(len(frequencies))]
    return replace(QUESTION, terms=terms, weights=weights, document_frequency=frequencies)


@st.composite
def stores(draw):
    """Draw the terms that each of some rows says, with its weight and length, and the question for all of them."""
    shares = draw(st.lists(st.sampled_from([1, 2, 5, 9]), min_size=2, max_size=5))
    chance = Random(draw(st.integers(0, 1000)))
    rows = [{k for k, share in enumerate(shares) if chance.randrange(10) < share} for _ in range(chance.randint(1, 80))]
    question = asked([sum(k in row for row in rows) for k in range(len(shares))], len(rows))
    return question, [(row, sum(question.weights[k] for k in row), chance.randint(1, 40)) for row in rows if row]


def usual_weight(question, rows, limit):
    """Return what as many rows as are wanted weigh or more, if terms meet by chance; 0 where so few say any."""
    sums, expected = [(0.0, float(rows))], 0.0
    for weight in question.weights:
        said = exp(-weight)
        sums = [*((w, n * (1 - said)) for w, n in sums), *((w + weight, n * said) for w, n in sums)]
    for weight, number in sorted(sums, reverse=True):
        expected += number
        if expected >= limit:
            return weight
    return 0.0


@given(stores(), st.integers(1, 8))
def test_a_row_of_common_words_alone_weighs_no_more_than_as_many_rows_as_are_wanted(store, limit):
    question, rows = store
    looked_up, lending = proposing(question, limit)
    assert sorted([*looked_up, *lending]) == list(range(len(question.terms)))
    kept = [weight for row, weight, _ in rows if not row.isdisjoint(looked_up)]
    for row, weight, _ in rows:
        if row.isdisjoint(looked_up):
            assert sum(other >= weight - 1e-9 for other in kept) >= limit


@given(stores(), st.integers(1, 8))
def test_a_row_too_light_to_look_at_passes_no_heavy_row_of_average_length(store, limit):
    question, rows = store
    average = sum(length for _, _, length in rows) / max(len(rows), 1)

    def score(weight, length):
        return weight / (1 + K1 * (1 - B) + K1 * B * length / average)

    enough = usual_weight(question, len(rows), limit)
    heavy = [score(weight, length) for _, weight, length in rows if weight >= enough and length <= average]
    for _, weight, _ in rows:
        if weight < least(question, limit):
            assert all(score(weight, 0) < other for other in heavy)


@given(st.lists(st.integers(1, ROWS), min_size=1, max_size=30), st.integers(1, 100))
def test_what_is_worth_looking_at_is_no_more_than_all_terms_weigh(frequencies, limit):
    question = asked(frequencies)
    assert 0 <= least(question, limit) <= sum(question.weights) + 1e-9


def test_a_row_of_common_words_is_worth_looking_at_where_too_few_say_a_rare_one():
    rare, common = SHORTEST * inverse_frequency(ROWS, 400), SHORTEST * inverse_frequency(ROWS, 900)
    assert least(asked([400, 900]), 90) == pytest.approx(rare + common)
    assert least(asked([400, 900]), 100) == pytest.approx(rare)
    assert least(asked([400, 900]), 150) == pytest.approx(common)
    assert least(asked([400, 900]), 250) == 0


@pytest.mark.parametrize("changed", [{"match": "all"}, {"lending": False}, {"document_frequency": [0, 0]}])
def test_every_row_is_looked_at_where_all_terms_are_asked_for_or_nobody_counted(changed):
    question = replace(asked([1, 900]), **changed)
    assert least(question, 1) == 0
    assert sorted(proposing(question, 2)[0]) == [0, 1]
