"""How much a scope holds, and what the store as a whole is set to."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, func, literal_column, select

from memoranda.db.corpora import Kind
from memoranda.db.queries.vectors import of_row
from memoranda.db.queries.visibility import visible
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.ranking.floors import SETTING
from memoranda.reports import Statistics
from memoranda.scope import Scope

EMBEDDER, WORDS = "embedder", "words"
"""The names of the settings that say which model made the vectors, and how words were indexed."""


def statistics(conn: Connection, tables: Tables, setting: Setting, model: str | None) -> Statistics:
    """Count what the scope may see."""
    m, v = tables.memories, tables.vectors
    seen = visible(tables, setting.scope, setting.policies.visibility)

    def with_vector(kind: Kind, *conditions: ColumnElement[bool]) -> int:
        rows = tables.corpora[kind].table
        own = visible(tables, setting.scope, setting.policies.visibility, rows)
        joined = rows.join(v, of_row(tables, kind))
        counted = select(func.count(rows.c.id.distinct())).select_from(joined).where(own, *conditions)
        return conn.scalar(counted) or 0

    def number_of(rows: Table) -> int:
        own = visible(tables, setting.scope, setting.policies.visibility, rows)
        return conn.scalar(select(func.count()).select_from(rows).where(own)) or 0

    def counted(column: Any) -> dict[str, int]:
        rows = conn.execute(select(column, func.count()).where(seen).group_by(column).order_by(column))
        return {row[0] or "": row[1] for row in rows}

    by_status = counted(m.c.status)
    first, last = conn.execute(select(func.min(m.c.day), func.max(m.c.day)).where(seen)).one()
    of_model = v.c.model == (model or "")
    vectors, embedded_chunks = with_vector("memory", of_model), with_vector("knowledge", of_model)
    return Statistics(
        memories=sum(by_status.values()),
        by_status=by_status,
        by_type=counted(m.c.type),
        by_category=counted(m.c.category),
        vectors=vectors,
        other_vectors=with_vector("memory") - vectors,
        documents=number_of(tables.knowledge_documents),
        chunks=number_of(tables.knowledge_chunks),
        embedded_chunks=embedded_chunks,
        items=number_of(tables.store_items),
        first_day=first,
        last_day=last,
        embedder=model,
    )


class Standing(NamedTuple):
    """What a question has to know of a store before it is asked."""

    embedder: Any
    """The model of its vectors."""
    kinds: frozenset[Kind]
    """Of which the persona has any rows, whoever's they are."""


def standing(conn: Connection, tables: Tables, scope: Scope, kinds: Sequence[Kind]) -> Standing:
    """Return it in one look, for a server takes its time for each."""

    def build() -> Select[Any]:
        s = tables.settings
        embedder = select(s.c.value).where(s.c.key == EMBEDDER).scalar_subquery()
        return select(embedder, *(_any_of(tables.corpora[kind].table) for kind in kinds))

    values = {"tenant": scope.tenant, "persona": scope.persona}
    [(embedder, *there)] = tables.statements.rows(conn, ("standing", *kinds), build, values)
    return Standing(embedder, frozenset(kind for kind, any_there in zip(kinds, there, strict=True) if any_there))


def _any_of(rows: Table) -> ColumnElement[Any]:
    """Ask for the first one by its key: where most rows are the persona's a table would be read from its beginning."""
    own = (rows.c.tenant == bindparam("tenant"), rows.c.persona == bindparam("persona"))
    return select(literal_column("1")).where(*own).order_by(rows.c.id).limit(1).scalar_subquery()


def settings(conn: Connection, tables: Tables) -> dict[str, Any]:
    """Return how the store was made, by name; empty for a new one."""
    s = tables.settings
    return dict(tables.statements.rows(conn, "settings", lambda: select(s.c.key, s.c.value), {}))


def set_floor(conn: Connection, tables: Tables, value: dict[str, Any]) -> None:
    """Record the floor that was measured on this store, in place of an earlier one."""
    change(conn, tables, {SETTING: value})


def change(conn: Connection, tables: Tables, values: dict[str, Any]) -> None:
    """Make settings, in place of the ones that stand."""
    insert = tables.dialect.insert(tables.settings)
    upsert = insert.on_conflict_do_update(index_elements=[tables.settings.c.key], set_={"value": insert.excluded.value})
    conn.execute(upsert, [{"key": key, "value": value} for key, value in values.items()])


def settle(conn: Connection, tables: Tables, values: dict[str, Any]) -> dict[str, Any]:
    """Make the settings that are not made yet, and return the ones that stand."""
    rows = [{"key": key, "value": value} for key, value in values.items()]
    conn.execute(tables.dialect.insert(tables.settings).on_conflict_do_nothing(), rows)
    return settings(conn, tables)
