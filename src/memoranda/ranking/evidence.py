"""What each candidate has to say for itself, whatever the ranker: its share of the question, and words for it."""

from collections.abc import Sequence
from math import log

from memoranda.candidates import Candidate, Query
from memoranda.text import encode_term, frequency

COSINE_SHARE = 0.75
"""The cosine's part of the confidence; the rest is the share of the question. Between .65 and .85 nothing changes."""
STRONG_COSINE = 0.6
WEAK_COSINE = 0.3

_EDGES = "\"'()[]{}<>,;:!?.\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb"


def inverse_frequency(rows: int, occurrences: int) -> float:
    """Return what a term is worth that stands in so many of the rows: BM25's idf, never negative."""
    return log(1 + (rows - occurrences + 0.5) / (occurrences + 0.5))


class Evidence:
    """The question's terms in each candidate, counted once for whoever asks.

    Attributes:
        idf: for each term of the question, what it is worth.
        counts: for each candidate, how often it says each of the terms it says at all, by the term's place.
    """

    def __init__(self, query: Query, candidates: Sequence[Candidate]) -> None:
        self.query = query
        self.candidates = candidates
        self.counts = [_count(query.terms, candidate) for candidate in candidates]
        rows, seen = query.rows, query.document_frequency
        if len(seen) != len(query.terms) or rows < max(seen, default=0):
            rows = len(candidates)
            seen = tuple(sum(k in found for found in self.counts) for k in range(len(query.terms)))
        self.idf = [inverse_frequency(rows, occurrences) for occurrences in seen]
        self._total = sum(self.idf)
        self._spelling: list[str] | None = None

    def coverage(self, place: int) -> float:
        """Return how much of the question a candidate says: 0..1, each term at its idf.

        A term no row has ever said counts most: a question about something unknown is never covered.
        """
        return sum(self.idf[k] for k in self.counts[place]) / self._total if self._total else 0.0

    def confidence(self, place: int) -> float:
        """Return 0..1: .75 · cosine + .25 · coverage, or the coverage alone where there is no cosine.

        Absolute, not relative to the best candidate, so that one floor an embedder tells answers from noise.
        """
        cosine = self.candidates[place].cosine
        if cosine is None or not self.query.embedded:
            return self.coverage(place)
        return COSINE_SHARE * min(max(cosine, 0.0), 1.0) + (1 - COSINE_SHARE) * self.coverage(place)

    def reasons(self, place: int) -> tuple[str, ...]:
        """Say in plain words what the candidate has in common with the question."""
        said, cosine = self.counts[place], self.candidates[place].cosine
        reasons = []
        if said:
            if self._spelling is None:
                self._spelling = spelling(self.query)
            words = [self._spelling[k] for k in sorted(said, key=lambda k: (-self.idf[k], k))[:4]]
            reasons.append(f"says the word{'s' if len(words) > 1 else ''} {', '.join(words)}")
        if cosine is not None and cosine >= WEAK_COSINE:
            nearness = "means nearly the same" if cosine >= STRONG_COSINE else "is near in meaning"
            reasons.append(f"{nearness} ({cosine:.2f})")
        return tuple(reasons)


def _count(terms: Sequence[str], candidate: Candidate) -> dict[int, int]:
    text = candidate.category_terms + candidate.content_terms
    return {k: times for k, term in enumerate(terms) if (times := frequency(text, term))}


def spelling(query: Query) -> list[str]:
    """Return the question's terms as the question spells them; a term that cannot be found there stands as it is."""
    words = [word.strip(_EDGES).removesuffix("'s").lower() for word in query.text.split()]
    pieces = [text[i : i + n] for text in words if not text.isascii() for n in (2, 1) for i in range(len(text))]
    known = {encode_term(piece): piece for piece in (*pieces, *words) if piece}
    return [known.get(term) or _inflected(term, words) for term in query.terms]


def _inflected(term: str, words: Sequence[str]) -> str:
    for stem in (term, term[:-1]):
        for word in words:
            if len(stem) > 2 and word.startswith(stem):
                return word
    return term
