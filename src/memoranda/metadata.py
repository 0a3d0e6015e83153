"""Metadata as JSON that gives back what was put in.

Values JSON does not know are tagged: `{"$type": "decimal", "value": "1.10"}`. What cannot come back as it was is
refused at the call, with the place and the remedy.
"""

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from memoranda.errors import InvalidInput
from memoranda.text import clean

_TAG = "$type"
_DEPTH_LIMIT = 32
_INTEGER_LIMIT = 2**63  # beyond it SQLite's JSON functions read a rounded float

_ENCODERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    UUID: ("uuid", str),
    Decimal: ("decimal", str),
    bytes: ("bytes", bytes.hex),
}
_DECODERS: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda v: timedelta(*v),
    "uuid": UUID,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "float": float,
    "tuple": lambda v: tuple(map(decode, v)),
    "set": lambda v: set(map(decode, v)),
    "frozenset": lambda v: frozenset(map(decode, v)),
    "mapping": lambda v: {key: decode(item) for key, item in v},
}


def encode(value: object, place: str = "metadata", depth: int = 0) -> Any:
    """Return the JSON form of a value; `decode` gives the value back.

    Raises:
        InvalidInput: the value, or one inside it, would not come back as it was.
    """
    if depth > _DEPTH_LIMIT:
        raise InvalidInput(f"{place} is nested deeper than {_DEPTH_LIMIT} levels or contains itself", field="metadata")
    if isinstance(value, Enum):
        raise InvalidInput(f"{place} is a member of an Enum: store its .value", field="metadata")
    if hasattr(value, "model_dump"):
        raise InvalidInput(f"{place} is a pydantic model: store what its .model_dump() returns", field="metadata")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return clean(str(value))
    if isinstance(value, int) and kind is int:
        if not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
            raise InvalidInput(
                f"{place} is a whole number of more than 64 bits: store it as a string", field="metadata"
            )
        return value
    if isinstance(value, float) and kind is float:
        if not math.isfinite(value):
            raise InvalidInput(f"{place} is not a finite number", field="metadata")
        # Postgres' jsonb writes 1e+16 as a whole number and drops the sign of -0.0.
        return {_TAG: "float", "value": repr(value)} if "e+" in repr(value) or repr(value) == "-0.0" else value
    if kind is dict:
        return _encode_mapping(value, place, depth)  # type: ignore[arg-type]
    if kind is list:
        return [encode(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]  # type: ignore[arg-type,var-annotated]
    if kind in (tuple, set, frozenset):
        items = [encode(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]  # type: ignore[arg-type,var-annotated]
        return {_TAG: kind.__name__, "value": items if kind is tuple else sorted(items, key=repr)}
    if isinstance(value, time) and value.tzinfo is not None and value.utcoffset() is None:
        raise InvalidInput(f"{place} is a time in a zone without a day, which has no offset", field="metadata")
    if kind in _ENCODERS:
        name, encoder = _ENCODERS[kind]
        return {_TAG: name, "value": encoder(value)}
    raise InvalidInput(f"{place} is of type {kind.__name__}, which cannot be stored: store a string", field="metadata")


def _encode_mapping(value: Mapping[object, object], place: str, depth: int) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str) or isinstance(key, Enum):
            raise InvalidInput(f"{place} has a key that is not a string", field="metadata")
        name = clean(key)
        if name in items:
            raise InvalidInput(f"{place} has two keys that are one once they are cleaned", field="metadata")
        items[name] = encode(item, f"{place}.{name[:40]}", depth + 1)
    if _TAG in items:
        return {_TAG: "mapping", "value": [[key, item] for key, item in items.items()]}
    return items


def loads(text: str) -> Any:
    """Return what `encode` was given, from its JSON."""
    value = json.loads(text)
    return decode(value) if _TAG in text else value  # most texts hold no tag, and there are hundreds in a window


def decode(value: Any) -> Any:
    """Return the value that `encode` was given."""
    if isinstance(value, dict):
        if _TAG in value:
            return _DECODERS[value[_TAG]](value["value"])
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value
