"""What the metadata of a document must say, as a mapping: on any key, without a column for it.

| filter | meets |
| --- | --- |
| `{"a": 1, "b": "x"}` | metadata in which both are equal |
| `{"a": {"b": 1}}` | a mapping under `a` in which `b` is equal, whatever else is in it |
| `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` | `{"a": {"$gte": 10, "$lt": 20}}`; numbers as numbers, texts as texts |
| `$in`, `$nin` | one of a list, none of a list |
| `$between` | two bounds, both included |
| `$contains` | a list that has the value |
| `$like`, `$ilike` | a text; `%` stands for anything and may open or close the pattern; `$ilike` ignores case |
| `$exists` | whether there is a value that is not None |
| `$and`, `$or` | a list of filters |
| `$not` | a filter, or an operator of one key |

What is missing is equal to nothing and compares with nothing: `$ne`, `$nin` and `$not` let it through. A datetime, date
or Decimal is compared with its like, in the order of its ISO text.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memoranda import metadata as codec
from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not, Operator

_Path = tuple[str, ...]
_TYPE, _VALUE = "$type", "value"  # how metadata keeps what JSON does not know
_LAST = "\U0010ffff"


def condition(given: Mapping[str, Any] | None) -> Condition | None:
    """Return the engine's condition for a filter, None for none.

    Raises:
        ValueError: it is no filter.
        InvalidInput: a value cannot be compared.
    """
    return None if given is None else _all(given, ())


def _all(given: Mapping[str, Any], path: _Path) -> Condition:
    if not isinstance(given, Mapping):
        raise ValueError("a filter is a mapping of metadata keys to values or operators")
    return AllOf(tuple(_one(name, value, path) for name, value in given.items()))


def _one(name: str, value: Any, path: _Path) -> Condition:
    if name in ("$and", "$or"):
        parts = tuple(_all(part, path) for part in _list(value, name))
        return AllOf(parts) if name == "$and" else AnyOf(parts)
    if name == "$not":
        return Not(_all(value, path) if isinstance(value, Mapping) or not path else _equal(path, value))
    if isinstance(name, str) and name.startswith("$"):
        if name not in _OPERATORS or not path:
            raise ValueError(f"{name} is no operator here: {', '.join(sorted(_OPERATORS))} stand below a key")
        return _OPERATORS[name](path, value)
    below = (*path, name)
    return _all(value, below) if isinstance(value, Mapping) and value else _equal(below, value)


def _list(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{name} takes a list")
    return value


def _equal(path: _Path, value: Any) -> Condition:
    return Compare(path, "eq", codec.encode(value))


def _among(path: _Path, value: Any, name: str) -> Condition:
    return Compare(path, "in", [codec.encode(item) for item in _list(value, name)])


def _ordered(operator: Operator) -> Callable[[_Path, Any], Condition]:
    def compared(path: _Path, value: Any) -> Condition:
        encoded = codec.encode(value)
        if isinstance(encoded, dict) and isinstance(encoded.get(_VALUE), str):
            alike = Compare((*path, _TYPE), "eq", encoded.get(_TYPE))
            return AllOf((alike, Compare((*path, _VALUE), operator, encoded[_VALUE])))
        return Compare(path, operator, encoded)

    return compared


def _between(path: _Path, value: Any) -> Condition:
    if len(bounds := _list(value, "$between")) != 2:
        raise ValueError("$between takes two bounds")
    return AllOf((_ordered("gte")(path, bounds[0]), _ordered("lte")(path, bounds[1])))


def _like(path: _Path, value: Any, *, insensitive: bool) -> Condition:
    if not isinstance(value, str) or "%" in value[1:-1]:
        raise ValueError("a pattern is a text in which % may only open or close it")
    said, opens, closes = value.strip("%"), value.startswith("%"), value.endswith("%")
    if opens and closes:
        return Compare(path, "text_insensitive" if insensitive else "text", said)
    if insensitive or opens:
        raise ValueError("patterns of the kind %text% are searched for, and text% with $like")
    return AllOf((Compare(path, "gte", said), Compare(path, "lt", said + _LAST))) if closes else _equal(path, said)


_OPERATORS: Mapping[str, Callable[[_Path, Any], Condition]] = {
    "$eq": _equal,
    "$ne": lambda path, value: Not(_equal(path, value)),
    "$gt": _ordered("gt"),
    "$gte": _ordered("gte"),
    "$lt": _ordered("lt"),
    "$lte": _ordered("lte"),
    "$in": lambda path, value: _among(path, value, "$in"),
    "$nin": lambda path, value: Not(_among(path, value, "$nin")),
    "$between": _between,
    "$contains": lambda path, value: Compare(path, "has", codec.encode(value)),
    "$like": lambda path, value: _like(path, value, insensitive=False),
    "$ilike": lambda path, value: _like(path, value, insensitive=True),
    "$exists": lambda path, value: Compare(path, "exists") if value else Not(Compare(path, "exists")),
}
