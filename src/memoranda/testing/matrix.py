"""Which combinations of a test are run."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    import pytest

_SQLITE = ("sqlite-memory", "sqlite-file")


def one_sqlite(config: "pytest.Config", items: "list[pytest.Item]", folder: Path) -> None:
    """Leave the tests below a folder on Postgres and on one of the two SQLite databases, which take turns.

    For adapters, which only translate: what tells the two apart is tested with the engine.
    """
    left = [item for item in items if item.path.is_relative_to(folder) and not _in_turn(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = _without(items, left)


def _in_turn(item: "pytest.Item") -> bool:
    callspec: Any = getattr(item, "callspec", None)
    backend = callspec.params.get("backend") if callspec else None
    if backend not in _SQLITE:
        return True
    name = f"{item.path.name}:{getattr(item, 'originalname', '')}:{callspec.id.replace(backend, '')}"
    return bool(backend == _SQLITE[crc32(name.encode()) % 2])


def _without(items: "Iterable[pytest.Item]", left: "Iterable[pytest.Item]") -> "list[pytest.Item]":
    gone = set(left)
    return [item for item in items if item not in gone]
