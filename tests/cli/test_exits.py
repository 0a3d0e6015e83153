"""Exit codes tell nothing found (1), refused (2) and failed (3) apart; no output carries a password."""

import json
import socket
import sys

import pytest
import typer

from memoranda.cli.app import app

SECRET = "hunter2-and-more"


@pytest.fixture
def closed_port():
    """A Postgres address at which nobody answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return f"postgresql://ana:{SECRET}@127.0.0.1:{port}/memories"


@pytest.fixture
def stored(run, empty_store, tmp_path):
    """The short id of the one memory in this folder's store."""
    empty_store.copy_to(tmp_path / "memoranda.db")
    return json.loads(run("write", "The lamp is green.", "--json").stdout)["memories"][0]["short_id"]


@pytest.mark.behaviour("O04")
@pytest.mark.parametrize(
    "command",
    [
        ["recall", "zeppelin"],
        ["relevant", "zeppelin"],
        ["nearest", "zeppelin", "--person", "Ana", "--preset", "statements"],
        ["get", "zzzzzzzz"],
        ["get", "zzzzzzzz", "--as-of", "2025-01-01"],
        ["history", "zzzzzzzz"],
        ["list", "--category", "none"],
        ["core"],
        ["projects", "members", "apollo", "--tenant", "acme"],
        ["spaces", "list"],
        ["jobs"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_nothing_found_is_an_answer(run, stored, command):
    result = run(*command)

    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("(n")


def test_an_abstention_says_why(run, stored):
    result = run("recall", "who flew the zeppelin?")

    assert result.stdout.startswith("(no memories found: ")
    assert result.stdout.rstrip().removesuffix(")").endswith(("to be its answer", "with the question"))


@pytest.mark.parametrize(
    "command",
    [
        ["delete", "zzzzzzzz"],
        ["forget", "zzzzzzzz"],
        ["undo", "zzzzzzzz"],
        ["mark", "zzzzzzzz", "expired"],
        ["supersede", "zzzzzzzz", "It is blue."],
        ["keep", "It is blue.", "--about", "everyone", "--id", "zzzzzzzz"],
    ],
    ids=lambda command: command[0],
)
def test_a_missing_memory_cannot_be_changed(run, stored, command):
    result = run(*command)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: No memory has this id here")


@pytest.mark.parametrize(
    "command",
    [
        ["write", "tea", "--importance", "11"],
        ["write", "tea", "--type", "rumour"],
        ["write", "tea", "--metadata", "[1]"],
        ["write", ""],
        ["recall", "tea", "--limit", "0"],
        ["recall", "tea", "--date", "tomorrow"],
        ["recall", "tea", "--preset", "strict"],
        ["recall", "tea", "--embedder", "none-such"],
        ["recall", "tea", "--timezone", "Mars/Base"],
        ["list", "--order", "worst"],
        ["stats", "--user", " "],
        ["stats", "--url", "notes.txt"],
        ["stats", "--url", "mysql://localhost/x"],
        ["write", "tea", "--preset", "ledger"],
        ["keep", "tea"],
        ["keep", "tea", "--about", "everyone", "--preset", "statements", "--space", "attic"],
        ["mark", "zzzzzzzz", "gone"],
        ["mark", "zzzzzzzz"],
        ["supersede", "zzzzzzzz"],
        ["get", "zzzzzzzz", "--as-of", "then"],
        ["relevant", "tea", "--limit", "0"],
        ["relevant", "tea", "--agent", " "],
        ["projects", "add", "apollo", "ana"],
        ["projects", "members", "apollo"],
        ["projects", "add", "--", "--", "ana"],
        ["spaces", "create", " "],
        ["recall"],
        ["write", "tea", "--importance", "much"],
        ["brew"],
        ["recall", "tea", "--strong"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_used_is_refused(run, stored, command):
    result = run(*command)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (
            ["recall", "tea", "--url", "foo.db"],
            "the address of a file begins with sqlite:///: write sqlite:///foo.db",
        ),
        (
            ["recall", "tea", "--url", f"ana:{SECRET}@localhost"],
            "the address of a file begins with sqlite:///: write sqlite:///FILE",
        ),
        (
            ["recall", "tea", "--url", f"postgresql://ana:{SECRET}@localhost:x:y/memories"],
            "the database address cannot be read: write sqlite:///FILE or postgresql://USER@HOST/DATABASE",
        ),
        (
            ["write", "hello", "world"],
            'The text came as several words: put it in quotes, memoranda write "TEXT". Try: memoranda write --help',
        ),
        (
            ["supersede", "7k2m9xqa", "hello", "world"],
            'The text came as several words: put it in quotes, memoranda supersede ID "TEXT". '
            "Try: memoranda supersede --help",
        ),
        (
            ["keep", "hello", "world", "--about", "everyone"],
            'The text came as several words: put it in quotes, memoranda keep "TEXT". Try: memoranda keep --help',
        ),
        (
            ["keep", "tea", "--about", "everyone", "--preset", "statements", "--space", "attic"],
            "There is no space 'attic': run `memoranda spaces create` for it first.",
        ),
        (
            ["write", "tea", "--user", "ana", "--project", "apollo", "--audience", "project"],
            "Only a member shares with the project 'apollo': have `memoranda projects add` run for the user, or write "
            "it with --audience private.",
        ),
        (
            ["projects", "add", "apollo", "bob", "--user", "ana"],
            "users share within one tenant: name it with --tenant or MEMORANDA_TENANT",
        ),
        (["supersede", "zzzzzzzz"], "TEXT is missing: it stands after the ID"),
        (
            ["write", "-5 degrees outside"],
            "No such option: -5. If a text begins with a dash, type -- before it. Try: memoranda write --help",
        ),
        (["write", "tea", "--about", "ana"], "about: write everyone, person:NAME, agent:NAME or thread:NAME"),
        (["write", "tea", "--day", "soon"], "day: write a date such as 2026-03-12"),
        (
            ["write", "tea", "--event-time", "2025-13-01"],
            "event_time: write a date or a moment such as 2026-03-12 or 2026-03-12T09:30:00+01:00",
        ),
        (["recall", "tea", "--date", "tomorrow"], "date: write a date such as 2026-03-12"),
        (["write", "tea", "--position", "-1"], "position: must be at least 0"),
        (
            ["write", "tea", "--audience", "all"],
            "audience: must be 'private' or 'project'",
        ),
        (
            ["write", "tea", "--preset", "ledger"],
            "This preset records who wrote each memory: name the user with --user or MEMORANDA_USER.",
        ),
        (
            ["recall", "tea", "--embedder", "none", "--embedder", "wordllama"],
            "This store's vectors were made by 'hash/words@512'; 'wordllama@256' was given, and vectors of two "
            "embedders cannot be compared: use --embedder hash/words, or leave --embedder and MEMORANDA_EMBEDDER out. "
            "To move the store to the other one: memoranda reembed --embedder wordllama",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_complaint_says_what_to_type_instead(run, stored, command, complaint):
    result = run(*command)

    assert (result.exit_code, result.stderr) == (2, f"error: {complaint}\n")


def test_a_text_that_begins_with_a_dash_goes_behind_two(run):
    assert run("write", "--importance", "7", "--", "-5 degrees outside").exit_code == 0


IN_MEMORY = ["sqlite://", "sqlite:///", ":memory:", "sqlite:///:memory:", "sqlite:///file:a?mode=memory&uri=true"]


@pytest.mark.parametrize("url", IN_MEMORY)
@pytest.mark.parametrize("command", [["write", "tea"], ["recall", "tea"], ["db", "upgrade"]], ids=" ".join)
def test_nothing_is_acknowledged_into_a_store_that_ends_with_the_command(run, command, url):
    result = run(*command, "--url", url)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "sqlite:///FILE" in result.stderr


def test_the_demo_may_run_in_memory(run):
    assert run("demo", "--url", "sqlite://").exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error there")
@pytest.mark.parametrize("shape", [[], ["--json"]], ids=["table", "json"])
def test_a_reader_that_leaves_early_is_not_nothing_found(start, run, shape):
    rows = "\n".join(json.dumps(f"note {number} " + "of many words " * 20) for number in range(600))
    run("write", "-", input=rows, MEMORANDA_EMBEDDER="none")

    with start("list", "--limit", "600", *shape, COLUMNS="400") as process:
        process.stdout.read(1)
        process.stdout.close()
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (141, "")


def test_a_replaced_memory_is_not_replaced_again(run, stored):
    run("supersede", stored, "The lamp is blue.")

    result = run("supersede", stored, "The lamp is red.")

    assert result.exit_code == 2
    assert "superseded" in result.stderr


ASKING = [
    ["recall", "tea"],
    ["nearest", "tea"],
    ["list"],
    ["core"],
    ["stats"],
    ["get", "zzzzzzzz"],
    ["history", "zzzzzzzz"],
    ["projects", "members", "apollo", "--tenant", "acme"],
    ["spaces", "list"],
    ["jobs"],
    ["check"],
]
CHANGING = [
    ["write", "tea"],
    ["supersede", "zzzzzzzz", "tea"],
    ["mark", "zzzzzzzz", "expired"],
    ["undo", "zzzzzzzz"],
    ["delete", "zzzzzzzz"],
    ["keep", "tea", "--about", "everyone"],
    ["forget", "zzzzzzzz"],
    ["backfill"],
    ["reembed", "--embedder", "hash/words"],
    ["worker"],
    ["projects", "add", "apollo", "ana", "--tenant", "acme"],
    ["projects", "remove", "apollo", "ana", "--tenant", "acme"],
    ["spaces", "create", "attic"],
    ["spaces", "archive", "attic"],
]
DATABASE = [["db", "upgrade"], ["db", "current"], ["db", "check"], ["db", "index"]]


@pytest.mark.behaviour("O04")
@pytest.mark.parametrize("command", ASKING + CHANGING + DATABASE, ids=" ".join)
def test_an_unreachable_store_is_never_shown_as_nothing_found(run, closed_port, command):
    for place in (closed_port, "sqlite:///no/such/folder/memory.db"):
        result = run(*command, "--url", place)

        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr.startswith("error: ")
        assert SECRET not in result.output


@pytest.mark.behaviour("O04")
def test_what_is_relevant_is_told_from_none_and_from_a_store_that_is_down(run, stored, closed_port):
    found = run("relevant", "is the lamp green?")
    none = run("relevant", "who flew the zeppelin?")
    down = run("relevant", "who flew the zeppelin?", "--url", closed_port)

    assert (found.exit_code, none.exit_code, down.exit_code) == (0, 1, 0)
    assert "The lamp is green." in found.stdout
    assert none.stdout.startswith("(no memories found: ")
    assert down.stdout.startswith("(degraded: The database cannot be reached")
    document = json.loads(run("relevant", "zeppelin", "--json", "--url", closed_port).stdout)
    assert (document["hits"], document["abstained"]) == ([], True)
    assert document["degraded"].startswith("The database cannot be reached")
    assert SECRET not in down.output


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_a_mistyped_path_is_not_an_empty_store(run, tmp_path, command):
    result = run(*command, "--url", "sqlite:///mistyped.db")

    assert result.exit_code == 3
    assert "no database file" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_database_has_failed(run, tmp_path):
    (tmp_path / "notes.txt").write_text("not a database " * 100)

    assert run("recall", "tea", "--url", "sqlite:///notes.txt").exit_code == 3


def test_errors_are_json_where_answers_are(run, closed_port):
    failed = run("recall", "tea", "--json", "--url", closed_port)
    refused = run("recall", "tea", "--json", "--strong")
    missing = run("write", "--json")

    error = json.loads(failed.stderr)["error"]
    assert (error["kind"], error["exit_code"], failed.stdout) == ("StoreUnavailable", 3, "")
    assert json.loads(refused.stderr)["error"]["kind"] == "UsageError"
    assert json.loads(missing.stderr)["error"]["exit_code"] == 2
    assert not run("recall", "--strong", "--", "--json").stderr.startswith("{")


@pytest.mark.parametrize(
    "command",
    [
        ["stats"],
        ["recall", "tea"],
        ["stats", "--json"],
        ["db", "upgrade"],
        ["--help"],
        ["stats", "--help"],
        ["stats", "--brew"],
    ],
    ids=" ".join,
)
def test_a_password_in_the_environment_is_never_printed(run, closed_port, command):
    result = run(*command, MEMORANDA_URL=closed_port)

    assert SECRET not in result.output
    assert "Traceback" not in result.output


def test_a_password_in_the_environment_is_not_left_in_what_a_process_prints(spawn, closed_port):
    result = spawn("recall", "tea", MEMORANDA_URL=closed_port)

    assert result.returncode == 3
    assert SECRET not in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["{url}"],
        ["stats", "{url}"],
        ["list", "--limit", "{url}"],
        ["--url={url}", "stats"],
        ["stats", "--url", "{url}:x:y"],
    ],
    ids=" ".join,
)
def test_a_password_in_the_wrong_place_is_not_repeated(run, closed_port, words):
    result = run(*[word.replace("{url}", closed_port) for word in words])

    assert result.exit_code in (2, 3)
    assert SECRET not in result.output


def test_a_defect_has_the_exit_code_of_a_failure(run, monkeypatch):
    def defective():
        raise KeyError(f"postgresql://ana:{SECRET}@localhost/x")

    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
    app.command("defective")(defective)
    monkeypatch.setattr("typer.testing._get_command", typer.main.get_command)  # with the command of just now

    result = run("defective")

    assert (result.exit_code, result.stdout) == (3, "")
    assert "error: an unforeseen KeyError: please report it" in result.stderr
    assert SECRET not in result.stderr
