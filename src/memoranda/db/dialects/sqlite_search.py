"""Search on SQLite: full text by FTS5, starting from the cells of a scope, and vectors compared in memory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Integer,
    Select,
    String,
    Table,
    TableClause,
    Uuid,
    and_,
    bindparam,
    case,
    column,
    func,
    literal_column,
    select,
    table,
    type_coerce,
    union_all,
)

from memoranda.db.dialects.base import TextQuestion, VectorQuestion
from memoranda.db.dialects.sqlite_author_rows import SqliteAuthorRows
from memoranda.db.dialects.sqlite_lists import list_rows, listed
from memoranda.db.dialects.sqlite_resident import ResidentRows
from memoranda.db.dialects.sqlite_vectors import VectorCache
from memoranda.db.dialects.text_cuts import proposing
from memoranda.db.resident import Owner
from memoranda.db.statements import Leg, Selection
from memoranda.ranking.evidence import K1, B

if TYPE_CHECKING:
    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables

_REACH = 20  # how many matches are looked up for each one that is wanted, at first
_FEW, _MANY = 2000, 8  # so few rows among so many times more are read one by one, not fished out of the whole matrix


class SqliteSearch:
    """The part of `SqliteDialect` that finds candidates."""

    vectors: VectorCache
    residents: ResidentRows

    def resident(self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: Owner) -> SqliteAuthorRows | None:
        """Read what came since it was last asked for; items have a search of their own."""
        rows = None if corpus.kind == "item" else self.residents.rows(conn, tables, corpus, owner)
        return None if rows is None else SqliteAuthorRows(tables, corpus, owner, rows)

    def text_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: TextQuestion, limit: int
    ) -> Leg:
        """Search FTS5, starting from the cells."""
        # FTS5's own bm25() counts over the whole file: it would let other scopes move this one's ranks.
        corpus, every = question.corpus, question.match == "all"
        asked, lending = proposing(question, limit)
        shape = (len(asked), len(lending), every)
        build = partial(_worded, corpus, wanted, *shape)
        form = wanted.form and ("words", wanted.form, shape)
        values: dict[str, Any] = {**wanted.values, "most": limit}
        values |= {"base": 1 + K1 * (1 - B), "slope": K1 * B / max(question.average_length, 1.0)}
        for i, k in enumerate(asked):
            values |= {f"query_{i}": _query(question.cells, question.terms[k]), f"weight_{i}": question.weights[k]}
        for i, k in enumerate(lending):
            values |= {f"word_{i}": f" {question.terms[k]} ", f"worth_{i}": question.weights[k]}
        # Looking every match up in the table would take longer than finding them all: so the best are looked up first.
        reach = _REACH * limit
        while True:
            found = tables.statements.rows(conn, form, build, {**values, "reach": reach})
            seen = [(identifier, score, container, place) for identifier, score, container, place, _ in found]
            if len(seen) == limit or self._matches(conn, tables, question, values, shape, reach, found) < reach:
                break
            reach *= min(_REACH, 2 * limit // max(len(seen), 1) + 1)
        if lending and len(seen) < limit:
            return self.text_leg(conn, tables, wanted, replace(question, lending=False), limit)
        return _ranked("by_words", seen)

    def _matches(
        self,
        conn: Connection,
        tables: "Tables",
        question: TextQuestion,
        values: Mapping[str, Any],
        shape: tuple[int, int, bool],
        reach: int,
        found: Sequence[Any],
    ) -> int:
        """Return how many matches were looked up, of which some may not be seen."""
        if found:
            return int(found[0][-1])
        terms, _, every = shape

        def build() -> Select[Any]:
            return select(func.count()).select_from(_said(question.corpus, terms, every=every).subquery())

        form = ("matches", question.corpus.kind, terms, every)
        [(matches,)] = tables.statements.rows(conn, form, build, {**values, "reach": reach})
        return int(matches)

    def vector_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: VectorQuestion, limit: int
    ) -> Leg:
        """Compare every vector of the persona, and let SQL say which may be seen; where few may, compare only these."""
        if self._few_among_many(conn, tables, question):
            return _ranked("by_meaning", self._few(conn, tables, wanted, question, limit))
        m = question.corpus.table

        def build() -> Select[Any]:
            columns = (type_coerce(m.c.id, String), *_place(question.corpus))
            kept = m.join(tables.vectors, _vector_of(m, tables, question))
            return select(*columns).select_from(kept).where(wanted.where(m), m.c.id.in_(listed("page")))

        form = wanted.form and ("may be seen", wanted.form)
        found: list[_Found] = []
        for page in self.vectors.nearest(conn, tables, question, 2 * limit):
            identifiers = json.dumps([identifier for identifier, _ in page])
            values = {**wanted.values, "page": identifiers, "model": question.model}
            seen = {row[0]: row[1:] for row in tables.statements.rows(conn, form, build, values)}
            found += [(identifier, score, *seen[identifier]) for identifier, score in page if identifier in seen]
            if len(found) >= limit:
                break
        return _ranked("by_meaning", found[:limit])

    def _few_among_many(self, conn: Connection, tables: "Tables", question: VectorQuestion) -> bool:
        if question.rows > _FEW:
            return False

        def build() -> Select[Any]:
            v = tables.vectors
            own = [v.c[name] == bindparam(name) for name in ("tenant", "persona", "kind", "model")]
            some = select(v.c.n).where(*own).limit(bindparam("enough", type_=Integer)).subquery()
            return select(func.count()).select_from(some)

        enough = _MANY * max(question.rows, 1)
        owner = {"tenant": question.tenant, "persona": question.persona, "kind": question.corpus.kind}
        values = {**owner, "model": question.model, "enough": enough}
        [(some,)] = tables.statements.rows(conn, "few among many", build, values)
        return bool(some == enough)

    def _few(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: VectorQuestion, limit: int
    ) -> "list[_Found]":
        m = question.corpus.table

        def build() -> Select[Any]:
            columns = (type_coerce(m.c.id, String), *_place(question.corpus))
            kept = m.join(tables.vectors, _vector_of(m, tables, question))
            return select(*columns).select_from(kept).where(wanted.where(m))

        values = {**wanted.values, "model": question.model}
        rows = tables.statements.rows(conn, wanted.form and ("few", wanted.form), build, values)
        cosines = self.vectors.cosines(conn, tables, question, [row[0] for row in rows])
        found = [
            (row[0], cosine, row[1], row[2]) for row, cosine in zip(rows, cosines, strict=True) if cosine is not None
        ]
        return sorted(found, key=itemgetter(1), reverse=True)[:limit]

    def with_cosines(
        self, rows: FromClause, tables: "Tables", question: VectorQuestion
    ) -> tuple[FromClause, ColumnElement[Any]]:
        """Ask only who has a vector: they are in memory, and there some are that were deleted."""
        joined = rows.outerjoin(tables.vectors, _vector_of(question.corpus.table, tables, question))
        return joined, type_coerce(tables.vectors.c.owner, String)

    def cosines(
        self, conn: Connection, tables: "Tables", evidence: Sequence[Any], question: VectorQuestion
    ) -> list[float | None]:
        """Compare the vectors that are in memory, and read what is not."""
        there = [owner for owner in evidence if owner is not None]
        found = dict(zip(there, self.vectors.cosines(conn, tables, question, there), strict=True))
        return [found.get(owner) for owner in evidence]

    def frequencies(self, corpus: "Corpus", terms: int, most: int | None = None) -> Select[Any]:
        """Count by the index, one look a term."""
        fts = table(corpus.fts)
        said = (_matches(fts, f"counted_{i}") for i in range(terms))
        found = (select(literal_column("1")).select_from(fts).where(says).limit(most).subquery() for says in said)
        seen = (select(func.count()).select_from(rows).scalar_subquery() for rows in found)
        return select(type_coerce(func.json_array(*seen), JSON).label("frequencies"))

    def counting(self, cells: Sequence[str], terms: Sequence[str]) -> Mapping[str, Any]:
        """Return the terms as FTS5 is asked for them."""
        return {f"counted_{i}": _query(cells, term) for i, term in enumerate(terms)}

    def moments(self, raw: Sequence[Any]) -> list[datetime]:
        """Read them as SQLAlchemy writes them."""
        read = {text: datetime.fromisoformat(f"{text}+00:00") for text in set(raw)}
        return [read[text] for text in raw]

    def identifiers(self, raw: Sequence[Any]) -> list[UUID]:
        """Read hexadecimal."""
        return [UUID(int=int(text, 16)) for text in raw]

    def ids_in(self, column: ColumnElement[UUID], ids: Sequence[UUID], name: str | None = None) -> ColumnElement[bool]:
        """Send one JSON array."""
        return column.in_(listed(name, self.id_list(ids)))

    def id_list(self, ids: Sequence[UUID]) -> Any:
        """Return JSON."""
        return json.dumps([identifier.hex for identifier in ids])

    def texts_in(self, column: ColumnElement[str], texts: Sequence[str]) -> ColumnElement[bool]:
        """Send one JSON array."""
        return column.in_(listed(None, json.dumps(texts)))


def _vector_of(m: Table, tables: "Tables", question: VectorQuestion) -> ColumnElement[bool]:
    v = tables.vectors
    kind: ColumnElement[str] = literal_column(f"'{question.corpus.kind}'")
    own = (v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.owner == m.c.id)
    return and_(*own, v.c.kind == kind, v.c.model == bindparam("model"))


def _worded(corpus: "Corpus", wanted: Selection, proposing: int, lending: int, every: bool) -> Select[Any]:
    """Return the statement for the matches that may be seen, scored by BM25 as if every term were said once.

    How often a term is said counts when the candidates are ranked.
    """
    m, best = corpus.table, _said(corpus, proposing, every=every).cte("best")
    weight: ColumnElement[Any] = best.c.weight
    terms = m.c.category_terms.concat(m.c.content_terms)
    for i in range(lending):
        says = func.instr(terms, bindparam(f"word_{i}", type_=String)) > 0
        weight += case((says, bindparam(f"worth_{i}", type_=Float)), else_=literal_column("0.0"))
    score: ColumnElement[Any] = weight / (bindparam("base", type_=Float) + bindparam("slope", type_=Float) * m.c.length)
    matches = select(func.count()).select_from(best).scalar_subquery()
    return (
        select(type_coerce(m.c.id, String), score, *_place(corpus), matches)
        .select_from(best.join(m, m.c.n == best.c.n))
        .where(wanted.where(m))
        .order_by(score.desc(), m.c.id.desc())
        .limit(bindparam("most", type_=Integer))
    )


def _said(corpus: "Corpus", terms: int, *, every: bool) -> Select[Any]:
    """Return the statement for the rows that say so many terms or some of them, those of the greatest weight first."""
    fts = table(corpus.fts, column("rowid", Integer))
    parts = (
        select(fts.c.rowid.label("n"), bindparam(f"weight_{i}", type_=Float).label("weight")).where(
            _matches(fts, f"query_{i}")
        )
        for i in range(terms)
    )
    found = union_all(*parts).subquery("found")
    weight = func.sum(found.c.weight)
    said = select(found.c.n, weight.label("weight")).group_by(found.c.n).order_by(weight.desc(), found.c.n.desc())
    return (said.having(func.count() == terms) if every else said).limit(bindparam("reach", type_=Integer))


def _matches(fts: TableClause, name: str) -> ColumnElement[bool]:
    return literal_column(fts.name).bool_op("MATCH")(bindparam(name, type_=String))


def _query(cells: Sequence[str], term: str) -> str:
    return f"cells : ({' OR '.join(cells)}) AND {{category_terms content_terms}} : {term}"


_Found: TypeAlias = tuple[str, float, str, int | None]
"""An id in hexadecimal, a score, and where the row stands: its container and its place in it."""


def _place(corpus: "Corpus") -> tuple[ColumnElement[Any], ...]:
    container, place = corpus.standing
    return type_coerce(container, String), place


def _ranked(name: str, found: Sequence[_Found]) -> Leg:
    def build() -> Select[Any]:
        types = {"id": Uuid, "score": Float, "container": String, "place": Integer}
        parts: list[ColumnElement[Any]] = [
            literal_column(f"json_extract(value, '$[{i}]')", kind).label(column)
            for i, (column, kind) in enumerate(types.items())
        ]
        return select(*parts).select_from(list_rows(name))

    return Leg(build, name, {name: json.dumps(found)})
