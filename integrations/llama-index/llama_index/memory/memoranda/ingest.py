"""Documents and nodes into the engine's knowledge: taken in once, replaced on a change, removed when they vanish."""

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, TextNode, TransformComponent
from pydantic import ConfigDict, Field

from memoranda.persona import Persona
from memoranda.reports import Ingested

_COLLECTION = "collection"


def ingest_documents(
    persona: Persona, documents: Iterable[BaseNode], *, collection: str | None = None, **fields: Any
) -> list[Ingested]:
    """Take documents or nodes in, those with one `ref_doc_id` or id as the parts of one document.

    What is there already, just so, is left alone; what has changed is replaced in one transaction.

    Args:
        persona: Whose knowledge it becomes.
        documents: What a reader gives.
        collection: Names all documents of a source: those of it that are not among `documents` any more are deleted.
            Nothing is deleted when left out.
        **fields: See `memoranda.documents.drafts.DocumentFields`.

    Returns:
        One answer a document.
    """
    sources = _by_source(documents)
    told = []
    for source, parts in sources.items():
        told += persona.knowledge.ingest(source, documents=parts, **_fields(fields, collection))
    if collection is not None:
        for there in persona.knowledge.list(metadata={_COLLECTION: collection}):
            if there.source not in sources:
                persona.knowledge.delete(there.source)
    return told


async def aingest_documents(
    persona: Persona, documents: Iterable[BaseNode], *, collection: str | None = None, **fields: Any
) -> list[Ingested]:
    """Async twin of `ingest_documents`."""
    sources = _by_source(documents)
    told = []
    for source, parts in sources.items():
        told += await persona.knowledge.aingest(source, documents=parts, **_fields(fields, collection))
    if collection is not None:
        for there in await persona.knowledge.alist(metadata={_COLLECTION: collection}):
            if there.source not in sources:
                await persona.knowledge.adelete(there.source)
    return told


class KnowledgeSink(TransformComponent):
    """The last step of an `IngestionPipeline`: takes what reaches it into the knowledge, and passes it on."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persona: Persona = Field(exclude=True, repr=False)
    """Whose knowledge it becomes."""
    collection: str | None = None
    """See `ingest_documents`."""

    @classmethod
    def class_name(cls) -> str:
        """Return the class name."""
        return "KnowledgeSink"

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Take nodes in."""
        ingest_documents(self.persona, nodes, collection=self.collection)
        return nodes

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Async twin of calling it."""
        await aingest_documents(self.persona, nodes, collection=self.collection)
        return nodes


def _by_source(documents: Iterable[BaseNode]) -> dict[str, list[TextNode]]:
    found: dict[str, list[TextNode]] = {}
    for document in documents:
        text = document.get_content()
        if text.strip():
            part = TextNode(text=text, metadata=document.metadata)
            found.setdefault(document.ref_doc_id or document.node_id, []).append(part)
    return found


def _fields(fields: dict[str, Any], collection: str | None) -> dict[str, Any]:
    if collection is None:
        return fields
    return {**fields, "metadata": {**fields.get("metadata", {}), _COLLECTION: collection}}
