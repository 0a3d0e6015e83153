"""Memories from standard input: JSON objects and strings, one a line, in an array, or simply one after the other."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.errors import InvalidInput

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One memory of the input."""

    line: int
    """Where it begins, from 1."""
    value: Any

    def with_defaults(self, defaults: Mapping[str, Any]) -> Any:
        """Return the row with what it leaves out."""
        if not defaults:
            return self.value
        if isinstance(self.value, str):
            return {**defaults, "content": self.value}
        return {**defaults, **self.value} if isinstance(self.value, dict) else self.value


def read_input() -> str:
    """Return what comes in on standard input, whatever encoding the terminal has.

    Raises:
        InvalidInput: it is not UTF-8, or nothing came.
    """
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        print(f"reading JSON from standard input until {end}", file=sys.stderr)
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8 (byte {error.start:,})") from None
    if not text.strip():
        raise InvalidInput("nothing came in on standard input: give a JSON object, an array, or one object a line")
    return text


def read_object(
    verb: str, *needed: str, optional: tuple[str, ...] | None = None, defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the one JSON object that standard input holds for a command; a JSON string is its content.

    Args:
        verb: The command, for messages.
        needed: The names it must have.
        optional: The names it may have beside them; None leaves it to the engine to know.
        defaults: What fills in for a name that is left out.

    Raises:
        InvalidInput: it is not JSON, not one object, lacks a name, or has one that means nothing.
    """
    rows, problem, _ = read_rows(read_input())
    if problem:
        raise problem
    value = rows[0].with_defaults(defaults or {}) if len(rows) == 1 else None
    if isinstance(value, str):
        value = {"content": value}
    missing = next((name for name in needed if not isinstance(value, dict) or name not in value), None)
    if missing or not isinstance(value, dict):
        names = " and ".join(f'"{name}"' for name in needed)
        raise InvalidInput(f"{verb} takes one JSON object with {names}", field=missing)
    for name, item in value.items():
        if optional is not None and name not in (*needed, *optional):
            raise InvalidInput(f"{name}: {verb} knows no such name", field=name)
        if name in (*needed, *(optional or ())) and not isinstance(item, str):
            raise InvalidInput(f"{name} must be a string", field=name)
    return value


def read_rows(text: str) -> tuple[list[Row], InvalidInput | None, int]:
    r"""Cut a text into its rows.

    Returns:
        The rows; what is wrong with the text behind them, if anything; and the line where that is.

    >>> rows, problem, line = read_rows('{"content": "one"}\n"two"\n[oops')
    >>> [(row.line, row.value) for row in rows], str(problem), line
    ([(1, {'content': 'one'}), (2, 'two')], 'not JSON: Expecting value at column 2', 3)
    """
    rows: list[Row] = []
    place, line = 0, 1
    inside, separated, comma = False, True, False

    def skip(to: int) -> int:
        nonlocal place, line
        line += text.count("\n", place, to)
        place = to
        return to

    def wrong(what: str, at: int) -> tuple[list[Row], InvalidInput, int]:
        skip(at)
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        return rows, InvalidInput(f"not JSON: {what} at column {column}"), line

    while True:
        start = place
        while start < len(text) and text[start] in _BLANK:
            start += 1
        skip(start)
        if start == len(text):
            return wrong("the array is not closed", start) if inside else (rows, None, line)
        character = text[start]
        if not inside and character == "[":
            inside, separated, comma = True, True, False
            skip(start + 1)
        elif inside and character == "]" and not comma:
            inside, separated = False, True
            skip(start + 1)
        elif inside and character == "," and not separated:
            separated = comma = True
            skip(start + 1)
        elif inside and not separated:
            return wrong("Expecting ',' or ']'", start)
        else:
            try:
                value, end = _DECODER.raw_decode(text, start)
            except json.JSONDecodeError as error:
                return wrong(error.msg, error.pos)
            except RecursionError:
                return wrong("nested too deeply", start)
            rows.append(Row(line, value))
            separated = comma = False
            skip(end)
