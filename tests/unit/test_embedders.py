"""How an embedder is chosen, and what stands between it and the engine."""

import asyncio
import logging
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.embedders import EMBEDDERS, resolve
from memoranda.embedders.cache import CachedEmbedder
from memoranda.embedders.hash_words import HashWords
from memoranda.embedders.wordllama import WordLlamaEmbedder
from memoranda.errors import ConfigurationError, EmbedderUnavailable
from memoranda.protocols import Embedder, Purpose
from memoranda.text import clean


class Scripted:
    """Gives what `answer` says and records what it was asked."""

    name = "scripted"

    def __init__(self, answer=None, dimensions: int = 2, distinguishes_purpose: bool | None = None) -> None:
        self.dimensions = dimensions
        self.calls: list[tuple[str, list[str]]] = []
        self.answer = answer or (lambda texts: [[float(len(text)), 1.0] for text in texts])
        if distinguishes_purpose is not None:
            self.distinguishes_purpose = distinguishes_purpose

    def embed(self, texts: Sequence[str], purpose: Purpose) -> list[list[float]]:
        self.calls.append((purpose, list(texts)))
        return self.answer(texts)

    async def aembed(self, texts: Sequence[str], purpose: Purpose) -> list[list[float]]:
        await asyncio.sleep(0)
        return self.embed(texts, purpose)


def embed(cached: CachedEmbedder, texts: list[str], purpose: Purpose = "text", *, how: str) -> np.ndarray:
    return asyncio.run(cached.aembed(texts, purpose)) if how == "async" else cached.embed(texts, purpose)


both = pytest.mark.parametrize("how", ["sync", "async"])


# -- choosing


def test_names_give_their_embedders() -> None:
    assert isinstance(resolve("hash/words"), HashWords)
    assert isinstance(resolve("wordllama"), WordLlamaEmbedder)
    assert resolve("none") is None and resolve(None) is None
    chosen = resolve("auto")
    assert chosen is not None and chosen.name == ("wordllama" if find_spec("wordllama") else "hash/words")
    mine = Scripted()
    assert resolve(mine) is mine


def test_every_embedder_of_ours_keeps_the_protocol() -> None:
    assert all(isinstance(item, Embedder) for item in (HashWords(), WordLlamaEmbedder(), CachedEmbedder(HashWords())))


@pytest.mark.parametrize("spec", ["openai", "Hash/Words", ""])
def test_an_unknown_name_is_refused_with_the_names(spec: str) -> None:
    with pytest.raises(ConfigurationError, match="hash/words") as error:
        resolve(spec)
    assert all(name in str(error.value) for name in EMBEDDERS)


def test_what_is_no_embedder_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="aembed"):
        resolve(object())  # type: ignore[arg-type]


def test_a_key_in_the_environment_chooses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    chosen = resolve("auto")
    assert chosen is not None and chosen.name in ("wordllama", "hash/words")


# -- wordllama


def test_wordllama_knows_related_words_offline() -> None:
    vectors = WordLlamaEmbedder().embed(["a small dog", "a puppy", "the stock market fell", "", "  \n"])
    assert vectors.shape == (5, 256) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0, 0], abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > 0.2 > vectors[0] @ vectors[2]


def test_wordllama_gives_a_text_the_same_vector_alone_in_a_batch_and_in_threads() -> None:
    embedder = WordLlamaEmbedder()
    batch = ["a", "a much longer text about the harvest in the valley " * 20, "猫が好き"]
    together = embedder.embed(batch)
    with ThreadPoolExecutor(4) as pool:
        for alone in pool.map(lambda _: np.vstack([embedder.embed([text]) for text in batch]), range(8)):
            assert np.allclose(alone, together, atol=1e-5)
    assert np.allclose(asyncio.run(embedder.aembed(batch)), together, atol=1e-5)


# -- the cache


@pytest.mark.behaviour("E04", "E05")
@both
def test_only_texts_not_seen_before_are_sent_in_one_call(how: str) -> None:
    inner = Scripted()
    cached = CachedEmbedder(inner)
    embed(cached, ["bb"], how=how)
    vectors = embed(cached, ["ccc", "bb", "a", "ccc"], how=how)
    assert inner.calls == [("text", ["bb"]), ("text", ["ccc", "a"])]
    assert vectors.dtype == np.float32 and vectors[:, 0].tolist() == [3, 2, 1, 3]
    embed(cached, ["a", "bb", "ccc"], how=how)
    embed(cached, [], how=how)
    assert len(inner.calls) == 2


@given(st.lists(st.lists(st.text(max_size=3), max_size=6), max_size=6), st.integers(0, 4))
def test_the_cache_never_changes_a_vector(batches: list[list[str]], size: int) -> None:
    cached = CachedEmbedder(HashWords(), size=size)
    for batch in batches:
        assert (cached.embed(batch) == HashWords().embed([clean(text) for text in batch])).all()


@both
def test_purposes_are_kept_apart_unless_the_embedder_treats_them_alike(how: str) -> None:
    for distinguishes, calls in ((None, 2), (True, 2), (False, 1)):
        inner = Scripted(distinguishes_purpose=distinguishes)
        cached = CachedEmbedder(inner)
        embed(cached, ["a"], "query", how=how)
        embed(cached, ["a"], "text", how=how)
        assert len(inner.calls) == calls


def test_the_latest_used_texts_are_remembered() -> None:
    inner = Scripted()
    cached = CachedEmbedder(inner, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.embed([text])
    assert [texts for _, texts in inner.calls] == [["a"], ["b"], ["c"], ["b"]]


def test_a_returned_vector_can_be_changed_without_harm() -> None:
    cached = CachedEmbedder(Scripted())
    cached.embed(["a"])[:] = 9
    assert cached.embed(["a"]).tolist() == [[1, 1]]


def test_the_model_names_the_vector_space() -> None:
    cached = CachedEmbedder(HashWords())
    assert (cached.model, cached.name, cached.dimensions) == ("hash/words@512", "hash/words", 512)


@pytest.mark.behaviour("W31")
@both
def test_a_long_text_is_cut_with_a_warning_that_does_not_quote_it(how: str, caplog: pytest.LogCaptureFixture) -> None:
    inner = Scripted()
    with caplog.at_level(logging.WARNING, logger="memoranda.embedders"):
        embed(CachedEmbedder(inner), ["private " * 2_000, "short"], how=how)
    assert [len(text) for text in inner.calls[0][1]] == [12_000, 5]
    assert len(caplog.records) == 1 and "12000" in caplog.text and "private" not in caplog.text


def test_a_text_of_exactly_the_limit_is_sent_whole(caplog: pytest.LogCaptureFixture) -> None:
    CachedEmbedder(Scripted()).embed(["x" * 12_000])
    assert not caplog.records


def test_lone_surrogates_and_nul_never_reach_the_embedder() -> None:
    inner = Scripted()
    CachedEmbedder(inner).embed(["a\ud800\0b"])
    assert inner.calls == [("text", ["a\ufffdb"])]


@both
@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda texts: [], EmbedderUnavailable, "0 vectors for 1 texts"),
        (lambda texts: [[1.0, 2.0]] * 2, EmbedderUnavailable, "2 vectors for 1 texts"),
        (lambda texts: [[1.0]], ConfigurationError, "1 numbers, but declares 2"),
        (lambda texts: np.zeros((1, 3)), ConfigurationError, "3 numbers, but declares 2"),
        (lambda texts: [[1.0, math.nan]], EmbedderUnavailable, "not finite"),
        (lambda texts: [[1e300, 0.0]], EmbedderUnavailable, "not finite"),
        (lambda texts: [["a", "b"]], EmbedderUnavailable, "not numbers"),
        (lambda texts: None, EmbedderUnavailable, "not numbers"),
    ],
)
def test_an_unusable_answer_is_a_clear_error_and_is_not_remembered(how, answer, error, message) -> None:
    inner = Scripted(answer)
    cached = CachedEmbedder(inner)
    for _ in range(2):
        with pytest.raises(error, match=message):
            embed(cached, ["a secret plan"], how=how)
    assert len(inner.calls) == 2


@both
def test_a_failing_embedder_is_unavailable_and_its_words_are_not_repeated(how: str) -> None:
    def fail(texts: Sequence[str]) -> list[list[float]]:
        raise OSError(f"cannot send {texts} to https://ana:pw@models.example")

    with pytest.raises(EmbedderUnavailable) as error:
        embed(CachedEmbedder(Scripted(fail)), ["a secret plan"], how=how)
    assert str(error.value) == "Embedder 'scripted' failed with OSError."
    assert error.value.__cause__ is None and error.value.__context__ is None


def test_our_own_errors_pass_as_they_are() -> None:
    def fail(texts: Sequence[str]) -> list[list[float]]:
        raise ConfigurationError("set the key")

    with pytest.raises(ConfigurationError, match="set the key"):
        CachedEmbedder(Scripted(fail)).embed(["a"])


def test_many_threads_share_one_cache() -> None:
    cached = CachedEmbedder(HashWords(), size=10)
    texts = [f"word{i % 25}" for i in range(400)]
    expected = HashWords().embed(texts)
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda text: cached.embed([text])[0], texts))
    assert (np.vstack(rows) == expected).all()
