"""When a recall abstains: distances and confidences, on every database."""

from dataclasses import replace

import pytest

from memoranda.errors import ConfigurationError, InvalidInput
from memoranda.policies import FloorPolicy
from memoranda.presets import JOURNAL, PRESETS
from memoranda.testing import BrokenEmbedder, FixedEmbedder


def at(cosine):
    """A vector at this cosine to [1, 0]."""
    return [cosine, (1 - cosine**2) ** 0.5]


def order(hits):
    return [hit.memory.content for hit in hits]


def ledger(make_engine, vectors, **options):
    engine = make_engine(preset="ledger", embedder=FixedEmbedder(vectors), **options)
    return engine.persona("main", user="ana")


# -- the ledger's distances


@pytest.mark.behaviour("R17")
def test_nothing_within_the_floor_is_an_abstention(make_engine):
    me = ledger(make_engine, {"The tram is late.": [0, 1], "q": [1, 0]})
    me.memories.write("The tram is late.")

    answer = me.recall("q")

    assert answer.abstained
    assert order(answer) == []
    assert str(answer).startswith("(no memories found")
    assert answer.reason
    assert order(answer.nearest) == ["The tram is late."]


@pytest.mark.behaviour("R18")
def test_a_distance_of_exactly_the_limit_is_out(make_engine):
    me = ledger(make_engine, {"edge": at(0.5), "inside": at(0.501), "q": [1, 0]})
    me.memories.write_many(["edge", "inside"])

    assert order(me.recall("q")) == ["inside"]


@pytest.mark.behaviour("R19")
def test_one_shared_word_does_not_carry_a_row_that_is_too_far(make_engine):
    far, near = "Lisbon is sunny.", "Lisbon has seven hills."
    me = ledger(make_engine, {far: at(0.3), near: at(0.55), "lisbon": [1, 0]})
    me.memories.write_many([far, near])

    assert order(me.recall("lisbon")) == [near]


@pytest.mark.behaviour("R19")
def test_a_row_without_a_vector_is_exempt_from_distances(make_engine):
    class Interrupted(FixedEmbedder):
        down = False

        def embed(self, texts, purpose):
            if self.down:
                raise ConnectionError("down")
            return super().embed(texts, purpose)

    embedder = Interrupted({"Porto is far.": at(0.1), "lisbon": [1, 0]})
    me = make_engine(preset="ledger", embedder=embedder, background="off").persona("main", user="ana")
    me.memories.write("Porto is far.")
    embedder.down = True
    assert me.memories.write("Lisbon is sunny.").degraded
    embedder.down = False

    assert order(me.recall("lisbon")) == ["Lisbon is sunny."]


@pytest.mark.behaviour("R20")
def test_a_near_row_outside_the_nearest_thirty_is_rescued_by_its_words(make_engine):
    vectors = {f"row {n}": at(0.9 - n / 1000) for n in range(40)}
    wanted = "ERR-7F3A means the disk is full."
    me = ledger(make_engine, vectors | {wanted: at(0.6), "what is ERR-7F3A": [1, 0]})
    me.memories.write_many([*vectors, wanted])

    hits = me.recall("what is ERR-7F3A")

    assert len(hits) == 8
    [rescued] = [hit for hit in hits if hit.memory.content == wanted]
    assert (rescued.legs["vector"], rescued.legs["text"]) == (0, 1 / 61)


def test_a_row_that_is_too_far_has_no_place_in_the_vector_leg(make_engine):
    me = ledger(make_engine, {"Lisbon is sunny.": at(0.4), "lisbon": [1, 0]})
    me.memories.write("Lisbon is sunny.")

    [hit] = me.recall("lisbon", floor=FloorPolicy(least=0, dense_max=0.5, lexical_max=0.7))

    assert hit.legs["vector"] == 0
    assert hit.legs["text"] == 1 / 61


@pytest.mark.behaviour("R21")
def test_the_floor_may_be_another_one_for_one_call(make_engine):
    me = ledger(make_engine, {"Lisbon is sunny.": at(0.4), "lisbon": [1, 0]})
    me.memories.write("Lisbon is sunny.")

    found = {
        limit: order(me.recall("lisbon", floor=FloorPolicy(least=0, dense_max=limit))) for limit in (0, 0.5, 0.7, None)
    }

    assert found == {0: [], 0.5: [], 0.7: ["Lisbon is sunny."], None: ["Lisbon is sunny."]}
    assert order(me.recall("lisbon")) == []


@pytest.mark.behaviour("R21")
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_limit_of_zero_is_respected_in_every_preset(make_engine, preset):
    engine = make_engine(preset=preset, embedder=FixedEmbedder({"same": [1, 0]}))
    me = engine.persona("main", user="ana")
    me.memories.write("same", about="everyone")

    assert order(me.recall("same")) == ["same"]
    nothing = me.recall("same", floor=FloorPolicy(dense_max=0))
    assert nothing.abstained
    assert order(nothing.nearest) == ["same"]
    policies = replace(PRESETS[preset], floor=FloorPolicy(dense_max=0))
    assert engine.persona("main", user="ana", preset=policies).recall("same").abstained


def test_words_may_have_a_limit_of_their_own(make_engine):
    me = ledger(make_engine, {"Lisbon is sunny.": at(0.4), "A far cry.": at(0.45), "lisbon": [1, 0]})
    me.memories.write_many(["Lisbon is sunny.", "A far cry."])

    assert order(me.recall("lisbon", floor=FloorPolicy(least=0, dense_max=0.5, lexical_max=0.65))) == [
        "Lisbon is sunny."
    ]


@pytest.mark.behaviour("R17")
def test_the_ledger_answers_everyday_questions_and_no_others_with_words_hashed(make_engine):
    me = make_engine(preset="ledger").persona("main", user="ana")
    me.memories.write_many(
        [
            "The office is in Lisbon, near the river.",
            "Ana's dog is called Rex.",
            "The dentist appointment is on Friday at nine.",
            "The wifi password is on the fridge.",
        ]
    )

    for question, answer in {
        "where is the office?": "The office is in Lisbon, near the river.",
        "what is Ana's dog called?": "Ana's dog is called Rex.",
        "when is the dentist appointment": "The dentist appointment is on Friday at nine.",
        "what is the wifi password?": "The wifi password is on the fridge.",
    }.items():
        assert order(me.recall(question))[:1] == [answer]
    assert me.recall("how do volcanoes erupt?").abstained


def test_a_degraded_answer_of_the_ledger_goes_by_words(make_engine):
    me = make_engine(preset="ledger", embedder=BrokenEmbedder(), background="off").persona("main", user="ana")
    me.memories.write("Lisbon is sunny.")

    assert order(me.recall("lisbon")) == ["Lisbon is sunny."]
    assert me.recall("zanzibar").abstained


def test_the_journal_has_no_floor(make_engine):
    me = make_engine(preset=JOURNAL, embedder=FixedEmbedder({"Nothing alike.": at(0.05), "q": [1, 0]})).persona("main")
    me.memories.write("Nothing alike.")

    assert order(me.recall("q")) == ["Nothing alike."]


@pytest.mark.parametrize("floor", [0.5, "measured", {"least": 0.5}])
def test_a_floor_that_is_no_policy_is_refused(me, floor):
    with pytest.raises(InvalidInput, match="FloorPolicy"):
        me.recall("lisbon", floor=floor)


def test_a_floor_that_cannot_work_is_refused_before_anything_is_asked(me):
    with pytest.raises(ConfigurationError, match="dense_max"):
        me.recall("lisbon", floor=FloorPolicy(dense_max=-1))


# -- confidence


@pytest.mark.in_turn
@pytest.mark.parametrize("embedder", ["hash/words", "none"])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_hit_has_a_confidence_between_zero_and_one(make_engine, preset, embedder):
    me = make_engine(preset=preset, embedder=embedder).persona("main", user="ana")
    texts = ["Lisbon", "Lisbon is sunny.", "Porto is where the ships are.", "The dog chased the cat."]
    me.memories.write_many([{"content": text, "about": "everyone"} for text in texts])

    for question in ("Lisbon", "where are the ships?", "dog", "quarterly zeppelin", "is sunny"):
        answer = me.recall(question)
        assert all(0 <= hit.confidence <= 1 for hit in (*answer, *answer.nearest))
    assert me.recall("Lisbon")[0].confidence > 0


def test_in_the_ledger_a_surer_row_has_the_higher_confidence(make_engine):
    me = ledger(make_engine, {"Lisbon is sunny.": at(0.9), "A far cry.": at(0.55), "lisbon": [1, 0]})
    me.memories.write_many(["Lisbon is sunny.", "A far cry."])

    confidence = {hit.memory.content: hit.confidence for hit in me.recall("lisbon")}

    assert confidence["A far cry."] < confidence["Lisbon is sunny."] <= 1


# -- what users of other memories complained about

FACTS = [
    "Caroline adopted a puppy called Oscar in March.",
    "Caroline works as a nurse at the children's hospital.",
    "Marc's flight to Dublin leaves on the 14th at seven.",
    "The heron cluster runs in the Dublin machine room.",
    "The rent goes up by two percent in January.",
    "Karim prefers to be called in the morning.",
    "The spare key is under the blue flowerpot.",
    "Our budget review found thirty missing invoices.",
    "The red bicycle was stolen from the courtyard.",
    "Grandmother's recipe takes four eggs and no sugar.",
]
NONSENSE = "PHRASE_THAT_DEFINITELY_DOES_NOT_APPEAR_QQQQ"
NEVER_STORED = (
    "What is the boiling point of tungsten?",
    "Which team won the cricket final?",
    "How is the violin tuned?",
    "Who wrote the opera about the barber?",
)


@pytest.mark.behaviour("R17")
@pytest.mark.parametrize("preset", ["standard", "ledger", "statements"])
def test_34_a_nonsense_question_is_not_answered(make_engine, preset):
    me = make_engine(preset=preset).persona("main", user="ana")
    me.memories.write_many([{"content": text, "about": "everyone"} for text in FACTS])

    # A search of statements keeps whatever has anything in common; what nobody asked for must be nearer than that.
    answer = me.memories.relevant(NONSENSE) if preset == "statements" else me.recall(NONSENSE)

    assert answer.abstained
    assert answer.reason
    assert len(answer) == 0


@pytest.mark.parametrize(
    ("preset", "embedder"), [("standard", "hash/words"), ("standard", "wordllama"), ("ledger", "wordllama")]
)
def test_34_topics_that_were_never_stored_are_not_answered_and_the_others_are(make_engine, preset, embedder):
    if embedder == "wordllama":
        pytest.importorskip("wordllama", reason="not applicable: the local extra is not installed")
    me = make_engine(preset=preset, embedder=embedder).persona("main", user="ana")
    me.memories.write_many(FACTS)

    assert [question for question in NEVER_STORED if not me.recall(question).abstained] == []
    for question, place in {
        "What did Caroline call her puppy?": 0,
        "When does Marc's flight to Dublin leave?": 2,
        "Where is the spare key?": 6,
        "How much does the rent go up?": 4,
    }.items():
        assert order(me.recall(question))[0] == FACTS[place]


def test_34_a_true_topic_with_a_fact_that_was_never_stored_keeps_the_nearest_apart(make_engine):
    known = "Caroline adopted a puppy called Oscar in March."
    asked = "What is the registration number of Caroline's motorboat?"
    me = make_engine(embedder=FixedEmbedder({known: at(0.35), asked: [1, 0]})).persona("main")
    me.memories.write(known)

    answer = me.recall(asked)

    assert answer.abstained
    assert len(answer) == 0
    assert order(answer.nearest) == [known]
    assert known not in str(answer)


@pytest.mark.parametrize("preset", ["standard", "ledger"])
def test_34_a_score_of_ranks_alone_never_decides(make_engine, preset):
    """The best of a bad lot has the best rank, and is no answer all the same."""
    vectors = {f"Note {n}.": at(0.2 - n / 100) for n in range(10)}
    engine = make_engine(preset=preset, embedder=FixedEmbedder(vectors | {"q": [1, 0]}))
    me = engine.persona("main", user="ana")
    me.memories.write_many(list(vectors))

    assert me.recall("q").abstained
    assert order(me.recall("q").nearest)[0] == "Note 0."
