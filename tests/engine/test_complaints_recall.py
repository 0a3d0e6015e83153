"""What users of other memories complained about, as inputs: scripts, punctuation, broken text, pools, small tenants."""

import re

import pytest
from sqlalchemy import create_engine, event, text

from memoranda import MemoryEngine
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.testing import BrokenEmbedder

NOISE = [f"Meeting {n} about the quarterly report" for n in range(30)] + [
    "用户住在慕尼黑，喜欢爬山。",
    "大阪で安いホテル",
    "부산에서 커피",
    "ฉันชอบดื่มชาที่ภูเก็ต",
    "Order CN-A10294 was cancelled",
]


@pytest.mark.parametrize("embedder", ["none", "hash/words"])
def test_15_scripts_without_spaces_are_searched_by_their_words(make_engine, embedder):
    me = make_engine(embedder=embedder).persona("main")
    wanted = {
        "榛子拿铁": "用户喜欢喝榛子拿铁，住在柏林。",
        "ラーメン": "東京で美味しいラーメン",
        "김치": "서울에서 김치",
        "ข้าวผัด": "เมื่อวานฉันกินข้าวผัดที่เชียงใหม่",
        "北京烤鸭": "Alice喜欢北京烤鸭employees",
        "employees": "Alice喜欢北京烤鸭employees",
        "CN-A10293": "Order ＣＮ－Ａ１０２９３ was shipped",
        "ＣＮ－Ａ１０２９３": "Order ＣＮ－Ａ１０２９３ was shipped",
    }
    me.memories.write_many([*NOISE, *dict.fromkeys(wanted.values())])

    found = {query: (me.recall(query) or [None])[0] for query in wanted}

    assert {query: hit and hit.memory.content for query, hit in found.items()} == wanted


@pytest.mark.parametrize("embedder", ["none", "hash/words"])
def test_17_punctuation_changes_no_score(make_engine, embedder):
    me = make_engine(embedder=embedder).persona("main")
    me.memories.write_many([*NOISE, "The dog chased the cat", "A cat sleeps", "Password policies need 12 characters"])

    variants = ["dog cat", "dog,cat", "dog, cat!", "(dog) & cat", "dog | cat", "\"dog\" 'cat'", "dog <-> cat:*"]
    scores = [[(hit.memory.content, round(hit.score, 9)) for hit in me.recall(query)] for query in variants]

    assert scores[0][0][0] == "The dog chased the cat"
    assert scores == [scores[0]] * len(variants)
    assert me.recall("What's your password policies?")[0].memory.content == "Password policies need 12 characters"


def test_17_symbols_that_make_a_name_count(make_engine):
    me = make_engine(embedder="none").persona("main")
    me.memories.write_many(
        ["Ana writes C++", "Bob writes C", "Cleo writes C#", "Dora runs ubuntu 20.04", "R&D is here"]
    )

    for query, content in {
        "C++": "Ana writes C++",
        "C": "Bob writes C",
        "C#": "Cleo writes C#",
        "ubuntu 20.04": "Dora runs ubuntu 20.04",
        "R&D": "R&D is here",
    }.items():
        assert me.recall(query)[0].memory.content == content
    assert len(me.recall("C++")) == 1
    assert me.recall("C++ & R&D | (AT&T) ! <-> :* 'quote\" \\").nearest[0].memory.content in (
        "Ana writes C++",
        "R&D is here",
    )


def test_19_what_no_database_can_hold_is_cleaned_the_same_way_everywhere(make_engine):
    me = make_engine(embedder="none").persona("main")
    stored = {
        "nul\0byte": "nulbyte",
        "lone \ud83d surrogate": "lone \ufffd surrogate",
        "pair \ud83d\ude80 joined": "pair 🚀 joined",
        "zero\u200bwidth \ufefftext": "zero\u200bwidth \ufefftext",
    }
    written = {text: me.memories.write(text, category="a\0b", metadata={"k\0": "v\0\udc00"}) for text in stored}

    assert {text: me.memories.get(answer.id).memory.content for text, answer in written.items()} == stored
    assert {answer.memory.category for answer in written.values()} == {"ab"}
    assert me.recall("nul\0byte")[0].memory.content == "nulbyte"
    assert me.recall("surrogate \udfff")[0].memory.content == "lone \ufffd surrogate"
    assert me.recall("zerowidth text")[0].memory.content == "zero\u200bwidth \ufefftext"
    for empty in ("\0", "", " \n", "\0 \0"):
        with pytest.raises(InvalidInput, match="content must not be empty"):
            me.memories.write(empty)
        assert me.recall(empty).abstained


def test_19_a_megabyte_of_text_is_stored_whole_and_found_by_its_beginning(make_engine):
    me = make_engine(embedder="none").persona("main")
    long = "zeppelin " + " ".join(f"word{n}" for n in range(110_000)) + " hindmost"
    wall = "zinnober" + "x" * 1_000_000

    for content in (long, wall):
        assert me.memories.get(me.memories.write(content).id).memory.content == content

    assert me.recall("zeppelin")[0].memory.content == long
    assert me.recall("word77")[0].memory.content == long
    assert me.recall("hindmost").abstained
    assert me.recall("zeppelin " * 100_000)[0].memory.content == long
    assert me.recall(wall)[0].memory.content == wall
    assert me.recall(f"zeppelin {wall}")[0].memory.content == long


def _pool_of(engine, held):
    @event.listens_for(engine, "checkout")
    def out(*_):
        held[0] += 1

    @event.listens_for(engine, "checkin")
    def back(*_):
        held[0] -= 1


def test_28_every_connection_of_a_callers_pool_comes_back(backend, twin, mode):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a caller's engine in memory is refused")
    host = create_engine(backend.url, pool_size=2, max_overflow=0, pool_timeout=5)
    disposed, held = [], [0]
    _pool_of(host, held)
    event.listen(host, "engine_disposed", lambda _: disposed.append(True))
    engine = twin(MemoryEngine(host, embedder="none"))
    me = engine.persona("main")
    me.memories.write("The office is in Lisbon.")

    for n in range(100 if mode == "sync" else 20):
        assert len(me.recall("lisbon")) == 1
        assert me.recall(f"nothing{n}").abstained
        if n % 10 == 0:
            with pytest.raises(MemorandaError):
                me.memories.delete("aaaaaaaa")
            with pytest.raises(MemorandaError):
                me.memories.supersede("aaaaaaaa", "x")
            with pytest.raises(MemorandaError):
                me.memories.write("x", importance=11)

    assert held == [0]
    engine.close()
    assert not disposed
    with host.connect() as connection:
        assert connection.scalar(text("select 1")) == 1
    host.dispose()


def test_28_an_engine_of_our_own_gives_back_its_one_connection(make_engine):
    me = make_engine(embedder=BrokenEmbedder(), pool_size=1, timeout=5).persona("main")
    me.memories.write("The office is in Lisbon.")
    for n in range(20):
        assert len(me.recall("lisbon" if n % 2 else "office")) == 1
        assert me.recall(f"nothing{n}").abstained
        with pytest.raises(MemorandaError):
            me.memories.delete("aaaaaaaa")


@pytest.mark.parametrize("embedder", ["hash/words", "none"])
def test_29_a_small_tenant_among_many_gets_all_its_hits(make_engine, embedder):
    engine = make_engine(embedder=embedder)
    crowd = engine.persona("main", tenant="crowd")
    crowd.memories.write_many([f"Invoice {n} of the crowd for Lisbon" for n in range(600)])
    small = engine.persona("main", tenant="small")
    small.memories.write_many([f"Invoice {n} of the few for Lisbon" for n in range(10)])

    hits = small.recall("invoice for Lisbon", limit=10)

    assert len(hits) == 10
    assert all(re.fullmatch(r"Invoice \d of the few for Lisbon", hit.memory.content) for hit in hits)
