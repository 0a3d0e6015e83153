"""Identifiers: a time-ordered UUID for the database, eight letters for people and models."""

import os
import time
from collections.abc import Iterator
from uuid import UUID

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # 32 symbols without the look-alikes l, o, 0 and 1: five bits each
_SHORT_LENGTH = 8
_LETTERS = _ALPHABET.encode() * 8  # by byte: each letter stands for eight of the 256

_last = 0


def new_id() -> UUID:
    """Return a UUIDv7 (RFC 9562) that sorts after every one this thread made before."""
    return _at(_ticks(1), os.urandom(8))


def new_short_id() -> str:
    """Return eight random characters (40 bits) that are easy to read aloud and to copy."""
    return _letters(os.urandom(_SHORT_LENGTH))


def new_ids(count: int) -> Iterator[tuple[UUID, str, UUID]]:
    """Yield for each of so many rows an id, a short id and a later id.

    The system is asked once for what is random in all of them, and once for the time.
    """
    each = 16 + _SHORT_LENGTH
    random, tick = os.urandom(each * count), _ticks(2 * count)
    for start in range(0, len(random), each):
        part = random[start : start + each]
        yield _at(tick, part[:8]), _letters(part[16:]), _at(tick + 1, part[8:16])
        tick += 2


def _ticks(count: int) -> int:
    """Return the first of so many ticks that come after those this thread was given before, 4096 to a millisecond."""
    global _last
    # Two threads may meet in one tick, which 62 random bits tell apart: a lock would only order what happens at once.
    first = max(_last + 1, time.time_ns() * 4096 // 1_000_000)
    _last = first + count - 1
    return first


def _at(tick: int, random: bytes) -> UUID:
    # Milliseconds in the upper 48 bits, the fraction in the next 12 (method 3 of section 6.2).
    return UUID(int=(tick >> 12) << 80 | 7 << 76 | (tick & 0xFFF) << 64 | 0b10 << 62 | int.from_bytes(random) >> 2)


def _letters(random: bytes) -> str:
    return random.translate(_LETTERS).decode()


def parse(text: object) -> UUID | str | None:
    """Return the UUID or the short id that a caller wrote, or None when it can be neither."""
    if isinstance(text, UUID):
        return text
    if not isinstance(text, str):
        return None
    text = text.strip().strip("[]").lower()
    if len(text) == _SHORT_LENGTH:
        return text if all(c in _ALPHABET for c in text) else None
    try:
        return UUID(text)
    except ValueError:
        return None
