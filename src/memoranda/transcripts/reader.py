"""From a file to conversations: which form it has, and one conversation after the other."""

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from memoranda.errors import InvalidInput, UnreadableDocument
from memoranda.messages import Message
from memoranda.messages import forms as message_forms
from memoranda.text import clean
from memoranda.transcripts import chatgpt, json_values, logs
from memoranda.transcripts.json_values import Unreadable
from memoranda.transcripts.skipped import Skipped

NO_CONVERSATION = "values that are no conversation"
_NAME_LIMIT = 200  # characters, and twice as many bytes, as of every name
_HEAD = 4_096  # bytes
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\[{\"\]])")  # a log may begin with a time in brackets
_LOG_LIMIT = 64 << 20  # bytes: a log is one conversation, and held whole
_CONVERSATIONS = "conversations.json"
_IDS = ("conversation_id", "thread_id", "session_id", "id")
_TITLES = ("name", "title")
_TIMES = ("created_at", "create_time", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One conversation of a file."""

    name: str
    """What it is stored as: its own id where it has one, so that reading it again finds the same conversation."""
    title: str = ""
    messages: tuple[Message, ...] = field(default=(), repr=False)


class TranscriptReader:
    r"""Reads the conversations of a file, one by one, and counts in `skipped` what it leaves out.

    >>> import io
    >>> reader = TranscriptReader(io.BytesIO(b"Ana: Is the oven on?\nBot: It is."), name="kitchen")
    >>> [(message.role, message.content) for transcript in reader for message in transcript.messages]
    [('user', 'Is the oven on?'), ('assistant', 'It is.')]
    """

    def __init__(
        self, stream: BinaryIO, *, name: str = "imported", user: str | None = None, zone: tzinfo = UTC
    ) -> None:
        """Take a stream of bytes.

        Args:
            stream: A file in UTF-8, open for reading; see `opened` for one that is packed.
            name: What a conversation is called that has no name of its own, such as the file's name.
            user: Whose lines are the user's, in a log; the first speaker's when left out.
            zone: Where a moment without an offset is read.
        """
        self._stream = stream
        self._name = name
        self._user = user
        self._zone = zone
        self._source = _Joined(b"", stream)
        self._taken: set[str] = set()
        self.skipped = Skipped()
        self.speakers: tuple[str, ...] = ()
        """Who speaks in a log, in the order of their first words; known when it has been read."""

    def __iter__(self) -> Iterator[Transcript]:
        """Yield the conversations in the order of the file; those without a message are counted only.

        Raises:
            UnreadableDocument: it is not UTF-8, or of no form that is known.
        """
        try:
            head = self._stream.read(_HEAD)
            self._source = _Joined(head, self._stream)
            text = io.TextIOWrapper(io.BufferedReader(self._source), encoding="utf-8-sig")
            yield from self._from_json(text) if _JSON.match(head) else self._from_log(text)
        except UnicodeDecodeError as error:
            raise UnreadableDocument(f"the file is not UTF-8 (byte {error.start:,} of a block)") from None
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile):
            raise UnreadableDocument("the compressed data is cut off or damaged") from None

    @property
    def bytes_read(self) -> int:
        """How far the file was read, of the size that `opened` gives."""
        return self._source.given

    # -- JSON

    def _from_json(self, text: IO[str]) -> Iterator[Transcript]:
        single: list[Message] = []
        number = 0
        try:
            for place, value in json_values.values(text):
                if isinstance(value, Unreadable):
                    self.skipped.add("lines that are no JSON", place)
                elif chatgpt.is_conversation(value):
                    number += 1
                    yield from self._exported(value, number)
                elif isinstance(value, Mapping) and isinstance(value.get("messages"), list):
                    number += 1
                    yield from self._listed(value, number)
                elif isinstance(value, Mapping) and "role" in value:
                    single += self._said(value, place)
                else:
                    self.skipped.add(NO_CONVERSATION, place)
        except Unreadable as error:
            self.skipped.add("the rest of the file, which cannot be read", str(error))
        if single:
            yield Transcript(name=self._name, messages=tuple(single))

    def _exported(self, value: Mapping[str, Any], number: int) -> Iterator[Transcript]:
        name, title = self._named(value, number), _title(value)
        found = chatgpt.messages(value, name, self.skipped)
        yield from self._whole(name, title, found)

    def _listed(self, value: Mapping[str, Any], number: int) -> Iterator[Transcript]:
        name = self._named(value, number)
        found = [message for item in value["messages"] for message in self._said(item, name)]
        yield from self._whole(name, _title(value), found)

    def _whole(self, name: str, title: str, found: list[Message]) -> Iterator[Transcript]:
        if found:
            yield Transcript(name=name, title=title, messages=tuple(found))
        else:
            self.skipped.add("conversations without a message", name)

    def _said(self, value: object, place: str) -> list[Message]:
        """Return a message in the form of OpenAI's chat API, or none and count it."""
        if not isinstance(value, Mapping) or not isinstance(value.get("role"), str):
            self.skipped.add(chatgpt.NO_MESSAGE, place)
            return []
        times = [value[name] for name in _TIMES if name in value]
        rest = {name: item for name, item in value.items() if name not in _TIMES}
        try:
            [message] = message_forms.given([rest], self._zone)
        except InvalidInput as error:
            self.skipped.add(f"messages whose {error.field or 'form'} cannot be used", place)
            return []
        if not message.content and not message.tool_calls and not message.extra:
            self.skipped.add(chatgpt.EMPTY, place)
            return []
        return [replace(message, created_at=_moment(times[0] if times else None, self._zone))]

    def _named(self, value: Mapping[str, Any], number: int) -> str:
        """Return what a conversation is called: by its id, else by a title of its own, else by its number."""
        for key in _IDS:
            if name := _usable(value.get(key)):
                return name
        name = next(filter(None, (_usable(value.get(key)) for key in _TITLES)), self._name)
        if name in self._taken or (name == self._name and number > 1):
            name = f"{name}-{number}"
        self._taken.add(name)
        return name

    # -- logs

    def _from_log(self, text: IO[str]) -> Iterator[Transcript]:
        whole = text.read(_LOG_LIMIT + 1)
        if len(whole) > _LOG_LIMIT:
            raise UnreadableDocument(f"a log may have {_LOG_LIMIT >> 20} MB at most: cut it up")
        if "\0" in whole[:_HEAD]:
            raise UnreadableDocument("this is no text: no conversation can be read from it")
        lines = whole.splitlines()
        self.speakers = tuple(logs.speakers(lines))
        if len(self.speakers) < 2 and not logs.begins(lines):
            raise UnreadableDocument(
                "no conversation was found: neither a ChatGPT export, nor messages as JSON, nor lines such as Ana: text"
            )
        if self._user is not None and self._user.casefold() not in map(str.casefold, self.speakers):
            told = ", ".join(self.speakers[:10])
            raise InvalidInput(f"nobody of this name speaks in the file: choose among {told}", field="user")
        found = logs.messages(lines, self._user, self._zone, self._name, self.skipped)
        yield from self._whole(self._name, "", found)


def _title(value: Mapping[str, Any]) -> str:
    return _usable(value.get("title"))


def _usable(name: object) -> str:
    """Return a text as the name of a conversation; empty where it is none."""
    if not isinstance(name, str):
        return ""
    printable = " ".join("".join(c if c.isprintable() else " " for c in clean(name)).split())[:_NAME_LIMIT]
    return printable.encode()[: 2 * _NAME_LIMIT].decode(errors="ignore").strip()


def _moment(value: object, zone: tzinfo) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo else read.replace(tzinfo=zone)
    except (ValueError, OverflowError, OSError):
        pass
    return None


class _Joined(io.RawIOBase):
    """What was read of a stream already, and then the rest of it."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        self.given += len(data)
        return len(data)


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file for a reader, with its size in bytes: packed with gzip, the `.zip` of a ChatGPT export, or as it is.

    Raises:
        UnreadableDocument: it cannot be opened, or the archive holds no conversations.
    """
    try:
        with path.open("rb") as file:
            magic, size = file.read(4), file.seek(0, io.SEEK_END)
            file.seek(0)
            if magic[:2] == b"\x1f\x8b":
                file.seek(-4, io.SEEK_END)  # the size before packing, in the footer
                size = int.from_bytes(file.read(4), "little")
                file.seek(0)
                with gzip.open(file) as unpacked:
                    yield cast(BinaryIO, unpacked), size
            elif magic == b"PK\x03\x04":
                with zipfile.ZipFile(file) as archive:
                    member = _member(archive)
                    yield cast(BinaryIO, archive.open(member)), member.file_size
            else:
                yield file, size
    except OSError as error:
        raise UnreadableDocument(f"the file cannot be read: {error.strerror or type(error).__name__}") from None
    except zipfile.BadZipFile:
        raise UnreadableDocument("the compressed data is cut off or damaged") from None


def _member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    for member in archive.infolist():
        if Path(member.filename).name == _CONVERSATIONS:
            return member
    raise UnreadableDocument(f"the archive holds no {_CONVERSATIONS}: unpack it, and name the file")
