"""Read documents: text, Markdown, HTML and PDF files become the text that is cut into chunks.

A file is read from inside a root and nowhere else: no `..`, no link that leads out, nothing hidden, nothing but regular
files. What cannot be read is refused by name, and no message holds any of its content.
"""

import codecs
import os
import stat
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.documents.chunking import normalise
from memoranda.documents.html_text import read_html
from memoranda.errors import ExtraMissing, UnreadableDocument

if TYPE_CHECKING:
    import pypdf

LARGEST_FILE = 32 * 2**20
"""Bytes of a file that are read at most."""
LARGEST_TEXT = 20_000_000
"""Characters of the text of a document at most: a PDF can hold many times its own size."""
READ = "plain text, Markdown, HTML and PDF"
"""What is read, for people."""

_SUFFIXES = {
    **dict.fromkeys((".txt", ".text", ".log", ".rst"), "text/plain"),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), "text/markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "text/html"),
    ".pdf": "application/pdf",
}
_PDF = b"%PDF-"
_HEAD = 8192  # bytes looked at to tell text from anything else
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_TEXT = f"is of a type that is not read: {READ} are"
_NOT_UTF8 = "is neither UTF-8 nor UTF-16 with a byte order mark: save it as UTF-8"
_OPENING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it was read."""

    source: str
    """Its path inside the root, with `/` between the folders; without a root its name."""
    text: str
    """Normalised as `memoranda.documents.chunking.normalise` does; Markdown for an HTML page."""
    media_type: str
    """`text/plain`, `text/markdown`, `text/html` or `application/pdf`."""
    metadata: Mapping[str, str | int] = field(default_factory=dict)
    """What the file says of itself: `title`, `language`; of a PDF `author`, `pages`, `pages_without_text`."""
    pages: tuple[tuple[int, int], ...] = ()
    """Of a PDF: where each page that has text begins in it, and the page's number, from 1."""

    def page_at(self, place: int) -> int | None:
        """Return the number of the page at a place of the text, from 1; None where there are no pages."""
        at = bisect_right(self.pages, place, key=lambda page: page[0])
        return self.pages[at - 1][1] if at else None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not read, and why."""

    source: str
    """Its path inside the folder that was walked."""
    reason: str


@dataclass(frozen=True, slots=True)
class Walk:
    """The files of a folder that can be read, in the order of their paths, and those that cannot."""

    files: tuple[Path, ...]
    skipped: tuple[Skipped, ...]

    def __iter__(self) -> Iterator[Path]:
        """Yield the files that can be read."""
        return iter(self.files)

    def __len__(self) -> int:
        """Count the files that can be read."""
        return len(self.files)


def read_document(
    path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None, *, largest: int = LARGEST_FILE
) -> Document:
    """Read a file whole.

    Args:
        path: Taken from the root where it is relative.
        root: A folder that the file must lie in, links followed, and not hidden; None takes any file.
        largest: Bytes that the file may have.

    Raises:
        UnreadableDocument: it is outside the root, hidden in it, no regular file, too large, empty, or of no type or
            encoding that is read; a PDF is encrypted, damaged or has no text layer.
        ExtraMissing: it is a PDF and the `documents` extra is not installed.
    """
    real, source = _located(path, root)
    data = _bytes(real, source, largest)
    media_type = _media_type(real.suffix, data[:_HEAD])
    if media_type == "application/pdf":
        return _pdf(source, data)
    text = _decoded(source, data)
    metadata: dict[str, str | int] = {}
    if media_type == "text/html":
        page = read_html(text)
        text = page.text
        metadata = {name: value for name, value in (("title", page.title), ("language", page.language)) if value}
    text = normalise(text)
    if not text:
        raise _unreadable(source, "has no text")
    return Document(source=source, text=text, media_type=media_type or "text/plain", metadata=metadata)


def located(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> Path:
    """Return where a file or a folder really is, links followed.

    Raises:
        UnreadableDocument: it is outside the root or hidden in it, or there is none.
    """
    return _located(path, root)[0]


def walk(folder: str | os.PathLike[str], pattern: str | None = None, *, largest: int = LARGEST_FILE) -> Walk:
    """Find the files of a folder and its folders that `read_document` reads; nothing hidden, and no link is followed.

    Args:
        folder: It becomes the root of its files.
        pattern: Files that do not match are not looked at. A pattern without `/` is one of names, with `/` one of paths
            inside the folder; `*` also stands for folders.
        largest: Bytes that a file may have.

    Raises:
        UnreadableDocument: there is no such folder, or it cannot be looked into.
    """
    top = Path(folder)
    files: list[tuple[tuple[str, ...], Path]] = []
    skipped: list[Skipped] = []
    waiting = [top]
    while waiting:
        current = waiting.pop()
        try:
            entries = list(os.scandir(current))
        except (OSError, ValueError):
            if current == top:
                raise _unreadable(top.name or str(top), "is no folder that can be looked into") from None
            skipped.append(Skipped(current.relative_to(top).as_posix(), "cannot be looked into"))
            continue
        for entry in entries:
            path = Path(entry.path)
            inside = path.relative_to(top)
            source = inside.as_posix()
            folder_itself = entry.is_dir(follow_symlinks=False)
            if not folder_itself and pattern is not None and not _matches(source, pattern):
                continue
            if entry.name.startswith("."):
                skipped.append(Skipped(source, "is hidden"))
            elif folder_itself:
                waiting.append(path)
            elif reason := _refusal(entry, largest):
                skipped.append(Skipped(source, reason))
            else:
                files.append((inside.parts, path))
    skipped.sort(key=lambda one: one.source.split("/"))
    return Walk(tuple(path for _, path in sorted(files)), tuple(skipped))


def _matches(source: str, pattern: str) -> bool:
    if "/" not in pattern:
        return fnmatchcase(source.rpartition("/")[2], pattern)
    return fnmatchcase(source, pattern) or fnmatchcase(source, pattern.replace("**/", ""))


def _refusal(entry: "os.DirEntry[str]", largest: int) -> str:
    """Say why a file cannot be read, as far as its first bytes tell; empty where it can."""
    try:
        if entry.is_symlink():
            return "is a symbolic link"
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            return "is no regular file"
        if not status.st_size:
            return "is empty"
        if status.st_size > largest:
            return _too_large(largest)
        with open(os.open(entry.path, _OPENING), "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return "cannot be opened"
    suffix = Path(entry.name).suffix
    media_type = _media_type(suffix, head)
    if media_type == "application/pdf":
        return "" if _PDF in head else "is no PDF, though it is named like one"
    if media_type:
        return "" if _is_text(head) else _NOT_UTF8
    return "is of a type that is not read"


# -- a file, from its path to its bytes


def _unreadable(source: str, reason: str) -> UnreadableDocument:
    return UnreadableDocument(f"{source!r} {reason}.", field="path")


def _too_large(largest: int) -> str:
    return f"is larger than {largest:,} bytes"


def _located(path: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> tuple[Path, str]:
    """Return where the file really is, and the name it is known by."""
    asked = Path(path)
    try:
        if root is None:
            return asked.resolve(strict=True), asked.name
        top = Path(root).resolve(strict=True)
        if ".." in asked.parts:
            raise _unreadable(str(path), "leads out of the folder that it must lie in")
        inside = (top / asked).resolve().relative_to(top)  # before anything is said about what lies outside
        real = (top / asked).resolve(strict=True)
        named = asked.relative_to(top) if asked.is_absolute() and asked.is_relative_to(top) else asked
        parts = (*real.relative_to(top).parts, *(() if named.is_absolute() else named.parts))
        if any(part.startswith(".") for part in parts):
            raise _unreadable(str(path), "is hidden, or lies in a hidden folder: what is hidden is not read")
    except (FileNotFoundError, NotADirectoryError):
        raise _unreadable(asked.name if root is None else str(path), "does not exist") from None
    except (OSError, RuntimeError):
        raise _unreadable(asked.name if root is None else str(path), "cannot be opened") from None
    except ValueError:
        raise _unreadable(str(path), "leads out of the folder that it must lie in") from None
    return real, (inside if asked.is_absolute() else asked).as_posix()


def _bytes(real: Path, source: str, largest: int) -> bytes:
    try:
        if not stat.S_ISREG(os.lstat(real).st_mode):
            raise _unreadable(source, "is no regular file")
        with open(os.open(real, _OPENING), "rb") as file:
            opened = os.fstat(file.fileno())
            # A folder on the way may have become a link since the path was followed.
            if not stat.S_ISREG(opened.st_mode) or not os.path.samestat(opened, os.lstat(real.resolve(strict=True))):
                raise _unreadable(source, "changed while it was opened")
            if real.resolve(strict=True) != real:
                raise _unreadable(source, "changed while it was opened")
            data = file.read(largest + 1)
    except OSError:
        raise _unreadable(source, "cannot be opened") from None
    if len(data) > largest:
        raise _unreadable(source, _too_large(largest))
    if not data:
        raise _unreadable(source, "is empty")
    return data


# -- from bytes to text


def _media_type(suffix: str, head: bytes) -> str | None:
    """Return the type by content, then by name; None for what is not read."""
    if head.lstrip().startswith(_PDF):
        return "application/pdf"
    named = _SUFFIXES.get(suffix.lower())
    return named or ("text/plain" if _is_text(head) else None)


def _is_text(head: bytes) -> bool:
    if head.startswith(_UTF16) and not head.startswith(_UTF32):
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _decoded(source: str, data: bytes) -> str:
    if data.startswith(_UTF32):
        raise _unreadable(source, _NOT_UTF8)
    if data.startswith(_UTF16):
        encoding = "utf-16"
    elif b"\0" in data:
        raise _unreadable(source, _NOT_TEXT)
    else:
        encoding = "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        known = Path(source).suffix.lower() in _SUFFIXES
        raise _unreadable(source, _NOT_UTF8 if known else _NOT_TEXT) from None


def _pdf(source: str, data: bytes) -> Document:
    if not find_spec("pypdf"):
        raise ExtraMissing(f'Reading the PDF {source!r} needs an extra: pip install "memoranda[documents]"')
    import pypdf

    try:
        reader = pypdf.PdfReader(BytesIO(data), strict=False)
        if reader.is_encrypted:
            raise _unreadable(source, "is encrypted: save it without its password")
        pages = _page_texts(source, reader)
        metadata = _pdf_metadata(reader)
    except UnreadableDocument:
        raise
    except Exception:  # pypdf's errors are many, and quote the file
        raise _unreadable(source, "is a damaged PDF: open it in a viewer and save it anew") from None
    starts: list[tuple[int, int]] = []
    parts: list[str] = []
    place = 0
    for number, page in enumerate(pages, 1):
        if page:
            starts.append((place, number))
            parts.append(page)
            place += len(page) + 2
    text = "\n\n".join(parts)
    if not text:
        raise _unreadable(source, "has no text layer: it may be made of pictures, and no text is read from those")
    metadata["pages"] = len(pages)
    if len(parts) < len(pages):
        metadata["pages_without_text"] = len(pages) - len(parts)
    return Document(source=source, text=text, media_type="application/pdf", metadata=metadata, pages=tuple(starts))


def _page_texts(source: str, reader: "pypdf.PdfReader") -> list[str]:
    texts: list[str] = []
    length = 0
    for page in reader.pages:
        texts.append(normalise(page.extract_text()))
        length += len(texts[-1])
        if length > LARGEST_TEXT:
            raise _unreadable(source, f"has more than {LARGEST_TEXT:,} characters of text")
    return texts


def _pdf_metadata(reader: "pypdf.PdfReader") -> dict[str, str | int]:
    said = reader.metadata
    named = (("title", said.title), ("author", said.author)) if said else ()
    found = {name: " ".join(normalise(value).split()) for name, value in named if isinstance(value, str)}
    return {name: value for name, value in found.items() if value}
