"""LangChain's embeddings and chat models as the engine's embedder and language model."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from memoranda.models.messages import with_schema
from memoranda.protocols import Completion, PromptMessage, Purpose

_SPEAKERS: Mapping[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
_AGENTS = "langchain.agents.middleware.internal_call_transformer"


class LangChainEmbedder:
    """Any `Embeddings` as the engine's embedder; questions and texts are embedded each in its own way.

    Args:
        embeddings: The model.
        name: What the store stamps its vectors with; by default the class and the model's own name.
        dimensions: The length of a vector; asked of the model with one short text when left out.
        deferred: Whether a call takes so long that memories are embedded in the background.
    """

    def __init__(
        self, embeddings: Embeddings, *, name: str | None = None, dimensions: int | None = None, deferred: bool = False
    ) -> None:
        self._embeddings = embeddings
        model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
        kind = type(embeddings).__name__
        self.name = name or (f"langchain/{kind}/{model}" if isinstance(model, str) else f"langchain/{kind}")
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
        answer = self._model.invoke(_said(messages, schema), config=_hidden(), **_limited(max_tokens))
        return _completion(answer)

    async def acomplete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Do the same without blocking the event loop."""
        answer = await self._model.ainvoke(_said(messages, schema), config=_hidden(), **_limited(max_tokens))
        return _completion(answer)


def _said(messages: Sequence[PromptMessage], schema: Mapping[str, Any] | None) -> list[BaseMessage]:
    # Asked for in words: how a provider takes a schema differs too much to be relied on, and answers are salvaged.
    asked = messages if schema is None else with_schema(messages, schema)
    return [_SPEAKERS[message["role"]](content=message["content"]) for message in asked]


def _hidden() -> RunnableConfig:
    """Return what keeps the engine's own calls out of the stream of messages that a caller sees."""
    metadata: dict[str, Any] = {"lc_source": "memoranda"}
    if agents := sys.modules.get(_AGENTS):  # where agents run it is loaded, and elsewhere it hides nothing
        metadata |= agents.internal_call_metadata()
    return {"tags": ["nostream", "langsmith:nostream"], "metadata": metadata}


def _limited(max_tokens: int | None) -> dict[str, Any]:
    return {} if max_tokens is None else {"max_tokens": max_tokens}


def _completion(answer: AIMessage) -> Completion:
    used: Any = answer.usage_metadata or {}
    reason = answer.response_metadata.get("finish_reason") or answer.response_metadata.get("stop_reason")
    return Completion(
        text=str(answer.text),
        input_tokens=used.get("input_tokens"),
        output_tokens=used.get("output_tokens"),
        cut=reason in ("length", "max_tokens"),
    )
