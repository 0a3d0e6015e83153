"""Rows in memory: what grows row by row says the same as what is looked through from the start."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memoranda.db.resident import Fresh, GrowingRows
from memoranda.db.resident.postings import Postings
from memoranda.db.resident.rows import best
from memoranda.ranking.terms import codes
from memoranda.text import join_terms

WORDS = ["tram", "harbour", "kettle", "vinegar", "descaling"]
terms = st.lists(st.sampled_from(WORDS), max_size=5)
seats = st.tuples(st.sampled_from(["", "walk", "talk"]), st.none() | st.integers(-3, 3))


def fresh(number, said=(), named=(), seat=("", None), vector=None):
    packed = None if vector is None else np.array(vector, "<f4").tobytes()
    moment = f"2026-01-{number % 28 + 1:02}"
    stands = (f"id{number}", *seat, 5, moment, moment, len(said))
    return Fresh._make((number, *stands, join_terms(named), join_terms(said), packed and number, packed))


@st.composite
def histories(draw):
    """Give steps: rows that come, of which some come anew, and numbers of rows that go."""
    row = st.builds(fresh, st.integers(1, 12), terms, terms, seats, st.none() | st.just((3.0, 4.0)))
    rows = st.lists(row, max_size=5, unique_by=lambda x: x.number)
    return draw(st.lists(st.tuples(rows, st.sets(st.integers(1, 12), max_size=3)), max_size=6))


@given(histories())
def test_rows_that_come_and_go_are_those_that_are_left(steps):
    growing, views = GrowingRows(), []
    left: dict[int, Fresh] = {}
    for rows, gone in steps:
        growing.add(rows)
        left |= {row.number: row for row in rows}
        growing.drop(gone)
        left = {number: row for number, row in left.items() if number not in gone}
        views.append((growing.rows, dict(left)))
    for rows, there in views:  # whoever read on an earlier state still sees it
        alive = np.flatnonzero(rows.alive)
        assert sorted(rows.numbers[alive].tolist()) == sorted(there)
        for word, places in zip(WORDS, rows.saying(codes(WORDS)), strict=True):
            said = {n for n, row in there.items() if f" {word} " in row.content_terms + row.category_terms}
            assert sorted(rows.numbers[places].tolist()) == sorted(said)
        for i in alive.tolist():
            row = there[int(rows.numbers[i])]
            assert rows.ids[i] == row.id and rows.names[rows.containers[i]] == row.container
            assert rows.embedded[i] == (row.vector is not None)
            assert not row.vector or rows.vectors[i].tolist() == np.array([0.6, 0.8], np.float32).tolist()
            near = {
                n
                for n, x in there.items()
                if row.container == x.container != "" and n != row.number
                if row.place is not None and x.place is not None and 0 < abs(row.place - x.place) <= 2
            }
            assert set(rows.numbers[rows.beside(np.array([i]), 2)].tolist()) == near


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6), st.sets(st.integers(0, 9)))
def test_postings_that_grew_find_what_they_were_given(batches, wanted):
    postings, pairs, place = Postings(), set(), 0
    for batch in batches:
        places = np.arange(place, place + len(batch), dtype=np.int32)
        postings = postings.grown(np.array(batch, np.uint64), places)
        pairs |= set(zip(batch, places.tolist(), strict=True))
        place += len(batch)
    asked = np.array(sorted(wanted), np.uint64)
    for number, found in zip(sorted(wanted), postings.each(asked), strict=True):
        assert sorted(found.tolist()) == sorted(p for n, p in pairs if n == number)
    assert sorted(postings.any(asked).tolist()) == sorted(p for n, p in pairs if n in wanted)


def test_many_new_terms_are_put_in_order_with_the_old_ones():
    postings, rng = Postings(), np.random.default_rng(1)
    numbers = rng.integers(0, 50, 30_000).astype(np.uint64)
    for begin in range(0, 30_000, 1000):
        places = np.arange(begin, begin + 1000, dtype=np.int32)
        postings = postings.grown(numbers[begin : begin + 1000], places)
    found = postings.each(np.arange(50, dtype=np.uint64))
    assert [sorted(places.tolist()) for places in found] == [np.flatnonzero(numbers == n).tolist() for n in range(50)]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=12), st.integers(1, 12))
def test_the_best_are_the_highest_and_of_equals_the_last(scores, most):
    numbers = np.arange(100, 100 + len(scores))
    found = best(np.array(scores, np.float64), numbers, np.arange(len(scores)), most)
    assert found.tolist() == sorted(range(len(scores)), key=lambda i: (-scores[i], -i))[:most]
