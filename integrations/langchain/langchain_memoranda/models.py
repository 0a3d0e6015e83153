"""LangChain's embeddings and chat models as the engine's embedder and language model."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from memoranda.errors import ConfigurationError
from memoranda.models.messages import with_schema
from memoranda.protocols import Completion, PromptMessage, Purpose

_SPEAKERS: Mapping[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
_AGENTS = "langchain.agents.middleware.internal_call_transformer"
_NAMES = ("model", "model_name", "model_id", "deployment", "endpoint_name", "model_path")
_WRAPPED = ("underlying_embeddings", "base_embeddings")
_ENDS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""Where a provider says why an answer ended: OpenAI and Google, Anthropic, Bedrock, Ollama."""
_CUT = ("length", "max_tokens", "model_length", "max_output_tokens")


class LangChainEmbedder:
    """Any `Embeddings` as the engine's embedder; questions and texts are embedded each in its own way.

    Args:
        embeddings: The model.
        name: What the store stamps its vectors with; by default the class and the model's own name, those of the
            inner model where one such as a cache is wrapped around it.
        dimensions: The length of a vector; asked of the model with one short text when left out.
        deferred: Whether a call takes so long that memories are embedded in the background.

    Raises:
        ConfigurationError: no `name` is given, and the model says none: two models would look like one.
    """

    def __init__(
        self, embeddings: Embeddings, *, name: str | None = None, dimensions: int | None = None, deferred: bool = False
    ) -> None:
        self._embeddings = embeddings
        if (stamp := name or embeddings_name(embeddings)) is None:
            kind = type(embeddings).__name__
            raise ConfigurationError(f"{kind} does not say which model it is: give name='...', another for each model.")
        self.name = stamp
        self.dimensions = dimensions or len(embeddings.embed_query("length"))
        self.deferred = deferred

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
        if purpose == "query":
            return [self._embeddings.embed_query(text) for text in texts]
        return self._embeddings.embed_documents(list(texts))

    async def aembed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Do the same without blocking the event loop."""
        if purpose == "query":
            return await asyncio.gather(*(self._embeddings.aembed_query(text) for text in texts))
        return await self._embeddings.aembed_documents(list(texts))


def embeddings_name(embeddings: Embeddings) -> str | None:
    """Return the class and the model's own name of an `Embeddings`, None where it says none."""
    if inner := next((inner for place in _WRAPPED if (inner := getattr(embeddings, place, None))), None):
        return embeddings_name(inner)
    said = {name: value for name in _NAMES if isinstance(value := getattr(embeddings, name, None), str) and value}
    # Of a deployment the model is often a default that says nothing; what the caller has set tells them apart.
    given = [name for name in said if name in getattr(embeddings, "model_fields_set", said)] or list(said)[:1]
    model = "/".join(dict.fromkeys(PurePath(said[name]).name if name == "model_path" else said[name] for name in given))
    return f"langchain/{type(embeddings).__name__}/{model}" if model else None


class LangChainModel:
    """Any chat model as the engine's language model; what it is asked never shows in a stream of messages.

    Args:
        model: The chat model.
        name: What is stored with what its answers produced; by default the class and the model's own name.
    """

    def __init__(self, model: BaseChatModel, *, name: str | None = None) -> None:
        self._model = model
        said = getattr(model, "model_name", None) or getattr(model, "model", None)
        kind = type(model).__name__
        self.name = name or (f"langchain/{kind}/{said}" if isinstance(said, str) else f"langchain/{kind}")

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return one answer."""
        answer = self._model.invoke(_said(messages, schema), config=hidden_call(), **_limited(max_tokens))
        return _completion(answer)

    async def acomplete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Do the same without blocking the event loop."""
        answer = await self._model.ainvoke(_said(messages, schema), config=hidden_call(), **_limited(max_tokens))
        return _completion(answer)


def _said(messages: Sequence[PromptMessage], schema: Mapping[str, Any] | None) -> list[BaseMessage]:
    # Asked for in words: how a provider takes a schema differs too much to be relied on, and answers are salvaged.
    asked = messages if schema is None else with_schema(messages, schema)
    return [_SPEAKERS[message["role"]](content=message["content"]) for message in asked]


def hidden_call() -> RunnableConfig:
    """Return what keeps the engine's own calls out of the stream of messages that a caller sees."""
    metadata: dict[str, Any] = {"lc_source": "memoranda"}
    if agents := sys.modules.get(_AGENTS):  # where agents run it is loaded, and elsewhere it hides nothing
        metadata |= agents.internal_call_metadata()
    return {"tags": ["nostream", "langsmith:nostream"], "metadata": metadata}


def _limited(max_tokens: int | None) -> dict[str, Any]:
    return {} if max_tokens is None else {"max_tokens": max_tokens}


def _completion(answer: AIMessage) -> Completion:
    used: Any = answer.usage_metadata or {}
    said = answer.response_metadata
    incomplete = said.get("incomplete_details")
    reasons = [said.get(name) for name in _ENDS] + [incomplete.get("reason") if isinstance(incomplete, dict) else None]
    return Completion(
        text=str(answer.text),
        input_tokens=used.get("input_tokens"),
        output_tokens=used.get("output_tokens"),
        cut=any(str(reason).lower() in _CUT for reason in reasons if reason),
    )
