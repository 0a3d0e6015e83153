"""Items as they are written, with the texts they are found by and the time after which they go.

Whoever changes items does it in one order, so that two who change the same ones wait for each other and never for ever;
whoever only refreshes or sweeps passes over what another has locked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
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
    select,
    update,
)

from memoranda.db.inserts import Addition, Values
from memoranda.db.queries import jobs
from memoranda.db.queries.items import KIND, Name, called, grouped, own
from memoranda.db.queries.vectors import VECTOR, vector_row
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.ids import new_id
from memoranda.scope import Scope

_SWEPT = 1_000  # items swept in one transaction


class Withdrawn(Exception):
    """Somebody deleted an item while another one was about to be stored in its place."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # it holds the text
class TextDraft:
    """A text of an item as it is about to be stored."""

    path: str
    content: str
    content_terms: str
    length: int
    vector: Any = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ItemDraft:
    """An item as it is about to be stored."""

    namespace: str
    key: str
    value: dict[str, Any]
    ttl_minutes: float | None
    cells: str
    texts: tuple[TextDraft, ...]

    @property
    def name(self) -> "Name":
        """Its namespace and its key."""
        return self.namespace, self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What the vectors of texts are made by."""

    model: str | None
    """As name@dimensions; None for words only."""
    own: bool
    """Whether it is the store's own embedder."""


def change(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    gone: Sequence[Name],
    drafts: Sequence[ItemDraft],
    making: Making,
) -> Sequence[UUID]:
    """Delete items, and store others in place of those of the same names; no name occurs twice.

    Returns:
        The ids of texts that still want a vector of the store's embedder.

    Raises:
        Withdrawn: what stood in the way of an insert is gone: nothing was changed, and a new transaction may try again.
    """
    # Inserted first, in one order, and then locked, in one order: so nobody waits for an insert while holding a row.
    fresh = sorted(drafts, key=lambda draft: draft.name)
    made = {draft.name: new_id() for draft in fresh}
    inserted = _insert(conn, tables, setting, fresh, made)
    there = _locked(conn, tables, setting, [*gone, *made]) if gone or inserted < len(made) else made
    if not made.keys() <= there.keys():
        raise Withdrawn
    _delete(conn, tables, setting.scope, [identifier for name, identifier in there.items() if name not in made])
    old = [draft for draft in fresh if there[draft.name] != made[draft.name]]
    before = _replaced(conn, tables, setting, old, there) if old else None
    return _store_texts(conn, tables, setting, drafts, there, making, before)


def refresh(conn: Connection, tables: Tables, setting: Setting, ids: Sequence[UUID]) -> None:
    """Let the time of items begin anew."""
    i, now = tables.store_items, tables.dialect.now(conn)
    chosen = (own(tables, setting, i), tables.dialect.ids_in(i.c.id, ids), i.c.ttl_minutes.is_not(None))
    locked = conn.execute(select(i.c.id, i.c.ttl_minutes).where(*chosen).with_for_update(skip_locked=True)).all()
    _set(conn, tables, setting.scope, [{"one": r.id, "expires_at": _after(now, r.ttl_minutes)} for r in locked])


def sweep(conn: Connection, tables: Tables, setting: Setting) -> int:
    """Delete items whose time is over, a thousand at most, and return how many."""
    i, now = tables.store_items, tables.dialect.now(conn)
    over = select(i.c.id).where(own(tables, setting, i), i.c.expires_at <= now).order_by(i.c.expires_at).limit(_SWEPT)
    return _delete(conn, tables, setting.scope, list(conn.scalars(over.with_for_update(skip_locked=True))))


def _locked(conn: Connection, tables: Tables, setting: Setting, names: Sequence[Name]) -> dict[Name, UUID]:
    """Return the ids of the items of these names, locked until the transaction ends, in one order."""
    i, asked = tables.store_items, called(tables, setting, grouped(names))

    def build() -> Select[Any]:
        found = select(i.c.id, i.c.namespace, i.c.key).where(asked.where(i))
        return found.order_by(i.c.namespace, i.c.key).with_for_update()

    form = asked.form and ("items locked", asked.form)
    rows = conn.execute(tables.statements.get(form, build), asked.values)
    return {(row.namespace, row.key): row.id for row in rows}


def _replaced(
    conn: Connection, tables: Tables, setting: Setting, drafts: Sequence[ItemDraft], ids: Mapping[Name, UUID]
) -> Callable[[], None]:
    """Return what gives items that are there new values, and takes their texts and vectors away."""
    until = _until(conn, tables, drafts)
    rows = [
        {
            "one": ids[draft.name],
            "value": draft.value,
            "ttl_minutes": draft.ttl_minutes,
            "expires_at": until(draft),
            "updated_at": setting.now,
        }
        for draft in drafts
    ]

    def replace() -> None:
        _set(conn, tables, setting.scope, rows)
        _delete_texts(conn, tables, setting.scope, [ids[draft.name] for draft in drafts])

    return replace


def _set(conn: Connection, tables: Tables, scope: Scope, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    i, names = tables.store_items, tuple(name for name in rows[0] if name != "one")

    def build() -> Update:
        # The names of columns are those of their new values.
        own = (i.c.tenant == bindparam("of_tenant"), i.c.persona == bindparam("of_persona"))
        return update(i).where(*own, i.c.id == bindparam("one")).values({name: bindparam(name) for name in names})

    own = {"of_tenant": scope.tenant, "of_persona": scope.persona}
    conn.execute(tables.statements.get(("items set", names), build), [{**own, **row} for row in rows])


def _insert(
    conn: Connection, tables: Tables, setting: Setting, drafts: Sequence[ItemDraft], ids: Mapping[Name, UUID]
) -> int:
    """Insert those of the items that are not there, in their order, and return how many were."""
    if not drafts:
        return 0
    until = _until(conn, tables, drafts)
    rows = [
        _whose(setting.scope)
        | {
            "id": ids[draft.name],
            "namespace": draft.namespace,
            "key": draft.key,
            "value": draft.value,
            "ttl_minutes": draft.ttl_minutes,
            "expires_at": until(draft),
            "created_at": setting.now,
            "updated_at": setting.now,
        }
        for draft in drafts
    ]
    return tables.inserts.add(conn, tables.store_items, rows, skip_conflicts=True)


def _store_texts(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    drafts: Sequence[ItemDraft],
    ids: Mapping[Name, UUID],
    making: Making,
    first: Callable[[], None] | None,
) -> Sequence[UUID]:
    scope, whose = setting.scope, (setting.scope.tenant, setting.scope.persona)
    texts, made, wanting = list[dict[str, Any]](), list[Values](), list[UUID]()
    for draft in drafts:
        same = _whose(scope) | {
            "item_id": ids[draft.name],
            "namespace": draft.namespace,
            "embedder": None if making.own else making.model,
            "created_at": setting.now,
            "cells": draft.cells,
            "category_terms": "",
        }
        for position, text in enumerate(draft.texts):
            identifier = new_id()
            texts.append(
                same
                | {
                    "id": identifier,
                    "position": position,
                    "path": text.path,
                    "content": text.content,
                    "content_terms": text.content_terms,
                    "length": text.length,
                }
            )
            if making.model is None:
                continue
            if text.vector is None:
                wanting.append(identifier)
            else:
                made.append(vector_row(whose, identifier, making.model, text.vector, KIND))
    additions = [Addition.of(tables.store_item_texts, texts), Addition(tables.vectors, VECTOR, made)]
    tables.inserts.add_together(conn, additions, first)
    if wanting and making.own and setting.leaves_jobs:
        jobs.enqueue_embedding(conn, tables, whose, wanting, KIND)
    return wanting


def _delete(conn: Connection, tables: Tables, scope: Scope, ids: Sequence[UUID]) -> int:
    if not ids:
        return 0
    i = tables.store_items
    _delete_texts(conn, tables, scope, ids)

    def build() -> Delete:
        return delete(i).where(*_place(i), tables.dialect.ids_in(i.c.id, ids, "ids"))

    gone = tables.statements.get("items deleted", build)
    return conn.execute(gone, _among(tables, scope, ids)).rowcount


def _delete_texts(conn: Connection, tables: Tables, scope: Scope, items: Sequence[UUID]) -> None:
    t, v = tables.store_item_texts, tables.vectors

    def theirs() -> ColumnElement[bool]:
        return and_(*_place(t), tables.dialect.ids_in(t.c.item_id, items, "ids"))

    def vectors() -> Delete:
        return delete(v).where(*_place(v), v.c.kind == KIND, v.c.owner.in_(select(t.c.id).where(theirs())))

    values = _among(tables, scope, items)
    conn.execute(tables.statements.get("vectors of items deleted", vectors), values)
    conn.execute(tables.statements.get("texts of items deleted", lambda: delete(t).where(theirs())), values)


def _until(conn: Connection, tables: Tables, drafts: Sequence[ItemDraft]) -> Callable[[ItemDraft], datetime | None]:
    """Return what says when an item's time is over, by the database's clock."""
    if all(draft.ttl_minutes is None for draft in drafts):
        return lambda draft: None
    now = tables.dialect.now(conn)
    return lambda draft: None if draft.ttl_minutes is None else _after(now, draft.ttl_minutes)


def _after(now: datetime, minutes: float) -> datetime:
    return now + timedelta(minutes=minutes)


def _whose(scope: Scope) -> dict[str, Any]:
    return {"tenant": scope.tenant, "persona": scope.persona, "author": scope.author}


def _place(table: FromClause) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.tenant == bindparam("tenant"), table.c.persona == bindparam("persona")


def _among(tables: Tables, scope: Scope, ids: Sequence[UUID]) -> dict[str, Any]:
    """Return the values of statements about rows of a scope that are named by their ids."""
    return {"tenant": scope.tenant, "persona": scope.persona, "ids": tables.dialect.id_list(ids)}
