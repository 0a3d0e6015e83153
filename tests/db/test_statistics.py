"""Postgres plans for the rows a persona has, not for those it had when the table was last analyzed."""

import pytest
from sqlalchemy import create_engine, text

from memoranda import MemoryEngine

ROWS = 400


def expected_rows(host, table, persona):
    with host.connect() as connection:
        plan = connection.execute(
            text(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM memoranda.{table} WHERE tenant = '' AND persona = :persona"),
            {"persona": persona},
        ).scalar_one()
    return plan[0]["Plan"]["Plan Rows"]


@pytest.mark.postgres
def test_a_persona_that_was_just_filled_is_planned_for(postgres_url):
    host = create_engine(postgres_url)
    with MemoryEngine(postgres_url, embedder="hash/words") as engine:
        for name in ("first", "second"):
            me = engine.persona(name)
            me.memories.write_many([f"Lamp {n} of the {name} pier was lit" for n in range(ROWS)])
            assert me.recall("lamp 7")

            for table in ("memories", "vectors"):
                assert expected_rows(host, table, name) > ROWS / 8
    host.dispose()


@pytest.mark.postgres
def test_the_first_rows_are_planned_for_before_anybody_looks_for_them(blank_postgres_url):
    key = text("EXPLAIN SELECT FROM ONLY lamps.memories WHERE tenant = '' AND persona = 'main' AND id = :id")
    host = create_engine(blank_postgres_url)
    with MemoryEngine(blank_postgres_url, embedder="none", schema="lamps") as engine, host.connect() as connection:
        engine.setup()
        [first, *_] = engine.persona("main").memories.write_many([f"Lamp {n} was lit" for n in range(ROWS)])
        _, condition, *_ = connection.scalars(key, {"id": first.memory.id})
        assert "id =" in condition, "each check of a foreign key would read all rows"
    host.dispose()


@pytest.mark.postgres
def test_a_small_persona_is_not_worth_an_analysis(postgres_url):
    host = create_engine(postgres_url)
    with MemoryEngine(postgres_url, embedder="none") as engine, host.connect() as connection:
        analyzed = text("SELECT count(*) FROM pg_stats WHERE schemaname = 'memoranda' AND tablename = 'memories'")
        before = connection.scalar(analyzed)
        me = engine.persona("small")
        me.memories.write_many([f"Lamp {n} was lit" for n in range(20)])
        me.recall("lamp 7")
        assert connection.scalar(analyzed) == before
    host.dispose()
