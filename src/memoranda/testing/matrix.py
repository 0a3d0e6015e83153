"""Which combinations of a test are run."""

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
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        (kept if _in_turn(item) or not item.path.is_relative_to(folder) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _in_turn(item: "pytest.Item") -> bool:
    callspec: Any = getattr(item, "callspec", None)
    backend = callspec.params.get("backend") if callspec else None
    if backend not in _SQLITE:
        return True
    name = f"{item.path.name}:{getattr(item, 'originalname', '')}:{callspec.id.replace(backend, '')}"
    return bool(backend == _SQLITE[crc32(name.encode()) % 2])
