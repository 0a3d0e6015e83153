"""Nodes are kept under the caller's keys, replaced one by one, found by words and meaning, and are knowledge too."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from memoranda import MemoryEngine
from memoranda.conditions import AllOf, AnyOf, Compare, Not
from memoranda.errors import ConfigurationError, EmbedderUnavailable, InvalidInput
from memoranda.nodes import Node
from memoranda.policies import FloorPolicy
from memoranda.testing import BrokenEmbedder, CountingEmbedder, DeferredEmbedder, FixedEmbedder, HashedEmbedder, unwrap

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
ANIMALS = (
    Node(key="fox", content="The quick brown fox jumps over the lazy dog.", metadata={"legs": 4, "tags": ["red"]}),
    Node(key="hound", content="The fox and the hound are friends.", metadata={"legs": 4.0, "name": "Copper"}),
    Node(key="stork", content="A stork stands in the pond.", metadata={"legs": 2, "tags": ["white", "red"]}),
)


@pytest.fixture
def animals(me):
    """A collection of three nodes."""
    kept = me.collection("animals")
    kept.add(ANIMALS)
    return kept


def keys(hits):
    return [hit.node.key for hit in hits]


def rows(engine, noun):
    def read(conn, tables):
        return [row._mapping for row in conn.execute(select(getattr(tables, noun)))]

    return unwrap(engine)._database.read(read)


# -- storing


def test_nodes_come_back_as_they_were(animals):
    assert animals.get() == list(ANIMALS) and animals.count() == 3
    assert animals.get(["stork", "nothing", "fox", "stork"]) == [ANIMALS[2], ANIMALS[0]]
    assert animals.get([]) == [] == animals.get(["nothing"])
    assert animals.get(limit=2) == list(ANIMALS[:2])


def test_a_key_names_one_node_and_the_last_text_counts(engine, me, animals):
    assert animals.add([Node(key="fox", content="gone"), Node(key="fox", content="The fox is grey.")]) == ["fox", "fox"]
    assert animals.count() == 3 == len(rows(engine, "knowledge_chunks")) == len(rows(engine, "vectors"))
    assert [node.key for node in animals.get()] == ["fox", "hound", "stork"]
    assert keys(animals.search("grey fox", mode="text", limit=1)) == ["fox"]
    [document] = me.knowledge.list()
    assert (document.chunks, document.characters) == (3, sum(len(node.content) for node in animals.get()))


def test_places_are_given_once(me, animals):
    animals.delete(["fox"])
    animals.add([Node(key="owl", content="An owl hoots.")])
    assert [node.key for node in animals.get()] == ["hound", "stork", "owl"]
    assert [chunk.chunk_index for chunk in me.knowledge.get("animals")] == [1, 2, 3]


def test_nodes_go_by_key_by_condition_or_all(me, animals):
    assert animals.delete(["fox", "nothing"]) == 1
    assert animals.delete(where=Compare(("legs",), "eq", 2)) == 1
    assert animals.delete(["hound"], where=Compare(("legs",), "eq", 2)) == 0 == animals.delete([])
    assert animals.count() == 1 and me.knowledge.list()[0].chunks == 1
    assert animals.clear() == 1 and animals.clear() == 0 == animals.count() == animals.delete(["fox"])
    assert me.knowledge.list() == [] == animals.get() == animals.search("fox")
    with pytest.raises(InvalidInput):
        animals.delete()


def test_any_metadata_and_a_text_without_words_are_kept(me):
    kept = me.collection("odd")
    metadata = {"a.b": {"c": [1, None, 1e30, True]}, "t": (1, 2), "it's": 'q"uote', "": {}}
    kept.add([Node(key="empty", content="", metadata=metadata), Node(key="dots", content=" ... ")])
    assert kept.get() == [Node(key="empty", content="", metadata=metadata), Node(key="dots", content=" ... ")]
    assert kept.count(where=Compare(("a.b", "c"), "has", True)) == 1 == kept.count(where=Compare(("it's",), "exists"))


def test_a_node_without_nul_is_stored(me):
    kept = me.collection("nul")
    kept.add([Node(key="a", content="one\0two", metadata={"k\0": "v\0"})])
    assert kept.get() == [Node(key="a", content="onetwo", metadata={"k": "v"})]


@pytest.mark.parametrize(
    "node",
    [
        Node(key="", content="x"),
        Node(key="k" * 501, content="x"),
        Node(key="a\0", content="x"),
        Node(key="a", content=None),  # type: ignore[arg-type]
        Node(key="a", content="x", metadata={"x": object()}),
        Node(key="a", content="x", metadata=3),  # type: ignore[arg-type]
        Node(key="a", content="x", vector=[1.0]),
        "a",
    ],
)
def test_what_cannot_be_stored_is_named_and_nothing_is_stored(me, node):
    with pytest.raises(InvalidInput) as caught:
        me.collection("animals").add([ANIMALS[0], node])
    assert caught.value.index == 1 and me.collection("animals").count() == 0


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"mode": "fuzzy"}, {"alpha": 1.1}, {"where": {"legs": 4}}])
def test_a_search_that_cannot_be_one_is_refused(animals, arguments):
    with pytest.raises(InvalidInput):
        animals.search("fox", **arguments)
    with pytest.raises(InvalidInput):
        animals.search()


def test_a_name_is_a_documents_or_a_collections(me, animals):
    me.knowledge.ingest("manual", text="The pump is green.")
    with pytest.raises(InvalidInput):
        me.collection("manual").add(ANIMALS)
    with pytest.raises(InvalidInput):
        me.collection("manual").search("pump")
    with pytest.raises(InvalidInput):
        me.knowledge.ingest("animals", text="The pump is green.")
    assert animals.count() == 3 and len(me.knowledge.get("manual")) == 1
    assert me.knowledge.delete("animals") == 3 and animals.count() == 0


# -- searching


def test_words_meaning_and_both(me):
    texts = {"one fox": [1.0, 0.0], "two foxes": [0.8, 0.6], "a vixen": [0.99, 0.1411], "fox": [1.0, 0.0]}
    with MemoryEngine("sqlite://", embedder=FixedEmbedder(texts), background="off") as engine:
        kept = engine.persona("main").collection("foxes")
        kept.add([Node(key=text, content=text) for text in ("two foxes", "a vixen", "one fox")])
        assert keys(kept.search("fox", mode="dense")) == ["one fox", "a vixen", "two foxes"]
        assert keys(kept.search("fox", mode="text")) == ["two foxes", "one fox"]
        hybrid = kept.search("fox")
        assert keys(hybrid) == ["one fox", "two foxes", "a vixen"]
        assert [round(hit.score, 3) for hit in hybrid] == [1.0, 0.88, 0.594]
        assert [round(hit.cosine or 0, 3) for hit in hybrid] == [1.0, 0.8, 0.99]
        assert hybrid[2].text is None and hybrid[0].text == hybrid[1].text
        assert keys(kept.search("fox", alpha=1.0)) == ["one fox", "a vixen", "two foxes"]
        assert keys(kept.search("fox", text_limit=1, dense_limit=1)) == ["one fox", "two foxes"]
        assert keys(kept.search("fox", mode="dense", mmr_balance=0.2, limit=2)) == ["one fox", "two foxes"]
        assert keys(kept.search("fox", mode="dense", keys=["a vixen"])) == ["a vixen"]


def test_equals_stand_in_the_order_in_which_they_were_added(me):
    kept = me.collection("equals")
    kept.add([Node(key=str(number), content="the very same") for number in range(6)])
    for mode in ("dense", "text", "hybrid"):
        assert keys(kept.search("same", mode=mode, limit=3)) == ["0", "1", "2"]


@pytest.mark.parametrize("query", ["who' &..s | (the): <-> **fox**?!!!", 'fox" OR "', "fox:* & !", "NEAR(fox", "-fox"])
def test_nothing_in_a_question_is_an_operator(animals, query):
    assert set(keys(animals.search(query, mode="text"))) == {"fox", "hound"}


def test_conditions_narrow_every_mode(animals):
    red = Compare(("tags",), "has", "red")
    for mode in ("dense", "text", "hybrid"):
        assert "hound" not in keys(animals.search("fox stork", mode=mode, where=red))
    four = Compare(("legs",), "eq", 4)
    assert keys(animals.search("x", mode="dense", where=AllOf((four, Not(red))))) == ["hound"]
    assert animals.count(where=AnyOf(())) == 0 and animals.count(where=AllOf(())) == 3
    assert [node.key for node in animals.get(["stork", "fox"], where=four)] == ["fox"]


def test_a_rare_match_is_found_among_many_that_are_nearer(make_engine):
    kept = make_engine(embedder=HashedEmbedder(16)).persona("main").collection("many")
    kept.add([Node(key=str(n), content=f"fox {n}", metadata={"rare": n % 50 == 0}) for n in range(400)])
    kept.add([Node(key=f"far {n}", content=f"stork {n}", metadata={"rare": True}) for n in range(2)])
    for _ in range(12):
        assert len(kept.search("fox", mode="dense", limit=10, where=Compare(("rare",), "eq", True))) == 10


def test_an_embedder_that_is_down_leaves_the_words(make_engine):
    kept = make_engine(embedder=BrokenEmbedder()).persona("main").collection("animals")
    kept.add(ANIMALS)
    assert keys(kept.search("fox")) == ["fox", "hound"]
    with pytest.raises(EmbedderUnavailable):
        kept.search("fox", mode="dense")


# -- vectors


def test_vectors_may_be_the_callers(engine, me):
    kept = me.collection("given", model="mine")
    kept.add([Node(key="x", content="horizontal", vector=[1, 0]), Node(key="y", content="vertical", vector=[0, 1])])
    assert [round(hit.score, 3) for hit in kept.search(vector=[0.6, 0.8], mode="dense")] == [0.8, 0.6]
    away = kept.search(vector=[-0.8, -0.6], mode="dense")
    assert [(hit.node.key, hit.score) for hit in away] == [("y", 0), ("x", 0)]
    assert keys(kept.search("horizontal", vector=[0, 1], alpha=0.2)) == ["x", "y"]
    assert [list(node.vector) for node in kept.get(vectors=True)] == [[1, 0], [0, 1]]
    assert {row["model"] for row in rows(engine, "vectors")} == {"given:mine@2"}
    refusals: list[Any] = [[1.0], [1.0, float("nan")], ["a", "b"], []]
    for refused in refusals:
        with pytest.raises((InvalidInput, ConfigurationError)):
            kept.add([Node(key="z", content="x", vector=refused)])
    with pytest.raises(InvalidInput):
        kept.add([Node(key="z", content="x")])
    with pytest.raises(InvalidInput):
        kept.search("horizontal")


def test_vectors_of_two_models_are_never_compared(me, animals):
    kept = me.collection("given", model="mine")
    kept.add([Node(key="x", content="one", vector=[1, 0])])
    for other in (me.collection("given", model="other"), me.collection("animals", model="mine")):
        with pytest.raises(ConfigurationError):
            other.add([Node(key="x", content="one", vector=[1, 0])])
        with pytest.raises(ConfigurationError):
            other.search(vector=[1, 0], mode="dense")
    with pytest.raises(ConfigurationError):
        kept.search(vector=[1, 0, 0], mode="dense")
    with pytest.raises(ConfigurationError):
        me.collection("given").add(ANIMALS)
    kept.clear()
    me.collection("given", model="other").add([Node(key="x", content="one", vector=[1, 0, 0])])


def test_a_model_that_is_the_stores_own_shares_its_vectors(make_engine):
    embedder = CountingEmbedder(HashedEmbedder(16))
    me = make_engine(embedder=embedder).persona("main")
    vector = embedder.embed(["one fox"], "text")[0]
    me.collection("given", model=embedder.name).add([Node(key="x", content="one fox", vector=list(vector))])
    assert keys(me.collection("given").search("one fox", mode="dense")) == ["x"]


def test_the_stores_own_vectors_of_given_nodes_come_later_and_leave_the_given_alone(make_engine):
    engine = make_engine(background="external")
    kept = engine.persona("main").collection("given", model="mine")
    kept.add([Node(key="x", content="a fox", vector=[1, 0]), Node(key="y", content="", vector=[0, 1])])
    assert engine.drain() == 0
    assert sorted(row["model"] for row in rows(engine, "vectors")) == 2 * ["given:mine@2"] + 2 * ["hash/words@512"]
    assert keys(kept.search(vector=[1, 0.1], mode="dense")) == ["x", "y"]
    assert kept.add([Node(key="x", content="a stork", vector=[0, 1])]) and len(rows(engine, "vectors")) == 3


def test_moving_to_another_embedder_takes_nodes_along(make_engine, backend, me, animals):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: two engines in memory share nothing")
    me.collection("given", model="mine").add([Node(key="x", content="one", vector=[1, 0])])
    other = make_engine(embedder=HashedEmbedder(32, name="test/other"))
    assert other.reembed(prune=True) == 4
    me = other.persona("main")
    assert keys(me.collection("animals").search("stork pond", mode="dense", limit=1)) == ["stork"]
    assert keys(me.collection("given", model="mine").search(vector=[1, 0], mode="dense")) == ["x"]
    found = other.doctor()
    assert (found.other_vectors, found.without_vector) == (0, 0)


def test_secrets_are_kept_but_neither_indexed_nor_sent_out(make_engine):
    embedder = CountingEmbedder(HashedEmbedder(16))
    engine = make_engine(embedder=DeferredEmbedder(embedder), background="external")
    kept = engine.persona("main").collection("secrets")
    kept.add([Node(key="x", content=f"the token is {SECRET}", metadata={"t": SECRET})])
    assert engine.drain() == 0
    assert kept.get()[0].content.endswith(SECRET) and kept.get()[0].metadata == {"t": SECRET}
    assert embedder.texts and not any(SECRET in text for text in embedder.texts)
    assert kept.search(SECRET.removeprefix("ghp_"), mode="text") == []


# -- knowledge, scope, erasing, moving


def test_recall_finds_nodes_as_it_finds_chunks(me, animals):
    found = me.recall("Which friends has the hound?", floor=FloorPolicy(enabled=False), kinds=("knowledge",))
    assert found.chunks[0].content == ANIMALS[1].content and found.chunks[0].source == "animals"
    assert found.chunks[0].metadata == ANIMALS[1].metadata
    assert me.recall("hound", sources="animals", floor=FloorPolicy(enabled=False)).chunks
    assert [chunk.content for chunk in me.knowledge.get("animals")] == [node.content for node in ANIMALS]
    assert (me.stats().documents, me.stats().embedded_chunks) == (1, 3)


def test_a_collection_is_one_users(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    ana.collection("animals").add(ANIMALS)
    bob.collection("animals").add([Node(key="fox", content="Bob's fox")])
    assert bob.collection("animals").get() == [Node(key="fox", content="Bob's fox")]
    assert keys(bob.collection("animals").search("fox stork hound")) == ["fox"]
    assert bob.collection("animals").delete(["stork"]) == 0 and ana.collection("animals").count() == 3
    assert engine.persona("other", tenant="acme", user="ana").collection("animals").count() == 0


def test_erasing_a_user_leaves_nothing_of_their_nodes(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    for user in (ana, bob):
        user.collection("given", model="mine").add([Node(key="x", content="one fox", vector=[1, 0])])
        user.collection("animals").add(ANIMALS)
        user.record_keys("index").note(["a"], groups=["file"])
    engine.erase(user="ana", tenant="acme")
    for noun in ("knowledge_documents", "knowledge_chunks", "record_keys"):
        assert {row["author"] for row in rows(engine, noun)} == {"bob"}
    assert len(rows(engine, "vectors")) == 4
    assert bob.collection("animals").count() == 3 and ana.record_keys("index").list() == []


def test_a_store_is_moved_with_its_nodes(engine, tmp_path):
    me = engine.persona("main", tenant="acme", user="ana")
    me.collection("animals").add(ANIMALS)
    me.collection("given", model="mine").add([Node(key="x", content=f"one {SECRET}", vector=[1, 0])])
    me.record_keys("index").note(["a", "b"], groups=["file", None])
    engine.export_to(tmp_path / "store.jsonl")
    with MemoryEngine("sqlite://", language="german", embedder="hash/words", background="off") as other:
        other.import_from(tmp_path / "store.jsonl")
        mine = other.persona("main", tenant="acme", user="ana")
        assert mine.collection("animals").get() == list(ANIMALS)
        assert [hit.node.key for hit in mine.collection("animals").search("stork", mode="text")] == ["stork"]
        given_nodes = mine.collection("given", model="mine")
        assert [hit.node.key for hit in given_nodes.search(vector=[1, 0], mode="dense")] == ["x"]
        assert given_nodes.search(SECRET.removeprefix("ghp_"), mode="text") == []
        assert mine.record_keys("index").list(groups=["file"]) == ["a"]
        mine.collection("animals").add([Node(key="fox", content="grey")])
        assert mine.collection("animals").count() == 3


# -- at the same time


def test_upserts_at_the_same_time_leave_one_node_a_key(make_engine, backend, at_once):
    engine = make_engine()
    kept = engine.persona("main").collection("animals")
    batches = [
        [Node(key=str(key), content=f"text {key} of {batch}") for key in range(batch % 3, 12)] for batch in range(6)
    ]
    results = at_once([(kept, "add", batch) for batch in batches])
    assert not [result for result in results if isinstance(result, Exception)]
    nodes = kept.get()
    assert sorted(int(node.key) for node in nodes) == list(range(12)) and kept.count() == 12
    assert len(rows(engine, "vectors")) == 12 == len({row["chunk_index"] for row in rows(engine, "knowledge_chunks")})
    [document] = engine.persona("main").knowledge.list()
    assert (document.chunks, document.characters) == (12, sum(len(node.content) for node in nodes))


def test_adding_and_deleting_at_the_same_time_count_right(make_engine, at_once):
    engine = make_engine()
    kept = engine.persona("main").collection("animals")
    kept.add([Node(key=str(key), content=f"text {key}") for key in range(8)])
    calls: list[Any] = [(kept, "delete", [str(key), str(key + 1)]) for key in range(0, 8, 2)]
    calls += [(kept, "add", [Node(key=f"new {key}", content="new")]) for key in range(4)]
    assert not [result for result in at_once(calls) if isinstance(result, Exception)]
    assert kept.count() == 4 == engine.persona("main").knowledge.list()[0].chunks


# -- as a model of it


@settings(max_examples=15)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.lists(st.tuples(st.sampled_from("abcd"), st.text(max_size=8)), max_size=4)),
            st.tuples(st.just("delete"), st.lists(st.sampled_from("abcde"), max_size=3)),
            st.tuples(st.just("clear"), st.just([])),
        ),
        max_size=8,
    )
)
def test_a_collection_is_a_mapping(commands):
    with MemoryEngine("sqlite://", embedder="hash/words", background="off") as engine:
        kept, expected = engine.persona("main").collection("any"), dict[str, str]()
        for verb, given_values in commands:
            if verb == "add":
                kept.add([Node(key=key, content=text) for key, text in given_values])
                expected |= {key: text.replace("\0", "") for key, text in given_values}
            elif verb == "delete":
                kept.delete(given_values)
                expected = {key: text for key, text in expected.items() if key not in given_values}
            else:
                kept.clear()
                expected = {}
            assert {node.key: node.content for node in kept.get()} == expected
            assert sum(document.chunks for document in engine.persona("main").knowledge.list()) == len(expected)


# -- record keys


def test_record_keys_are_noted_by_the_databases_clock(me):
    noted = me.record_keys("index")
    began = noted.now()
    noted.note(["a", "b", "a"], groups=["one", "two", None], not_before=began)
    between = noted.now()
    assert noted.exist(["a", "z", "b"]) == [True, False, True]
    assert noted.list() == ["a", "b"] == noted.list(after=began - 1) and noted.list(before=began) == []
    assert noted.list(groups=["two"]) == ["b"] and noted.list(groups=[None]) == ["a"] and noted.list(groups=[]) == []
    assert noted.list(limit=1) == ["a"] and began <= between
    assert noted.delete(["a", "z"]) == 1 and noted.list() == ["b"]
    assert me.record_keys("other").list() == []
    noted.note([])


@pytest.mark.parametrize("arguments", [{"groups": ["one"]}, {"not_before": 9e12}, {"groups": [1, 2]}])
def test_what_cannot_be_noted_is_refused(me, arguments):
    with pytest.raises(InvalidInput):
        me.record_keys("index").note(["a", "b"], **arguments)
    assert me.record_keys("index").list() == []


def test_notes_at_the_same_time_are_one(make_engine, at_once):
    noted = make_engine().persona("main").record_keys("index")
    keys_ = [str(number) for number in range(20)]
    results = at_once([(noted, "note", keys_ if n % 2 else keys_[::-1]) for n in range(6)])
    assert results == [None] * 6 and sorted(noted.list(), key=int) == keys_
