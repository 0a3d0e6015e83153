"""Between records and rows of the table of memories."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, Table, select, union

from memoranda import metadata
from memoranda.drafts import Draft
from memoranda.records import Memory
from memoranda.scope import project_key

FIELDS = tuple(field.name for field in fields(Memory))
_OF_DRAFT = ("dedupe_key", "cells", "category_terms", "content_terms", "length")
STORED = (*FIELDS, "project_key", *_OF_DRAFT)
"""The columns of a memory's row."""
_of_record, _of_draft = attrgetter(*FIELDS), attrgetter(*_OF_DRAFT)


def columns(m: FromClause) -> list[ColumnElement[Any]]:
    """Return the columns a record is made of."""
    return [m.c[name] for name in FIELDS]


def memory(row: Sequence[Any]) -> Memory:
    """Return the record of a row that begins with `columns`."""
    return Memory(**dict(zip(FIELDS, row, strict=False)))


def values(draft: Draft) -> tuple[Any, ...]:
    """Return the row a draft becomes: a value for each of `STORED`."""
    return (*_of_record(draft.memory), project_key(draft.memory.project), *_of_draft(draft))


def image(record: Memory) -> Any:
    """Return a record as JSON, for the table of versions."""
    # One level up, so that the metadata inside may be as deep as at the call.
    return metadata.encode({name: getattr(record, name) for name in FIELDS}, depth=-1)


def from_image(value: Any) -> Memory:
    """Return the record that `image` was given."""
    return Memory(**metadata.decode(value))


def chain(m: Table, own: Sequence[ColumnElement[bool]], named: ColumnElement[bool]) -> Select[Any]:
    """Return the ids of rows, of all they replaced and of all that replaced them."""
    start = select(m.c.id, m.c.superseded_by).where(*own, named)
    older = start.cte("older", recursive=True)
    older = older.union(select(m.c.id, m.c.superseded_by).where(*own, m.c.superseded_by == older.c.id))
    newer = start.cte("newer", recursive=True)
    newer = newer.union(select(m.c.id, m.c.superseded_by).where(*own, m.c.id == newer.c.superseded_by))
    return select(union(select(older.c.id), select(newer.c.id)).subquery().c.id)
