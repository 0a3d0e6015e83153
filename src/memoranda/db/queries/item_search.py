"""Items that answer a query, by words and by meaning: exact from page to page.

The legs propose texts. Each is scored by itself, see `memoranda.ranking.likeness`, and an item is as good as its best
text. The leg of words gives the same few texts whatever page is asked for, and only these are moved by their words; so
the leg of meaning, read as far as a page reaches, decides all the rest, and no page leaves out or repeats an item.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    exists,
    null,
    select,
)

from memoranda import namespaces
from memoranda.candidates import Query
from memoranda.db.dialects.base import TextQuestion, VectorQuestion
from memoranda.db.queries import items
from memoranda.db.queries.counting import counted
from memoranda.db.queries.items import KIND
from memoranda.db.queries.visibility import seen_rows
from memoranda.db.schema import Tables
from memoranda.db.statements import Selection, named
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
    query = _counted(conn, tables, setting, op, question)
    if not query.rows:
        return {}, True
    wanted = _below(conn, tables, setting, op)
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
        if exhausted and vectors.partial:
            vectors = vectors.whole()
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
    below = _below(conn, tables, setting, op, counted=True)
    whose = (KIND, setting.scope.whose, setting.scope.author, op.namespace)
    cells = _cells(setting, op)
    found = counted(conn, tables, tables.corpora[KIND], below, whose, cells, question.terms, _COMMON)
    return Query(
        text=question.text,
        terms=question.terms,
        words=frozenset(),
        embedded=question.vector is not None,
        now=setting.now,
        rows=found.rows,
        average_length=found.average_length,
        document_frequency=tuple(n if n < _COMMON else max(n, found.rows // 2) for n in found.frequencies),
        timeless=True,
    )


def _cells(setting: Setting, op: SearchItems) -> list[str]:
    owner = (setting.scope.tenant, setting.scope.persona, setting.scope.author)
    return [namespace_cell(*owner, namespaces.encode(op.namespace)) if op.namespace else author_cell(*owner)]


def _below(conn: Connection, tables: Tables, setting: Setting, op: SearchItems, *, counted: bool = False) -> Selection:
    """Return the texts of the items that a search asks for, as a part of statements that are built once a form.

    Args:
        conn: A connection.
        tables: The store's tables.
        setting: Who asks.
        op: Below which namespace, with which values.
        counted: Whether it is about all texts below the namespace, whatever the values and times of their items.
    """
    i, asked = tables.store_items, not counted and (op.where is not None or op.omit_expired)
    now = tables.dialect.now(conn) if asked and op.omit_expired else None

    def where(rows: FromClause) -> ColumnElement[bool]:
        conditions = [items.own(tables, setting, rows, named), *items.inside(rows, op.namespace, named)]
        if asked:
            same = (i.c.tenant == rows.c.tenant, i.c.persona == rows.c.persona, i.c.id == rows.c.item_id)
            conditions.append(exists().where(*same, *items.kept(tables, op, now, named)).correlate(rows))
        return and_(*conditions)

    mine = seen_rows(tables, tables.corpora[KIND], setting.scope, setting.policies.visibility, ())
    first, end = namespaces.below(namespaces.encode(op.namespace)) if op.namespace else ("", "")
    # What a condition asks for is part of its form, spelled out: 1 and True are equal, and not the same.
    form = (mine.form, bool(op.namespace), now is None, repr(op.where) if asked else "")
    return Selection(where, form, {**mine.values, "first": first, "end": end, "now": now})


def _vector_question(
    conn: Connection, tables: Tables, setting: Setting, question: ItemQuestion, query: Query, *, narrowed: bool
) -> VectorQuestion | None:
    if question.vector is None or question.model is None:
        return None
    corpus, scope = tables.corpora[KIND], setting.scope
    tables.dialect.learn_statistics(conn, tables, corpus, scope.tenant, scope.persona, query.rows)
    found = VectorQuestion(
        corpus=corpus,
        tenant=scope.tenant,
        persona=scope.persona,
        model=question.model,
        vector=question.vector,
        rows=query.rows,
    )
    return found if narrowed else tables.dialect.shortened(conn, tables, found)


def _near(
    conn: Connection, tables: Tables, setting: Setting, wanted: Selection, vectors: VectorQuestion, reach: int
) -> list[Row[Any]]:
    """Return the items of the nearest texts, nearest first."""
    with tables.dialect.searching(conn, vectors):
        leg = tables.dialect.vector_leg(conn, tables, wanted, vectors, reach)

        def build() -> Select[Any]:
            near, t = leg.build().cte("near"), tables.store_item_texts
            return select(t.c.item_id, near.c.score).select_from(_joined(t, near)).order_by(near.c.score.desc())

        statement = tables.statements.get(leg.form and ("near items", leg.form), build)
        return list(conn.execute(statement, {**_whose(setting), **leg.values}))


def _worded(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    op: SearchItems,
    query: Query,
    wanted: Selection,
    vectors: VectorQuestion | None,
) -> list[tuple[UUID, float]]:
    """Return the items of the texts that say most of the question, with what each text is worth."""
    counted = list(zip(query.terms, query.document_frequency, strict=True))
    # Where words are all there is, what says no rare one is an answer, too: it may be all that a filter lets through.
    most = query.rows if vectors is None else max(_FEW, _RARE * query.rows)
    rare = [(term, seen) for term, seen in counted if seen <= most] or counted
    question = TextQuestion(
        corpus=tables.corpora[KIND],
        cells=_cells(setting, op),
        terms=[term for term, _ in rare],
        weights=[inverse_frequency(max(query.rows, seen), seen) for _, seen in rare],
        document_frequency=[seen for _, seen in rare],
        average_length=query.average_length,
        match="any",
        lending=op.where is None and not op.omit_expired,  # what these hide was counted all the same
    )
    limit = _WORDED if vectors else _WORDS_ALONE
    found = _saying(conn, tables, setting, wanted, question, vectors, limit)
    said = saying(query)
    return [
        (row.item_id, likeness(cosine, said(row.content_terms, row.length), embedded=vectors is not None))
        for row, cosine in found
    ]


def _saying(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    wanted: Selection,
    question: TextQuestion,
    vectors: VectorQuestion | None,
    limit: int,
) -> list[tuple[Row[Any], float | None]]:
    """Return the texts that say most of the question, each with its cosine."""
    with tables.dialect.searching(conn, None):
        leg = tables.dialect.text_leg(conn, tables, wanted, question, limit)

        def build() -> Select[Any]:
            said, t = leg.build().cte("said"), tables.store_item_texts
            joined: FromClause = _joined(t, said)
            evidence: ColumnElement[Any] = null()
            if vectors is not None:
                joined, evidence = tables.dialect.with_cosines(joined, tables, vectors)
            return select(t.c.item_id, t.c.content_terms, t.c.length, evidence.label("evidence")).select_from(joined)

        size = None if vectors is None else len(vectors.vector)
        statement = tables.statements.get(leg.form and ("worded items", leg.form, size), build)
        values = {**_whose(setting), **leg.values, **(vectors.values if vectors else {})}
        rows = conn.execute(statement, values).all()
        evidence = [row.evidence for row in rows]
        cosines = tables.dialect.cosines(conn, tables, evidence, vectors) if vectors else [None] * len(rows)
    if leg.cut and len(rows) < limit:
        return _saying(conn, tables, setting, wanted, replace(question, lending=False), vectors, limit)
    return list(zip(rows, cosines, strict=True))


def _joined(texts: Table, leg: CTE) -> FromClause:
    own = (texts.c[axis] == bindparam(axis) for axis in ("tenant", "persona"))
    return leg.join(texts, and_(*own, texts.c.id == leg.c.id))


def _whose(setting: Setting) -> dict[str, Any]:
    return {"tenant": setting.scope.tenant, "persona": setting.scope.persona}
