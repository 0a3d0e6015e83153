"""Selects that the driver executes: what they find must not show who executed them."""

import traceback
from datetime import UTC, date, datetime

import pytest
from sqlalchemy import Float, bindparam, create_engine, event, func, literal, select

from memoranda import MemoryEngine
from memoranda.db.statements import named
from memoranda.errors import StoreError

WHEN = datetime(2026, 1, 1, 12, 30, 5, 123456, tzinfo=UTC)


@pytest.fixture
def database(make_engine):
    engine = make_engine(embedder="none")
    engine.handle.persona("main").memories.write_many(
        [
            {"content": "Parcel 包裹", "title": "Höhe", "event_time": WHEN, "day": date(2025, 5, 6), "core": True},
            {"content": "Parcel two", "metadata": {"when": WHEN, "deep": [1.5, None]}, "session": "s", "position": 7},
        ]
    )
    return engine.handle._database


def both(conn, tables, statement, **values):
    """Return the rows as the driver and as SQLAlchemy give them."""
    driven = tables.statements.rows(conn, str(statement), lambda: statement, values)
    return list(map(tuple, driven)), list(map(tuple, conn.execute(statement, values)))


def test_the_driver_gives_what_sqlalchemy_gives(database):
    def read(conn, tables):
        m = tables.memories
        columns = [column for column in m.c if column.name != "search"]
        found = select(*columns, literal(1.5, Float), func.coalesce(m.c.event_time, m.c.created_at)).order_by(m.c.id)
        return both(conn, tables, found), both(conn, tables, select(tables.settings.c.key, tables.settings.c.value))

    for driven, executed in database.read(read):
        assert len(driven) == 2 and driven == executed


def test_values_are_given_by_name_as_often_as_the_statement_says_it(database):
    def read(conn, tables):
        m = tables.memories
        said = [m.c.event_time == bindparam("when", type_=m.c.event_time.type), m.c.content != named("text", "")]
        named_twice = select(m.c.content).where(*said, m.c.title != named("text", ""), m.c.persona == "main").limit(3)
        return both(conn, tables, named_twice, when=WHEN, text="x", other="left out")

    assert database.read(read) == ([("Parcel 包裹",)], [("Parcel 包裹",)])


def test_a_value_that_is_missing_is_an_error_and_never_anothers(database):
    def read(conn, tables, **values):
        m = tables.memories
        return tables.statements.rows(
            conn, "one", lambda: select(m.c.id).where(m.c.persona == named("persona", "main")), values
        )

    assert len(database.read(read, persona="main")) == 2
    with pytest.raises(KeyError, match="persona"):
        database.read(read)


def test_lists_of_any_length_are_left_to_sqlalchemy(database):
    def read(conn, tables):
        m = tables.memories
        among = select(m.c.content).where(m.c.title.in_(named("titles", ["x"])))
        return [
            tables.statements.rows(conn, "among", lambda: among, {"titles": t}) for t in ([], ["Höhe"], ["x", "Höhe"])
        ]

    assert [len(rows) for rows in database.read(read)] == [0, 1, 1]


def test_an_error_of_the_driver_is_one_of_the_store_and_tells_no_values(database):
    secret = "hunter" + "2"  # in two parts, for a traceback shows the lines of this file

    def read(conn, tables):
        wrong = select(func.no_such_function(tables.memories.c.content, named("secret", "")))
        return tables.statements.rows(conn, "wrong", lambda: wrong, {"secret": secret})

    with pytest.raises(StoreError) as caught:
        database.read(read)
    assert secret not in "".join(traceback.format_exception(caught.value))
    assert database.read(lambda conn, tables: conn.scalar(select(func.count()).select_from(tables.memories))) == 2


@pytest.mark.blank
def test_whoever_watches_an_engine_of_their_own_sees_every_statement(backend, make_engine):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a caller's engine cannot be on a store in memory")
    make_engine().handle.persona("main").memories.write("The tram leaves at nine")
    own, seen = create_engine(backend.url), []
    event.listen(own, "before_cursor_execute", lambda conn, cursor, statement, *rest: seen.append(statement))
    with MemoryEngine(own, embedder="hash/words", background="off") as engine:
        assert engine.persona("main").recall("tram")
    own.dispose()
    assert any("settings" in statement for statement in seen) and any("memories" in statement for statement in seen)
