"""The one candidate generator: rows that might answer a question, with the evidence a ranker judges by.

Two legs propose rows of a corpus, by words and by meaning; the rows beside them in their container come along. What
differs by database are the two legs, which the dialect supplies as subqueries of the one statement that collects the
evidence; what differs by table stands in `memoranda.db.corpora`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Select,
    and_,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
    union_all,
)

from memoranda.candidates import Candidate, Query
from memoranda.db.corpora import Corpus, Kind
from memoranda.db.dialects.base import TextQuestion, VectorQuestion
from memoranda.db.queries import projects
from memoranda.db.queries.visibility import active, holding, narrowed, rewritten, visible
from memoranda.db.schema import Tables
from memoranda.filters import Filters
from memoranda.policies import RankingPolicy, VisibilityPolicy
from memoranda.ranking.evidence import bm25, inverse_frequency
from memoranda.scope import Scope, author_cell, project_cell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Question:
    """What is asked, of what, by whom and how."""

    kind: Kind = "memory"
    text: str
    terms: tuple[str, ...]
    words: frozenset[str]
    vector: "Vector | None"
    model: str | None
    scope: Scope
    visibility: VisibilityPolicy
    ranking: RankingPolicy
    filters: Filters
    now: datetime


def gather(conn: Connection, tables: Tables, question: Question) -> tuple[Query, list[Candidate]]:
    """Return the question with the statistics of the rows it is asked of, and the candidates in no particular order."""
    corpus, scope, filters = tables.corpora[question.kind], question.scope, question.filters
    shared = projects.projects_of(conn, tables, scope) if corpus.shared else ()
    query = _counted(conn, tables, corpus, question, shared)
    if not query.rows and filters.as_of is None and not filters.include_inactive:
        return query, []  # the count leaves out what does not hold now, and nothing else
    if query.terms:
        seen = conn.execute(tables.dialect.frequencies(corpus, _cells(scope, shared), query.terms)).one()
        query = replace(query, document_frequency=tuple(int(times) for times in seen))
    tables.dialect.learn_statistics(conn, tables, corpus, scope.tenant, scope.persona, query.rows)
    vectors = _vector_question(conn, tables, corpus, question, query)
    candidates = _candidates(conn, tables, question, query, shared, vectors, question.ranking.match)
    if vectors is not None and vectors.approximate:
        near = sum(candidate.dense_rank is not None for candidate in candidates)
        if near < question.ranking.candidates:
            vectors = replace(vectors, approximate=False)
            candidates = _candidates(conn, tables, question, query, shared, vectors, question.ranking.match)
    matched = any(candidate.text_rank is not None for candidate in candidates)
    if question.ranking.match == "all" and vectors is None and not matched:
        candidates = _candidates(conn, tables, question, query, shared, vectors, "any")
    return query, candidates


def any_to_ask(conn: Connection, tables: Tables, question: Question) -> bool:
    """Say whether there is any row the question is asked of."""
    rows = tables.corpora[question.kind].table
    found = select(rows.c.id).where(_wanted(tables, question, None, rows)).limit(1)
    return conn.execute(found).first() is not None


def _cells(scope: Scope, shared: Sequence[str]) -> list[str]:
    own = author_cell(scope.tenant, scope.persona, scope.author)
    return [own, *(project_cell(scope.tenant, scope.persona, project) for project in shared)]


def _counted(conn: Connection, tables: Tables, corpus: Corpus, question: Question, shared: Sequence[str]) -> Query:
    """Count over the asker's own rows and those shared with them, never over anybody else's.

    One index answers that; status, space and subject, which it does not know, do not count here.
    """
    m, scope = corpus.table, question.scope
    if shared:
        seen = visible(tables, scope, question.visibility, m, shared=shared)
    else:  # what one index answers by itself
        seen = and_(m.c.tenant == scope.tenant, m.c.persona == scope.persona, m.c.author == scope.author)
    row = conn.execute(select(func.count(), func.avg(m.c.length)).where(seen, active(m))).one()
    return Query(
        text=question.text,
        terms=question.terms,
        words=question.words,
        embedded=question.vector is not None,
        now=question.now,
        rows=int(row[0]),
        average_length=float(row[1] or 0),
        timeless=corpus.timeless,
    )


def _vector_question(
    conn: Connection, tables: Tables, corpus: Corpus, question: Question, query: Query
) -> VectorQuestion | None:
    if question.vector is None or question.model is None:
        return None
    return VectorQuestion(
        corpus=corpus,
        tenant=question.scope.tenant,
        persona=question.scope.persona,
        model=question.model,
        vector=question.vector,
        rows=query.rows,
        # An approximate scan gives up after a while, and may have met too few rows by then that a filter lets through.
        approximate=question.filters == Filters()
        and tables.dialect.approximate(conn, corpus, question.model, query.rows),
    )


def _candidates(
    conn: Connection,
    tables: Tables,
    question: Question,
    query: Query,
    shared: Sequence[str],
    vectors: VectorQuestion | None,
    match: Literal["any", "all"],
) -> list[Candidate]:
    limit, dialect, corpus = question.ranking.candidates, tables.dialect, tables.corpora[question.kind]
    wanted = _wanted(tables, question, shared, corpus.table)
    with dialect.searching(conn, vectors):
        text_leg = vector_leg = None
        if vectors is None and question.ranking.recent and not corpus.timeless:
            text_leg = _newest(corpus.table, wanted, question.ranking.recent)
        elif question.terms:
            text = TextQuestion(
                corpus=corpus,
                cells=_cells(question.scope, shared),
                terms=question.terms,
                weights=[inverse_frequency(max(query.rows, seen), seen) for seen in query.document_frequency],
                average_length=query.average_length,
                match=match,
            )
            text_leg = dialect.text_leg(conn, wanted, text, limit)
        if vectors is not None:
            vector_leg = dialect.vector_leg(conn, tables, wanted, vectors, limit)
        if text_leg is None and vector_leg is None:
            return []
        statement = _with_evidence(tables, corpus, question, shared, vectors, text_leg, vector_leg)
        found = conn.execute(statement).all()
    # The legs cut by what each database is good at; places are by one score, the same on both.
    text_ranks = ranks(
        [
            None if row.text_score is None else bm25(query, row.category_terms + row.content_terms, row.length)
            for row in found
        ]
    )
    dense_ranks = ranks([row.dense_score for row in found])
    cosines = dialect.cosines([row.evidence for row in found], vectors) if vectors else [None] * len(found)
    return [
        Candidate(
            id=row.id,
            content=row.content,
            category_terms=row.category_terms,
            content_terms=row.content_terms,
            length=row.length,
            cosine=cosine,
            text_rank=text_rank,
            dense_rank=dense_rank,
            importance=row.importance or 0,
            created_at=row.created_at,
            happened_at=row.event_time or row.valid_from or row.created_at,
            session=str(row.container),
            position=row.place,
            proposed=text_rank is not None or dense_rank is not None,
        )
        for row, cosine, text_rank, dense_rank in zip(found, cosines, text_ranks, dense_ranks, strict=True)
    ]


def _newest(m: FromClause, wanted: ColumnElement[bool], limit: int) -> Select[Any]:
    """Propose the rows stored last, whatever they say."""
    newest = select(m.c.id, literal(0.0, Float).label("score")).where(wanted)
    return newest.order_by(m.c.created_at.desc(), m.c.id.desc()).limit(limit)


def _wanted(tables: Tables, question: Question, shared: Sequence[str] | None, rows: FromClause) -> ColumnElement[bool]:
    filters = question.filters
    wanted = and_(
        visible(tables, question.scope, question.visibility, rows, shared=shared),
        holding(rows, filters, question.now),
        narrowed(rows, filters),
    )
    # What was rewritten since is asked in the words of then, see `memoranda.db.queries.past`.
    return wanted if filters.as_of is None else and_(wanted, ~rewritten(tables, question.scope, rows, filters.as_of))


def _with_evidence(
    tables: Tables,
    corpus: Corpus,
    question: Question,
    shared: Sequence[str],
    vectors: VectorQuestion | None,
    text_leg: Select[Any] | None,
    vector_leg: Select[Any] | None,
) -> Select[Any]:
    """Join what the legs propose, and what stands beside it, with everything a ranker looks at."""
    m, v, scope = corpus.table, tables.vectors, question.scope
    none = cast(null(), Float)
    parts: list[Select[Any]] = []
    if text_leg is not None:
        by_words = text_leg.cte("by_words")
        parts.append(select(by_words.c.id, by_words.c.score.label("text_score"), none.label("dense_score")))
    if vector_leg is not None:
        by_meaning = vector_leg.cte("by_meaning")
        parts.append(select(by_meaning.c.id, none.label("text_score"), by_meaning.c.score.label("dense_score")))
    if question.ranking.neighbours:
        proposed = union_all(*parts).cte("proposed")
        reach, one, other = question.ranking.neighbours, corpus.one, corpus.other
        place = one.c[corpus.place]
        beside = (
            select(other.c.id, none.label("text_score"), none.label("dense_score"))
            .select_from(proposed)
            .join(one, and_(one.c.tenant == scope.tenant, one.c.persona == scope.persona, one.c.id == proposed.c.id))
            .join(
                other,
                and_(
                    other.c[corpus.container] == one.c[corpus.container],
                    other.c[corpus.place].between(place - reach, place + reach),
                ),
            )
            .where(corpus.contained(one), corpus.contained(other), _wanted(tables, question, shared, other))
        )
        parts = [select(proposed.c.id, proposed.c.text_score, proposed.c.dense_score), beside]
    every = union_all(*parts).subquery("every")
    # One row an id: each leg speaks of it once at most, and a row may stand beside several.
    chosen = (
        select(
            every.c.id,
            func.max(every.c.text_score).label("text_score"),
            func.max(every.c.dense_score).label("dense_score"),
        )
        .group_by(every.c.id)
        .cte("chosen")
    )
    joined = chosen.join(m, and_(m.c.tenant == scope.tenant, m.c.persona == scope.persona, m.c.id == chosen.c.id))
    evidence: ColumnElement[Any] = null()
    if vectors is not None:
        joined = joined.outerjoin(
            v,
            and_(
                v.c.tenant == scope.tenant,
                v.c.persona == scope.persona,
                v.c.kind == corpus.kind,
                v.c.model == vectors.model,
                v.c.owner == m.c.id,
            ),
        )
        evidence = tables.dialect.cosine_evidence(tables, vectors)
    # Only the overlap of words needs the text itself.
    content = m.c.content if question.ranking.name == "overlap" else literal_column("''")
    return select(
        m.c.id,
        content.label("content"),
        m.c.category_terms,
        m.c.content_terms,
        m.c.length,
        m.c.created_at,
        *(corpus.evidence(name) for name in ("importance", "event_time", "valid_from")),
        m.c[corpus.container].label("container"),
        m.c[corpus.place].label("place"),
        chosen.c.text_score,
        chosen.c.dense_score,
        evidence.label("evidence"),
    ).select_from(joined)


def ranks(scores: Sequence[float | None]) -> list[int | None]:
    """Return the place of each score, 1 for the highest; equal scores share a place and leave the next ones out."""
    ordered = sorted((score for score in scores if score is not None), reverse=True)
    places: dict[float, int] = {}
    for place, score in enumerate(ordered, 1):
        places.setdefault(score, place)
    return [None if score is None else places[score] for score in scores]
