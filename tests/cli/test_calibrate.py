"""`memoranda calibrate`: a histogram and the effect for people, one document for scripts."""

import json

import pytest

THINGS = (
    "keeps the spare bicycle key under the blue flowerpot",
    "moved the heron cluster to the Dublin machine room",
    "booked a dentist appointment with Doctor Silva",
    "found thirty missing invoices during the budget review",
    "planted tomatoes behind the garden shed",
)
FACTS = [
    f"{person} {thing}." for person in ("Ana", "Bob", "Cleo", "Dora", "Edgar", "Goran", "Hana") for thing in THINGS
]


@pytest.fixture
def filled(run):
    assert run("write", "-", input=json.dumps(FACTS)).exit_code == 0
    return run


def test_it_prints_a_histogram_and_what_the_floor_would_do(filled):
    result = filled("calibrate")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["confidence", "with", "an", "answer", "without", "one"]
    assert sum("< floor" in line for line in lines) == 1
    assert "█" in result.stdout
    for word in ("35, each with its answer and without", "AUROC", "floor now", "0.300", "new floor", "distance"):
        assert word in result.stdout
    assert "Nothing was changed" in lines[-1]
    assert all(len(line) <= 80 for line in lines)
    assert result.stderr == ""


def test_apply_records_the_floor_for_the_commands_that_follow(filled):
    found = json.loads(filled("calibrate", "--apply", "--json").stdout)

    assert found["applied"]
    assert found["questions"] == 35
    assert sum(found["answered_histogram"]) == sum(found["absent_histogram"]) == 35
    assert found["floor_before"] == 0.3
    again = json.loads(filled("calibrate", "--json").stdout)
    assert (again["floor_before"], again["floor"], again["applied"]) == (found["floor"], found["floor"], False)
    assert "holds from now on" in filled("calibrate", "--apply").stdout


def test_a_store_too_small_to_measure_is_refused(run):
    run("write", "-", input=json.dumps(FACTS[:5]))

    result = run("calibrate")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert "needs 30 memories" in result.stderr
    assert "finds 5 here" in result.stderr


@pytest.mark.parametrize("sample", ["0", "12", "many"])
def test_a_sample_that_cannot_be_used_is_refused(filled, sample):
    result = filled("calibrate", "--sample", sample)

    assert result.exit_code == 2
    assert "sample" in result.stderr


def test_words_alone_are_measured_as_well(run):
    run("write", "-", "--embedder", "none", input=json.dumps(FACTS))

    result = run("calibrate", "--embedder", "none")

    assert result.exit_code == 0
    assert "found by words only" in result.stdout
    assert "distance" not in result.stdout
