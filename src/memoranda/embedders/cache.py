"""What stands between the engine and any embedder: texts seen before are not sent again, and answers are checked."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigurationError, EmbedderRefused, EmbedderUnavailable, MemorandaError
from memoranda.forks import renew_after_fork
from memoranda.protocols import Embedder, Purpose
from memoranda.text import clean
from memoranda.time_limits import TimeLimit

if TYPE_CHECKING:
    from memoranda.protocols import Vectors

MAX_CHARACTERS = 12_000
"""Characters of a text that are embedded; models of this kind read no further."""
CACHED_TEXTS = 2_048
"""Texts whose vectors are remembered."""

_OF_VALUES = (ValueError, LookupError, TypeError)

_log = logging.getLogger("memoranda.embedders")
_Key: TypeAlias = tuple[str, str]
_Known: TypeAlias = dict[_Key, NDArray[np.float32]]
_Memory: TypeAlias = OrderedDict[_Key, NDArray[np.float32]]


class CachedEmbedder:
    """An embedder that remembers the texts it has seen, and vouches for the vectors it returns.

    Of each call only the texts not seen before are sent, each once, in one call and in order. Texts are cut at 12,000
    characters, with a warning in the log of `memoranda.embedders`. Purposes share vectors when the embedder says
    `distinguishes_purpose = False`. Safe to share between threads and event loops.
    """

    def __init__(self, embedder: Embedder, size: int = CACHED_TEXTS) -> None:
        """Stand before an embedder and remember the vectors of at most `size` texts, the latest used."""
        self.embedder = embedder
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.deferred = bool(getattr(embedder, "deferred", False))
        self.configured = bool(getattr(embedder, "configured", True))
        self.distinguishes_purpose = bool(getattr(embedder, "distinguishes_purpose", True))
        self.local = bool(getattr(embedder, "local", False))
        self._size = size
        self._seen: _Memory = OrderedDict()
        self._lock = threading.Lock()
        self._time = TimeLimit("embedder")
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = threading.Lock()
        self._seen = OrderedDict(self._seen)

    def forget(self) -> None:
        """Forget every text that was seen, and its vector."""
        with self._lock:
            self._seen = OrderedDict()

    @property
    def model(self) -> str:
        """The vector space, as stored vectors are stamped with it: `name@dimensions`."""
        return f"{self.name}@{self.dimensions}"

    def embed(self, texts: Sequence[str], purpose: Purpose = "text", limit: float | None = None) -> NDArray[np.float32]:
        """Return one row of `dimensions` finite floats for each text, in order.

        Args:
            texts: What to embed.
            purpose: Why.
            limit: Seconds it may take, unless the embedder is local. What comes later is only remembered.

        Raises:
            EmbedderUnavailable: the embedder failed, took too long, or gave too few vectors or numbers that are not
                finite.
            ConfigurationError: the vectors have another length than the embedder declares.
        """
        keys = self._keys(texts, purpose)
        known, missing, memory = self._look_up(keys)
        if missing:

            def fresh() -> _Known:
                failed = None
                try:
                    answer = self.embedder.embed([text for _, text in missing], purpose)
                except Exception as exc:
                    failed = self._failed(exc)
                if failed is not None:
                    raise failed  # not from the embedder's own error, which may quote a text
                return self._remembered(missing, answer, memory)

            if limit is None or self.local:
                known |= fresh()
            else:
                try:
                    known |= self._time.within(limit, fresh)
                except TimeoutError:
                    raise self._too_late(limit) from None
        return self._rows(keys, known)

    async def aembed(
        self, texts: Sequence[str], purpose: Purpose = "text", limit: float | None = None
    ) -> NDArray[np.float32]:
        """Do the same as `embed`, with the embedder's `aembed`, which is cancelled at the limit."""
        keys = self._keys(texts, purpose)
        known, missing, memory = self._look_up(keys)
        if missing:

            async def fresh() -> _Known:
                failed = None
                try:
                    answer = await self.embedder.aembed([text for _, text in missing], purpose)
                except Exception as exc:
                    failed = self._failed(exc)
                if failed is not None:
                    raise failed
                return self._remembered(missing, answer, memory)

            if limit is None or self.local:
                known |= await fresh()
            else:
                try:
                    known |= await self._time.awithin(limit, fresh())
                except TimeoutError:
                    raise self._too_late(limit) from None
        return self._rows(keys, known)

    def _keys(self, texts: Sequence[str], purpose: Purpose) -> list[_Key]:
        if cut := sum(len(text) > MAX_CHARACTERS for text in texts):
            _log.warning("%d of %d texts were cut at %d characters to be embedded", cut, len(texts), MAX_CHARACTERS)
        kind = purpose if self.distinguishes_purpose else ""
        return [(kind, clean(text[: 2 * MAX_CHARACTERS])[:MAX_CHARACTERS]) for text in texts]

    def _look_up(self, keys: Sequence[_Key]) -> tuple[_Known, list[_Key], _Memory]:
        """Return the vectors that are known, the keys of the others in order, each once, and where to remember these.

        What is forgotten while an embedder is at it must not be remembered when it comes back.
        """
        distinct = dict.fromkeys(keys)
        with self._lock:
            known = {key: self._seen[key] for key in distinct if key in self._seen}
            for key in known:
                self._seen.move_to_end(key)
            return known, [key for key in distinct if key not in known], self._seen

    def _remembered(self, missing: list[_Key], fresh: "Vectors", memory: _Memory) -> _Known:
        made = dict(zip(missing, self._checked(fresh, len(missing)), strict=True))
        with self._lock:
            for key in missing[-self._size :] if self._size else ():
                memory[key] = made[key].copy()  # a row of its own, so that the batch can be freed
            while len(memory) > self._size:
                memory.popitem(last=False)
        return made

    def _rows(self, keys: Sequence[_Key], known: _Known) -> NDArray[np.float32]:
        rows = np.empty((len(keys), self.dimensions), dtype=np.float32)
        for place, key in enumerate(keys):
            rows[place] = known[key]
        return rows

    def _checked(self, fresh: "Vectors", expected: int) -> NDArray[np.float32]:
        try:
            lengths = [len(vector) for vector in fresh]
            if lengths == [self.dimensions] * expected:
                with np.errstate(over="ignore"):  # what overflows is found as not finite below
                    vectors = np.asarray(fresh, dtype=np.float32)
                if np.isfinite(vectors).all():
                    return vectors
        except (TypeError, ValueError):
            raise EmbedderUnavailable(f"Embedder {self.name!r} gave something that is not numbers.") from None
        if len(lengths) != expected:
            raise EmbedderUnavailable(f"Embedder {self.name!r} gave {len(lengths)} vectors for {expected} texts.")
        for length in lengths:
            if length != self.dimensions:
                raise ConfigurationError(
                    f"Embedder {self.name!r} gave a vector of {length} numbers, but declares {self.dimensions}: "
                    "set its dimensions to what the model returns."
                )
        raise EmbedderUnavailable(f"Embedder {self.name!r} gave numbers that are not finite.")

    def _too_late(self, limit: float) -> EmbedderUnavailable:
        return EmbedderUnavailable(f"Embedder {self.name!r} gave no answer within {limit:g} s.")

    def _failed(self, exc: Exception) -> MemorandaError:
        """Return the error to raise: our own as it is, anything else by its type, since its text may quote ours."""
        if isinstance(exc, MemorandaError):
            return exc
        if isinstance(exc, AssertionError):
            raise exc  # a test's embedder that met a text it does not know
        said = f"Embedder {self.name!r} failed with {type(exc).__name__}."
        # What Python raises over a value is about the texts: others may do.
        return EmbedderRefused(said, texts=True) if isinstance(exc, _OF_VALUES) else EmbedderUnavailable(said)
