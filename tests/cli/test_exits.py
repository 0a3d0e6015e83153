"""Exit codes tell nothing found (1), refused (2) and failed (3) apart; no output carries a password."""

import json
import socket

import pytest

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
def stored(run):
    """The short id of the one memory in this folder's store."""
    return json.loads(run("write", "The lamp is green.", "--json").stdout)["memories"][0]["short_id"]


@pytest.mark.parametrize(
    "command",
    [["recall", "zeppelin"], ["get", "zzzzzzzz"], ["history", "zzzzzzzz"], ["list", "--category", "none"]],
    ids=lambda command: command[0],
)
def test_nothing_found_is_an_answer(run, stored, command):
    result = run(*command)

    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("(n")


def test_an_abstention_says_why(run, stored):
    result = run("recall", "who flew the zeppelin?")

    assert result.stdout.startswith("(no memories found: ")
    assert result.stdout.rstrip().removesuffix(")").endswith(("to be its answer", "with the question"))


@pytest.mark.parametrize("command", [["delete"], ["supersede"]], ids=lambda command: command[0])
def test_a_missing_memory_cannot_be_changed(run, stored, command):
    result = run(*command, "zzzzzzzz", *["It is blue."][: len(command[0]) - 6])

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
        ["stats", "--url", "mysql://localhost/x"],
        ["write", "tea", "--preset", "ledger"],
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


def test_a_replaced_memory_is_not_replaced_again(run, stored):
    run("supersede", stored, "The lamp is blue.")

    result = run("supersede", stored, "The lamp is red.")

    assert result.exit_code == 2
    assert "superseded" in result.stderr


ASKING = [["recall", "tea"], ["list"], ["stats"], ["get", "zzzzzzzz"], ["history", "zzzzzzzz"]]
CHANGING = [["write", "tea"], ["supersede", "zzzzzzzz", "tea"], ["delete", "zzzzzzzz"]]
DATABASE = [["db", "upgrade"], ["db", "current"], ["db", "check"], ["db", "index"]]


@pytest.mark.parametrize("command", ASKING + CHANGING + DATABASE, ids=" ".join)
def test_an_unreachable_store_is_never_shown_as_nothing_found(run, closed_port, command):
    for place in (closed_port, "sqlite:///no/such/folder/memory.db"):
        result = run(*command, "--url", place)

        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr.startswith("error: ")
        assert SECRET not in result.output


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
def test_a_password_in_the_environment_is_never_printed(spawn, closed_port, command):
    result = spawn(*command, MEMORANDA_URL=closed_port)

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

    result = run("defective")

    assert (result.exit_code, result.stdout) == (3, "")
    assert "error: an unforeseen KeyError: please report it" in result.stderr
    assert SECRET not in result.stderr
