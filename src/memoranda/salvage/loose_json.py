"""Read JSON as language models write it: one list or object, from its bracket on, whatever is wrong inside.

JSON that is right is read as it is. What is wrong is taken for what was meant where that is plain: single and smart
quotes, Python's literals, comments, commas too many or too few, names without quotes, quotes and line breaks inside a
string, closers that are missing. Where it is not plain, or where the text ends, reading stops there and what was whole
until then is kept. Nothing is evaluated.

The time is linear in the length of the text, over all the brackets of a text read by one `LooseReader`: what is read
is not read again, and a search that found nothing is not repeated.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 200
"""Lists and objects inside one another; deeper ones are taken for noise."""

_DIGITS = 4_000  # Python refuses to make a whole number of more than 4,300
_GAP = re.compile(r"(?:\s+|//[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|\\(?![\"']))*+")
_BRACKETS = re.compile(r"[\[{\s]+")
_COMMA = re.compile(r"[,\uff0c\u3001;]")
_COLON = re.compile(r":|=>|\uff1a")
_DOTS = re.compile(r"\.\.\.|\u2026")
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?=[\s,\uff0c;}\]#]|//|/\*|\Z)")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*+")
_LITERALS = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    "null": None, "None": None, "NULL": None, "nil": None, "undefined": None,
    "NaN": None, "nan": None, "Infinity": None, "inf": None,
}  # fmt: skip
_MINUS_INFINITY = re.compile(r"[+-](?:Infinity|inf|NaN|nan)\b")
# A value without quotes: to the end of its line, or to what ends a value.
_BARE = re.compile(r"[^\s\"'\u201c\u201d\u2018\u2019\[\]{},:`\\][^\"\u201c\u201d\[\]{},\n]{0,200}(?=[,}\n])")

# Opening quotes, and which characters may close them.
_CLOSERS = {'"': '"', "'": "'", "`": "`", "\u201c": '\u201d\u201c"', "\u201d": '\u201d"', "\u201e": '\u201c\u201d"'}
_CLOSERS |= {"\u2018": "\u2019\u2018'", "\u2019": "\u2019'", "\u00ab": "\u00bb"}
_QUOTE = "[\"'\u201c\u201d\u2018\u2019\u201e`\u00ab]"
# What stands behind the quote that closes a string. Other quotes belong to the string.
_BEHIND_KEY = re.compile(r"\s*+(?::|=>|\uff1a)")
_NEXT_KEY = rf"(?:{_QUOTE}|[A-Za-z_$][\w$-]{{0,40}}\s*+(?::|=>)|[}}\]]|//|/\*|\#|[,\uff0c]|\.\.\.|\Z)"
_BEHIND_VALUE = re.compile(
    rf"\s*+(?:[}}\]]|[,\uff0c;]\s*+{_NEXT_KEY}|//|/\*|\#|\\(?![\"'])|\Z)"
    rf"|[ \t\r]*+\n\s*+{_QUOTE}[^\"'\n]{{1,60}}{_QUOTE}\s*+:"
)
_BEHIND_ITEM = re.compile(
    rf"\s*+(?:[}}\]]|[,\uff0c;]\s*+(?:{_QUOTE}|[\[{{\]}},\uff0c0-9.+-]|//|/\*|\#|\u2026"
    r"|(?:[Tt]rue|[Ff]alse|null|None|NaN)\b|\Z)"
    rf"|//|/\*|\#|\\(?![\"'])|\Z)|[ \t\r]*+\n\s*+{_QUOTE}"
)
_SWALLOWED = re.compile(r"[,{]\s*+[\"'][\w -]{1,40}[\"']\s*+:")

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "\n"}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


@dataclass(frozen=True, slots=True)
class Read:
    """A list or object that was read.

    Args:
        value: The list or dictionary; of one that breaks off, what was whole.
        end: Where reading stopped; at least one character behind the bracket.
        whole: False where something is missing: the text ends, makes no sense any more, or says "...".
        begun: Whether more than brackets was read: a name or a value.
    """

    value: Any = field(repr=False)
    end: int
    whole: bool
    begun: bool = True


class _Open:
    """A list or object that is being read, and the name whose value comes next."""

    __slots__ = ("key", "values")

    def __init__(self, bracket: str) -> None:
        self.values: list[Any] | dict[str, Any] = [] if bracket == "[" else {}
        self.key: str | None = None

    def add(self, value: Any) -> None:
        if isinstance(self.values, list):
            self.values.append(value)
        elif self.key is not None:
            self.values[self.key] = value
            self.key = None


class _Nonsense(Exception):
    """What stands here is no part of JSON, however loosely read."""


class LooseReader:
    """Reads lists and objects of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        # By kind of string: from where on none is closed, and up to where each runs over the names behind it.
        self._unclosed: dict[re.Pattern[str], dict[str, int]] = {}
        self._running_over: dict[re.Pattern[str], int] = {}

    def read(self, start: int) -> Read:
        """Read from the bracket at `start` to the one that closes it, or as far as there is sense."""
        text, place = self._text, start
        stack: list[_Open] = []
        opened: dict[type, int] = {list: 0, dict: 0}
        whole = True
        while True:
            place = _behind_gap(text, place)
            if place == len(text):
                return _broken(stack, place)
            character = text[place]
            if character in "]}":
                place += 1
                kind = list if character == "]" else dict
                closing = bool(opened[kind])  # one closer too many means nothing
                while closing:
                    level = stack.pop()
                    opened[type(level.values)] -= 1
                    closing = not isinstance(level.values, kind)
                    whole = whole and not (closing and not level.values)
                    if not stack:
                        return Read(level.values, place, whole)
                    stack[-1].add(level.values)
            elif character in "[{" and (not stack or _takes_value(stack[-1])):
                if len(stack) == MAX_DEPTH:
                    return _broken(stack, _behind_brackets(text, place))
                stack.append(_Open(character))
                opened[type(stack[-1].values)] += 1
                place += 1
            elif comma := _COMMA.match(text, place):
                stack[-1].key = None
                place = comma.end()
            elif dots := _DOTS.match(text, place):
                whole = False
                place = dots.end()
            else:
                try:
                    place = self._scalar(stack[-1], place)
                except _Nonsense:
                    return _broken(stack, place)

    def _scalar(self, top: _Open, place: int) -> int:
        """Read a string, a word or a number into the open list or object, and return where it ends."""
        if isinstance(top.values, dict) and top.key is None:
            top.key, place = self._key(place)
            return place
        text = self._text
        value: Any
        if text[place] in _CLOSERS:
            value, place = self._string(place, _BEHIND_ITEM if isinstance(top.values, list) else _BEHIND_VALUE)
        elif number := _NUMBER.match(text, place):
            value, place = _number(number[0]), number.end()
        elif infinity := _MINUS_INFINITY.match(text, place):
            value, place = None, infinity.end()
        elif (word := _WORD.match(text, place)) and word[0] in _LITERALS and _ends_value(text, word.end()):
            value, place = _LITERALS[word[0]], word.end()
        elif isinstance(top.values, dict) and (bare := _BARE.match(text, place)):
            value, place = bare[0].strip(), bare.end()
        else:
            raise _Nonsense
        if place == len(text) and not isinstance(value, str):
            raise _Nonsense  # a number that may go on
        top.add(value)
        return place

    def _key(self, place: int) -> tuple[str, int]:
        text = self._text
        if text[place] in _CLOSERS:
            key, place = self._string(place, _BEHIND_KEY)
        elif word := _WORD.match(text, place) or _NUMBER.match(text, place):
            key, place = word[0], word.end()
        else:
            raise _Nonsense
        colon = _COLON.match(text, _behind_gap(text, place))
        if not colon:
            raise _Nonsense
        return key, colon.end()

    def _string(self, start: int, behind: re.Pattern[str]) -> tuple[str, int]:
        text, quote = self._text, self._text[start]
        if quote in "\"'" and text.startswith(3 * quote, start):
            end = self._closing(start + 3, 3 * quote, _ANYTHING)
            return _unescaped(text[start + 3 : end]), end + 3
        if quote == '"' and start < self._running_over.get(behind, -1):
            raise _Nonsense
        end = self._closing(start + 1, _CLOSERS[quote], behind)
        if quote == '"' and text.find('"', start + 1) < end:
            for name in _SWALLOWED.finditer(text, start + 1, end):
                self._running_over[behind] = name.start()
            if start < self._running_over.get(behind, -1):
                raise _Nonsense  # its closing quote is missing, and the next names are inside
        return _unescaped(text[start + 1 : end]), end + 1

    def _closing(self, start: int, closers: str, behind: re.Pattern[str]) -> int:
        """Return where the quote stands that closes a string."""
        text, unclosed = self._text, self._unclosed.setdefault(behind, {})
        if start >= unclosed.get(closers, len(text) + 1):
            raise _Nonsense
        wanted = re.escape(closers) if len(set(closers)) < len(closers) else f"[{re.escape(closers)}]"
        for mark in re.compile(rf"\\.|{wanted}", re.DOTALL).finditer(text, start):
            if mark[0][0] != "\\" and behind.match(text, mark.start() + len(mark[0])):
                return mark.start()
        unclosed[closers] = start
        raise _Nonsense


_ANYTHING = re.compile("")


def _behind_brackets(text: str, place: int) -> int:
    brackets = _BRACKETS.match(text, place)
    return brackets.end() if brackets else place


def _behind_gap(text: str, place: int) -> int:
    gap = _GAP.match(text, place)
    return gap.end() if gap else place


def _takes_value(top: _Open) -> bool:
    return isinstance(top.values, list) or top.key is not None


def _ends_value(text: str, place: int) -> bool:
    return place == len(text) or text[place] in " \t\r\n,\uff0c;}]/#"


def _broken(stack: list[_Open], place: int) -> Read:
    """Return what is whole of a text that breaks off: an item of a list that is still open is left out.

    An item that holds lists or objects, as an envelope does, is kept where it is all that the list has.
    """
    value: Any = None
    begun = any(level.values or level.key is not None for level in stack)
    for level in reversed(stack):
        if isinstance(level.values, dict):
            if value:
                level.add(value)
        elif not level.values and value and _holds_more(value):
            level.add(value)
        value = level.values
    return Read(value, place, whole=False, begun=begun)


def _holds_more(value: list[Any] | dict[str, Any]) -> bool:
    return any(isinstance(inner, (list, dict)) for inner in (value.values() if isinstance(value, dict) else value))


def _number(digits: str) -> int | float | None:
    digits = digits.replace("_", "")
    try:
        if digits.lstrip("+-").isdigit() and len(digits) <= _DIGITS:
            return int(digits)
        number = float(digits)
    except ValueError:
        raise _Nonsense from None
    return number if math.isfinite(number) else None


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), plain)


def _character(escape: re.Match[str]) -> str:
    if digits := escape[1] or escape[2]:
        return chr(int(digits, 16))
    if escape[3] in _ESCAPED:
        return _ESCAPED[escape[3]]
    return str(escape[0] if escape[3].isalnum() else escape[3])  # the backslash of a path stays
