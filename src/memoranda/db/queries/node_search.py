"""How nodes of a collection are found: proposed by two legs in one statement, and fetched by their places."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    literal_column,
    select,
    union_all,
)

from memoranda.db.dialects.base import TextQuestion, VectorQuestion
from memoranda.db.queries.knowledge import KIND
from memoranda.db.queries.nodes import Which, other_vectors, selected, standing
from memoranda.db.schema import Tables
from memoranda.db.statements import Leg, Selection
from memoranda.nodes import Node
from memoranda.ranking.fusion import ts_rank_any
from memoranda.scope import Scope, author_cell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

_EQUALS = 4  # so many more are looked at, for a database cuts among equals as they come
_USUAL_LENGTH = 100.0  # terms: what BM25 would make of a length plays no part in these scores


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuestion:
    """What is looked for among the nodes of a collection."""

    terms: tuple[str, ...] | None = field(repr=False)
    """The words; None where they do not count."""
    vector: "Vector | None" = field(repr=False)
    """The meaning; None where it does not count."""
    model: str | None
    """What the vector is stamped with."""
    text_limit: int
    """How many are proposed by words."""
    dense_limit: int
    """How many are proposed by meaning."""
    which: Which


Scores: TypeAlias = Mapping[int, float]
"""Nodes by their places in the collection, with their scores: the best first, equal ones as they were added."""


class Proposed(NamedTuple):
    """What might answer."""

    document: UUID | None
    """The collection; None where there is none."""
    dense: Scores | None
    """What is nearest in meaning, by its cosine; None where meaning does not count."""
    text: Scores | None
    """What says most of the words, by `ts_rank`; None where words do not count."""


def propose(
    conn: Connection, tables: Tables, scope: Scope, name: str, question: NodeQuestion, current: str | None
) -> Proposed:
    """Return what might answer.

    Raises:
        InvalidInput: a document has this name.
        ConfigurationError: the collection has vectors of another model than the question's.
    """
    old = standing(conn, tables, scope, name)
    dense: Scores | None = None if question.vector is None else {}
    text: Scores | None = None if question.terms is None else {}
    if old is None or not old.nodes:
        return Proposed(None, dense, text)
    corpus, chosen = tables.corpora[KIND], selected(tables, scope, old.id, question.which)
    tables.dialect.learn_statistics(conn, tables, corpus, scope.tenant, scope.persona, old.nodes)
    near: VectorQuestion | None = None
    if question.vector is not None and question.model is not None:
        own = None if question.model == current else question.model
        if old.stamp != own:
            raise other_vectors(name, old.stamp, own)
        near = VectorQuestion(
            corpus=corpus,
            tenant=scope.tenant,
            persona=scope.persona,
            model=question.model,
            vector=question.vector,
            rows=old.nodes,
        )
        if question.which == Which():
            near = tables.dialect.shortened(conn, tables, near)
    found = _legs(conn, tables, scope, chosen, question, near)
    if near is not None and near.partial and len(found.dense or ()) < min(question.dense_limit, old.nodes):
        found = _legs(conn, tables, scope, chosen, question, near.whole())
    return found._replace(document=old.id)


def _legs(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    chosen: Selection,
    question: NodeQuestion,
    near: VectorQuestion | None,
) -> Proposed:
    """Ask both legs in one statement."""
    dense: dict[int, float] | None = None if near is None else {}
    text: dict[int, float] | None = None if question.terms is None else {}
    with tables.dialect.searching(conn, near):
        legs: dict[str, Leg] = {}
        if near is not None:
            limit = question.dense_limit + _EQUALS
            legs["dense"] = tables.dialect.vector_leg(conn, tables, chosen, near, limit)
        if question.terms:
            said, limit = _text_question(tables, scope, question.terms), question.text_limit + _EQUALS
            legs["text"] = tables.dialect.text_leg(conn, tables, chosen, said, limit)
        rows = _placed(conn, tables, scope, legs) if legs else []
    for leg, score, place, terms in rows:
        if leg == "dense" and dense is not None:
            # A zero vector has no direction, and Postgres no number for its cosine.
            dense[place] = score if score == score else 0.0
        elif text is not None and question.terms:
            text[place] = ts_rank_any(question.terms, terms)
    return Proposed(
        None,
        None if dense is None else _best(dense, question.dense_limit),
        None if text is None else _best(text, question.text_limit),
    )


def _text_question(tables: Tables, scope: Scope, terms: tuple[str, ...]) -> TextQuestion:
    return TextQuestion(
        corpus=tables.corpora[KIND],
        cells=[author_cell(scope.tenant, scope.persona, scope.author)],
        terms=terms,
        weights=[1.0] * len(terms),
        document_frequency=[0] * len(terms),
        average_length=_USUAL_LENGTH,
        match="any",
    )


def _best(found: Scores, limit: int) -> Scores:
    ordered = sorted(found.items(), key=lambda item: (-round(item[1], 6), item[0]))
    return dict(ordered[:limit])


def _placed(conn: Connection, tables: Tables, scope: Scope, legs: Mapping[str, Leg]) -> Sequence[Any]:
    """Return what the legs propose, with where it stands and, of what is proposed by its words, with these."""

    def build() -> Select[Any]:
        c = tables.knowledge_chunks
        parts = [
            select(literal_column(f"'{name}'").label("leg"), part.c.id, part.c.score)
            for name, part in ((name, leg.build().subquery(name)) for name, leg in legs.items())
        ]
        proposed = union_all(*parts).subquery("proposed")
        terms = case((proposed.c.leg == "text", c.c.content_terms))
        own = and_(*(c.c[axis] == bindparam(axis) for axis in ("tenant", "persona")), c.c.id == proposed.c.id)
        columns = (proposed.c.leg, proposed.c.score, c.c.chunk_index, terms)
        return select(*columns).select_from(proposed.join(c, own))

    forms = [(name, leg.form) for name, leg in legs.items()]
    form = ("placed", *forms) if all(form is not None for _, form in forms) else None
    values: dict[str, Any] = {"tenant": scope.tenant, "persona": scope.persona}
    for leg in legs.values():
        values |= leg.values
    return conn.execute(tables.statements.get(form, build), values).all()


def at(conn: Connection, tables: Tables, scope: Scope, document: UUID, places: Sequence[int]) -> dict[int, Node]:
    """Return the nodes at these places of a collection."""
    c = tables.knowledge_chunks
    rows = conn.execute(
        select(c.c.chunk_index, c.c.key, c.c.content, c.c.metadata).where(*_there(c, scope, document, places))
    )
    return {
        row.chunk_index: Node(key=row.key, content=row.content, metadata=row.metadata)
        for row in rows
        if row.key is not None
    }


def vectors_at(
    conn: Connection, tables: Tables, scope: Scope, document: UUID, places: Sequence[int], model: str | None
) -> "dict[int, Vector]":
    """Return the vectors of a model that the nodes at these places have."""
    c, v = tables.knowledge_chunks, tables.vectors
    of_node = and_(v.c.tenant == c.c.tenant, v.c.persona == c.c.persona, v.c.kind == KIND, v.c.owner == c.c.id)
    found = select(c.c.chunk_index, v.c.vector).select_from(c.join(v, of_node))
    rows = conn.execute(found.where(*_there(c, scope, document, places), v.c.model == model))
    return {row.chunk_index: row.vector for row in rows}


def _there(c: FromClause, scope: Scope, document: UUID, places: Sequence[int]) -> Sequence[ColumnElement[bool]]:
    own = (c.c.tenant == scope.tenant, c.c.persona == scope.persona, c.c.document_id == document)
    return (*own, c.c.chunk_index.in_(places))
