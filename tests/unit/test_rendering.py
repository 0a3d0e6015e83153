"""The lines and sentences that people and models read, word for word."""

import dataclasses
from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.records import Memory, MemoryHit, MemoryRecord, Recall, Source, Written
from memoranda.rendering import memory_line, one_line, recall_lines, record_lines, written_line

MOMENT = datetime(2026, 5, 8, 12, tzinfo=UTC)
MEMORY = Memory(
    id=UUID(int=1),
    short_id="abcdefgh",
    content="The launch is on May 3.",
    type="semantic",
    status="active",
    day=date(2026, 5, 8),
    created_at=MOMENT,
    updated_at=MOMENT,
)
OTHER = dataclasses.replace(MEMORY, id=UUID(int=2), short_id="stuvwxyz", content="The launch is on May 9.")
SOURCE = Source(id=UUID(int=3), memory_id=MEMORY.id, type="manual", created_at=MOMENT)

LINES = [
    ({}, "[abcdefgh] (semantic imp=5, 2026-05-08) The launch is on May 3."),
    ({"category": "plan"}, "[abcdefgh] (semantic plan imp=5, 2026-05-08) The launch is on May 3."),
    ({"importance": 10, "type": "episodic"}, "[abcdefgh] (episodic imp=10, 2026-05-08) The launch is on May 3."),
    ({"status": "superseded"}, "[abcdefgh] (semantic imp=5 [superseded], 2026-05-08) The launch is on May 3."),
    ({"project": "apollo"}, "[abcdefgh] (semantic imp=5 @apollo, 2026-05-08) The launch is on May 3."),
    ({"title": "Launch\nday"}, "[abcdefgh] (semantic imp=5, 2026-05-08) Launch day: The launch is on May 3."),
    ({"content": "a\n\n b\tc"}, "[abcdefgh] (semantic imp=5, 2026-05-08) a b c"),
    ({"valid_from": MOMENT}, "[abcdefgh] (semantic imp=5, 2026-05-08 valid 2026-05-08->...) The launch is on May 3."),
    ({"valid_to": MOMENT}, "[abcdefgh] (semantic imp=5, 2026-05-08 valid ...->2026-05-08) The launch is on May 3."),
    (
        {"category": "a b", "status": "expired", "project": "x", "valid_from": MOMENT, "valid_to": MOMENT},
        "[abcdefgh] (semantic a b imp=5 [expired] @x, 2026-05-08 valid 2026-05-08->2026-05-08) The launch is on May 3.",
    ),
]


@pytest.mark.behaviour("R26")
@pytest.mark.parametrize(("changes", "line"), LINES)
def test_a_memory_is_one_line(changes, line):
    memory = dataclasses.replace(MEMORY, **changes)
    assert memory_line(memory) == str(memory) == line


@given(
    st.builds(
        dict,
        content=st.text(),
        title=st.none() | st.text(),
        category=st.none() | st.text(),
        project=st.text(),
    )
)
def test_nothing_breaks_the_line(fields):
    line = memory_line(dataclasses.replace(MEMORY, **fields))
    assert len(line.splitlines()) == 1


def test_a_record_tells_its_chain_and_its_sources():
    source = dataclasses.replace(SOURCE, type="user_message", channel="chat", excerpt="she\nsaid so")
    record = MemoryRecord(
        memory=dataclasses.replace(MEMORY, author="ana", audience="private"),
        sources=(source, SOURCE),
        supersedes=(OTHER, OTHER),
        superseded_by=OTHER,
    )
    assert (
        record_lines(record)
        == str(record)
        == (
            "[abcdefgh] (semantic imp=5, 2026-05-08) The launch is on May 3.\n"
            "author: ana (private)\n"
            "supersedes: stuvwxyz\n"
            "supersedes: stuvwxyz\n"
            "superseded by: stuvwxyz\n"
            "source: user_message via chat -- she said so\n"
            "source: manual"
        )
    )
    assert record_lines(MemoryRecord(memory=MEMORY)) == memory_line(MEMORY)


def test_an_excerpt_is_cut_visibly_at_120_characters():
    for length, shown in ((120, "x" * 120), (121, "x" * 119 + "…"), (5000, "x" * 119 + "…")):
        record = MemoryRecord(memory=MEMORY, sources=(dataclasses.replace(SOURCE, excerpt="x" * length),))
        assert record_lines(record).splitlines()[-1] == f"source: manual -- {shown}"


@pytest.mark.parametrize("channel", ["a\nsource: forged", "a\r\nb", "a\u2028b"])
def test_a_channel_does_not_break_its_line(channel):
    record = MemoryRecord(memory=MEMORY, sources=(dataclasses.replace(SOURCE, channel=channel),))
    assert len(record_lines(record).splitlines()) == 2


def test_a_write_answers_in_a_sentence():
    assert written_line(Written(memory=MEMORY, created=True)) == "saved [abcdefgh]"
    assert written_line(Written(memory=MEMORY, created=False)) == "already there [abcdefgh]"
    assert str(Written(memory=MEMORY, created=True, superseded=OTHER)) == "saved [abcdefgh], superseded [stuvwxyz]"


def test_a_recall_lists_its_hits_or_says_why_there_are_none():
    hits = tuple(MemoryHit(memory=memory, score=1.0, confidence=1.0) for memory in (MEMORY, OTHER))
    both = f"{memory_line(MEMORY)}\n{memory_line(OTHER)}"
    assert recall_lines(Recall(hits=hits)) == str(Recall(hits=hits)) == both
    assert recall_lines(Recall(hits=hits, degraded="words only")) == f"(degraded: words only)\n{both}"
    assert recall_lines(Recall(abstained=True)) == "(no memories found)"
    assert recall_lines(Recall(abstained=True, reason="nothing near")) == "(no memories found: nothing near)"
    assert "May 3" not in recall_lines(Recall(abstained=True, reason="too far", nearest=hits))


@given(st.text())
def test_one_line_is_one_line_and_stays_it(text):
    line = one_line(text)
    assert len(line.splitlines()) <= 1 and one_line(line) == line
    assert line.split() == text.split()
