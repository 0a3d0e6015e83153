"""Exit codes, and the one place where an error becomes a line on standard error.

A script can tell the three apart that look alike in a shell: nothing was found (1), the question was wrong (2), nobody
could answer (3).
"""

import json
import sys
from collections.abc import Sequence

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

    def __init__(
        self,
        cause: MemorandaError,
        *,
        stored: int,
        line: int | None = None,
        others: Sequence[tuple[int, InvalidInput]] = (),
        unread: int | None = None,
    ) -> None:
        """Say how far the input was stored, and why not further.

        Args:
            cause: What stopped it.
            stored: How many rows of the input are in the store now.
            line: The line of the input where the refused row begins, from 1.
            others: Lines and reasons of more rows that would be refused.
            unread: The line from which on rows were not looked at, if there are such.
        """
        place = "" if line is None else f"line {line}: "
        before = "The row before it is" if stored == 1 else f"The {stored:,} rows before it are"
        outcome = f"{before} stored: go on from there." if stored else "Nothing was stored."
        super().__init__(f"{place}{sentence(cause).rstrip('.')}. {outcome}")
        self.cause = cause
        self.stored = stored
        self.line = line
        self.others = tuple(others)
        self.unread = unread


_TOLD = 20
"""Rows that are named in one complaint; whoever mends so many knows what is wrong."""

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
    more: list[str] = []
    cause: MemorandaError = error
    if isinstance(error, Interrupted):
        cause = error.cause
        details |= {"line": error.line, "stored": error.stored}
        more = _more(error)
    if isinstance(cause, InvalidInput) and cause.field:
        details["field"] = cause.field
    kind, code = type(cause).__name__, code_of(error)
    return complain(sentence(error), kind=kind, code=code, as_json=as_json, more=more, **details)


def _more(error: Interrupted) -> list[str]:
    """Return a line a row that would be refused as well, and one for those that were not looked at."""
    told = [f"line {line}: {sentence(other)}" for line, other in error.others[: _TOLD - 1]]
    if len(error.others) > len(told):
        told.append(f"and {len(error.others) - len(told):,} more")
    if told and error.unread is not None:
        told.append(f"from line {error.unread} on nothing was looked at")
    return told


def complain(message: str, *, kind: str, code: int, as_json: bool, more: Sequence[str] = (), **details: object) -> int:
    """Print one line and those that belong to it, or one JSON document, on standard error and return the code."""
    from memoranda.redaction import redact

    # A password typed in the wrong place would come back in the complaint about it.
    text, *lines = (redact(" ".join(line.split())) for line in (message, *more))
    if as_json:
        also = {"more": lines} if lines else {}
        document = {"kind": kind, "message": text, "exit_code": code, **details, **also}
        text, lines = json.dumps({"error": document}, ensure_ascii=False), []
    print("\n".join([text if as_json else f"error: {text}", *(f"       {line}" for line in lines)]), file=sys.stderr)
    return code
