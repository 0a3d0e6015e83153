"""Floors and their calibration as pure functions: what passes, what is left to measurement, where two groups part."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.candidates import Candidate, Candidates, Query
from memoranda.errors import ConfigurationError
from memoranda.policies import FloorPolicy, RankingPolicy
from memoranda.presets import PRESETS
from memoranda.ranking import FLOORS, Floor, Measured, Scored, calibration, floors, measured_for, rank, settle
from memoranda.ranking.calibration import Row, Trial
from memoranda.reports import Calibration
from memoranda.text import Tokenizer, join_terms, words

NOW = datetime(2026, 5, 8, 12, tzinfo=UTC)
TOKENIZER = Tokenizer("english")
MEASURED = Measured(least=0.4, dense_max=0.6)


def row(number: int, *, cosine: float | None = None, dense: bool = False, text: bool = False) -> Candidate:
    content = f"Lisbon note {number}" if text else f"Note {number}"
    terms = TOKENIZER.terms(content)
    return Candidate(
        id=UUID(int=number),
        content=content,
        category_terms="",
        content_terms=join_terms(terms),
        length=len(terms),
        cosine=cosine,
        by_words=text,
        by_meaning=dense,
        importance=5,
        created_at=NOW,
        happened_at=NOW,
        session="",
        position=None,
    )


def ask(text: str, *, embedded: bool = True) -> Query:
    return Query(
        text=text, terms=tuple(TOKENIZER.query_terms(text)), words=words(text), embedded=embedded, now=NOW, rows=0
    )


def passed(floor: Floor, *rows: Candidate, name: str = "rrf", embedded: bool = True) -> list[int]:
    ranked = rank(ask("lisbon", embedded=embedded), floor.counting(rows), RankingPolicy(name=name))  # type: ignore[arg-type]
    return sorted(item.candidate.id.int for item in floor.passing(ranked))


def by_distance(dense_max: float, lexical_max: float | None = None) -> Floor:
    return settle(FloorPolicy(least=0, dense_max=dense_max, lexical_max=lexical_max), MEASURED)


# -- distances


@pytest.mark.behaviour("R18")
def test_a_distance_must_be_strictly_smaller():
    edge, inside = row(1, cosine=0.5, dense=True), row(2, cosine=0.51, dense=True)
    assert passed(by_distance(0.5), edge, inside) == [2]


@pytest.mark.behaviour("R19")
def test_the_same_distance_holds_for_what_only_shares_words_but_not_for_what_has_no_vector():
    far, near, bare = row(1, cosine=0.3, text=True), row(2, cosine=0.6, text=True), row(3, text=True)
    assert passed(by_distance(0.5), far, near, bare) == [2, 3]


def test_words_may_have_a_limit_of_their_own():
    both, words_only = row(1, cosine=0.55, dense=True, text=True), row(2, cosine=0.55, text=True)
    assert passed(by_distance(0.5, 0.4), both, words_only) == [1]
    assert passed(by_distance(0.4, 0.5), both, words_only) == [1, 2]
    assert passed(by_distance(0.4), both, words_only) == []


@pytest.mark.behaviour("R20")
def test_a_near_row_outside_the_nearest_is_rescued_by_its_words():
    assert passed(by_distance(0.5), row(1, cosine=0.6, text=True), row(2, cosine=0.7, dense=True)) == [1, 2]


@pytest.mark.behaviour("R21")
def test_zero_lets_nothing_pass_that_has_a_vector():
    assert passed(by_distance(0), row(1, cosine=1.0, dense=True, text=True)) == []
    assert passed(by_distance(0.5, 0), row(1, cosine=1.0, text=True)) == []


def test_what_lies_too_far_has_no_place_in_the_vector_leg():
    far = row(1, cosine=0.4, dense=True, text=True)
    (scored,) = rank(ask("lisbon"), by_distance(0.5, 0.9).counting([far]), RankingPolicy(name="rrf"))
    assert (scored.legs["vector"], scored.legs["text"]) == (0, 1 / 61)


def test_a_question_without_a_vector_knows_no_distance():
    assert passed(by_distance(0), row(1, text=True), row(2, text=True), embedded=False) == [1, 2]


# -- confidence


def scored(number: int, confidence: float) -> Scored:
    return Scored(Candidates.of([row(number)]), 0, score=0, confidence=confidence)


def test_the_best_hit_decides_whether_a_question_is_answered_and_each_may_be_asked_for_more():
    ranked = [scored(1, 0.3), scored(2, 0.5), scored(3, 0.1)]
    assert Floor(enabled=True, least=0.5).passing(ranked) == ranked
    assert Floor(enabled=True, least=0.51).passing(ranked) == []
    assert Floor(enabled=True, least=0.5, each=0.3).passing(ranked) == ranked[:2]
    assert Floor(enabled=False, least=0.51).passing(ranked) == ranked


def test_from_words_alone_a_hit_must_share_one():
    ranked = [scored(1, 0.2), scored(2, 0.0)]
    assert Floor(enabled=True, each=0.0).passing(ranked) == ranked[:1]


def test_what_a_policy_leaves_open_is_the_measured_value():
    assert settle(FloorPolicy(), MEASURED) == Floor(enabled=True, least=0.4)
    assert settle(FloorPolicy(least=0, dense_max="measured"), MEASURED) == Floor(enabled=True, dense_max=0.6)
    assert settle(FloorPolicy(least=0.1, dense_max=0.2, lexical_max=0.3, each=0.05), MEASURED) == Floor(
        enabled=True, least=0.1, each=0.05, dense_max=0.2, lexical_max=0.3
    )
    assert settle(FloorPolicy(enabled=False, least=0.9), MEASURED) == Floor(enabled=False)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_hit_put_before_a_model_unasked_is_over_a_floor_in_every_preset(preset):
    policy = PRESETS[preset].floor
    floor = settle(policy, MEASURED, unasked=True)
    needed = 0.3 if preset == "statements" else 0.4
    assert floor.enabled
    assert floor.each == needed
    assert floor.passing([scored(1, needed), scored(2, needed - 0.01)])[1:] == []
    assert floor.passing([scored(2, needed - 0.01)]) == []


def test_what_is_shown_unasked_may_need_more_than_an_answer_to_a_question():
    measured = Measured(least=0.4, injected=0.5)
    ranked = [scored(1, 0.6), scored(2, 0.45)]
    assert settle(FloorPolicy(), measured).passing(ranked) == ranked
    assert settle(FloorPolicy(), measured, unasked=True).passing(ranked) == ranked[:1]
    assert settle(FloorPolicy(), measured, unasked=True).passing(ranked[1:]) == []
    assert settle(FloorPolicy(injected=0.45), measured, unasked=True).passing(ranked) == ranked


@pytest.mark.parametrize("name", sorted(FLOORS))
def test_no_embedder_is_shown_unasked_what_would_be_no_answer(name):
    injected = FLOORS[name].injected
    assert injected is None or injected >= FLOORS[name].least


def test_an_injected_hit_keeps_to_the_distances_as_well():
    policy = FloorPolicy(least=0, dense_max=0.3, injected=0.1)
    ranked = [Scored(Candidates.of([row(1, cosine=0.6, dense=True)]), 0, score=0, confidence=0.6)]
    assert settle(policy, MEASURED, unasked=True).passing(ranked) == []


@pytest.mark.parametrize("name", ["least", "each", "injected", "dense_max", "lexical_max"])
@pytest.mark.parametrize("value", [-0.1, 2.1, float("nan"), "near", True])
def test_a_floor_that_cannot_work_is_refused(name, value):
    with pytest.raises(ConfigurationError, match=name):
        FloorPolicy(**{name: value})


def test_an_embedder_that_was_not_measured_has_the_default():
    assert measured_for("someone/else") == FLOORS["default"]
    assert measured_for("wordllama") == FLOORS["wordllama"]
    assert measured_for("wordllama", embedded=False) == FLOORS["text"]


def test_what_a_store_keeps_holds_for_its_embedder_only():
    kept = floors.to_store(MEASURED, "hash/words@512")
    assert floors.stored(kept, "hash/words@512") == MEASURED
    assert floors.stored(kept, "wordllama@256") is None
    assert floors.stored(floors.to_store(MEASURED, None), None) == MEASURED
    assert floors.stored(None, "hash/words@512") is None


vectors = st.none() | st.floats(-1, 1)


@given(
    st.lists(st.tuples(vectors, st.booleans(), st.booleans()), max_size=12),
    st.floats(0, 2),
    st.none() | st.floats(0, 2),
)
def test_a_wider_floor_lets_the_same_rows_pass_and_more(drawn, dense_max, lexical_max):
    rows = [row(n, cosine=c, dense=c is not None and d, text=t) for n, (c, d, t) in enumerate(drawn, 1)]
    narrow = passed(by_distance(dense_max, lexical_max), *rows)
    wide = passed(by_distance(2, 2), *rows)
    assert set(narrow) <= set(wide)
    assert {r.id.int for r in rows if r.cosine is None} <= set(narrow)


# -- calibration

TEXTS = (
    "Ana keeps the spare bicycle key under the blue flowerpot.",
    "The heron cluster was moved to the Dublin machine room.",
    "Bob's dentist appointment with Doctor Silva is on Friday.",
    "Our quarterly budget review found thirty missing invoices.",
)


def stored(number: int, text: str, session: str = "", position: int | None = None) -> Row:
    return Row(
        id=UUID(int=number), text=text, terms=frozenset(TOKENIZER.terms(text)), session=session, position=position
    )


ROWS = [stored(n, text) for n, text in enumerate(TEXTS, 1)]


@pytest.mark.parametrize("embedded", [True, False])
def test_a_question_takes_words_of_its_row_and_some_of_others_the_same_every_time(embedded):
    made = calibration.questions(ROWS, TOKENIZER, embedded=embedded)
    assert made == calibration.questions(ROWS, Tokenizer("english"), embedded=embedded)
    assert [item.id for item, _ in made] == [item.id for item in ROWS]
    for item, text in made:
        terms = set(TOKENIZER.query_terms(text))
        assert len(terms & item.terms) >= 3
        assert terms - item.terms
        assert text not in item.text


def test_a_row_that_says_too_little_is_not_asked_for():
    asked = calibration.questions([stored(9, "So be it, then."), *ROWS], TOKENIZER, embedded=True)
    assert UUID(int=9) not in {item.id for item, _ in asked}


def test_texts_without_spaces_are_asked_for_in_pieces():
    rows = [stored(1, "東京の事務所は来週の月曜日に大阪へ移転します"), *ROWS]
    question = calibration.questions(rows, TOKENIZER, embedded=True)[0][1]
    assert len(question.split()) > 3


def candidate_of(item: Row) -> Candidate:
    terms = TOKENIZER.terms(item.text)
    made = row(item.id.int)
    made.content_terms, made.session, made.position = join_terms(terms), item.session, item.position
    return made


def test_what_answers_a_question_as_well_is_its_row_its_like_and_its_neighbours():
    asked = stored(1, TEXTS[0], "s", 10)
    terms = TOKENIZER.query_terms("flowerpot bicycle")
    like = "Ana keeps the spare bicycle key under the red flowerpot."
    others = {
        "itself": (stored(1, TEXTS[0]), True),
        "nearly the same": (stored(2, like), True),
        "a neighbour": (stored(3, TEXTS[1], "s", 13), True),
        "the same session, far away": (stored(4, TEXTS[1], "s", 40), False),
        "says all that is asked": (stored(5, "A bicycle, a flowerpot and twenty other things for sale"), True),
        "something else": (stored(6, TEXTS[2]), False),
    }
    found = {name: calibration.answers_too(asked, candidate_of(item), terms) for name, (item, _) in others.items()}
    assert found == {name: expected for name, (_, expected) in others.items()}


shares = st.floats(0, 1)


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=200))
def test_the_proposed_values_keep_95_percent_and_no_thousandth_more_would(drawn):
    trials = [Trial(answered=a, absent=1, distance=d) for a, d in drawn]
    found = calibration.proposed(trials)
    answered = [trial.answered for trial in trials]
    assert calibration.share(answered, found.least) >= 0.95
    assert sum(a >= found.least + 0.001 for a in answered) <= len(answered) - int(0.05 * len(answered) + 1e-9)
    assert sum(d < found.dense_max for _, d in drawn) >= 0.95 * len(trials)


def test_where_the_two_groups_part_floor_and_distance_stand_half_way():
    parted = [Trial(answered=0.6 + n / 1000, absent=0.2, distance=0.4, wrong_distance=0.8) for n in range(100)]
    mixed = [Trial(answered=0.6 + n / 1000, absent=0.8, distance=0.4, wrong_distance=0.2) for n in range(100)]
    assert calibration.proposed(parted).least == pytest.approx(0.402, abs=0.0011)
    assert calibration.proposed(parted).dense_max == pytest.approx(0.6, abs=0.0011)
    assert calibration.proposed(mixed).least == pytest.approx(0.605, abs=0.0011)
    assert calibration.proposed(mixed).dense_max == pytest.approx(0.4, abs=0.0011)


def test_without_vectors_no_distance_is_proposed():
    assert calibration.proposed([Trial(answered=0.5, absent=0.5)]) == Measured(least=0.5, dense_max=2.0)


def test_auroc_is_one_half_by_chance_and_one_where_two_groups_part():
    assert calibration.auroc([0.9, 0.8], [0.1, 0.2]) == 1
    assert calibration.auroc([0.5, 0.5], [0.5]) == 0.5
    assert calibration.auroc([0.1], [0.2]) == 0


@given(st.lists(shares, min_size=1, max_size=30), st.lists(shares, min_size=1, max_size=30))
def test_auroc_counts_pairs(positive, negative):
    pairs = [1 if p > n else 0.5 if p == n else 0 for p in positive for n in negative]
    assert calibration.auroc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))


@given(st.lists(shares))
def test_a_histogram_counts_every_value_once(values):
    counts = calibration.histogram(values)
    assert (len(counts), sum(counts)) == (20, len(values))
    assert calibration.histogram([0.0, 0.05, 1.0])[:2] == (1, 1)


def test_a_calibration_reads_as_lines_with_its_effect():
    found = Calibration(
        embedder="hash/words@512",
        questions=1200,
        floor=0.412,
        distance=0.61,
        auroc=0.98765,
        answered=0.95,
        absent_answered=0.0312,
        floor_before=0.3,
        answered_before=0.991,
        absent_answered_before=0.25,
        answered_histogram=(0,) * 20,
        absent_histogram=(0,) * 20,
        applied=True,
    )
    assert str(found).splitlines() == [
        "1,200 questions, each with its answer and without; AUROC 0.988",
        "floor 0.412: answers 95.0% of those with one and 3.1% of the others",
        "floor 0.300: 99.1% and 25.0%",
        "distance 0.610: 95% of the answers are nearer",
        "applied",
    ]
    assert str(replace(found, distance=None, applied=False)).splitlines()[3:] == ["not applied"]
