"""The embedder that is always there: texts are alike when they share words.

Each distinct word of `memoranda.text.words` adds to four of the dimensions, with a sign, as in feature hashing
(Weinberger et al., 2009). Without the signs unrelated texts come out at 0.31 instead of 0.03. Texts of five words or
more that differ by one added word have a cosine of about sqrt(n / (n + 1)), so above 0.9.
"""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memoranda.protocols import Purpose
from memoranda.text import words

# Four dimensions a word. The digest's length changes all its bytes; with 24 the worked examples in
# tests/unit/test_hash_words.py come out without a chance collision.
_BUCKETS = 4
_DIGEST_BYTES = 24
_LONG = 10_000  # characters: about a millisecond


class HashWords:
    """Embeds a text by the words in it: offline, deterministic across processes and machines.

    Vectors are L2-normalised; a text without a word is the zero vector, which is similar to nothing.
    """

    name = "hash/words"
    dimensions = 512
    distinguishes_purpose = False
    local = True

    def embed(self, texts: Sequence[str], purpose: Purpose = "text") -> NDArray[np.float32]:
        """Return one row of 512 floats for each text; query and text are embedded alike."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            found = [_buckets(word) for word in words(text)]
            if found:
                indexes, signs = zip(*found, strict=True)
                sums = np.bincount(np.concatenate(indexes), np.concatenate(signs), self.dimensions)
                length = np.sqrt(sums @ sums)
                vector[:] = sums / (length or 1.0)  # signs of a lone word may cancel
        return vectors

    async def aembed(self, texts: Sequence[str], purpose: Purpose = "text") -> NDArray[np.float32]:
        """Do the same as `embed`, a batch in a thread: for a few texts no thread is worth its switch."""
        if sum(map(len, texts)) > _LONG:
            return await asyncio.to_thread(self.embed, texts, purpose)
        return self.embed(texts, purpose)


@lru_cache(maxsize=65_536)
def _buckets(word: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the four dimensions of a word and their signs: of each 16 bits the low nine and the highest."""
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    numbers = np.frombuffer(digest, "<u2", _BUCKETS)
    return (numbers % HashWords.dimensions).astype(np.intp), np.where(numbers >> 15, 1.0, -1.0)
