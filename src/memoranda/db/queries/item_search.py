"""Items that answer a query, by words and by meaning: exact from page to page.

The legs propose texts. Each is scored by itself, see `memoranda.ranking.likeness`, and an item is as good as its best
text. The leg of words gives the same few texts whatever page is asked for, and only these are moved by their words; so
the leg of meaning, read as far as a page reaches, decides all the rest, and no page leaves out or repeats an item.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Table,
    and_,
    exists,
    func,
    null,
    select,
)

from memoranda import namespaces
from memoranda.candidates import Query
from memoranda.db.dialects.base import TextQuestion, VectorQuestion
from memoranda.db.queries import items
from memoranda.db.queries.items import KIND
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.item_operations import SearchItems
from memoranda.ranking.evidence import inverse_frequency
from memoranda.ranking.likeness import likeness, saying
from memoranda.scope import author_cell, namespace_cell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORDED = 32
"""How many texts the words of a query may move."""
_WORDS_ALONE = 1_000
"""How many texts are found where words are all there is."""
_COMMON = 2_000
"""Texts that say a word, from which on nobody counts: it is as good as in every second text."""
_RARE, _FEW = 0.1, 200
"""The share of the texts, or their number, up to which a word proposes texts; a more common one only moves them."""
_LEAST = 16
_FURTHER = 4  # how many times more texts are read where a page needs more


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ItemQuestion:
    """A query as the database takes it."""

    text: str
    terms: tuple[str, ...]
    vector: "NDArray[np.float32] | None"
    model: str | None


def search(
    conn: Connection, tables: Tables, setting: Setting, op: SearchItems, question: ItemQuestion
) -> list[tuple[Row[Any], float | None]]:
    """Return a page of the items below a namespace with their scores, best first; those without a score follow."""
    scores, all_seen = _scored(conn, tables, setting, op, question)
    ranked = sorted(scores, key=lambda identifier: (scores[identifier], identifier), reverse=True)
    page = ranked[op.offset : op.offset + op.limit]
    rows = items.by_ids(conn, tables, setting, page) if page else {}
    found: list[tuple[Row[Any], float | None]] = [(rows[one], scores[one]) for one in page if one in rows]
    if all_seen and len(page) < op.limit:
        rest = items.newest(conn, tables, setting, op, beside=ranked, skip=len(ranked))
        found += [(row, None) for row in rest]
    return found


def _scored(
    conn: Connection, tables: Tables, setting: Setting, op: SearchItems, question: ItemQuestion
) -> tuple[dict[UUID, float], bool]:
    """Return the best items with their scores, as many as the page reaches, and whether these are all."""
    t = tables.store_item_texts
    query = _counted(conn, tables, setting, op, question)
    if not query.rows:
        return {}, True
    wanted = and_(items.own(tables, setting, t), *items.inside(t, op.namespace), *_of_items(conn, tables, setting, op))
    vectors = _vector_question(conn, tables, setting, question, query, narrowed=op.where is not None)
    scores: dict[UUID, float] = {}
    if query.terms:
        _raise(scores, _worded(conn, tables, setting, op, query, wanted, vectors))
    if vectors is None:
        return scores, True
    needed, reach = op.offset + op.limit, max(_LEAST, 2 * (op.offset + op.limit))
    while True:
        near = _near(conn, tables, setting, wanted, vectors, reach)
        exhausted = len(near) < reach
        # Of what is as near as the last one, some may not have been read.
        last = near[-1].score if near else 0.0
        clear = {row.item_id for row in near if row.score > last}
        if exhausted and vectors.approximate:
            vectors = replace(vectors, approximate=False)
        elif exhausted or len(clear) >= needed:
            _raise(scores, ((row.item_id, likeness(row.score, 0.0, embedded=True)) for row in near))
            return scores, exhausted
        else:
            reach *= _FURTHER


def _raise(scores: dict[UUID, float], found: Iterable[tuple[UUID, float]]) -> None:
    """Let each item be as good as its best text."""
    for identifier, score in found:
        if score > scores.get(identifier, -2.0):
            scores[identifier] = score


def _counted(conn: Connection, tables: Tables, setting: Setting, op: SearchItems, question: ItemQuestion) -> Query:
    """Return the question with the statistics of the texts below the namespace, whatever their values say."""
    t = tables.store_item_texts
    seen = and_(items.own(tables, setting, t), *items.inside(t, op.namespace))
    counts = select(func.count().label("rows"), func.avg(t.c.length).label("average")).where(seen).subquery("counts")
    times = tables.dialect.frequencies(tables.corpora[KIND], _cells(setting, op), question.terms, _COMMON)
    *frequencies, rows, average = conn.execute(times.add_columns(counts.c.rows, counts.c.average)).one()
    return Query(
        text=question.text,
        terms=question.terms,
        words=frozenset(),
        embedded=question.vector is not None,
        now=setting.now,
        rows=int(rows),
        average_length=float(average or 0),
        document_frequency=tuple(seen if seen < _COMMON else max(seen, rows // 2) for seen in frequencies),
        timeless=True,
    )


def _cells(setting: Setting, op: SearchItems) -> list[str]:
    owner = (setting.scope.tenant, setting.scope.persona, setting.scope.author)
    return [namespace_cell(*owner, namespaces.encode(op.namespace)) if op.namespace else author_cell(*owner)]


def _of_items(conn: Connection, tables: Tables, setting: Setting, op: SearchItems) -> Sequence[ColumnElement[bool]]:
    """Return the condition for the texts of items that a search asks for, none where it asks for all."""
    i, t = tables.store_items, tables.store_item_texts
    if not (asked := items.kept(conn, tables, op)):
        return ()
    same = (i.c.tenant == setting.scope.tenant, i.c.persona == setting.scope.persona, i.c.id == t.c.item_id)
    return (exists().where(*same, *asked).correlate(t),)


def _vector_question(
    conn: Connection, tables: Tables, setting: Setting, question: ItemQuestion, query: Query, *, narrowed: bool
) -> VectorQuestion | None:
    if question.vector is None or question.model is None:
        return None
    corpus, scope = tables.corpora[KIND], setting.scope
    tables.dialect.learn_statistics(conn, tables, corpus, scope.tenant, scope.persona, query.rows)
    return VectorQuestion(
        corpus=corpus,
        tenant=scope.tenant,
        persona=scope.persona,
        model=question.model,
        vector=question.vector,
        rows=query.rows,
        approximate=not narrowed and tables.dialect.approximate(conn, corpus, question.model, query.rows),
    )


def _near(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    wanted: ColumnElement[bool],
    vectors: VectorQuestion,
    reach: int,
) -> list[Row[Any]]:
    """Return the items of the nearest texts, nearest first."""
    with tables.dialect.searching(conn, vectors):
        near = tables.dialect.vector_leg(conn, tables, wanted, vectors, reach).cte("near")
        joined, t = _joined(tables, setting, near)
        nearest = select(t.c.item_id, near.c.score).select_from(joined).order_by(near.c.score.desc())
        return list(conn.execute(nearest))


def _worded(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    op: SearchItems,
    query: Query,
    wanted: ColumnElement[bool],
    vectors: VectorQuestion | None,
) -> list[tuple[UUID, float]]:
    """Return the items of the texts that say most of the question, with what each text is worth."""
    counted = list(zip(query.terms, query.document_frequency, strict=True))
    rare = [(term, seen) for term, seen in counted if seen <= max(_FEW, _RARE * query.rows)] or counted
    question = TextQuestion(
        corpus=tables.corpora[KIND],
        cells=_cells(setting, op),
        terms=[term for term, _ in rare],
        weights=[inverse_frequency(max(query.rows, seen), seen) for _, seen in rare],
        average_length=query.average_length,
        match="any",
    )
    v = tables.vectors
    with tables.dialect.searching(conn, None):
        by_words = tables.dialect.text_leg(conn, wanted, question, _WORDED if vectors else _WORDS_ALONE).cte("by_words")
        joined, t = _joined(tables, setting, by_words)
        evidence: ColumnElement[Any] = null()
        if vectors is not None:
            owned = (v.c.tenant == t.c.tenant, v.c.persona == t.c.persona, v.c.kind == KIND, v.c.owner == t.c.id)
            joined = joined.outerjoin(v, and_(*owned, v.c.model == vectors.model))
            evidence = tables.dialect.cosine_evidence(tables, vectors)
        columns = (t.c.item_id, t.c.content_terms, t.c.length, evidence.label("evidence"))
        rows = conn.execute(select(*columns).select_from(joined)).all()
    cosines = tables.dialect.cosines([row.evidence for row in rows], vectors) if vectors else [None] * len(rows)
    said = saying(query)
    return [
        (row.item_id, likeness(cosine, said(row.content_terms, row.length), embedded=vectors is not None))
        for row, cosine in zip(rows, cosines, strict=True)
    ]


def _joined(tables: Tables, setting: Setting, leg: CTE) -> tuple[FromClause, Table]:
    t, scope = tables.store_item_texts, setting.scope
    return leg.join(t, and_(t.c.tenant == scope.tenant, t.c.persona == scope.persona, t.c.id == leg.c.id)), t
