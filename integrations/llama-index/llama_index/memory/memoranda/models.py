"""LlamaIndex's embeddings and language models as the engine's embedder and language model."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms.llm import LLM

from memoranda.models.messages import with_schema
from memoranda.protocols import Completion, PromptMessage, Purpose


class LlamaIndexEmbedder:
    """Any `BaseEmbedding` as the engine's embedder; questions and texts are embedded each in its own way.

    Args:
        embeddings: The model.
        name: What the store stamps its vectors with; by default the class and the model's own name.
        dimensions: The length of a vector; asked of the model with one short text when left out.
        deferred: Whether a call takes so long that memories are embedded in the background.
        native_async: Whether its async half waits without blocking; many models have none, and call the sync one: they
            are called in a thread.
    """

    def __init__(
        self,
        embeddings: BaseEmbedding,
        *,
        name: str | None = None,
        dimensions: int | None = None,
        deferred: bool = False,
        native_async: bool = False,
    ) -> None:
        self._embeddings = embeddings
        self._native = native_async
        self.name = name or f"llama-index/{type(embeddings).__name__}/{embeddings.model_name}"
        self.dimensions = dimensions or len(embeddings.get_query_embedding("length"))
        self.deferred = deferred

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
        if purpose == "query":
            return [self._embeddings.get_query_embedding(text) for text in texts]
        return self._embeddings.get_text_embedding_batch(list(texts))

    async def aembed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Do the same without blocking the event loop."""
        if not self._native:
            return await asyncio.to_thread(self.embed, texts, purpose)
        if purpose == "query":
            return await asyncio.gather(*(self._embeddings.aget_query_embedding(text) for text in texts))
        return await self._embeddings.aget_text_embedding_batch(list(texts))


class LlamaIndexModel:
    """Any `LLM` as the engine's language model.

    Args:
        model: The language model.
        name: What is stored with what its answers produced; by default the class and the model's own name.
        limit_option: The keyword under which this model takes the most tokens of an answer; not limited when left out,
            for models differ in it.
        native_async: Whether its async half waits without blocking, and on one event loop after another; many models
            have none, and call the sync one: they are called in a thread.
    """

    def __init__(
        self, model: LLM, *, name: str | None = None, limit_option: str | None = None, native_async: bool = False
    ) -> None:
        self._model = model
        self._native = native_async
        self._limit_option = limit_option
        self.name = name or f"llama-index/{type(model).__name__}/{model.metadata.model_name}"

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return one answer."""
        return _completion(self._model.chat(_said(messages, schema), **self._limited(max_tokens)))

    async def acomplete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Do the same without blocking the event loop."""
        if not self._native:
            return await asyncio.to_thread(self.complete, messages, schema=schema, max_tokens=max_tokens)
        return _completion(await self._model.achat(_said(messages, schema), **self._limited(max_tokens)))

    def _limited(self, max_tokens: int | None) -> dict[str, Any]:
        return {} if self._limit_option is None or max_tokens is None else {self._limit_option: max_tokens}


def _said(messages: Sequence[PromptMessage], schema: Mapping[str, Any] | None) -> list[ChatMessage]:
    # Asked for in words: how a provider takes a schema differs too much to be relied on, and answers are salvaged.
    asked = messages if schema is None else with_schema(messages, schema)
    return [ChatMessage(role=MessageRole(message["role"]), content=message["content"]) for message in asked]


def _completion(answer: ChatResponse) -> Completion:
    told = {**answer.message.additional_kwargs, **answer.additional_kwargs}
    reason = told.get("finish_reason") or told.get("stop_reason")
    return Completion(
        text=answer.message.content or "",
        input_tokens=_whole(told.get("prompt_tokens")),
        output_tokens=_whole(told.get("completion_tokens")),
        cut=reason in ("length", "max_tokens"),
    )


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
