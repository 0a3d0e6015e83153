"""Which memories have no vector yet, and the vectors that are filled in for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, delete, select

from memoranda.db.schema import Tables
from memoranda.drafts import embedded_text


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # it holds a text
class Unembedded:
    """A memory without a vector of the store's embedder."""

    tenant: str
    persona: str
    id: UUID
    text: str
    updated_at: datetime


def owners(conn: Connection, tables: Tables) -> list[tuple[str, str]]:
    """Return every tenant and persona that has memories."""
    m = tables.memories
    found = conn.execute(select(m.c.tenant, m.c.persona).distinct().order_by(m.c.tenant, m.c.persona))
    return [(row.tenant, row.persona) for row in found]


def missing_ids(conn: Connection, tables: Tables, owner: tuple[str, str], model: str) -> list[UUID]:
    """Return the ids of all memories of one persona that have no vector of a model, in order."""
    m, v = tables.memories, tables.vectors
    tenant, persona = owner
    joined = m.outerjoin(v, _of(tables, model))
    own = (m.c.tenant == tenant, m.c.persona == persona, v.c.owner.is_(None))
    return list(conn.scalars(select(m.c.id).select_from(joined).where(*own).order_by(m.c.id)))


def missing(
    conn: Connection,
    tables: Tables,
    owner: tuple[str, str],
    model: str,
    among: Sequence[UUID],
) -> list[Unembedded]:
    """Return those of a persona's memories that have no vector of a model, in the order of their ids."""
    m, v = tables.memories, tables.vectors
    tenant, persona = owner
    statement = (
        select(m.c.id, m.c.title, m.c.content, m.c.updated_at)
        .select_from(m.outerjoin(v, _of(tables, model)))
        .where(
            m.c.tenant == tenant,
            m.c.persona == persona,
            v.c.owner.is_(None),
            tables.dialect.ids_in(m.c.id, among),
        )
        .order_by(m.c.id)
    )
    return [
        Unembedded(
            tenant=tenant,
            persona=persona,
            id=row.id,
            text=embedded_text(row.content, row.title),
            updated_at=row.updated_at,
        )
        for row in conn.execute(statement)
    ]


def vector_row(owner: tuple[str, str], memory: UUID, model: str, vector: Any) -> dict[str, Any]:
    """Return the row of a memory's vector."""
    return {
        "tenant": owner[0],
        "persona": owner[1],
        "kind": "memory",
        "model": model,
        "owner": memory,
        "vector": vector,
    }


def prune(conn: Connection, tables: Tables, owner: tuple[str, str], model: str) -> None:
    """Delete the vectors of one persona that other models made."""
    v = tables.vectors
    conn.execute(delete(v).where(v.c.tenant == owner[0], v.c.persona == owner[1], v.c.model != model))


def fill(conn: Connection, tables: Tables, page: Sequence[Unembedded], vectors: Sequence[Any], model: str) -> int:
    """Store the vectors of memories of one persona whose texts are still the same, and return how many were."""
    if not page:
        return 0
    m, first = tables.memories, page[0]
    same = conn.execute(
        select(m.c.id, m.c.updated_at)
        .where(
            m.c.tenant == first.tenant,
            m.c.persona == first.persona,
            tables.dialect.ids_in(m.c.id, [item.id for item in page]),
        )
        .with_for_update(read=True)
    )
    stands = {row.id: row.updated_at for row in same}
    values = [
        vector_row((item.tenant, item.persona), item.id, model, vector)
        for item, vector in zip(page, vectors, strict=True)
        if stands.get(item.id) == item.updated_at
    ]
    return tables.inserts.add(conn, tables.vectors, values, skip_conflicts=True)


def _of(tables: Tables, model: str) -> Any:
    m, v = tables.memories, tables.vectors
    return and_(
        v.c.tenant == m.c.tenant,
        v.c.persona == m.c.persona,
        v.c.kind == "memory",
        v.c.model == model,
        v.c.owner == m.c.id,
    )
