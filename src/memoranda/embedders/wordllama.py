"""The small model that runs anywhere: WordLlama, 256 dimensions, in the wheel of the `local` extra.

A text is the mean of its tokens' vectors, so it takes microseconds on a processor and knows related words, which
`hash/words` does not.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import EmbedderUnavailable, ExtraMissing
from memoranda.forks import renew_after_fork
from memoranda.protocols import Purpose


class WordLlamaEmbedder:
    """Embeds with the WordLlama model that its package brings; nothing is ever downloaded.

    The model is loaded at the first call and shared between threads. Vectors are L2-normalised; an empty text is the
    zero vector.
    """

    name = "wordllama"
    dimensions = 256
    distinguishes_purpose = False
    local = True

    def __init__(self) -> None:
        """Prepare the embedder without loading the model."""
        self._model: Any = None
        self._lock = threading.Lock()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], purpose: Purpose = "text") -> NDArray[np.float32]:
        """Return one row of 256 floats for each text; query and text are embedded alike.

        Raises:
            ExtraMissing: the `local` extra is not installed.
            EmbedderUnavailable: the model's files are missing from its package.
        """
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        filled = [place for place, text in enumerate(texts) if text.strip()]
        if filled:
            means = self._load().embed([texts[place] for place in filled], norm=False)
            lengths = np.linalg.norm(means, axis=1, keepdims=True)
            vectors[filled] = np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 0)
        return vectors

    async def aembed(self, texts: Sequence[str], purpose: Purpose = "text") -> NDArray[np.float32]:
        """Do the same as `embed` in a thread."""
        return await asyncio.to_thread(self.embed, texts, purpose)

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = _bundled_model()
            return self._model


def _bundled_model() -> Any:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        import wordllama
    except ImportError as exc:
        raise ExtraMissing('The embedder "wordllama" needs an extra: pip install "memoranda[local]"') from exc
    # Its import sets up the root logger, which belongs to the host program.
    root.handlers[:], root.level = handlers, level
    # The package looks for its own tokenizer in the cache folder only, so its folder has to be named as that.
    folder = Path(wordllama.__file__).parent
    try:
        return wordllama.WordLlama.load(dim=WordLlamaEmbedder.dimensions, cache_dir=folder, disable_download=True)
    except OSError as exc:
        raise EmbedderUnavailable('The model is missing from the package: reinstall "memoranda[local]".') from exc
