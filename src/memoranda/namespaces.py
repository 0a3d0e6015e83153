"""Namespaces of items: paths of labels, and the one text that stands for such a path.

Each label is followed by a full stop, and a full stop or a percent sign inside one is written as `%2E` or `%25`:
`("a", "b.c")` is `a.b%2Ec.`. So no two paths share a text, and all that lies below a path is one range of texts.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from memoranda.errors import InvalidInput
from memoranda.scope import author_cell, namespace_cell
from memoranda.text import clean

Path: TypeAlias = tuple[str, ...]

ANY = "*"
"""In a pattern: exactly one label, whatever it is."""
NAMESPACE_BYTES, KEY_BYTES = 800, 600
"""The longest text of a namespace, and the longest key: they stand in one index entry with three other names."""


def checked(namespace: object, *, empty: bool = False) -> Path:
    """Return a namespace as a tuple.

    Raises:
        InvalidInput: it is no list of labels, too long, or, unless `empty`, has none; or a label is no text.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Iterable):
        raise InvalidInput("namespace must be a list of labels", field="namespace")
    labels = tuple(namespace)
    if not labels and not empty:
        raise InvalidInput("namespace must have a label", field="namespace")
    for label in labels:
        if not isinstance(label, str) or not label:
            raise InvalidInput("a label of a namespace must be a string that is not empty", field="namespace")
        if clean(label) != label:
            raise InvalidInput("a label of a namespace must not hold NUL or half of a character", field="namespace")
    if len(encode(labels).encode()) > NAMESPACE_BYTES:
        raise InvalidInput(f"namespace must have at most {NAMESPACE_BYTES} bytes", field="namespace")
    return labels


def checked_key(key: object) -> str:
    """Return a key.

    Raises:
        InvalidInput: it is no text, or too long.
    """
    if not isinstance(key, str) or clean(key) != key:
        raise InvalidInput("key must be a string without NUL or half of a character", field="key")
    if len(key.encode()) > KEY_BYTES:
        raise InvalidInput(f"key must have at most {KEY_BYTES} bytes", field="key")
    return key


def encode(labels: Sequence[str]) -> str:
    """Return the text that stands for a path."""
    return "".join(label.replace("%", "%25").replace(".", "%2E") + "." for label in labels)


def decode(text: str) -> Path:
    """Return the path that a text stands for."""
    return tuple(label.replace("%2E", ".").replace("%25", "%") for label in text.split(".")[:-1])


def above(text: str) -> list[str]:
    """Return the texts of a path and of every path above it, the shortest first."""
    return [text[: place + 1] for place, character in enumerate(text) if character == "."]


def cells(owner: tuple[str, str, str], text: str) -> list[str]:
    """Return the index terms of a text of an item: whose it is, and below which paths it lies.

    Args:
        owner: Tenant, persona and author.
        text: What stands for the item's namespace.
    """
    return [author_cell(*owner), *(namespace_cell(*owner, path) for path in above(text))]


def below(text: str) -> tuple[str, str]:
    """Return the texts between which a path and all below it lie: from the first up to, and without, the second."""
    return text, text[:-1] + chr(ord(".") + 1)


def begins(path: Path, pattern: Path) -> bool:
    """Say whether a path begins with a pattern, in which `*` stands for one label."""
    return len(path) >= len(pattern) and all(
        wanted in (ANY, label) for wanted, label in zip(pattern, path, strict=False)
    )


def ends(path: Path, pattern: Path) -> bool:
    """Say whether a path ends with a pattern."""
    return begins(path[::-1], pattern[::-1])


def fixed(pattern: Path) -> Path:
    """Return what a pattern says before its first `*`."""
    return pattern[: pattern.index(ANY)] if ANY in pattern else pattern
