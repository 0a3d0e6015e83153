"""Get the JSON out of what a language model really answers.

A reply is thinking aloud, fences and prose with JSON in it, more or less well formed, perhaps cut off. "Nothing to
save" is an empty list that the model gave as its answer; whatever else holds nothing is a failure, which says why and
quotes nothing. No reply raises, however it looks, and the time is linear in its length.
"""

import html
import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memoranda.salvage.loose_json import LooseReader

_THOUGHTS = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
# What matters on the way to JSON: thinking aloud, in the tags of several families of models, code fences, brackets.
_MARK = re.compile(
    rf"(?P<opened><\s*(?:[a-z]{{1,10}}:)?{_THOUGHTS}(?:\s[^<>]{{0,200}})?>|\[THINK\]|◁think▷"
    r"|<\|channel\|>(?:analysis|commentary)\b[^<]{0,200}<\|message\|>)"
    rf"|(?P<closed><\s*/\s*(?:[a-z]{{1,10}}:)?{_THOUGHTS}\s*>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>)"
    # What stands inside a brace is named.
    r"|(?P<fence>```|~~~)|\[|\{(?!\s*+[\[{])",
    re.IGNORECASE,
)
_THOUGHT_OVER = re.compile(
    rf"<\s*/\s*(?:[a-z]{{1,10}}:)?{_THOUGHTS}\s*>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>", re.IGNORECASE
)
_ESCAPED = re.compile(r'[\[{,:]\s*\\"')  # a quote that is structure; those inside a string are none
_FENCE = re.compile(r"\s*(?:```|~~~)[^\n`]*\n")
_SPECIAL = re.compile(r"<\|[a-z_]{1,20}\|>")
_WORDS = {"None": None, "True": True, "False": False}
_ENVELOPES = 4
"""Objects around the list that is meant, and strings of JSON inside JSON, that are opened."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """What came out of a reply.

    Args:
        value: The value; None where there is none, so ask `failed` first.
        problem: Why there is no value, in words that quote nothing; None where there is one.
        complete: False where the reply breaks off, or parts of it were of no use: what it went on to say is not known.
        repaired: Whether the JSON was not right as it stood.
    """

    value: Any = field(default=None, repr=False)
    problem: str | None = None
    complete: bool = True
    repaired: bool = False

    @property
    def failed(self) -> bool:
        """Whether nothing could be read. It is not the same as an empty list, which is an answer."""
        return self.problem is not None


@dataclass(frozen=True, slots=True)
class _Found:
    """A value in a reply, how well it was read, and whether it stands as an answer does, not amid a sentence."""

    value: Any
    size: int
    whole: bool = True
    exact: bool = False
    fenced: bool = False
    alone: bool = True


def read(reply: str) -> Salvage:
    """Return the JSON value of a reply: the largest list or object, fenced ones first, else a lone scalar."""
    found = [one for one in _all(reply) if one.whole or one.value]
    if not found:
        return Salvage(problem=_why_nothing(reply))
    best = max(found, key=lambda one: (one.fenced, one.size))
    return Salvage(best.value, complete=best.whole, repaired=not best.exact)


def read_items(reply: str, *, under: Sequence[str] = (), fields: Collection[str] = ()) -> Salvage:
    """Return the objects of the list that a reply is asked to give.

    The list may stand under a name in one or several objects, be a lone object, be spread over several lists or lines,
    or be a string that holds JSON.

    Args:
        reply: What the model said.
        under: Names under which an object may hold the list, tried before any other.
        fields: What every item must have; a lone object counts as an item only if it has them, so give some.

    Returns:
        A list of dictionaries, empty only if the model gave an empty list. Items without the fields are left out, and
        the answer is not complete then; if none is left, it failed.
    """
    found = _all(reply)
    usable = [(one, items) for one in found if (items := _list_in(one.value, under, fields)) is not None]
    usable = [(one, items) for one, items in usable if items or (one.whole and one.alone)]
    if not usable:
        return Salvage(problem="The reply holds no list of items." if found else _why_nothing(reply))
    # References such as [1] are lists too, and an example in prose may stand before the answer in its fence.
    usable = [(one, items) for one, items in usable if any(_is_item(item, fields) for item in items)] or usable
    usable = [(one, items) for one, items in usable if one.fenced] or usable
    kept: list[dict[str, Any]] = []
    complete = all(one.whole for one in found)
    for _, items in usable:
        for item in map(_inside, items):
            if not _is_item(item, fields):
                complete = False
            elif item not in kept[-1:]:  # a model that hangs says the same again and again
                kept.append(item)
    if not kept and not complete:
        return Salvage(problem="No item of the reply is whole and has what an item needs.")
    return Salvage(kept, complete=complete, repaired=not all(one.exact for one, _ in usable))


def read_object(reply: str, *, fields: Collection[str] = ()) -> Salvage:
    """Return the object that a reply is asked to give: the largest that has one of the fields, fenced ones first.

    One whose fields hold nothing is an answer only where it stands alone: amid a sentence it is an example.
    """
    found = _all(reply)
    objects = [replace(one, value=value) for one in found if (value := _object_in(one.value, fields)) is not None]
    objects = [one for one in objects if one.alone or not fields or any(one.value.get(name) for name in fields)]
    if not objects:
        return Salvage(problem="The reply holds no object of the kind asked for." if found else _why_nothing(reply))
    best = max(objects, key=lambda one: (one.fenced, one.size))
    return Salvage(best.value, complete=best.whole, repaired=not best.exact)


def prose(reply: str) -> str:
    """Return a reply that is meant to be read: without thinking aloud, and out of the fence around all of it."""
    return _unfenced(_SPECIAL.sub("", _without_thoughts(reply))).strip()


def _unfenced(text: str) -> str:
    opening = _FENCE.match(text)
    if opening is None:
        return text
    inside = text[opening.end() :].rstrip()
    if inside.endswith(("```", "~~~")):
        inside = inside[:-3].rstrip(" \t").removesuffix("\n")
    return text if "```" in inside else inside


# -- finding JSON


def _all(reply: str, envelopes: int = _ENVELOPES) -> list[_Found]:
    """Return every list and object of a reply in order, or the scalar that is all of it."""
    text = reply.replace("\ufeff", "").replace("\x00", "")
    exact = _exact(text) or _exact(_unfenced(text))
    if exact is None and (rest := prose(text)).startswith('"'):
        exact = _exact(rest)
    if exact is not None:
        inner = _all(exact.value, envelopes - 1) if envelopes and _may_hold_json(exact.value) else []
        return inner if any(isinstance(one.value, (list, dict)) for one in inner) else [exact]
    text = _plain_quotes(text)
    return list(_scanned(text)) or list(_scalar(text))


def _may_hold_json(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] in ("[", "{", '"', "`")


def _exact(text: str) -> _Found | None:
    """Read a reply that is nothing but JSON; what is not a number becomes null."""
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return _Found(value, len(text), exact=True)


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _plain_quotes(text: str) -> str:
    """Undo a reply whose quotes are all escaped, as in JSON inside JSON or inside HTML."""
    if '"' not in text and "&quot;" in text:
        text = html.unescape(text)
    if _ESCAPED.search(text) and '"' not in text.replace('\\"', ""):
        text = text.replace('\\\\"', "\x00").replace('\\"', '"').replace("\x00", '\\"')
    return text


def _scanned(text: str) -> Iterator[_Found]:
    """Yield the lists and objects outside of thinking aloud. Nothing before a stray end of thinking counts."""
    found: list[_Found] = []
    reader = LooseReader(text)
    place, fenced = 0, False
    while mark := _MARK.search(text, place):
        place = mark.end()
        if mark["opened"]:
            over = _THOUGHT_OVER.search(text, place)
            if over is None:
                break
            place = over.end()
        elif mark["closed"]:
            found, fenced = [], False
        elif mark["fence"]:
            fenced = not fenced
        else:
            value = reader.read(mark.start())
            place = value.end
            if value.whole or value.begun:
                alone = _stands_alone(text, mark.start(), place)
                found.append(_Found(value.value, place - mark.start(), value.whole, False, fenced, alone))
    yield from found


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Tell an answer from brackets amid a sentence: it fills its lines, or is the end of the reply.

    `- [ ] buy milk`, `items[]` and `[](https://...)` are none.
    """
    line_before = text[max(text.rfind("\n", max(start - 200, 0), start) + 1, start - 200) : start].strip(" \t`*")
    until = text.find("\n", end, end + 200)
    line_behind = text[end : until if until >= 0 else end + 200].strip(" \t`*.;")
    if line_behind or text[start - 1 : start].isalnum():
        return False
    return not line_before or (not text[end : end + 200].strip(" \t\r\n`*.;~") and line_before[-1] not in "-+_)]")


def _scalar(text: str) -> Iterator[_Found]:
    """Yield the string, number or word that is all of a reply."""
    rest = prose(text)
    if rest in _WORDS:
        yield _Found(_WORDS[rest], len(rest))
    elif rest and (exact := _exact(rest)):
        yield exact


def _without_thoughts(text: str) -> str:
    kept: list[str] = []
    place = 0
    for mark in _MARK.finditer(text):
        if mark.start() < place:
            continue
        if mark["opened"]:
            kept.append(text[place : mark.start()])
            over = _THOUGHT_OVER.search(text, mark.end())
            place = over.end() if over else len(text)
        elif mark["closed"]:
            kept, place = [], mark.end()
    return "".join([*kept, text[place:]])


def _why_nothing(reply: str) -> str:
    if not reply.strip():
        return "The reply is empty."
    if not _without_thoughts(reply).strip():
        return "The reply is thinking only: it was cut off before the answer, or has none."
    return "The reply holds no JSON, or breaks off before its first whole value."


# -- the shape that was asked for


def _inside(value: Any) -> Any:
    """Return the value of a string that holds a list or an object, any other value as it is."""
    if _may_hold_json(value):
        exact = _exact(value)
        return exact.value if exact else value
    return value


def _list_in(value: Any, under: Sequence[str], fields: Collection[str], envelopes: int = _ENVELOPES) -> Any:
    """Return the list that is meant, None where there is none."""
    value = _inside(value)
    if isinstance(value, list):
        # [[...]] and [{"memories": [...]}]
        if envelopes and len(value) == 1 and not _has(value[0], fields):
            inner = _list_in(value[0], under, fields, envelopes - 1)
            return value if inner is None else inner
        return value
    if not isinstance(value, dict):
        return None
    if _has(value, fields):
        return [value]
    if not envelopes:
        return None
    named = [value[name] for name in under if name in value]
    lists = [inner for inner in map(_inside, named or value.values()) if isinstance(inner, (list, dict))]
    # Without a name to go by, only one candidate is plain enough, and it holds objects or is all there is.
    if not named and not (len(lists) == 1 and (len(value) == 1 or _holds_objects(lists[0]))):
        return None
    return _list_in(lists[0], under, fields, envelopes - 1) if lists else None


def _is_item(item: Any, fields: Collection[str]) -> bool:
    item = _inside(item)
    return isinstance(item, dict) and all(name in item for name in fields)


def _has(value: Any, fields: Collection[str]) -> bool:
    return isinstance(value, dict) and bool(fields) and all(name in value for name in fields)


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (bool(value) and all(isinstance(_inside(item), dict) for item in value))


def _object_in(value: Any, fields: Collection[str], envelopes: int = _ENVELOPES) -> dict[str, Any] | None:
    value = _inside(value)
    if isinstance(value, list) and len(value) == 1:
        value = _inside(value[0])
    if not isinstance(value, dict):
        return None
    if not fields or any(name in value for name in fields):
        return value
    inner = [one for one in map(_inside, value.values()) if isinstance(one, (dict, list))]
    return _object_in(inner[0], fields, envelopes - 1) if envelopes and len(inner) == 1 else None
