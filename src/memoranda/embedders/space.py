"""The vector space of a store: which embedder made its vectors, and whether that one is at hand."""

from memoranda.embedders import is_remote, resolve
from memoranda.embedders.cache import CachedEmbedder
from memoranda.errors import EmbedderMismatch, EmbedderUnavailable, MemorandaError
from memoranda.protocols import Embedder
from memoranda.ranking import floors

NONE = ""
"""What the store's setting says when it goes by words only."""


class VectorSpace:
    """Holds what the caller asked for until the store has said what its vectors were made by.

    `settled` is False until then. Afterwards there is a `model`, or none and perhaps a `problem` that says why: a store
    whose embedder is not at hand still answers, from words.
    """

    def __init__(self, given: str | Embedder | None) -> None:
        """Take `None` and "auto" for "whatever the store uses", and for the best that is installed in a new store."""
        self._chosen = given not in (None, "auto")
        self._embedder = _cached(resolve("auto" if given is None else given))
        self.settled = False
        self.problem: str | None = None
        self.measured: floors.Measured | None = None
        """The floor that was measured on this store for this model, if one was."""

    @property
    def chosen(self) -> bool:
        """Whether the caller named an embedder; otherwise the store's own is taken."""
        return self._chosen

    @property
    def proposed(self) -> str:
        """The model a new store would be made with."""
        return self._embedder.model if self._embedder else NONE

    @property
    def model(self) -> str | None:
        """The model whose vectors are written and searched, None for words only."""
        return self._embedder.model if self._embedder else None

    @property
    def name(self) -> str:
        """The embedder's name, empty for words only."""
        return self._embedder.name if self._embedder else NONE

    @property
    def embedder(self) -> CachedEmbedder:
        """The embedder to use.

        Raises:
            EmbedderUnavailable: there is none.
        """
        if self._embedder is None:
            raise EmbedderUnavailable(self.problem)
        return self._embedder

    @property
    def configured(self) -> bool:
        """Whether the embedder has what it needs to be called, such as a key."""
        return self._embedder is not None and self._embedder.configured

    @property
    def deferred(self) -> bool:
        """Whether memories are embedded after they were stored, because it takes a while."""
        return self._embedder is not None and self._embedder.deferred

    def settle(self, stored: str, floor: object = None) -> None:
        """Adopt the model the store was made with, and the floor that was measured on it, if one was.

        Raises:
            EmbedderMismatch: the caller chose another embedder.
        """
        if stored != self.proposed:
            if not self._chosen:
                self._adopt(stored)
            elif self._embedder is not None:
                raise EmbedderMismatch(stored or "none", self.proposed)
        self.measured = floors.stored(floor, self.model)
        self.settled = True

    def _adopt(self, stored: str) -> None:
        name = stored.rpartition("@")[0]
        if is_remote(name):
            self._embedder = None
            self.problem = f"the store's embedder {stored!r} sends texts out: name it as embedder="
            return
        try:
            self._embedder = _cached(resolve(name or "none"))
        except MemorandaError:
            self._embedder = None
        if stored != self.proposed:
            self._embedder = None
            self.problem = f"the store's embedder {name!r} is not at hand: pass it as embedder="


def _cached(embedder: Embedder | None) -> CachedEmbedder | None:
    return CachedEmbedder(embedder) if embedder else None
