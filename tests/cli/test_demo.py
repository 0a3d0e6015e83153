"""The demo tells the story that its text promises, with every embedder that ships."""

import json
import time

import pytest

from memoranda.cli.demo import CORRECTION, MOVING, QUESTIONS, story
from memoranda.drafts import check

OLD_DAY = "Noor: The open day, when the whole village sees the gauges, is on Saturday 26 April."
ANSWERS = {
    "What is Noor allergic to?": "hazelnuts",
    "What does ERR-7F3A/9 mean?": "the antenna has come loose",
    "Who damaged the antenna cable?": "A goat",
    "センサーの納期はいつですか。": "四月四日",
    "What did the insurance cost?": None,
}


def told(document):
    steps = json.loads(document)["steps"]
    return steps, [step for step in steps if step["step"] == "asked"]


def test_the_story_is_made_of_memories_in_order():
    turns = story()

    assert 40 <= len(turns) <= 60
    for index, turn in enumerate(turns):
        check(turn["content"], {name: value for name, value in turn.items() if name != "content"}, index=index)
    assert turns == sorted(turns, key=lambda turn: turn["event_time"])
    seats = [(turn["session"], turn["position"]) for turn in turns]
    assert len(set(seats)) == len(turns)
    assert len({session for session, _ in seats}) == 5


def test_the_demo_shows_the_whole_story_in_a_plain_pipe(spawn, tmp_path):
    started = time.perf_counter()
    result = spawn("demo")
    took = time.perf_counter() - started

    assert (result.returncode, result.stderr) == (0, "")
    assert took < 20
    text = " ".join(result.stdout.replace("│", " ").split())
    for expected in (
        "46 memories of 5 conversations",
        "no hazelnuts please",
        "ERR-7F3A/9 means that the antenna has come loose",
        "says the words antenna, cable",
        "センサーの納期は四月四日です。",
        "No answer: ",
        "is on Saturday 26 April.",
        CORRECTION,
        "As of 2025-04-01",
        "Nothing was destroyed",
        "memoranda demo --keep heron.db",
    ):
        assert expected in text
    assert "\x1b" not in result.stdout
    assert "…" not in result.stdout.partition("stored in")[2]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("embedder", ["hash/words", "wordllama"])
@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
def test_every_question_gets_its_answer_first(run, backend, embedder):
    result = run("demo", "--url", backend.url, "--embedder", embedder, "--json")

    assert result.exit_code == 0
    steps, asked = told(result.stdout)
    assert [step["step"] for step in steps] == ["stored", *["asked"] * 6, "corrected", *["asked"] * 2, "history"]
    assert tuple(step["query"] for step in asked[:5]) == tuple(question for question, _ in QUESTIONS) == tuple(ANSWERS)
    for step in asked[:5]:
        expected = ANSWERS[step["query"]]
        if expected is None:
            assert step["abstained"] and step["reason"]
        else:
            assert expected in step["hits"][0]["memory"]["content"]
            assert step["hits"][0]["reasons"]
    before, after, earlier = asked[5:]
    assert {step["query"] for step in (before, after, earlier)} == {MOVING}
    assert [step["hits"][0]["memory"]["content"] for step in (before, after, earlier)] == [OLD_DAY, CORRECTION, OLD_DAY]
    assert OLD_DAY not in [hit["memory"]["content"] for hit in after["hits"]]
    assert [memory["status"] for memory in steps[-1]["memories"]] == ["superseded", "active"]


def test_what_to_type_next_works(run, tmp_path):
    shown = run("demo", "--keep", "heron.db").stdout

    assert '  memoranda recall "who paid for the damage?" --url sqlite:///heron.db\n' in shown
    assert "two wheels of" in run("recall", "who paid for the damage?", "--url", "sqlite:///heron.db").stdout
    listed = json.loads(run("list", "--date", "2025-02-24", "--url", "sqlite:///heron.db", "--json").stdout)
    assert len(listed["memories"]) == 9
    assert run("demo", "--keep", "heron.db").exit_code == 2


def test_the_demo_touches_no_store_it_was_not_given(run, tmp_path):
    assert run("demo", MEMORANDA_URL="sqlite:///mine.db").exit_code == 0
    assert not (tmp_path / "mine.db").exists()

    run("write", "The lamp is green.", "--persona", "demo")
    refused = run("demo", "--url", "sqlite:///memoranda.db")
    assert refused.exit_code == 2
    assert "holds 1 memories already" in refused.stderr
    assert run("demo", "--url", "sqlite:///memoranda.db", "--persona", "other").exit_code == 0
    assert json.loads(run("stats", "--persona", "demo", "--json").stdout)["memories"] == 1


def test_the_demo_needs_tables_on_postgres(run, blank_postgres_url):
    result = run("demo", "--url", blank_postgres_url)

    assert result.exit_code == 3
    assert "memoranda db upgrade" in result.stderr
