"""Nodes of a collection: chunks with a key of the caller's, of a document that grows and shrinks by single chunks.

A collection is one author's, under a name, and nobody else finds it. A node that is replaced keeps its place and gets
another id, so that no vector of its old text can reach it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    select,
    update,
)

from memoranda.conditions import Condition
from memoranda.db.queries import jobs
from memoranda.db.queries.knowledge import COLLECTION, KIND, remove, require_kind, take_turns
from memoranda.db.queries.vectors import vector_row
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
    """A collection as it is stored: its id, how many nodes it has, whose vectors these are, and the last place."""

    id: UUID
    nodes: int
    stamp: str | None
    last: int


class _Before(NamedTuple):
    """A node that is replaced: its place, and the characters of its text."""

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
    old = standing(conn, tables, setting.scope, name, placing=True)
    if old is not None and old.nodes and old.stamp != own:
        raise other_vectors(name, old.stamp, own)
    owner = Owner(setting.scope.tenant, setting.scope.persona, setting.scope.author, "private", "")
    keys = [draft.node.key for draft in drafts]
    before = _replaced(conn, tables, setting.scope, old.id, keys) if old is not None else {}
    document = _counted(conn, tables, setting, name, old, drafts, before, own)
    after = 0 if old is None else old.last + 1
    fresh = iter(range(after, after + len(drafts)))
    indexes = [before[key].position if key in before else next(fresh) for key in keys]
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
    tables.inserts.add(conn, tables.knowledge_chunks, rows)
    whose = (owner.tenant, owner.persona)
    pairs = [(draft.id, vector) for draft, vector in zip(drafts, vectors, strict=True) if vector is not None]
    made = [vector_row(whose, identifier, stamp, vector, KIND) for identifier, vector in pairs] if stamp else []
    tables.inserts.add(conn, tables.vectors, made)
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


def standing(conn: Connection, tables: Tables, scope: Scope, name: str, *, placing: bool = False) -> Standing | None:
    """Return the collection of a name, with the last place in it where nodes are to be placed."""
    d, c = tables.knowledge_documents, tables.knowledge_chunks
    columns: list[ColumnElement[Any]] = [d.c.id, d.c.media_type, d.c.chunks, d.c.metadata]
    if placing:
        own = (c.c.tenant == scope.tenant, c.c.persona == scope.persona, c.c.document_id == d.c.id)
        columns.append(select(func.max(c.c.chunk_index)).where(*own).scalar_subquery().label("last"))
    row = conn.execute(
        select(*columns).where(
            d.c.tenant == scope.tenant, d.c.persona == scope.persona, d.c.author == scope.author, d.c.source == name
        )
    ).first()
    if row is None:
        return None
    require_kind(row.media_type, name, collection=True)
    last = row.last if placing else None
    return Standing(row.id, row.chunks, row.metadata.get(_STAMP), -1 if last is None else last)


def other_vectors(name: str, stored: str | None, given: str | None) -> ConfigurationError:
    """Return the error of vectors that cannot be compared."""
    said = [f"vectors of {stamp!r}" if stamp else "vectors that the store's embedder made" for stamp in (stored, given)]
    return ConfigurationError(
        f"The collection {name!r} has {said[0]}, {said[1]} were given, and vectors of two models cannot be compared: "
        "open it with the model it was filled with, or clear() it and add its nodes anew."
    )


def _replaced(
    conn: Connection, tables: Tables, scope: Scope, document: UUID, keys: Sequence[str]
) -> "dict[str, _Before]":
    """Delete the nodes that stand under these keys, and return where they stood."""
    c = tables.knowledge_chunks
    columns = (c.c.key, c.c.id, c.c.chunk_index, func.length(c.c.content).label("size"))
    found = conn.execute(select(*columns).where(chosen_nodes(tables, scope, document, Which(keys=keys)))).all()
    if found:
        _delete(conn, tables, scope, [row.id for row in found])
    return {row.key: _Before(row.chunk_index, row.size) for row in found}


def _delete(conn: Connection, tables: Tables, scope: Scope, ids: Sequence[UUID]) -> None:
    c, v = tables.knowledge_chunks, tables.vectors
    for table, column in ((v, v.c.owner), (c, c.c.id)):
        own = [table.c.tenant == scope.tenant, table.c.persona == scope.persona]
        own += [v.c.kind == KIND] if table is v else []
        conn.execute(delete(table).where(*own, tables.dialect.ids_in(column, ids)))


def _counted(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    name: str,
    old: Standing | None,
    drafts: Sequence[NodeDraft],
    before: Mapping[str, _Before],
    stamp: str | None,
) -> UUID:
    """Note in the row of the collection how much it holds, and return its id."""
    d, scope = tables.knowledge_documents, setting.scope
    more = len(drafts) - len(before)
    characters = sum(len(draft.node.content) for draft in drafts) - sum(row.size for row in before.values())
    values = {"metadata": {_STAMP: stamp} if stamp else {}, "updated_at": setting.now}
    if old is not None:
        grown = {"chunks": d.c.chunks + more, "characters": d.c.characters + characters}
        own = (d.c.tenant == scope.tenant, d.c.persona == scope.persona, d.c.id == old.id)
        conn.execute(update(d).where(*own).values(**values, **grown))
        return old.id
    row = values | {
        "tenant": scope.tenant,
        "persona": scope.persona,
        "id": new_id(),
        "author": scope.author,
        "source": name,
        "digest": "",  # a collection has no one text
        "media_type": COLLECTION,
        "chunks": more,
        "characters": characters,
        "created_at": setting.now,
    }
    tables.inserts.add(conn, d, [row])
    return UUID(str(row["id"]))


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
