"""Candidates among rows in memory: proposed there, and looked up by the database, which says who may see.

What is proposed is the same as where the database does it, see `memoranda.db.queries.candidates`; but of the rows that
say a term those count alone that hold now, which an index of full text cannot tell from those that were replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from memoranda.candidates import NOWHERE, Candidates, Raw
from memoranda.db.dialects.base import AuthorRows, Dialect, TextQuestion, VectorQuestion
from memoranda.db.queries.counting import Counted
from memoranda.db.resident import Rows
from memoranda.db.resident.rows import best, products, unit
from memoranda.db.statements import Selection
from memoranda.filters import Filters
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import K1, B
from memoranda.ranking.terms import Bools, Floats, Places, codes

_FIRST, _GROWTH = 16, 4
"""Under a filter so many times what is wanted is looked up at first, and so many times more where that was too few."""

Scores: TypeAlias = NDArray[np.float32] | Floats


@dataclass(frozen=True)
class Asked:
    """Rows in memory that a question is put to."""

    dialect: Dialect
    own: AuthorRows
    terms: Sequence[str]
    policy: RankingPolicy
    filters: Filters
    texts: bool
    """Whether the candidates' texts are wanted."""

    @property
    def rows(self) -> Rows:
        """What is in memory."""
        return self.own.rows

    @cached_property
    def _saying(self) -> list[NDArray[np.int32]]:
        return self.rows.saying(codes(self.terms)) if self.terms else []

    def counted(self) -> Counted:
        """Count the rows, and those that say each term."""
        alive = self.rows.alive
        if not alive.size:
            return Counted(0, 0.0, (0,) * len(self.terms))
        rows = int(np.count_nonzero(alive))
        average = float(self.rows.lengths[alive].mean()) if rows else 0.0
        return Counted(rows, average, tuple(len(places) for places in self._saying))

    def search(
        self, conn: Connection, chosen: Selection, text: TextQuestion | None, vectors: VectorQuestion | None
    ) -> Candidates:
        """Return what the legs propose of the rows that may be seen, and what stands beside it.

        Args:
            conn: A connection inside a transaction.
            chosen: Which rows may be seen and are let through by the filters.
            text: What the leg by words looks for.
            vectors: What the leg by meaning compares.
        """
        rows, limit, reach = self.rows, self.policy.candidates, self.policy.neighbours
        words = None if text is None else self._by_words(text)
        meaning = None if vectors is None else self._by_meaning(vectors)
        looked = _Looked(conn, self.own, chosen)
        most = limit if self.filters == Filters() else _FIRST * limit
        while True:
            tops = [_best(rows, leg, most) for leg in (words, meaning)]
            # Mostly all of them may be seen: so what stands beside them is looked up with them.
            likely = np.concatenate([top[:limit] for top in tops])
            around = rows.beside(likely, reach)
            looked.up(np.concatenate((*tops, around)))
            by_words, by_meaning = kept = [top[looked.seen[top]][:limit] for top in tops]
            if all(len(found) == limit or len(top) < most for found, top in zip(kept, tops, strict=True)):
                break
            most *= _GROWTH
        proposed = np.concatenate(kept)
        if not np.array_equal(proposed, likely):
            around = rows.beside(proposed, reach)
            looked.up(around)
        places = np.flatnonzero(rows.marked(np.concatenate((proposed, around))) & looked.seen)
        texts = self.own.texts(conn, rows.numbers[places].tolist()) if self.texts else None
        cosines = [None] * len(places) if meaning is None else meaning[0][places].tolist()
        return self._made(places, texts, rows.marked(by_words)[places], rows.marked(by_meaning)[places], cosines)

    def _by_words(self, question: TextQuestion) -> tuple[Scores, Places]:
        """Return BM25 of each row as if it said every term once, and the places of those that say what they have to.

        How often a term is said counts when the candidates are ranked.
        """
        scores, times = np.zeros(self.rows.size), np.zeros(self.rows.size, np.int16)
        for places, weight in zip(self._saying, question.weights, strict=True):
            scores[places] += weight
            times[places] += 1
        scores /= 1 + K1 * (1 - B) + K1 * B / max(question.average_length, 1.0) * self.rows.lengths
        return scores, np.flatnonzero(times >= (len(self.terms) if question.match == "all" else 1))

    def _by_meaning(self, question: VectorQuestion) -> tuple[Scores, Places]:
        """Return the cosine of each row, and the places of those that have a vector."""
        vectors = self.rows.vectors
        if not vectors.shape[1]:
            return np.zeros(self.rows.size), np.empty(0, np.intp)
        return products(vectors, unit(question.vector)), np.flatnonzero(self.rows.embedded & self.rows.alive)

    def _made(
        self,
        places: Places,
        texts: Sequence[tuple[str, str, str]] | None,
        by_words: Bools,
        by_meaning: Bools,
        cosines: Sequence[float | None],
    ) -> Candidates:
        rows, dialect, at = self.rows, self.dialect, places.tolist()
        none = [""] * len(at)
        known = zip(cosines, rows.embedded[places].tolist(), strict=True)
        containers, stands = rows.containers[places], rows.places[places]
        columns = (
            Raw(rows.ids, at, dialect.identifiers),
            *(zip(*texts, strict=True) if texts else (none, none, none)),
            rows.lengths[places].astype(np.int64).tolist(),
            [cosine if embedded else None for cosine, embedded in known],
            by_words.tolist(),
            by_meaning.tolist(),
            rows.importances[places].tolist(),
            Raw(rows.created_at, at, dialect.moments),
            Raw(rows.happened_at, at, dialect.moments),
            Raw(rows.names, containers.tolist(), list),
            [None if place == NOWHERE else place for place in stands.tolist()],
        )
        return Candidates(
            columns,
            content_terms=rows.content.of(places),
            category_terms=rows.categories.of(places),
            unspaced=rows.unspaced[places],
            session=containers.astype(np.intp) - 1,
            position=stands,
        )


def _best(rows: Rows, leg: tuple[Scores, Places] | None, most: int) -> Places:
    return np.empty(0, np.intp) if leg is None else best(leg[0], rows.numbers, leg[1], most)


class _Looked:
    """Looks rows up, each once: whether the scope may see them and the filters let them through."""

    def __init__(self, conn: Connection, own: AuthorRows, chosen: Selection) -> None:
        self._conn = conn
        self._own = own
        self._chosen = chosen
        self._known = np.zeros(own.rows.size, np.bool_)
        self.seen = np.zeros(own.rows.size, np.bool_)
        """Which of those that were looked up may be seen."""

    def up(self, places: Places) -> None:
        """Look up those that were not yet."""
        unknown = np.flatnonzero(self._own.rows.marked(places) & ~self._known)
        if not unknown.size:
            return
        numbers = self._own.rows.numbers[unknown]
        refused = self._own.refused(self._conn, self._chosen, numbers.tolist())
        self._known[unknown] = True
        self.seen[unknown] = ~np.isin(numbers, refused) if refused else True
