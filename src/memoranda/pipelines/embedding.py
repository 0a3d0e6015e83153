"""How rows are embedded of which an embedder may refuse one: what is refused together is asked for in halves.

A service refuses a batch for one text in it, or because it takes fewer at a time. Neither must cost the others their
vectors, so the halves go on down to the single text; and a text is to blame only where the embedder takes another one.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from memoranda.db.queries.vectors import Unembedded
from memoranda.effects import Steps, embed
from memoranda.errors import EmbedderRefused, EmbedderUnavailable
from memoranda.protocols import Purpose

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_TEXTS = (400, 413, 422)
"""HTTP statuses by which a service refuses what is sent, not whoever sends it."""
_HARMLESS = "memory"
_LEAST = 0.001  # seconds: an answer that is known already comes at once
_PATIENCE = 8  # texts that are refused one after the other before any is taken: then it is not they that are to blame


class TextsRefused(EmbedderRefused):
    """The embedder refuses texts, and takes others."""


class Embedded(NamedTuple):
    """Rows with a vector each, and the rows whose texts are refused."""

    rows: list[Unembedded]
    vectors: "list[NDArray[np.float32]]"
    refused: list[Unembedded]
    error: TextsRefused | None
    """Says why, where there are any."""


def embedded(page: Sequence[Unembedded]) -> Steps[Embedded]:
    """Embed rows in as few calls as the embedder takes.

    Raises:
        EmbedderRefused: the embedder refuses every call, whatever the text.
        EmbedderUnavailable: it gave no answer; what it gave before is in its memory.
    """
    vectors, error = yield from in_halves([row.text for row in page], "text")
    made = [(row, vector) for row, vector in zip(page, vectors, strict=True) if vector is not None]
    refused = [row for row, vector in zip(page, vectors, strict=True) if vector is None]
    return Embedded([row for row, _ in made], [vector for _, vector in made], refused, error)


def in_halves(
    texts: Sequence[str], purpose: Purpose, limit: float | None = None
) -> "Steps[tuple[list[NDArray[np.float32] | None], TextsRefused | None]]":
    """Return a vector a text, None of those that are refused, and what to say of these.

    Args:
        texts: What to embed.
        purpose: Why.
        limit: Seconds that somebody waits, for all of them together; what has no vector then stays without.

    Raises:
        EmbedderRefused: the embedder refuses every call, whatever the text.
        EmbedderUnavailable: it gave no answer.
    """
    made: list[NDArray[np.float32] | None] = [None] * len(texts)
    until = None if limit is None else time.monotonic() + limit
    left = [(0, len(texts))] if texts else []
    refused, some = 0, False
    reason: TextsRefused | None = None
    while left:
        begin, end = left.pop()
        try:
            vectors = yield from embed(texts[begin:end], purpose, _rest(until))
        except EmbedderRefused as error:
            if not error.texts and error.status not in OF_TEXTS:
                raise
            if end - begin > 1:
                middle = (begin + end) // 2
                left += [(middle, end), (begin, middle)]
                continue
            refused += 1
            if not some and (not error.texts or not left or refused == _PATIENCE):
                if until is not None and len(texts) == 1:
                    raise EmbedderUnavailable(str(error)) from None
                yield from _takes_another(purpose, _rest(until))
                some = True
            said = f"{refused} of {len(texts)} texts were refused: {error}"
            reason = TextsRefused(said, status=error.status, texts=error.texts)
        except EmbedderUnavailable as error:
            if until is None or not some:
                raise
            return made, TextsRefused(f"{sum(x is None for x in made)} of {len(texts)} texts are left: {error}")
        else:
            made[begin:end], some = vectors, True
    return made, reason


def _rest(until: float | None) -> float | None:
    return None if until is None else max(round(until - time.monotonic(), 3), _LEAST)


def _takes_another(purpose: Purpose, limit: float | None) -> Steps[None]:
    """Ask for a text that is to blame for nothing: who refuses that as well is not asked on."""
    try:
        yield from embed([_HARMLESS], purpose, limit)
    except EmbedderRefused as error:
        if error.texts:  # or it cannot read its own service's answers, which may pass
            raise EmbedderUnavailable(str(error)) from None
        raise
