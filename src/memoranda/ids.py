"""Identifiers: a time-ordered UUID for the database, eight letters for people and models."""

import os
import time
from uuid import UUID

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # 32 symbols without the look-alikes l, o, 0 and 1: five bits each
_SHORT_LENGTH = 8
_LETTERS = _ALPHABET.encode() * 8  # by byte: each letter stands for eight of the 256

_last = 0


def new_id() -> UUID:
    """Return a UUIDv7 (RFC 9562) that sorts after every one this thread made before."""
    return _ordered(os.urandom(8))


def new_short_id() -> str:
    """Return eight random characters (40 bits) that are easy to read aloud and to copy."""
    return _letters(os.urandom(_SHORT_LENGTH))


def new_ids() -> tuple[UUID, str, UUID]:
    """Return an id, a short id and a later id: the system is asked once for what is random in them."""
    random = os.urandom(16 + _SHORT_LENGTH)
    return _ordered(random[:8]), _letters(random[16:]), _ordered(random[8:16])


def _ordered(random: bytes) -> UUID:
    global _last
    # Milliseconds in the upper 48 bits, the fraction in the next 12 (method 3 of section 6.2), and never backwards. Two
    # threads may meet in one tick, which 62 random bits tell apart: a lock would only order what happens at once.
    ticks = _last = max(_last + 1, time.time_ns() * 4096 // 1_000_000)
    value = (ticks >> 12) << 80 | 7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | int.from_bytes(random) >> 2
    return UUID(int=value)


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
