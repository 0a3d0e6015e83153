"""A vector store on the engine's collections: nodes under their ids, found by meaning, by words, or by both."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from memoranda.collections import Collection
from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not, Operator
from memoranda.nodes import Node, NodeHit
from memoranda.persona import Persona

_SOURCE = "ref_doc_id"  # in the metadata of a node as LlamaIndex flattens it
_PREFETCH = 4  # LlamaIndex's own default: so many times the wanted nodes are chosen from
_WORDS = (VectorStoreQueryMode.SPARSE, VectorStoreQueryMode.TEXT_SEARCH)
_BOTH = (VectorStoreQueryMode.HYBRID, VectorStoreQueryMode.SEMANTIC_HYBRID)


class KnowledgeVectorStore(BasePydanticVectorStore):
    """Nodes of one collection of a persona, whom no filter of a query can leave.

    A node with an id that is there takes the place of the one before. Filters may name any key; every value is bound,
    and compared with its like: numbers with numbers, texts with texts. What is missing differs from everything, as in
    LlamaIndex's own store. `HYBRID` adds the similarity, relative to the best, and the score of the words, relative to
    theirs, `alpha` (0.6 when left out) to the rest; `similarity_top_k` and `sparse_top_k` say how many each proposes,
    `hybrid_top_k` how many are left, all of them when left out. Similarities lie in 0..1, higher is better.

    Example:
        `VectorStoreIndex.from_vector_store(KnowledgeVectorStore(persona=engine.persona("main"), collection="wiki"))`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    stores_text: bool = True
    persona: Persona = Field(exclude=True, repr=False)
    """Whose nodes they are; a query cannot choose another."""
    collection: str = "nodes"
    """Their name among the persona's documents."""
    model: str = "llama-index"
    """What makes the nodes' embeddings, such as the name of the index's `embed_model`: vectors of two models are never
    compared, and a name that is the engine's own embedder's means its vectors."""

    _nodes: Collection = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the collection; nothing is read or stored yet."""
        super().model_post_init(context)
        self._nodes = self.persona.collection(self.collection, model=self.model)

    @classmethod
    def class_name(cls) -> str:
        """Return the class name."""
        return "KnowledgeVectorStore"

    @property
    def client(self) -> Any:
        """None: there is no client beside the engine."""
        return None

    # -- storing

    def add(self, nodes: Sequence[BaseNode], **add_kwargs: Any) -> list[str]:
        """Store nodes that have embeddings, all or none, and return their ids."""
        return self._nodes.add([_stored(node) for node in nodes])

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Async twin of `add`."""
        return await self._nodes.aadd([_stored(node) for node in nodes])

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete every node that was cut from a document."""
        self._nodes.delete(where=Compare((_SOURCE,), "eq", ref_doc_id))

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Async twin of `delete`."""
        await self._nodes.adelete(where=Compare((_SOURCE,), "eq", ref_doc_id))

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by filters, or by both; none when neither is given."""
        if node_ids or filters:
            self._nodes.delete(node_ids or None, where=_condition(filters) or AllOf(()))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Async twin of `delete_nodes`."""
        if node_ids or filters:
            await self._nodes.adelete(node_ids or None, where=_condition(filters) or AllOf(()))

    def clear(self) -> None:
        """Delete every node of the collection."""
        self._nodes.clear()

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await self._nodes.aclear()

    # -- reading

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes with their embeddings: of these ids, of these filters, all of them where neither is given."""
        found = self._nodes.get(node_ids, where=_condition(filters), vectors=True)
        return [_read(node) for node in found]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Async twin of `get_nodes`."""
        found = await self._nodes.aget(node_ids, where=_condition(filters), vectors=True)
        return [_read(node) for node in found]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the nodes that answer a query, best first.

        Modes: `DEFAULT` (by words where there is no embedding), `SPARSE` and `TEXT_SEARCH`, `HYBRID`, `MMR`.

        Args:
            query: The query.
            **kwargs: `mmr_threshold`, `mmr_prefetch_factor` and `mmr_prefetch_k`, as LlamaIndex's own store takes them.

        Raises:
            ValueError: the mode is none of these, or it lacks what it goes by.
        """
        return _result(self._nodes.search(**_search(query, kwargs)))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Async twin of `query`."""
        return _result(await self._nodes.asearch(**_search(query, kwargs)))


# -- nodes


def _stored(node: BaseNode) -> Node:
    return Node(
        key=node.node_id,
        content=node.get_content(metadata_mode=MetadataMode.NONE),
        metadata=node_to_metadata_dict(node, remove_text=True, flat_metadata=False),
        vector=node.get_embedding(),
    )


def _read(node: Node) -> BaseNode:
    if "_node_content" in node.metadata:
        found = metadata_dict_to_node(dict(node.metadata), text=node.content)
    else:  # stored by another framework
        found = TextNode(id_=node.key, text=node.content, metadata=dict(node.metadata))
    found.embedding = None if node.vector is None else list(node.vector)
    return found


def _result(hits: Sequence[NodeHit]) -> VectorStoreQueryResult:
    return VectorStoreQueryResult(
        nodes=[_read(hit.node) for hit in hits],
        similarities=[hit.score for hit in hits],
        ids=[hit.node.key for hit in hits],
    )


# -- queries


def _search(query: VectorStoreQuery, options: dict[str, Any]) -> dict[str, Any]:
    """Return the search of a collection that a query asks for."""
    conditions = [found for found in (_condition(query.filters),) if found is not None]
    if query.doc_ids:  # an index names no nodes and no documents by empty lists
        conditions.append(Compare((_SOURCE,), "in", query.doc_ids))
    asked: dict[str, Any] = {
        "text": query.query_str,
        "vector": query.query_embedding,
        "limit": query.similarity_top_k,
        "keys": query.node_ids or None,
        "where": AllOf(tuple(conditions)) if conditions else None,
    }
    mode, sparse = query.mode, query.sparse_top_k or query.similarity_top_k
    if mode in _WORDS or (mode == VectorStoreQueryMode.DEFAULT and query.query_embedding is None):
        _require(query.query_str, "query_str")
        return asked | {"mode": "text", "vector": None, "limit": sparse}
    _require(query.query_embedding, "query_embedding")
    if mode == VectorStoreQueryMode.DEFAULT:
        return asked | {"mode": "dense"}
    if mode == VectorStoreQueryMode.MMR:
        if (pool := options.get("mmr_prefetch_k")) is None:
            pool = int(query.similarity_top_k * (options.get("mmr_prefetch_factor") or _PREFETCH))
        given = (query.mmr_threshold, options.get("mmr_threshold"), 0.5)
        balance = next(value for value in given if value is not None)
        return asked | {"mode": "dense", "mmr_balance": balance, "mmr_pool": max(pool, query.similarity_top_k)}
    if mode not in _BOTH:
        raise ValueError(f"KnowledgeVectorStore has no mode {mode}")
    _require(query.query_str, "query_str")
    return asked | {
        "mode": "hybrid",
        "alpha": query.alpha,
        "dense_limit": query.similarity_top_k,
        "text_limit": sparse,
        "limit": query.hybrid_top_k or query.similarity_top_k + sparse,
    }


def _require(value: object, name: str) -> None:
    if value is None:
        raise ValueError(f"{name} is missing from the query")


_COMPARED: dict[FilterOperator, Operator] = {
    FilterOperator.EQ: "eq",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
    FilterOperator.TEXT_MATCH: "text",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "text_insensitive",
}


def _condition(filters: MetadataFilters | None) -> Condition | None:
    """Return the engine's condition for filters, None where there is none to meet."""
    if filters is None or not filters.filters:
        return None
    parts = tuple(
        _condition(part) or AllOf(()) if isinstance(part, MetadataFilters) else _one(part) for part in filters.filters
    )
    match filters.condition or FilterCondition.AND:
        case FilterCondition.AND:
            return AllOf(parts)
        case FilterCondition.OR:
            return AnyOf(parts)
        case FilterCondition.NOT:
            return Not(AnyOf(parts))
    raise ValueError(f"KnowledgeVectorStore knows no condition {filters.condition}")


def _one(given: MetadataFilter) -> Condition:
    path, value = (given.key,), given.value
    match given.operator:
        case FilterOperator.NE:
            return Not(Compare(path, "eq", value))
        case FilterOperator.IN:
            return Compare(path, "in", _several(value))
        case FilterOperator.NIN:
            return Not(Compare(path, "in", _several(value)))
        case FilterOperator.CONTAINS:
            return _holds(path, value)
        case FilterOperator.ANY:
            return AnyOf(tuple(_holds(path, item) for item in _several(value)))
        case FilterOperator.ALL:
            return AllOf((Compare(path, "exists"), *(_holds(path, item) for item in _several(value))))
        case FilterOperator.IS_EMPTY:
            return Compare(path, "empty")
    return Compare(path, _COMPARED[given.operator], value)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _holds(path: tuple[str, ...], value: Any) -> Condition:
    """Return the condition for a list that has the value, and for a text that has it in it."""
    held = Compare(path, "has", value)
    return AnyOf((held, Compare(path, "text", value))) if isinstance(value, str) else held
