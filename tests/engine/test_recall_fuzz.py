"""No question is an error: a thousand that were made to break query languages, some of them on every database."""

import random

import pytest

from memoranda import MemoryEngine

PIECES = [
    *"\"'`()[]{}<>|&!:*^~-+=/\\,.;?@#$%_",
    *(
        "AND",
        "OR",
        "NOT",
        "NEAR(",
        "NEAR/3",
        "<->",
        "<2>",
        ":*",
        ":A",
        "&&",
        "||",
        "!!",
        "@@",
        "''",
        '""',
        "--",
        "/*",
        "*/",
    ),
    *("content_terms:", "rowid", "memoranda_memories_fts", "{cells}:", "^lisbon", "lisbon*", "-lisbon", "+lisbon"),
    *("'; drop table memories; --", "%s", "%(x)s", ":name", "?1", "$1", "{0}", "\\u0000", "E'\\\\'"),
    *(
        "lisbon",
        "office",
        "C++",
        "ERR-7F3A/9",
        "v1.2.3",
        "a@b.example",
        "https://example.com/a?b=c#d",
        "日本語",
        "김치",
    ),
    *(
        "ไทย",
        "العربية",
        "עברית",
        "ﬁ",
        "İ",
        "ß",
        "ǅ",
        "🚀",
        "👩‍👩‍👧",
        "🇵🇹",
        "\u200b",
        "\u202e",
        "\ufeff",
        "\0",
        "\ud800",
        "\udfff",
    ),
    *(
        "\t",
        "\n",
        "\r",
        "\x1b",
        "\x85",
        "\u2028",
        "\U0010ffff",
        "e\u0301",
        "\u0301" * 40,
        "x" * 300,
        "1" * 200,
        "0x1F",
        "-1",
    ),
]


def questions(count):
    dice = random.Random(20261129)
    for n in range(count):
        if n % 5 == 0:
            yield "".join(chr(dice.randrange(0x110000)) for _ in range(dice.randrange(12)))
        elif n % 5 == 1:
            yield "".join(chr(dice.randrange(128)) for _ in range(dice.randrange(40)))
        else:
            yield dice.choice(["", " "]).join(dice.choice(PIECES) for _ in range(dice.randrange(6)))


CONTENTS = ["The office is in Lisbon.", "Ana writes C++ and R&D reports", "東京で美味しいラーメン 🚀"]


@pytest.mark.behaviour("R07")
def test_a_thousand_odd_questions_are_answered_or_abstained_from():
    with MemoryEngine("sqlite://", embedder="hash/words") as engine:
        me = engine.persona("main")
        me.memories.write_many(CONTENTS)
        answers = [me.recall(question) for question in questions(1000)]
        assert len(me.memories.list()) == 3
    assert all(answer.abstained == (len(answer) == 0) for answer in answers)
    assert {answer.abstained for answer in answers} == {True, False}
    assert {answer.degraded for answer in answers} == {None}


@pytest.mark.behaviour("R07")
def test_odd_questions_get_the_same_answers_on_both_databases(postgres_url):
    found = []
    for url in ("sqlite://", postgres_url):
        with MemoryEngine(url, embedder="none") as engine:
            me = engine.persona("main")
            me.memories.write_many(CONTENTS)
            answers = [me.recall(question) for question in questions(200)]
            assert len(me.memories.list()) == 3
        assert {answer.abstained for answer in answers} == {True, False}
        found.append([[hit.content for hit in answer] for answer in answers])

    assert found[0] == found[1]


@pytest.mark.behaviour("R07")
def test_odd_questions_raise_nothing(make_engine):
    me = make_engine(embedder="hash/words").persona("main")
    me.memories.write_many(CONTENTS)
    for question in questions(50):
        me.recall(question)
        me.memories.nearest(f"x{question}")
    assert me.recall("lisbon office")[0].memory.content == "The office is in Lisbon."
