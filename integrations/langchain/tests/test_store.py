"""A LangGraph store on items: what every store promises, and the sane side of what stores disagree on."""

import asyncio
from types import SimpleNamespace

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from langchain_memoranda import MemoryStore, decode_label, encode_label, persona_namespace
from memoranda.errors import ConfigurationError, InvalidInput

HERE = ("docs",)


def keys(found):
    return [item.key for item in found]


@pytest.mark.parametrize("query", [None, "tea"])
def test_a_tenant_is_no_prefix_of_another(by_letters, do, query):  # complaint 8
    for label in ("acme", "acme-corp", "1", "12", "user_1", "userX1", "a%b", "axxb"):
        do(by_letters, "put", ("tenant", label), "k", {"text": "tea"})
    for label in ("acme", "1", "user_1", "a%b"):
        found = do(by_letters, "search", ("tenant", label), query=query)
        assert [item.namespace for item in found] == [("tenant", label)]


@pytest.mark.parametrize("query", [None, "tea"])
def test_numbers_are_compared_as_numbers(by_letters, do, query):  # complaint 9
    for n in (2, 9, 10, 100, 2.5):
        do(by_letters, "put", HERE, str(n), {"text": "tea", "n": n, "m": {"x": n, "y": 1}})
    do(by_letters, "put", HERE, "text", {"text": "tea", "n": "50"})
    do(by_letters, "put", HERE, "none", {"text": "tea"})

    def found(**filter):
        return set(keys(do(by_letters, "search", HERE, query=query, filter=filter)))

    assert found(n={"$gte": 10}) == {"10", "100"}
    assert found(n={"$gt": 2, "$lt": 10}) == {"9", "2.5"}
    assert found(n=9.0) == found(n={"$eq": 9}) == {"9"}
    assert found(n={"$ne": 9}) == {"2", "10", "100", "2.5", "text", "none"}
    assert found(n={"$gt": "49"}) == {"text"}
    assert found(n={"$lt": float("inf")}) == {"2", "9", "10", "100", "2.5"} == found(n={"$lt": 10**100})
    assert found(n={"$gt": float("nan")}) == found(n={"$gt": float("inf")}) == set()
    assert found(n=None) == {"none"}
    assert found(m={"x": 10}) == {"10"} and found(m={"x": {"$gte": 10}, "y": 1}) == {"10", "100"}
    assert found(**{"m.x": 9}) == {"9"} == found(**{"m.x": {"$gte": 9, "$lt": 10}})
    assert found(**{"m.x": {"$ne": 9}}) == {"2", "10", "100", "2.5", "text", "none"}
    assert found(**{"m.x": None}) == {"text", "none"} and found(**{"می\u200cخواهم": None}) >= {"text", "none"}


def test_an_operator_nobody_knows_and_a_value_without_an_order_are_refused(by_letters, do):
    for filter in ({"n": {"$in": [1]}}, {"n": {"$gt": None}}, {"n": {"$lt": [1]}}, {"": 1}, {"a\0b": 1}):
        with pytest.raises(ValueError):
            do(by_letters, "search", HERE, filter=filter)


def test_pages_of_answers_are_exact(by_letters, do):  # complaint 11
    ops = [PutOp(HERE, f"{n:02}", {"text": "tea" + "abcdefghij"[n % 10] * (n // 10)}) for n in range(30)]
    do(by_letters, "batch", ops)
    whole = keys(do(by_letters, "search", HERE, query="tea b", limit=30))
    assert len(set(whole)) == 30
    for offset in range(0, 30, 5):
        assert keys(do(by_letters, "search", HERE, query="tea b", limit=5, offset=offset)) == whole[offset : offset + 5]
    assert do(by_letters, "search", HERE, query="tea b", limit=5, offset=30) == []


@pytest.mark.parametrize("name", ["ana@example.com", 7, "a.b", "", "líne\n\0", "~", "*", "~2E", "日本", "100%"])
def test_any_name_has_a_label_of_its_own(by_letters, do, name):  # complaint 17
    label = encode_label(name)
    assert decode_label(label) == str(name)
    do(by_letters, "put", ("users", label), "k", {"text": "tea"})
    assert do(by_letters, "list_namespaces", prefix=("users", label)) == [("users", label)]
    for other in (None, True, 1.5, ["a"]):
        with pytest.raises(InvalidInput):
            encode_label(other)
    for other in ("é", "日本", "~ZZ", "~FF", "~41", ""):
        with pytest.raises(InvalidInput):
            decode_label(other)


def test_who_asks_in_a_run_has_a_namespace(by_letters):  # complaint 17
    run = SimpleNamespace(context={"user_id": "ana@example.com", "tenant": "acme"}, config={"configurable": {}})
    assert persona_namespace(run) == ("main", "acme", "ana@example~2Ecom")
    alone = SimpleNamespace(context={"user_id": 7}, config={"configurable": {"persona": "work"}})
    assert persona_namespace(alone) == ("work", "~", "7")
    with pytest.raises(ConfigurationError, match="No user"):
        persona_namespace(SimpleNamespace(context=None, config={"configurable": {}}))


def test_few_among_many_are_all_found_however_often_one_asks(by_letters, do):  # complaint 19
    do(by_letters, "batch", [PutOp(("many", str(n % 5)), str(n), {"text": f"tea {n}", "n": n}) for n in range(300)])
    do(by_letters, "batch", [PutOp(("few",), str(n), {"text": "zzz", "n": n}) for n in range(12)])
    for _ in range(12):
        assert len(by_letters.search(("few",), query="tea", limit=10)) == 10
    assert len(do(by_letters, "search", ("few",), query="tea", filter={"n": {"$lt": 4}})) == 4


def test_two_puts_of_one_text_and_one_key_in_a_batch(by_letters, do):
    do(by_letters, "batch", [PutOp(HERE, "a", {"text": "tea"}), PutOp(HERE, "b", {"text": "tea"})])
    first = do(by_letters, "get", HERE, "a")
    answers = do(
        by_letters,
        "batch",
        [PutOp(HERE, "a", {"text": "x"}), GetOp(HERE, "a"), PutOp(HERE, "a", {"text": "y"}), SearchOp(HERE)],
    )
    assert answers[1].value == {"text": "tea"} and sorted(keys(answers[3])) == ["a", "b"]
    last = do(by_letters, "get", HERE, "a")
    assert last.value == {"text": "y"} and last.created_at == first.created_at and last.updated_at > first.updated_at
    one, other = do(by_letters, "batch", [GetOp(HERE, "a"), GetOp(HERE, "a")])
    one.value["text"] = "changed"
    assert other.value == {"text": "y"}


def test_a_batch_with_a_label_that_cannot_be_does_nothing(by_letters, do):
    bad = [GetOp(("a.b",), "k"), PutOp(("a", ""), "k", {}), SearchOp(("a", 1)), PutOp(("a\0",), "k", None)]
    for op in [*bad, ListNamespacesOp((MatchCondition("prefix", ("a.b",)),))]:
        with pytest.raises(InvalidNamespaceError):
            do(by_letters, "batch", [PutOp(HERE, "k", {}), op])
    with pytest.raises(ValueError, match="Unknown operation"):
        do(by_letters, "batch", ["nonsense"])
    with pytest.raises(ValueError, match="Unsupported match type"):
        do(by_letters, "batch", [ListNamespacesOp((MatchCondition("inside", HERE),))])
    assert do(by_letters, "get", HERE, "k") is None


def test_what_json_cannot_hold_is_refused_and_what_a_database_cannot_is_cleaned(by_letters, do):
    do(by_letters, "put", HERE, "k", {"text": "te\0a"})
    assert do(by_letters, "get", HERE, "k").value == {"text": "tea"}
    for value in ({"x": float("nan")}, {1: "x"}, [], ["x"], "text", 5):
        with pytest.raises(InvalidInput):
            do(by_letters, "put", HERE, "k", value)


def test_lists_are_namespaces_and_an_empty_query_is_none(by_letters, do):
    do(by_letters, "put", HERE, "k", {"text": "tea"})
    assert keys(do(by_letters, "search", list(HERE), query="")) == ["k"]
    assert do(by_letters, "list_namespaces", prefix=["docs"], suffix=["*"]) == [HERE]
    assert do(by_letters, "search", HERE, limit=0) == []


def test_a_graph_remembers_through_the_store(make_store, mode):
    from langgraph.graph import START, StateGraph
    from langgraph.runtime import Runtime

    store = make_store()

    def node(state: dict, runtime: Runtime) -> dict:
        namespace = persona_namespace(runtime)
        runtime.store.put(namespace, "said", {"text": state["text"]})
        return {"text": runtime.store.search(namespace, query="tea")[0].value["text"]}

    graph = StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    compiled = graph.compile(store=store)
    config = {"configurable": {"user_id": "ana@example.com"}}
    answer = (
        compiled.invoke({"text": "tea"}, config)
        if mode == "sync"
        else asyncio.run(compiled.ainvoke({"text": "tea"}, config))
    )
    assert answer["text"] == "tea" and store.list_namespaces() == [("main", "~", "ana@example~2Ecom")]


def test_a_persona_s_items_are_nobody_else_s(make_engine):
    engine = make_engine().handle
    ana, bob = (MemoryStore(engine.persona("main", tenant="acme", user=user)) for user in ("ana", "bob"))
    ana.put(HERE, "k", {"text": "tea"})
    assert bob.get(HERE, "k") is None and bob.search((), query="tea") == [] and bob.list_namespaces() == []
