"""Items as they are read: values under a namespace and a key, found by their names, below a namespace or by their ids.

An item is one author's, and not there once its time is over.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Row,
    Select,
    and_,
    bindparam,
    or_,
    select,
)

from memoranda import namespaces
from memoranda.db.corpora import Kind
from memoranda.db.queries.visibility import seen_rows, visible
from memoranda.db.schema import Tables
from memoranda.db.statements import Selection, Value, given, named
from memoranda.drafts import Setting
from memoranda.item_operations import GetItem, ListNamespaces, SearchItems
from memoranda.namespaces import Path
from memoranda.records import Item

KIND: Kind = "item"
"""What the table of vectors, and the payload of a job, call texts of items."""

Name: TypeAlias = tuple[str, str]
"""The namespace and the key of an item, as they are stored."""


def own(tables: Tables, setting: Setting, rows: FromClause, value: Value = given) -> ColumnElement[bool]:
    """Return the condition for the items, or texts of items, of the scope."""
    return visible(tables, setting.scope, setting.policies.visibility, rows, value=value)


def inside(rows: FromClause, path: Path, value: Value = given) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions for what lies below a path; none for all there is."""
    if path:
        first, end = namespaces.below(namespaces.encode(path))
        yield rows.c.namespace >= value("first", first)
        yield rows.c.namespace < value("end", end)


def fresh(tables: Tables, now: datetime | None, value: Value = given) -> list[ColumnElement[bool]]:
    """Return the condition for items whose time is not over at a moment, where one is given."""
    i = tables.store_items
    return [] if now is None else [or_(i.c.expires_at.is_(None), i.c.expires_at > value("now", now))]


def called(tables: Tables, setting: Setting, names: Sequence[tuple[str, Sequence[str]]]) -> Selection:
    """Return the items of these keys by namespace, as a part of statements that are built once for a single one."""
    mine = seen_rows(tables, tables.corpora[KIND], setting.scope, setting.policies.visibility, ())
    single = len(names) == 1 and len(names[0][1]) == 1
    value = named if single else given

    def where(i: FromClause) -> ColumnElement[bool]:
        named_so = [
            and_(
                i.c.namespace == value("namespace", namespace),
                i.c.key == value("key", keys[0]) if len(keys) == 1 else tables.dialect.texts_in(i.c.key, keys),
            )
            for namespace, keys in names
        ]
        return and_(mine.where(i), or_(*named_so))

    if not single:
        return Selection(where, values=mine.values)
    [(namespace, [key])] = names
    return Selection(where, mine.form, {**mine.values, "namespace": namespace, "key": key})


def grouped(names: Iterable[Name]) -> list[tuple[str, list[str]]]:
    """Return keys by namespace, both in order."""
    groups: dict[str, list[str]] = {}
    for namespace, key in sorted(set(names)):
        groups.setdefault(namespace, []).append(key)
    return list(groups.items())


def _now(conn: Connection, tables: Tables, *, omit_expired: bool) -> datetime | None:
    return tables.dialect.now(conn) if omit_expired else None


def get(conn: Connection, tables: Tables, setting: Setting, wanted: Sequence[GetItem]) -> list[Row[Any] | None]:
    """Return the rows of items, one each, None for what is not there; all of one `omit_expired`."""
    i, found = tables.store_items, dict[Name, Row[Any]]()
    now = _now(conn, tables, omit_expired=wanted[0].omit_expired)
    for namespace, keys in grouped((namespaces.encode(op.namespace), op.key) for op in wanted):
        asked = called(tables, setting, [(namespace, keys)])

        def build(asked: Selection = asked) -> Select[Any]:
            return select(i).where(asked.where(i), *fresh(tables, now, named))

        form = asked.form and ("items", asked.form, now is None)
        for row in conn.execute(tables.statements.get(form, build), {**asked.values, "now": now}):
            found[namespace, row.key] = row
    return [found.get((namespaces.encode(op.namespace), op.key)) for op in wanted]


def newest(
    conn: Connection, tables: Tables, setting: Setting, op: SearchItems, *, beside: Sequence[UUID] = (), skip: int = 0
) -> list[Row[Any]]:
    """Return the rows below a namespace, the one written last first, a page of them.

    Args:
        conn: A connection.
        tables: The store's tables.
        setting: Who asks.
        op: Below which namespace, with which values.
        beside: Rows to leave out.
        skip: How many rows of the page, and of those before it, are accounted for.
    """
    i = tables.store_items
    now = _now(conn, tables, omit_expired=op.omit_expired)
    mine = seen_rows(tables, tables.corpora[KIND], setting.scope, setting.policies.visibility, ())

    def build() -> Select[Any]:
        others = [~tables.dialect.ids_in(i.c.id, beside, "beside")] if beside else []
        return (
            select(i)
            .where(mine.where(i), *inside(i, op.namespace, named), *kept(tables, op, now, named), *others)
            .order_by(i.c.updated_at.desc(), i.c.id.desc())
            .limit(bindparam("limit", type_=Integer))
            .offset(bindparam("offset", type_=Integer))
        )

    # What a condition asks for is part of its form, spelled out: 1 and True are equal, and not the same.
    form = mine.form and ("newest items", mine.form, bool(op.namespace), repr(op.where), now is None, bool(beside))
    values: dict[str, Any] = {
        **mine.values,
        "now": now,
        "beside": tables.dialect.id_list(beside),
        "limit": op.limit - max(0, skip - op.offset),
        "offset": max(0, op.offset - skip),
    }
    if op.namespace:
        values["first"], values["end"] = namespaces.below(namespaces.encode(op.namespace))
    return list(conn.execute(tables.statements.get(form, build), values))


def kept(tables: Tables, op: SearchItems, now: datetime | None, value: Value = given) -> list[ColumnElement[bool]]:
    """Return the conditions for the items whose values and times a search asks for."""
    i = tables.store_items
    said = [tables.dialect.json_condition(i.c.value, op.where)] if op.where is not None else []
    return said + fresh(tables, now, value)


def by_ids(conn: Connection, tables: Tables, setting: Setting, ids: Sequence[UUID]) -> dict[UUID, Row[Any]]:
    """Return the rows with these ids."""
    i, scope, policy = tables.store_items, setting.scope, setting.policies.visibility

    def build() -> Select[Any]:
        return select(i).where(own(tables, setting, i, named), tables.dialect.ids_in(i.c.id, ids, "ids"))

    mine = seen_rows(tables, tables.corpora[KIND], scope, policy, ())
    statement = tables.statements.get(("items by ids", mine.form), build)
    found = conn.execute(statement, {**mine.values, "ids": tables.dialect.id_list(ids)})
    return {row.id: row for row in found}


def listed(conn: Connection, tables: Tables, setting: Setting, op: ListNamespaces) -> list[Path]:
    """Return the namespaces that have items, in order, a page of them."""
    i = tables.store_items
    starts = [condition for pattern in op.prefixes for condition in inside(i, namespaces.fixed(pattern))]
    still = fresh(tables, _now(conn, tables, omit_expired=op.omit_expired))
    names = conn.scalars(select(i.c.namespace).where(own(tables, setting, i), *starts, *still).distinct())
    paths = (
        path
        for path in map(namespaces.decode, names)
        if all(namespaces.begins(path, pattern) for pattern in op.prefixes)
        and all(namespaces.ends(path, pattern) for pattern in op.suffixes)
    )
    return sorted({path[: op.max_depth] for path in paths})[op.offset : op.offset + op.limit]


def item(row: Row[Any], score: float | None = None) -> Item:
    """Return the record of a row."""
    names = ("key", "value", "ttl_minutes", "expires_at", "created_at", "updated_at")
    return Item(namespace=namespaces.decode(row.namespace), score=score, **{name: row._mapping[name] for name in names})
