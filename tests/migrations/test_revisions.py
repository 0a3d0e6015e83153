"""The revisions make what the schema declares, once, whoever comes first."""

import asyncio
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import NullPool, create_engine, inspect, text
from sqlalchemy.schema import CreateTable

from memoranda import MemoryEngine
from memoranda.db import migrations
from memoranda.db.dialects import dialect_for
from memoranda.db.schema import declare
from memoranda.errors import SchemaMissing, SchemaOutdated, SchemaTooNew


@pytest.fixture(params=["sqlite-file", "postgres"])
def blank_url(request, tmp_path):
    """A database with nothing of ours."""
    if request.param == "postgres":
        return request.getfixturevalue("blank_postgres_url")
    return f"sqlite:///{tmp_path}/memory.db"


@pytest.fixture
def host(blank_url):
    engine = create_engine(blank_url, poolclass=NullPool)
    yield engine
    engine.dispose()


def dialect_of(host):
    return dialect_for(host.dialect.name, schema="memoranda")


def is_undeclared(dialect, name):
    """Say whether a table is the dialect's own business: what it finds words and changed rows by."""
    return name in (f"{dialect.prefix}version", f"{dialect.prefix}changes") or "_fts" in name


def setup(url):
    with MemoryEngine(url, embedder="none") as engine:
        return engine.setup()


def test_the_revisions_make_the_declared_tables(blank_url, host):
    setup(blank_url)
    dialect = dialect_of(host)
    tables = declare(dialect)

    def ours(name, kind, parent):
        if kind == "schema":
            return name == dialect.schema
        return not (kind == "table" and is_undeclared(dialect, name))

    with host.connect() as connection:
        options = {
            "include_name": ours,
            "include_schemas": bool(dialect.schema),
            "compare_type": True,
            "compare_server_default": True,
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, tables.metadata) == []


def described(host, dialect):
    """Return everything a database says about our tables."""
    found = inspect(host)
    tables = {}
    for name in found.get_table_names(schema=dialect.schema):
        if is_undeclared(dialect, name):
            continue
        columns = {
            c["name"]: (str(c["type"]), c["nullable"], c.get("default"), (c.get("computed") or {}).get("sqltext"))
            for c in found.get_columns(name, schema=dialect.schema)
        }
        indexes = {
            i["name"]: (i["column_names"], i["unique"], sorted(map(str, i.get("dialect_options", {}).values())))
            for i in found.get_indexes(name, schema=dialect.schema)
        }
        tables[name] = {
            "columns": columns,
            "indexes": indexes,
            "checks": {c["name"]: c["sqltext"] for c in found.get_check_constraints(name, schema=dialect.schema)},
            "unique": {u["name"]: u["column_names"] for u in found.get_unique_constraints(name, schema=dialect.schema)},
            "primary": found.get_pk_constraint(name, schema=dialect.schema)["constrained_columns"],
            "foreign": {
                f["name"]: (f["constrained_columns"], f["referred_columns"], f["options"])
                for f in found.get_foreign_keys(name, schema=dialect.schema)
            },
        }
    return tables


def test_revisions_and_declaration_agree_to_the_last_constraint(blank_url, host):
    dialect = dialect_of(host)
    setup(blank_url)
    by_revisions = described(host, dialect)
    tables = declare(dialect)
    with host.begin() as connection:
        tables.metadata.drop_all(connection)
        tables.metadata.create_all(connection)
    by_declaration = described(host, dialect)

    assert by_revisions.keys() == by_declaration.keys()
    assert len(by_revisions) == len(tables.metadata.tables)
    for name in by_revisions:
        assert by_revisions[name] == by_declaration[name], name


def test_full_text_stands_beside_the_tables(blank_url, host):
    setup(blank_url)
    with host.connect() as connection:
        if dialect_of(host).schema:
            rows = connection.execute(
                text("select indexdef from pg_indexes where schemaname = 'memoranda' and tablename = 'memories'")
            )
            definitions = " ".join(row[0] for row in rows)
            assert "USING gin (search)" in definitions
            assert "WHERE ((project_key)::text <> ''::text)" in definitions
            generated = connection.scalar(
                text(
                    "select generation_expression from information_schema.columns"
                    " where table_schema = 'memoranda' and column_name = 'search'"
                )
            )
            assert "setweight" in generated
        else:
            rows = connection.execute(text("select type, name from sqlite_master where name like '%fts%'"))
            found = {(kind, name) for kind, name in rows}
            assert ("table", "memoranda_memories_fts") in found
            triggers = {name for kind, name in found if kind == "trigger"}
            searched = ("memories", "knowledge_chunks", "messages", "store_item_texts")
            verbs = ("insert", "delete", "update")
            assert triggers == {f"memoranda_{noun}_fts_{verb}" for noun in searched for verb in verbs}


def test_every_key_and_btree_index_begins_with_tenant_and_persona(blank_url, host):
    dialect = dialect_of(host)
    setup(blank_url)
    for name, table in described(host, dialect).items():
        if name.endswith("settings"):
            continue
        keys = [columns for columns, _, _ in table["indexes"].values() if columns != ["search"]]
        keys += [*table["unique"].values(), *(columns for columns, _, _ in table["foreign"].values())]
        if table["primary"] != ["n"]:  # rows of SQLite that another index numbers
            keys.append(table["primary"])
        assert keys
        assert all(key[:2] == ["tenant", "persona"] for key in keys), name


def test_a_second_upgrade_does_nothing(blank_url, host):
    assert setup(blank_url) == list(migrations.REVISIONS)
    with MemoryEngine(blank_url, embedder="none") as engine:
        engine.persona("main").memories.write("Lisbon")
        before = described(host, dialect_of(host))
        assert engine.setup() == []
        assert engine.revision() == migrations.HEAD
        assert len(engine.persona("main").recall("lisbon")) == 1
    assert described(host, dialect_of(host)) == before


def test_a_blank_database_has_no_revision_and_looking_makes_none(blank_url, host):
    with MemoryEngine(blank_url, embedder="none") as engine:
        assert engine.revision() is None
        assert asyncio.run(engine.arevision()) is None
    assert not inspect(host).has_table(f"{dialect_of(host).prefix}memories", schema=dialect_of(host).schema)


def set_revision(host, value):
    dialect = dialect_of(host)
    table = f"{dialect.schema}.version" if dialect.schema else f"{dialect.prefix}version"
    with host.begin() as connection:
        connection.execute(text(f"update {table} set revision = :value"), {"value": value})


def test_tables_of_a_newer_release_are_left_alone(blank_url, host):
    setup(blank_url)
    set_revision(host, "9999_future")
    before = described(host, dialect_of(host))
    with MemoryEngine(blank_url, embedder="none") as engine:
        me = engine.persona("main")
        for verb in (engine.setup, lambda: me.recall("lisbon"), lambda: me.memories.write("Lisbon")):
            with pytest.raises(SchemaTooNew, match="upgrade the `memoranda` package"):
                verb()
        assert engine.revision() == "9999_future"
    assert described(host, dialect_of(host)) == before


def test_tables_of_an_older_release_name_the_command(blank_postgres_url, monkeypatch):
    host = create_engine(blank_postgres_url, poolclass=NullPool)
    setup(blank_postgres_url)
    set_revision(host, "0000_before")
    monkeypatch.setattr(migrations, "REVISIONS", ("0000_before", *migrations.REVISIONS))
    with (
        MemoryEngine(blank_postgres_url, embedder="none") as engine,
        pytest.raises(SchemaOutdated, match="memoranda db upgrade"),
    ):
        engine.persona("main").recall("lisbon")


def test_a_failed_upgrade_leaves_nothing_behind(blank_url, host, monkeypatch):
    from memoranda.db.migrations.revisions import r0001_memories

    upgrade = r0001_memories.upgrade

    def broken(op, dialect):
        upgrade(op, dialect)
        raise RuntimeError("power cut")

    monkeypatch.setattr(r0001_memories, "upgrade", broken)
    with MemoryEngine(blank_url, embedder="none") as engine:
        with pytest.raises(RuntimeError, match="power cut"):
            engine.setup()
        assert engine.revision() is None
        monkeypatch.undo()
        assert not inspect(host).has_table(f"{dialect_of(host).prefix}memories", schema=dialect_of(host).schema)
        assert engine.setup() == list(migrations.REVISIONS)


# -- who comes first


def write_one(url, name):
    with MemoryEngine(url, embedder="hash/words") as engine:
        if url.startswith("postgresql"):
            engine.setup()
        return engine.persona("main").memories.write(f"Lisbon {name}").created


def count(url):
    with MemoryEngine(url, embedder="hash/words") as engine:
        return len(engine.persona("main").recall("lisbon", limit=50))


def test_five_threads_come_first_at_once(blank_url):
    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(lambda n: write_one(blank_url, n), range(5))) == [True] * 5
    assert count(blank_url) == 5


def test_five_threads_share_an_engine_that_was_never_used(blank_url):
    with MemoryEngine(blank_url, embedder="hash/words") as engine, ThreadPoolExecutor(5) as pool:
        me = engine.persona("main")

        def work(n):
            if blank_url.startswith("postgresql"):
                engine.setup()
            return me.memories.write(f"Lisbon {n}").created

        assert list(pool.map(work, range(5))) == [True] * 5
    assert count(blank_url) == 5


async def test_five_coroutines_share_an_engine_that_was_never_used(blank_url):
    async with MemoryEngine(blank_url, embedder="hash/words") as engine:
        me = engine.persona("main")

        async def work(n):
            if blank_url.startswith("postgresql"):
                await engine.asetup()
            return (await me.memories.awrite(f"Lisbon {n}")).created

        assert await asyncio.gather(*(work(n) for n in range(5))) == [True] * 5
    assert count(blank_url) == 5


PROCESS = """
import sys
from memoranda import MemoryEngine
engine = MemoryEngine(sys.argv[1], embedder="hash/words")
if sys.argv[1].startswith("postgresql"):
    engine.setup()
engine.persona("main").memories.write(f"Lisbon {sys.argv[2]}")
"""


def test_five_processes_come_first_at_once(blank_url):
    processes = [subprocess.Popen([sys.executable, "-c", PROCESS, blank_url, str(n)]) for n in range(5)]
    assert [process.wait() for process in processes] == [0] * 5
    assert count(blank_url) == 5


def test_the_schema_may_belong_to_the_database_before_us(blank_postgres_url):
    host = create_engine(blank_postgres_url, poolclass=NullPool)
    with host.begin() as connection:
        connection.execute(text("create schema memoranda"))
        connection.execute(text("create table memoranda.version_of_host (n integer)"))
    with MemoryEngine(blank_postgres_url, embedder="none") as engine:
        with pytest.raises(SchemaMissing):
            engine.persona("main").recall("lisbon")
        assert engine.setup()


def test_the_statements_of_the_declaration_compile_for_both(blank_url, host):
    for table in declare(dialect_of(host)).metadata.sorted_tables:
        statement = str(CreateTable(table).compile(host))
        assert re.match(r"\s*CREATE TABLE (memoranda\.\w+|memoranda_\w+)", statement)
