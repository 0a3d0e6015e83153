"""Items are found by what they hold, by what they say and by what they mean, exactly from page to page."""

import pytest

from memoranda.conditions import AllOf, AnyOf, Compare, Not
from memoranda.errors import EmbedderUnavailable, InvalidInput
from memoranda.item_operations import PutItem
from memoranda.testing import CountingEmbedder, DeferredEmbedder, HashedEmbedder, unwrap

HERE = ("docs",)
SECRET = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"


def keys(items):
    return [item.key for item in items]


class Alphabet:
    """Counts letters: near is what is spelled with the same ones."""

    def __init__(self, name="test/letters"):
        self.name, self.dimensions, self.seen = name, 26, []

    def embed(self, texts, purpose):
        self.seen += texts
        return [[0.01 + text.lower().count(chr(97 + n)) for n in range(26)] for text in texts]

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


class Down:
    """Answers nothing."""

    name, dimensions = "test/down", 8

    def embed(self, texts, purpose):
        raise RuntimeError("down")

    async def aembed(self, texts, purpose):
        raise RuntimeError("down")


def test_without_a_query_the_newest_stand_first(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    for name in "abcd":
        frozen_clock.advance(seconds=1)
        me.items.put(HERE, name, {"n": name})
    frozen_clock.advance(seconds=1)
    me.items.put(HERE, "b", {"n": "again"})
    found = me.items.search(HERE)
    assert keys(found) == ["b", "d", "c", "a"] and {item.score for item in found} == {None}
    assert keys(me.items.search(HERE, limit=2, offset=1)) == ["d", "c"]
    assert me.items.search(HERE, limit=0) == []


def test_values_are_compared_with_their_like(me):
    for n in (2, 9, 10, 100):
        me.items.put(HERE, str(n), {"n": n, "m": {"x": 1, "y": n}, "tags": ["a", str(n)]})
    me.items.put(HERE, "text", {"n": "50"})
    me.items.put(HERE, "none", {})

    def found(condition, **options):
        return sorted(keys(me.items.search(HERE, where=condition, **options)), key=lambda key: (len(key), key))

    for options in ({}, {"query": "tags"}):
        assert found(Compare(("n",), "gte", 10), **options) == ["10", "100"]
        assert found(Compare(("n",), "eq", 9), **options) == ["9"]
        assert found(Compare(("m", "x"), "eq", 1), **options) == ["2", "9", "10", "100"]
        assert found(AllOf((Compare(("n",), "gt", 2), Compare(("n",), "lt", 100))), **options) == ["9", "10"]
        assert found(AnyOf((Compare(("n",), "eq", "50"), Compare(("tags",), "has", "9"))), **options) == ["9", "text"]
        assert found(Not(Compare(("n",), "lt", 100)), **options) == ["100", "none", "text"]


def test_words_and_meaning_answer_together(make_engine):
    me = make_engine(embedder=Alphabet()).persona("main")
    me.items.put(HERE, "near", {"text": "listen"}, texts={"text": "silent"})
    me.items.put(HERE, "said", {"text": "Listen to the radio at noon"}, texts={"text": "Listen to the radio at noon"})
    me.items.put(HERE, "far", {"text": "zzz"}, texts={"text": "zzz"})
    found = {item.key: item.score for item in me.items.search(HERE, query="listen")}
    assert found["near"] == pytest.approx(1, abs=1e-3)  # the same letters, another word: the cosine alone
    assert 0 < found["far"] < found["said"] < found["near"]
    assert list(found) == ["near", "said", "far"]
    cosine = {item.key: item.score for item in me.items.search(HERE, query="radio")}
    assert cosine["said"] > cosine["near"]


def test_a_common_word_counts_where_a_filter_hides_what_says_the_rare_one(make_engine):
    me = make_engine(embedder="none").persona("main")
    texts = ["tea with a fig", *[f"tea number {n}" for n in range(210)]]
    values = [{"text": text, "fig": "fig" in text} for text in texts]
    me.items.batch(
        [PutItem(namespace=HERE, key=str(n), value=value, texts={"t": texts[n]}) for n, value in enumerate(values)]
    )
    found = me.items.search(HERE, query="tea fig", where=Compare(("fig",), "eq", False))
    assert len(found) == 10 and all(item.score for item in found)


def test_words_that_never_meet_are_found(make_engine, monkeypatch):
    """Where words meet less often than by chance, what is expected to say several is not there."""
    monkeypatch.setattr("memoranda.db.queries.item_search._WORDS_ALONE", 4)
    me = make_engine(embedder="none").persona("main")
    texts = [f"{'lanterns' if n % 2 else 'herons'} at pier {n}" for n in range(80)]
    me.items.batch([PutItem(namespace=HERE, key=text, value={}, texts={"t": text}) for text in texts])
    found = me.items.search(HERE, query="lanterns herons", limit=4)
    assert [bool(item.score) for item in found] == [True] * 4


def test_pages_neither_leave_out_nor_repeat(make_engine):
    me = make_engine(embedder=Alphabet()).persona("main")
    for n in range(30):
        me.items.put(HERE, f"{n:02}", {"text": f"tea {'abcdefghij'[n % 10] * (n // 10 + 1)}"})
    for n in range(3):
        me.items.put(HERE, f"plain{n}", {"text": "tea"}, texts={})
    whole = me.items.search(HERE, query="tea bbb", limit=100)
    assert len(whole) == 33 and [item.score for item in whole[30:]] == [None] * 3
    scores = [item.score for item in whole[:30]]
    assert scores == sorted(scores, reverse=True)
    for limit in (1, 4, 5, 20):
        pages = [me.items.search(HERE, query="tea bbb", limit=limit, offset=offset) for offset in range(0, 40, limit)]
        assert keys(item for page in pages for item in page) == keys(whole)
    assert len(me.items.search(HERE, query="tea bbb", limit=5, offset=20)) == 5


def test_pages_of_many_that_are_all_as_near_are_exact_too(make_engine):
    me = make_engine(embedder=Alphabet()).persona("main")
    me.items.batch([PutItem(namespace=HERE, key=f"{n:03}", value={"n": n}, texts={"t": "tea"}) for n in range(150)])
    pages = [keys(me.items.search(HERE, query="coffee", limit=10, offset=offset)) for offset in range(0, 160, 10)]
    assert sorted(key for page in pages for key in page) == [f"{n:03}" for n in range(150)]


def test_an_item_is_as_good_as_its_best_text(make_engine):
    me = make_engine(embedder=Alphabet()).persona("main")
    me.items.put(HERE, "one", {}, texts={"a": "xxx", "b": "yyy"})
    me.items.put(HERE, "two", {}, texts={"a": "qqq", "b": "zzz", "c": "www"})
    assert keys(me.items.search(HERE, query="yyy")) == ["one", "two"]
    assert keys(me.items.search(HERE, query="www")) == ["two", "one"]


def test_a_new_value_is_found_by_its_own_texts_only(make_engine):
    me = make_engine(embedder=Alphabet()).persona("main")
    me.items.put(HERE, "k", {"text": "zebra"}, texts={"text": "zebra"})
    assert me.items.search(HERE, query="zebra")[0].score > 0.99
    me.items.put(HERE, "k", {"text": "mouse"}, texts={"text": "mouse"})
    assert me.items.search(HERE, query="zebra")[0].score < 0.5 < me.items.search(HERE, query="mouse")[0].score
    me.items.put(HERE, "k", {"text": "mouse"}, texts={})
    assert [item.score for item in me.items.search(HERE, query="mouse")] == [None]


def test_the_whole_value_is_searched_where_nobody_says_what(me):
    me.items.put(HERE, "k", {"title": "Ferry", "stops": [{"name": "Nordkapp"}]})
    me.items.put(HERE, "l", {"title": "Bus"})
    found = me.items.search(HERE, query="nordkapp")
    assert keys(found) == ["k", "l"] and found[0].score > found[1].score


def test_a_namespace_of_few_among_many_is_found_whole(make_engine):
    me = make_engine(embedder=Alphabet()).persona("main")
    many = [PutItem(namespace=("many", str(n % 7)), key=str(n), value={"text": f"tea {n}"}) for n in range(300)]
    me.items.batch(many)
    me.items.batch([PutItem(namespace=("few",), key=str(n), value={"text": f"zzz qqq {n}"}) for n in range(12)])
    for _ in range(12):
        assert len(me.items.search(("few",), query="tea", limit=10)) == 10
    assert len(me.items.search(("few",), query="tea", where=Compare(("text",), "text", "1"), limit=10)) == 3


@pytest.mark.parametrize(
    "arguments", [{"limit": -1}, {"offset": -1}, {"limit": 1.5}, {"query": 5}, {"where": {"a": 1}}]
)
def test_a_search_that_cannot_be_is_refused(me, arguments):
    with pytest.raises(InvalidInput):
        me.items.search(HERE, **arguments)


@pytest.mark.parametrize("query", ["", "   ", "!!!", "\0"])
def test_a_query_that_says_nothing_is_none(me, query):
    me.items.put(HERE, "k", {"text": "tea"})
    assert keys(me.items.search(HERE, query=query)) == ["k"]


def test_operators_in_a_query_are_words(me):
    me.items.put(HERE, "k", {"text": "c++ NEAR tea"})
    assert keys(me.items.search(HERE, query='"c++" AND (tea OR NOT x*) NEAR/3 -tea')) == ["k"]


# -- what is sent, and by what it is embedded


def test_secrets_stay_in_the_value_and_go_nowhere_else(make_engine):
    counting = CountingEmbedder(HashedEmbedder(64))
    engine = make_engine(embedder=counting)
    me = engine.persona("main")
    me.items.put(HERE, "k", {"text": f"the key is {SECRET}"})
    me.items.search(HERE, query=f"is it {SECRET}")
    assert me.items.get(HERE, "k").value == {"text": f"the key is {SECRET}"}
    assert not [text for text in counting.texts if SECRET in text]
    texts = unwrap(engine)._database.tables.store_item_texts
    rows = unwrap(engine)._database.read(lambda conn, _: conn.execute(texts.select()).mappings().all())
    assert SECRET not in str([dict(row) for row in rows])


def test_what_the_embedder_cannot_do_now_is_done_by_a_job(make_engine):
    engine = make_engine(embedder=DeferredEmbedder(HashedEmbedder(64)), background="external")
    me = engine.persona("main")
    me.items.put(HERE, "k", {"text": "tea"})
    assert engine.doctor().without_vector == 1 and engine.drain() == 0
    assert engine.doctor().healthy and engine.backfill() == 0
    me.items.put(HERE, "k", {"text": "coffee"})
    me.items.delete(HERE, "k")
    assert engine.drain() == 0 and engine.doctor().healthy


def test_without_its_embedder_a_store_answers_from_words(make_engine):
    me = make_engine(embedder="none").persona("main")
    me.items.put(HERE, "k", {"text": "the ferry leaves at ten"})
    me.items.put(HERE, "l", {"text": "a bus"})
    found = me.items.search(HERE, query="ferry")
    assert keys(found) == ["k", "l"] and found[0].score > 0 and found[1].score is None


def test_another_embedder_s_vectors_are_apart_and_left_alone(backend, make_engine):
    engine = make_engine()
    me = engine.persona("main")
    letters = unwrap(me).items.embedded_by(Alphabet())
    mine = type(me.items)(letters, me.items._mode, me.items._loop)
    mine.put(HERE, "k", {"text": "silent"}, texts={"t": "silent"})
    me.items.put(HERE, "l", {"text": "noise"}, texts={"t": "noise"})
    assert mine.search(HERE, query="listen")[0].key == "k" and mine.search(HERE, query="listen")[0].score > 0.99
    assert next(item.score for item in me.items.search(HERE, query="silent") if item.key == "k") > 0  # by its words
    report = engine.doctor()
    assert report.healthy and (report.items, report.item_texts, report.vectors) == (2, 2, 1)
    assert engine.backfill() == 0
    if backend.name != "sqlite-memory":
        moved = make_engine(embedder=HashedEmbedder(128, name="test/other"))
        assert moved.reembed(prune=True) == 1
    assert mine.search(HERE, query="listen")[0].score > 0.99


def test_another_embedder_that_fails_stores_nothing_and_a_question_falls_back_on_words(me):
    mine = type(me.items)(unwrap(me).items.embedded_by(Down()), me.items._mode, me.items._loop)
    with pytest.raises(EmbedderUnavailable):
        mine.put(HERE, "k", {"text": "tea"})
    assert me.items.search() == []
    me.items.put(HERE, "k", {"text": "tea"})
    assert keys(mine.search(HERE, query="tea")) == ["k"]


# -- moving


def test_items_move_with_their_texts_and_vectors(make_engine, tmp_path):
    old = make_engine()
    me = old.persona("main")
    me.items.put(HERE, "k", {"text": "tea", "pair": (1, 2)}, ttl_minutes=7.5)
    me.items.put(HERE, "here", {"text": "theirs"})
    before = {item.key: item for item in me.items.search(HERE)}
    old.export_to(tmp_path / "all.jsonl")
    for key in ("k", "here"):
        me.items.delete(HERE, key)
    me.items.put(HERE, "here", {"text": "mine"})

    imported = old.import_from(tmp_path / "all.jsonl")
    assert imported.rows["store_items"] == imported.rows["store_item_texts"] == 1
    assert imported.already_there["store_items"] == 1
    assert me.items.get(HERE, "k") == before["k"] and me.items.get(HERE, "here").value == {"text": "mine"}
    assert me.items.search(HERE, query="tea")[0].key == "k" and old.doctor().healthy


def test_items_are_found_in_another_language_s_store(make_engine, backend, tmp_path):
    if backend.name != "sqlite-memory":
        pytest.skip("not applicable: two stores are needed, and memory gives them")
    old = make_engine(language="english")
    old.persona("main").items.put(("docs", "x"), "k", {"text": "running"}, texts={"t": "running shoes"})
    old.export_to(tmp_path / "all.jsonl")
    new = make_engine(language="none")
    assert new.import_from(tmp_path / "all.jsonl").reindexed == 1
    assert keys(new.persona("main").items.search(("docs",), query="running")) == ["k"]
