"""Two lists become one, and what is chosen from a list says different things."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memoranda.ranking.fusion import fused, ts_rank_any
from memoranda.ranking.mmr import mmr
from memoranda.ranking.weighted import ts_rank
from memoranda.text import join_terms, positions

KEYS = st.sampled_from("abcdefgh")
COSINES = st.dictionaries(KEYS, st.floats(-1, 1), max_size=8)
WORDS = st.dictionaries(KEYS, st.floats(0, 1), max_size=8)
SHARE = st.floats(0, 1)
VECTORS = arrays.arrays(np.float32, st.tuples(st.integers(1, 8), st.just(4)), elements=st.floats(-1, 1, width=32))
QUERY = arrays.arrays(np.float32, 4, elements=st.floats(-1, 1, width=32))


def test_each_list_counts_relative_to_its_best():
    scores = fused({"a": 0.5, "b": 0.25, "c": -0.5}, {"b": 0.1, "d": 0.05}, alpha=0.6)
    assert {key: round(score, 9) for key, score in scores.items()} == {"a": 0.6, "b": 0.7, "c": 0.0, "d": 0.2}


def test_a_list_that_nobody_asked_for_has_no_share():
    assert fused({"a": 0.5}, None) == {"a": 1.0} == fused(None, {"a": 0.1})
    assert fused({"a": 0.5}, {}, alpha=0.6) == {"a": 0.6}
    assert fused(None, None) == {}


@given(COSINES, WORDS, SHARE)
def test_scores_are_shares_of_everything_that_was_found(dense, text, alpha):
    scores = fused(dense, text, alpha)
    assert scores.keys() == dense.keys() | text.keys()
    assert all(0 <= score <= 1 for score in scores.values())


@given(COSINES, WORDS)
def test_at_the_ends_one_list_decides(dense, text):
    assert all(fused(dense, text, 1.0)[key] == 0 for key in text.keys() - dense.keys())
    assert all(fused(dense, text, 0.0)[key] == 0 for key in dense.keys() - text.keys())


@given(QUERY, VECTORS, st.integers(0, 10), SHARE)
def test_nothing_is_chosen_twice_and_the_nearest_first(query, vectors, limit, balance):
    chosen = mmr(query, vectors, limit, balance)
    assert len(chosen) == len(set(chosen)) == min(limit, len(vectors))
    assert chosen[:1] == mmr(query, vectors, min(limit, 1), 1.0)


@given(QUERY, VECTORS)
def test_where_only_nearness_counts_the_order_is_that_of_nearness(query, vectors):
    near = vectors.astype(float) @ query / (np.linalg.norm(vectors.astype(float), axis=1) + 1e-300)
    order = [near[place] for place in mmr(query, vectors, len(vectors), 1.0)]
    assert all(one >= other - 1e-5 for one, other in pairwise(order))


def test_what_was_said_makes_room_for_what_was_not():
    vectors = np.array([[1, 0.1], [1, 0.11], [0.6, -0.8]], np.float32)
    query = np.array([1, 0], np.float32)
    assert mmr(query, vectors, 2, 1.0) == [0, 1]
    assert mmr(query, vectors, 2, 0.3) == [0, 2]
    assert mmr(query, np.empty((0, 2), np.float32), 2, 0.5) == []


@given(st.lists(st.sampled_from("abcd"), max_size=300), st.lists(st.sampled_from("abcde"), min_size=1, unique=True))
def test_words_score_as_they_do_where_words_have_weights(said, terms):
    text = join_terms(said)
    places = {term: [(place, 1.0) for place in at[:255]] for term, at in positions(text, terms).items()}
    assert ts_rank_any(terms, text) == pytest.approx(ts_rank(terms, places, every=False))
