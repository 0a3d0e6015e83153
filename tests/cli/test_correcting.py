"""Corrections by commands alone: marked, taken back, looked at as of a day, deleted one at a time."""

import pytest

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)


@pytest.fixture
def written(answer):
    """Write a memory and return its short id."""
    return lambda text, *options: answer("write", text, *options)["memories"][0]["short_id"]


@BACKENDS
def test_a_memory_is_marked_and_holds_again(memoranda, answer, written):
    old, new = written("The lamp is green."), written("The lamp is blue.")

    assert memoranda("mark", old, "superseded", "--by", new).stdout == f"marked [{old}] superseded\n"
    record = answer("get", old)
    assert (record["memory"]["status"], record["superseded_by"]["short_id"]) == ("superseded", new)
    assert memoranda("undo", old).stdout == f"[{old}] holds again\n"
    assert answer("get", old)["memory"]["status"] == "active"
    assert answer("mark", old, "expired")["memory"]["status"] == "expired"
    assert memoranda("mark", old, "lost").exit_code == 2


@BACKENDS
def test_a_correction_is_taken_back(memoranda, answer, written):
    old = written("The lamp is green.")
    new = answer("supersede", old, "The lamp is blue.")["memory"]["short_id"]

    assert memoranda("undo", old).stdout == f"[{old}] holds again, retracted [{new}]\n"
    assert [memory["short_id"] for memory in answer("list")["memories"]] == [old]
    again = memoranda("undo", old)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "there is nothing to undo" in again.stderr


@BACKENDS
def test_get_as_of_a_day_gives_what_held_its_successor_and_why_it_changed(memoranda, answer, written):
    old = written("The spare key is in the blue drawer.", "--event-time", "2024-01-10")
    origin = ("--source", "user_message", "--channel", "chat", "--excerpt", "I moved the spare key")
    moved = answer("supersede", old, "The spare key is in the red drawer.", "--event-time", "2025-01-10", *origin)
    new = moved["memory"]["short_id"]

    then = answer("get", new, "--as-of", "2024-06-01")
    assert (then["memory"]["short_id"], then["memory"]["content"]) == (old, "The spare key is in the blue drawer.")
    assert then["superseded_by"]["short_id"] == new
    assert then["change"]["excerpt"] == "I moved the spare key"
    shown = " ".join(memoranda("get", new, "--as-of", "2024-06-01").stdout.split())
    assert f"replaced by {new} The spare key is in the red drawer. " in shown
    assert "changed by user_message via chat: I moved the spare key" in shown
    assert answer("get", old, "--as-of", "2025-06-01")["memory"]["short_id"] == new
    assert answer("get", old, "--as-of", "2023-01-01", code=1)["memory"] is None
    assert memoranda("get", old, "--as-of", "2023-01-01").stdout == "(not found)\n"


@pytest.mark.behaviour("W10")
@pytest.mark.parametrize("command", ["delete", "forget"])
@BACKENDS
def test_memories_are_taken_away_one_at_a_time(memoranda, answer, written, command):
    first, second = written("The lamp is green."), written("The boat is moored at the north pier.")

    for ids in ((first, second), (f"{first},{second}",), (f'["{first}", "{second}"]',), ("--", first, second), ("*",)):
        assert memoranda(command, *ids).exit_code in (1, 2)
        assert answer("stats")["by_status"] == {"active": 2}

    assert memoranda(command, first).exit_code == 0
    assert memoranda(command, first).exit_code == 1
    assert answer("stats")["by_status"] == {"active": 1, "retracted": 1}
