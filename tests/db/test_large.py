"""A scope of a hundred among forty thousand rows: every search finds all, and no plan wanders off."""

import hashlib
import sqlite3
from dataclasses import replace

import numpy as np
import psycopg
import pytest
from sqlalchemy import create_engine, event, make_url, text

from memoranda import MemoryEngine
from memoranda.policies import RankingPolicy
from memoranda.presets import STANDARD

ROWS = 40_000  # twice of what an index scan of pgvector looks at before it gives up
FEW = 100
SEARCHES = 25  # a driver prepares a statement at its fifth run, and Postgres thinks of a generic plan five later
POLICIES = replace(STANDARD, floor=replace(STANDARD.floor, enabled=False))
BY_COSINE = replace(POLICIES, ranking=RankingPolicy(name="overlap", neighbours=0))


class Directions:
    """Eight numbers that say nothing: a search by meaning, as cheap as can be."""

    name, dimensions = "test/directions", 8

    def embed(self, texts, purpose):
        return [[byte / 255 - 0.5 for byte in hashlib.sha256(text.encode()).digest()[:8]] for text in texts]

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


def prepare(engine):
    """Write the rows of the few, and one row of the crowd to make the others from."""
    crowd = engine.persona("main", tenant="acme", user="crowd")
    ana = engine.persona("main", tenant="acme", user="ana")
    elsewhere = engine.persona("side", tenant="acme", user="ana")
    for handle in (ana, elsewhere):
        handle.memories.write_many([f"Invoice {n} for the harbour of Lisbon" for n in range(FEW)])
    crowd.memories.write("Invoice 0 for the harbour of Lisbon")
    return crowd, ana, elsewhere


COPIED = (
    "tenant, persona, type, status, content, importance, confidence, core, day, author, audience, project, project_key,"
    " space, about, session, metadata, created_at, updated_at, cells, category_terms, content_terms, length"
)


def fill_postgres(url, rows=ROWS):
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    vector = ", ".join(f"cos(n * {1 + k / 7:.6f})" for k in range(8))
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("set work_mem = '64MB'")
        connection.execute(
            f"insert into memoranda.memories (id, short_id, {COPIED})"
            f" select gen_random_uuid(), lpad(to_hex(n), 8, '0'), {COPIED}"
            f" from memoranda.memories, generate_series(1, {rows}) n where author = 'crowd'"
        )
        connection.execute(
            "insert into memoranda.vectors (tenant, persona, kind, model, owner, vector)"
            f" select tenant, persona, 'memory', 'test/directions@8', id, array[{vector}]::real[]::vector"
            " from (select *, row_number() over () n from memoranda.memories"
            " where author = 'crowd' and short_id like '000%') copies"
        )
        connection.execute("vacuum analyze memoranda.memories, memoranda.vectors")


def fill_sqlite(path):
    connection = sqlite3.connect(path)
    connection.execute("pragma synchronous = off")
    connection.create_function("new_id", 1, lambda n: f"{n:032x}")
    connection.execute(
        f"insert into memoranda_memories (id, short_id, {COPIED}) with recursive numbers(n) as"
        f" (select 1 union all select n + 1 from numbers where n < {ROWS})"
        f" select new_id(numbers.n), printf('%08x', numbers.n), {COPIED} from numbers, memoranda_memories"
        " where author = 'crowd'"
    )
    angles = np.cos(np.arange(1, ROWS + 1)[:, None] * (1 + np.arange(8) / 7)).astype("<f4")
    connection.executemany(
        "insert into memoranda_vectors (tenant, persona, kind, model, owner, vector)"
        " values ('acme', 'main', 'memory', 'test/directions@8', ?, ?)",
        ((f"{n:032x}", row.tobytes()) for n, row in enumerate(angles, 1)),
    )
    connection.commit()
    connection.close()


def ten(hits, user="ana"):
    found = {hit.memory.id for hit in hits}
    return len(found) == len(hits) == 10 and {memory.author for memory in hits.memories} == {user}


def search(handle, n):
    query = "invoice for the harbour" if n % 2 else f"zzz{n}"  # by words and meaning, by meaning alone
    return handle.recall(query, limit=10)


def by_meaning(engine, persona, query):
    """Return the cosines a recall ranks by, and the ten highest of the whole scope as numpy counts them."""
    handle = engine.persona(persona, tenant="acme", user="ana", preset=BY_COSINE)
    contents = [memory.content for memory in handle.memories.list(limit=1000)]
    assert len(contents) == FEW
    [asked], rows = Directions().embed([query], "query"), np.array(Directions().embed(contents, "text"))
    cosines = rows @ asked / np.linalg.norm(rows, axis=1) / np.linalg.norm(asked)
    hits = handle.recall(query, limit=10)
    return (
        [(hit.memory.content, pytest.approx(hit.legs["vector"], abs=1e-5)) for hit in hits],
        [(contents[n], cosines[n]) for n in np.argsort(-cosines)[:10]],
    )


def test_on_sqlite(tmp_path):
    path = tmp_path / "memory.db"
    with MemoryEngine(f"sqlite:///{path}", embedder=Directions(), preset=POLICIES, pool_size=1) as engine:
        crowd, ana, elsewhere = prepare(engine)
        fill_sqlite(path)
        assert engine.build_indexes() is False
        for persona, handle in {"side": elsewhere, "main": ana}.items():
            assert all(ten(search(handle, n)) for n in range(SEARCHES))
            found, nearest = by_meaning(engine, persona, "zzz")
            assert found == nearest
        assert ten(search(crowd, 1), "crowd")


def plans(connection, statements):
    """Return the nodes of the plans of the statements that were run, each with its index."""

    def nodes(plan):
        yield plan
        for inner in plan.get("Plans", ()):
            yield from nodes(inner)

    for statement, parameters in statements:
        row = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar()
        yield from nodes(row[0]["Plan"])


def indexes_of(host, handle):
    """Return the indexes, and the tables read from end to end, that a recall's statements are planned with."""
    seen = []

    def note(conn, cursor, statement, parameters, context, many):
        seen.append((statement, parameters))

    event.listen(host, "before_cursor_execute", note)
    search(handle, 1)
    event.remove(host, "before_cursor_execute", note)
    selects = [
        pair
        for pair in seen
        if "memoranda.memories" in pair[0] and pair[0].lstrip().upper().startswith(("SELECT", "WITH"))
    ]
    assert selects
    with host.connect() as connection:
        found = list(plans(connection, selects))
    return (
        {node["Index Name"] for node in found if "Index Name" in node},
        {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"},
    )


@pytest.fixture
def roomy_url(blank_postgres_url):
    """A database where the graph of an index fits into memory while it is built, so that the test is quick."""
    administrator = create_engine(blank_postgres_url)
    with administrator.begin() as connection:
        name = make_url(blank_postgres_url).database
        connection.execute(text(f"alter database \"{name}\" set maintenance_work_mem = '256MB'"))
    administrator.dispose()
    return blank_postgres_url


def test_on_postgres(roomy_url):
    with MemoryEngine(roomy_url, embedder=Directions(), preset=POLICIES, pool_size=1) as engine:
        engine.setup()
        crowd, ana, elsewhere = prepare(engine)
        assert engine.build_indexes() is False, "an approximate index before it pays"
        fill_postgres(roomy_url)
        assert engine.build_indexes() is True
        assert engine.build_indexes() is True

        for persona, handle in {"side": elsewhere, "main": ana}.items():
            assert all(ten(search(handle, n)) for n in range(SEARCHES))
            found, nearest = by_meaning(engine, persona, "zzz")
            assert found == nearest
        assert all(ten(search(crowd, n), "crowd") for n in range(6))

    # psycopg's own default prepares a statement at its fifth run: the plan must not turn generic then
    host = create_engine(roomy_url, pool_size=1, max_overflow=0)
    with MemoryEngine(host, embedder=Directions(), preset=POLICIES) as engine:
        for name in ("side", "main"):
            handle = engine.persona(name, tenant="acme", user="ana")
            assert all(ten(search(handle, n)) for n in range(SEARCHES))
    host.dispose()


@pytest.mark.behaviour("S08")
def test_a_small_scope_is_found_by_its_own_index_and_never_by_an_approximate_one(roomy_url):
    host = create_engine(roomy_url, pool_size=1, max_overflow=0)
    with MemoryEngine(host, embedder=Directions(), preset=POLICIES) as engine:
        engine.setup()
        crowd, ana, elsewhere = prepare(engine)
        fill_postgres(roomy_url, rows=25_000)
        assert engine.build_indexes() is True
        with host.connect() as connection:
            query = "select indexname from pg_indexes where schemaname = 'memoranda' and indexdef like '%hnsw%'"
            approximate = connection.scalar(text(query))

        assert approximate in indexes_of(host, crowd)[0]
        wrong = {}
        for name, handle in {"a small persona": elsewhere, "an author among many": ana}.items():
            for _ in range(6):
                search(handle, 1)
            indexes, read_whole = indexes_of(host, handle)
            assert approximate not in indexes
            # Vectors of eight numbers lie so close that reading all of them may be cheaper than a hundred look-ups.
            if "memories" in read_whole:
                wrong[name] = read_whole
        assert not wrong, "tables read from end to end"

        # One row in five hundred of the crowd: an approximate scan meets hardly any of them before it gives up.
        with host.begin() as connection:
            copies = "from memoranda.memories where author = 'crowd' and short_id like '000%'"
            rare = connection.execute(
                text(f"update memoranda.memories set category = 'rare' where id in (select id {copies} limit 50)")
            )
            assert rare.rowcount == 50
        for query in ("invoice for the harbour", "zzz0"):
            assert len(crowd.recall(query, limit=10, categories=["rare"])) == 10
            assert len(crowd.recall(query, limit=50, categories=["rare"])) == 50
    host.dispose()


@pytest.fixture
def watched(postgres_url):
    """An engine of a caller's, and the statements it executes."""
    host, said = create_engine(postgres_url), []
    event.listen(host, "before_cursor_execute", lambda conn, cursor, statement, *_: said.append(statement))
    yield host, said
    host.dispose()


@pytest.mark.parametrize(("limit", "whole"), [(10, False), (30, True)])
def test_a_scope_hardly_larger_than_what_is_wanted_is_compared_whole(watched, monkeypatch, limit, whole):
    host, said = watched
    monkeypatch.setattr("memoranda.db.dialects.postgresql_search.LARGE", 100)
    with MemoryEngine(host, embedder=Directions(), preset=BY_COSINE) as engine:
        me = engine.persona("main")
        me.memories.write_many([f"Invoice {n}" for n in range(300)])
        said.clear()
        assert len(me.recall("zzz", limit=limit)) == limit  # four rows are wanted for each, 48 at least
    assert any("by_meaning" in statement for statement in said)
    assert any("AS seen" in statement for statement in said) is not whole


@pytest.mark.parametrize("inactive", [False, True])
def test_only_rows_that_are_counted_make_a_scope_small(watched, inactive):
    host, said = watched
    with MemoryEngine(host, embedder=Directions(), preset=POLICIES) as engine:
        me = engine.persona("main")
        me.memories.write_many([{"content": f"Invoice {n}", "session": "walk", "position": n} for n in range(20)])
        said.clear()
        me.recall("zzz", include_inactive=inactive)
    assert any("AS MATERIALIZED" in statement for statement in said) is not inactive


def test_of_a_good_part_of_a_persona_the_nearest_are_found_wherever_they_stand(blank_postgres_url):
    """What is nearest is taken first, and then what may be seen of it; here it is little, or nothing."""
    host = create_engine(blank_postgres_url)
    with MemoryEngine(blank_postgres_url, embedder=Directions(), preset=BY_COSINE) as engine:
        engine.setup()
        prepare(engine)
        fill_postgres(blank_postgres_url, rows=4200)
        [asked] = Directions().embed(["zzz"], "query")
        distance = f"v.vector <=> '{asked}'::vector"
        ranked = (
            f"select m.id, row_number() over (order by {distance}) as place from memoranda.memories m"
            " join memoranda.vectors v on v.owner = m.id where author = 'crowd' and m.persona = 'main'"
        )
        for farther_than in (2000, 500):  # the 768 nearest are looked at: 16 for each that is wanted
            with host.begin() as connection:
                moved = f"update memoranda.memories m set author = '{farther_than}' from ({ranked}) far"
                connection.execute(text(f"{moved} where far.id = m.id and place > {farther_than} and place % 2 = 0"))
                own = f"join memoranda.memories m on v.owner = m.id and m.author = '{farther_than}'"
                nearest = text(f"select 1 - ({distance}) from memoranda.vectors v {own} order by {distance} limit 10")
                expected = list(connection.scalars(nearest))
            hits = engine.persona("main", tenant="acme", user=str(farther_than)).recall("zzz", limit=10)
            assert [hit.legs["vector"] for hit in hits] == pytest.approx(expected, abs=1e-5)
            assert {memory.author for memory in hits.memories} == {str(farther_than)}
    host.dispose()
