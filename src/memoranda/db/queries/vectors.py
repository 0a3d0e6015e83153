"""Which memories and chunks have no vector yet, and the vectors that are filled in for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, FromClause, and_, delete, null, select, true

from memoranda.db.corpora import Kind
from memoranda.db.inserts import Values
from memoranda.db.schema import Tables
from memoranda.drafts import embedded_chunk, embedded_text
from memoranda.nodes import embedded_node
from memoranda.redaction import redact

_TEXTS: Mapping[Kind, tuple[str, Callable[[str, Any], str]]] = MappingProxyType(
    {
        "memory": ("title", embedded_text),
        "knowledge": ("headings", embedded_chunk),
        "item": ("path", lambda content, path: content),
    }
)
"""What stands above a text, and how the two become what is embedded."""


VECTOR = ("tenant", "persona", "kind", "model", "owner", "vector")
"""The columns of a vector's row."""
GIVEN = "given:"
"""How the stamp of vectors begins that a caller has made: they are nobody else's to make anew, or to delete."""


def given(vectors: FromClause) -> ColumnElement[bool]:
    """Return the condition for vectors that a caller has made."""
    return vectors.c.model.startswith(GIVEN, autoescape=True)


class Owner(NamedTuple):
    """Whose rows, and of which kind."""

    kind: Kind
    tenant: str
    persona: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # it holds a text
class Unembedded:
    """A row without a vector of the store's embedder."""

    owner: Owner
    id: UUID
    text: str
    written_at: datetime
    """When it was given this text."""


def owners(conn: Connection, tables: Tables) -> list[Owner]:
    """Return every tenant and persona that has memories, and every one that has chunks."""
    found: list[Owner] = []
    for corpus in tables.corpora.values():
        if corpus.embedded:
            m = corpus.table
            rows = conn.execute(select(m.c.tenant, m.c.persona).distinct().order_by(m.c.tenant, m.c.persona))
            found += [Owner(corpus.kind, row.tenant, row.persona) for row in rows]
    return found


def missing_ids(conn: Connection, tables: Tables, owner: Owner, model: str) -> list[UUID]:
    """Return the ids of all rows of one kind and persona that have no vector of a model, in order."""
    m = tables.corpora[owner.kind].table
    statement = select(m.c.id).select_from(_with_vectors(tables, owner.kind, model)).where(*_lacking(tables, m, owner))
    return list(conn.scalars(statement.order_by(m.c.id)))


def missing(conn: Connection, tables: Tables, owner: Owner, model: str, among: Sequence[UUID]) -> list[Unembedded]:
    """Return those rows of one kind and persona that have no vector of a model, in the order of their ids."""
    m = tables.corpora[owner.kind].table
    above, embedded = _TEXTS[owner.kind]
    statement = (
        select(m.c.id, m.c.content, m.c[above].label("above"), m.c.get("key", null()).label("key"), _written_at(m))
        .select_from(_with_vectors(tables, owner.kind, model))
        .where(*_lacking(tables, m, owner), tables.dialect.ids_in(m.c.id, among))
        .order_by(m.c.id)
    )
    return [
        Unembedded(
            owner=owner,
            id=row.id,
            # A node's text is kept as it was given.
            text=embedded(row.content, row.above) if row.key is None else embedded_node(redact(row.content), row.key),
            written_at=row.written_at,
        )
        for row in conn.execute(statement)
    ]


def vector_row(owner: tuple[str, str], identifier: UUID, model: str, vector: Any, kind: Kind = "memory") -> Values:
    """Return the row of a vector of a tenant and persona: a value for each of `VECTOR`."""
    return (*owner, kind, model, identifier, vector)


def prune(conn: Connection, tables: Tables, owner: Owner, model: str) -> None:
    """Delete the vectors of one kind and persona that other models made, but those that a caller gave."""
    v = tables.vectors
    own = (v.c.tenant == owner.tenant, v.c.persona == owner.persona, v.c.kind == owner.kind)
    conn.execute(delete(v).where(*own, v.c.model != model, ~given(v)))


def fill(conn: Connection, tables: Tables, page: Sequence[Unembedded], vectors: Sequence[Any], model: str) -> int:
    """Store the vectors of rows of one kind and persona whose texts are still the same, and return how many were."""
    if not page:
        return 0
    owner = page[0].owner
    m = tables.corpora[owner.kind].table
    same = conn.execute(
        select(m.c.id, _written_at(m))
        .where(
            m.c.tenant == owner.tenant,
            m.c.persona == owner.persona,
            tables.dialect.ids_in(m.c.id, [item.id for item in page]),
        )
        .with_for_update(read=True)
    )
    stands = {row.id: row.written_at for row in same}
    values = [
        vector_row((owner.tenant, owner.persona), item.id, model, vector, owner.kind)
        for item, vector in zip(page, vectors, strict=True)
        if stands.get(item.id) == item.written_at
    ]
    return tables.inserts.add_values(conn, tables.vectors, VECTOR, values, skip_conflicts=True)


def of_row(tables: Tables, kind: Kind) -> ColumnElement[bool]:
    """Return the condition for the vectors, of whatever model, of a row of a kind."""
    m, v = tables.corpora[kind].table, tables.vectors
    return and_(v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.kind == kind, v.c.owner == m.c.id)


def _with_vectors(tables: Tables, kind: Kind, model: str) -> FromClause:
    """Return the rows of a kind, each with its vector of a model if it has one."""
    v = tables.vectors
    return tables.corpora[kind].table.outerjoin(v, and_(of_row(tables, kind), v.c.model == model))


def _lacking(tables: Tables, m: FromClause, owner: Owner) -> tuple[ColumnElement[bool], ...]:
    return m.c.tenant == owner.tenant, m.c.persona == owner.persona, tables.vectors.c.owner.is_(None), ours(m)


def ours(m: FromClause) -> ColumnElement[bool]:
    """Return the condition for rows that the store's own embedder makes vectors of: all but some texts of items."""
    return m.c.embedder.is_(None) if "embedder" in m.c else true()


def _written_at(m: FromClause) -> ColumnElement[datetime]:
    """Return when a row was given its text; what has no such column is never rewritten."""
    return m.c.get("updated_at", m.c.created_at).label("written_at")
