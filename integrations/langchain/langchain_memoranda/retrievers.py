"""Retrievers: what is remembered, and what documents say, as LangChain's documents."""

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from memoranda.persona import Persona
from memoranda.records import Hit, KnowledgeHit, MemoryHit, RecallKind


class _PersonaRetriever(BaseRetriever):
    """Asks a persona; subclasses say for what."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persona: Persona = Field(exclude=True)
    """Whose memory is asked; a call cannot choose another."""
    k: int | None = None
    """How many documents at most; the preset's own number when left out."""
    filters: dict[str, Any] = Field(default_factory=dict)
    """See `memoranda.filters.FilterFields`."""
    with_scores: bool = False
    """Whether the metadata of a document says its score and its confidence (0..1)."""

    _kinds: ClassVar[tuple[RecallKind, ...]] = ()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        found = self.persona.recall(query, limit=self.k if k is None else k, kinds=self._kinds, **self.filters)
        return [self._document(hit) for hit in found]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        found = await self.persona.arecall(query, limit=self.k if k is None else k, kinds=self._kinds, **self.filters)
        return [self._document(hit) for hit in found]

    def _document(self, hit: Hit) -> Document:
        scores = {"score": hit.score, "confidence": hit.confidence} if self.with_scores else {}
        return Document(id=str(hit.id), page_content=hit.content, metadata={**_metadata(hit), **scores})


class MemoryRetriever(_PersonaRetriever):
    """Retrieves memories: events, decisions and facts.

    A document's id is that of the memory; its metadata says the memory's kind, day, importance and what it was written
    with. An abstention is an empty list.

    Example:
        `MemoryRetriever(persona=engine.persona("main", user="ana"), k=5)`
    """

    _kinds: ClassVar[tuple[RecallKind, ...]] = ("memory",)


class KnowledgeRetriever(_PersonaRetriever):
    """Retrieves chunks of the documents that were ingested.

    A document's id is that of the chunk; its metadata says `source` and `chunk_index`, beside what the document was
    ingested with. An abstention is an empty list.
    """

    _kinds: ClassVar[tuple[RecallKind, ...]] = ("knowledge",)


def _metadata(hit: Hit) -> Mapping[str, Any]:
    if isinstance(hit, KnowledgeHit):
        chunk = hit.chunk
        return {**chunk.metadata, "source": chunk.source, "chunk_index": chunk.chunk_index}
    if isinstance(hit, MemoryHit):
        memory = hit.memory
        return {
            **memory.metadata,
            "short_id": memory.short_id,
            "type": memory.type,
            "category": memory.category,
            "day": memory.day.isoformat(),
            "importance": memory.importance,
        }
    return {}
