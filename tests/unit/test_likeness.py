"""The score of a text by itself: its cosine, moved by the words of the question that it says."""

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memoranda.candidates import Candidate, Query
from memoranda.ranking.evidence import Evidence, inverse_frequency
from memoranda.ranking.likeness import WORDS, likeness, saying
from memoranda.text import join_terms

shares = st.floats(0, 1)
cosines = st.floats(-1, 1)
texts = st.lists(st.sampled_from(["tea", "cup", "pot", "mug"]), max_size=12)


def query(terms, rows=100, seen=10):
    return Query(
        text=" ".join(terms),
        terms=tuple(terms),
        words=frozenset(terms),
        embedded=True,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        rows=rows,
        average_length=4.0,
        document_frequency=(seen,) * len(terms),
    )


@given(cosines, shares)
def test_words_move_a_cosine_towards_a_whole_answer_and_never_past_it(cosine, words):
    moved = likeness(cosine, words, embedded=True)
    assert cosine - 1e-9 <= moved <= 1 + 1e-9
    assert likeness(cosine, 0.0, embedded=True) - cosine < 1e-9
    assert likeness(None, words, embedded=False) == words
    assert abs(likeness(None, words, embedded=True) - WORDS * words) < 1e-9


@given(texts)
def test_what_a_text_says_is_its_bm25_as_a_share_of_the_whole_question(terms):
    asked, said = query(["tea", "cup"]), join_terms(terms)
    whole = 2 * inverse_frequency(100, 10)
    row = Candidate(UUID(int=1), "", "", said, len(terms), None, True, False, 5, asked.now, asked.now, "", None)
    [bm25] = Evidence(asked, [row]).bm25
    assert abs(saying(asked)(said, len(terms)) - min(1.0, bm25 / whole)) < 1e-9


def test_a_text_of_usual_length_that_says_each_word_once_says_all():
    said = saying(query(["tea", "cup"]))
    assert abs(said(join_terms(["tea", "x", "cup", "y"]), 4) - 1) < 1e-9
    assert said("", 0) == 0 and saying(query([]))(" tea ", 1) == 0
