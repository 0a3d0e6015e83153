"""How a store is written to a file and taken in from one, and how it is copied while it is in use.

A file appears under its name when it is complete, and only for its owner: until then it is one of another name beside
it. Whoever imports is not left with half a file: everything is stored in one transaction.
"""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import IO, BinaryIO, TypeAlias, cast

from sqlalchemy import Connection

from memoranda.archive import ArchiveReader, ArchiveWriter, Header, Shape, UnreadableArchive
from memoranda.db import migrations
from memoranda.db.queries import importing, jobs, moving, store
from memoranda.db.queries.importing import Arrival
from memoranda.db.queries.moving import Selection
from memoranda.db.queries.store import EMBEDDER, WORDS
from memoranda.db.schema import Tables
from memoranda.effects import Steps, compute, read, wake, write
from memoranda.errors import ConfigurationError, InvalidInput, StoreError, StoreUnavailable
from memoranda.pipelines import erasing
from memoranda.pipelines.context import Context, opened
from memoranda.protocols import Progress
from memoranda.reports import Exported, Imported
from memoranda.scope import check_name

Place: TypeAlias = str | os.PathLike[str] | BinaryIO
"""A file by its path, or one that is open for bytes."""

_GZIP = b"\x1f\x8b"
_LEVEL = 6
_BUFFER = 1 << 20


# -- files


@contextmanager
def _appearing(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a file to fill that gets its name when the block ends well, and is gone when it does not."""
    if not overwrite and path.exists():
        raise _taken(path)
    try:
        descriptor, name = mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise InvalidInput(f"no file can be made there: {error.strerror}", field="path") from None
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        _publish(part, path, overwrite=overwrite)
    except OSError as error:
        raise StoreError(f"The file cannot be written: {error.strerror or type(error).__name__}.") from error
    finally:
        part.unlink(missing_ok=True)


def _publish(part: Path, path: Path, *, overwrite: bool) -> None:
    """Give a file its name; what somebody else has put there meanwhile stays."""
    if not overwrite:
        try:
            os.link(part, path)
            return
        except FileExistsError:
            raise _taken(path) from None
        except OSError:  # a file system without links
            if path.exists():
                raise _taken(path) from None
    part.replace(path)


def _taken(path: Path) -> InvalidInput:
    return InvalidInput(f"{path.name} is there already: name another file, or remove it first", field="path")


def _open_once(stream: BinaryIO) -> Callable[[], BinaryIO]:
    """Give a stream once: a transaction that is tried again, because its connection was lost, would need it anew."""
    given: list[BinaryIO] = []

    def give() -> BinaryIO:
        if given:
            raise StoreUnavailable("The connection to the database was lost: begin again.")
        given.append(stream)
        return stream

    return give


def _path_of(place: Place) -> Path | None:
    if isinstance(place, str | os.PathLike):
        if not os.fspath(place):
            raise InvalidInput("name a file", field="path")
        return Path(place)
    if not hasattr(place, "readline"):
        raise InvalidInput("name a file by its path, or give one that is open for bytes", field="path")
    return None


# -- out


def export_to(
    place: Place,
    tenant: str | None,
    persona: str | None,
    vectors: bool,
    overwrite: bool,
    progress: Progress | None,
) -> Steps[Exported]:
    """Write every chosen row to a file."""
    for axis, name in (("tenant", tenant), ("persona", persona)):
        if name:
            check_name(axis, name)
    if persona == "":
        raise InvalidInput("persona must not be empty: leave it out for all of them", field="persona")
    selection = Selection(tenant=tenant, persona=persona, vectors=vectors)
    path = _path_of(place)
    if path is None:
        create = partial(_writing_to, _open_once(cast("BinaryIO", place)))
    else:
        if not overwrite and path.exists():
            raise _taken(path)
        create = partial(_writing, path, overwrite)
    return (yield from read(moving.dump, selection, create, progress))


@contextmanager
def _writing(path: Path, overwrite: bool, header: Header, shape: Shape) -> Iterator[ArchiveWriter]:
    with _appearing(path, overwrite=overwrite) as part, part.open("wb", buffering=_BUFFER) as file:
        if path.suffix != ".gz":
            yield ArchiveWriter(file.write, header, shape)
            return
        # Without a time in it, so that the same rows make the same file.
        with gzip.GzipFile("", "wb", _LEVEL, cast("IO[bytes]", file), mtime=0) as packed:
            yield ArchiveWriter(packed.write, header, shape)


@contextmanager
def _writing_to(give: Callable[[], BinaryIO], header: Header, shape: Shape) -> Iterator[ArchiveWriter]:
    stream = give()
    yield ArchiveWriter(stream.write, header, shape)
    stream.flush()


# -- in


class _Source:
    """A file to import, and how far it is read."""

    def __init__(self, place: Place, progress: Progress | None) -> None:
        self._path = _path_of(place)
        self._stream = None if self._path else cast("BinaryIO", place)
        self._reader: ArchiveReader | None = None
        self._progress = progress
        self._raw: BinaryIO | None = None
        self._size: int | None = None

    def header(self) -> Header:
        """Read the header; a stream goes on behind it later."""
        if self._stream is not None:
            self._reader = ArchiveReader(_unpacked(self._stream))
            return self._reader.header
        with self.opened() as reader:
            return reader.header

    @contextmanager
    def opened(self) -> Iterator[ArchiveReader]:
        """Open the file for its rows."""
        if self._path is None:
            reader, self._reader = self._reader, None
            if reader is None:
                raise StoreUnavailable("The connection to the database was lost: begin again.")
            yield reader
            return
        try:
            raw = self._path.open("rb", buffering=_BUFFER)
        except OSError as error:
            raise InvalidInput(f"the file cannot be opened: {error.strerror}", field="path") from None
        with raw:
            self._raw, self._size = raw, os.fstat(raw.fileno()).st_size
            yield ArchiveReader(_unpacked(raw))

    def tell(self) -> None:
        """Say how many bytes of the file are read."""
        if self._progress and self._raw is not None and self._size is not None:
            self._progress(min(self._raw.tell(), self._size), self._size)

    def told(self) -> Callable[[], object] | None:
        """Return what is to be called now and then, if anybody wants to know."""
        return self.tell if self._progress else None


def _unpacked(stream: BinaryIO) -> BinaryIO:
    """Return the lines of a stream, whether it is compressed or not."""
    if hasattr(stream, "peek"):
        start = stream.peek(len(_GZIP))[: len(_GZIP)]
    elif stream.seekable():
        start = stream.read(len(_GZIP))
        stream.seek(-len(start), os.SEEK_CUR)
    else:
        return stream
    return cast("BinaryIO", gzip.GzipFile(fileobj=stream, mode="rb")) if start == _GZIP else stream


def import_from(context: Context, place: Place, vectors: bool, progress: Progress | None) -> Steps[Imported]:
    """Take in every row of a file that is not there yet, in one transaction."""
    source = _Source(place, progress)
    header = yield from compute(source.header)
    if header.revision is not None and header.revision not in migrations.REVISIONS:
        raise UnreadableArchive(
            "the file was written by a newer release: upgrade the `memoranda` package on this machine", line=1
        )
    made = yield from read(store.settings)
    new = not {EMBEDDER, WORDS} <= made.keys()
    wanted = header.embedder if vectors and header.vectors else None
    if new:
        embedder = context.space.proposed if context.space.chosen or wanted is None else wanted
    else:
        yield from opened(context)
        embedder = made[EMBEDDER]
    if wanted and wanted != embedder:
        raise ConfigurationError(
            f"The file's vectors were made by {wanted!r}, and {_makes(embedder)}: vectors of two embedders cannot be "
            "compared. Import it without its vectors (vectors=False, or --no-vectors on the command line)."
        )
    arrival = Arrival(
        tokenizer=context.tokenizer, embedder=embedder, vectors=vectors, now=context.clock().astimezone(UTC)
    )
    imported = yield from write(importing.load, arrival, source.opened, source.told())
    yield from opened(context)
    if imported.erased:
        yield from erasing.finish_in_passing(context.clock)
    if context.leaves_jobs and (yield from read(jobs.any_waiting)):
        yield from wake(passing=True)
    return imported


def _makes(embedder: str) -> str:
    return f"those of this store by {embedder!r}" if embedder else "this store goes by words only"


# -- a copy of the whole database


def backup(path: str | os.PathLike[str], progress: Progress | None) -> Steps[Path]:
    """Copy the database to a file while it is in use, and try the copy."""
    target = _path_of(path)
    if target is None:
        raise InvalidInput("a backup is a file: give its path", field="path")
    return (yield from read(_copied, target, progress))


def _copied(conn: Connection, tables: Tables, target: Path, progress: Progress | None) -> Path:
    tables.dialect.check_backup()
    with _appearing(target, overwrite=False) as part:
        tables.dialect.backup(conn, tables, str(part), progress)
        for beside in ("-journal", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{part}{beside}").unlink(missing_ok=True)
    return target
