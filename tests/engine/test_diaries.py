"""Diaries in scripts without spaces are found by words alone: no embedder, and questions in other words."""

import diaries
import pytest


@pytest.mark.parametrize(("language", "least"), [("chinese", 0.95), ("japanese", 0.95), ("korean", 0.95)])
def test_a_diary_answers_questions_without_an_embedder(make_engine, language, least):
    me = make_engine(embedder="none").persona("main")
    entries, questions = diaries.diary(language)
    ids = diaries.write(me, entries)
    found, _ = diaries.ask(me, questions, ids)
    assert found["any@5"] >= least
    assert found["abstained"] <= 0.02
    assert diaries.found_by_words(diaries.runs, entries, questions) < 0.5


def test_a_question_about_what_no_entry_tells_has_no_answer(make_engine):
    me = make_engine(embedder="none").persona("main")
    entries, _ = diaries.diary("chinese")
    diaries.write(me, entries[:100])
    for question in ("孟教授在哪里开天文讲座？", "谁送给梅花那把紫色的小提琴？", "我们去沙漠骑骆驼是哪一年？"):
        assert me.recall(question).abstained
