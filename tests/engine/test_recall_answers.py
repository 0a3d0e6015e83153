"""What a recall says: live rows, lines, abstentions, degraded answers, corrections and the nearest memory."""

import random
import re
from datetime import UTC, date, datetime

import pytest

from memoranda.errors import InvalidInput
from memoranda.policies import FloorPolicy
from memoranda.testing import BrokenEmbedder, FixedEmbedder


def order(hits):
    return [hit.memory.content for hit in hits]


@pytest.mark.behaviour("R10")
def test_a_new_memory_is_recalled_at_once(me):
    for n in range(3):
        me.memories.write(f"The door code of house {n} is {n}{n}{n}{n}")
        assert order(me.recall(f"door code of house {n}"))[0] == f"The door code of house {n} is {n}{n}{n}{n}"


@pytest.mark.behaviour("R10")
def test_what_another_engine_writes_is_recalled_at_once(make_engine, backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory has one engine")
    one, other = make_engine().persona("main"), make_engine().persona("main")
    for n in range(3):
        one.memories.write(f"The tram of line {n} is late")
        other.memories.write(f"The ferry of line {n} is early")
        assert order(one.recall(f"ferry line {n}"))[0] == f"The ferry of line {n} is early"
        assert order(other.recall(f"tram line {n}"))[0] == f"The tram of line {n} is late"


def test_a_vector_that_the_caller_has_is_not_made_again(make_engine):
    embedder = FixedEmbedder({"The kettle is red.": [1, 0], "The ferry is late.": [0, 1]})
    me = make_engine(embedder=embedder).persona("main")
    for text in embedder.vectors:
        me.memories.write(text)
    assert order(me.recall("unknown words", vector=[0, 1]))[0] == "The ferry is late."
    for wrong in ([1.0], [float("nan"), 0.0], "no vector"):
        with pytest.raises(InvalidInput, match="vector"):
            me.recall("unknown words", vector=wrong)
    by_words = make_engine(embedder="none").persona("other")
    assert by_words.recall("kettle", vector=[0, 1]).abstained, "a store that goes by words takes no notice"


@pytest.mark.behaviour("R26")
def test_a_hit_reads_as_one_line(make_engine, frozen_clock):
    me = make_engine(embedder="none", clock=frozen_clock).persona("main")
    plain = me.memories.write("Lisbon has\n  seven hills.")
    full = me.memories.write(
        "The contract ends.",
        title="Lisbon office",
        type="episodic",
        category="real estate",
        importance=9,
        project="Atlas",
        day=date(2026, 5, 8),
        valid_from=datetime(2026, 1, 1, tzinfo=UTC),
        valid_to=datetime(2026, 3, 1, tzinfo=UTC),
    )
    open_end = me.memories.write("Lisbon rents rise.", valid_from=datetime(2025, 6, 1, tzinfo=UTC))
    me.memories.mark(plain.id, "retracted")

    lines = {hit.memory.id: str(hit) for hit in me.recall("lisbon", include_inactive=True)}

    assert lines == {
        plain.id: f"[{plain.short_id}] (semantic imp=5 [retracted], 2026-01-01 valid ...->2026-01-01) "
        "Lisbon has seven hills.",
        full.id: f"[{full.short_id}] (episodic real estate imp=9 @Atlas, 2026-05-08 valid 2026-01-01->2026-03-01) "
        "Lisbon office: The contract ends.",
        open_end.id: f"[{open_end.short_id}] (semantic imp=5, 2026-01-01 valid 2025-06-01->...) Lisbon rents rise.",
    }
    assert all(re.match(r"\[[a-z2-9]{8}\] ", line) for line in lines.values())


@pytest.mark.behaviour("R26")
def test_an_answer_without_hits_reads_as_a_sentence(me):
    assert str(me.recall("lisbon")).startswith("(no memories found: ")


QUESTIONS = {
    "example.com": "The page is on example.com.",
    "docs/setup/x.md": "Read docs/setup/x.md first.",
    "search.py": "The bug is in search.py, line 7.",
    "v1.2.3": "Version v1.2.3 is out.",
    "a.b": "The key is a.b in the file.",
    "what is it that you are?": None,
    "is at of to": None,
    "-python": "Ana writes Python.",
    "--python -ana": "Ana writes Python.",
    "NOT python": "Ana writes Python.",
    '"python ana"': "Ana writes Python.",
    "why did -O2 break": "The -O2 flag broke the build.",
}


@pytest.mark.behaviour("R22")
def test_a_question_is_cut_into_words_that_mean_something(make_engine):
    me = make_engine(embedder="none").persona("main")
    me.memories.write_many(sorted({text for text in QUESTIONS.values() if text}))

    answers = {query: me.recall(query) for query in QUESTIONS}

    assert {query: answer[0].memory.content if answer else None for query, answer in answers.items()} == QUESTIONS
    assert all(answer.abstained == (QUESTIONS[query] is None) for query, answer in answers.items())


@pytest.mark.behaviour("R27")
def test_nearest_is_the_one_nearest_active_memory_and_no_page(make_engine):
    vectors: dict[str, list[float]] = {
        "page": [1, 0],
        "near": [0.9, 0.43588989],
        "far": [0, 1],
        "gone": [0.99, 0.14106736],
        "q": [1, 0],
    }
    me = make_engine(embedder=FixedEmbedder(vectors)).persona("main")
    assert me.memories.nearest("q") is None
    me.memories.write("page", metadata={"kind": "page"})
    me.memories.write_many(["far", "near"])
    me.memories.delete(me.memories.write("gone").id)

    hit = me.memories.nearest("q")

    assert hit.memory.content == "near"
    assert hit.legs["vector"] == pytest.approx(0.9, abs=1e-6)


@pytest.mark.behaviour("R27")
def test_nearest_is_found_behind_any_number_of_pages(make_engine):
    vectors: dict[str, list[float]] = {f"page {n}": [1, n / 1000] for n in range(40)} | {
        "near": [0.6, 0.8],
        "q": [1, 0],
    }
    me = make_engine(embedder=FixedEmbedder(vectors)).persona("main")
    me.memories.write_many([{"content": f"page {n}", "metadata": {"kind": "page"}} for n in range(40)])
    me.memories.write("near")

    assert me.memories.nearest("q").memory.content == "near"


@pytest.mark.behaviour("R27")
def test_nearest_may_be_narrowed_to_a_project(make_engine):
    vectors: dict[str, list[float]] = {"theirs": [1, 0], "ours": [0.9, 0.43588989], "q": [1, 0]}
    me = make_engine(embedder=FixedEmbedder(vectors)).persona("main")
    me.memories.write("theirs", project="tunnel")
    me.memories.write("ours", project="bridge")

    assert me.memories.nearest("q", project="bridge").memory.content == "ours"
    assert me.memories.nearest("q").memory.content == "theirs"


@pytest.mark.behaviour("R36")
@pytest.mark.parametrize("preset", ["standard", "journal", "ledger", "statements"])
def test_an_answer_from_words_alone_says_so(make_engine, preset):
    embedder = BrokenEmbedder()
    engine = make_engine(preset=preset, embedder=embedder)
    me = engine.persona("main", user="ana")
    written = me.memories.write("The office is in Lisbon.", about="everyone")

    answer = me.recall("lisbon office")

    assert written.created
    assert "test/broken" in written.degraded
    assert order(answer) == ["The office is in Lisbon."]
    assert "words alone" in answer.degraded
    assert str(answer).startswith("(degraded: ")


@pytest.mark.behaviour("R36")
def test_an_abstention_may_be_degraded(make_engine):
    me = make_engine(embedder=BrokenEmbedder()).persona("main")
    answer = me.recall("anything")
    assert answer.abstained
    assert answer.degraded


@pytest.mark.behaviour("R36")
def test_an_answer_with_everything_at_hand_is_not_degraded(me):
    written = me.memories.write("The office is in Lisbon.")

    assert written.degraded is None
    assert me.recall("lisbon office").degraded is None
    assert me.recall("").degraded is None


@pytest.mark.blank
def test_a_question_that_nothing_answers_is_an_abstention_with_a_reason(me):
    nothing_stored = me.recall("lisbon")
    me.memories.write("The office is in Lisbon.")
    nothing_near = me.recall("PHRASE_THAT_DEFINITELY_DOES_NOT_APPEAR_QQQQ")
    nothing_asked = me.recall(" ?! ")

    reasons = [answer.reason for answer in (nothing_stored, nothing_near, nothing_asked)]
    assert all(answer.abstained and len(answer) == 0 for answer in (nothing_stored, nothing_near, nothing_asked))
    assert all(reasons)
    assert len(set(reasons)) == 3


def test_below_the_floor_the_nearest_is_kept_apart(make_engine):
    me = make_engine(embedder=FixedEmbedder({"far": [0.2, 0.9797959], "q": [1, 0]})).persona("main")
    me.memories.write("far")

    answer = me.recall("q")

    assert answer.abstained
    assert len(answer) == 0
    assert order(answer.nearest) == ["far"]


@pytest.mark.parametrize("embedder", ["hash/words", "none"])
def test_statements_that_answer_nothing_are_no_answer(make_engine, embedder):
    me = make_engine(preset="statements", embedder=embedder).persona("main")
    for content in ("Ana prefers short answers.", "The automobile needs fuel.", "Rex is a dog."):
        me.memories.write(content, about="everyone")

    # A search of statements keeps whatever has anything in common; what nobody asked for must be nearer than that.
    ask = me.recall if embedder == "none" else me.memories.relevant
    answer = ask("quarterly zeppelin voltage")

    assert answer.abstained
    assert answer.reason
    assert len(answer) == 0


def test_a_superseded_memory_never_appears(me):
    memory = me.memories.write("The office phone number is 100")
    for n in range(101, 106):
        memory = me.memories.supersede(memory.id, f"The office phone number is {n}")

        assert order(me.recall("office phone number")) == [f"The office phone number is {n}"]


def test_of_memories_that_say_nearly_the_same_the_newest_stands_first(make_engine, frozen_clock):
    me = make_engine(embedder="none", clock=frozen_clock).persona("main")
    me.memories.write_many([f"Bob's errand {n} took {n} hours" for n in range(20)])
    said = [
        "Ana's favourite restaurant, her favourite restaurant by far, is Ramiro",
        "Ana's favourite restaurant is Cervejaria",
        "Ana's favourite restaurant is now perhaps Belcanto",
    ]
    for text in said:
        frozen_clock.advance(days=10)
        me.memories.write(text)

    hits = me.recall("what is Ana's favourite restaurant?")

    assert order(hits)[:3] == said[::-1]
    assert "newer than a similar memory" in hits[0].reasons
    assert "a newer memory says nearly the same" in hits[2].reasons


def test_the_newest_stands_first_though_an_older_one_is_nearer_in_meaning(make_engine, frozen_clock):
    old, new, other = "Ana lives in Lisbon", "Ana lives in Berlin", "Bob owns a red bicycle"
    vectors: dict[str, list[float]] = {
        old: [0.9, 0.43588989],
        new: [0.8, 0.6],
        other: [0.1, 0.9949874],
        "Where is Ana's home?": [1, 0],
    }
    me = make_engine(embedder=FixedEmbedder(vectors), clock=frozen_clock).persona("main")
    for text in (old, new, other):
        me.memories.write(text)
        frozen_clock.advance(days=10)

    assert order(me.recall("Where is Ana's home?"))[:2] == [new, old]


def test_neighbours_in_a_session_speak_for_a_memory(make_engine):
    me = make_engine(embedder="none").persona("main")
    me.memories.write_many(
        [
            {"content": "What is the name of your sister's boat?", "session": "s1", "position": 0},
            {"content": "Esperança, after our grandmother.", "session": "s1", "position": 1},
            {"content": "It rained all afternoon.", "session": "s1", "position": 9},
            {"content": "Esperança means hope.", "session": "s2", "position": 1},
        ]
    )

    found = order(me.recall("name of the sister's boat"))

    assert found[:2] == ["What is the name of your sister's boat?", "Esperança, after our grandmother."]
    assert "It rained all afternoon." not in found


def test_neighbours_are_the_same_in_a_small_scope_and_a_large_one(make_engine, monkeypatch):
    me = make_engine(embedder="hash/words").persona("main")
    me.memories.write_many(
        [{"content": f"The {'boat' if n % 9 == 0 else 'pier'} {n}", "session": "s", "position": n} for n in range(120)]
    )
    answers = []
    for small in (200, 0):
        monkeypatch.setattr("memoranda.db.queries.candidates._SMALL", small)
        answers.append([(hit.memory.content, pytest.approx(hit.score)) for hit in me.recall("boat", limit=20)])
    assert len(answers[0]) == 20 and answers[0] == answers[1]


def test_every_hit_says_why_it_stands_there(me):
    me.memories.write("The office is in Lisbon.")

    [hit] = me.recall("lisbon office")

    assert 0 <= hit.confidence <= 1
    assert any("lisbon" in reason for reason in hit.reasons)
    assert hit.score == pytest.approx(sum(hit.legs.values()))


@pytest.mark.parametrize("query", [None, 7, b"lisbon"])
def test_a_query_that_is_no_text_is_refused(me, query):
    with pytest.raises(InvalidInput, match="query"):
        me.recall(query)


def test_answers_do_not_show_texts_in_their_representation(me):
    me.memories.write("The safe's code is nine-nine-one.")
    answer = me.recall("safe code")

    assert len(answer) == 1
    assert "nine-nine" not in repr(answer[0].memory)
    assert "nine-nine" not in repr(answer)
    assert "nine-nine" not in repr(answer[0])


class SameForAll:
    """Gives every text one vector: all cosines are equal."""

    name, dimensions = "test/same", 2

    def embed(self, texts, purpose):
        return [[1.0, 0.0]] * len(texts)

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


def test_every_hit_is_given_once_though_most_equals_belong_to_others(make_engine):
    engine = make_engine(embedder=SameForAll())
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    for start in (0, 700, 1400):
        ana.memories.write_many([f"apple number {n}" for n in range(start, start + 20)])
        bob.memories.write_many([f"pear number {n}" for n in range(start, start + 450)])

    found = [hit.memory.id for hit in ana.recall("fruit", limit=100)]

    assert len(found) == len(set(found)) == 60


def test_what_merely_stands_beside_an_answer_is_not_put_before_a_model(make_engine):
    me = make_engine(embedder="hash/words").persona("main")
    me.memories.write_many(
        ["The kettle is blue.", "Anna plays the cello.", "My sister lives in Oslo.", "Bob is allergic to nuts."]
    )
    assert [hit.content for hit in me.memories.relevant("kettle")] == ["The kettle is blue."]


def test_a_short_row_that_says_the_rarer_word_passes_long_ones_that_say_both(make_engine):
    me = make_engine(embedder="none").persona("main")
    rnd = random.Random(1)
    filler = [f"filler{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(600)]
    passage = lambda words: " ".join(rnd.choices(filler, k=words))  # noqa: E731
    rows = [f"Minutes {n} {passage(250)} harbour {passage(250)} lisbon" for n in range(300)]
    rows += [f"Note {n} {passage(8)}{' harbour' if n % 12 < 7 else ''}" for n in range(1200)]
    me.memories.write_many([*rows, *(f"Short {n} lisbon" for n in range(20))])
    found = me.recall("harbour lisbon", limit=10, floor=FloorPolicy(enabled=False))
    assert {hit.content[:5] for hit in found} == {"Short"}
