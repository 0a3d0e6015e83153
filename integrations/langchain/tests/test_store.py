"""A LangGraph store on items: what every store promises, and the sane side of what stores disagree on."""

import asyncio
import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from sqlalchemy import text

from langchain_memoranda import MemoryStore, decode_label, encode_label, persona_namespace
from memoranda.errors import ConfigurationError, InvalidInput

HERE = ("docs",)


class Letters(Embeddings):
    """Counts letters, and how often it is asked."""

    def __init__(self, dims=26):
        self.dims, self.calls = dims, 0

    def embed_documents(self, texts):
        self.calls += 1
        return [[0.01 + text.lower().count(chr(97 + n)) for n in range(self.dims)] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def letters(texts):
    """Embed by a plain function."""
    return Letters().embed_documents(texts)


async def aletters(texts):
    """Embed by an async function."""
    return letters(texts)


@pytest.fixture
def make_store(make_engine):
    """Open stores on one engine."""

    def make(engine=None, **options):
        return MemoryStore((engine or make_engine()).handle, **options)

    return make


@pytest.fixture
def do(mode):
    """Call a verb of a store in this test's mode, each time on an event loop of its own."""

    def do_(store, verb, *args, **options):
        if mode == "sync":
            return getattr(store, verb)(*args, **options)
        return asyncio.run(getattr(store, f"a{verb}")(*args, **options))

    return do_


@pytest.fixture
def by_letters(make_store):
    """A store that finds what is spelled alike."""
    return make_store(index={"dims": 26, "embed": Letters(), "fields": ["text"]})


def keys(found):
    return [item.key for item in found]


# -- complaints


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


def test_no_vector_outlives_its_text(by_letters, do):  # complaint 10
    do(by_letters, "put", HERE, "k", {"text": "zebra"})
    assert do(by_letters, "search", HERE, query="zebra")[0].score > 0.99
    do(by_letters, "put", HERE, "k", {"text": "zebra"}, index=False)
    assert [item.score for item in do(by_letters, "search", HERE, query="zebra")] == [None]
    do(by_letters, "delete", HERE, "k")
    do(by_letters, "put", HERE, "k", {"other": "mouse"})
    assert [item.score for item in do(by_letters, "search", HERE, query="zebra")] == [None]
    do(by_letters, "put", HERE, "k", {"text": "mouse"})
    assert do(by_letters, "search", HERE, query="zebra")[0].score < 0.5


def test_pages_of_answers_are_exact(by_letters, do):  # complaint 11
    ops = [PutOp(HERE, f"{n:02}", {"text": "tea" + "abcdefghij"[n % 10] * (n // 10)}) for n in range(30)]
    do(by_letters, "batch", ops)
    whole = keys(do(by_letters, "search", HERE, query="tea b", limit=30))
    assert len(set(whole)) == 30
    for offset in range(0, 30, 5):
        assert keys(do(by_letters, "search", HERE, query="tea b", limit=5, offset=offset)) == whole[offset : offset + 5]
    assert do(by_letters, "search", HERE, query="tea b", limit=5, offset=30) == []


def test_a_store_lives_as_long_as_its_engine(make_engine, backend):  # complaint 12
    engine = make_engine()

    def remember():
        return MemoryStore(engine.handle)

    store = remember()
    store.put(HERE, "k", {"text": "tea"})
    gc.collect()
    assert store.get(HERE, "k").value == {"text": "tea"}
    if not backend.is_postgres:
        with MemoryStore.from_conn_string("sqlite://", embedder="hash/words") as opened:
            opened.setup()
            opened.put(HERE, "k", {})
        with pytest.raises(ConfigurationError, match="closed"):
            opened.get(HERE, "k")


def test_a_lost_connection_costs_nothing(make_engine, backend):  # complaint 12
    engine = make_engine()
    store = MemoryStore(engine.handle)
    store.put(HERE, "k", {"text": "tea"})
    if backend.is_postgres:
        with engine.handle._database._engine.connect() as conn:
            others = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
            conn.execute(text(f"{others} and datname = current_database()"))
    assert store.get(HERE, "k") is not None


def test_one_store_serves_loops_threads_and_plain_code(by_letters, backend):  # complaint 13
    store = by_letters

    async def some(n):
        await asyncio.gather(*(store.aput(HERE, f"{n}-{i}", {"text": f"tea {i}"}) for i in range(5)))
        store.put(HERE, f"{n}-plain", {"text": "tea"})  # in a running loop
        found = await asyncio.gather(*(store.asearch(HERE, query="tea", limit=50) for _ in range(3)))
        assert [len(one) for one in found] == [6 * n + 6] * 3

    asyncio.run(some(0))
    asyncio.run(some(1))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: store.put(HERE, f"thread-{n}", {"text": "tea"}), range(3)))
        list(pool.map(lambda n: asyncio.run(store.aget(HERE, f"thread-{n}")), range(3)))
    assert len(store.search(HERE, query="tea", limit=50)) == 15


def test_a_cancelled_call_takes_nobody_else_s_answer(by_letters):  # complaint 13
    async def calls():
        await by_letters.aput(HERE, "k", {"text": "tea"})
        first, second = (asyncio.create_task(by_letters.aget(HERE, "k")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).value == {"text": "tea"}
        assert (await by_letters.aget(HERE, "k")).key == "k"
        assert first.cancelled()

    asyncio.run(calls())
    asyncio.run(calls())


def test_what_was_put_before_never_comes_after(make_store):  # complaint 13
    async def slow_at_first(texts):
        await asyncio.sleep(0.1 * ("first" in texts[0]))
        return letters(texts)

    store = make_store(index={"dims": 26, "embed": slow_at_first})

    async def calls(n):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.aput(HERE, "k", {"text": f"first {n}"}), 0.01)
        await store.aput(HERE, "k", {"text": "second"})
        await asyncio.sleep(0.15)
        return await store.aget(HERE, "k")

    for n in range(2):
        assert asyncio.run(calls(n)).value == {"text": "second"}


def test_setting_up_twice_changes_nothing_and_needs_no_statement_outside_a_transaction(make_engine):  # complaint 16
    store = MemoryStore(make_engine().handle)
    store.setup()
    asyncio.run(store.asetup())
    store.put(HERE, "k", {})
    with pytest.raises(ConfigurationError, match="persona"):
        MemoryStore(make_engine().handle.persona("main")).setup()


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


# -- what stores disagree on


def test_unindexed_items_follow_the_answers_without_a_score(by_letters, do):
    do(by_letters, "put", HERE, "one", {"text": "tea"})
    do(by_letters, "put", HERE, "two", {"text": "tea"}, index=False)
    found = do(by_letters, "search", HERE, query="tea")
    assert keys(found) == ["one", "two"] and found[0].score > 0.99 and found[1].score is None


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


# -- time


def test_times_of_fractions_of_a_minute(make_store, do):
    store = make_store(ttl={"default_ttl": 0.5, "refresh_on_read": False, "omit_expired": True})
    do(store, "put", HERE, "default", {})
    do(store, "put", HERE, "short", {}, ttl=0.0005)
    do(store, "put", HERE, "ever", {}, ttl=None)
    time.sleep(0.05)
    assert sorted(keys(do(store, "search", HERE))) == ["default", "ever"]
    assert do(store, "get", HERE, "short") is None and do(store, "get", HERE, "default") is not None
    assert do(store, "sweep_ttl") == 1 and do(store, "sweep_ttl") == 0


def test_reading_begins_the_time_anew_unless_told_otherwise(make_store, do):
    store = make_store(ttl={"default_ttl": 0.01})  # 0.6 seconds
    do(store, "put", HERE, "read", {})
    do(store, "put", HERE, "left", {})
    for _ in range(3):
        time.sleep(0.25)
        assert do(store, "get", HERE, "read") is not None
        do(store, "get", HERE, "left", refresh_ttl=False)
    store.sweep_ttl()
    assert keys(do(store, "search", HERE)) == ["read"]


def test_a_sweeper_sweeps_until_it_is_stopped(make_store):
    store = make_store(ttl={"default_ttl": 0.0001, "sweep_interval_minutes": 0.0005})
    ended = store.start_ttl_sweeper()
    assert store.start_ttl_sweeper() is ended
    store.put(HERE, "k", {})
    for _ in range(100):
        if store.get(HERE, "k", refresh_ttl=False) is None:
            break
        time.sleep(0.02)
    assert store.get(HERE, "k") is None
    assert store.stop_ttl_sweeper(5) and ended.done() and store.stop_ttl_sweeper()


def test_a_store_that_nobody_uses_is_gone_and_its_sweeper_with_it(make_store):
    store = make_store()
    ended = store.start_ttl_sweeper(0.001)
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None
    ended.result(5)


# -- embedders


@pytest.mark.parametrize("embed", [Letters(), letters, aletters], ids=["embeddings", "function", "async function"])
def test_an_index_takes_whatever_embeds(make_store, do, embed):
    store = make_store(index={"dims": 26, "embed": embed, "fields": ["text", "more[*].text"]})
    do(store, "put", HERE, "k", {"text": "silent", "more": [{"text": "xyz"}, {"text": "qqq"}]})
    do(store, "put", HERE, "l", {"text": "banana"})
    assert do(store, "search", HERE, query="listen")[0].score == pytest.approx(1, abs=1e-3)
    assert keys(do(store, "search", HERE, query="zyx")) == ["k", "l"]
    do(store, "put", HERE, "m", {"other": "www", "text": "aaa"}, index=["other"])
    assert keys(do(store, "search", HERE, query="www"))[0] == "m"


def test_a_string_names_an_embedder(make_store, monkeypatch):
    named = []
    monkeypatch.setattr(
        "langgraph.store.base.embed._get_init_embeddings", lambda: lambda name: named.append(name) or Letters()
    )
    store = make_store(index={"dims": 26, "embed": "some:model"})
    store.put(HERE, "k", {"text": "tea"})
    assert named == ["some:model"] and store.search(HERE, query="tea")[0].score > 0


def test_by_default_the_engine_s_own_embedder_and_words_find_the_whole_value(make_store, do):
    store = make_store()
    do(store, "put", HERE, "k", {"text": "The ferry leaves at ten", "deep": [{"x": "harbour"}]})
    do(store, "put", HERE, "l", {"text": "A bus"})
    for query in ("ferry", "harbour"):
        found = do(store, "search", HERE, query=query)
        assert keys(found) == ["k", "l"] and found[0].score > found[1].score


def test_an_index_is_a_list_of_paths(make_store, do):
    with pytest.raises(ConfigurationError):
        make_store(index={"fields": "text"})
    for index in ("text", True, [1]):
        with pytest.raises(ConfigurationError):
            do(make_store(), "put", HERE, "k", {"text": "tea"}, index=index)


def test_an_index_may_be_none_at_all(make_store, do):
    counted = Letters()
    store = make_store(index=False)
    do(store, "put", HERE, "k", {"text": "tea"}, index=["text"])
    assert [item.score for item in do(store, "search", HERE, query="tea")] == [None] and counted.calls == 0


def test_a_wrong_length_fails_the_start_by_name(make_store, make_engine):
    with pytest.raises(ConfigurationError, match="dims"):
        make_store(index={"embed": Letters()})
    store = make_store(index={"dims": 25, "embed": Letters()})
    with pytest.raises(ConfigurationError, match="26 numbers, but declares 25"):
        store.setup()
    with pytest.raises(ConfigurationError, match="26 numbers, but declares 25"):
        store.put(HERE, "k", {"text": "tea"})
    assert store.search(HERE) == []


def test_nothing_blocks_the_event_loop(make_store):  # complaint 14
    store = make_store(index={"dims": 26, "embed": aletters})

    async def everything():
        await asyncio.gather(*(store.aput(HERE, str(n), {"text": f"tea {n}"}, ttl=5) for n in range(5)))
        assert len(await store.asearch(HERE, query="tea", filter={"text": {"$ne": "x"}})) == 5
        assert (await store.aget(HERE, "1")).key == "1"
        assert await store.alist_namespaces() == [HERE]
        await store.adelete(HERE, "1")
        assert await store.asweep_ttl() == 0

    async def opened():
        async with MemoryStore.afrom_conn_string("sqlite://", timezone="Pacific/Auckland") as other:
            await other.asetup()
            await other.aput(HERE, "k", {"text": "tea"})

    store.put(HERE, "0", {"text": "tea"})
    with blockbuster_ctx():
        asyncio.run(everything())
        asyncio.run(everything())
        asyncio.run(opened())


def test_what_is_asked_for_in_one_turn_is_one_batch(make_store, make_engine):
    engine = make_engine()
    store = make_store(engine, index={"dims": 26, "embed": (counted := Letters())})

    async def at_once():
        await asyncio.gather(*(store.aput(HERE, str(n), {"text": f"tea {n}"}) for n in range(40)))
        found = await asyncio.gather(*(store.asearch(HERE, limit=50) for _ in range(40)))
        assert {len(one) for one in found} == {40}
        found[0][0].value["text"] = "changed"
        assert found[1][0].value["text"] != "changed"

    asyncio.run(at_once())
    assert counted.calls == 1


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
