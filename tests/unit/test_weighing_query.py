"""The query of full text that Postgres answers with the rows whose terms weigh enough together."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memoranda.db.dialects import dialect_for
from memoranda.db.dialects.base import TextQuestion
from memoranda.db.dialects.postgresql_terms import weighing
from memoranda.db.schema import declare
from memoranda.ranking.evidence import inverse_frequency

ROWS = 1000
QUESTION = TextQuestion(
    corpus=declare(dialect_for("postgresql", schema="memoranda")).corpora["memory"],
    cells=(),
    terms=(),
    weights=(),
    document_frequency=(),
    average_length=20.0,
    match="any",
)


def asked(frequencies):
    weights = [inverse_frequency(ROWS, seen) for seen in frequencies]
    terms = [f"t{k}" for k in range(len(frequencies))]
    return replace(QUESTION, terms=terms, weights=weights, document_frequency=frequencies)


def answers(query, said):
    names = {f"t{k}": f"t{k}" in said for k in range(40)}
    return eval(query.replace("&", " and ").replace("|", " or "), {}, names)


FREQUENCIES = st.lists(st.integers(1, ROWS), min_size=1, max_size=30)


@given(FREQUENCIES, st.floats(0, 30), st.data())
def test_a_row_whose_terms_weigh_enough_answers(frequencies, least, data):
    question = asked(frequencies)
    said = data.draw(st.sets(st.sampled_from(question.terms)))
    weight = sum(w for term, w in zip(question.terms, question.weights, strict=True) if term in said)
    query = weighing(question, least)
    if said and weight >= min(least, sum(question.weights)):
        assert answers(query, said)
    assert not answers(query, set())


@given(st.lists(st.integers(1, ROWS), min_size=1, max_size=3), st.floats(0, 30), st.data())
def test_of_few_terms_no_row_answers_that_weighs_less(frequencies, least, data):
    question = asked(frequencies)
    said = data.draw(st.sets(st.sampled_from(question.terms)))
    weight = sum(w for term, w in zip(question.terms, question.weights, strict=True) if term in said)
    if weight < min(least, sum(question.weights)) - 1e-6:
        assert not answers(weighing(question, least), said)


def test_a_query_stays_short_however_many_terms_there_are():
    for count in (10, 24, 25, 500):
        question = asked(list(range(1, count + 1)))
        assert weighing(question, sum(question.weights) / 2).count("t") <= max(300, count)
