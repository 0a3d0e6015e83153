"""What may be asked of items, in batches or one by one; each is checked when it is made.

In a batch the reading operations see what was there before it, whatever stands before them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from memoranda import metadata, namespaces
from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not
from memoranda.errors import InvalidInput
from memoranda.namespaces import Path
from memoranda.text import clean

_LONGEST_TTL = 366 * 24 * 60 * 1000
"""Minutes: about a thousand years, which both databases can add to now."""
_LARGEST = 2**31
_WHOLE = "$"
"""Where a text comes from that is the whole value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keyed:
    """Something about one item.

    Raises:
        InvalidInput: namespace or key cannot be used.
    """

    namespace: Path
    key: str

    def __post_init__(self) -> None:
        """Check namespace and key."""
        object.__setattr__(self, "namespace", namespaces.checked(self.namespace))
        namespaces.checked_key(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetItem(_Keyed):
    """Return an item, None when there is none."""

    refresh: bool = False
    """Whether its time begins anew, where it has one."""
    omit_expired: bool = False
    """Whether an item whose time is over counts as gone before it is swept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutItem(_Keyed):
    """Store a value in place of the one that is there.

    Raises:
        InvalidInput: the value would not come back as it was, a text is none, or the time is no positive number.
    """

    value: Mapping[str, Any] = field(repr=False)
    texts: Mapping[str, str] | None = field(default=None, repr=False)
    """What it is found by, each text under where it comes from; the whole value as JSON when left out."""
    ttl_minutes: float | None = None
    """How long it is kept after it was last written or refreshed; None for ever."""

    def __post_init__(self) -> None:
        """Check everything, and keep what comes back from the database, independent of the caller's mapping."""
        _Keyed.__post_init__(self)
        if not isinstance(self.value, Mapping):
            raise InvalidInput("value must be a mapping of names to values", field="value")
        try:
            encoded = metadata.encode(dict(self.value), "value")
        except InvalidInput as error:
            raise InvalidInput(str(error), field="value") from None
        object.__setattr__(self, "value", metadata.decode(encoded))
        texts = {_WHOLE: json.dumps(encoded, ensure_ascii=False)} if self.texts is None else self.texts
        if not isinstance(texts, Mapping) or not all(isinstance(text, str) for pair in texts.items() for text in pair):
            raise InvalidInput("texts must be a mapping of names to texts", field="texts")
        object.__setattr__(self, "texts", {clean(path): clean(text) for path, text in texts.items() if text.strip()})
        if self.ttl_minutes is not None:
            if isinstance(self.ttl_minutes, bool) or not isinstance(self.ttl_minutes, int | float):
                raise InvalidInput("ttl_minutes must be a number", field="ttl_minutes")
            if not math.isfinite(self.ttl_minutes) or not 0 < self.ttl_minutes <= _LONGEST_TTL:
                raise InvalidInput(f"ttl_minutes must be between 0 and {_LONGEST_TTL:,}", field="ttl_minutes")
            object.__setattr__(self, "ttl_minutes", float(self.ttl_minutes))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteItem(_Keyed):
    """Remove an item, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchItems:
    """Return the items below a namespace, best first for a query, else the newest first.

    What answers a query stands first; items that are found by no text follow, the newest first, without a score.

    Raises:
        InvalidInput: an argument cannot be used.
    """

    namespace: Path = ()
    """The labels that their namespaces begin with."""
    query: str | None = field(default=None, repr=False)
    where: Condition | None = field(default=None, repr=False)
    """What their values must say."""
    limit: int = 10
    offset: int = 0
    refresh: bool = False
    omit_expired: bool = False

    def __post_init__(self) -> None:
        """Check everything; a query that says nothing is none."""
        object.__setattr__(self, "namespace", namespaces.checked(self.namespace, empty=True))
        if self.query is not None and not isinstance(self.query, str):
            raise InvalidInput("query must be a string", field="query")
        object.__setattr__(self, "query", self.query if self.query and self.query.strip() else None)
        if self.where is not None and not isinstance(self.where, Compare | AllOf | AnyOf | Not):
            raise InvalidInput("where must be a condition of memoranda.conditions", field="where")
        _check_page(self.limit, self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListNamespaces:
    """Return the namespaces that have items, in order.

    Raises:
        InvalidInput: an argument cannot be used.
    """

    prefixes: Sequence[Path] = ()
    """What they must begin with, each of them; `*` stands for one label."""
    suffixes: Sequence[Path] = ()
    """What they must end with."""
    max_depth: int | None = None
    """Longer ones are cut to so many labels, and given once."""
    limit: int = 100
    offset: int = 0
    omit_expired: bool = False

    def __post_init__(self) -> None:
        """Check everything."""
        for name in ("prefixes", "suffixes"):
            patterns = tuple(namespaces.checked(pattern, empty=True) for pattern in getattr(self, name))
            object.__setattr__(self, name, patterns)
        if self.max_depth is not None and not _whole(self.max_depth, 1):
            raise InvalidInput("max_depth must be a whole number from 1 on", field="max_depth")
        _check_page(self.limit, self.offset)


ItemOperation: TypeAlias = GetItem | PutItem | DeleteItem | SearchItems | ListNamespaces


def _check_page(limit: object, offset: object) -> None:
    for name, number in (("limit", limit), ("offset", offset)):
        if not _whole(number, 0):
            raise InvalidInput(f"{name} must be a whole number from 0 on", field=name)


def _whole(number: object, least: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number < _LARGEST
