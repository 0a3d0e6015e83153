"""A memory's life by commands alone, on a SQLite file and on Postgres."""

import json

import pytest

from memoranda import MemoryEngine

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)


def short_id(written):
    [memory] = written["memories"]
    return memory["short_id"]


@BACKENDS
def test_a_memory_is_written_corrected_and_recalled(memoranda, answer):
    old = short_id(answer("write", "The March release went out on the 12th.", "--category", "project"))
    corrected = answer("supersede", old, "The March release went out on the 14th.", "--importance", "9")
    new = corrected["memory"]["short_id"]

    assert corrected["superseded"]["short_id"] == old
    assert corrected["memory"]["category"] == "project"
    [hit] = answer("recall", "when", "did", "the", "release", "go", "out")["hits"]
    assert (hit["rank"], hit["memory"]["short_id"]) == (1, new)
    assert hit["reasons"]

    record = answer("get", old)
    assert record["memory"]["status"] == "superseded"
    assert record["superseded_by"]["short_id"] == new
    assert [memory["short_id"] for memory in answer("history", new)["memories"]] == [old, new]
    assert [memory["short_id"] for memory in answer("list")["memories"]] == [new]
    assert answer("stats")["by_status"] == {"active": 1, "superseded": 1}

    assert memoranda("delete", new).stdout == f"deleted [{new}]; it stays in the history: memoranda history {new}\n"
    assert answer("recall", "release", code=1)["hits"] == []
    assert [memory["status"] for memory in answer("history", new)["memories"]] == ["superseded", "retracted"]


@BACKENDS
def test_recall_as_of_an_earlier_day_gives_what_held_then(answer):
    old = short_id(answer("write", "The spare key is in the blue drawer.", "--event-time", "2024-01-10"))
    answer("supersede", old, "The spare key is in the red drawer.", "--event-time", "2025-01-10")

    def asked(*filters):
        return [hit["memory"]["content"] for hit in answer("recall", "where is the spare key?", *filters)["hits"]]

    assert asked() == ["The spare key is in the red drawer."]
    assert asked("--as-of", "2024-06-01") == ["The spare key is in the blue drawer."]
    assert set(asked("--include-inactive")) == {
        "The spare key is in the red drawer.",
        "The spare key is in the blue drawer.",
    }


@BACKENDS
def test_filters_narrow_a_recall_and_a_list(answer):
    answer(
        "write", "Tea is in the left cupboard.", "--type", "semantic", "--category", "kitchen", "--day", "2025-03-01"
    )
    answer("write", "Tea was spilled on the map.", "--type", "episodic", "--category", "mishap", "--day", "2025-03-02")
    answer("write", "Tea is served at four.", "--type", "procedural", "--project", "Reception")

    def contents(*words):
        found = answer(*words)
        memories = found["memories"] if "memories" in found else [hit["memory"] for hit in found["hits"]]
        return {memory["content"].split()[2] + memory["content"].split()[3] for memory in memories}

    for command in (["list"], ["recall", "tea"]):
        assert contents(*command, "--type", "episodic") == {"spilledon"}
        assert contents(*command, "--type", "semantic", "--type", "procedural") == {"inthe", "servedat"}
        assert contents(*command, "--category", "kitchen", "--category", "mishap") == {"inthe", "spilledon"}
        assert contents(*command, "--date", "2025-03-01") == {"inthe"}
        assert contents(*command, "--project", "reception", "--type", "procedural") == {"servedat"}
        assert len(contents(*command, "--limit", "1")) == 1


@BACKENDS
def test_pages_follow_each_other(answer):
    for i in range(5):
        answer("write", f"note number {i}", "--importance", str(i + 1))

    first = answer("list", "--limit", "3", "--order", "importance")
    second = answer("list", "--limit", "3", "--order", "importance", "--before", first["next"])

    assert [memory["importance"] for memory in first["memories"] + second["memories"]] == [5, 4, 3, 2, 1]
    assert second["next"] is None


@BACKENDS
def test_every_field_of_a_memory_can_be_given(answer, backend):
    with MemoryEngine(backend.url) as engine:
        engine.persona("main", user="ana").projects.add_member("Reception", "ana")
    fields = {
        "type": "procedural",
        "category": "kitchen",
        "title": "Tea",
        "importance": 9,
        "confidence": 7,
        "day": "2025-03-01",
        "event_time": "2025-03-01T08:00:00+00:00",
        "valid_from": "2025-03-01T09:00:00+00:00",
        "valid_to": "2035-03-01T09:00:00+00:00",
        "about": "person:Ana",
        "project": "Reception",
        "audience": "project",
        "session": "s1",
        "position": 4,
    }
    options = [part for name, value in fields.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    origin = ["--source", "user_message", "--channel", "chat", "--excerpt", "tea, as ever"]
    metadata = ["--core", "--metadata", '{"cups": [1, 2]}']
    written = answer("write", "Boil, wait, pour.", *metadata, *options, *origin, "--user", "ana")

    record = answer("get", short_id(written), "--user", "ana")

    assert {name: record["memory"][name] for name in fields} == fields
    assert record["memory"]["core"] is True
    assert record["memory"]["metadata"] == {"cups": [1, 2]}
    [source] = record["sources"]
    assert (source["type"], source["channel"], source["excerpt"]) == ("user_message", "chat", "tea, as ever")


@BACKENDS
def test_personas_users_and_tenants_see_their_own(memoranda, answer):
    written = answer("write", "The safe opens with a key.", "--user", "ana")

    assert answer("recall", "what opens the safe?", MEMORANDA_USER="ana")["hits"]
    for other in (
        ["--user", "bo"],
        [],
        ["--user", "ana", "--persona", "trader"],
        ["--user", "ana", "--tenant", "acme"],
    ):
        assert memoranda("recall", "what opens the safe?", *other).exit_code == 1
        assert memoranda("get", short_id(written), *other).exit_code == 1


@pytest.mark.blank
@BACKENDS
def test_the_tables_are_upgraded_and_checked(memoranda, answer):
    revision = answer("db", "upgrade")["revision"]

    assert answer("db", "upgrade") == {"applied": [], "revision": revision}
    assert answer("db", "current") == {"revision": revision, "head": revision}
    assert answer("db", "check") == {"state": "up to date", "revision": revision, "head": revision}
    assert answer("db", "index") == {"index": False}
    assert memoranda("db", "check").stdout == f"up to date: {revision}\n"


def test_a_file_that_is_not_there_has_no_tables_and_is_not_made(run, tmp_path):
    place = ("--url", "sqlite:///later.db")

    current = run("db", "current", "--json", *place)
    assert (current.exit_code, json.loads(current.stdout)["revision"]) == (1, None)
    check = run("db", "check", "--json", *place)
    assert (check.exit_code, json.loads(check.stdout)["state"]) == (3, "missing")
    assert run("db", "current").exit_code == 1
    assert not list(tmp_path.iterdir())

    assert run("db", "upgrade", *place).exit_code == 0
    assert run("db", "check", *place).exit_code == 0


def test_a_database_without_tables_is_said_to_have_none(run, blank_postgres_url):
    place = ("--url", blank_postgres_url)

    assert run("db", "current", *place).exit_code == 1
    check = run("db", "check", "--json", *place)
    assert (check.exit_code, json.loads(check.stdout)["state"]) == (3, "missing")
    for command in (["recall", "tea"], ["write", "tea"], ["list"], ["stats"], ["get", "7k2m9xqa"]):
        result = run(*command, *place)
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr == "error: The database has no Memoranda tables yet: run `memoranda db upgrade`.\n"

    assert run("db", "upgrade", *place).exit_code == 0
    assert run("db", "check", *place).exit_code == 0


def test_the_tables_may_live_in_a_schema_of_another_name(run, blank_postgres_url):
    place = ("--url", blank_postgres_url, "--schema", "elsewhere")

    assert run("db", "upgrade", *place).exit_code == 0
    assert run("write", "Tea is served at four.", *place).exit_code == 0
    assert run("db", "check", "--url", blank_postgres_url).exit_code == 3
