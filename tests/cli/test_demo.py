"""The demo tells the story that its text promises, with every embedder that ships."""

import json
import os
import shlex
import sys

import pytest

from memoranda.cli.story import AFTERWARDS, CORRECTION, LOOKED_UP, MEANWHILE, MOVING, QUESTIONS, SAID, story
from memoranda.fields import check

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
    result = spawn("demo")

    assert (result.returncode, result.stderr) == (0, "")
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
        "The demo has no language model: a scripted one gives two answers",
        "8 messages are folded into a summary",
        "the same bytes",
        "a new block",
        "at the bakery Aurora",
        "Ingested gauge-manual: 1 chunk (embedded).",
        "[gauge-manual#0]",
        " demo --keep heron.db",
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
    assert [step["step"] for step in steps] == [
        *("stored", *["asked"] * 6, "corrected", *["asked"] * 2, "history"),
        *("talked", "compacted", "prompt", "asked", "ingested", "asked"),
    ]
    assert tuple(step["query"] for step in asked[:5]) == tuple(question for question, _ in QUESTIONS) == tuple(ANSWERS)
    for step in asked[:5]:
        expected = ANSWERS[step["query"]]
        if expected is None:
            assert step["abstained"] and step["reason"]
        else:
            assert expected in step["hits"][0]["memory"]["content"]
            assert step["hits"][0]["reasons"]
    before, after, earlier, afterwards, looked_up = asked[5:]
    assert {step["query"] for step in (before, after, earlier)} == {MOVING}
    assert [step["hits"][0]["memory"]["content"] for step in (before, after, earlier)] == [OLD_DAY, CORRECTION, OLD_DAY]
    assert OLD_DAY not in [hit["memory"]["content"] for hit in after["hits"]]
    [chain] = [step for step in steps if step["step"] == "history"]
    assert [memory["status"] for memory in chain["memories"]] == ["superseded", "active"]
    assert (afterwards["query"], looked_up["query"]) == (AFTERWARDS, LOOKED_UP)
    assert "bakery Aurora" in afterwards["hits"][0]["memory"]["content"]
    assert looked_up["hits"][0]["chunk"]["source"] == "gauge-manual"


def test_the_block_of_the_prompt_keeps_its_bytes_until_the_compaction(run):
    steps = {step["step"]: step for step in told(run("demo", "--json").stdout)[0]}
    first, later, after = (block["sha256"] for block in steps["prompt"]["blocks"])
    assert first == later != after
    assert steps["compacted"]["model"] == "scripted"
    assert steps["compacted"]["compacted"]["folded"] == 8
    assert len(steps["compacted"]["memories"]) == 3


def test_what_the_conversation_of_the_demo_leaves_can_be_looked_at(run):
    run("demo", "--keep", "heron.db")
    place = ("--url", "sqlite:///heron.db")
    shown = json.loads(run("conversations", "show", "open-day", "--json", *place).stdout)
    assert [message["content"] for message in shown["messages"]] == list(SAID)
    assert [message["folded"] for message in shown["messages"]] == [True] * 8 + [False] * 2
    assert MEANWHILE in run("prompt", "open-day", *place).stdout


def what_to_type_next(result, program):
    """Return the lines below that headline as lists of words, without the name of the program."""
    lines = [shlex.split(line) for line in result.stdout.partition("What to type next")[2].splitlines()[1:] if line]
    assert all(line[: len(program)] == program for line in lines)
    return [line[len(program) :] for line in lines]


@pytest.fixture
def on_the_path(tmp_path_factory, monkeypatch):
    """The command is installed where the shell looks for it."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("memoranda", "memoranda.exe"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_what_to_type_next_works(run, on_the_path):
    recall, listing, _ = what_to_type_next(run("demo", "--keep", "the heron's.db"), ["memoranda"])

    assert recall == ["recall", "who paid for the damage?", "--url", "sqlite:///the heron's.db"]
    assert "two wheels of" in run(*recall).stdout
    assert len(json.loads(run(*listing, "--json").stdout)["memories"]) == 9
    assert run("demo", "--keep", "the heron's.db").exit_code == 2


def test_what_to_type_next_names_the_address_by_its_variable(run, on_the_path):
    result = run("demo", "--url", "sqlite:///own.db", "--persona", "my own")
    recall, *_ = what_to_type_next(result, ["memoranda"])

    assert recall[2:] == ["--url", "$MEMORANDA_URL", "--persona", "my own"]
    assert '"$MEMORANDA_URL"' in result.stdout
    assert "What to type next, with your address in MEMORANDA_URL:" in result.stdout


@pytest.mark.parametrize(
    ("running", "typed"),
    [
        (["bin", "memoranda"], [os.path.join("bin", "memoranda")]),
        (["my tools", "memoranda"], [os.path.join("my tools", "memoranda")]),
        (["memoranda"], [os.path.join(".", "memoranda")]),
        (["cli", "__main__.py"], [sys.executable, "-m", "memoranda.cli"]),
    ],
)
def test_what_to_type_next_is_the_command_that_runs(run, monkeypatch, tmp_path, running, typed):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [str(tmp_path.joinpath(*running))])

    assert what_to_type_next(run("demo"), typed)[0] == ["demo", "--keep", "heron.db"]


def test_the_demo_touches_no_store_it_was_not_given(run, tmp_path):
    assert run("demo", MEMORANDA_URL="sqlite:///mine.db").exit_code == 0
    assert not (tmp_path / "mine.db").exists()

    run("write", "The lamp is green.", "--persona", "demo")
    refused = run("demo", "--url", "sqlite:///memoranda.db")
    assert refused.exit_code == 2
    assert "holds 1 memory already" in refused.stderr
    assert run("demo", "--url", "sqlite:///memoranda.db", "--persona", "other").exit_code == 0
    assert json.loads(run("stats", "--persona", "demo", "--json").stdout)["memories"] == 1


def test_the_demo_needs_tables_on_postgres(run, blank_postgres_url):
    result = run("demo", "--url", blank_postgres_url)

    assert result.exit_code == 3
    assert "memoranda db upgrade" in result.stderr
