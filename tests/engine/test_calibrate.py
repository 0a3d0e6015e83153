"""Calibration: a store measures its own floor, says what it would do, and uses it once it is applied."""

import pytest

from memoranda.errors import EmbedderUnavailable, InvalidInput, MemorandaError
from memoranda.policies import FloorPolicy
from memoranda.testing import BrokenEmbedder, CountingEmbedder

PEOPLE = ("Ana", "Bob", "Cleo", "Dora", "Edgar")
THINGS = (
    "keeps the spare bicycle key under the blue flowerpot",
    "moved the heron cluster to the Dublin machine room",
    "booked a dentist appointment with Doctor Silva",
    "found thirty missing invoices during the budget review",
    "planted tomatoes behind the garden shed",
    "paints watercolours of the harbour at dawn",
    "adopted a three-legged cat from the shelter",
)


@pytest.fixture
def facts():
    told = [(person, thing) for person in PEOPLE for thing in THINGS]
    return [f"{person} {thing} in week {n}." for n, (person, thing) in enumerate(told)]


def test_too_few_memories_are_refused_with_a_word_about_what_helps(engine, facts):
    me = engine.persona("main")
    me.memories.write_many(facts[:29])

    with pytest.raises(InvalidInput, match=r"needs 30 memories .* finds 29 here: store more") as refused:
        engine.calibrate(apply=True)

    assert "bicycle" not in str(refused.value)
    assert not me.recall(facts[0]).abstained


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", [0, 29, 10_001, 50.0, True, None])
def test_a_sample_that_cannot_be_used_is_refused(engine, sample):
    with pytest.raises(InvalidInput, match="sample must be"):
        engine.calibrate(sample=sample)


@pytest.mark.parametrize("embedder", ["hash/words", "none"])
def test_a_calibration_says_where_answers_and_noise_part(make_engine, facts, embedder):
    engine = make_engine(embedder=embedder)
    engine.persona("main").memories.write_many(facts)
    reports: list[tuple[int, int]] = []

    found = engine.calibrate(progress=lambda done, total: reports.append((done, total)))

    assert found.questions == len(facts) == sum(found.answered_histogram) == sum(found.absent_histogram)
    assert (len(found.answered_histogram), len(found.absent_histogram)) == (20, 20)
    assert 0 <= found.floor <= 1
    assert found.answered >= 0.95
    assert 0.5 < found.auroc <= 1
    assert found.absent_answered < found.answered
    assert (found.embedder is None) == (found.distance is None) == (embedder == "none")
    assert found.distance is None or 0 < found.distance <= 2
    assert not found.applied
    assert reports[-1] == (len(facts), len(facts))
    assert str(found).endswith("not applied")


@pytest.mark.in_turn
def test_a_calibration_gives_the_same_every_time_and_changes_nothing(engine, facts):
    me = engine.persona("main")
    me.memories.write_many(facts)
    before = [(hit.memory.id, hit.confidence) for hit in me.recall("bicycle key")]

    assert engine.calibrate() == engine.calibrate()

    assert [(hit.memory.id, hit.confidence) for hit in me.recall("bicycle key")] == before


def test_a_sample_is_spread_over_the_whole_store(engine, facts):
    engine.persona("main").memories.write_many(facts)

    assert engine.calibrate(sample=30).questions == 30


def test_no_question_is_a_memory_and_no_memory_is_embedded_again(make_engine, facts):
    from memoranda.embedders.hash_words import HashWords

    embedder = CountingEmbedder(HashWords())
    engine = make_engine(embedder=embedder)
    engine.persona("main").memories.write_many(facts)
    embedder.calls.clear()

    engine.calibrate()

    assert not set(facts) & set(embedder.texts)
    assert max(map(len, embedder.calls)) <= 16


def answered(me, question):
    """Say on which side of the floor a question is."""
    return not me.recall(question).abstained


@pytest.mark.in_turn
def test_an_applied_floor_holds_where_the_policy_leaves_it_open(make_engine, backend, facts):
    engine = make_engine()
    me = engine.persona("main")
    me.memories.write_many(facts)
    weak = "the harbour of some other place"
    confidence = max(hit.confidence for hit in (*me.recall(weak), *me.recall(weak).nearest))
    before = engine.calibrate()
    assert before.floor_before == 0.3 < confidence < before.floor
    assert answered(me, weak)

    applied = engine.calibrate(apply=True)

    assert applied.applied
    assert applied.floor == before.floor
    assert not answered(me, weak)
    assert not answered(engine.persona("main", preset="standard"), weak)
    assert answered(engine.persona("main", preset="journal"), weak)
    assert not me.recall(weak, floor=FloorPolicy(least=0.0)).abstained
    assert engine.calibrate().floor_before == applied.floor
    if backend.name != "sqlite-memory":
        assert not answered(make_engine().persona("main"), weak)


@pytest.mark.in_turn
def test_a_second_calibration_takes_the_place_of_the_first(make_engine, backend, facts):
    engine = make_engine()
    engine.persona("main").memories.write_many(facts)
    engine.persona("other").memories.write_many([f"{text} {text}" for text in facts])
    engine.calibrate(apply=True)

    second = engine.calibrate(persona="other", apply=True)

    assert engine.calibrate().floor_before == second.floor
    if backend.name != "sqlite-memory":
        assert make_engine().calibrate().floor_before == second.floor


def test_the_ledger_takes_its_distance_from_the_store(make_engine, facts):
    engine = make_engine(preset="ledger")
    me = engine.persona("main", user="ana")
    me.memories.write_many(facts)

    applied = engine.calibrate(user="ana", apply=True)
    assert applied.distance is not None

    question = "spare bicycle key, blue flowerpot"
    everything = me.recall(question, floor=FloorPolicy(enabled=False), limit=100)
    inside = me.recall(question, floor=FloorPolicy(least=0.0, dense_max=applied.distance), limit=100)
    assert [hit.memory.id for hit in me.recall(question, limit=100)] == [hit.memory.id for hit in inside]
    assert 0 < len(inside) < len(everything)


def test_only_what_the_asking_user_may_see_is_sampled(make_engine, facts):
    engine = make_engine(preset="ledger")
    engine.persona("main", user="ana", tenant="acme").memories.write_many(facts)

    for scope in ({"user": "bob", "tenant": "acme"}, {"user": "ana"}, {"tenant": "acme"}, {"persona": "other"}):
        with pytest.raises(InvalidInput, match="finds 0 here"):
            engine.calibrate(**scope)
    assert engine.calibrate(user="ana", tenant="acme").questions == len(facts)


def test_deleted_memories_are_not_asked_for(engine, facts):
    memories = engine.persona("main").memories
    written = memories.write_many(facts)
    for item in written[30:]:
        memories.delete(item.id)

    assert engine.calibrate().questions == 30


def test_without_its_embedder_a_store_is_not_measured(make_engine, facts):
    engine = make_engine(embedder=BrokenEmbedder(), background="off")
    engine.persona("main").memories.write_many(facts)

    with pytest.raises(EmbedderUnavailable) as refused:
        engine.calibrate(apply=True)

    assert isinstance(refused.value, MemorandaError)


def test_turns_of_a_conversation_are_measured_without_their_neighbours(make_engine, facts):
    engine = make_engine()
    rows = [{"content": text, "session": f"s{n // 8}", "position": n % 8} for n, text in enumerate(facts)]
    engine.persona("main").memories.write_many(rows)

    found = engine.calibrate()

    assert found.questions == len(facts)
    assert found.auroc > 0.5
