"""Where questions with an answer part from those without one, found on a store's own rows.

A row is asked for in some of its own words, in another order and among words of another row, as people ask: that is a
question with an answer. The same question without the row, and whatever says nearly the same, is one without. Pure and
repeatable: what chance would decide is decided by the rows' ids.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil, floor, log
from uuid import UUID

from memoranda.candidates import Candidate
from memoranda.ranking.floors import Measured
from memoranda.text import Tokenizer

WITH_VECTORS, BY_WORDS = (6, 4), (3, 4)
"""How many words of its own row a question has, and of others, where vectors are compared and where words alone
answer. So the floors come out within 0.07 of those of people's questions on the LoCoMo set, which share no more than a
third of their words with the answer but mean the same; see tests/benchmarks/RESULTS.md."""
CHOICE = 8
"""The most telling words of a row, of which its question takes some."""
LEAST_WORDS = 3
"""A row with fewer words that mean something is not asked for."""
ANSWERED = 0.95
"""The share of the questions with an answer that the proposed floor still answers."""
BINS = 20
ALIKE = 0.4
"""Two rows say nearly the same when so much of their terms is common to both (Jaccard)."""
BESIDE = 5
"""Rows of a session that stand so near are about the same, and left out with it."""

_EDGES = "\"'()[]{}<>,;:!?.\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb\u3001\u3002"
_PIECE = 4  # characters of a script without spaces that stand for a word
_LONGEST = 2000  # characters of a row that are read


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Row:
    """A stored row that a question is made of."""

    id: UUID
    text: str
    terms: frozenset[str]
    session: str
    position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one question."""

    answered: float
    """The confidence of the row it was made of."""
    absent: float
    """The highest confidence of any other row, once what answers the question as well is left out."""
    distance: float | None = None
    """How far the question is from its row; None without vectors."""
    wrong_distance: float | None = None
    """How far it is from the nearest of the others."""


def questions(rows: Sequence[Row], tokenizer: Tokenizer, *, embedded: bool) -> list[tuple[Row, str]]:
    """Return for each row that says enough a question in some of its words, in an order that its id decides.

    Args:
        rows: The sample.
        tokenizer: What knows which words mean something.
        embedded: Whether questions and rows have vectors to compare.
    """
    own_words, other_words = WITH_VECTORS if embedded else BY_WORDS
    words = {row.id: _words(row.text, tokenizer) for row in rows}
    seen = Counter(term for found in words.values() for term in found)
    worth = {term: log(1 + len(rows) / times) for term, times in seen.items()}

    def telling(row: Row) -> list[str]:
        return sorted(words[row.id], key=lambda term: (-worth[term], term))[:CHOICE]

    asked = [row for row in rows if len(words[row.id]) >= LEAST_WORDS]
    made = []
    for place, row in enumerate(asked):
        own = words[row.id]
        spoken = [own[term] for term in _shuffled(telling(row), row.id)[:own_words]]
        for number in range(1, other_words + 1):
            # one word a row, far away in the list: no single row shall say them all
            other = words[asked[(place + number * len(asked) // (other_words + 1)) % len(asked)].id]
            spoken += [other[term] for term in _shuffled([t for t in other if t not in own], row.id)[:1]]
        made.append((row, " ".join(_shuffled(spoken, row.id))))
    return made


def answers_too(row: Row, candidate: Candidate, asked: Sequence[str]) -> bool:
    """Say whether a candidate may answer the question that was made of a row: itself, its like and its neighbours.

    Args:
        row: The row.
        candidate: Another one, or itself.
        asked: The terms of the question.
    """
    if candidate.id == row.id:
        return True
    if row.session and row.session == candidate.session and _beside(row.position, candidate.position):
        return True
    terms = frozenset(candidate.content_terms.split())
    common = len(row.terms & terms)
    if common >= ALIKE * (len(row.terms) + len(terms) - common):
        return True
    said = row.terms.intersection(asked)
    return bool(said) and said <= terms


def _beside(one: int | None, other: int | None) -> bool:
    return one is None or other is None or abs(one - other) <= BESIDE


def proposed(trials: Sequence[Trial]) -> Measured:
    """Return the floor and the distance that keep 95 % of the questions with an answer.

    Where so many of those without one lie on the other side as well, each is set half-way between the two, for people
    ask in words that a row does not have. Rounded to three digits towards the side that answers more.
    """
    sure, noise = sorted(trial.answered for trial in trials), sorted(trial.absent for trial in trials)
    least = sure[floor((1 - ANSWERED) * len(sure) + 1e-9)]
    loudest = noise[ceil(ANSWERED * len(noise) - 1e-9) - 1]
    least = floor((least + min(loudest, least)) / 2 * 1000) / 1000
    far = sorted(trial.distance for trial in trials if trial.distance is not None)
    if not far:
        return Measured(least=least)
    dense_max = far[ceil(ANSWERED * len(far) - 1e-9) - 1]
    if wrong := sorted(trial.wrong_distance for trial in trials if trial.wrong_distance is not None):
        dense_max = (dense_max + max(wrong[floor((1 - ANSWERED) * len(wrong) + 1e-9)], dense_max)) / 2
    # strictly nearer than the next thousandth
    return Measured(least=least, dense_max=min((floor(dense_max * 1000) + 1) / 1000, 2.0))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how often a positive stands above a negative, ties half: 0.5 is chance, 1 tells them apart always.

    The area under the ROC curve, by Mann and Whitney's count.
    """
    ordered = sorted(negative)
    above = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in positive)
    return above / (2 * len(positive) * len(negative))


def share(values: Sequence[float], least: float) -> float:
    """Return the share of the values that reach a floor."""
    return sum(value >= least for value in values) / len(values)


def histogram(values: Iterable[float]) -> tuple[int, ...]:
    """Count the values 0..1 in 20 bins of equal width; 1 is in the last."""
    counts = Counter(min(int(value * BINS), BINS - 1) for value in values)
    return tuple(counts[place] for place in range(BINS))


def _words(text: str, tokenizer: Tokenizer) -> dict[str, str]:
    """Return the words of a text that mean something, each once, by the terms they are looked for by."""
    found: dict[str, str] = {}
    for part in text[:_LONGEST].split():
        word = part.strip(_EDGES)
        # what is written without spaces is cut by length
        pieces = [word] if word.isascii() or len(word) <= 3 * _PIECE else _cut(word)
        for piece in pieces:
            if terms := tokenizer.query_terms(piece):
                found.setdefault(" ".join(terms), piece)
    return found


def _cut(word: str) -> list[str]:
    return [word[start : start + _PIECE] for start in range(0, len(word), _PIECE)]


def _shuffled(items: Sequence[str], key: UUID) -> list[str]:
    """Return the items in an order that the key decides, the same on every machine."""
    return sorted(items, key=lambda item: blake2b(item.encode("utf-8", "replace"), key=key.bytes).digest())
