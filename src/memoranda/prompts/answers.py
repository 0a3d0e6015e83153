"""What a language model answered: read with care, validated, its numbers brought into range.

Pure. A model that leaves a field out, or writes a number as a word, loses the field; an item without what makes it one
is left out and counted; an answer that cannot be read at all says why, and is never taken for an empty one.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo

from memoranda import salvage
from memoranda.protocols import Completion
from memoranda.text import clean

BROKEN_OFF = "The model's answer breaks off: what it went on to say is not known."
_NUMBER = re.compile(r"\s*(?P<number>[0-9]{1,3}(?:\.[0-9]{1,6})?)\s*(?:/\s*10)?\s*")
_LABEL = 60  # characters of a category: a word or two
_YEARS = range(1900, 2200)
_SCALES = ("importance", "confidence")
_FRACTIONS = {"scales": "0..1"}
"""The context in which the items of an answer are validated that counts from 0 to 1."""


class Answer(BaseModel):
    """Something a model writes as JSON; what it adds of its own is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")


T = TypeVar("T", bound=Answer)


def _number(value: Any) -> int | float | None:
    if isinstance(value, str) and (match := _NUMBER.fullmatch(value)):
        value = float(match["number"]) if "." in match["number"] else int(match["number"])
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if known else None


def _is_fraction(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 < number < 1


def _scale(value: Any, info: ValidationInfo) -> int | None:
    """Read a number from 1 to 10: out of range is the nearest, and what is below 1 is a fraction of ten.

    1.0 is one, except in an answer that has fractions elsewhere: see `valid`.
    """
    number = _number(value)
    if number is None:
        return None
    of_one = _is_fraction(number) or (number == 1 and isinstance(number, float) and info.context == _FRACTIONS)
    return max(1, min(10, round(10 * number if of_one else number)))


def _position(value: Any) -> int | None:
    digits = re.sub(r"[\[\]#\s]", "", value) if isinstance(value, str) else value
    if isinstance(digits, str) and digits.isascii() and digits.isdecimal() and len(digits) < 10:
        return int(digits)
    return digits if isinstance(digits, int) and not isinstance(digits, bool) else None


def _day(value: Any) -> date | None:
    try:
        day = date.fromisoformat(value.strip()[:10]) if isinstance(value, str) else None
    except ValueError:
        return None
    return day if day and day.year in _YEARS else None


def _label(value: Any) -> str | None:
    text = " ".join(clean(value).split()) if isinstance(value, str) else ""
    return text if 0 < len(text) <= _LABEL else None


def _words(value: str) -> str:
    text = clean(value).strip()
    if not text:
        raise ValueError("is empty")
    return text


Scale: TypeAlias = Annotated[int | None, BeforeValidator(_scale)]
Position: TypeAlias = Annotated[int | None, BeforeValidator(_position)]
Day: TypeAlias = Annotated[date | None, BeforeValidator(_day)]
Name: TypeAlias = Annotated[str | None, BeforeValidator(_label)]
Words: TypeAlias = Annotated[str, AfterValidator(_words)]
Kind: TypeAlias = Literal["preference", "semantic", "episodic", "prospective", "procedural"] | None


class Proposal(Answer):
    """A memory that a model proposes."""

    content: Words
    category: Name = None
    importance: Scale = None
    confidence: Scale = None
    type: Kind = None
    date: Day = None
    """The day of an event."""
    message: Position = None
    """The message it was taken from, by its number."""
    about: Name = None
    """Whom it concerns, where statements must say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[T]):
    """The items of an answer."""

    items: Sequence[T] = field(default=(), repr=False)
    unusable: int = 0
    """How many had not what an item needs."""
    problem: str | None = None
    """Why the answer, or the rest of it, is not known; None where it was read to its end."""


def items(completion: Completion, kind: type[T], *, under: Sequence[str], fields: Collection[str]) -> Read[T]:
    """Return the items of an answer that is a list, alone or under a name."""
    found = salvage.read_items(completion.text, under=under, fields=fields)
    if found.failed:
        return Read(problem=BROKEN_OFF if completion.cut else found.problem)
    broken = completion.cut or not (found.complete or salvage.read(completion.text).complete)
    good = valid(found.value, kind, counts_to_one(found.value))
    unusable = len(found.value) - len(good)
    return Read(items=good, unusable=unusable, problem=BROKEN_OFF if broken else None)


def counts_to_one(values: Iterable[Any]) -> bool:
    """Say whether the numbers of an answer are from 0 to 1, as they are where one of its items has a fraction."""
    return any(_is_fraction(value.get(name)) for value in values if isinstance(value, dict) for name in _SCALES)


def valid(values: Sequence[Any], kind: type[T], to_one: bool = False) -> list[T]:
    """Return the items that are what they should be; `to_one` where their numbers are from 0 to 1."""
    return [item for value in values if (item := _validated(value, kind, to_one)) is not None]


def _validated(value: Any, kind: type[T], to_one: bool) -> T | None:
    try:
        return kind.model_validate(value, context=_FRACTIONS if to_one else None)
    except ValidationError:
        return None
