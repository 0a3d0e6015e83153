"""What a test process does once instead of once a test; none of it changes what a test sees.

Making the tables of a SQLite store, declaring them in Python and compiling the statements on them take a tenth of a
second for every engine, ten times what most tests need for their own affair.
"""

import gc
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

_GARBAGE_THRESHOLD = 20_000  # objects made before the youngest are looked through; Python's own 700 cost a tenth


def keep_garbage_collection_short() -> None:
    """Leave what stays for the whole run out of every collection: modules, and thousands of collected tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD, 10, 10)


class EmptyStore:
    """A SQLite store without rows, made by the revisions when it is first asked for, and copied from then on."""

    def __init__(self) -> None:
        """Begin with none."""
        self._source: sqlite3.Connection | None = None

    def copy_to(self, file: Path) -> None:
        """Make a file that is such a store."""
        with closing(sqlite3.connect(file)) as target:
            self._copy(target)
            target.execute("PRAGMA journal_mode = WAL").close()

    @contextmanager
    def in_memory(self) -> Iterator[None]:
        """While it lasts, let every SQLite database that is opened in memory begin as such a store."""
        from sqlalchemy import Engine, event

        def fill(connection: Any, _: object) -> None:
            if isinstance(connection, sqlite3.Connection) and _is_blank_memory(connection):
                self._copy(connection)

        event.listen(Engine, "connect", fill)
        try:
            yield
        finally:
            event.remove(Engine, "connect", fill)

    def close(self) -> None:
        """Let go of it."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def _copy(self, target: sqlite3.Connection) -> None:
        if self._source is None:
            self._source = _made()
        _copy(self._source, target)


def _made() -> sqlite3.Connection:
    from memoranda import MemoryEngine

    folder = Path(tempfile.mkdtemp(prefix="memoranda-"))
    try:
        engine = MemoryEngine(f"sqlite:///{folder / 'empty.db'}", embedder="hash/words", background="off")
        engine.setup()
        engine.close()
        store = sqlite3.connect(":memory:", check_same_thread=False)
        with closing(sqlite3.connect(folder / "empty.db")) as file:
            _copy(file, store)
        return store
    finally:
        shutil.rmtree(folder)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    (size,) = source.execute("PRAGMA page_size").fetchone()
    target.execute(f"PRAGMA page_size = {size}").close()  # a store in memory does not take it from the source
    source.backup(target)


def _is_blank_memory(connection: sqlite3.Connection) -> bool:
    files = [file for _, _, file in connection.execute("PRAGMA database_list")]
    return files == [""] and connection.execute("PRAGMA page_count").fetchone() == (0,)


@contextmanager
def shared_statements() -> Iterator[None]:
    """While it lasts, let engines share the tables they declare and the statements they compiled.

    SQLAlchemy keeps compiled statements by engine, and finds one again only if it is about the very same table objects.
    """
    from sqlalchemy import Engine, event

    from memoranda.db.schema import declare

    declared: dict[tuple[str, str | None, bool], Any] = {}
    compiled = _Compiled()

    def once(dialect: Any) -> Any:
        key = (dialect.name, dialect.schema, dialect.foreign)
        if key not in declared:
            declared[key] = declare(dialect)
        return replace(declared[key], dialect=dialect)

    def share(connection: Any) -> None:
        connection.execution_options(compiled_cache=compiled)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memoranda.db.database.declare", once)
        event.listen(Engine, "engine_connect", share)
        try:
            yield
        finally:
            event.remove(Engine, "engine_connect", share)


class _Compiled(dict[Any, Any]):
    """Compiled statements, by the kind of their dialect instead of the dialect object."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_kind(key), default)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_of_kind(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_of_kind(key), value)


def _of_kind(key: Any) -> Any:
    dialect, *rest = key
    return (type(dialect), dialect.server_version_info, *rest)
