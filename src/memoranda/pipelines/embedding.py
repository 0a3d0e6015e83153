"""How rows are embedded of which an embedder may refuse one: what is refused together is asked for in halves.

A service refuses a batch for one text in it, or because it takes fewer at a time. Neither must cost the others their
vectors, so the halves go on down to the single text; and a text is to blame only where the embedder takes another one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from memoranda.db.queries.vectors import Unembedded
from memoranda.effects import Steps, embed
from memoranda.errors import EmbedderRefused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_TEXTS = (400, 413, 422)
"""HTTP statuses by which a service refuses what is sent, not whoever sends it."""
_HARMLESS = "memory"


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
    made = Embedded([], [], [], None)
    left = [page] if page else []
    while left:
        part = left.pop()
        try:
            vectors = yield from embed([row.text for row in part], "text")
        except EmbedderRefused as error:
            if error.status not in OF_TEXTS:
                raise
            middle = len(part) // 2
            if middle:
                left += [part[middle:], part[:middle]]
                continue
            if not made.rows:
                yield from embed([_HARMLESS], "text")
            made.refused.extend(part)
            said = f"{len(made.refused)} of {len(page)} texts were refused: {error}"
            made = made._replace(error=TextsRefused(said, status=error.status))
        else:
            made.rows.extend(part)
            made.vectors.extend(vectors)
    return made
