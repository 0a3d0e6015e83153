"""The embedders that come with the engine, and how one is chosen: by name, never because a key happens to be set."""

import re
from importlib.util import find_spec

from memoranda.errors import ConfigurationError, ExtraMissing
from memoranda.protocols import Embedder

__all__ = ["EMBEDDERS", "is_remote", "resolve"]

EMBEDDERS = ("auto", "hash/words", "wordllama", "openai/MODEL", "openai/MODEL@DIMENSIONS", "none")
"""The names `resolve` knows."""

_REMOTE = "openai/"
_MODEL = re.compile(r"openai/(?P<model>\S+?)(?:@(?P<dimensions>[1-9][0-9]{0,5}))?")


def is_remote(name: str) -> bool:
    """Tell whether texts leave the machine to be embedded by the embedder of this name."""
    return name.startswith(_REMOTE)


def resolve(spec: str | Embedder | None) -> Embedder | None:
    """Return the embedder that is meant.

    Args:
        spec: "auto" (WordLlama where it is installed, else `hash/words`), the name of an embedder, an embedder itself,
            or "none" or None to go by words only. `openai/MODEL` takes key and address from `OPENAI_API_KEY` and
            `OPENAI_BASE_URL`; of a model whose length is not known the service is asked at once.

    Returns:
        The embedder, not yet loaded; None when texts are compared by their words only.

    Raises:
        ConfigurationError: the name is not known, or the object is not an embedder.
        ExtraMissing: the embedder is an extra that is not installed.
        EmbedderUnavailable: the length of an OpenAI-compatible model is not known, and the service gives no answer.
    """
    if spec is None or spec == "none":
        return None
    if spec == "auto":
        spec = "wordllama" if find_spec("wordllama") else "hash/words"
    if spec == "hash/words":
        from memoranda.embedders.hash_words import HashWords

        return HashWords()
    if spec == "wordllama":
        if not find_spec("wordllama"):
            raise ExtraMissing('The embedder "wordllama" needs an extra: pip install "memoranda[local]"')
        from memoranda.embedders.wordllama import WordLlamaEmbedder

        return WordLlamaEmbedder()
    if isinstance(spec, str) and (asked := _MODEL.fullmatch(spec)):
        from memoranda.embedders.openai import OpenAIEmbedder

        return OpenAIEmbedder(asked["model"], dimensions=int(asked["dimensions"]) if asked["dimensions"] else None)
    if isinstance(spec, str):
        raise ConfigurationError(f"No embedder is called {spec!r}: choose one of {', '.join(EMBEDDERS)}.")
    if not isinstance(spec, Embedder):
        raise ConfigurationError(
            f"{type(spec).__name__} is not an embedder: it needs `name`, `dimensions`, `embed` and `aembed`."
        )
    return spec
