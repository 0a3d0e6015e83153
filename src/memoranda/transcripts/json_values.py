"""The JSON values of a stream, one by one: the items of an array, one a line, or one behind the other.

No more than the longest value is held at a time, twice its length at most.
"""

import json
import re
from collections.abc import Iterator
from typing import IO, Any

_DECODER = json.JSONDecoder()
_CHUNK = 1 << 18  # characters
_GAP = re.compile(r"[ \t\r\n]*")
_ITEM_GAP = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")


class Unreadable(Exception):
    """The text is no JSON from here on; the argument says what is wrong and where."""


def values(stream: IO[str]) -> Iterator[tuple[str, Any]]:
    """Yield a place, such as "line 3" or "item 3", and the value that stands there.

    A line that is no JSON is yielded as `Unreadable`, and the lines after it are read; an array ends there, for nobody
    knows where its next item begins.

    Raises:
        Unreadable: what follows cannot be read.
    """
    first, line_number = stream.read(1), 1
    while first and first in " \t\r\n":
        line_number += first == "\n"
        first = stream.read(1)
    if first == "[":
        yield from _items(stream)
        return
    line = first + stream.readline()
    try:
        value = _parsed(line)
    except Unreadable:
        yield from _values(stream, line)
        return
    yield f"line {line_number:,}", value
    for number, line in enumerate(stream, start=line_number + 1):
        if line.strip():
            try:
                yield f"line {number:,}", _parsed(line)
            except Unreadable as error:
                yield f"line {number:,}", error


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("no JSON") from None


def _items(stream: IO[str]) -> Iterator[tuple[str, Any]]:
    """Yield the items of an array whose bracket has been read."""
    buffer, at, number = stream.read(_CHUNK), 0, 0
    while True:
        buffer, at = _past_gap(stream, buffer, at, _ITEM_GAP if number else _GAP)
        if buffer[at : at + 1] == "]":
            return
        number += 1
        value, buffer, at = _next(stream, buffer, at, f"item {number:,}")
        yield f"item {number:,}", value


def _values(stream: IO[str], begun: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of a text that stand one behind the other, over several lines each."""
    buffer, at, number = begun + stream.read(_CHUNK), 0, 0
    while True:
        buffer, at = _past_gap(stream, buffer, at, _GAP)
        if at == len(buffer):
            return
        number += 1
        value, buffer, at = _next(stream, buffer, at, f"value {number:,}")
        yield f"value {number:,}", value


def _past_gap(stream: IO[str], buffer: str, at: int, gap: re.Pattern[str]) -> tuple[str, int]:
    """Return the buffer and the place of the next value; the end of the buffer where the stream ends."""
    while True:
        match = gap.match(buffer, at)
        end = match.end() if match else at
        if end < len(buffer):
            return buffer, end
        more = stream.read(_CHUNK)
        if not more:
            return buffer, end
        buffer, at = buffer[at:] + more, 0


def _next(stream: IO[str], buffer: str, at: int, place: str) -> tuple[Any, str, int]:
    """Return the next value, the buffer it was read from, and where the value ends in it."""
    while True:
        try:
            value, end = _DECODER.raw_decode(buffer, at)
        except (ValueError, RecursionError):
            end = len(buffer)
            value = None
        # A number at the end of the buffer may go on behind it.
        if end < len(buffer):
            return value, buffer, end
        # Twice as much each time: then a long value is begun again a few times only.
        more = stream.read(max(_CHUNK, len(buffer) - at))
        if not more:
            try:
                value, end = _DECODER.raw_decode(buffer, at)
            except (ValueError, RecursionError):
                raise Unreadable(f"{place} is no JSON, or the file was cut off in it") from None
            return value, buffer, end
        buffer, at = buffer[at:] + more, 0
