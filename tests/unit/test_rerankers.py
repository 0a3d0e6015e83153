"""An order as scores, and the fakes of rerankers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.protocols import Reranker
from memoranda.rerankers import CheckedReranker, scores_of_order
from memoranda.testing import BrokenReranker, RerankCall, ScriptedReranker

COUNTS = st.integers(1, 30)
NUMBERS = st.none() | st.floats()


def put(scores):
    """Return the places in the order of their scores, equal ones as they stood."""
    return sorted(range(len(scores)), key=lambda place: scores[place], reverse=True)


@given(COUNTS.flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), NUMBERS)))))
def test_scores_of_an_order_put_texts_in_it_and_what_is_left_out_behind_as_it_stood(case):
    count, order = case
    chosen = list(dict.fromkeys(place for place, _ in order))
    scores = scores_of_order(count, order)
    assert CheckedReranker(ScriptedReranker(lambda query, texts: scores)).score("?", [""] * count) == scores
    assert put(scores) == [*chosen, *(place for place in range(count) if place not in chosen)]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, unique=True).map(lambda numbers: sorted(numbers, reverse=True)))
def test_numbers_that_fall_along_an_order_are_its_scores(numbers):
    scores = scores_of_order(len(numbers) + 1, enumerate(numbers))
    assert scores[:-1] == numbers and scores[-1] < numbers[-1]


def test_fakes_are_rerankers_and_remember_what_they_were_asked():
    scripted, broken = ScriptedReranker({"cats": 0.9}), BrokenReranker(ValueError("no"))
    assert isinstance(scripted, Reranker) and isinstance(broken, Reranker)
    assert scripted.score("which pets?", ["dogs", "cats"]) == [0.0, 0.9]
    scripted.scores = lambda query, texts: [len(query)]
    assert scripted.score("no pets?", ["dogs"]) == [8]
    assert scripted.calls == [RerankCall("which pets?", ("dogs", "cats")), RerankCall("no pets?", ("dogs",))]
    for tries in (1, 2):
        with pytest.raises(ValueError, match="no"):
            broken.score("which pets?", ["dogs"])
        assert broken.calls == tries
