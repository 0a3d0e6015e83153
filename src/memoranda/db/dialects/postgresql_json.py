"""Conditions on JSON, in the operators of Postgres' jsonb."""

import json
from typing import Any

from sqlalchemy import (
    ColumnElement,
    String,
    and_,
    bindparam,
    case,
    cast,
    column,
    false,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not

_LENGTHLESS = ("null", '""', "[]", "{}")


def condition(rows: ColumnElement[Any], wanted: Condition) -> ColumnElement[bool]:
    """Return what a column of jsonb must meet; never NULL."""
    if isinstance(wanted, AllOf):
        return and_(literal(True), *(condition(rows, one) for one in wanted.conditions))
    if isinstance(wanted, AnyOf):
        return or_(false(), *(condition(rows, one) for one in wanted.conditions))
    if isinstance(wanted, Not):
        return not_(condition(rows, wanted.condition))
    path = cast(bindparam(None, list(wanted.path), type_=ARRAY(String)), ARRAY(String))
    value = type_coerce(rows, JSONB).op("#>", return_type=JSONB())(path)
    return func.coalesce(_compared(value, wanted), literal(False))


def _compared(value: ColumnElement[Any], wanted: Compare) -> ColumnElement[bool]:
    operator, other = wanted.operator, wanted.value
    if operator == "eq":
        return value == _json(other)
    if operator == "in":
        return or_(false(), *(value == _json(one) for one in other))
    if operator == "has":
        opened = case((_is(value, "array"), value), else_=_json([]))
        element = func.jsonb_array_elements(opened).table_valued(column("value", JSONB))
        return select(literal_column("1")).select_from(element).where(element.c.value == _json(other)).exists()
    if operator == "exists":
        return and_(value.is_not(None), not_(_is(value, "null")))
    if operator == "empty":
        return or_(value.is_(None), *(value == cast(literal(text), JSONB) for text in _LENGTHLESS))
    said = value.op("#>>", return_type=String())(literal_column("'{}'")).collate("C")
    if operator == "text":
        return and_(_is(value, "string"), func.strpos(said, other) > 0)
    if operator == "text_insensitive":
        return and_(_is(value, "string"), func.strpos(func.lower(said), func.lower(literal(other).collate("C"))) > 0)
    # Two numbers are compared as numbers, but strings in the order of the database's language.
    left, right, kind = (said, other, "string") if isinstance(other, str) else (value, _json(other), "number")
    ordered = {"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}
    return and_(_is(value, kind), ordered[operator])


def _is(value: ColumnElement[Any], kind: str) -> ColumnElement[bool]:
    return func.jsonb_typeof(value, type_=String) == kind


def _json(value: Any) -> ColumnElement[Any]:
    return cast(bindparam(None, json.dumps(value), type_=String), JSONB)
