"""LlamaIndex's vector store on the engine's collections, and what people complained about in others."""

import asyncio

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import ImageNode, IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from llama_index.memory.memoranda import KnowledgeVectorStore
from memoranda.errors import ConfigurationError


def node(identifier, text, vector, source=None, **metadata):
    relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)} if source else {}
    return TextNode(id_=identifier, text=text, embedding=vector, metadata=metadata, relationships=relationships)


NODES = [
    node("a", "The quick brown fox", [1.0, 0.0], "one", size=1, zip="007", tags=["x", "y"], owner="O'Brien"),
    node("b", "A lazy dog", [0.75, 0.5], "one", size=2.0, zip="x", tags=["y"], owner=""),
    node("c", "The fox and the hound", [0.0, 1.0], "two", size=10, zip=7, tags=[]),
]


@pytest.fixture
def store(ana):
    """A store of three nodes."""
    kept = KnowledgeVectorStore(persona=ana)
    kept.add(NODES)
    return kept


def ids(store, *filters, mode=VectorStoreQueryMode.DEFAULT, condition=FilterCondition.AND, **query):
    """Return the ids of what a query finds, in both halves of the API the same."""
    filters_ = MetadataFilters(filters=list(filters), condition=condition) if filters else None
    asked = {"query_embedding": [1.0, 0.1], "query_str": "fox", "similarity_top_k": 9, "filters": filters_, **query}
    found = store.query(VectorStoreQuery(mode=mode, **asked))
    again = asyncio.run(store.aquery(VectorStoreQuery(mode=mode, **asked)))
    assert found.ids == again.ids == [node.node_id for node in found.nodes]
    assert found.similarities == again.similarities and all(0 <= score <= 1 for score in found.similarities)
    return "".join(found.ids)


def where(key, value, operator=FilterOperator.EQ):
    return MetadataFilter(key=key, value=value, operator=operator)


def test_nodes_come_back_as_they_were(store, ana, call):
    nodes = [
        IndexNode(id_="i", text="", index_id="other", embedding=[1.0, 1.0]),
        ImageNode(
            id_="p", image_url="file:///p.png", text="a picture", embedding=[1.0, 0.0], metadata={"n": {"d": [1]}}
        ),
    ]
    kept = KnowledgeVectorStore(persona=ana, collection="others")
    assert asyncio.run(kept.async_add(nodes)) == ["i", "p"]
    assert call(kept, "get_nodes", ["p", "nothing", "i"]) == [nodes[1], nodes[0]]
    assert call(store, "get_nodes") == NODES and store.client is None
    assert call(store, "get_nodes", None, MetadataFilters(filters=[where("size", 2)])) == [NODES[1]]


def test_every_operator(store):
    op = FilterOperator
    for filter_, expected in [
        (where("size", 2), "b"),
        (where("size", 2, op.NE), "ac"),
        (where("nothing", 2, op.NE), "abc"),
        (where("size", 2, op.GT), "c"),
        (where("size", 2, op.GTE), "bc"),
        (where("size", 2, op.LT), "a"),
        (where("size", 2, op.LTE), "ab"),
        (where("zip", ["007", "x"], op.IN), "ab"),
        (where("zip", [7, 1], op.NIN), "ab"),
        (where("zip", [], op.IN), ""),
        (where("tags", ["x", "z"], op.ANY), "a"),
        (where("tags", ["x", "y"], op.ALL), "a"),
        (where("tags", "y", op.CONTAINS), "ab"),
        (where("owner", "Bri", op.TEXT_MATCH), "a"),
        (where("owner", "bri", op.TEXT_MATCH), ""),
        (where("owner", "bri", op.TEXT_MATCH_INSENSITIVE), "a"),
        (where("owner", None, op.IS_EMPTY), "bc"),
        (where("tags", None, op.IS_EMPTY), "c"),
    ]:
        assert ids(store, filter_) == expected, filter_
    both = (where("size", 1), where("tags", "y", op.CONTAINS))
    assert ids(store, *both) == "a" and ids(store, *both, condition=FilterCondition.OR) == "ab"
    assert ids(store, *both, condition=FilterCondition.NOT) == "c"
    inner = MetadataFilters(filters=[where("zip", "x"), where("zip", "007")], condition=FilterCondition.OR)
    assert ids(store, inner, where("size", 1, op.GT)) == "b"


def test_neither_a_key_nor_a_value_is_ever_sql(store):
    for hostile in ("O'Brien", "zz' OR '1'='1", 'x"; DROP TABLE', "%", "_", "\\", "a.b", "$.size", "]["):
        assert ids(store, where("owner", hostile)) == ("a" if hostile == "O'Brien" else "")
        assert ids(store, where(hostile, "a")) == ""
        assert ids(store, where("owner", [hostile, "none"], FilterOperator.IN)) == ("a" if hostile == "O'Brien" else "")


def test_a_text_that_looks_like_a_number_is_none(store):
    assert ids(store, where("zip", "007")) == "a" and ids(store, where("zip", 7)) == "c"
    assert ids(store, where("zip", 5, FilterOperator.GT)) == "c" and ids(store, where("zip", "7")) == ""
    stock = SimpleVectorStore()
    stock.add(NODES)
    with pytest.raises(TypeError):
        stock.query(
            VectorStoreQuery(
                query_embedding=[1.0, 0.1], filters=MetadataFilters(filters=[where("zip", 5, FilterOperator.GT)])
            )
        )


def test_both_parts_of_a_hybrid_search_count(store):
    hybrid = VectorStoreQueryMode.HYBRID
    assert ids(store, mode=hybrid, similarity_top_k=2) == "abc"
    assert ids(store, mode=hybrid, similarity_top_k=2, alpha=0.1) == "acb"
    assert ids(store, mode=hybrid, similarity_top_k=1, alpha=1.0, query_embedding=[0.75, 0.5], hybrid_top_k=1) == "b"
    assert ids(store, mode=hybrid, similarity_top_k=1, alpha=0.0, query_embedding=[0.75, 0.5], hybrid_top_k=1) == "a"
    assert ids(store, mode=hybrid, similarity_top_k=1, sparse_top_k=2) == "ac"
    with pytest.raises(ValueError):
        store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], mode=hybrid))
    with pytest.raises(ValueError):
        store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], mode=VectorStoreQueryMode.SVM))


def test_words_need_no_embedding_and_are_no_syntax(store):
    for mode in (VectorStoreQueryMode.SPARSE, VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.DEFAULT):
        assert ids(store, mode=mode, query_embedding=None) == "ac"
        assert ids(store, mode=mode, query_embedding=None, sparse_top_k=1) == "a"
    for nasty in ("fox & | !", "'fox", "fox:*", "(fox", "fox <->", "fox\\", 'fox"', "fox*", "-fox", "fox AND NOT"):
        assert ids(store, mode=VectorStoreQueryMode.SPARSE, query_str=nasty) == "ac"


def test_a_filter_gets_as_many_as_there_are_every_time(ana):
    kept = KnowledgeVectorStore(persona=ana)
    kept.add([node(str(n), f"text {n}", [1.0, n / 500], rare="yes" if n % 50 == 49 else "no") for n in range(500)])
    rare = MetadataFilters(filters=[where("rare", "yes")])
    query = VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=10, filters=rare)
    assert [len(kept.query(query).ids) for _ in range(12)] == [10] * 12


def test_a_node_that_is_added_again_is_there_once(store):
    store.add([node("a", "A grey fox", [0.0, 1.0], "one")])
    assert ids(store) == "bac" and len(store.get_nodes()) == 3
    assert store.get_nodes(["a"])[0].text == "A grey fox"


def test_nodes_go_with_their_document_by_id_or_by_filter(store, call):
    call(store, "delete", "two")
    assert ids(store) == "ab"
    call(store, "delete_nodes")
    call(store, "delete_nodes", ["a", "nothing"], MetadataFilters(filters=[where("size", 2)]))
    assert ids(store) == "ab" == ids(store, doc_ids=[], node_ids=[])
    assert ids(store, doc_ids=["two"]) == "" and ids(store, doc_ids=["one"], node_ids=["b", "c"]) == "b"
    call(store, "delete_nodes", None, MetadataFilters(filters=[where("size", 2)]))
    assert ids(store) == "a"
    call(store, "clear")
    assert ids(store) == "" and store.get_nodes() == []


def test_texts_and_names_that_databases_dislike(ana, make_engine):
    for name in ("my-chat", "Data", "data_", "ünï çødé", "x" * 120, 'quo"ted'):
        kept = KnowledgeVectorStore(persona=ana, collection=name)
        kept.add([node("n", "one\0two", [1.0, 0.0], key="v\0")])
        assert kept.get_nodes()[0].text == "onetwo" and ids(kept, query_str="onetwo") == "n"
    assert len({document.source for document in ana.knowledge.list()}) == 6


def test_what_is_chosen_differs_from_everything_that_was_and_not_from_the_last_alone(ana):
    nodes = [
        node("a", "a", [1.0, 0.0, 0.0]),
        node("again", "a", [1.0, -0.01, 0.0]),
        node("b", "b", [0.0, 1.0, 0.0]),
        node("c", "c", [0.7, 0.7, 0.1]),
    ]
    ours, theirs = KnowledgeVectorStore(persona=ana), SimpleVectorStore()
    ours.add(nodes)
    theirs.add(nodes)
    query = VectorStoreQuery(query_embedding=[1.0, 0.3, 0.0], similarity_top_k=3, mode=VectorStoreQueryMode.MMR)
    assert ours.query(query).ids == ["a", "b", "c"]
    assert theirs.query(query).ids == ["a", "b", "again"]
    assert ours.query(query, mmr_threshold=1.0).ids == theirs.query(query, mmr_threshold=1.0).ids


def test_no_filter_leaves_the_scope(engine, store):
    ben = KnowledgeVectorStore(persona=engine.handle.persona("main", user="ben"))
    ben.add([node("a", "Ben's fox", [1.0, 0.0])])
    always = MetadataFilters(filters=[where("nothing", 1, FilterOperator.NE)], condition=FilterCondition.OR)
    assert [found.text for found in ben.get_nodes(None, always)] == ["Ben's fox"]
    assert ids(ben, node_ids=["a", "b"]) == "a"
    ben.clear()
    assert len(store.get_nodes()) == 3


def test_another_length_of_embeddings_is_an_error_that_says_what_to_do(store):
    with pytest.raises(ConfigurationError, match="clear"):
        store.add([node("d", "longer", [1.0, 0.0, 0.0])])
    with pytest.raises(ConfigurationError, match="clear"):
        store.query(VectorStoreQuery(query_embedding=[1.0, 0.0, 0.0]))


async def test_an_index_a_retriever_and_a_pipeline_go_on_it(ana):
    model = MockEmbedding(embed_dim=4)
    kept = KnowledgeVectorStore(persona=ana, collection="wiki", model="mock")
    documents = [Document(id_="pumps", text="The pump is green."), Document(id_="lamps", text="The lamp is blue.")]
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(), model], vector_store=kept, docstore=SimpleDocumentStore()
    )
    assert len(await pipeline.arun(documents=documents)) == 2
    assert await pipeline.arun(documents=documents) == []
    changed = [Document(id_="pumps", text="The pump is red."), documents[1]]
    assert len(await pipeline.arun(documents=changed)) == 1 and len(await kept.aget_nodes()) == 2

    index = VectorStoreIndex.from_vector_store(kept, embed_model=model)
    retriever = index.as_retriever(vector_store_query_mode="hybrid", similarity_top_k=2, alpha=0.3)
    assert [hit.text for hit in await retriever.aretrieve("Which pump?")] == ["The pump is red.", "The lamp is blue."]
    words = index.as_retriever(vector_store_query_mode="sparse", similarity_top_k=2)
    assert [hit.text for hit in words.retrieve("lamp")] == ["The lamp is blue."]
    index.delete_ref_doc("lamps")
    assert [found.text for found in kept.get_nodes()] == ["The pump is red."]
    assert ana.recall("pump", kinds=("knowledge",)).chunks[0].content == "The pump is red."
