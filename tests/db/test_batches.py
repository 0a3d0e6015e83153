"""A batch may be of any size: databases that take so many parameters in a statement must not show."""

import sqlite3
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Engine, event

from memoranda.db.database import Database
from memoranda.db.dialects.base import EngineOptions
from memoranda.db.queries import inserting
from memoranda.drafts import Setting, draft
from memoranda.ids import new_id, new_short_id
from memoranda.presets import STANDARD
from memoranda.scope import Scope
from memoranda.text import Tokenizer

SETTING = Setting(
    scope=Scope(tenant="acme", persona="main", user="ana"),
    policies=STANDARD,
    tokenizer=Tokenizer("english"),
    zone=UTC,
    now=datetime(2026, 1, 1, tzinfo=UTC),
)


def drafts(count):
    """Return what drafting so many short memories comes to, at a tenth of the time."""
    one = draft("Parcel", {}, SETTING)
    made = []
    for n in range(count):
        id = new_id()
        made.append(
            replace(
                one,
                memory=replace(one.memory, id=id, short_id=new_short_id(), content=f"Parcel {n}"),
                source=one.source._replace(id=new_id()),
                dedupe_key=f"{n:032x}",
            )
        )
    return made


LIMIT = 999  # what SQLite took before it was 32,766; against the 65,535 of Postgres this would last a minute


@contextmanager
def limited():
    """Let SQLite take few parameters a statement."""

    def limit(connection, _):
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, LIMIT)

    event.listen(Engine, "connect", limit)
    yield
    event.remove(Engine, "connect", limit)


def test_more_known_rows_than_a_statement_takes_parameters_are_found_again():
    count = LIMIT + 100
    with limited():
        database = Database("sqlite://", schema="memoranda", options=EngineOptions())
        database.setup()
    empty = [None] * (count + 1)

    first = database.run(inserting.insert, drafts(count), empty[:count], None, SETTING)
    # and one that is new, last by its key
    again = database.run(inserting.insert, drafts(count + 1), empty, None, SETTING)
    database.close()

    assert [created for _, created in first] == [True] * count
    assert [created for _, created in again] == [False] * count + [True]
    assert [memory.id for memory, _ in again[:count]] == [memory.id for memory, _ in first]
    assert [memory.content for memory, _ in again] == [f"Parcel {n}" for n in range(count + 1)]
