"""What goes to an embeddings endpoint and what comes back: texts in batches, vectors in base64 or as lists."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCH_SIZE = 128
"""Texts a request; the API takes 2,048."""
LOCAL_BATCH_SIZE = 32
"""Texts a request to a server of the user's own, as its model tells; TEI takes no more by default."""
_OPENAI = "text-embedding-"
BATCH_TOKENS = 250_000
"""Estimated tokens a request; the API takes 300,000."""
TEXT_TOKENS = 8_191
"""Estimated tokens of a text that are sent: the models read no further, and the API refuses a longer one."""

# Counted high, for a request above the limit is refused: prose in Latin letters has about four bytes a token, in
# Chinese or Japanese two to three.
_BYTES_A_TOKEN = 2
_LONGEST_WAIT = 86_400.0  # seconds: more is a clock that is wrong


class UnreadableAnswer(ValueError):
    """An answer is cut short or is none: the message says why, and quotes nothing of it."""


def batch_size(model: str) -> int:
    """Return how many texts a request for a model holds."""
    return BATCH_SIZE if model.startswith(_OPENAI) else LOCAL_BATCH_SIZE


def cut(text: str) -> tuple[str, int]:
    """Return the text, shortened to what a model reads, and its tokens by estimate."""
    encoded = text.encode("utf-8", "replace")
    whole = encoded[: TEXT_TOKENS * _BYTES_A_TOKEN].decode("utf-8", "ignore")
    return whole, -(-min(len(encoded), TEXT_TOKENS * _BYTES_A_TOKEN) // _BYTES_A_TOKEN)


def batches(texts: Sequence[tuple[str, int]], *, size: int, tokens: int) -> Iterator[list[str]]:
    """Yield the texts in order, at most `size` and at most `tokens` together, but always one."""
    batch: list[str] = []
    total = 0
    for text, count in texts:
        if batch and (len(batch) == size or total + count > tokens):
            yield batch
            batch, total = [], 0
        batch.append(text)
        total += count
    if batch:
        yield batch


class Answer(NamedTuple):
    """The vectors in the order of the texts, of whatever length they are, and the tokens that were counted, if any."""

    vectors: list[NDArray[np.float32]]
    tokens: int | None


def read(body: bytes, expected: int) -> Answer:
    """Return what an answer says.

    Raises:
        UnreadableAnswer: the answer is cut short or is none.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise UnreadableAnswer("it is not JSON, or not whole") from None
    items = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise UnreadableAnswer("it has no list of embeddings")
    if len(items) != expected:
        raise UnreadableAnswer(f"{len(items)} vectors came for {expected} texts")
    # Some servers leave the index out; then the order is the texts'.
    places = [item.get("index", place) for place, item in enumerate(items)]
    if sorted(places, key=str) != sorted(range(expected), key=str):
        raise UnreadableAnswer("its indexes are not those of the texts")
    vectors = {place: _vector(item.get("embedding")) for place, item in zip(places, items, strict=True)}
    return Answer([vectors[place] for place in range(expected)], _tokens(answer.get("usage")))


def _tokens(usage: object) -> int | None:
    counted = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return counted if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0 else None


def _vector(embedding: object) -> NDArray[np.float32]:
    """Read float32 values, little end first, in base64, or the numbers of servers that ignore the wish for it."""
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float32)
        if isinstance(embedding, list):
            with np.errstate(over="ignore"):  # what overflows is infinite, which is for the caller to refuse
                return np.asarray(embedding, dtype=np.float32).reshape(len(embedding))
    except (TypeError, ValueError, OverflowError):
        pass
    raise UnreadableAnswer("an embedding is neither base64 of float32 values nor a list of numbers")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return in how many seconds the service wants to be asked again, None where it does not say or says nonsense.

    Args:
        headers: Those of the answer, looked up by lower-case names: `retry-after-ms`, or `retry-after` in seconds or as
            a date.
        now: The present moment, in seconds since 1970.
    """
    seconds = None
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            seconds = float(headers[name]) * unit
            break
    else:
        with suppress(KeyError, ValueError, TypeError, OverflowError):
            seconds = max(parsedate_to_datetime(headers["retry-after"]).timestamp() - now, 0.0)
    return seconds if seconds is not None and 0 <= seconds <= _LONGEST_WAIT else None


def request(model: str, texts: Sequence[str], dimensions: int | None) -> dict[str, Any]:
    """Return the arguments of a call; without `dimensions` the model decides."""
    wanted = {} if dimensions is None else {"dimensions": dimensions}
    return {"model": model, "input": list(texts), "encoding_format": "base64", **wanted}
