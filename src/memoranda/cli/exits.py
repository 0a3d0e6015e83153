"""Exit codes, and the one place where an error becomes a line on standard error.

A script can tell the three apart that look alike in a shell: nothing was found (1), the question was wrong (2), nobody
could answer (3).
"""

import json
import sys

from memoranda.cli.wording import sentence
from memoranda.errors import (
    ConfigurationError,
    InvalidInput,
    MemorandaError,
    MemoryNotActive,
    MemoryNotFound,
    NotAllowed,
    NotTheAuthor,
)

DONE = 0
"""Done, or found."""
NONE = 1
"""Nothing found, no such memory, or an abstention."""
REFUSED = 2
"""The command or its input cannot be used; nothing was changed by the refused part."""
FAILED = 3
"""The store failed, cannot be reached, or has no tables yet."""
INTERRUPTED = 130
UNREAD = 141
"""Whoever read the output has gone, as `head` does: what a shell reports of a process ended by that signal."""

EPILOG = (
    "Exit codes: 0 done or found; 1 nothing found, no such memory, or an abstention; 2 the command or its input was "
    "refused; 3 the store failed, cannot be reached or has no tables yet."
)


class Interrupted(MemorandaError):
    """The rows before this one were stored: mend it and go on from there."""

    def __init__(self, cause: MemorandaError, *, stored: int, line: int | None = None) -> None:
        """Say how far the input was stored, and why not further.

        Args:
            cause: What stopped it.
            stored: How many rows of the input are in the store now.
            line: The line of the input where the refused row begins, from 1.
        """
        place = "" if line is None else f"line {line}: "
        before = "The row before it is" if stored == 1 else f"The {stored:,} rows before it are"
        outcome = f"{before} stored: go on from there." if stored else "Nothing was stored."
        super().__init__(f"{place}{sentence(cause).rstrip('.')}. {outcome}")
        self.cause = cause
        self.stored = stored
        self.line = line


_REFUSALS = (ConfigurationError, InvalidInput, MemoryNotActive, NotAllowed, NotTheAuthor)


def code_of(error: MemorandaError) -> int:
    """Return the exit code of an error; whatever is not known to be harmless counts as a failure of the store."""
    if isinstance(error, Interrupted):
        return code_of(error.cause)
    if isinstance(error, MemoryNotFound):
        return NONE
    return REFUSED if isinstance(error, _REFUSALS) else FAILED


def report(error: MemorandaError, *, as_json: bool) -> int:
    """Print an error on standard error and return its exit code."""
    details: dict[str, object] = {}
    cause: MemorandaError = error
    if isinstance(error, Interrupted):
        cause = error.cause
        details |= {"line": error.line, "stored": error.stored}
    if isinstance(cause, InvalidInput) and cause.field:
        details["field"] = cause.field
    return complain(sentence(error), kind=type(cause).__name__, code=code_of(error), as_json=as_json, **details)


def complain(message: str, *, kind: str, code: int, as_json: bool, **details: object) -> int:
    """Print one line, or one JSON document, on standard error and return the code."""
    from memoranda.redaction import redact

    # A password typed in the wrong place would come back in the complaint about it.
    text = redact(" ".join(message.split()))
    if as_json:
        text = json.dumps({"error": {"kind": kind, "message": text, "exit_code": code, **details}}, ensure_ascii=False)
    else:
        text = f"error: {text}"
    print(text, file=sys.stderr)
    return code
