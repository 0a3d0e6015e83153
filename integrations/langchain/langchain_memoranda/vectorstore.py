"""A vector store on the engine's collections: documents under ids, found by words and meaning, filtered by metadata."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_memoranda.models import embeddings_name
from langchain_memoranda.node_filters import condition
from memoranda.nodes import Node, NodeHit, SearchMode
from memoranda.persona import Persona

_K, _FETCH_K, _LAMBDA = 4, 20, 0.5  # LangChain's own defaults


@dataclass(frozen=True, slots=True)
class _Asked:
    """A search as LangChain's methods are given it, in the engine's words."""

    text: str | None
    mode: SearchMode
    options: dict[str, Any]

    @property
    def needs_vector(self) -> bool:
        """Whether meaning counts."""
        return self.mode != "text" or "mmr_balance" in self.options


class KnowledgeVectorStore(VectorStore):
    """Documents of one collection of a persona.

    A document with an id that is there takes the place of the one before. Metadata comes back as it was, values that
    JSON does not know included. Scores lie in 0..1, higher is better: see `memoranda.nodes.NodeHit`. A search answers
    with the `k` best, however far they are.

    A `filter` is a mapping that the metadata must meet: see `langchain_memoranda.node_filters`.

    Args:
        persona: Whose documents they are; no call can choose another.
        collection: Their name among the persona's documents.
        embedding: Makes the vectors. When left out the engine's own embedder makes them, and a recall finds the
            documents by meaning at once.
        model: What the vectors of `embedding` are stamped with, by default its class and model's name: vectors of two
            models are never compared.
        search_mode: What a similarity search goes by, `hybrid` (words and meaning), `dense` or `text`, where the call
            does not say.

    Example:
        `KnowledgeVectorStore(engine.persona("main", user="ana"), "handbook").similarity_search("pumps", k=3)`
    """

    def __init__(
        self,
        persona: Persona,
        collection: str = "documents",
        *,
        embedding: Embeddings | None = None,
        model: str | None = None,
        search_mode: SearchMode = "hybrid",
    ) -> None:
        if embedding is not None and model is None:
            model = embeddings_name(embedding) or f"langchain/{type(embedding).__name__}"
        self._nodes = persona.collection(collection, model=model if embedding is not None else None)
        self._embedding = embedding
        self._mode = search_mode

    @property
    def embeddings(self) -> Embeddings | None:
        """What makes the vectors; None where the engine's own embedder does."""
        return self._embedding

    # -- storing

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Store documents in one transaction, and return their ids: those of `ids`, else their own, else new ones."""
        prepared = _identified(documents, kwargs)
        if self._embedding is None:
            return self._nodes.add(_nodes(prepared, None))
        return self._nodes.add(_nodes(prepared, self._embedding.embed_documents(_texts(prepared))))

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Async twin of `add_documents`."""
        prepared = _identified(documents, kwargs)
        if self._embedding is None:
            return await self._nodes.aadd(_nodes(prepared, None))
        return await self._nodes.aadd(_nodes(prepared, await self._embedding.aembed_documents(_texts(prepared))))

    def delete(
        self, ids: list[str] | None = None, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> bool | None:
        """Delete documents by id, by `filter`, or by both; all of them when neither is given. Missing ids are none."""
        _refuse(kwargs)
        if ids is None and filter is None:
            self._nodes.clear()
        else:
            self._nodes.delete(ids, where=condition(filter))
        return True

    async def adelete(
        self, ids: list[str] | None = None, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> bool | None:
        """Async twin of `delete`."""
        _refuse(kwargs)
        if ids is None and filter is None:
            await self._nodes.aclear()
        else:
            await self._nodes.adelete(ids, where=condition(filter))
        return True

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        persona: Persona | None = None,
        **kwargs: Any,
    ) -> "KnowledgeVectorStore":
        """Store texts in a collection and return it; `persona` is needed, and further arguments are the class's."""
        store = cls(_named(persona), embedding=embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        persona: Persona | None = None,
        **kwargs: Any,
    ) -> "KnowledgeVectorStore":
        """Async twin of `from_texts`."""
        store = cls(_named(persona), embedding=embedding, **kwargs)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    # -- reading

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents in the order of their ids, without those that are missing."""
        return [_document(node) for node in self._nodes.get(list(ids))]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Async twin of `get_by_ids`."""
        return [_document(node) for node in await self._nodes.aget(list(ids))]

    # -- searching

    def similarity_search(self, query: str, k: int = _K, **kwargs: Any) -> list[Document]:
        """Return the `k` documents that answer best.

        Args:
            query: The question.
            k: How many.
            **kwargs: `filter`; `search_mode`, where it is another than the store's; `alpha`, the share of meaning in a
                hybrid search (0..1).
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = _K, **kwargs: Any) -> list[Document]:
        """Async twin of `similarity_search`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = _K, **kwargs: Any) -> list[tuple[Document, float]]:
        """Return the same with their scores, 0..1, higher is better."""
        return _scored(self._search(_similar(query, k, self._mode, kwargs), None))

    async def asimilarity_search_with_score(
        self, query: str, k: int = _K, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Async twin of `similarity_search_with_score`."""
        return _scored(await self._asearch(_similar(query, k, self._mode, kwargs), None))

    def similarity_search_by_vector(self, embedding: list[float], k: int = _K, **kwargs: Any) -> list[Document]:
        """Return the `k` documents that are nearest to a vector of the collection's model."""
        return [document for document, _ in _scored(self._search(_similar(None, k, "dense", kwargs), embedding))]

    async def asimilarity_search_by_vector(self, embedding: list[float], k: int = _K, **kwargs: Any) -> list[Document]:
        """Async twin of `similarity_search_by_vector`."""
        return [document for document, _ in _scored(await self._asearch(_similar(None, k, "dense", kwargs), embedding))]

    def max_marginal_relevance_search(
        self, query: str, k: int = _K, fetch_k: int = _FETCH_K, lambda_mult: float = _LAMBDA, **kwargs: Any
    ) -> list[Document]:
        """Return documents that answer and say different things.

        Args:
            query: The question.
            k: How many.
            fetch_k: How many of the nearest they are chosen from.
            lambda_mult: 1 for nearness alone, 0 for difference alone.
            **kwargs: As of `similarity_search`; without a `search_mode` the choice is among the nearest in meaning.
        """
        return _documents(self._search(_apart(query, k, fetch_k, lambda_mult, kwargs), None))

    async def amax_marginal_relevance_search(
        self, query: str, k: int = _K, fetch_k: int = _FETCH_K, lambda_mult: float = _LAMBDA, **kwargs: Any
    ) -> list[Document]:
        """Async twin of `max_marginal_relevance_search`."""
        return _documents(await self._asearch(_apart(query, k, fetch_k, lambda_mult, kwargs), None))

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = _K, fetch_k: int = _FETCH_K, lambda_mult: float = _LAMBDA, **kwargs: Any
    ) -> list[Document]:
        """Do the same for a vector of the collection's model."""
        return _documents(self._search(_apart(None, k, fetch_k, lambda_mult, kwargs), embedding))

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = _K, fetch_k: int = _FETCH_K, lambda_mult: float = _LAMBDA, **kwargs: Any
    ) -> list[Document]:
        """Async twin of `max_marginal_relevance_search_by_vector`."""
        return _documents(await self._asearch(_apart(None, k, fetch_k, lambda_mult, kwargs), embedding))

    def _select_relevance_score_fn(self) -> Any:
        return lambda score: score

    def _search(self, asked: _Asked, vector: list[float] | None) -> list[NodeHit]:
        if vector is None and self._embedding is not None and asked.needs_vector:
            vector = self._embedding.embed_query(str(asked.text))
        return self._nodes.search(asked.text, vector=vector, mode=asked.mode, **asked.options)

    async def _asearch(self, asked: _Asked, vector: list[float] | None) -> list[NodeHit]:
        if vector is None and self._embedding is not None and asked.needs_vector:
            vector = await self._embedding.aembed_query(str(asked.text))
        return await self._nodes.asearch(asked.text, vector=vector, mode=asked.mode, **asked.options)


def _named(persona: Persona | None) -> Persona:
    if persona is None:
        raise TypeError("say whose documents they are: persona=engine.persona(...)")
    return persona


def _refuse(unknown: Mapping[str, Any]) -> None:
    """Refuse what is not known: a misspelt filter would let everything through."""
    if unknown:
        raise TypeError(f"KnowledgeVectorStore knows no {', '.join(sorted(unknown))}")


def _identified(documents: Iterable[Document], options: dict[str, Any]) -> list[tuple[str, Document]]:
    ids = options.pop("ids", None)
    options.pop("batch_size", None)  # of an indexer, whose batch is one transaction here
    _refuse(options)
    documents = list(documents)
    if ids is None:
        ids = [None] * len(documents)
    if len(ids) != len(documents):
        raise ValueError("there must be as many ids as documents")
    return [(given or text.id or str(uuid4()), text) for given, text in zip(ids, documents, strict=True)]


def _texts(documents: Sequence[tuple[str, Document]]) -> list[str]:
    return [text.page_content for _, text in documents]


def _nodes(documents: Sequence[tuple[str, Document]], vectors: Sequence[Sequence[float]] | None) -> list[Node]:
    made: Sequence[Sequence[float] | None] = [None] * len(documents) if vectors is None else vectors
    return [
        Node(key=key, content=text.page_content, metadata=text.metadata, vector=vector)
        for (key, text), vector in zip(documents, made, strict=True)
    ]


def _document(node: Node) -> Document:
    return Document(id=node.key, page_content=node.content, metadata=dict(node.metadata))


def _documents(hits: Iterable[NodeHit]) -> list[Document]:
    return [_document(hit.node) for hit in hits]


def _scored(hits: Iterable[NodeHit]) -> list[tuple[Document, float]]:
    return [(_document(hit.node), hit.score) for hit in hits]


def _similar(text: str | None, k: int, mode: SearchMode, options: dict[str, Any]) -> _Asked:
    mode = options.pop("search_mode", None) or mode
    found = {"limit": k, "where": condition(options.pop("filter", None)), "alpha": options.pop("alpha", None)}
    _refuse(options)
    return _Asked(text, mode, found)


def _apart(text: str | None, k: int, fetch_k: int, balance: float, options: dict[str, Any]) -> _Asked:
    asked = _similar(text, k, "dense", options)
    asked.options.update(mmr_balance=balance, mmr_pool=fetch_k)
    return asked
