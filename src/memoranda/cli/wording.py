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

_REMEDIES = (
    ("have `spaces.create` called for it first", "run `memoranda spaces create` for it first"),
    ("`spaces.create` opens it again", "`memoranda spaces create` opens it again"),
    (
        "have `projects.add_member` called for the user, or write it with audience 'private'",
        "have `memoranda projects add` run for the user, or write it with --audience private",
    ),
    ("name it as embedder=", "name it with --embedder or MEMORANDA_EMBEDDER"),
    ("pass it as embedder=", "name it with --embedder or MEMORANDA_EMBEDDER"),
    (", or pass api_key=", ""),
    (" or api_key=", ""),
)
"""Verbs of the Python API, and the commands that stand for them."""


def typed(text: str) -> str:
    """Return a message with remedies that can be typed."""
    text = _PYTHON.sub("", text)
    for verb, instead in _REMEDIES:
        text = text.replace(verb, instead)
    return text


def sentence(error: MemorandaError) -> str:
    """Return the message of an error, its remedy one that can be typed."""
    text = typed(str(error))
    if isinstance(error, EmbedderMismatch):
        return _mismatch(error)
    if isinstance(error, NotAllowed) and "MEMORANDA_USER" in text:
        return "This preset records who wrote each memory: name the user with --user or MEMORANDA_USER."
    if isinstance(error, InvalidInput):
        for pattern, plain in _PLAIN:
            text = pattern.sub(plain, text)
    return text


def _mismatch(error: EmbedderMismatch) -> str:
    use, other = embedder_name(error.stored), embedder_name(error.given)
    made = f"This store's vectors were made by {error.stored!r}" if use else "This store goes by words only"
    return (
        f"{made}; {error.given!r} was given, and vectors of two embedders cannot be compared: "
        f"{f'use --embedder {use}, or ' if use else ''}leave --embedder and MEMORANDA_EMBEDDER out. To move the store "
        f"to the other one: memoranda reembed --embedder {other}"
    )


def embedder_name(model: str) -> str:
    """Return what --embedder takes for a model: of a service's with its dimensions, of which it may offer several."""
    from memoranda.embedders import is_remote

    return model if is_remote(model) else model.rpartition("@")[0]
