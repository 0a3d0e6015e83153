"""What a token is, seen through both databases: each of ours is one word to them, and finds its memory first."""

import pytest
from sqlalchemy import create_engine, text

from memoranda import MemoryEngine
from memoranda.text import Tokenizer

# what is asked -> what must stand first
WANTED = {
    "拿铁": "用户喜欢喝榛子拿铁，住在柏林。",
    "柏林": "用户喜欢喝榛子拿铁，住在柏林。",
    "茶": "她每天喝茶",
    "ラーメン": "東京で美味しいラーメン",
    "寿司": "大阪の寿司屋は高い",
    "김치": "서울에서 김치를 먹었다",
    "부산": "부산은 바다가 좋다",
    "ข้าวผัด": "เมื่อวานฉันกินข้าวผัดที่เชียงใหม่",
    "烤鸭": "Alice喜欢北京烤鸭employees",
    "Alice": "Alice喜欢北京烤鸭employees",
    "CN-A10293": "Order ＣＮ－Ａ１０２９３ was shipped",
    "ＣＮ－Ａ１０２９４": "Order CN-A10294 was cancelled",
    "cafe": "Le café ouvre à huit heures",
    "CAFÉ": "Le café ouvre à huit heures",
    "naïve": "A naive plan",
    "Zürich": "The Zurich branch closed",
    "strasse": "Die Straße ist gesperrt",
    "🚀": "Launch day 🚀 at noon",
    "👩‍👩‍👧": "Family photo 👩‍👩‍👧 on the wall",
    "src/app/text.py": "The bug is in src/app/text.py",
    "text.py": "The bug is in src/app/text.py",
    "/etc/hosts": "Edit /etc/hosts by hand",
    r"C:\temp\log.txt": r"The log is C:\temp\log.txt",
    "v1.2.3": "Release v1.2.3 broke it",
    "20.04": "Dora runs ubuntu 20.04",
    "1.2.4": "Release 1.2.4 mended it",
    "C++": "Ana writes C++",
    "C#": "Cleo writes C#",
    "C": "Bob writes C",
    "R&D": "The R&D floor is closed",
    "ERR-7F3A/9": "It failed with ERR-7F3A/9",
    "err-7f3a/8": "It failed with ERR-7F3A/8",
    "ana@example.com": "Write to ana@example.com",
    "https://example.com/a?b=c": "See https://example.com/a?b=c",
    "snake_case_name": "Rename snake_case_name soon",
    "camelCaseName": "Rename camelCaseName later",
    "#4711": "Ticket #4711 is open",
    "AI": "AI is on the agenda",
    "go": "They go by train",
    "Владивосток": "Поезд во Владивосток опоздал",
    "القاهرة": "السفر إلى القاهرة غدا",
    "running": "Bob runs every morning",
    "x9": "The x9 model",
}
CONTENTS = [*dict.fromkeys(WANTED.values()), *(f"Meeting {n} about the budget" for n in range(20))]


@pytest.fixture
def me(backend):
    with MemoryEngine(backend.url, embedder="none") as engine:
        me = engine.persona("main")
        me.memories.write_many(CONTENTS)
        yield me


def test_every_kind_of_word_finds_its_memory_first(me):
    found = {query: [hit.memory.content for hit in me.recall(query)][:1] for query in WANTED}

    missed = {query: (found[query], content) for query, content in WANTED.items() if found[query] != [content]}
    assert not missed


def test_names_that_differ_by_a_sign_are_different(me):
    def found(query):
        return {hit.memory.content for hit in me.recall(query)}

    assert found("C++") == {"Ana writes C++"}
    assert found("ERR-7F3A/9") == {"It failed with ERR-7F3A/9"}
    assert found("v1.2.3") == {"Release v1.2.3 broke it"}
    assert found("CN-A10293") == {"Order ＣＮ－Ａ１０２９３ was shipped"}


def test_both_databases_answer_alike(postgres_url):
    answers = []
    for url in ("sqlite://", postgres_url):
        with MemoryEngine(url, embedder="none") as engine:
            me = engine.persona("main")
            me.memories.write_many(CONTENTS)
            queries = [*WANTED, *CONTENTS]
            answers.append({q: [(hit.content, round(hit.score, 9)) for hit in me.recall(q)] for q in queries})
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "content", ["\0C++ \udc00 ERR-7F3A/9", " ".join(CONTENTS), "a\u0301" * 500, "＃＄％ ½ ² ﷺ Ⅻ ǅ"]
)
def test_each_of_our_tokens_is_one_word_to_both_databases(postgres_url, content):
    terms = set(Tokenizer().terms(content))
    with MemoryEngine(postgres_url, embedder="none", preset="journal") as engine:
        engine.persona("main").memories.write(f"{content} end")
    host = create_engine(postgres_url)
    with host.connect() as connection:
        seen = connection.scalar(
            text("select tsvector_to_array(to_tsvector('simple', content_terms)) from memoranda.memories")
        )
    host.dispose()
    with MemoryEngine("sqlite://", embedder="none") as engine:
        engine.persona("main").memories.write(f"{content} end")
        database = engine._database
        with database._engine.connect() as connection:
            connection.exec_driver_sql(
                "create virtual table temp.words using fts5vocab(main, memoranda_memories_fts, 'col')"
            )
            rows = connection.exec_driver_sql("select term from temp.words where col = 'content_terms'")
            indexed = {row[0] for row in rows}

    assert set(seen) == terms | {"end"}
    assert indexed == terms | {"end"}
