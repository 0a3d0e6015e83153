"""What was said, taken in from files, listed, shown and folded, and what a model would see of it."""

import json

import pytest

from memoranda import MemoryEngine
from memoranda.messages import Message, ToolCall
from memoranda.testing.exports import Conversation, exported


@pytest.fixture
def filled(run, tmp_path):
    """A store in this folder with a conversation, a memory and a user model."""
    with MemoryEngine(f"sqlite:///{tmp_path / 'memoranda.db'}", embedder="hash/words") as engine:
        me = engine.persona("main")
        me.memories.write("The gauge hangs under the mill bridge.", importance=9)
        me.user_model.write("baseline", "based in Lisbon", confidence=9)
        me.conversation("standup").append(
            [
                Message(role="user", content="Where is the antenna cable?", created_at=None),
                Message(role="assistant", tool_calls=(ToolCall(id="1", name="look", arguments={"at": "mill"}),)),
                Message(role="tool", tool_call_id="1", content="on the wall"),
                {"role": "assistant", "content": "In the mill, on the wall.", "mood": "glad"},
            ]
        )


def document(result, code=0):
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


# -- looking


def test_conversations_are_listed_and_shown(run, filled):
    [record] = document(run("conversations", "list", "--json"))["conversations"]
    assert (record["name"], record["messages"], record["folded"]) == ("standup", 4, 0)
    assert "standup" in run("conversations", "list").stdout

    text = run("conversations", "show", "standup").stdout
    for line in ("Where is the antenna cable?", 'look({"at": "mill"})', "on the wall"):
        assert line in text
    page = document(run("conversations", "show", "standup", "--limit", "2", "--json"))
    assert [message["role"] for message in page["messages"]] == ["tool", "assistant"]
    assert page["messages"][1]["extra"] == {"mood": "glad"} and page["before"] == 3
    earlier = document(run("conversations", "show", "standup", "--before", "3", "--json"))
    assert [message["position"] for message in earlier["messages"]] == [1, 2]
    assert run("conversations", "list", "--user", "eve").exit_code == 1


@pytest.mark.parametrize("words", [["show"], ["flush"], ["compact"], ["review"]])
def test_a_conversation_that_is_not_there_is_not_there(run, filled, words):
    command = ["conversations", "show"] if words == ["show"] else words
    result = run(*command, "lost")
    assert (result.exit_code, result.stdout) == (1, "(no such conversation)\n")


def test_messages_are_searched_with_those_beside_them(run, filled):
    found = document(run("conversations", "search", "antenna", "cable", "--json"))["found"]
    assert found[0]["conversation"] == "standup"
    assert found[0]["message"]["content"] == "Where is the antenna cable?"
    assert [message["position"] for message in found[0]["after"]] == [2]
    assert "Where is the antenna cable?" in run("conversations", "search", "antenna cable").stdout
    assert run("conversations", "search", "zeppelin").exit_code == 1


def test_the_prompt_is_shown_as_a_model_would_see_it(run, filled):
    text = run("prompt", "standup").stdout
    order = [
        "--- instructions: about ",
        "--- system: about ",
        "<memoranda-snapshot nonce=",
        "] The gauge hangs under the mill bridge.",
        "--- user_model: about ",
        "- [baseline, conf=9] based in Lisbon",
        "--- messages: about ",
        "user: Where is the antenna cable?",
        "tokens in all",
    ]
    places = [text.find(line) for line in order]
    assert places == sorted(places) and -1 not in places

    first, second = (document(run("prompt", "standup", "--json")) for _ in range(2))
    assert first["system"] == second["system"] and first["system"] in text
    run("write", "A goat was here.", "--importance", "10")
    third = document(run("prompt", "standup", "goats?", "--json"))
    assert third["system"] == first["system"] and third["tokens"]["system"] > 0
    assert [message["role"] for message in third["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert sum(third["tokens"].values()) > third["tokens"]["messages"] > 0


# -- with a model


def said(model_answers):
    """Return the settings of a model that is a program which answers with the lines of a script, one a call."""
    script = "import sys, pathlib; p = pathlib.Path('answers'); a = p.read_text().split('\\x1e'); " + (
        "sys.stdin.read(); print(a[0]); p.write_text('\\x1e'.join(a[1:]))"
    )
    return script, "\x1e".join(model_answers)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Say what the model will answer, in order; the model is a program."""

    def answers(*texts):
        import shlex
        import sys

        script, content = said(texts)
        (tmp_path / "answers").write_text(content)
        (tmp_path / "model.py").write_text(script)
        return {"MEMORANDA_LLM_BACKEND": "command", "MEMORANDA_LLM_CMD": shlex.join([sys.executable, "model.py"])}

    return answers


def test_compact_folds_and_saves_with_two_calls_of_the_model(run, filled, model):
    saved = '[{"category": "place", "content": "The antenna cable hangs in the mill.", "importance": 7}]'
    environment = model(saved, "They looked for the antenna cable.")
    done = document(run("compact", "standup", "--keep", "0", "--json", **environment))

    assert (done["folded"], done["first"], done["last"]) == (4, 1, 4)
    assert done["flushed"]["written"] == 1 and done["problem"] is None
    assert "The antenna cable hangs in the mill." in run("list").stdout
    shown = run("conversations", "show", "standup").stdout
    assert "They looked for the antenna cable." in shown and "Where is the antenna cable?" in shown
    assert document(run("conversations", "list", "--json"))["conversations"][0]["folded"] == 4
    again = run("compact", "standup", "--keep", "0", **environment)
    assert again.exit_code == 1 and "nothing to fold" in again.stdout


def test_without_a_model_nothing_is_lost_and_the_exit_code_says_so(run, filled):
    for command in (["compact", "standup", "--keep", "0"], ["review", "standup"]):
        result = run(*command)
        assert result.exit_code == 3 and "MEMORANDA_LLM_BACKEND" in result.stdout
        assert document(run(*command, "--json"), code=3)["problem"]
    assert run("flush", "standup").exit_code == 1  # nothing is pending
    assert document(run("conversations", "list", "--json"))["conversations"][0]["folded"] == 0


def test_a_model_that_is_unknown_is_refused(run, filled):
    result = run("flush", "standup", "--model", "oracle")
    assert result.exit_code == 2 and "oracle" in result.stderr


# -- taking in


@pytest.fixture
def export(tmp_path):
    """A ChatGPT export with an edit, in this folder."""
    talk = Conversation("Gauges", "talk-1")
    asked = talk.say("user", "Where is the gauge?")
    talk.say("assistant", "No idea.")
    talk.say("assistant", "Under the bridge.", parent=asked)
    other = Conversation("Tea", "talk-2")
    other.say("user", "Is there tea?")
    (tmp_path / "conversations.json").write_bytes(exported(talk, other))


def test_an_export_of_another_program_is_taken_in_with_a_report(run, export):
    first = run("import", "conversations.json")
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout.splitlines() == [
        "imported 2 conversations, 3 messages",
        "left out 1: messages of branches that were edited away (talk-1)",
    ]
    assert run("import", "conversations.json").stdout.startswith(
        "imported 2 conversations, 0 messages, 3 already there"
    )
    assert "Under the bridge." in run("conversations", "show", "talk-1").stdout


def test_a_dry_run_stores_nothing_and_tells_the_same(run, export, tmp_path):
    told = document(run("import", "conversations.json", "--dry-run", "--json"))
    assert [(one["name"], one["title"], one["messages"]) for one in told["conversations"]] == [
        ("talk-1", "Gauges", 2),
        ("talk-2", "Tea", 1),
    ]
    assert told["left_out"] == {"messages of branches that were edited away": 1}
    assert (told["stored"], told["dry_run"]) == (0, True)
    assert not (tmp_path / "memoranda.db").exists()


def test_a_log_is_taken_in_for_the_speaker_that_was_named(run, tmp_path):
    (tmp_path / "support.log").write_text("Bot: Welcome.\nAna: Hi.\nBot: How are you?\nAna: Fine.\n")
    done = run("import", "support.log", "--speaker", "ana", "--conversation", "support-7", "--user", "ana")
    assert done.stdout.splitlines() == ["imported 1 conversation, 4 messages", "speakers: Bot, Ana"]
    page = document(run("conversations", "show", "support-7", "--user", "ana", "--json"))
    assert [message["role"] for message in page["messages"]] == ["assistant", "user", "assistant", "user"]
    refused = run("import", "support.log", "--speaker", "Eve")
    assert refused.exit_code == 2 and "Bot, Ana" in refused.stderr


def test_messages_come_in_on_standard_input(run):
    lines = [json.dumps({"role": role, "content": role}) for role in ("user", "assistant")]
    done = run("import", "-", "--conversation", "thread-7", input="\n".join([*lines, "nonsense"]))
    assert done.stdout.splitlines() == [
        "imported 1 conversation, 2 messages",
        "left out 1: lines that are no JSON (line 3)",
    ]


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        ("once upon a time", [], 2),
        ("", [], 2),
        ("[]", [], 1),
        ('[{"messages": [{"role": "user", "content": "a"}]}, {"messages": [{"role": "user", "content": "b"}]}]',
         ["--conversation", "one"], 2),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_in_is_refused(run, tmp_path, content, words, code):
    (tmp_path / "file.txt").write_text(content)
    assert run("import", "file.txt", *words).exit_code == code


def test_a_conversation_that_cannot_be_stored_is_reported_and_the_others_are_stored(run, tmp_path):
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    items = [{"id": n, "messages": [{"role": "user", "content": n, "deep": deep if n == "b" else 1}]} for n in "abc"]
    (tmp_path / "file.json").write_text(json.dumps(items))
    done = run("import", "file.json")
    assert done.stdout.splitlines() == [
        "imported 2 conversations, 2 messages",
        "left out 1: conversations with something that cannot be stored (b)",
    ]


def test_a_damaged_archive_and_an_unknown_time_zone_are_refused(run, export, tmp_path):
    (tmp_path / "x.json.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 40)
    assert run("import", "x.json.gz").exit_code == 2
    assert run("import", "conversations.json", "--dry-run", "--timezone", "Mars/Base").exit_code == 2


def test_options_for_conversations_do_not_go_with_an_export(run):
    run("write", "The lamp is green.")
    run("export", "memories.jsonl")
    assert run("import", "memories.jsonl", "--dry-run").exit_code == 2
