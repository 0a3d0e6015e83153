"""The embedder that is always there."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.embedders.hash_words import HashWords
from memoranda.text import words

EMBEDDER = HashWords()


def cosine(first: str, second: str) -> float:
    one, other = EMBEDDER.embed([first, second])
    return float(one @ other)


@pytest.mark.behaviour("E01")
def test_texts_are_alike_by_shared_words_only() -> None:
    question = "What's the name of Ana's dog?"
    rex = cosine(question, "Ana's dog is called Rex.")
    short = cosine(question, "Ana prefers short answers.")
    luna = cosine(question, "Bob's dog is called Luna.")
    assert rex == pytest.approx(0.423, abs=0.01)
    assert rex > 0.3 > short > luna > abs(cosine(question, "Trains leave Paris hourly every weekday morning"))
    assert abs(cosine("a big automobile", "one large car")) < 0.3


@pytest.mark.behaviour("E01")
def test_the_same_text_gives_the_same_vector_in_another_process() -> None:
    text = "Ana's dog is called Rex, 猫 and café"
    code = (
        "import sys; from memoranda.embedders.hash_words import HashWords;"
        "sys.stdout.write(HashWords().embed([sys.argv[1]]).tobytes().hex())"
    )
    for seed in ("1", "2"):
        other = subprocess.run(
            [sys.executable, "-c", code, text],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        )
        assert other.stdout == EMBEDDER.embed([text]).tobytes().hex()


def test_one_added_word_keeps_five_words_the_same_and_four_not() -> None:
    assert cosine("Ana's dog is called Rex", "Ana's dog is called Rex now") == pytest.approx(0.913, abs=0.001)
    assert cosine("dog is called Rex", "dog is called Rex now") == pytest.approx(0.894, abs=0.001)


@pytest.mark.parametrize("count", range(5, 30))
def test_one_added_word_costs_what_the_formula_says(count: int) -> None:
    text = " ".join(f"w{place}" for place in range(count))
    assert cosine(text, text + " extra") == pytest.approx((count / (count + 1)) ** 0.5, abs=0.03)


def test_disjoint_texts_are_nearly_orthogonal() -> None:
    left = EMBEDDER.embed([" ".join(f"a{i}x{j}" for j in range(8)) for i in range(60)])
    right = EMBEDDER.embed([" ".join(f"b{i}y{j}" for j in range(8)) for i in range(60)])
    noise = np.abs(left @ right.T)
    assert noise.mean() < 0.05 and noise.max() < 0.25


@given(st.lists(st.text(max_size=30), max_size=5))
def test_vectors_have_length_one_or_zero(texts: list[str]) -> None:
    vectors = EMBEDDER.embed(texts)
    assert vectors.shape == (len(texts), 512) and vectors.dtype == np.float32
    for text, length in zip(texts, np.linalg.norm(vectors, axis=1), strict=True):
        assert length == pytest.approx(1, abs=1e-5) or (length == 0 and len(words(text)) <= 1)


@given(st.lists(st.sampled_from(["ana", "bob", "dog", "rex", "luna", "猫", "北京"]), min_size=1, max_size=8))
def test_order_and_repetition_do_not_matter(tokens: list[str]) -> None:
    assert (EMBEDDER.embed([" ".join(tokens)]) == EMBEDDER.embed([" ".join(sorted(set(tokens)))])).all()


def test_an_empty_text_is_similar_to_nothing() -> None:
    assert not EMBEDDER.embed(["", " ... 🎉"]).any()


def test_scripts_without_spaces_share_pairs() -> None:
    assert cosine("北京烤鸭很好吃", "我喜欢北京烤鸭") > 0.3 > abs(cosine("北京烤鸭很好吃", "周末去爬山"))
