"""Conditions on JSON, in SQLite's functions.

`json_extract` gives a number for a number and text for all else that is no scalar, so that every comparison asks for
the type first. Its paths know no key with a quote or an escaped letter in it: such keys are looked for one by one.
"""

import re
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Integer,
    Select,
    String,
    TableValuedAlias,
    and_,
    bindparam,
    case,
    column,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    type_coerce,
)

from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not

_Step: TypeAlias = str | int
_PLAIN = re.compile(r"[ !#-\[\]-~]*")  # printable ASCII without the quote and the backslash
_NUMBERS = ("integer", "real")


class _Value(NamedTuple):
    """What lies at a place: its type, NULL where nothing lies, and it itself, as text where it has an inside."""

    type: ColumnElement[Any]
    content: ColumnElement[Any]


def condition(rows: ColumnElement[Any], wanted: Condition) -> ColumnElement[bool]:
    """Return what a column of JSON text must meet; never NULL."""
    if isinstance(wanted, AllOf):
        return and_(literal(True), *(condition(rows, one) for one in wanted.conditions))
    if isinstance(wanted, AnyOf):
        return or_(false(), *(condition(rows, one) for one in wanted.conditions))
    if isinstance(wanted, Not):
        return not_(condition(rows, wanted.condition))
    return func.coalesce(_compared(_at(type_coerce(rows, String), wanted.path), wanted), literal(False))


def _at(document: ColumnElement[Any], path: tuple[_Step, ...]) -> _Value:
    """Return what lies at a path of a document, which may be NULL."""
    plain = next((n for n, step in enumerate(path) if isinstance(step, str) and not _PLAIN.fullmatch(step)), len(path))
    if plain:
        steps = "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in path[:plain])
        where = bindparam(None, f"${steps}", type_=String)
        value = _Value(func.json_type(document, where), func.json_extract(document, where))
        rest = path[plain:]
    else:
        inside = _inside(document)
        found: Select[Any] = select(inside.c.type).where(inside.c.key == path[0])
        value = _Value(found.scalar_subquery(), found.with_only_columns(inside.c.value).scalar_subquery())
        rest = path[1:]
    return _at(_opened(value, "object"), rest) if rest else value


def _inside(document: ColumnElement[Any]) -> TableValuedAlias:
    columns: tuple[ColumnClause[Any], ...] = (column("key", String), column("type", String), column("value"))
    return func.json_each(document).table_valued(*columns)


def _opened(value: _Value, kind: str) -> ColumnElement[Any]:
    """Return a value that has an inside of this kind, else NULL, which opens into nothing."""
    return case((value.type == kind, value.content))


def _compared(value: _Value, wanted: Compare) -> ColumnElement[bool]:
    operator, other = wanted.operator, wanted.value
    if operator == "eq":
        return _equal(value, other)
    if operator == "in":
        return _among(value, other)
    if operator == "has":
        inside = _inside(_opened(value, "array"))
        return select(inside.c.key).where(_equal(_Value(inside.c.type, inside.c.value), other)).exists()
    if operator == "exists":
        return and_(value.type.is_not(None), value.type != "null")
    if operator == "empty":
        lengthless = [and_(value.type == kind, value.content == text) for kind, text in _LENGTHLESS]
        return or_(value.type.is_(None), value.type == "null", *lengthless)
    if operator == "text":
        return and_(value.type == "text", func.instr(value.content, other) > 0)
    if operator == "text_insensitive":
        return and_(value.type == "text", func.instr(func.lower(value.content), func.lower(literal(other))) > 0)
    like = value.type == "text" if isinstance(other, str) else value.type.in_(_NUMBERS)
    said = value.content
    ordered = {"gt": said > other, "gte": said >= other, "lt": said < other, "lte": said <= other}
    return and_(like, ordered[operator])


_LENGTHLESS = (("text", ""), ("array", "[]"), ("object", "{}"))


def _equal(value: _Value, other: Any) -> ColumnElement[bool]:
    if other is None:
        return value.type == "null"
    if isinstance(other, bool):
        return value.type == ("true" if other else "false")
    if isinstance(other, str):
        return and_(value.type == "text", value.content == other)
    if isinstance(other, int | float):
        return and_(value.type.in_(_NUMBERS), value.content == other)
    if isinstance(other, list):
        document = _opened(value, "array")
        parts = [_equal(_at(document, (place,)), item) for place, item in enumerate(other)]
        return and_(func.json_array_length(document) == len(other), *parts)
    document = _opened(value, "object")
    keys = select(func.count(type_=Integer)).select_from(_inside(document)).scalar_subquery()
    parts = [_equal(_at(document, (key,)), item) for key, item in other.items()]
    return and_(value.type == "object", keys == len(other), *parts)


def _among(value: _Value, others: tuple[Any, ...]) -> ColumnElement[bool]:
    texts = [other for other in others if isinstance(other, str)]
    numbers = [other for other in others if isinstance(other, int | float) and not isinstance(other, bool)]
    rest = [other for other in others if other is None or isinstance(other, bool | list | dict)]
    return or_(
        false(),
        and_(value.type == "text", value.content.in_(texts)) if texts else false(),
        and_(value.type.in_(_NUMBERS), value.content.in_(numbers)) if numbers else false(),
        *(_equal(value, other) for other in rest),
    )
