"""Items: values under a namespace and a key, kept as they are given, for as long as they are to be kept."""

import time
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select

from memoranda.errors import InvalidInput, NotAllowed
from memoranda.item_operations import DeleteItem, GetItem, ListNamespaces, PutItem, SearchItems
from memoranda.testing import unwrap

HERE = ("users", "ana")


def counts(engine):
    """Return how many items, texts and vectors there are."""
    database = unwrap(engine)._database
    tables = (database.tables.store_items, database.tables.store_item_texts, database.tables.vectors)
    return database.read(lambda conn, _: tuple(conn.scalar(select(func.count()).select_from(t)) for t in tables))


def keys(items):
    return [item.key for item in items]


def test_a_value_comes_back_as_it_was_given(me):
    value = {
        "text": "tea",
        "when": datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
        "pair": (1, 2),
        "deep": {"list": [1, 2.5, None, True, {"x": "y"}]},
        "tiny": 1e-9,
    }
    me.items.put(HERE, "k", value)
    found = me.items.get(HERE, "k")
    assert (found.namespace, found.key, found.value) == (HERE, "k", value)
    assert me.items.get(HERE, "other") is None and me.items.get(("users",), "k") is None

    found.value["text"] = value["text"] = "coffee"
    assert me.items.get(HERE, "k").value["text"] == "tea"


def test_what_neither_database_holds_is_cleaned_or_refused_at_the_call(me):
    me.items.put(HERE, "k", {"a\0b": "c\0d", "half": "\ud800"})
    assert me.items.get(HERE, "k").value == {"ab": "cd", "half": "\ufffd"}
    for value in ({"x": float("nan")}, {"x": float("inf")}, {"x": object()}, {1: "x"}, ["x"], None):
        with pytest.raises(InvalidInput, match="value"):
            me.items.put(HERE, "k", value)
    assert me.items.get(HERE, "k").value == {"ab": "cd", "half": "\ufffd"}


@pytest.mark.parametrize("namespace", [(), ("",), ("a", ""), ("a", 1), "users", ("a\0",), ("x" * 900,), None])
def test_a_namespace_that_cannot_be_is_refused(me, namespace):
    with pytest.raises(InvalidInput, match="namespace"):
        me.items.put(namespace, "k", {})


@pytest.mark.parametrize(
    "arguments",
    [{"key": "k" * 700}, {"key": "a\0"}, {"texts": ["x"]}, {"texts": {"x": 1}}]
    + [{"ttl_minutes": ttl} for ttl in (0, -1, float("nan"), float("inf"), "1", True)],
)
def test_other_arguments_that_cannot_be_are_refused(me, arguments):
    with pytest.raises(InvalidInput):
        me.items.put(HERE, **{"key": "k", "value": {}, **arguments})
    assert me.items.search() == []


def test_any_text_is_a_label(me):
    paths = [("ana@example.com",), ("a", "b.c"), ("a", "b", "c"), ("100%",), ("a%2Eb",), ("a.b",), ("líne\n",), ("*",)]
    for path in paths:
        me.items.put(path, "k", {"path": list(path)})
    for path in paths:
        assert me.items.get(path, "k").value == {"path": list(path)}
        assert path in me.items.list_namespaces()
    assert [item.namespace for item in me.items.search(("a.b",))] == [("a.b",)]
    assert {item.namespace for item in me.items.search(("a",))} == {("a", "b.c"), ("a", "b", "c")}


def test_a_namespace_holds_what_lies_below_it_and_nothing_that_only_begins_alike(me):
    for path in [
        ("acme",),
        ("acme", "x"),
        ("acme-corp",),
        ("1",),
        ("12",),
        ("user_1",),
        ("userX1",),
        ("a%b",),
        ("axxb",),
    ]:
        me.items.put(path, "k", {"text": "tea"})
    me.items.put(("Acme",), "k", {"text": "tea"})
    for path, expected in {
        ("acme",): {("acme",), ("acme", "x")},
        ("1",): {("1",)},
        ("user_1",): {("user_1",)},
        ("a%b",): {("a%b",)},
        ("acm",): set(),
    }.items():
        assert {item.namespace for item in me.items.search(path, limit=100)} == expected
        assert {item.namespace for item in me.items.search(path, query="tea", limit=100)} == expected


def test_a_new_value_keeps_when_the_item_was_made(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    me.items.put(HERE, "k", {"n": 1})
    first = me.items.get(HERE, "k")
    frozen_clock.advance(minutes=5)
    me.items.put(HERE, "k", {"n": 2})
    second = me.items.get(HERE, "k")
    assert second.value == {"n": 2}
    assert second.created_at == first.created_at and (second.updated_at - first.updated_at).seconds == 300


def test_a_deleted_item_leaves_nothing_behind(engine, me):
    me.items.put(HERE, "k", {"text": "tea"})
    me.items.put(HERE, "other", {"text": "tea"})
    assert counts(engine) == (2, 2, 2)
    me.items.delete(HERE, "k")
    me.items.delete(HERE, "never")
    assert counts(engine) == (1, 1, 1)
    assert engine.doctor().healthy


def test_a_batch_reads_what_was_there_before_it_and_the_last_write_counts(me):
    me.items.put(HERE, "k", {"n": 1})
    ops = [
        PutItem(namespace=HERE, key="k", value={"n": 2}),
        GetItem(namespace=HERE, key="k"),
        PutItem(namespace=HERE, key="new", value={"n": 1}),
        DeleteItem(namespace=HERE, key="new"),
        SearchItems(namespace=HERE),
        PutItem(namespace=HERE, key="k", value={"n": 3}),
        ListNamespaces(),
        GetItem(namespace=HERE, key="new", omit_expired=True),
        DeleteItem(namespace=HERE, key="gone"),
        PutItem(namespace=HERE, key="gone", value={"n": 0}),
    ]
    one, got, two, three, found, four, listed, absent, five, six = me.items.batch(ops)
    assert (one, two, three, four, five, six, absent) == (None,) * 7
    assert got.value == {"n": 1} and keys(found) == ["k"] and listed == [HERE]
    assert [me.items.get(HERE, key) and me.items.get(HERE, key).value for key in ("k", "new", "gone")] == [
        {"n": 3},
        None,
        {"n": 0},
    ]
    assert me.items.batch([]) == []
    with pytest.raises(InvalidInput):
        me.items.batch([*ops, "nonsense"])


def test_namespaces_are_listed_in_order_by_their_ends_and_to_a_depth(me):
    paths = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "c", "f"), ("b", "a", "f"), ("a-b",)]
    for path in paths:
        me.items.put(path, "k", {})
        me.items.put(path, "l", {})
    listed = me.items.list_namespaces
    assert listed() == sorted(paths)
    assert listed(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i")]
    assert listed(prefix=("a",), max_depth=2) == [("a", "b"), ("a", "c")]
    assert listed(suffix=("f",)) == [("a", "c", "f"), ("b", "a", "f")]
    assert listed(prefix=("a", "*", "f")) == [("a", "c", "f")]
    assert listed(suffix=("*", "f"), prefix=("b",)) == [("b", "a", "f")]
    assert listed(limit=2, offset=1) == sorted(paths)[1:3]
    assert listed(prefix=("nothing",)) == []


# -- time


def test_a_time_of_a_fraction_of_a_minute_is_kept_and_runs_out(me):
    me.items.put(HERE, "short", {"n": 1}, ttl_minutes=0.001)
    me.items.put(HERE, "long", {"n": 2}, ttl_minutes=0.5)
    me.items.put(HERE, "ever", {"n": 3})
    long = me.items.get(HERE, "long")
    assert long.ttl_minutes == 0.5 and abs((long.expires_at - long.updated_at).total_seconds() - 30) < 5
    time.sleep(0.08)

    assert me.items.get(HERE, "short") is not None and me.items.get(HERE, "short", omit_expired=True) is None
    assert keys(me.items.search(HERE, omit_expired=True)) == ["ever", "long"]
    assert sorted(keys(me.items.search(HERE, query="n", omit_expired=True))) == ["ever", "long"]
    assert me.items.sweep() == 1 and me.items.sweep() == 0
    assert sorted(keys(me.items.search(HERE))) == ["ever", "long"]


def test_a_namespace_whose_items_have_all_expired_is_not_listed(me):
    me.items.put(("gone",), "k", {}, ttl_minutes=0.0001)
    me.items.put(("here",), "k", {}, ttl_minutes=1)
    time.sleep(0.03)
    assert me.items.list_namespaces(omit_expired=True) == [("here",)]
    assert me.items.list_namespaces() == [("gone",), ("here",)]


@pytest.mark.parametrize("by", ["get", "search", "query"])
def test_reading_begins_the_time_anew_where_it_is_asked_to(me, by):
    me.items.put(HERE, "k", {"text": "tea"}, ttl_minutes=0.5)
    before = me.items.get(HERE, "k").expires_at
    time.sleep(0.01)
    if by == "get":
        me.items.get(HERE, "k", refresh=True)
    else:
        me.items.search(HERE, query="tea" if by == "query" else None, refresh=True)
    after = me.items.get(HERE, "k")
    assert after.expires_at > before and after.ttl_minutes == 0.5


def test_what_has_expired_is_not_brought_back_by_a_read_that_leaves_it_out(me):
    me.items.put(HERE, "k", {}, ttl_minutes=0.0001)
    time.sleep(0.03)
    assert me.items.get(HERE, "k", refresh=True, omit_expired=True) is None
    assert me.items.search(HERE, refresh=True, omit_expired=True) == []
    assert me.items.sweep() == 1


def test_a_write_without_a_time_takes_the_time_away(me):
    me.items.put(HERE, "k", {}, ttl_minutes=1)
    me.items.put(HERE, "k", {})
    found = me.items.get(HERE, "k")
    assert (found.ttl_minutes, found.expires_at) == (None, None)


# -- whose they are


def test_items_are_one_author_s_in_one_persona(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    ana.items.put(HERE, "k", {"text": "tea"})
    others = (bob, engine.persona("other", tenant="acme", user="ana"), engine.persona("main"))
    for other in others:
        assert other.items.get(HERE, "k") is None and other.items.list_namespaces() == []
        assert other.items.search() == [] and other.items.search(query="tea") == []
        other.items.delete(HERE, "k")
    bob.items.put(HERE, "k", {"text": "coffee"})
    assert ana.items.get(HERE, "k").value == {"text": "tea"} and ana.stats().items == 1


def test_a_narrower_scope_sees_the_same_items(me):
    me.items.put(HERE, "k", {})
    assert me.scoped(project="apollo", space="lab").items.get(HERE, "k") is not None


def test_a_preset_that_wants_an_author_wants_one_here_too(engine):
    nobody = engine.persona("main", preset="ledger")
    with pytest.raises(NotAllowed):
        nobody.items.put(HERE, "k", {})
    assert nobody.items.search() == []


def test_items_are_no_memories_and_no_knowledge(me):
    me.items.put(HERE, "k", {"text": "The ferry leaves at ten."})
    assert me.recall("when does the ferry leave").abstained and me.memories.list() == []


@pytest.mark.parametrize("whom", ["user", "persona"])
def test_an_erasure_takes_items_texts_and_vectors_and_nobody_else_s(engine, whom):
    ana = engine.persona("main" if whom == "user" else "gone", tenant="acme", user="ana")
    bob = engine.persona("main", tenant="acme", user="bob")
    for me in (ana, bob):
        me.items.put(HERE, "k", {"text": "tea"})
    if whom == "user":
        engine.erase(user="ana", tenant="acme")
    else:
        engine.erase(persona="gone", tenant="acme")
    assert ana.items.search(query="tea") == [] and keys(bob.items.search(query="tea")) == ["k"]
    assert counts(engine) == (1, 1, 1) and engine.doctor().healthy


# -- at once


def test_many_who_write_one_item_leave_one_whole_item(engine, at_once):
    me = engine.persona("main")
    texts = [f"tea number {n}" for n in range(8)]
    puts = [PutItem(namespace=HERE, key="k", value={"text": text}, texts={"text": text}) for text in texts]
    assert at_once([(me.items, "batch", [put]) for put in puts]) == [[None]] * 8
    assert counts(engine) == (1, 1, 1)
    said = me.items.get(HERE, "k").value["text"]
    assert me.items.search(query=said)[0].score > 0.99
    assert engine.doctor().healthy


def test_batches_in_opposite_orders_wait_for_each_other_and_not_for_ever(engine, at_once):
    me = engine.persona("main")
    names = [str(n) for n in range(12)]
    for name in names[::2]:
        me.items.put(HERE, name, {"text": "old"})
    puts = [PutItem(namespace=HERE, key=name, value={"text": f"new {name}"}, ttl_minutes=5) for name in names]
    deletes = [DeleteItem(namespace=HERE, key=name) for name in names[::3]]
    batches = [puts, puts[::-1], deletes + puts[1::3], puts[::-2] + deletes[:1], puts, deletes]
    reads = [(me.items, "search", HERE)] * 2
    answers = at_once([(me.items, "batch", batch) for batch in batches] + reads)
    assert not [answer for answer in answers if isinstance(answer, Exception)]
    there = me.items.search(HERE, limit=100)
    assert set(keys(there)) <= set(names) and set(names) - set(keys(there)) <= set(names[::3])
    assert counts(engine) == (len(there),) * 3 and engine.doctor().healthy


def test_refreshing_sweeping_and_writing_at_once_lose_nothing(engine, at_once):
    me = engine.persona("main")
    for n in range(6):
        me.items.put(HERE, str(n), {"n": n}, ttl_minutes=0.0005 if n % 2 else 5)
    time.sleep(0.05)
    writes = [(me.items, "put", HERE, str(n), {"n": n}) for n in (1, 0)]
    answers = at_once([*writes, (me.items, "sweep"), (me.items, "sweep")])
    assert not [answer for answer in answers if isinstance(answer, Exception)]
    left = {item.key: item for item in me.items.search(HERE)}
    assert {"0", "1", "2", "4"} == set(left) and left["1"].expires_at is None
    assert engine.doctor().healthy
