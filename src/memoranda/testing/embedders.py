"""Embedders for tests: one that fails, one that knows a few texts, one of any size, one that counts."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoranda.protocols import Embedder, Purpose, Vectors


class BrokenEmbedder:
    """Raise at every call, as a service that is down does; `calls` counts the tries."""

    def __init__(self, error: Exception | None = None, *, name: str = "test/broken", dimensions: int = 8) -> None:
        self.name = name
        self.dimensions = dimensions
        self.error = error or ConnectionError("the embedder is down")
        self.calls = 0

    def embed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Raise the error."""
        self.calls += 1
        raise self.error

    async def aembed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Async twin of `embed`."""
        return self.embed(texts, purpose)


class FixedEmbedder:
    """Answer from a table of texts and vectors, so that a test decides each cosine; an unknown text is an error.

    >>> FixedEmbedder({"cats": [1, 0], "dogs": [0, 1]}).embed(["dogs"], "query")
    [[0.0, 1.0]]
    """

    local = True

    def __init__(self, vectors: Mapping[str, Sequence[float]], *, name: str = "test/fixed") -> None:
        sizes = {len(vector) for vector in vectors.values()}
        if len(sizes) != 1:
            raise ValueError("FixedEmbedder needs at least one vector, and all of one length")
        self.name = name
        self.dimensions = sizes.pop()
        self.vectors = {text: [float(x) for x in vector] for text, vector in vectors.items()}

    def embed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Return the vectors of the table.

        Raises:
            AssertionError: a text is not in the table; the message quotes it, since it is a test's own.
        """
        unknown = [text for text in texts if text not in self.vectors]
        if unknown:
            raise AssertionError(f"FixedEmbedder knows no vector for {unknown}")
        return [list(self.vectors[text]) for text in texts]

    async def aembed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Async twin of `embed`."""
        return self.embed(texts, purpose)


class HashedEmbedder:
    """Embed by the words of a text, in any number of dimensions: for stores that move from one size to another."""

    local = True
    distinguishes_purpose = False

    def __init__(self, dimensions: int, *, name: str = "test/hashed") -> None:
        self.name = name
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Return vectors of length one; each word adds to four of the numbers."""
        import numpy as np

        from memoranda.text import words

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in words(text):
                digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                for number in np.frombuffer(digest, "<u4"):
                    vector[number % self.dimensions] += 1 if number >> 31 else -1
            vector /= np.linalg.norm(vector) or 1
        return vectors

    async def aembed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Async twin of `embed`."""
        return self.embed(texts, purpose)


class CountingEmbedder:
    """Pass everything to another embedder and keep the texts of each call, oldest first, in `calls`."""

    def __init__(self, embedder: "Embedder") -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.local = bool(getattr(embedder, "local", False))
        self.calls: list[tuple[str, ...]] = []
        self._embedder = embedder

    @property
    def texts(self) -> list[str]:
        """Every text that was sent, in order, whatever the call."""
        return [text for call in self.calls for text in call]

    def embed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Return what the other embedder returns."""
        self.calls.append(tuple(texts))
        return self._embedder.embed(texts, purpose)

    async def aembed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Async twin of `embed`."""
        self.calls.append(tuple(texts))
        return await self._embedder.aembed(texts, purpose)


class DeferredEmbedder:
    """Pass everything to another embedder, in the background, after a number of calls that fail; `calls` counts all.

    `errors` are raised one a call, before the first call that works; more can be appended at any time.
    """

    deferred = True

    def __init__(self, embedder: "Embedder", errors: Sequence[Exception] = ()) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.distinguishes_purpose = bool(getattr(embedder, "distinguishes_purpose", True))
        self.local = bool(getattr(embedder, "local", False))
        self.errors = list(errors)
        self.calls = 0
        self._embedder = embedder

    def embed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Raise the next error, or return what the other embedder returns."""
        self._fail_or_go_on()
        return self._embedder.embed(texts, purpose)

    async def aembed(self, texts: Sequence[str], purpose: "Purpose") -> "Vectors":
        """Async twin of `embed`."""
        self._fail_or_go_on()
        return await self._embedder.aembed(texts, purpose)

    def _fail_or_go_on(self) -> None:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
