"""What JSON must say to be found: conditions on the values under a path, the same on every database.

Values are compared with their like: numbers with numbers, strings with strings, true and false with each other. A path
that leads nowhere meets no comparison; whoever counts it as different asks for `Not`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from memoranda.errors import InvalidInput
from memoranda.text import clean

Operator: TypeAlias = Literal[
    "eq", "gt", "gte", "lt", "lte", "in", "has", "text", "text_insensitive", "exists", "empty"
]

_OPERATORS: frozenset[str] = frozenset(get_args(Operator))
_ORDERS = frozenset({"gt", "gte", "lt", "lte"})
_DEPTH_LIMIT = 32
_INTEGER_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of what lies at a path of keys with a value.

    `eq` takes any JSON value. `gt`, `gte`, `lt` and `lte` take a number or a string; strings are ordered by their code
    points. `in` takes a sequence of values of which one must be equal. `has` looks for a value among the elements of an
    array, `text` for a string inside a string, `text_insensitive` without regard to the case of ASCII letters. `exists`
    asks for anything but null, `empty` for nothing, null or something without length; both take no value.

    Raises:
        InvalidInput: the path is empty, the operator is unknown, or the value is of no kind it can be compared with.
    """

    path: tuple[str, ...]
    operator: Operator
    value: Any = None

    def __post_init__(self) -> None:
        """Refuse what no row could meet."""
        if not self.path or not all(isinstance(key, str) for key in self.path):
            raise InvalidInput("a filter needs a path of one key or more, each a string", field="filter")
        object.__setattr__(self, "path", tuple(map(clean, self.path)))
        if self.operator not in _OPERATORS:
            raise InvalidInput(f"filters know {', '.join(sorted(_OPERATORS))}", field="filter")
        wanted: Any = self.value
        if self.operator == "in":
            if isinstance(wanted, str) or not isinstance(wanted, Sequence):
                raise InvalidInput("`in` takes a list of values", field="filter")
            wanted = tuple(map(_json, wanted))
        elif self.operator in _ORDERS:
            if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
                raise InvalidInput(f"`{self.operator}` takes a number or a string", field="filter")
            wanted = _json(wanted)
        elif self.operator in ("text", "text_insensitive"):
            if not isinstance(wanted, str):
                raise InvalidInput(f"`{self.operator}` takes a string", field="filter")
            wanted = clean(wanted)
        elif self.operator in ("eq", "has"):
            wanted = _json(wanted)
        elif wanted is not None:
            raise InvalidInput(f"`{self.operator}` takes no value", field="filter")
        object.__setattr__(self, "value", wanted)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Holds when every condition does, and so when there is none."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Holds when one of the conditions does, and so never when there is none."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """Holds when the condition does not."""

    condition: "Condition"


Condition: TypeAlias = Compare | AllOf | AnyOf | Not


def _json(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON holds it.

    Raises:
        InvalidInput: JSON does not know it.
    """
    if depth > _DEPTH_LIMIT:
        raise InvalidInput(f"a filter's value is nested deeper than {_DEPTH_LIMIT} levels", field="filter")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(str(value))
    if isinstance(value, int) and -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return [_json(item, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {clean(key): _json(item, depth + 1) for key, item in value.items()}
    raise InvalidInput("a filter compares with what JSON knows: strings, numbers, lists, mappings", field="filter")
