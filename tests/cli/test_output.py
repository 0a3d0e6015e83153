"""What is printed: goldens of the tables and documents, at 80 columns and through a pipe."""

import json
import re

import pytest

from memoranda.cli.output import jsonable, one_line, plain
from memoranda.records import Memory, MemoryRecord


def identified(result):
    """Return the short id that an answer names."""
    return result.stdout.partition("[")[2].partition("]")[0]


@pytest.fixture
def ids(run):
    """Two memories of a store in this folder, the second one correcting the first."""
    march = ("The March release went out on the 12th.", "--event-time", "2025-03-12", "--category", "project")
    old = identified(run("write", *march))
    new = run("supersede", old, "The March release went out on the 14th.", "--event-time", "2025-03-20")
    return old, identified(new)


def lines(result):
    return [line.rstrip() for line in result.stdout.rstrip().splitlines()]


def test_a_list_is_a_line_a_memory_cut_to_the_width(run, ids):
    run("write", "A long note " + "about nothing much " * 20, "--day", "2025-03-21")

    head, rule, first, second = lines(run("list"))

    assert head == "id         day          imp   kind       memory"
    assert set(rule) == {"─"}
    assert re.fullmatch(r"\w{8}   2025-03-21   5     semantic   A long note about nothing much about n…", first)
    assert second == f"{ids[1]}   2025-03-20   5     project    The March release went out on the 14th."


@pytest.mark.parametrize(
    ("width", "head"),
    [
        ("70", "id         day          imp   kind      memory"),
        ("52", "id         day          kind"),
        ("40", "id"),
        ("24", "id"),
    ],
)
def test_a_narrow_list_leaves_out_the_rest_before_the_text(run, ids, width, head):
    first, _, memory = lines(run("list", COLUMNS=width))

    assert first.startswith(head)
    assert first.endswith("   memory")
    assert "The March" in memory
    assert "The March" in run("history", ids[0], COLUMNS="40").stdout
    assert "The March" in run("recall", "March", "release", COLUMNS="40").stdout


def test_a_hit_stands_with_its_confidence_and_reasons(run, ids):
    _, _, hit, *reasons = lines(run("recall", "when did the release go out"))

    assert re.fullmatch(rf"{ids[1]}   0\.\d\d   2025-03-20   The March release went out on the 14th\.", hit)
    assert reasons[0].lstrip().startswith("says the word release")


@pytest.mark.behaviour("W12")
def test_every_hit_begins_with_the_id_that_the_next_command_takes(run):
    written = {identified(run("write", f"Note {i} on the release " + "and what it needs " * 8)) for i in range(3)}

    for command in (["recall", "notes on the release"], ["relevant", "notes on the release"]):
        _, _, *hits = lines(run(*command))
        # A line that goes on with the hit above it has nothing in the column of the ids.
        named = [line.split()[0] for line in hits if not line.startswith(" " * 8)]
        assert set(named) == written
        assert len(named) == 3
    for identifier in named:
        assert run("delete", identifier).exit_code == 0


def test_a_history_says_when_each_held(run, ids):
    assert lines(run("history", ids[0]))[2:] == [
        f"{ids[0]}   superseded   2025-03-12   2025-03-20   The March release went out on",
        " " * 50 + "the 12th.",
        f"{ids[1]}   active       2025-03-20                The March release went out on",
        " " * 50 + "the 14th.",
    ]


def test_get_wraps_the_text_and_cuts_nothing(run):
    text = "word " * 60 + "end"

    shown = run("get", identified(run("write", text))).stdout

    assert " ".join(shown.split()).count("word") == 60
    assert max(map(len, shown.splitlines())) <= 80


def test_stats_are_numbers(run, ids):
    assert lines(run("stats")) == [
        "memories      2",
        "by status     active 1, superseded 1",
        "by type       semantic 2",
        "by category   project 2",
        "with vectors  2",
        "days          2025-03-12 to 2025-03-20",
        "embedder      hash/words@512",
    ]


def test_the_keys_of_every_document_stay(run, ids):
    def keys(*words):
        return list(json.loads(run(*words, "--json").stdout))

    recall = json.loads(run("recall", "the release", "--json").stdout)
    assert list(recall) == ["query", "hits", "abstained", "reason", "degraded"]
    assert list(recall["hits"][0]) == ["rank", "kind", "score", "confidence", "legs", "reasons", "memory"]
    assert list(recall["hits"][0]["memory"]) == list(Memory.__dataclass_fields__)
    assert keys("recall", "xyzzy") == list(recall)
    assert keys("write", "tea") == ["stored", "already_there", "degraded", "memories"]
    assert keys("get", ids[0]) == list(MemoryRecord.__dataclass_fields__)
    assert keys("get", "zzzzzzzz") == keys("get", ids[0])
    assert keys("list") == ["memories", "next"]
    assert keys("history", ids[0]) == ["memories"]
    assert keys("supersede", ids[1], "Never mind.") == ["memory", "created", "superseded", "degraded"]
    assert keys("mark", ids[0], "expired") == ["memory"]
    assert keys("undo", ids[0]) == ["memory", "retracted"]
    assert keys("relevant", "the release") == list(recall)
    assert keys("nearest", "the release") == ["hit"]
    assert keys("keep", "Ana likes tea.", "--about", "person:Ana") == ["answer", "outcome", "memory", "was", "degraded"]
    assert keys("forget", ids[0]) == ["answer", "memory"]
    assert keys("core") == ["memories"]
    assert keys("backfill") == ["queued", "left"]
    assert keys("spaces", "list") == ["spaces"]
    assert keys("projects", "members", "apollo", "--tenant", "acme") == ["project", "members"]
    assert keys("stats")[:3] == ["memories", "by_status", "by_type"]


def test_a_memory_is_shown_as_text_and_never_obeyed(run):
    text = "\x1b[31mred\x1b[0m \x9b2J [bold]loud[/bold] :smile: \u202eesrever"
    shown = one_line(text)

    identifier = identified(run("write", text))

    assert shown == "\ufffd[31mred\ufffd[0m \ufffd2J [bold]loud[/bold] :smile: \ufffdesrever"
    for command in (
        ["list"],
        ["get", identifier],
        ["history", identifier],
        ["recall", "loud smile", "--include-inactive"],
    ):
        output = run(*command).stdout
        assert "[bold]loud[/bold]" in " ".join(output.split())
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", output)


def test_lines_and_tabs_survive_where_a_text_is_shown_whole():
    assert plain("one\r\n\ttwo\rthree") == "one\n\ttwo\ufffdthree"


def test_values_become_json():
    from datetime import UTC, date, datetime
    from uuid import UUID

    from memoranda.reports import Statistics

    document = jsonable(Statistics(memories=2, by_status={"active": 2}, first_day=date(2025, 3, 1)))
    assert (document["first_day"], document["by_status"], document["last_day"]) == ("2025-03-01", {"active": 2}, None)
    moment = datetime(2025, 3, 1, tzinfo=UTC)
    assert jsonable((UUID(int=7), moment)) == ["00000000-0000-0000-0000-000000000007", "2025-03-01T00:00:00+00:00"]
