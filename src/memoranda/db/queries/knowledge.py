"""Documents and their chunks: stored whole or not at all, and replaced in one transaction.

A document is one author's, under a name. Others see it where it is shared with a project they are a member of; whoever
is none of them finds it no more than what does not exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, FromClause, Row, Select, and_, case, delete, func, select, update

from memoranda.db.corpora import Kind
from memoranda.db.queries import jobs, projects
from memoranda.db.queries.inserting import require_member
from memoranda.db.queries.vectors import VECTOR, vector_row
from memoranda.db.queries.visibility import seen_rows, visible
from memoranda.db.schema import Tables
from memoranda.documents.drafts import ChunkDraft, DocumentDraft
from memoranda.drafts import Owner, Setting, cells
from memoranda.errors import InvalidInput, NotTheAuthor
from memoranda.ids import new_id
from memoranda.records import KnowledgeChunk, KnowledgeDocument
from memoranda.scope import Scope, project_key
from memoranda.text import join_terms

KIND: Kind = "knowledge"
"""What the table of vectors, and the payload of a job, call chunks."""
COLLECTION = "application/vnd.memoranda.collection"
"""The media type of a document whose chunks are the nodes of a collection; see `memoranda.db.queries.nodes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A document as it is stored."""

    id: UUID
    media_type: str
    digest: str
    chunks: int
    embedded: bool
    """Whether every chunk has a vector of the store's embedder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What became of a document."""

    unchanged: Standing | None = None
    """The one that was there already, just so."""
    replaced: int = 0
    """How many chunks there were before."""


# -- storing


def standing(
    conn: Connection, tables: Tables, setting: Setting, document: DocumentDraft, model: str | None
) -> Standing | None:
    """Return the author's document of the same name.

    Raises:
        InvalidInput: a collection of nodes has this name.
        NotAllowed: the new one is to be shared with a project the author is no member of.
    """
    owner = document.owner
    if owner.audience == "project":
        mine = projects.projects_of(conn, tables, setting.scope)
        same = (project for project in mine if project_key(project) == project_key(owner.project))
        require_member(next(same, owner.project), mine)
    old = _standing(conn, tables, setting.scope, document.source, model)
    if old is not None:
        require_kind(old.media_type, document.source, collection=False)
    return old


def require_kind(media_type: str, name: str, *, collection: bool) -> None:
    """Refuse to put nodes into a document, or a document in the place of a collection.

    Raises:
        InvalidInput: the name is taken by the other.
    """
    if (media_type == COLLECTION) != collection:
        there, given = ("a document", "collection") if collection else ("a collection of nodes", "document")
        raise InvalidInput(f"{name!r} is the name of {there}: give the {given} another", field="source")


def replace(
    conn: Connection,
    tables: Tables,
    document: DocumentDraft,
    chunks: Sequence[ChunkDraft],
    vectors: Sequence[Any],
    model: str | None,
    setting: Setting,
) -> Replaced:
    """Store a document in place of the author's document of the same name.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        document: What to store.
        chunks: Its chunks.
        vectors: One a chunk, None for a chunk that has none.
        model: What made the vectors.
        setting: The scope and policies the draft was made under.

    Raises:
        InvalidInput: a collection of nodes has its name.
        NotAllowed: it is to be shared with a project the author is no member of.
    """
    take_turns(conn, tables, setting.scope, document.source)
    old = _standing(conn, tables, setting.scope, document.source, model)
    if old is not None:
        require_kind(old.media_type, document.source, collection=False)
        if old.digest == document.digest:
            return Replaced(unchanged=old)  # somebody took the same in while this one was embedded
    owner = _placed(conn, tables, setting, document.owner)
    if old is not None:
        _delete_chunks(conn, tables, setting.scope, old.id)
    identifier = _store_document(conn, tables, document, owner, len(chunks), old, setting)
    _store_chunks(conn, tables, document.source, owner, identifier, chunks, setting)
    whose = (owner.tenant, owner.persona)
    embedded = [(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True) if vector is not None]
    rows = [vector_row(whose, chunk.id, model, vector, KIND) for chunk, vector in embedded] if model else []
    tables.inserts.add_values(conn, tables.vectors, VECTOR, rows)
    if not rows and model is not None and setting.leaves_jobs:
        payload = {"kind": KIND, "ids": [chunk.id.hex for chunk in chunks]}
        jobs.enqueue(conn, tables, whose, jobs.EMBED, payload)
    return Replaced(replaced=old.chunks if old else 0)


def remove(conn: Connection, tables: Tables, setting: Setting, source: str) -> int:
    """Delete the author's document of a name with all that belongs to it, and return how many chunks it had.

    Raises:
        NotTheAuthor: there is only one that somebody else shares.
    """
    take_turns(conn, tables, setting.scope, source)
    old = _standing(conn, tables, setting.scope, source, None)
    d = tables.knowledge_documents
    if old is None:
        shared = select(d.c.id).where(_seen(tables, setting, d), d.c.source == source).limit(1)
        if conn.execute(shared).first() is not None:
            raise NotTheAuthor("Another user took this document in: you may read it, but only its author removes it.")
        return 0
    _delete_chunks(conn, tables, setting.scope, old.id)
    conn.execute(delete(d).where(*_place(d, setting.scope), d.c.id == old.id))
    return old.chunks


def take_turns(conn: Connection, tables: Tables, scope: Scope, source: str) -> None:
    """Let writers of one document wait for each other, also where it has no row yet."""
    key = ("memoranda:knowledge", scope.tenant, scope.persona, scope.author, source)
    tables.dialect.advise_lock(conn, "\x1f".join(key))


def _standing(conn: Connection, tables: Tables, scope: Scope, source: str, model: str | None) -> Standing | None:
    d, c, v = tables.knowledge_documents, tables.knowledge_chunks, tables.vectors
    own = (*_place(d, scope), d.c.author == scope.author, d.c.source == source)
    row = conn.execute(select(d.c.id, d.c.media_type, d.c.digest, d.c.chunks).where(*own)).first()
    if row is None:
        return None
    of_chunk = and_(*_place(v, scope), v.c.kind == KIND, v.c.model == model, v.c.owner == c.c.id)
    with_vector = select(func.count()).select_from(c.join(v, of_chunk)).where(*_chunks_of(tables, scope, row.id))
    embedded = model is not None and conn.scalar(with_vector) == row.chunks
    return Standing(id=row.id, media_type=row.media_type, digest=row.digest, chunks=row.chunks, embedded=embedded)


def _placed(conn: Connection, tables: Tables, setting: Setting, owner: Owner) -> Owner:
    """Return the owner with the spelling of the project that the scope uses."""
    if not owner.project:
        return owner
    mine = projects.projects_of(conn, tables, setting.scope)
    names = [owner.project]
    spelled = projects.spellings(conn, tables, setting.scope, setting.policies.visibility, names, mine)[owner.project]
    if owner.audience == "project":
        require_member(spelled, mine)
    return owner._replace(project=spelled)


def _delete_chunks(conn: Connection, tables: Tables, scope: Scope, document: UUID) -> None:
    c, v = tables.knowledge_chunks, tables.vectors
    own = _chunks_of(tables, scope, document)
    conn.execute(delete(v).where(*_place(v, scope), v.c.kind == KIND, v.c.owner.in_(select(c.c.id).where(*own))))
    conn.execute(delete(c).where(*own))


def _store_document(
    conn: Connection,
    tables: Tables,
    document: DocumentDraft,
    owner: Owner,
    chunks: int,
    old: Standing | None,
    setting: Setting,
) -> UUID:
    d = tables.knowledge_documents
    values = {
        "audience": owner.audience,
        "project": owner.project,
        "project_key": project_key(owner.project),
        "digest": document.digest,
        "media_type": document.media_type,
        "chunks": chunks,
        "characters": len(document.text),
        "metadata": dict(document.metadata),
        "updated_at": setting.now,
    }
    if old is not None:
        conn.execute(update(d).where(*_place(d, setting.scope), d.c.id == old.id).values(**values))
        return old.id
    identifier = new_id()
    row = _whose(owner) | values | {"id": identifier, "source": document.source, "created_at": setting.now}
    tables.inserts.add(conn, d, [row])
    return identifier


def _store_chunks(
    conn: Connection,
    tables: Tables,
    source: str,
    owner: Owner,
    document: UUID,
    chunks: Sequence[ChunkDraft],
    setting: Setting,
) -> None:
    same = _whose(owner) | {
        "audience": owner.audience,
        "project": owner.project,
        "project_key": project_key(owner.project),
        "document_id": document,
        "source": source,
        "created_at": setting.now,
        "cells": join_terms(cells(owner)),
    }
    rows = [
        same
        | {
            "id": chunk.id,
            "chunk_index": chunk.chunk_index,
            "content": chunk.content,
            "overlap": chunk.overlap,
            "start": chunk.start,
            "headings": list(chunk.headings),
            "metadata": dict(chunk.metadata),
            "category_terms": chunk.category_terms,
            "content_terms": chunk.content_terms,
            "length": chunk.length,
        }
        for chunk in chunks
    ]
    tables.inserts.add(conn, tables.knowledge_chunks, rows)


def _whose(owner: Owner) -> dict[str, Any]:
    return {"tenant": owner.tenant, "persona": owner.persona, "author": owner.author}


# -- reading


def listed(conn: Connection, tables: Tables, setting: Setting) -> list[KnowledgeDocument]:
    """Return the documents the scope sees, by name."""
    d = tables.knowledge_documents
    rows = conn.execute(select(d).where(_seen(tables, setting, d)).order_by(d.c.source, d.c.author))
    return [_document(row) for row in rows]


def chunks(conn: Connection, tables: Tables, setting: Setting, source: str) -> list[KnowledgeChunk]:
    """Return the chunks of a document in order: the author's own, else the one that was shared first."""
    d, c = tables.knowledge_documents, tables.knowledge_chunks
    own_first = case((d.c.author == setting.scope.author, 0), else_=1)
    named = select(d.c.id).where(_seen(tables, setting, d), d.c.source == source)
    chosen = named.order_by(own_first, d.c.created_at, d.c.id).limit(1).scalar_subquery()
    found = (
        select(*(c.c[name] for name in _CHUNK))
        .where(*_place(c, setting.scope), c.c.document_id == chosen)
        .order_by(c.c.chunk_index)
    )
    return [_chunk(row) for row in conn.execute(found)]


def by_ids(conn: Connection, tables: Tables, setting: Setting, ids: Sequence[UUID]) -> dict[UUID, KnowledgeChunk]:
    """Return the chunks with these ids that the scope may see."""
    c = tables.knowledge_chunks
    shown = seen_rows(tables, tables.corpora[KIND], setting.scope, setting.policies.visibility, None)

    def build() -> Select[Any]:
        columns = (c.c[name] for name in _CHUNK)
        return select(*columns).where(shown.where(c), tables.dialect.ids_in(c.c.id, ids, "ids"))

    values = {**shown.values, "ids": tables.dialect.id_list(ids)}
    found = map(_chunk, tables.statements.rows(conn, ("by ids", shown.form), build, values))
    return {chunk.id: chunk for chunk in found}


def _seen(tables: Tables, setting: Setting, rows: FromClause) -> ColumnElement[bool]:
    return visible(tables, setting.scope, setting.policies.visibility, rows)


def _place(table: FromClause, scope: Scope) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.tenant == scope.tenant, table.c.persona == scope.persona


def _chunks_of(tables: Tables, scope: Scope, document: UUID) -> Sequence[ColumnElement[bool]]:
    c = tables.knowledge_chunks
    return (*_place(c, scope), c.c.document_id == document)


_DOCUMENT = (
    *("source", "media_type", "chunks", "characters", "author", "audience", "project", "metadata"),
    *("created_at", "updated_at"),
)
_CHUNK = (
    *("id", "source", "chunk_index", "content", "overlap"),
    *("author", "project", "metadata", "created_at", "headings"),
)


def _document(row: Row[Any]) -> KnowledgeDocument:
    return KnowledgeDocument(**{name: row._mapping[name] for name in _DOCUMENT})


def _chunk(row: Sequence[Any]) -> KnowledgeChunk:
    """Return the record of a row of `_CHUNK`."""
    *said, headings = row
    return KnowledgeChunk(**dict(zip(_CHUNK, (*said, tuple(headings)), strict=True)))
