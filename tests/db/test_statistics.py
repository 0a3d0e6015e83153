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
