"""Search on SQLite: full text by FTS5, starting from the cells of a scope, and vectors compared in memory."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    String,
    TableClause,
    TableValuedAlias,
    Uuid,
    and_,
    bindparam,
    column,
    func,
    literal,
    literal_column,
    select,
    table,
    type_coerce,
    union_all,
)

from memoranda.db.dialects.base import TextQuestion, VectorQuestion
from memoranda.db.dialects.sqlite_vectors import VectorCache, unit
from memoranda.ranking.evidence import K1, B

if TYPE_CHECKING:
    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables

_REACH = 10  # how many matches are looked up for each one that is wanted, at first
_FEW, _MANY = 2000, 8  # so few rows among so many times more are read one by one, not fished out of the whole matrix


class SqliteSearch:
    """The part of `SqliteDialect` that finds candidates."""

    vectors: VectorCache

    def text_leg(
        self, conn: Connection, visible: ColumnElement[bool], question: TextQuestion, limit: int
    ) -> Select[Any]:
        """Search FTS5, starting from the cells."""
        # FTS5's own bm25() counts over the whole file: it would let other scopes move this one's ranks.
        fts = table(question.corpus.fts, column("rowid", Integer))
        found = union_all(
            *(
                select(fts.c.rowid.label("n"), literal(weight, Float).label("weight")).where(
                    _says(fts, question.cells, term)
                )
                for term, weight in zip(question.terms, question.weights, strict=True)
            )
        ).subquery("found")
        weight = func.sum(found.c.weight)
        said = select(found.c.n, weight.label("weight")).group_by(found.c.n).order_by(weight.desc(), found.c.n.desc())
        if question.match == "all":
            said = said.having(func.count() == len(question.terms))
        # Looking every match up in the table would take longer than finding them all: so the best are looked up first.
        reach = _REACH * limit
        while True:
            best = [tuple(row) for row in conn.execute(said.limit(reach))]
            seen = self._seen(conn, visible, question, best, limit)
            if len(seen) == limit or len(best) < reach:
                return _ranked(seen)
            reach *= _REACH

    def _seen(
        self,
        conn: Connection,
        visible: ColumnElement[bool],
        question: TextQuestion,
        best: Sequence[tuple[int, float]],
        limit: int,
    ) -> list[tuple[str, float]]:
        """Return those of the matches that may be seen, scored by BM25 as if every term were said once.

        How often a term is said counts when the candidates are ranked.
        """
        m, given = question.corpus.table, _json_rows(best)
        number = literal_column("json_extract(value, '$[0]')", Integer)
        weight = literal_column("json_extract(value, '$[1]')", Float)
        length = literal(K1 * B / max(question.average_length, 1.0), Float) * m.c.length
        score: ColumnElement[Any] = weight / (literal(1 + K1 * (1 - B), Float) + length)
        rows = conn.execute(
            select(type_coerce(m.c.id, String), score)
            .select_from(given.join(m, m.c.n == number))
            .where(visible)
            .order_by(score.desc(), m.c.id.desc())
            .limit(limit)
        )
        return [(row[0], row[1]) for row in rows]

    def vector_leg(
        self, conn: Connection, tables: "Tables", visible: ColumnElement[bool], question: VectorQuestion, limit: int
    ) -> Select[Any]:
        """Compare every vector of the persona, and let SQL say which may be seen; where few may, compare only these."""
        m = question.corpus.table
        if self._few_among_many(conn, tables, question):
            return _ranked(self._few(conn, tables, visible, question, limit))
        found: list[tuple[str, float]] = []
        for page in self.vectors.nearest(conn, tables, question, 2 * limit):
            listed = _listed([identifier for identifier, _ in page])
            seen = set(conn.scalars(select(type_coerce(m.c.id, String)).where(visible, m.c.id.in_(listed))))
            found += [(identifier, score) for identifier, score in page if identifier in seen]
            if len(found) >= limit:
                break
        return _ranked(found[:limit])

    def _few_among_many(self, conn: Connection, tables: "Tables", question: VectorQuestion) -> bool:
        if question.rows > _FEW:
            return False
        v, kind = tables.vectors, question.corpus.kind
        own = (v.c.tenant == question.tenant, v.c.persona == question.persona, v.c.kind == kind)
        enough = _MANY * max(question.rows, 1)
        some = select(v.c.n).where(*own, v.c.model == question.model).limit(enough).subquery()
        return conn.scalar(select(func.count()).select_from(some)) == enough

    def _few(
        self,
        conn: Connection,
        tables: "Tables",
        visible: ColumnElement[bool],
        question: VectorQuestion,
        limit: int,
    ) -> list[tuple[str, float]]:
        m, v, kind = question.corpus.table, tables.vectors, question.corpus.kind
        owned = and_(v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.kind == kind, v.c.owner == m.c.id)
        rows = conn.execute(
            select(type_coerce(m.c.id, String), v.c.vector)
            .select_from(m.join(v, owned))
            .where(visible, v.c.model == question.model)
        ).all()
        scores = self.cosines([row[1] for row in rows], question)
        found = [(row[0], score or 0.0) for row, score in zip(rows, scores, strict=True)]
        return sorted(found, key=lambda item: item[1], reverse=True)[:limit]

    def cosine_evidence(self, tables: "Tables", question: VectorQuestion) -> ColumnElement[Any]:
        """Fetch the vectors themselves."""
        return tables.vectors.c.vector

    def cosines(self, evidence: Sequence[Any], question: VectorQuestion) -> list[float | None]:
        """Compute all cosines in one product."""
        known = [vector for vector in evidence if vector is not None]
        scores = iter((unit(np.stack(known)) @ unit(question.vector)).tolist() if known else [])
        return [None if vector is None else next(scores) for vector in evidence]

    def frequencies(
        self, corpus: "Corpus", cells: Sequence[str], terms: Sequence[str], most: int | None = None
    ) -> Select[Any]:
        """Count by the index, one look a term."""
        fts = table(corpus.fts)
        said = (_says(fts, cells, term) for term in terms)
        found = (select(literal_column("1")).select_from(fts).where(says).limit(most).subquery() for says in said)
        return select(*(select(func.count()).select_from(rows).scalar_subquery() for rows in found))

    def ids_in(self, column: ColumnElement[UUID], ids: Sequence[UUID]) -> ColumnElement[bool]:
        """Send one JSON array."""
        return column.in_(_listed([identifier.hex for identifier in ids]))

    def texts_in(self, column: ColumnElement[str], texts: Sequence[str]) -> ColumnElement[bool]:
        """Send one JSON array."""
        return column.in_(_listed(texts))


def _says(fts: TableClause, cells: Sequence[str], term: str) -> ColumnElement[bool]:
    query = f"cells : ({' OR '.join(cells)}) AND {{category_terms content_terms}} : {term}"
    return literal_column(fts.name).bool_op("MATCH")(bindparam(None, query, type_=String))


def _ranked(found: Sequence[tuple[str, float]]) -> Select[Any]:
    identifier = literal_column("json_extract(value, '$[0]')", Uuid)
    score = literal_column("json_extract(value, '$[1]')", Float)
    return select(identifier.label("id"), score.label("score")).select_from(_json_rows(found))


def _json_rows(values: Sequence[Any]) -> TableValuedAlias:
    return func.json_each(bindparam(None, json.dumps(values), type_=String)).table_valued("value")


def _listed(values: Sequence[str]) -> Select[Any]:
    return select(_json_rows(values).c.value)
