"""What items of a store are found by: whose embedder, which texts of a value, and none."""

import pytest

from memoranda.errors import ConfigurationError

HERE = ("docs",)


def keys(found):
    return [item.key for item in found]


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


def test_unindexed_items_follow_the_answers_without_a_score(by_letters, do):
    do(by_letters, "put", HERE, "one", {"text": "tea"})
    do(by_letters, "put", HERE, "two", {"text": "tea"}, index=False)
    found = do(by_letters, "search", HERE, query="tea")
    assert keys(found) == ["one", "two"] and found[0].score > 0.99 and found[1].score is None


@pytest.mark.parametrize("kind", ["embeddings", "function", "async function"])
def test_an_index_takes_whatever_embeds(make_store, make_letters, do, kind):
    letters = make_letters()

    async def aletters(texts):
        return letters.embed_documents(texts)

    embed = {"embeddings": letters, "function": letters.embed_documents, "async function": aletters}[kind]
    store = make_store(index={"dims": 26, "embed": embed, "fields": ["text", "more[*].text"]})
    do(store, "put", HERE, "k", {"text": "silent", "more": [{"text": "xyz"}, {"text": "qqq"}]})
    do(store, "put", HERE, "l", {"text": "banana"})
    assert do(store, "search", HERE, query="listen")[0].score == pytest.approx(1, abs=1e-3)
    assert keys(do(store, "search", HERE, query="zyx")) == ["k", "l"]
    do(store, "put", HERE, "m", {"other": "www", "text": "aaa"}, index=["other"])
    assert keys(do(store, "search", HERE, query="www"))[0] == "m"


def test_a_string_names_an_embedder(make_store, make_letters, monkeypatch):
    named = []
    monkeypatch.setattr(
        "langgraph.store.base.embed._get_init_embeddings", lambda: lambda name: named.append(name) or make_letters()
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


def test_an_index_may_be_none_at_all(make_store, make_letters, do):
    counted = make_letters()
    store = make_store(index=False)
    do(store, "put", HERE, "k", {"text": "tea"}, index=["text"])
    assert [item.score for item in do(store, "search", HERE, query="tea")] == [None] and counted.calls == 0


def test_a_wrong_length_fails_the_start_by_name(make_store, make_letters):
    with pytest.raises(ConfigurationError, match="dims"):
        make_store(index={"embed": make_letters()})
    store = make_store(index={"dims": 25, "embed": make_letters()})
    with pytest.raises(ConfigurationError, match="26 numbers, but declares 25"):
        store.setup()
    with pytest.raises(ConfigurationError, match="26 numbers, but declares 25"):
        store.put(HERE, "k", {"text": "tea"})
    assert store.search(HERE) == []
