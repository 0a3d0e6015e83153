"""Nodes of a collection: chunks with a key of the caller's, of a document that grows and shrinks by single chunks.

A collection is one author's, under a name, and nobody else finds it. A node that is replaced keeps its place and gets
another id, so that no vector of its old text can reach it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    Select,
    Update,
    and_,
    bindparam,
    delete,
    func,
    select,
    update,
)

from memoranda.conditions import Condition
from memoranda.db.inserts import Addition
from memoranda.db.queries import jobs
from memoranda.db.queries.knowledge import COLLECTION, KIND, remove, require_kind, take_turns
from memoranda.db.queries.vectors import VECTOR, vector_row
from memoranda.db.schema import Tables
from memoranda.db.statements import Selection, Value, given, named
from memoranda.drafts import Owner, Setting, cells
from memoranda.errors import ConfigurationError
from memoranda.ids import new_id
from memoranda.nodes import Node, NodeDraft
from memoranda.scope import Scope
from memoranda.text import join_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

_STAMP = "vectors"  # in the metadata of a collection whose vectors are the caller's: what they are stamped with


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which nodes of a collection: those of these keys, that meet the condition; all where neither is said."""

    keys: Sequence[str] | None = None
    where: Condition | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A collection as it is stored: its id, how many nodes it has, and whose vectors these are."""

    id: UUID
    nodes: int
    stamp: str | None


class _Before(NamedTuple):
    """A node that is replaced: its id, its place, and the characters of its text."""

    id: UUID
    position: int
    size: int


# -- storing


def add(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    name: str,
    drafts: Sequence[NodeDraft],
    vectors: Sequence[Any],
    stamp: str | None,
    current: str | None,
) -> None:
    """Store nodes in place of those with the same keys.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        setting: The scope and policies the drafts were made under.
        name: The collection's.
        drafts: What to store.
        vectors: One a node, None for a node that has none.
        stamp: What made the vectors.
        current: The store's model: nodes without a vector of it are left to be embedded later.

    Raises:
        InvalidInput: a document has this name.
        ConfigurationError: the collection has vectors of another model.
    """
    take_turns(conn, tables, setting.scope, name)
    own = None if stamp == current else stamp
    old, before, last = _met(conn, tables, setting.scope, name, [draft.node.key for draft in drafts])
    if old is not None and old.nodes and old.stamp != own:
        raise other_vectors(name, old.stamp, own)
    owner = Owner(setting.scope.tenant, setting.scope.persona, setting.scope.author, "private", "")
    document = new_id() if old is None else old.id
    fresh = iter(range(last + 1, last + 1 + len(drafts)))
    indexes = [before[key].position if key in before else next(fresh) for key in (d.node.key for d in drafts)]
    same = {
        "tenant": owner.tenant,
        "persona": owner.persona,
        "author": owner.author,
        "document_id": document,
        "source": name,
        "overlap": 0,
        "start": 0,
        "headings": [],
        "created_at": setting.now,
        "cells": join_terms(cells(owner)),
        "category_terms": "",
    }
    rows = [
        same
        | {
            "id": draft.id,
            "chunk_index": index,
            "key": draft.node.key,
            "content": draft.node.content,
            "metadata": draft.node.metadata,
            "content_terms": draft.content_terms,
            "length": draft.length,
        }
        for draft, index in zip(drafts, indexes, strict=True)
    ]
    whose = (owner.tenant, owner.persona)
    pairs = [(draft.id, vector) for draft, vector in zip(drafts, vectors, strict=True) if vector is not None]
    made = [vector_row(whose, identifier, stamp, vector, KIND) for identifier, vector in pairs] if stamp else []
    counted = _Counted(
        len(drafts) - len(before),
        sum(len(draft.node.content) for draft in drafts) - sum(row.size for row in before.values()),
        {_STAMP: own} if own else {},
    )
    begun = [_begun(setting, name, document, counted)] if old is None else []

    def replace() -> None:
        if before:
            _delete(conn, tables, setting.scope, [row.id for row in before.values()])
        if old is not None:
            _grow(conn, tables, setting, document, counted)

    additions = [
        Addition.of(tables.knowledge_documents, begun),
        Addition.of(tables.knowledge_chunks, rows),
        Addition(tables.vectors, VECTOR, made),
    ]
    tables.inserts.add_together(conn, additions, replace)
    if current is not None and setting.leaves_jobs:
        done = {identifier for identifier, _ in pairs} if stamp == current else set()
        left = [draft.id for draft in drafts if draft.id not in done]
        jobs.enqueue_embedding(conn, tables, whose, left, KIND)


def discard(conn: Connection, tables: Tables, setting: Setting, name: str, which: Which) -> int:
    """Delete nodes with their vectors, and return how many there were."""
    take_turns(conn, tables, setting.scope, name)
    old = standing(conn, tables, setting.scope, name)
    if old is None:
        return 0
    c, d = tables.knowledge_chunks, tables.knowledge_documents
    rows = select(c.c.id, func.length(c.c.content).label("size")).where(
        chosen_nodes(tables, setting.scope, old.id, which)
    )
    found = conn.execute(rows).all()
    if found:
        _delete(conn, tables, setting.scope, [row.id for row in found])
        conn.execute(
            update(d)
            .where(d.c.tenant == setting.scope.tenant, d.c.persona == setting.scope.persona, d.c.id == old.id)
            .values(
                chunks=d.c.chunks - len(found),
                characters=d.c.characters - sum(row.size for row in found),
                updated_at=setting.now,
            )
        )
    return len(found)


def clear(conn: Connection, tables: Tables, setting: Setting, name: str) -> int:
    """Delete a collection with all its nodes, and return how many there were."""
    take_turns(conn, tables, setting.scope, name)
    return remove(conn, tables, setting, name) if standing(conn, tables, setting.scope, name) else 0


def standing(conn: Connection, tables: Tables, scope: Scope, name: str) -> Standing | None:
    """Return the collection of a name."""
    d = tables.knowledge_documents

    def build() -> Select[Any]:
        return select(d.c.id, d.c.media_type, d.c.chunks, d.c.metadata).where(*_named(d))

    row = conn.execute(tables.statements.get("collection", build), _called(scope, name)).first()
    return None if row is None else _standing(row, name)


def _standing(row: Any, name: str) -> Standing:
    require_kind(row.media_type, name, collection=True)
    return Standing(row.id, row.chunks, row.metadata.get(_STAMP))


def _named(d: FromClause) -> Sequence[ColumnElement[bool]]:
    return [d.c[axis] == bindparam(axis) for axis in ("tenant", "persona", "author", "source")]


def _called(scope: Scope, name: str) -> dict[str, Any]:
    return {"tenant": scope.tenant, "persona": scope.persona, "author": scope.author, "source": name}


def other_vectors(name: str, stored: str | None, given: str | None) -> ConfigurationError:
    """Return the error of vectors that cannot be compared."""
    said = [f"vectors of {stamp!r}" if stamp else "vectors that the store's embedder made" for stamp in (stored, given)]
    return ConfigurationError(
        f"The collection {name!r} has {said[0]}, {said[1]} were given, and vectors of two models cannot be compared: "
        "open it with the model it was filled with, or clear() it and add its nodes anew."
    )


def _met(
    conn: Connection, tables: Tables, scope: Scope, name: str, keys: Sequence[str]
) -> "tuple[Standing | None, dict[str, _Before], int]":
    """Return the collection of a name, what stands under these keys in it, and the last place, -1 where it is empty."""
    d, c = tables.knowledge_documents, tables.knowledge_chunks
    single = len(keys) == 1

    def build() -> Select[Any]:
        mine = (*_place(c), c.c.document_id == d.c.id)
        last = select(func.max(c.c.chunk_index)).where(*mine).correlate(d).scalar_subquery()
        meant = c.c.key == bindparam("key") if single else tables.dialect.texts_in(c.c.key, list(keys))
        of_collection = (d.c.id, d.c.media_type, d.c.chunks, d.c.metadata, last.label("last"))
        of_node = (c.c.key, c.c.id.label("node"), c.c.chunk_index, func.length(c.c.content).label("size"))
        found = select(*of_collection, *of_node).select_from(d.outerjoin(c, and_(*mine, meant)))
        return found.where(*_named(d))

    statement = tables.statements.get("collection and node" if single else None, build)
    rows = conn.execute(statement, {**_called(scope, name), **({"key": keys[0]} if single else {})}).all()
    if not rows:
        return None, {}, -1
    before = {row.key: _Before(row.node, row.chunk_index, row.size) for row in rows if row.node is not None}
    return _standing(rows[0], name), before, -1 if rows[0].last is None else rows[0].last


def _delete(conn: Connection, tables: Tables, scope: Scope, ids: Sequence[UUID]) -> None:
    c, v = tables.knowledge_chunks, tables.vectors

    def vectors() -> Delete:
        return delete(v).where(*_place(v), v.c.kind == KIND, tables.dialect.ids_in(v.c.owner, ids, "ids"))

    def nodes() -> Delete:
        return delete(c).where(*_place(c), tables.dialect.ids_in(c.c.id, ids, "ids"))

    values = {"tenant": scope.tenant, "persona": scope.persona, "ids": tables.dialect.id_list(ids)}
    conn.execute(tables.statements.get("vectors of nodes deleted", vectors), values)
    conn.execute(tables.statements.get("nodes deleted", nodes), values)


def _place(table: FromClause) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.tenant == bindparam("tenant"), table.c.persona == bindparam("persona")


class _Counted(NamedTuple):
    """What the row of a collection is to say: how many nodes and characters more, and whose vectors."""

    nodes: int
    characters: int
    metadata: dict[str, Any]


def _grow(conn: Connection, tables: Tables, setting: Setting, document: UUID, counted: _Counted) -> None:
    """Note in the row of a collection how much it holds."""
    d = tables.knowledge_documents

    def build() -> Update:
        # The names of columns are those of their new values.
        own = (d.c.tenant == bindparam("of_tenant"), d.c.persona == bindparam("of_persona"), d.c.id == bindparam("one"))
        grown = {"chunks": d.c.chunks + bindparam("nodes"), "characters": d.c.characters + bindparam("longer")}
        return update(d).where(*own).values(**grown, **{name: bindparam(name) for name in ("metadata", "updated_at")})

    values = {
        "of_tenant": setting.scope.tenant,
        "of_persona": setting.scope.persona,
        "one": document,
        "nodes": counted.nodes,
        "longer": counted.characters,
        "metadata": counted.metadata,
        "updated_at": setting.now,
    }
    conn.execute(tables.statements.get("collection grown", build), values)


def _begun(setting: Setting, name: str, document: UUID, counted: _Counted) -> dict[str, Any]:
    """Return the row of a collection that begins."""
    return {
        "tenant": setting.scope.tenant,
        "persona": setting.scope.persona,
        "id": document,
        "author": setting.scope.author,
        "source": name,
        "digest": "",  # a collection has no one text
        "media_type": COLLECTION,
        "chunks": counted.nodes,
        "characters": counted.characters,
        "metadata": counted.metadata,
        "created_at": setting.now,
        "updated_at": setting.now,
    }


# -- reading


def get(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    name: str,
    which: Which,
    limit: int | None,
    current: str | None,
    with_vectors: bool,
) -> list[Node]:
    """Return nodes in the order in which they were added."""
    old = standing(conn, tables, scope, name)
    if old is None:
        return []
    c = tables.knowledge_chunks
    rows = select(c.c.id, c.c.key, c.c.content, c.c.metadata).where(chosen_nodes(tables, scope, old.id, which))
    found = conn.execute(rows.order_by(c.c.chunk_index).limit(limit)).all()
    made = _vectors_of(conn, tables, scope, old.stamp or current, [row.id for row in found]) if with_vectors else {}
    return [
        Node(key=row.key, content=row.content, metadata=row.metadata, vector=_plain(made.get(row.id))) for row in found
    ]


def count(conn: Connection, tables: Tables, scope: Scope, name: str, which: Which) -> int:
    """Return how many nodes there are."""
    old = standing(conn, tables, scope, name)
    if old is None:
        return 0
    c = tables.knowledge_chunks
    return conn.scalar(select(func.count()).select_from(c).where(chosen_nodes(tables, scope, old.id, which))) or 0


def _vectors_of(
    conn: Connection, tables: Tables, scope: Scope, model: str | None, ids: Sequence[UUID]
) -> "dict[UUID, Vector]":
    """Return the vectors of a model that rows have, by the rows' ids."""
    v = tables.vectors
    own = (v.c.tenant == scope.tenant, v.c.persona == scope.persona, v.c.kind == KIND, v.c.model == model)
    rows = conn.execute(select(v.c.owner, v.c.vector).where(*own, tables.dialect.ids_in(v.c.owner, ids)))
    return {row.owner: row.vector for row in rows}


def _plain(vector: "Vector | None") -> list[float] | None:
    return None if vector is None else [float(number) for number in vector]


def chosen_nodes(
    tables: Tables, scope: Scope, document: UUID, which: Which, value: Value = given
) -> ColumnElement[bool]:
    """Return the condition for nodes of a collection."""
    c, own = tables.knowledge_chunks, {"tenant": scope.tenant, "persona": scope.persona, "document_id": document}
    conditions = [c.c[name] == value(name, its) for name, its in own.items()]
    if which.keys is not None:
        conditions.append(tables.dialect.texts_in(c.c.key, list(which.keys)))
    if which.where is not None:
        conditions.append(tables.dialect.json_condition(c.c.metadata, which.where))
    return and_(*conditions)


def selected(tables: Tables, scope: Scope, document: UUID, which: Which) -> Selection:
    """Return nodes of a collection, as a part of statements that are built once a form."""
    values = {"tenant": scope.tenant, "persona": scope.persona, "document_id": document}
    # What a condition asks for is part of its form, spelled out: 1 and True are equal, and not the same.
    form = None if which.keys is not None else ("nodes", repr(which.where))
    return Selection(lambda _: chosen_nodes(tables, scope, document, which, named), form, values)
