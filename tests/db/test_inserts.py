"""Rows go to the database one by one or many at once: what is stored must not show which."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Date, Uuid, select
from sqlalchemy.dialects import sqlite

from memoranda.db.database import Database
from memoranda.db.dialects.base import EngineOptions
from memoranda.db.dialects.sqlite_inserts import _AT_ONCE, PackedVector
from memoranda.db.queries import inserting
from memoranda.db.types import UTCDateTime
from memoranda.drafts import Setting, draft
from memoranda.fields import MemoryFields
from memoranda.ids import new_id, new_short_id
from memoranda.presets import STANDARD
from memoranda.scope import Scope
from memoranda.text import Tokenizer, count_terms, join_terms

NOW = datetime(2026, 1, 1, 12, 30, 5, 123456, tzinfo=UTC)
MODEL = "bench/given@3"
FIELDS: tuple[MemoryFields, ...] = (
    {},
    {"title": "Höhe", "category": "travel", "position": 70_000, "session": "talk", "core": True},
    {"event_time": NOW, "valid_from": NOW, "day": date(2025, 5, 6), "metadata": {"when": NOW, "deep": [1.5, None]}},
)


def setting(persona):
    return Setting(
        scope=Scope(tenant="acme", persona=persona, user="ana"),
        policies=STANDARD,
        tokenizer=Tokenizer("english"),
        zone=UTC,
        now=NOW,
    )


@pytest.fixture
def database(backend):
    database = Database(backend.url, schema="memoranda", options=EngineOptions())
    yield database
    database.close()


def drafts(persona, count):
    return [draft(f"Parcel {n} 包裹", FIELDS[n % len(FIELDS)], setting(persona)) for n in range(count)]


def vectors(count):
    return [[n / 7, -1.5, 1e-30] if n % 4 else None for n in range(count)]


def stored(database, persona):
    """Return all there is of a persona's memories, but their ids."""

    def rows(conn, tables):
        m, v, s = tables.memories, tables.vectors, tables.sources
        joined = m.outerjoin(v, v.c.owner == m.c.id).join(s, s.c.memory_id == m.c.id)
        left = {"n", "id", "short_id", "persona", "owner", "memory_id", "cells", "vector", "search"}
        columns = [c for c in (*m.c, *v.c, *s.c) if c.name not in left]
        found = conn.execute(select(*columns, v.c.vector).select_from(joined).where(m.c.persona == persona))
        return sorted(
            repr((*row[:-1], None if row[-1] is None else [float(number) for number in row[-1]])) for row in found
        )

    return database.read(rows)


def test_rows_are_the_same_one_by_one_and_all_at_once(database):
    many = zip(drafts("single", 24), vectors(24), strict=True)
    for item, vector in many:
        database.run(inserting.insert, [item], [vector], MODEL, setting("single"))
    found = database.run(inserting.insert, drafts("batch", 24), vectors(24), MODEL, setting("batch"))

    assert all(created for _, created in found)
    assert stored(database, "batch") == stored(database, "single")
    assert len(stored(database, "batch")) == 24


def test_known_rows_of_a_batch_are_left_out_and_the_others_stored(database):
    me = setting("main")
    first = database.run(inserting.insert, drafts("main", 30)[10:20], vectors(10), MODEL, me)
    twice = drafts("main", 30) + drafts("main", 5)
    found = database.run(inserting.insert, twice, vectors(35), MODEL, me)

    assert [created for _, created in found] == [True] * 10 + [False] * 10 + [True] * 10 + [False] * 5
    assert [memory.id for memory, _ in found[10:20]] == [memory.id for memory, _ in first]
    assert [memory.id for memory, _ in found[30:]] == [memory.id for memory, _ in found[:5]]
    assert len(stored(database, "main")) == 30


def test_a_short_id_that_is_taken_costs_a_batch_nothing_but_another(database):
    me = setting("main")
    [(taken, _)] = database.run(inserting.insert, drafts("main", 1), [None], MODEL, me)
    batch = drafts("main", 13)[1:]
    batch[5] = replace(batch[5], memory=replace(batch[5].memory, short_id=taken.short_id))
    found = database.run(inserting.insert, batch, vectors(12), MODEL, me)

    assert all(created for _, created in found)
    assert len({memory.short_id for memory, _ in found} | {taken.short_id}) == 13


def test_new_ids_use_all_their_random_bits():
    ids, short = [new_id() for _ in range(256)], [new_short_id() for _ in range(256)]
    bits = [sum(id.int >> place & 1 for id in ids) for place in range(62)]
    assert all(64 < count < 192 for count in bits)  # eight standard deviations
    assert all(isinstance(id, UUID) for id in ids) and len({letter for id in short for letter in id}) == 32


@given(st.lists(st.from_regex("[a-z0-9]{1,90}", fullmatch=True)))
def test_terms_are_counted_where_they_stand_joined(terms):
    assert count_terms(join_terms(terms)) == len(join_terms(terms).split()) == len(terms)


MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]))
VALUES = {
    UTCDateTime(): MOMENTS.filter(lambda moment: 1 < moment.year < 9999),
    Uuid(): st.uuids(),
    Date(): st.dates(),
    PackedVector(): st.lists(st.floats(width=32, allow_nan=False), max_size=5),
}


@given(data=st.data(), kind=st.sampled_from(list(VALUES)))
def test_what_goes_to_sqlite_at_once_is_what_the_types_make_of_it(data, kind):
    value, dialect = data.draw(VALUES[kind]), sqlite.dialect()
    made = kind.dialect_impl(dialect).bind_processor(dialect)(value)
    assert _AT_ONCE[type(kind)](value) == (made if isinstance(made, str) else bytes(made))


def test_a_moment_without_a_zone_goes_to_no_database():
    with pytest.raises(TypeError, match="naive"):
        _AT_ONCE[UTCDateTime](datetime(2026, 1, 1))
