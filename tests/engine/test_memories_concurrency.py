"""Many at once: one winner where there can be one, and nothing lost where all may win."""

import random
from typing import Any

import pytest

from memoranda import MemoryEngine
from memoranda.errors import MemoryNotActive, MemoryNotFound


@pytest.fixture
def doors(make_engine, backend):
    """Two ways in: two engines on one database, as two processes have, or one engine where memory is its own."""
    first = make_engine()
    first.persona("main").stats()
    second = first if backend.name == "sqlite-memory" else make_engine()
    return first.persona("main"), second.persona("main")


@pytest.mark.behaviour("W19")
def test_of_two_corrections_at_once_exactly_one_wins(doors, at_once):
    one, two = doors
    for round_ in range(4):
        old = one.memories.write(f"Round {round_} begins.")
        calls = [
            (one.memories, "supersede", old.id, f"Round {round_} went to the first."),
            (two.memories, "supersede", old.short_id, f"Round {round_} went to the second."),
        ]
        answers = at_once(calls)
        lost: list[Any]
        won = [answer for answer in answers if not isinstance(answer, Exception)]
        lost = [answer for answer in answers if isinstance(answer, Exception)]
        assert len(won) == 1 and [type(error) for error in lost] == [MemoryNotActive], answers
        assert lost[0].status == "superseded"
        assert [m.id for m in one.memories.history(old.id)] == [old.id, won[0].id]
        assert len(one.memories.get(old.id).versions) == 1
    assert one.stats().by_status == {"active": 4, "superseded": 4}


@pytest.mark.behaviour("W19")
def test_of_many_corrections_deletions_and_marks_at_once_each_sees_a_whole_row(doors, at_once):
    one, two = doors
    old = one.memories.write("Everyone wants this one.")
    calls: list[tuple[Any, ...]]
    calls = [((one, two)[n % 2].memories, "supersede", old.id, f"Version {n}.") for n in range(6)]
    calls += [((one, two)[n % 2].memories, "delete", old.id) for n in range(3)]
    calls += [(one.memories, "mark", old.id, "expired"), (two.memories, "mark", old.id, "expired")]
    answers = at_once(calls)
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    assert all(isinstance(error, (MemoryNotActive, MemoryNotFound)) for error in errors), errors
    superseded = [answer for answer in answers[:6] if not isinstance(answer, Exception)]
    deleted = [answer for answer in answers[6:9] if not isinstance(answer, Exception)]
    assert len(superseded) <= 1 and len(deleted) >= 1
    marked = [answer for answer in answers[9:] if not isinstance(answer, Exception)]
    record = one.memories.get(old.id)
    changes = len(superseded) + len(deleted) + len(marked)
    assert [version.version for version in record.versions] == list(range(1, changes + 1))
    assert record.memory.status in ("retracted", "expired", "superseded")
    assert one.stats().memories == 1 + len(superseded)


@pytest.mark.behaviour("W19")
def test_writers_of_one_fact_at_once_make_one_row(doors, at_once):
    one, two = doors
    calls = [((one, two)[n % 2].memories, "write", "The  lift is out of order.") for n in range(32)]
    answers = at_once(calls)
    assert not [answer for answer in answers if isinstance(answer, Exception)], answers
    assert sum(answer.created for answer in answers) == 1
    assert len({answer.id for answer in answers}) == 1
    assert one.stats().memories == two.stats().memories == 1
    assert len(one.memories.get(answers[0].id).sources) == 1


def test_writers_of_many_facts_at_once_lose_none(doors, at_once):
    one, two = doors
    calls = [((one, two)[n % 2].memories, "write", f"Fact number {n}.") for n in range(32)]
    answers = at_once(calls)
    assert not [answer for answer in answers if isinstance(answer, Exception)], answers
    assert all(answer.created for answer in answers)
    stats = one.stats()
    assert (stats.memories, stats.vectors) == (32, 32)
    assert {m.content for m in two.memories.list()} == {f"Fact number {n}." for n in range(32)}
    assert len(two.recall("fact number", limit=100)) == 32


def test_batches_that_share_their_facts_meet_without_a_deadlock(doors, at_once):
    facts = [f"Fact number {n}." for n in range(40)]
    calls = [(doors[n % 2].memories, "write_many", facts if n % 2 else facts[::-1]) for n in range(8)]
    answers = at_once(calls)
    assert not [answer for answer in answers if isinstance(answer, Exception)], answers
    assert sum(written.created for answer in answers for written in answer) == 40
    assert doors[0].stats().memories == 40


@pytest.mark.behaviour("W32")
def test_writers_who_introduce_a_project_at_once_agree_on_its_spelling(doors, at_once):
    spellings = ("My-Project", "my_project", "MY PROJECT", "MyProject")
    calls = [
        (doors[n % 2].memories, "write_many", [{"content": f"Note {n}.", "project": spellings[n % 4]}])
        for n in range(12)
    ]
    answers = at_once(calls)
    assert not [answer for answer in answers if isinstance(answer, Exception)], answers
    assert len({written.memory.project for answer in answers for written in answer}) == 1


def test_batches_that_introduce_the_same_projects_meet_without_a_deadlock(doors, at_once):
    projects = [f"project-{n}" for n in range(24)]
    calls = []
    for n in range(4):
        shuffled = random.Random(n).sample(projects, len(projects))
        batch = [{"content": f"Note {n} of {project}.", "project": project} for project in shuffled]
        calls.append((doors[n % 2].memories, "write_many", batch))
    for _ in range(3):
        answers = at_once(calls)
        assert not [answer for answer in answers if isinstance(answer, Exception)], answers
    assert doors[0].stats().memories == 4 * len(projects)


@pytest.mark.blank
def test_engines_that_open_a_new_file_at_once_all_work(backend, at_once, twin):
    if backend.name != "sqlite-file":
        pytest.skip("not applicable: only a file is set up on first use by whoever comes first")
    engines = [twin(MemoryEngine(backend.url, embedder="hash/words")) for _ in range(6)]
    calls = [(engine.persona("main").memories, "write", f"From door {n}.") for n, engine in enumerate(engines)]
    answers = at_once(calls)
    assert not [answer for answer in answers if isinstance(answer, Exception)], answers
    assert engines[0].persona("main").stats().memories == 6
    for engine in engines:
        engine.close()
