"""Logs of who said what: lines such as `Ana: see you at six`, with or without a time before the name.

A line without a name belongs to the message before it. Prose has colons, too: where at least two names come back, a
name that comes once is taken for text.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from memoranda.messages import Message, Role
from memoranda.transcripts.skipped import Skipped

NO_SPEAKER = "lines before the first name"
UNCLEAR_DAY = "days such as 03/04/2025 that can be read in two ways (the messages are there, without their time)"

# No two runs of white space stand side by side, or a line of nothing else would be tried in all ways of cutting it up.
_DAY = r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})|(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<c>\d{4}|\d{2})"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?(?:\s*+(?P<half>[AaPp]\.?[Mm]\b\.?))?"
_ZONE = r"(?:\s*+(?P<zone>(?:Z|UTC)\b|[+-]\d{2}:?\d{2}))?"
_STAMP = rf"[\[(]?\s*+(?:(?:{_DAY})(?:[,\s]|T(?=\d))*+)?(?:{_CLOCK})?{_ZONE}\s*+[\])]?\s*+(?:[-\u2013\u2014|]\s++)?"
_NAME = r"(?P<name>(?:[^\W\d_]|\+\d)[^\n:<>\"{}\[\]/\\]{0,39}?)"
_LINE = re.compile(rf"[\u200e\u200f\ufeff]*+(?P<stamp>{_STAMP})<?{_NAME}>?\s?:(?:\s+(?P<text>.*)|$)", re.DOTALL)
_WORDS = 5  # of a name


def messages(lines: Sequence[str], user: str | None, zone: tzinfo, name: str, skipped: Skipped) -> list[Message]:
    """Return the messages of a log.

    Args:
        lines: The whole log.
        user: Whose messages are the user's, in any case; the first speaker's when left out. All others' are the
            assistant's.
        zone: Where a time without an offset is read.
        name: The conversation, for what is skipped.
        skipped: Counts what is left out.
    """
    begun = [_begun(line) for line in lines]
    speakers = _speakers([match["name"].strip() for match in begun if match])
    day_first = _day_first([match for match in begun if match])
    found: list[tuple[str, datetime | None, list[str]]] = []
    unclear = 0
    for line, match in zip(lines, begun, strict=True):
        if match and match["name"].strip() in speakers:
            when, doubtful = _moment(match, day_first, zone)
            unclear += doubtful
            found.append((match["name"].strip(), when, [match["text"] or ""]))
        elif found:
            found[-1][2].append(line)
        elif line.strip():
            skipped.add(NO_SPEAKER, name)
    if unclear:
        skipped.add(UNCLEAR_DAY, name, unclear)
    me = (user if user is not None else found[0][0] if found else "").casefold()
    return list(_said(found, me))


def speakers(lines: Sequence[str]) -> list[str]:
    """Return who speaks in a log, in the order of their first words; empty where it is none."""
    names = [match["name"].strip() for line in lines if (match := _begun(line))]
    known = _speakers(names)
    return list(dict.fromkeys(name for name in names if name in known))


def begins(lines: Sequence[str]) -> bool:
    """Say whether the first line that is not empty is somebody's."""
    return next((_begun(line) is not None for line in lines if line.strip()), False)


def _said(found: Sequence[tuple[str, datetime | None, list[str]]], user: str) -> Iterator[Message]:
    for speaker, when, lines in found:
        text = "\n".join(lines).strip()
        if text:
            role: Role = "user" if speaker.casefold() == user else "assistant"
            yield Message(role=role, name=speaker, content=text, created_at=when)


def _begun(line: str) -> re.Match[str] | None:
    """Return a line as the beginning of a message, if it may be one."""
    match = _LINE.fullmatch(line)
    if match is None or len(match["name"].split()) > _WORDS:
        return None
    return match


def _speakers(names: Sequence[str]) -> frozenset[str]:
    counts = Counter(names)
    again = frozenset(name for name, count in counts.items() if count > 1)
    return again if len(again) > 1 else frozenset(counts)


def _day_first(matches: Sequence[re.Match[str]]) -> bool | None:
    """Say which of the first two numbers of a day is the day; None where nothing tells."""
    pairs = [(int(match["a"]), int(match["b"])) for match in matches if match["a"]]
    if any(first > 12 for first, _ in pairs):
        return True
    return False if any(second > 12 for _, second in pairs) else None


def _moment(match: re.Match[str], day_first: bool | None, zone: tzinfo) -> tuple[datetime | None, bool]:
    """Return when something was said, and whether its day could be read in two ways."""
    if match["hour"] is None or (match["y"] is None and match["a"] is None):
        return None, False
    if match["y"]:
        year, month, day = int(match["y"]), int(match["m"]), int(match["d"])
    else:
        first, second, year = int(match["a"]), int(match["b"]), int(match["c"])
        if day_first is None and first != second:
            return None, True
        day, month = (first, second) if day_first else (second, first)
        year += 2000 if year < 100 else 0
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"][0] in "Pp" else 0)
    try:
        read = datetime(year, month, day, hour, int(match["minute"]), int(match["second"] or 0))
        offset = (match["zone"] or "").replace("UTC", "Z")
        return (datetime.fromisoformat(read.isoformat() + offset) if offset else read.replace(tzinfo=zone)), False
    except ValueError:
        return None, False
