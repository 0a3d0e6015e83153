"""What the engine's errors say, in the words of somebody who types a command and writes no Python."""

import re

from memoranda.errors import EmbedderMismatch, InvalidInput, MemorandaError, NotAllowed

_PLAIN = (
    (re.compile(r"Input should be a valid date\b.*"), "write a date such as 2026-03-12"),
    (
        re.compile(r"Input should be a valid datetime\b.*"),
        "write a date or a moment such as 2026-03-12 or 2026-03-12T09:30:00+01:00",
    ),
    (
        re.compile(r"(?<=about: )String should match pattern .*"),
        "write everyone, person:NAME, agent:NAME or thread:NAME",
    ),
    (re.compile(r"Input should be less than or equal to "), "must be at most "),
    (re.compile(r"Input should be greater than or equal to "), "must be at least "),
    (re.compile(r"\b(?:Input|String) should "), "must "),
)
"""The speech of the validator, and what stands for it; the fields keep their names, which are those of JSON rows."""


_PYTHON = re.compile(r" or (?:call )?`MemoryEngine\.setup\(\)`(?: once)?")
"""The second half of a remedy whose first half is a command."""


def sentence(error: MemorandaError) -> str:
    """Return the message of an error, its remedy one that can be typed."""
    text = _PYTHON.sub("", str(error))
    if isinstance(error, EmbedderMismatch):
        return (
            f"This store's vectors were made by {error.stored!r}; {error.given!r} was given, and vectors of two "
            f"embedders cannot be compared: use --embedder {error.stored.rpartition('@')[0]}, or leave --embedder and "
            "MEMORANDA_EMBEDDER out."
        )
    if isinstance(error, NotAllowed) and "MEMORANDA_USER" in text:
        return "This preset records who wrote each memory: name the user with --user or MEMORANDA_USER."
    if isinstance(error, InvalidInput):
        for pattern, plain in _PLAIN:
            text = pattern.sub(plain, text)
    return text
