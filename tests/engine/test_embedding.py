"""When texts are embedded, and what happens without an embedder."""

import os
import subprocess
import sys

import pytest

from memoranda.embedders.hash_words import HashWords
from memoranda.errors import ConfigurationError, EmbedderMismatch, EmbedderUnavailable, ExtraMissing
from memoranda.testing import BrokenEmbedder, CountingEmbedder, FixedEmbedder

SCRIPT = """
import hashlib, sys
from memoranda.embedders.hash_words import HashWords
print(hashlib.sha256(HashWords().embed(sys.argv[1:]).tobytes()).hexdigest())
"""


def contents(hits):
    return [hit.memory.content for hit in hits]


@pytest.mark.behaviour("E01")
def test_hashed_words_are_the_same_in_every_process():
    texts = ["Ana's dog is called Rex.", "用户喜欢喝榛子拿铁", "C++ & naïve 🚀"]
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, *texts],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert HashWords().embed(texts).tobytes() == HashWords().embed(list(texts)).tobytes()


@pytest.mark.behaviour("E01")
def test_hashed_words_are_alike_only_by_the_words_they_share(make_engine):
    me = make_engine(preset="statements", embedder="hash/words").persona("main")
    me.memories.write("The automobile needs fuel", about="everyone")

    [same] = me.recall("the automobile needs fuel")
    synonyms = me.memories.nearest("car wants petrol")

    assert same.legs["vector"] == pytest.approx(1, abs=1e-6)
    assert synonyms.memory.id == same.memory.id
    assert synonyms.legs == {"vector": 0, "overlap": 0}
    assert me.recall("car wants petrol").abstained


@pytest.mark.behaviour("E03")
def test_without_an_embedder_memories_are_kept_and_found_by_words(make_engine):
    me = make_engine(embedder="none").persona("main")

    written = me.memories.write("The office is in Lisbon.")

    assert written.created
    assert written.degraded is None
    assert contents(me.recall("lisbon office")) == ["The office is in Lisbon."]
    assert me.recall("lisbon office").degraded is None
    assert me.recall("headquarters").abstained
    assert me.stats().vectors == 0
    assert me.stats().embedder is None


@pytest.mark.behaviour("E04")
def test_a_text_that_was_seen_is_not_sent_again(make_engine):
    embedder = CountingEmbedder(HashWords())
    me = make_engine(embedder=embedder).persona("main")
    me.memories.write("The office is in Lisbon.")
    assert len(embedder.calls) == 1

    first, second = me.recall("where is the office?"), me.recall("where is the office?")
    me.scoped(thread="t").recall("where is the office?")

    assert embedder.texts.count("where is the office?") == 1
    assert contents(first) == contents(second)


@pytest.mark.behaviour("E04")
def test_the_same_texts_of_one_call_are_sent_once_and_a_duplicate_write_sends_nothing(make_engine):
    embedder = CountingEmbedder(HashWords())
    me = make_engine(preset="journal", embedder=embedder).persona("main")
    me.memories.write_many(["one", "two", "one", "two", "three"])
    me.memories.write("two")

    assert embedder.calls == [("one", "two", "three")]
    assert me.stats().vectors == 6


@pytest.mark.behaviour("E05")
def test_only_the_texts_that_are_missing_are_sent_and_in_one_call(make_engine):
    embedder = CountingEmbedder(HashWords())
    me = make_engine(embedder=embedder).persona("main")
    me.memories.write("known")
    embedder.calls.clear()

    me.memories.write_many(["new one", "known", "new two"])

    assert embedder.calls == [("new one", "new two")]


@pytest.mark.behaviour("E05")
def test_vectors_come_back_to_the_texts_they_were_made_for(make_engine):
    vectors: dict[str, list[float]] = {"north": [0, 1], "east": [1, 0], "northeast": [0.70710678, 0.70710678]}
    me = make_engine(preset="statements", embedder=FixedEmbedder(vectors)).persona("main")
    me.memories.write("northeast", about="everyone")
    me.memories.write_many([{"content": text, "about": "everyone"} for text in ("north", "northeast", "east")])

    for text, vector in vectors.items():
        hits = {hit.memory.content: hit.legs["vector"] for hit in me.recall(text)}
        expected = {other: vector[0] * v[0] + vector[1] * v[1] for other, v in vectors.items()}
        assert {other: hits.get(other, 0) for other in vectors} == pytest.approx(expected, abs=1e-6)


@pytest.mark.behaviour("S06")
def test_an_embedder_that_is_down_costs_no_memory(make_engine, backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory has one engine")
    embedder = BrokenEmbedder(name="hash/words", dimensions=512)
    engine = make_engine(embedder=embedder)
    assert engine.persona("main").memories.write("The office is in Lisbon.").degraded
    engine.close()

    healthy = make_engine(embedder="hash/words").persona("main")
    assert contents(healthy.recall("lisbon office")) == ["The office is in Lisbon."]
    assert healthy.recall("lisbon office").degraded is None


@pytest.mark.behaviour("S22")
def test_a_store_is_never_opened_with_another_embedder_and_says_what_to_do(make_engine, backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory has one engine")
    make_engine(embedder="hash/words").persona("main").memories.write("The office is in Lisbon.")

    other = make_engine(embedder=FixedEmbedder({"q": [1, 0]})).persona("main")

    with pytest.raises(EmbedderMismatch, match=r"hash/words@512.*test/fixed@2"):
        other.recall("q")
    with pytest.raises(EmbedderMismatch):
        other.memories.write("q")
    assert contents(make_engine(embedder="auto").persona("main").recall("lisbon")) == ["The office is in Lisbon."]


@pytest.mark.behaviour("S06")
def test_a_store_whose_embedder_is_not_installed_goes_by_words_and_says_so(make_engine, backend, monkeypatch):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory has one engine")
    monkeypatch.delenv("MEMORANDA_EMBEDDER", raising=False)
    texts = {"The office is in Lisbon.": [1.0] + [0.0] * 255}
    make_engine(embedder=FixedEmbedder(texts, name="wordllama")).persona("main").memories.write(*texts)
    monkeypatch.setitem(sys.modules, "wordllama", None)  # as where it is not installed: not found, and no import

    me = make_engine(embedder="auto").persona("main")
    answer, written = me.recall("lisbon office"), me.memories.write("The terrace looks south.")

    assert contents(answer) == ["The office is in Lisbon."]
    for sentence in (answer.degraded, written.degraded):
        assert "wordllama" in sentence
    assert contents(me.recall("terrace")) == ["The terrace looks south."]
    assert me.stats().memories == 2
    with pytest.raises(ExtraMissing, match=r"memoranda\[local\]"):
        make_engine(embedder="wordllama")


def test_a_question_is_sent_to_the_embedder_without_its_secrets(make_engine):
    embedder = CountingEmbedder(HashWords())
    me = make_engine(embedder=embedder).persona("main")
    secret = "ghp_" + "a1B2" * 9

    me.recall(f"who uses the token {secret} in Lisbon?")

    assert len(embedder.texts) == 1
    assert "in Lisbon?" in embedder.texts[0]
    assert secret not in embedder.texts[0]


class Short(FixedEmbedder):
    """Gives two numbers where it declares three."""

    def __init__(self):
        super().__init__({"memoranda": [1.0, 0.0]})
        self.dimensions = 3


@pytest.mark.behaviour("W49")
@pytest.mark.parametrize(("embedder", "error"), [(BrokenEmbedder, EmbedderUnavailable), (Short, ConfigurationError)])
def test_a_wrong_embedder_fails_the_start_and_not_a_conversation(make_engine, embedder, error):
    with pytest.raises(error):
        make_engine(embedder=embedder()).check()


@pytest.mark.behaviour("W49")
def test_the_check_names_the_model(make_engine):
    assert make_engine(embedder="hash/words").check() == "hash/words@512"
    with pytest.raises(ConfigurationError):
        make_engine(embedder="no/such-model")


class Particular(HashWords):
    """Takes no text that says a word, and raises what a look-up in a table would."""

    name = "test/particular"

    def embed(self, texts, purpose="text"):
        if any("kettle" in text for text in texts):
            raise KeyError("kettle")
        return super().embed(texts, purpose)


@pytest.mark.parametrize("number", [3, 40])
def test_a_text_that_an_embedder_cannot_take_costs_no_other_its_vector(make_engine, number):
    me = make_engine(embedder=Particular()).persona("main")
    written = me.memories.write_many([*(f"The tram number {n} is late." for n in range(number)), "The kettle is blue."])
    assert "1 of" in (written[-1].degraded or "") and me.stats().vectors == number
    assert not any(one.degraded for one in written[:-1])
    assert me.recall("Which kettle is blue?")[0].content == "The kettle is blue."


def test_an_embedder_that_takes_no_text_is_down(make_engine):
    me = make_engine(embedder=Particular()).persona("main")
    written = me.memories.write_many([f"The kettle number {n} is blue." for n in range(20)])
    assert written[0].degraded and me.stats().vectors == 0 and me.stats().memories == 20
