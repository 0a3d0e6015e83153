"""`erase` asks for the name of what goes, says how much it is, and changes nothing without it."""

import json
import sqlite3

import pytest

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)


@pytest.fixture
def memoranda(run, backend):
    """Run a command on this backend's store."""
    return lambda *words, **options: run(*words, "--url", backend.url, **options)


@pytest.fixture
def short_id(memoranda):
    """Write a memory and return its short id."""

    def write(*words):
        return json.loads(memoranda("write", *words, "--json").stdout)["memories"][0]["short_id"]

    return write


def left(memoranda, *words):
    return json.loads(memoranda("stats", *words, "--json").stdout)["memories"]


@BACKENDS
@pytest.mark.behaviour("W11")
def test_without_the_name_nothing_goes_and_with_it_everything_does(memoranda, short_id):
    for n in range(3):
        short_id(f"Note {n} of the diary.", "--persona", "diary")
    short_id("Another note.")

    for options in ({"input": ""}, {"input": "yes\n"}, {"input": "DIARY\n"}):
        refused = memoranda("erase", "--persona", "diary", **options)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "would erase 3 memories (9 rows): persona diary in persona diary" in refused.stderr
        assert "error: nothing was erased: type diary" in refused.stderr
        assert left(memoranda, "--persona", "diary") == 3
    assert memoranda("erase", "--persona", "diary", "--confirm", "main").exit_code == 2

    done = memoranda("erase", "--persona", "diary", input="diary\n")
    assert done.exit_code == 0 and done.stdout.startswith("erased 3 memories (9 rows)")
    assert (left(memoranda, "--persona", "diary"), left(memoranda)) == (0, 1)
    again = memoranda("erase", "--persona", "diary", "--confirm", "diary")
    assert (again.exit_code, again.stdout) == (1, "nothing to erase\n")


@BACKENDS
def test_every_kind_of_target_can_be_named(memoranda, short_id):
    old = short_id("The fee is 10.")
    new = json.loads(memoranda("supersede", old, "The fee is 11.", "--json").stdout)["memory"]["short_id"]
    short_id("Zoe likes tea.", "--about", "person:zoe")
    short_id("Ana writes.", "--user", "ana", "--tenant", "acme")
    short_id("Ana writes at home.", "--user", "ana")

    def erased(*words, **environment):
        result = memoranda("erase", *words, "--json", **environment)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["memories"]

    assert erased("--memory", new, "--confirm", new) == 1
    assert erased("--memory", old, "--chain", "--confirm", old) == 1
    assert erased("--about", "person:zoe", "--confirm", "person:zoe") == 1
    assert erased("--user", "ana", "--tenant", "acme", "--confirm", "ana") == 1
    assert left(memoranda, "--user", "ana") == 1
    home = short_id("Ana writes at home again.", "--user", "ana")
    assert erased("--memory", home, "--tenant", "user:ana", "--confirm", home) == 1
    assert erased("--persona", "main", "--confirm", "main", MEMORANDA_USER="ana") == 1


@BACKENDS
def test_what_the_environment_says_is_no_target(memoranda, short_id):
    short_id("Ana writes.", "--user", "ana", "--persona", "diary")
    environment = {"MEMORANDA_USER": "ana", "MEMORANDA_PERSONA": "diary"}

    result = memoranda("erase", "--confirm", "ana", **environment)

    assert result.exit_code == 2 and "say what to erase" in result.stderr
    assert left(memoranda, "--user", "ana", "--persona", "diary") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--memory", "zzzzzzzz", "--user", "ana"],
        ["--about", "person:zoe", "--user", "ana"],
        ["--persona", "main", "--chain"],
        ["--memory", "nothing"],
        ["--finish", "--persona", "main"],
        [],
    ],
    ids=" ".join,
)
def test_what_is_not_one_thing_is_refused(run, words):
    run("write", "The lamp is green.")

    result = run("erase", *words)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert json.loads(run("stats", "--json").stdout)["memories"] == 1


def test_a_missing_memory_and_a_missing_store(run):
    assert run("erase", "--persona", "main").exit_code == 3
    run("write", "The lamp is green.")
    result = run("erase", "--memory", "zzzzzzzz", "--confirm", "zzzzzzzz")
    assert (result.exit_code, result.stdout) == (1, "nothing to erase\n")


def test_a_reader_in_the_way_is_named_and_finished_later(run, tmp_path):
    run("write", "The purple zeppelin is late.")
    reader = sqlite3.connect(tmp_path / "memoranda.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memoranda_memories").fetchone()

    pending = run("erase", "--persona", "main", "--confirm", "main")
    assert pending.exit_code == 3
    assert pending.stdout.startswith("erased 1 memory (3 rows); pending: the rows are gone, but traces")
    assert "memoranda erase --finish" in pending.stdout
    still = run("erase", "--finish", "--json")
    assert (still.exit_code, json.loads(still.stdout)["pending"]) == (3, True)

    reader.close()
    finished = run("erase", "--finish")
    assert (finished.exit_code, finished.stdout) == (0, "no trace is left of 1 erasure\n")
    assert run("erase", "--finish").stdout == "no erasure waits to be finished\n"
    assert b"zeppelin" not in b"".join(path.read_bytes() for path in tmp_path.glob("memoranda.db*"))
