"""Selects that the driver executes: what they find must not show who executed them."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from sqlalchemy import Float, bindparam, create_engine, event, func, literal, select

from memoranda import MemoryEngine
from memoranda.db.queries import store
from memoranda.db.selects import KeptSelect
from memoranda.db.statements import named

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


def test_no_form_is_compiled_twice(database, monkeypatch):
    compiled, of = [], KeptSelect.of

    def counted(conn, dialect, statement):
        compiled.append(statement)
        return of(conn, dialect, statement)

    def read(conn, tables):
        m = tables.memories
        for n in range(3):
            for where in (m.c.title == named("title", ""), m.c.title.in_(named("titles", [""]))):
                found = select(m.c.content).where(where)
                tables.statements.rows(conn, f"twice {where}", lambda: found, {"title": "x", "titles": ["x"] * n})  # noqa: B023

    monkeypatch.setattr(KeptSelect, "of", counted)
    database.read(read)
    assert len(compiled) == 2


def test_of_a_persona_is_known_which_kinds_it_has_and_of_no_other(make_engine):
    engine = make_engine(embedder="none").handle
    me = engine.persona("main", tenant="acme", user="ana")
    me.memories.write("Parcel one")

    def kinds(**axes):
        return engine._database.read(store.standing, replace(me.scope, **axes), ("memory", "knowledge")).kinds

    assert kinds() == {"memory"} and kinds(user="bob") == {"memory"}  # whoever's: what may be seen is asked later
    assert not kinds(persona="other") and not kinds(tenant="elsewhere")


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
