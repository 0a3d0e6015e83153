"""The language models that come with the engine, and how one is chosen: by name, never because a key happens to be set.

A model is optional: without one nothing is extracted, reviewed or summarised, and everything else works.
"""

import os

from memoranda.errors import ConfigurationError
from memoranda.protocols import LanguageModel

__all__ = ["MODELS", "resolve_model"]

MODELS = ("auto", "openai/MODEL", "ollama/MODEL", "command", "none")
"""The names `resolve_model` knows; without `/MODEL` the model's name is that of `MEMORANDA_LLM_MODEL`."""
LOCAL_MODEL = "qwen2.5:7b"
"""The model of a server of the user's own where none is named."""
OLLAMA_URL = "http://localhost:11434/v1"


def resolve_model(spec: str | LanguageModel | None = None) -> LanguageModel | None:
    """Return the language model that is meant.

    Args:
        spec: The name of a model, a model itself, or None for what `MEMORANDA_LLM_BACKEND` names, else "auto": the
            server at `MEMORANDA_LLM_URL`, else the program `MEMORANDA_LLM_CMD`, else none. A server is given the key
            `MEMORANDA_LLM_KEY`; without `MEMORANDA_LLM_URL`, "openai" takes address and key from `OPENAI_BASE_URL` and
            `OPENAI_API_KEY`.

    Returns:
        The model, not yet called; None where there is to be none.

    Raises:
        ConfigurationError: the name is not known, a setting is missing, or the object is not a model.
        ExtraMissing: the model is an extra that is not installed.
    """
    if spec is None:
        spec = _setting("BACKEND") or "auto"
    if not isinstance(spec, str):
        if not isinstance(spec, LanguageModel):
            raise ConfigurationError(
                f"{type(spec).__name__} is not a language model: it needs `name`, `complete` and `acomplete`."
            )
        return spec
    backend, slash, model = spec.partition("/")
    if spec == "auto":
        backend = "openai" if _setting("URL") else "command" if _setting("CMD") else "none"
    if slash and (not model.strip() or backend not in ("openai", "ollama")):
        backend = ""
    model = model.strip() or _setting("MODEL")
    match backend:
        case "none":
            return None
        case "openai":
            return _openai(model)
        case "ollama":
            return _ollama(model)
        case "command":
            return _command()
    raise ConfigurationError(f"No language model is called {spec!r}: choose one of {', '.join(MODELS)}.")


def _openai(model: str) -> LanguageModel:
    from memoranda.models.openai import OpenAIModel

    url = _setting("URL")
    model = model or (LOCAL_MODEL if url else "")
    if not model:
        raise ConfigurationError('Which model of OpenAI is meant? Set MEMORANDA_LLM_MODEL, or say "openai/MODEL".')
    return OpenAIModel(model, base_url=url or None, api_key=_setting("KEY") or None)


def _ollama(model: str) -> LanguageModel:
    from memoranda.models.openai import OpenAIModel

    url = _setting("URL").rstrip("/") or OLLAMA_URL
    if url.count("/") == 2:  # an address without a path
        url += "/v1"
    model = model or LOCAL_MODEL
    return OpenAIModel(model, base_url=url, api_key=_setting("KEY") or None, name=f"ollama/{model}")


def _command() -> LanguageModel:
    from memoranda.models.command import CommandModel

    command = _setting("CMD")
    if not command:
        raise ConfigurationError("Which program is the language model? Set MEMORANDA_LLM_CMD.")
    return CommandModel(command)


def _setting(name: str) -> str:
    return os.environ.get(f"MEMORANDA_LLM_{name}", "").strip()
