"""The records that the engine hands out: frozen, quiet about texts, easy to read."""

import dataclasses
from datetime import UTC, date, datetime
from uuid import UUID

import pytest

from memoranda.records import Memory, MemoryHit, MemoryRecord, MemoryVersion, Recall, Source, Written
from memoranda.reports import Statistics

SECRET = "a text that no log may show"
MOMENT = datetime(2026, 5, 8, tzinfo=UTC)
MEMORY = Memory(
    id=UUID(int=1),
    short_id="abcdefgh",
    content=SECRET,
    title=SECRET,
    type="semantic",
    status="active",
    metadata={"x": SECRET},
    day=date(2026, 5, 8),
    created_at=MOMENT,
    updated_at=MOMENT,
)
SOURCE = Source(id=UUID(int=2), memory_id=MEMORY.id, type="manual", excerpt=SECRET, created_at=MOMENT)
VERSION = MemoryVersion(memory_id=MEMORY.id, version=1, change="mark", changed_by="", changed_at=MOMENT, memory=MEMORY)
HIT = MemoryHit(memory=MEMORY, score=1.5, confidence=0.5, legs={"text": 1.0})
EVERY = [
    MEMORY,
    SOURCE,
    VERSION,
    MemoryRecord(memory=MEMORY, sources=(SOURCE,), supersedes=(MEMORY,), superseded_by=MEMORY, versions=(VERSION,)),
    Written(memory=MEMORY, created=True, superseded=MEMORY),
    HIT,
    Recall(hits=(HIT,), nearest=(HIT,)),
    Statistics(memories=1, by_type={"semantic": 1}),
]
by_name = pytest.mark.parametrize("record", EVERY, ids=lambda record: type(record).__name__)


@by_name
def test_a_repr_shows_no_text(record):
    assert SECRET not in repr(record)


@by_name
def test_a_record_is_frozen_and_hashable(record):
    assert isinstance(hash(record), int)
    for field in dataclasses.fields(record):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, field.name, None)


@by_name
def test_a_record_takes_no_attribute_of_another_name(record):
    with pytest.raises((AttributeError, TypeError)):
        record.colour = "red"


def test_equal_records_are_equal():
    assert dataclasses.replace(MEMORY) == MEMORY and hash(dataclasses.replace(MEMORY)) == hash(MEMORY)
    assert dataclasses.replace(MEMORY, content="other") != MEMORY


def test_a_write_has_the_ids_of_its_memory():
    written = Written(memory=MEMORY, created=True)
    assert (written.id, written.short_id) == (MEMORY.id, "abcdefgh")


def test_a_recall_is_a_sequence_of_hits():
    other = dataclasses.replace(HIT, score=0.5)
    recall = Recall(hits=(HIT, other))
    assert len(recall) == 2 and list(recall) == [HIT, other] and bool(recall)
    assert recall[0] is HIT and recall[-1] is other and list(recall[1:]) == [other]
    assert HIT in recall and recall.index(other) == 1 and list(reversed(recall)) == [other, HIT]
    with pytest.raises(IndexError):
        recall[2]
    empty = Recall(abstained=True, reason="nothing near", nearest=(HIT,))
    assert len(empty) == 0 and not empty and list(empty) == []
