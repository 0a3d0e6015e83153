"""What each candidate has to say for itself, whatever the ranker: its share of the question, and words for it."""

from collections.abc import Sequence
from math import log

from memoranda.candidates import Candidate, Query
from memoranda.text import encode_term, frequency, words

K1, B = 1.2, 0.75
"""BM25's usual constants: how soon repetition stops counting, how far length is held against a row."""
COSINE_SHARE = 0.75
"""The cosine's part of the confidence; the rest is the share of the question. From .65 to .85 little changes."""
SAID_WHOLE = 0.5
"""The least confidence of a row that says the whole question: above every floor, for in a long text a few words move
the vector little. Of 760 questions asked of a conversation that cannot answer them one is said whole."""
STRONG_COSINE = 0.6
WEAK_COSINE = 0.3

_EDGES = "\"'()[]{}<>,;:!?.\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb"


def inverse_frequency(rows: int, occurrences: int) -> float:
    """Return what a term is worth that stands in so many of the rows: BM25's idf, never negative."""
    return log(1 + (rows - occurrences + 0.5) / (occurrences + 0.5))


def bm25(query: Query, terms: str, length: int) -> float:
    """Return BM25 of one text, the one score of words on every database; 0 when it says no term of the question."""
    norm = K1 * (1 - B + B * length / max(query.average_length, 1.0))
    score = 0.0
    for term, seen in zip(query.terms, query.document_frequency, strict=True):
        times = frequency(terms, term)
        score += inverse_frequency(max(query.rows, seen), seen) * times * (K1 + 1) / (times + norm)
    return score


class Evidence:
    """The question's terms in each candidate, counted once for whoever asks.

    Attributes:
        idf: for each term of the question, what it is worth.
        counts: for each candidate, how often it says each of the terms it says at all, by the term's place.
    """

    def __init__(self, query: Query, candidates: Sequence[Candidate]) -> None:
        self.query = query
        self.candidates = candidates
        self.counts = _counts(query.terms, candidates)
        rows, seen = query.rows, query.document_frequency
        if len(seen) != len(query.terms) or rows < max(seen, default=0):
            rows = len(candidates)
            seen = tuple(sum(k in found for found in self.counts) for k in range(len(query.terms)))
        self.idf = [inverse_frequency(rows, occurrences) for occurrences in seen]
        total = sum(self.idf)
        self._coverage = [sum([self.idf[k] for k in found]) / total if found else 0.0 for found in self.counts]
        self._best_coverage = max(self._coverage, default=0.0)
        self._spelling: list[str] | None = None

    def coverage(self, place: int) -> float:
        """Return how much of the question a candidate says: 0..1, each term at its idf.

        A term no row has ever said counts most: a question about something unknown is never covered.
        """
        return self._coverage[place]

    def confidence(self, place: int) -> float:
        """Return 0..1: .75 · its cosine + .25 · the coverage of the candidate that covers most.

        Absolute, not relative to the best candidate, so that one floor an embedder tells answers from noise. The
        nearest row and the one that says most of the question need not be the same: the highest coverage is the better
        witness (a quarter fewer false answers). Where there is no cosine, the row's own coverage is all there is.
        """
        cosine = self.candidates[place].cosine
        if cosine is None or not self.query.embedded:
            return self.coverage(place)
        blend = COSINE_SHARE * min(max(cosine, 0.0), 1.0) + (1 - COSINE_SHARE) * self._best_coverage
        return max(blend, SAID_WHOLE) if self.coverage(place) > 1 - 1e-9 else blend

    def reasons(self, place: int) -> tuple[str, ...]:
        """Say in plain words what the candidate has in common with the question."""
        said, cosine = self.counts[place], self.candidates[place].cosine
        reasons = []
        if said:
            if self._spelling is None:
                self._spelling = spelling(self.query)
            heaviest = sorted(said, key=lambda k: (-self.idf[k], k))[:4] if len(said) > 1 else said
            said_words = ", ".join([self._spelling[k] for k in heaviest])
            reasons.append(f"says the words {said_words}" if len(heaviest) > 1 else f"says the word {said_words}")
        if cosine is not None and cosine >= WEAK_COSINE:
            nearness = "means nearly the same" if cosine >= STRONG_COSINE else "is near in meaning"
            reasons.append(f"{nearness} ({cosine:.2f})")
        return tuple(reasons)


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


def _counts(terms: Sequence[str], candidates: Sequence[Candidate]) -> list[dict[int, int]]:
    # most terms are in few rows: a look is cheaper than a count
    spaced = [(k, f" {term} ", term) for k, term in enumerate(terms)]
    counts = []
    for candidate in candidates:
        text = candidate.category_terms + candidate.content_terms
        counts.append({k: frequency(text, term) for k, pattern, term in spaced if pattern in text})
    return counts
