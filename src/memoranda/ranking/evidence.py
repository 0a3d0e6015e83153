"""What each candidate has to say for itself, whatever the ranker: its share of the question, and words for it."""

from collections.abc import Sequence
from functools import cached_property
from math import log

import numpy as np

from memoranda.candidates import Candidate, Candidates, Query
from memoranda.ranking.terms import Bools, Codes, Floats, Terms, codes
from memoranda.text import decode_unspaced, encode_term, words
from memoranda.text.unspaced import is_unspaced, unknown_words

K1, B = 1.2, 0.75
"""BM25's usual constants: how soon repetition stops counting, how far length is held against a row."""
COSINE_SHARE = 0.65
"""The cosine's part of the confidence; the rest is the share of the question. From .6 to .75 little changes."""
ENOUGH = 5
"""Terms. A longer question speaks of itself as well ("list in order what I said of ..., mention five things"), in words
that nobody says again: of it, what is worth so many of its terms is asked for. From 4 to 6 little changes."""
SAID_WHOLE = 0.5
"""The least confidence of a row that says the whole question: above every floor, for in a long text a few words move
the vector little. Of 760 questions asked of a conversation that cannot answer them one is said whole."""
STRONG_COSINE = 0.6
WEAK_COSINE = 0.3

_EDGES = "\"'()[]{}<>,;:!?.\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb"


def inverse_frequency(rows: int, occurrences: int) -> float:
    """Return what a term is worth that stands in so many of the rows: BM25's idf, never negative."""
    return log(1 + (rows - occurrences + 0.5) / (occurrences + 0.5))


class Evidence:
    """The question's terms in each candidate, counted once for whoever asks, and only if somebody does.

    Arrays have a value a candidate in their last dimension. None of them is summed along it, so what one candidate has
    never depends on its place among the others.
    """

    def __init__(self, query: Query, candidates: Sequence[Candidate]) -> None:
        self.query = query
        self.candidates = Candidates.of(candidates)

    @cached_property
    def terms(self) -> Codes:
        """The terms of the question."""
        return codes(self.query.terms)

    @cached_property
    def content(self) -> Terms:
        """The terms of titles and contents."""
        known: Terms | None = self.candidates.known.get("content_terms")
        return Terms(self.candidates.column["content_terms"]) if known is None else known

    @cached_property
    def categories(self) -> Terms:
        """The terms of categories, of a chunk its source."""
        known: Terms | None = self.candidates.known.get("category_terms")
        return Terms(self.candidates.column["category_terms"]) if known is None else known

    def unspaced(self, places: Sequence[int]) -> Bools:
        """Tell of candidates whether their words are not parted."""
        known: Bools | None = self.candidates.known.get("unspaced")
        terms = self.candidates.column["content_terms"]
        return np.array([is_unspaced(terms[i]) for i in places]) if known is None else known[places]

    @cached_property
    def counts(self) -> Floats:
        """How often each candidate says each term of the question: terms by candidates."""
        counts, categories = self.content.counts(self.terms), self.categories
        return counts + categories.counts(self.terms) if categories.codes.size else counts

    @property
    def says(self) -> Bools:
        """Which candidates say any term."""
        said: Bools = self.counts.sum(axis=0) > 0
        return said

    @cached_property
    def frequency(self) -> tuple[int, tuple[int, ...]]:
        """How many rows there are, and how many of them say each term of the question."""
        rows, seen = self.query.rows, self.query.document_frequency
        if len(seen) != len(self.query.terms) or rows < max(seen, default=0):
            rows, seen = len(self.candidates), tuple(np.count_nonzero(self.counts, axis=1).tolist())
        return rows, seen

    @cached_property
    def idf(self) -> Floats:
        """What each term of the question is worth."""
        rows, seen = self.frequency
        return np.array([inverse_frequency(rows, occurrences) for occurrences in seen])

    @cached_property
    def lengths(self) -> Floats:
        """How many terms each candidate has."""
        return np.array(self.candidates.column["length"], np.float64)

    @cached_property
    def average_length(self) -> float:
        """The mean number of terms of the rows asked, else of the candidates; never less than 1."""
        average = self.query.average_length or sum(self.lengths.tolist()) / max(len(self.candidates), 1)
        return max(average, 1.0)

    @cached_property
    def cosines(self) -> Floats:
        """How near each candidate is; NaN where it or the question has no vector."""
        if not self.query.embedded:
            return np.full(len(self.candidates), np.nan)
        return np.array(self.candidates.column["cosine"], np.float64)

    @cached_property
    def coverage(self) -> Floats:
        """How much of the question each candidate says: 0..1, each term at its idf.

        A term no row has ever said counts most: a question about something unknown is never covered. Where words are
        not parted it is the characters nobody has said that count, for most pairs nobody has said are no words.
        """
        said: Floats = (self.idf[:, None] * (self.counts > 0)).sum(axis=0)
        whole, _ = self._whole
        return said / whole if whole else np.zeros_like(said)

    @cached_property
    def _whole(self) -> tuple[float, float]:
        """What saying the whole question would be worth, and how many terms that is."""
        rows, seen = self.frequency
        worth: list[float] = self.idf.tolist()
        unspaced = [decode_unspaced(term) for term in self.query.terms]
        if not any(unspaced):
            return sum(worth), len(worth)
        known = ((np.array(seen) > 0) | (self.counts.sum(axis=1) > 0)).tolist()
        told = [token for token, is_known in zip(unspaced, known, strict=True) if is_known]
        untold = [token for token, is_known in zip(unspaced, known, strict=True) if not is_known]
        counted = [w for w, token, is_known in zip(worth, unspaced, known, strict=True) if is_known or not token]
        unknown = unknown_words(untold, told)
        return sum(counted) + unknown * inverse_frequency(rows, 0), len(counted) + unknown

    def shares(self, counts: Floats) -> Floats:
        """How much texts say of what would be enough to answer: 0..1, each term at its idf.

        Args:
            counts: How often each says each term of the question: terms by texts.
        """
        whole, terms = self._whole
        if not whole:
            return np.zeros(counts.shape[1])
        said: Floats = (self.idf[:, None] * (counts > 0)).sum(axis=0)
        shares: Floats = np.minimum(said / (whole * min(1.0, max(ENOUGH, terms / 4) / terms)), 1.0)
        return shares

    def confidence(self, around: Floats | None = None) -> Floats:
        """0..1 for each candidate: .65 · its cosine + .35 · the share of the question that is said.

        The share is the highest that any candidate says, and the highest that one says with the rows beside it, half
        each: the nearest row and the one that says most of the question need not be the same, and the highest share is
        the better witness. Absolute, not relative to the best candidate, so that one floor an embedder tells answers
        from noise. Where there is no cosine, what the row and those beside it say is all there is.

        Args:
            around: How often each candidate and the rows beside it say each term: terms by candidates.
        """
        own = self.shares(self.counts)
        beside = own if around is None else self.shares(around)
        said = (own.max(initial=0.0) + beside.max(initial=0.0)) / 2
        blend = COSINE_SHARE * self.cosines.clip(0.0, 1.0) + (1 - COSINE_SHARE) * said
        blend = np.where(self.coverage > 1 - 1e-9, np.maximum(blend, SAID_WHOLE), blend)
        return np.where(np.isnan(self.cosines), (own + beside) / 2, blend)

    @cached_property
    def bm25(self) -> Floats:
        """BM25 of each candidate, the one score of words on every database; 0 when it says no term."""
        return bm25(self.idf, self.counts, self.lengths, self.average_length)

    @cached_property
    def spelling(self) -> list[str]:
        """The question's terms in its own words."""
        return spelling(self.query)

    @cached_property
    def _heaviest_first(self) -> list[int]:
        """The places of the question's terms, the one that is worth most first."""
        order: list[int] = np.argsort(-self.idf, kind="stable").tolist()
        return order

    def reasons(self, place: int) -> tuple[str, ...]:
        """Say in plain words what the candidate at a place has in common with the question."""
        says, cosine = self.counts[:, place].tolist(), self.candidates.column["cosine"][place]
        heaviest = [k for k in self._heaviest_first if says[k]][:4]
        reasons = []
        if heaviest:
            said_words = ", ".join([self.spelling[k] for k in heaviest])
            reasons.append(f"says the words {said_words}" if len(heaviest) > 1 else f"says the word {said_words}")
        if cosine is not None and cosine >= WEAK_COSINE:
            nearness = "means nearly the same" if cosine >= STRONG_COSINE else "is near in meaning"
            reasons.append(f"{nearness} ({cosine:.2f})")
        return tuple(reasons)


def bm25(idf: Floats, counts: Floats, lengths: Floats, average: Floats | float) -> Floats:
    """Return BM25 of texts.

    Args:
        idf: What each term is worth.
        counts: How often each text says each term: terms by texts.
        lengths: How many terms each text has.
        average: How many it would have if it were neither long nor short.
    """
    norm = K1 * (1 - B + B * lengths / average)
    found: Floats = (idf[:, None] * counts * (K1 + 1) / (counts + norm)).sum(axis=0)
    return found


def spelling(query: Query) -> list[str]:
    """Return the question's terms as the question spells them; a term that cannot be found there stands as it is."""
    spoken = [word.strip(_EDGES).removesuffix("'s").lower() for word in query.text.split()]
    pieces = [text[i : i + n] for text in spoken if not text.isascii() for n in (2, 1) for i in range(len(text))]
    known = {encode_term(piece): piece for piece in (*pieces, *spoken) if piece}
    return [known.get(term) or _inflected(term, spoken) for term in query.terms]


def _inflected(term: str, spoken: Sequence[str]) -> str:
    for stem in (term, term[:-1]):
        for word in spoken:
            if len(stem) > 2 and any(form.startswith(stem) for form in (word, *words(word))):
                return word
    return term
