"""LangChain's vector store and record manager on the engine's collections: the standard tests, and what others fail."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import aindex, index
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests

from langchain_memoranda import KnowledgeRecordManager, KnowledgeVectorStore, LangChainEmbedder
from memoranda.errors import ConfigurationError
from memoranda.ranking.mmr import mmr

FAKE = DeterministicFakeEmbedding(size=6)
PUMPS = [
    Document("The pump in the cellar is green.", id="1", metadata={"page": 1, "tags": ["a"], "file": "pumps.md"}),
    Document("The pump in the attic is blue.", id="2", metadata={"page": 2, "tags": ["a", "b"], "file": "pumps.md"}),
    Document("The lamp is broken.", id="3", metadata={"page": "2", "owner": {"name": "O'Brien", "age": 7}}),
]


class _OnThisDatabase(VectorStoreIntegrationTests):
    """The tests run in both modes of the API by themselves."""

    @pytest.fixture
    def mode(self):
        return "sync"


class TestOurVectors(_OnThisDatabase):
    @pytest.fixture
    def vectorstore(self, engine):
        return KnowledgeVectorStore(engine.handle.persona("main"))


class TestTheirVectors(_OnThisDatabase):
    @pytest.fixture
    def vectorstore(self, engine):
        return KnowledgeVectorStore(
            engine.handle.persona("main"), "test", embedding=self.get_embeddings(), search_mode="dense"
        )


@pytest.fixture
def ana(engine):
    """The persona of a user."""
    return engine.handle.persona("main", user="ana")


@pytest.fixture
def pumps(ana):
    """A store of three documents."""
    store = KnowledgeVectorStore(ana, "pumps")
    store.add_documents(PUMPS)
    return store


def found(store, **filter_):
    """Return the ids that a filter lets through, in each mode the same."""
    ids = [
        sorted(document.id for document in store.similarity_search("pump lamp", k=9, filter=filter_, search_mode=mode))
        for mode in ("hybrid", "dense")
    ]
    assert ids[0] == ids[1]
    return ids[0]


# -- filters


def test_any_key_of_the_metadata_filters(pumps):
    assert found(pumps, page=2) == ["2"] and found(pumps, page="2") == ["3"]
    assert found(pumps, owner={"name": "O'Brien"}) == ["3"]
    assert found(pumps, file="pumps.md", page={"$gte": 2}) == ["2"]
    assert found(pumps) == ["1", "2", "3"]


OPERATORS = [
    ({"page": {"$ne": 1}}, "23"),
    ({"page": {"$gt": 1, "$lte": 2}}, "2"),
    ({"page": {"$in": [1, "2"]}}, "13"),
    ({"page": {"$nin": [1, "2"]}}, "2"),
    ({"page": {"$between": [1, 2]}}, "12"),
    ({"tags": {"$contains": "b"}}, "2"),
    ({"tags": ["a"]}, "1"),
    ({"file": {"$like": "%mp%"}}, "12"),
    ({"file": {"$like": "pump%"}}, "12"),
    ({"file": {"$like": "pump"}}, ""),
    ({"file": {"$ilike": "%PUMP%"}}, "12"),
    ({"owner": {"name": {"$exists": True}}}, "3"),
    ({"owner": {"$exists": False}}, "12"),
    ({"$or": [{"page": 1}, {"owner": {"age": 7}}]}, "13"),
    ({"$and": [{"page": {"$gte": 1}}, {"tags": {"$contains": "a"}}]}, "12"),
    ({"$not": {"tags": {"$contains": "b"}}}, "13"),
    ({"page": {"$not": {"$gt": 1}}}, "13"),
    ({"owner": {"name": "x' OR '1'='1"}}, ""),
    ({"x') OR 1=1 --": 1}, ""),
]


def test_operators(pumps):
    for filter_, ids in OPERATORS:
        assert "".join(found(pumps, **filter_)) == ids, filter_


def test_what_is_no_filter_is_refused(pumps):
    for filter_ in (
        {"page": {"$near": 1}},
        {"page": {"$between": [1]}},
        {"$and": [1]},
        {"$not": 1},
        {"$eq": 1},
        {"$or": "x"},
        {"file": {"$like": "a%b"}},
        {"f": {"$ilike": "a"}},
    ):
        with pytest.raises(ValueError):
            pumps.similarity_search("pump", filter=filter_)
    with pytest.raises(TypeError):
        pumps.similarity_search("pump", filters={"page": 1})


def test_values_that_json_does_not_know_come_back_and_are_compared(ana):
    store = KnowledgeVectorStore(ana)
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
    store.add_documents(
        [Document(f"Day {d.day}", id=str(d.day), metadata={"at": d, "x": Decimal(d.day)}) for d in days]
    )
    assert found(store, at=days[1]) == ["2"] == found(store, x=Decimal(2))
    assert found(store, at={"$gt": days[0]}) == ["2", "3"]
    assert store.get_by_ids(["3"])[0].metadata == {"at": days[2], "x": Decimal(3)}


# -- complaints


def test_a_filter_gets_as_many_as_there_are_every_time(ana):
    store = KnowledgeVectorStore(ana, embedding=FAKE, search_mode="dense")
    store.add_documents([Document(f"text {n}", metadata={"rare": n % 30 == 0}) for n in range(600)])
    for n in range(12):
        assert len(store.similarity_search(f"question {n}", k=10, filter={"rare": True})) == 10


def test_another_length_of_vectors_is_an_error_that_says_what_to_do(ana):
    KnowledgeVectorStore(ana, embedding=FAKE).add_documents(PUMPS)
    longer = KnowledgeVectorStore(ana, embedding=DeterministicFakeEmbedding(size=8))
    for call in (lambda: longer.similarity_search("pump"), lambda: longer.add_documents(PUMPS)):
        with pytest.raises(ConfigurationError, match="clear"):
            call()
    stock = InMemoryVectorStore(FAKE)
    stock.add_documents(PUMPS)
    stock.embedding = DeterministicFakeEmbedding(size=8)
    stock.add_documents([Document("A store that mixes lengths is found out when it is asked.", id="4")])
    with pytest.raises(ValueError):
        stock.similarity_search("pump")


def test_documents_go_by_their_metadata(pumps):
    assert pumps.delete(filter={"file": "pumps.md", "page": {"$lt": 2}})
    assert found(pumps) == ["2", "3"]
    assert pumps.delete(["2", "3"], filter={"page": 2}) and found(pumps) == ["3"]
    assert pumps.delete([]) and found(pumps) == ["3"]
    assert pumps.delete() and found(pumps) == []


# -- searching


def test_scores_are_between_nothing_and_one(pumps):
    for mode in ("hybrid", "dense", "text"):
        scored = pumps.similarity_search_with_relevance_scores("Which pump is blue?", k=9, search_mode=mode)
        assert scored[0][0].id == "2" and all(0 <= score <= 1 for _, score in scored)
    retriever = pumps.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9})
    assert [document.id for document in retriever.invoke("Which pump is blue?")] == ["2"]


def test_a_user_finds_their_own(engine, pumps):
    ben = KnowledgeVectorStore(engine.handle.persona("main", user="ben"), "pumps")
    assert ben.similarity_search("pump") == [] == ben.get_by_ids(["1"])
    assert ben.delete() and len(pumps.similarity_search("pump")) == 3


def test_what_is_chosen_is_what_langchain_would_choose(ana):
    vectors = FAKE.embed_documents([f"text {n}" for n in range(20)])
    query = FAKE.embed_query("question")
    for balance in (0.0, 0.3, 0.5, 1.0):
        theirs = maximal_marginal_relevance(np.array(query), vectors, lambda_mult=balance, k=5)
        assert mmr(np.array(query, np.float32), np.array(vectors, np.float32), 5, balance) == theirs
    store = KnowledgeVectorStore(ana, embedding=FAKE)
    store.add_texts([f"text {n}" for n in range(20)], ids=[str(n) for n in range(20)])
    chosen = store.max_marginal_relevance_search_by_vector(query, k=5, fetch_k=20, lambda_mult=0.3)
    assert [int(document.id) for document in chosen] == maximal_marginal_relevance(
        np.array(query), vectors, lambda_mult=0.3, k=5
    )
    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 3, "fetch_k": 9, "lambda_mult": 0.1})
    assert len(retriever.invoke("question")) == 3


def test_an_embedding_that_is_the_engines_shares_its_vectors(make_engine):
    me = make_engine(embedder=LangChainEmbedder(FAKE, name="fake")).handle.persona("main")
    store = KnowledgeVectorStore.from_documents(PUMPS, FAKE, persona=me, collection="pumps", model="fake")
    assert store.embeddings is FAKE
    [best] = KnowledgeVectorStore(me, "pumps").similarity_search(PUMPS[2].page_content, k=1, search_mode="dense")
    assert best == PUMPS[2]
    with pytest.raises(TypeError):
        KnowledgeVectorStore.from_texts(["x"], FAKE)


def test_recall_finds_what_is_stored(ana, pumps):
    assert ana.recall("Which pump is in the attic?", kinds=("knowledge",)).chunks[0].content == PUMPS[1].page_content


async def test_nothing_blocks_the_loop(engine):
    me = engine.handle.persona("main")
    await me.astats()
    store, manager = KnowledgeVectorStore(me), KnowledgeRecordManager(me)
    with blockbuster_ctx("langchain_memoranda"):
        await store.aadd_documents(PUMPS)
        assert len(await store.asimilarity_search("pump", k=2)) == 2
        assert len(await store.amax_marginal_relevance_search("pump", k=2)) == 2
        assert await aindex(PUMPS, manager, store, key_encoder="sha256")
        assert await store.adelete(["1"])


def test_one_store_serves_two_loops_and_threads(engine):
    store = KnowledgeVectorStore(engine.handle.persona("main"))
    asyncio.run(store.aadd_documents(PUMPS))
    assert len(asyncio.run(store.asimilarity_search("pump", k=2))) == 2 == len(store.similarity_search("pump", k=2))

    async def sync_inside():
        return store.similarity_search("pump", k=2)

    assert len(asyncio.run(sync_inside())) == 2


# -- indexing


def indexed(call, documents, manager, store, **options):
    options = {"cleanup": "full", "source_id_key": "file", "key_encoder": "sha256", **options}
    if call == "sync":
        return index(documents, manager, store, **options)
    return asyncio.run(aindex(documents, manager, store, **options))


def test_what_changed_is_indexed_anew_and_what_vanished_goes(ana, mode):
    store, manager = KnowledgeVectorStore(ana, "docs"), KnowledgeRecordManager(ana, "docs")
    manager.create_schema()
    one, two = (Document(f"The pump number {n} is green.", metadata={"file": f"{n}.md"}) for n in (1, 2))
    changed = Document("The pump number 2 is red.", metadata={"file": "2.md"})

    assert indexed(mode, [one, two], manager, store)["num_added"] == 2
    assert indexed(mode, [one, two], manager, store) == dict(num_added=0, num_updated=0, num_skipped=2, num_deleted=0)
    assert indexed(mode, [changed], manager, store, cleanup="incremental") == dict(
        num_added=1, num_updated=0, num_skipped=0, num_deleted=1
    )
    assert {d.page_content for d in store.similarity_search("pump", k=9)} == {one.page_content, changed.page_content}
    assert indexed(mode, [changed], manager, store)["num_deleted"] == 1
    assert [d.page_content for d in store.similarity_search("pump", k=9)] == [changed.page_content]
    assert len(manager.list_keys()) == 1


def test_a_record_manager_keeps_its_promises(ana, mode):
    manager = KnowledgeRecordManager(ana, "docs")
    with pytest.raises(ValueError):
        manager.update(["a"], group_ids=["x", "y"])
    with pytest.raises(ValueError):
        manager.update(["a"], time_at_least=manager.get_time() + 1000)
    manager.update(["a", "b"], group_ids=["x", "y"])
    assert manager.list_keys(group_ids=["x"]) == ["a"] and manager.exists(["b", "c"]) == [True, False]
    assert KnowledgeRecordManager(ana, "others").list_keys() == []
    with pytest.raises(ValueError):
        manager.update([""])


def test_what_was_noted_before_a_run_is_older_than_it(ana):
    manager = KnowledgeRecordManager(ana, "docs")
    for n in range(20):  # several in a millisecond
        manager.update([str(n)])
        assert len(manager.list_keys(before=manager.get_time())) == n + 1
