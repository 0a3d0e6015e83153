"""Candidates among rows that are held in memory: proposed there, and looked up by the database, which says who may see.

What is proposed and what is counted is the same as where the database does both, see `memoranda.db.queries.candidates`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, String, bindparam, func, literal_column, select

from memoranda.candidates import Candidate
from memoranda.db.corpora import Corpus
from memoranda.db.dialects.base import TextQuestion, VectorQuestion
from memoranda.db.queries.counting import Counted
from memoranda.db.resident import Rows
from memoranda.db.resident.rows import best, products, unit
from memoranda.db.schema import Tables
from memoranda.db.statements import Selection
from memoranda.filters import Filters
from memoranda.policies import RankingPolicy
from memoranda.ranking.evidence import K1, B
from memoranda.ranking.terms import Floats, Places, codes

_FIRST, _GROWTH = 16, 4
"""Under a filter so many times what is wanted is looked up at first, and so many times more where that was too few."""

Scores: TypeAlias = NDArray[np.float32] | Floats


@dataclass(frozen=True)
class Asked:
    """Rows in memory that a question is put to."""

    tables: Tables
    corpus: Corpus
    rows: Rows
    terms: Sequence[str]
    policy: RankingPolicy
    filters: Filters

    @cached_property
    def _saying(self) -> list[NDArray[np.int32]]:
        return self.rows.saying(codes(self.terms)) if self.terms else []

    def counted(self) -> Counted:
        """Count the rows, and those that say each term."""
        alive = self.rows.alive
        rows = int(np.count_nonzero(alive))
        average = float(self.rows.lengths[alive].mean()) if rows else 0.0
        return Counted(rows, average, tuple(len(places) for places in self._saying))

    def search(
        self, conn: Connection, chosen: Selection, text: TextQuestion | None, vectors: VectorQuestion | None
    ) -> list[Candidate]:
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
        looked = _Looked(conn, self.tables, self.corpus, rows, chosen, said=self.policy.name == "overlap")
        most = limit if self.filters == Filters() else _FIRST * limit
        while True:
            tops = [_best(rows, leg, most) for leg in (words, meaning)]
            # Mostly all of them may be seen: so what stands beside them is looked up with them.
            likely = {*chain.from_iterable(top[:limit] for top in tops)}
            looked.up({*chain(*tops), *rows.beside(likely, reach)})
            by_words, by_meaning = kept = [[place for place in top if place in looked.seen][:limit] for top in tops]
            if all(len(found) == limit or len(top) < most for found, top in zip(kept, tops, strict=True)):
                break
            most *= _GROWTH
        proposed = {*by_words, *by_meaning}
        around = rows.beside(proposed, reach)
        looked.up(around)
        places = sorted((proposed | around) & looked.seen.keys())
        return _made(self.tables, rows, places, looked.seen, (set(by_words), set(by_meaning)), meaning and meaning[0])

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


def _best(rows: Rows, leg: tuple[Scores, Places] | None, most: int) -> list[int]:
    return [] if leg is None else best(leg[0], rows.numbers, leg[1], most).tolist()


def _made(
    tables: Tables,
    rows: Rows,
    places: Sequence[int],
    texts: dict[int, str],
    proposed: tuple[set[int], set[int]],
    cosines: Scores | None,
) -> list[Candidate]:
    if not places:
        return []
    columns, dialect, at = rows.columns, tables.dialect, np.array(places)
    by_words, by_meaning = proposed
    moments = dialect.moments([*(columns.created_at[i] for i in places), *(columns.happened_at[i] for i in places)])
    known = rows.embedded[at].tolist()
    near = [None] * len(places) if cosines is None else cosines[at].tolist()
    return [
        Candidate(
            identifier,
            texts[i],
            columns.category_terms[i],
            columns.content_terms[i],
            length,
            cosine if embedded else None,
            i in by_words,
            i in by_meaning,
            columns.importances[i],
            created_at,
            happened_at,
            columns.containers[i],
            columns.places[i],
        )
        for i, identifier, length, cosine, embedded, created_at, happened_at in zip(
            places,
            rows.identifiers(places, dialect.identifiers),
            rows.lengths[at].astype(int).tolist(),
            near,
            known,
            moments[: len(places)],
            moments[len(places) :],
            strict=True,
        )
    ]


class _Looked:
    """Looks rows up, each once: whether the scope may see them and the filters let them through."""

    def __init__(
        self, conn: Connection, tables: Tables, corpus: Corpus, rows: Rows, chosen: Selection, *, said: bool
    ) -> None:
        self._conn = conn
        self._tables = tables
        self._table = corpus.table
        self._rows = rows
        self._chosen = chosen
        self._said = said
        self._known = np.zeros(rows.size, np.bool_)
        self.seen: dict[int, str] = {}
        """The places of those that may be seen, with their texts if they are asked for."""

    def up(self, places: Iterable[int]) -> None:
        """Look up those that were not yet."""
        asked = np.fromiter(places, np.intp)
        unknown = np.unique(asked[~self._known[asked]])
        if not unknown.size:
            return
        self._known[unknown] = True
        numbers = self._rows.numbers[unknown].tolist()
        place_of = dict(zip(numbers, unknown.tolist(), strict=True))
        form = self._chosen.form and ("look up", self._chosen.form, self._said)
        statement = self._tables.statements.get(form, self._statement)
        found = self._conn.execute(statement, {**self._chosen.values, "numbers": json.dumps(numbers)}).all()
        self.seen.update({place_of[number]: text for number, text in found})

    def _statement(self) -> Select[Any]:
        m = self._table
        listed = select(func.json_each(bindparam("numbers", type_=String)).table_valued("value").c.value)
        text = m.c.content if self._said else literal_column("''")
        return select(m.c.n, text).where(m.c.n.in_(listed), self._chosen.where(m))
