"""Terms as arrays of numbers, and who stands beside whom: the same as looking at strings and rows one by one."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memoranda.candidates import Candidate
from memoranda.ranking.scored import best_first
from memoranda.ranking.sessions import mean_of_best, neighbours, sessions
from memoranda.ranking.terms import Terms, codes
from memoranda.text import frequency, join_terms

NOW = datetime(2026, 5, 8, 12, tzinfo=UTC)

# around the eight characters that a number holds, and so alike that one letter tells them apart
VOCABULARY = [
    *"abz",
    "ab",
    "abcdefg",
    "abcdefgh",
    "abcdefgi",
    *(f"abcdefgh{'x' * n}{end}" for n in (0, 7, 8, 60) for end in "ij"),
]
terms = st.lists(st.sampled_from(VOCABULARY), max_size=20)


@given(st.lists(terms, max_size=8), st.lists(st.sampled_from([*VOCABULARY, "unsaid"]), unique=True, max_size=6))
def test_terms_are_counted_as_in_the_strings(drawn, wanted):
    texts = [join_terms(said) for said in drawn]
    counts = Terms(texts).counts(codes(wanted))
    assert counts.tolist() == [[frequency(text, term) for text in texts] for term in wanted]


@given(st.lists(terms, max_size=8))
def test_a_text_opens_with_its_first_term(drawn):
    openings = Terms([join_terms(said) for said in drawn]).openings()
    assert openings.tolist() == [codes(said[:1])[0] if said else 0 for said in drawn]


@given(st.lists(terms, min_size=1, max_size=8), st.randoms())
def test_some_of_the_texts_say_what_they_say(drawn, shuffle):
    chosen = shuffle.sample(range(len(drawn)), shuffle.randint(1, len(drawn)))
    distinct, said = Terms([join_terms(said) for said in drawn]).said(chosen)
    numbers = dict(zip(codes(VOCABULARY).tolist(), VOCABULARY, strict=True))
    found = [{numbers[distinct[k]] for k in np.flatnonzero(row)} for row in said]
    assert found == [set(drawn[i]) for i in chosen]


def row(number: int, session: str = "", position: int | None = None, days: int = 0) -> Candidate:
    moment = NOW + timedelta(days=days)
    return Candidate(UUID(int=number), "", "", "", 0, None, True, False, 5, moment, moment, session, position)


places = st.tuples(st.sampled_from(["", "a", "b"]), st.none() | st.integers(0, 6), st.integers(0, 2))


@given(st.lists(places, max_size=14), st.integers(0, 2))
def test_a_neighbour_is_the_newest_row_of_the_seat_so_far_away(drawn, reach):
    rows = [row(n, *place) for n, place in enumerate(drawn)]
    near = neighbours(rows, sessions(rows), reach)
    assert sorted(near) == [d for d in (-2, -1, 1, 2) if abs(d) <= reach]
    for distance, at in near.items():
        for one, other in zip(rows, at.tolist(), strict=True):
            seated = one.session and one.position is not None
            there = [
                (x.happened_at, x.id, i)
                for i, x in enumerate(rows)
                if seated and x.session == one.session and x.position == (one.position or 0) + distance
            ]
            assert other == (max(there)[2] if there else len(rows))


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.floats(0, 1)), max_size=12))
def test_a_session_is_as_good_as_the_mean_of_its_best_rows(drawn):
    rows = [row(n, session) for n, (session, _) in enumerate(drawn)]
    means = mean_of_best(sessions(rows), np.array([score for _, score in drawn], np.float64), 3)
    for (session, own), mean in zip(drawn, means.tolist(), strict=True):
        best = sorted((score for name, score in drawn if name == session), reverse=True)[:3] if session else [own]
        assert abs(mean - sum(best) / len(best)) < 1e-9


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 2)), max_size=12))
def test_the_best_stand_first_and_of_equals_the_newest_then_the_higher_id(drawn):
    rows = [row(n, days=days) for n, (_, days) in enumerate(drawn)]
    scores = np.array([score for score, _ in drawn], np.float64)
    expected = sorted(range(len(rows)), key=lambda i: (scores[i], rows[i].happened_at, rows[i].id), reverse=True)
    assert best_first(scores, rows) == expected
