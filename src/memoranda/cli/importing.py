"""How `memoranda import` takes in the conversations of another program: each of them whole, and a report at the end."""

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import tzinfo
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from memoranda.cli import output
from memoranda.cli.exits import DONE, NONE
from memoranda.cli.options import Store
from memoranda.cli.progress import progress
from memoranda.errors import ConfigurationError, InvalidInput, UnreadableDocument

if TYPE_CHECKING:
    from memoranda.persona import Persona
    from memoranda.transcripts import Transcript, TranscriptReader

_UNNAMED = "imported"
_HEAD = 256  # bytes
_GZIP = b"\x1f\x8b"
_EXPORT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"format"')
_TOLD = 20
_UNSTORABLE = "conversations with something that cannot be stored"


Source: TypeAlias = "str | BufferedReader[Any]"
"""A file by its path, or what comes in on standard input."""


def holds_conversations(source: Source) -> bool:
    """Say whether a file is no export of Memoranda; of one that cannot be read, that it is."""
    head = _head(source)
    return bool(head.strip()) and not head.startswith(_GZIP) and not _EXPORT.match(head)


def _head(source: Source) -> bytes:
    if isinstance(source, BufferedReader):
        return source.peek(_HEAD)[:_HEAD]
    from memoranda.transcripts import opened

    try:
        with opened(Path(source)) as (stream, _):
            return stream.read(_HEAD)
    except (OSError, EOFError, zlib.error, UnreadableDocument):
        return b""


def import_conversations(
    store: Store, source: Source, *, conversation: str | None, speaker: str | None, dry_run: bool
) -> int:
    """Store the conversations of a file, and say what was stored and what was not."""
    from memoranda.transcripts import TranscriptReader

    told: list[dict[str, Any]] = []
    name = Path(source).name.partition(".")[0].strip() if isinstance(source, str) else ""
    place = nullcontext() if dry_run else store.opened(create=True)
    with _opened(source) as (stream, size), place as persona:
        reader = TranscriptReader(stream, name=name or _UNNAMED, user=speaker, zone=_zone(store.timezone))
        with progress("importing") as advance:
            for transcript in _named(reader, conversation):
                stored = None if persona is None else _stored(persona, transcript, reader)
                if stored is not None or persona is None:
                    one = {"name": transcript.name, "title": transcript.title, "messages": len(transcript.messages)}
                    told.append({**one, "stored": stored or 0})
                advance(min(reader.bytes_read, size), size)
    _answer(told, reader, store, dry_run=dry_run)
    return DONE if told else NONE


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigurationError(f"unknown time zone {name!r}: use an IANA name such as Europe/Lisbon") from None


@contextmanager
def _opened(source: Source) -> Iterator[tuple[BinaryIO, int]]:
    from memoranda.transcripts import opened

    if isinstance(source, BufferedReader):
        yield source, 0
    else:
        with opened(Path(source)) as found:
            yield found


def _named(reader: "TranscriptReader", conversation: str | None) -> "Iterable[Transcript]":
    """Return the conversations; the only one under the name it was given.

    Raises:
        InvalidInput: there are several, and one name.
    """
    if conversation is None:
        return reader
    from dataclasses import replace

    first = list(islice(reader, 2))
    if len(first) > 1:
        raise InvalidInput("the file holds several conversations: leave --conversation out", field="conversation")
    return [replace(transcript, name=conversation) for transcript in first]


def _stored(persona: "Persona", transcript: "Transcript", reader: "TranscriptReader") -> int | None:
    """Store a conversation, and return how many of its messages are new; None where it cannot be stored."""
    try:
        handle = persona.conversation(transcript.name)
        before = handle.record()
        handle.append(transcript.messages)
        after = handle.record()
    except InvalidInput:
        reader.skipped.add(_UNSTORABLE, transcript.name)
        return None
    return (after.messages if after else 0) - (before.messages if before else 0)


def _answer(told: list[dict[str, Any]], reader: "TranscriptReader", store: Store, *, dry_run: bool) -> None:
    messages, stored = (sum(one[key] for one in told) for key in ("messages", "stored"))
    speakers = list(reader.speakers)
    if store.as_json:
        places = [dict(place=p, reason=r, number=n) for p, r, n in reader.skipped.places]
        output.print_json(
            {
                "conversations": told,
                "messages": messages,
                "stored": stored,
                "dry_run": dry_run,
                "speakers": speakers,
                "left_out": reader.skipped.counts,
                "places": places,
            }
        )
        return
    conversations = output.counted(len(told), "conversation", "conversations")
    if dry_run:
        print(f"would import {conversations}, {output.counted(messages, 'message', 'messages')}")
    else:
        known = f", {messages - stored:,} already there" if stored < messages else ""
        print(f"imported {conversations}, {output.counted(stored, 'message', 'messages')}{known}")
    if speakers:
        print(f"speakers: {output.one_line(', '.join(speakers[:_TOLD]))}")
    _report(reader)


def _report(reader: "TranscriptReader") -> None:
    """Say what was left out, by reason, and where."""
    for reason, number in reader.skipped.counts.items():
        places = [place for place, other, _ in reader.skipped.places if other == reason]
        more = f" and {len(places) - _TOLD:,} more places" if len(places) > _TOLD else ""
        print(output.one_line(f"left out {number:,}: {reason} ({'; '.join(places[:_TOLD])}{more})"))
