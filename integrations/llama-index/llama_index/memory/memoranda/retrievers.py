"""Retrievers: what is remembered, and what documents say, as LlamaIndex's nodes."""

from collections.abc import Mapping
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from memoranda.persona import Persona
from memoranda.records import Hit, KnowledgeHit, MemoryHit


class _PersonaRetriever(BaseRetriever):
    """Asks a persona; subclasses say for what."""

    _kinds: ClassVar[tuple[Any, ...]] = ()

    def __init__(
        self, persona: Persona, *, limit: int | None = None, filters: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._persona = persona
        self._limit = limit
        self._filters: dict[str, Any] = dict(filters or {})

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(hit) for hit in self._persona.recall(query_bundle.query_str, **self._asked(query_bundle))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._persona.arecall(query_bundle.query_str, **self._asked(query_bundle))
        return [_node(hit) for hit in found]

    def _asked(self, query_bundle: QueryBundle) -> dict[str, Any]:
        return {"limit": self._limit, "kinds": self._kinds, "vector": query_bundle.embedding, **self._filters}


class MemoryRetriever(_PersonaRetriever):
    """Retrieves memories: events, decisions and facts.

    A node's id is that of the memory, its score the confidence (0..1, higher is surer); its metadata says the kind,
    day, importance and what it was written with, and none of it is shown to a model or embedded. An abstention is an
    empty list.

    A `QueryBundle` that brings its embedding, by the engine's own embedder, is not embedded again.

    Args:
        persona: Whose memory is asked.
        limit: How many nodes at most; the preset's own number when left out.
        filters: See `memoranda.filters.FilterFields`.
        **options: As every retriever takes them: `callback_manager`, `verbose`, ...
    """

    _kinds: ClassVar[tuple[Any, ...]] = ("memory",)


class KnowledgeRetriever(_PersonaRetriever):
    """Retrieves chunks of the documents that were ingested.

    A node's id is that of the chunk, its score the confidence (0..1, higher is surer); its metadata says `source`,
    which is shown to a model, and `chunk_index`, beside what the document was ingested with. An abstention is an empty
    list.

    A `QueryBundle` that brings its embedding, by the engine's own embedder, is not embedded again.

    Args:
        persona: Whose knowledge is asked.
        limit: How many nodes at most; the preset's own number when left out.
        filters: See `memoranda.filters.FilterFields`.
        **options: As every retriever takes them: `callback_manager`, `verbose`, ...
    """

    _kinds: ClassVar[tuple[Any, ...]] = ("knowledge",)


def _node(hit: Hit) -> NodeWithScore:
    metadata, shown = _metadata(hit)
    node = TextNode(
        id_=str(hit.id),
        text=hit.content,
        metadata=metadata,
        excluded_llm_metadata_keys=[name for name in metadata if name not in shown],
        excluded_embed_metadata_keys=[*metadata],
    )
    return NodeWithScore(node=node, score=hit.confidence)


def _metadata(hit: Hit) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the metadata of a node, and what of it a model is shown."""
    ranked = {"kind": hit.kind, "rank_score": hit.score}
    if isinstance(hit, KnowledgeHit):
        chunk = hit.chunk
        return {**chunk.metadata, "source": chunk.source, "chunk_index": chunk.chunk_index, **ranked}, ("source",)
    assert isinstance(hit, MemoryHit)
    memory = hit.memory
    own = {
        "short_id": memory.short_id,
        "type": memory.type,
        "category": memory.category,
        "day": memory.day.isoformat(),
        "importance": memory.importance,
    }
    return {**memory.metadata, **own, **ranked}, ()
