"""Documents and nodes into the engine's knowledge: taken in once, replaced on a change, removed when they vanish."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from llama_index.core.schema import BaseNode, TextNode, TransformComponent
from pydantic import ConfigDict, Field

from llama_index.memory.memoranda.messages import storable
from memoranda.persona import Persona
from memoranda.records import KnowledgeDocument
from memoranda.reports import Ingested

_COLLECTION = "memoranda_collection"  # in the metadata of a document, where readers have keys of their own


def ingest_documents(
    persona: Persona, documents: Iterable[BaseNode], *, collection: str | None = None, **fields: Any
) -> list[Ingested]:
    """Take documents or nodes in, those with one `ref_doc_id` or id as the parts of one document.

    What is there already, just so, is left alone; what has changed is replaced in one transaction; what has no text any
    more is deleted.

    Args:
        persona: Whose knowledge it becomes.
        documents: What a reader gives.
        collection: Names all documents of a source: one's own of it that are not among `documents` any more are
            deleted.
        **fields: See `memoranda.documents.drafts.DocumentFields`.

    Returns:
        One answer a document that has text.
    """
    sources = _by_source(documents)
    told = []
    for source, parts in sources.items():
        if parts:
            told += persona.knowledge.ingest(source, documents=parts, **_fields(fields, collection))
    if collection is not None or not all(sources.values()):
        for source in _gone(persona, persona.knowledge.list(), sources, collection):
            persona.knowledge.delete(source)
    return told


async def aingest_documents(
    persona: Persona, documents: Iterable[BaseNode], *, collection: str | None = None, **fields: Any
) -> list[Ingested]:
    """Async twin of `ingest_documents`."""
    sources = _by_source(documents)
    told = []
    for source, parts in sources.items():
        if parts:
            told += await persona.knowledge.aingest(source, documents=parts, **_fields(fields, collection))
    if collection is not None or not all(sources.values()):
        for source in _gone(persona, await persona.knowledge.alist(), sources, collection):
            await persona.knowledge.adelete(source)
    return told


class KnowledgeSink(TransformComponent):
    """The last step of an `IngestionPipeline`: takes what reaches it into the knowledge, and passes it on.

    A pipeline with a document store lets only what has changed reach its steps, and one with workers only a part at a
    time: what does not reach this one has not vanished.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persona: Persona = Field(exclude=True, repr=False)
    """Whose knowledge it becomes."""
    collection: str | None = None
    """See `ingest_documents`; documents are marked with it."""
    deletes_vanished: bool = False
    """Whether documents of the collection that do not reach this step are deleted: only where all of them reach it in
    every run."""

    @classmethod
    def class_name(cls) -> str:
        """Return the class name."""
        return "KnowledgeSink"

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Take nodes in."""
        ingest_documents(self.persona, nodes, **self._options())
        return nodes

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Async twin of calling it."""
        await aingest_documents(self.persona, nodes, **self._options())
        return nodes

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return what it is called, never the same twice: a pipeline's cache would skip what looks like done before."""
        return {**super().to_dict(**kwargs), "call": uuid4().hex}

    def _options(self) -> dict[str, Any]:
        if self.deletes_vanished:
            return {"collection": self.collection}
        return _fields({}, self.collection)


def _by_source(documents: Iterable[BaseNode]) -> dict[str, list[TextNode]]:
    found: dict[str, list[TextNode]] = {}
    for document in documents:
        text = document.get_content()
        parts = found.setdefault(document.ref_doc_id or document.node_id, [])
        if text.strip():
            parts.append(TextNode(text=text, metadata=storable(document.metadata)))
    return found


def _gone(
    persona: Persona,
    there: Iterable[KnowledgeDocument],
    sources: Mapping[str, Sequence[TextNode]],
    collection: str | None,
) -> list[str]:
    """Return one's own documents that have no text any more, or are of the collection and were not given."""
    gone = []
    for document in there:
        of_collection = collection is not None and document.metadata.get(_COLLECTION) == collection
        has_text = bool(sources.get(document.source))
        if document.author == persona.scope.author and not has_text and (of_collection or document.source in sources):
            gone.append(document.source)
    return gone


def _fields(fields: dict[str, Any], collection: str | None) -> dict[str, Any]:
    if collection is None:
        return fields
    return {**fields, "metadata": {**fields.get("metadata", {}), _COLLECTION: collection}}
