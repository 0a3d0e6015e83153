"""Statements about somebody by commands alone: kept once, forgotten, always in mind, put before a model unasked."""

import json
import re

import pytest

from memoranda import MemoryEngine
from memoranda.testing import BrokenEmbedder

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
COFFEE = ("keep", "Ana takes her coffee black.", "--about", "person:Ana")


@pytest.mark.behaviour("W45")
@BACKENDS
def test_answers_are_the_sentences_of_an_agents_tools(memoranda, answer):
    first = answer(*COFFEE)
    name = first["memory"]["short_id"]

    assert (first["answer"], first["outcome"]) == (f"Remembered [{name}].", "remembered")
    assert memoranda(*COFFEE).stdout == f"Already remembered [{name}].\n"
    assert memoranda(*COFFEE, "--core").stdout == f"Updated [{name}].\n"
    changed = answer("keep", "Ana drinks tea now.", "--about", "person:Ana", "--id", name)
    assert changed["answer"] == f'Updated [{name}]; it said: "Ana takes her coffee black.".'
    assert (changed["outcome"], changed["was"]) == ("updated", "Ana takes her coffee black.")
    assert memoranda("forget", name).stdout == f'Forgotten [{name}]; it said: "Ana drinks tea now.".\n'
    assert answer(*COFFEE)["outcome"] == "remembered"


@pytest.mark.behaviour("W45")
def test_no_sentence_lets_a_memory_speak_to_the_terminal(run):
    name = run("keep", "\x1b[31mred\u202e", "--about", "everyone").stdout.removeprefix("Remembered [")[:8]

    answers = [run("keep", "Blue.", "--about", "everyone", "--id", name).stdout, run("forget", name).stdout]

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", "".join(answers))


@BACKENDS
def test_statements_come_from_standard_input(answer):
    kept = answer("keep", "-", input='{"content": "Bo is on leave.", "about": "person:Bo", "core": true}')
    changed = {"content": "Bo is back.", "about": "person:Bo", "id": kept["memory"]["short_id"]}

    again = answer("keep", "-", input=json.dumps(changed))

    assert (again["outcome"], again["memory"]["core"], again["was"]) == ("updated", True, "Bo is on leave.")
    assert answer("keep", "-", "--about", "person:Cy", input='"Cy is on leave."')["outcome"] == "remembered"


@BACKENDS
def test_core_memories_are_listed_and_not_repeated_among_the_relevant_ones(answer):
    answer("keep", "The dog of Ana is called Milo.", "--about", "person:Ana")
    answer("keep", "Ana has a dog and lives in Porto.", "--about", "person:Ana", "--core", "--importance", "3")
    answer("keep", "Answers to Ana are short.", "--about", "person:Ana", "--core", "--importance", "9")

    core = answer("core", "--person", "Ana")["memories"]
    found = answer("relevant", "What is the dog of Ana called?", "--person", "Ana")["hits"]

    assert [memory["importance"] for memory in core] == [9, 3]
    assert [memory["importance"] for memory in answer("core", "--limit", "1")["memories"]] == [9]
    assert [hit["memory"]["content"] for hit in found] == ["The dog of Ana is called Milo."]


@BACKENDS
def test_the_axes_of_the_scope_decide_what_comes_up(answer):
    def keep(text, *options):
        answer("keep", text, *options, "--core", "--preset", "statements")

    def core(*options, code=0):
        found = answer("core", *options, "--preset", "statements", code=code)["memories"]
        return {memory["content"] for memory in found}

    answer("spaces", "create", "family")
    keep("Dinner is at eight.", "--about", "everyone")
    keep("Ana sings.", "--about", "person:Ana")
    keep("Bo paints.", "--about", "person:Bo")
    keep("Be brief.", "--about", "agent:scribe")
    keep("This is about the boat.", "--about", "thread:t1")
    keep("The key is under the stone.", "--about", "everyone", "--space", "family", "--project", "Boat")

    assert core() == {"Dinner is at eight."}
    assert core("--person", "Ana", "--person", "Bo") == {"Dinner is at eight.", "Ana sings.", "Bo paints."}
    assert core("--agent", "scribe", "--thread", "t1") == {
        "Dinner is at eight.",
        "Be brief.",
        "This is about the boat.",
    }
    assert core("--space", "family") == core("--space", "family", "--project", "boat")
    assert core("--space", "family") == {"The key is under the stone."}
    assert core("--space", "family", "--project", "car", code=1) == set()


@BACKENDS
def test_the_nearest_memory_is_shown_whatever_the_distance(memoranda, answer):
    answer("db", "upgrade")
    assert memoranda("nearest", "anything").stdout == "(no memories found)\n"
    answer("write", "The lamp is green.", "--project", "house")
    answer("write", "The boat is moored at the north pier.")

    assert answer("nearest", "the", "lamp", "is", "green", "now")["hit"]["memory"]["content"] == "The lamp is green."
    assert answer("nearest", "something else entirely")["hit"] is not None
    assert "north pier" in memoranda("nearest", "the lamp is green", "--project", "boat").stdout


def test_a_hook_that_finds_no_store_fails_no_turn_and_makes_none(run, tmp_path):
    result = run("relevant", "tea", "--url", "sqlite:///later.db")

    assert result.exit_code == 0
    assert result.stdout.startswith("(degraded: There is no database file at this address yet")
    assert not list(tmp_path.iterdir())


def test_a_hook_without_tables_is_told_what_to_type(run, blank_postgres_url):
    result = run("relevant", "tea", "--url", blank_postgres_url)

    assert result.exit_code == 0
    assert result.stdout.startswith("(degraded: The database has no Memoranda tables yet: run `memoranda db upgrade`.)")


def test_a_hook_that_is_called_wrongly_is_refused(run):
    assert run("relevant", "tea", "--preset", "strict").exit_code == 2
    assert run("relevant", "tea", "--url", "notes.txt").exit_code == 2


@BACKENDS
def test_memories_without_a_vector_get_one(memoranda, answer, backend):
    answer("write", "The lamp is green.")
    assert memoranda("backfill").stdout == "every memory has a vector\n"

    down = BrokenEmbedder(name="hash/words", dimensions=512)
    with MemoryEngine(backend.url, embedder=down, background="off") as engine:
        engine.persona("trader", user="ana").memories.write_many(["The lamp is blue.", "The lamp is red."])

    assert memoranda("backfill").stdout == "2 memories had no vector: now every memory has one\n"
    assert answer("backfill") == {"queued": 0, "left": []}
