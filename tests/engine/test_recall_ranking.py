"""Which formula a preset ranks by, in numbers: through the engine, with cosines and clock decided by the test."""

from dataclasses import replace

import pytest
from sqlalchemy import create_engine, text

from memoranda.policies import DedupePolicy, RankingPolicy
from memoranda.presets import JOURNAL, STANDARD, STATEMENTS
from memoranda.testing import FixedEmbedder

NOTE = "Lisbon office opened on Tuesday."
EACH_A_ROW = replace(STATEMENTS, dedupe=DedupePolicy(name="key"))
"""Statements whose vectors a test puts close together, without one becoming the new text of another."""


class Interrupted(FixedEmbedder):
    """An embedder that is down as long as `down` says so."""

    down = False

    def embed(self, texts, purpose):
        if self.down:
            raise ConnectionError("down")
        return super().embed(texts, purpose)


def order(hits):
    return [hit.memory.content for hit in hits]


@pytest.mark.behaviour("R03")
def test_the_journal_weighs_text_meaning_and_importance_and_lets_them_fade(make_engine, frozen_clock):
    embedder = FixedEmbedder({NOTE: [1, 0], "lisbon": [0.8, 0.6]})
    me = make_engine(preset="journal", embedder=embedder, clock=frozen_clock).persona("main")
    me.memories.write(NOTE, importance=9)
    frozen_clock.advance(days=1)

    [hit] = me.recall("lisbon")

    assert hit.legs["text"] == pytest.approx(0.3 * 0.24317084, abs=1e-6)
    assert hit.legs["vector"] == pytest.approx(0.4, abs=1e-6)
    assert hit.score == pytest.approx(0.3264756, abs=1e-6)


@pytest.mark.behaviour("R04", "E03")
def test_without_an_embedder_text_counts_fully(make_engine, frozen_clock):
    me = make_engine(preset="journal", embedder="none", clock=frozen_clock).persona("main")
    me.memories.write(NOTE, importance=9)

    [hit] = me.recall("lisbon")

    assert hit.score == pytest.approx(0.4231708, abs=1e-6)
    assert hit.legs["vector"] == 0


@pytest.mark.behaviour("R03")
@pytest.mark.parametrize(("days", "factor"), [(0, 1), (0.5, 2 / 3), (1, 0.5), (7, 0.125), (-3, 1)])
def test_the_day_fades_in_fractions_and_never_below_zero(make_engine, frozen_clock, days, factor):
    me = make_engine(preset="journal", embedder="none", clock=frozen_clock).persona("main")
    me.memories.write(NOTE, importance=9)
    frozen_clock.advance(days=days)

    [hit] = me.recall("lisbon")

    assert hit.score == pytest.approx(0.4231708 * factor, abs=1e-6)


@pytest.mark.behaviour("S07")
def test_one_word_of_the_category_counts_as_a_and_one_of_the_content_as_b(make_engine, frozen_clock):
    me = make_engine(preset="journal", embedder="none", clock=frozen_clock).persona("main")
    me.memories.write("They moved into a new office.", category="lisbon")
    me.memories.write("Lisbon.", category="travel")

    by_category, by_content = me.recall("lisbon")

    assert by_category.memory.category == "lisbon"
    assert by_category.legs["text"] == pytest.approx(0.6079, abs=5e-5)
    assert by_content.legs["text"] == pytest.approx(0.2432, abs=5e-5)


@pytest.mark.behaviour("S07")
def test_postgres_itself_ranks_the_generated_column_with_the_same_numbers(postgres_url):
    from memoranda import MemoryEngine

    with MemoryEngine(postgres_url, preset="journal", embedder="none") as engine:
        me = engine.persona("main")
        me.memories.write("They moved into a new office.", category="lisbon")
        me.memories.write("Lisbon and Porto, then Lisbon again.", category="travel")
        hits = {hit.id: hit.legs["text"] for hit in me.recall("lisbon")}
    host = create_engine(postgres_url)
    with host.connect() as connection:
        query = text("select id, ts_rank(search, 'lisbon'::tsquery) from memoranda.memories")
        raw = {row[0]: row[1] for row in connection.execute(query)}
    host.dispose()

    assert max(raw.values()) == pytest.approx(0.6079, abs=5e-5)
    assert raw == pytest.approx(hits, abs=1e-6)


@pytest.mark.behaviour("R05", "R06")
def test_a_row_that_lacks_a_word_of_the_question_has_no_text_score_but_may_win_by_meaning(make_engine, frozen_clock):
    coffee, weather = "Ana's mornings begin with black coffee.", "Rain is expected in Porto."
    question = "drink in the morning"
    embedder = FixedEmbedder({coffee: [0.6, 0.8], weather: [0.1, 0.9949874], question: [1, 0]})
    me = make_engine(preset="journal", embedder=embedder, clock=frozen_clock).persona("main")
    me.memories.write_many([weather, coffee])

    hits = me.recall(question)

    assert order(hits)[0] == coffee
    assert hits[0].legs["text"] == 0
    assert hits[0].score == pytest.approx(0.5 * 0.6 + 0.1, abs=1e-6)


@pytest.mark.behaviour("R05", "R06")
def test_from_text_alone_all_words_are_wanted_first_and_one_is_enough_when_no_row_has_all(make_engine):
    me = make_engine(preset="journal", embedder="none").persona("main")
    me.memories.write("Ana's mornings begin with black coffee.")

    [hit] = me.recall("drink in the morning")
    assert hit.legs["text"] > 0

    me.memories.write("In the morning she wants a drink.")
    assert order(me.recall("drink in the morning")) == ["In the morning she wants a drink."]


@pytest.mark.behaviour("R09")
def test_a_row_without_a_vector_is_judged_by_its_words_alone(make_engine, frozen_clock):
    fresh = "The invoice number is 4711."
    embedder = Interrupted({"Ana likes tea.": [0.1, 0.9949874], "invoice": [1, 0]})
    me = make_engine(preset="journal", embedder=embedder, clock=frozen_clock).persona("main")
    me.memories.write("Ana likes tea.")
    embedder.down = True
    assert me.memories.write(fresh).degraded
    embedder.down = False

    hits = me.recall("invoice")

    assert order(hits) == [fresh, "Ana likes tea."]
    assert hits[0].score == pytest.approx(0.24317084 + 0.1, abs=1e-6)
    assert hits[1].score == pytest.approx(0.05 + 0.1, abs=1e-6)


@pytest.mark.behaviour("R14")
def test_the_ledger_fuses_ranks(make_engine, frozen_clock):
    embedder = FixedEmbedder({NOTE: [1, 0], "lisbon": [0.8, 0.6]})
    me = make_engine(preset="ledger", embedder=embedder, clock=frozen_clock).persona("main", user="ana")
    me.memories.write(NOTE, importance=5)

    [hit] = me.recall("lisbon")

    assert hit.score == pytest.approx(0.0347869, abs=1e-7)


@pytest.mark.behaviour("R15")
def test_in_the_ledger_importance_decides_between_equals(make_engine, frozen_clock):
    texts: dict[str, list[float]] = {"minor": [1, 0], "major": [1, 0], "nearest by far": [0.6, 0.8], "q": [0.6, 0.8]}
    me = make_engine(preset="ledger", embedder=FixedEmbedder(texts), clock=frozen_clock).persona("main", user="ana")
    me.memories.write("minor", importance=2)
    me.memories.write("major", importance=9)
    me.memories.write("nearest by far", importance=5)
    scores = {hit.memory.content: hit for hit in me.recall("q")}

    assert scores["major"].legs["vector"] == scores["minor"].legs["vector"] == 1 / 62
    assert scores["major"].score - scores["minor"].score == pytest.approx(0.002 * 0.7)
    assert list(scores).index("major") < list(scores).index("minor")


@pytest.mark.behaviour("R15")
def test_in_the_ledger_importance_and_freshness_never_outweigh_a_second_leg(make_engine, frozen_clock):
    both, one = "Lisbon is where the office is.", "Porto is where the ships are."
    embedder = FixedEmbedder({both: [0.8, 0.6], one: [1, 0], "lisbon": [1, 0]})
    me = make_engine(preset="ledger", embedder=embedder, clock=frozen_clock).persona("main", user="ana")
    me.memories.write(both, importance=1)
    frozen_clock.advance(days=400)
    me.memories.write(one, importance=10)

    assert order(me.recall("lisbon")) == [both, one]


@pytest.mark.behaviour("R16")
@pytest.mark.parametrize("preset", ["ledger", "standard"])
def test_a_fact_of_two_years_ago_ranks_like_a_fresh_one(make_engine, frozen_clock, preset):
    near, far = "Ana was born in Braga.", "The train to Faro leaves at nine."
    embedder = FixedEmbedder({near: [0.9, 0.43588989], far: [0.8, 0.6], "q": [1, 0]})
    engine = make_engine(preset=preset, embedder=embedder, clock=frozen_clock)
    scores = []
    for name, first, second in (("one", near, far), ("other", far, near)):
        me = engine.persona(name, user="ana")
        me.memories.write(first)
        frozen_clock.advance(days=730)
        me.memories.write(second)
        hits = me.recall("q")
        scores.append({hit.memory.content: hit.score - hit.legs.get("fresh", 0) for hit in hits})
        frozen_clock.advance(days=31)
        assert order(me.recall("q")) == [near, far]

    assert scores[0] == pytest.approx(scores[1], abs=1e-12)


@pytest.mark.behaviour("R28")
def test_statements_add_shared_words_to_the_cosine(make_engine):
    texts: dict[str, list[float]] = {
        "Rex is a dog": [0.6, 0.8],
        "Luna is a cat": [0.75, 0.66143783],
        "A dog": [0.2, 0.9797959],
    }
    embedder = FixedEmbedder(texts | {"dog Rex": [1, 0]})
    me = make_engine(preset=EACH_A_ROW, embedder=embedder).persona("main")
    me.memories.write_many([{"content": text, "about": "everyone"} for text in texts])

    hits = me.recall("dog Rex")

    assert [(hit.memory.content, pytest.approx(hit.score, abs=1e-6)) for hit in hits] == [
        ("Rex is a dog", 0.8),
        ("Luna is a cat", 0.75),
        ("A dog", 0.3),
    ]
    assert order(me.recall("dog Rex", limit=1)) == ["Rex is a dog"]


@pytest.mark.behaviour("R28")
def test_statements_weigh_the_words_of_four_times_as_many_as_are_asked_for(make_engine):
    # cosines .99, .98, ...: each text is nearer than the next one, and the words of all but a few are nobody's
    texts = {f"line{n}": [1 - n / 100, (1 - (1 - n / 100) ** 2) ** 0.5] for n in range(1, 61)}
    said = {"dog Rex barks": 0.82, "Rex barks": 0.7}
    vectors = texts | {text: [c, (1 - c**2) ** 0.5] for text, c in said.items()} | {"Rex barks dog": [1.0, 0.0]}
    me = make_engine(preset=EACH_A_ROW, embedder=FixedEmbedder(vectors)).persona("main")
    me.memories.write_many([{"content": text, "about": "everyone"} for text in [*texts, *said]])

    hits = me.recall("Rex barks dog", limit=10)

    expected = {text: vector[0] for text, vector in texts.items()}
    expected |= {"dog Rex barks": 0.82 + 0.2, "Rex barks": 0.7 + 0.2 * 2 / 3}
    best = sorted(expected.items(), key=lambda pair: -pair[1])[:10]
    assert [(hit.memory.content, pytest.approx(hit.score, abs=1e-6)) for hit in hits] == best


@pytest.mark.behaviour("R28")
def test_statements_leave_out_what_points_the_other_way(make_engine):
    texts: dict[str, list[float]] = {"Rex is a dog": [0.6, 0.8], "Nothing alike": [-0.5, 0.8660254]}
    me = make_engine(preset="statements", embedder=FixedEmbedder(texts | {"q": [1, 0]})).persona("main")
    me.memories.write_many([{"content": text, "about": "everyone"} for text in texts])

    assert order(me.recall("q")) == ["Rex is a dog"]


@pytest.mark.behaviour("R28", "E03")
def test_statements_without_an_embedder_go_by_shared_words_and_drop_what_shares_none(make_engine):
    me = make_engine(preset="statements", embedder="none").persona("main")
    me.memories.write_many(
        [{"content": text, "about": "everyone"} for text in ("Rex is a dog", "Luna is a cat", "The dog Rex barks")]
    )

    hits = me.recall("dog barks")

    assert {hit.memory.content: pytest.approx(hit.score) for hit in hits} == {
        "The dog Rex barks": 0.2,
        "Rex is a dog": 0.1,
    }


def test_a_policy_of_ones_own_replaces_a_preset(make_engine):
    policies = replace(JOURNAL, limit=2)
    me = make_engine(preset=policies, embedder="none").persona("main")
    me.memories.write_many([f"Note {n} about Lisbon" for n in range(5)])

    assert len(me.recall("lisbon")) == 2


def test_rows_are_found_by_words_that_never_meet(make_engine):
    """Where words meet less often than by chance, what is expected to say several is not there."""
    policies = replace(STANDARD, ranking=RankingPolicy(candidates=4))
    me = make_engine(preset=policies, embedder="none").persona("main")
    me.memories.write_many([f"{'Lanterns' if n % 2 else 'Herons'} at pier {n}" for n in range(80)])

    assert len(me.recall("lanterns and herons", limit=1)) == 1
    assert len(me.recall("lanterns and herons", limit=8)) == 8
