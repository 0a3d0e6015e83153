"""Addresses, drivers, rights and what is missing: each is an error that names the remedy, and none shows a secret."""

import re
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import NullPool, QueuePool, StaticPool, create_engine, event, make_url, select, text

from memoranda import MemoryEngine
from memoranda.db.database import Database
from memoranda.db.dialects.base import EngineOptions
from memoranda.db.migrations import REVISIONS
from memoranda.errors import (
    ConfigurationError,
    ExtensionMissing,
    MemoryNotActive,
    PermissionMissing,
    SchemaMissing,
    StoreUnavailable,
)

SECRET = "pa55word"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def everything_said(error):
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


# -- addresses


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory.db",
        "://",
        f"mysql://root:{SECRET}@localhost/x",
        f"postgresql+asyncpg://u:{SECRET}@localhost/x",
        f"postgresql+psycopg2://u:{SECRET}@localhost/x",
        "sqlite+aiosqlite:///memory.db",
        f"postgresql://u:{SECRET}@localhost:port/x",
        42,
        None.__class__,
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_showing_it(url):
    with pytest.raises(ConfigurationError) as caught:
        MemoryEngine(url)
    assert SECRET not in everything_said(caught.value)


def test_the_usual_spellings_of_a_postgres_address_are_taken(postgres_url):
    plain = make_url(postgres_url)
    for driver in ("postgresql", "postgres", "postgresql+psycopg"):
        url = plain.set(drivername=driver).render_as_string(hide_password=False)
        with MemoryEngine(url, embedder="none") as engine:
            assert engine.persona("main").recall("lisbon").abstained


def test_sqlite_addresses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///relative.db", f"sqlite:///{tmp_path}/absolute.db", "sqlite:///ünï cödé.db"):
        with MemoryEngine(url, embedder="none") as engine:
            engine.persona("main").memories.write("Lisbon")
        with MemoryEngine(url, embedder="none") as engine:
            assert len(engine.persona("main").recall("lisbon")) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"relative.db", "absolute.db", "ünï cödé.db"}
    for url in ("sqlite://", "sqlite:///:memory:", "sqlite:///file:named?mode=memory&uri=true"):
        with MemoryEngine(url, embedder="none") as engine:
            engine.persona("main").memories.write("Lisbon")
            assert len(engine.persona("main").recall("lisbon")) == 1
    assert len(list(tmp_path.iterdir())) == 3


def test_the_address_may_stand_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with MemoryEngine(embedder="none") as engine:
        engine.persona("main").memories.write("Lisbon")
    assert (tmp_path / "memoranda.db").exists()
    monkeypatch.setenv("MEMORANDA_URL", "sqlite:///other.db")
    with MemoryEngine(embedder="none") as engine:
        assert engine.persona("main").recall("lisbon").abstained
    assert (tmp_path / "other.db").exists()


def test_nothing_is_opened_before_the_first_verb(tmp_path):
    with MemoryEngine(f"sqlite:///{tmp_path}/memory.db") as engine:
        engine.persona("main").scoped(project="x")
    with MemoryEngine(f"postgresql://nobody:{SECRET}@localhost:1/none") as engine:
        engine.persona("main")
    assert not list(tmp_path.iterdir())


def test_an_engine_shows_no_address(postgres_url):
    url = make_url(postgres_url).set(password=SECRET).render_as_string(hide_password=False)
    with MemoryEngine(url, embedder="none") as engine:
        said = repr(engine) + str(engine) + repr(engine.persona("main")) + repr(engine.persona("main").memories)
    assert SECRET not in said
    assert str(make_url(url).database) not in said


# -- what is missing, on Postgres


def test_missing_tables_name_the_command_that_makes_them(blank_postgres_url, twin):
    engine = twin(MemoryEngine(blank_postgres_url, embedder="none"))
    me = engine.persona("main")
    for verb in (lambda: me.recall("lisbon"), lambda: me.memories.write("Lisbon"), lambda: me.memories.list()):
        with pytest.raises(SchemaMissing, match=r"memoranda db upgrade.*MemoryEngine\.setup"):
            verb()
    assert engine.setup() == list(REVISIONS)
    assert me.memories.write("Lisbon").created
    engine.close()


def test_a_server_that_is_not_there_is_unavailable_and_shows_no_password():
    for url in (f"postgresql://ana:{SECRET}@127.0.0.1:1/private_name", f"postgresql://ana:{SECRET}@/x?host=/nowhere"):
        with MemoryEngine(url, embedder="none", timeout=2) as engine:
            with pytest.raises(StoreUnavailable) as caught:
                engine.persona("main").recall("lisbon")
            assert SECRET not in everything_said(caught.value)
            assert "127.0.0.1" not in str(caught.value)


def test_a_database_that_does_not_exist_is_named_as_the_reason(postgres_url):
    url = make_url(postgres_url).set(database="no_such_database").render_as_string(hide_password=False)
    with MemoryEngine(url, embedder="none") as engine, pytest.raises(StoreUnavailable, match="does not exist"):
        engine.persona("main").recall("lisbon")


@pytest.fixture
def role(blank_postgres_url) -> Iterator[str]:
    """The address of the blank database for a role without any right."""
    name = f"poor_{make_url(blank_postgres_url).database}"[:60].replace("-", "_")
    with _connect(blank_postgres_url) as connection:
        connection.execute(f"create role \"{name}\" login password '{SECRET}'")
    yield make_url(blank_postgres_url).set(username=name, password=SECRET).render_as_string(hide_password=False)
    with _connect(blank_postgres_url) as connection:
        connection.execute(f'drop owned by "{name}" cascade')
        connection.execute(f'drop role "{name}"')


def _connect(url):
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True)


def test_a_role_that_may_not_create_tables_is_told_what_to_grant(role):
    with MemoryEngine(role, embedder="none") as engine:
        with pytest.raises(PermissionMissing, match="CREATE on the database") as caught:
            engine.setup()
        assert SECRET not in everything_said(caught.value)


def test_a_role_that_may_not_use_the_tables_is_told_what_to_grant(role, blank_postgres_url):
    with MemoryEngine(blank_postgres_url, embedder="none") as owner:
        owner.setup()
        owner.persona("main").memories.write("Lisbon")
    with MemoryEngine(role, embedder="none") as engine:
        for verb in (engine.persona("main").recall, engine.persona("main").memories.write):
            with pytest.raises(PermissionMissing, match="grant USAGE"):
                verb("lisbon")


def test_a_role_with_the_rights_the_message_names_can_work(role, blank_postgres_url):
    with MemoryEngine(blank_postgres_url, embedder="hash/words") as owner:
        owner.setup()
    name = make_url(role).username
    with _connect(blank_postgres_url) as connection:
        connection.execute(f'grant usage on schema memoranda to "{name}"')
        connection.execute(f'grant select, insert, update, delete on all tables in schema memoranda to "{name}"')
    with MemoryEngine(role, embedder="hash/words") as engine:
        me = engine.persona("main")
        old = me.memories.write("Ana lives in Lisbon")
        me.memories.supersede(old.id, "Ana lives in Berlin")
        assert [hit.content for hit in me.recall("where does Ana live")] == ["Ana lives in Berlin"]


def test_a_role_below_row_level_security_writes_many_at_once(role, blank_postgres_url):
    with MemoryEngine(blank_postgres_url, embedder="hash/words") as owner:
        owner.setup()
    name = make_url(role).username
    with _connect(blank_postgres_url) as connection:
        connection.execute(f'grant usage on schema memoranda to "{name}"')
        connection.execute(f'grant select, insert, update, delete on all tables in schema memoranda to "{name}"')
        for table in ("memories", "sources", "vectors"):
            connection.execute(f"alter table memoranda.{table} enable row level security")
            connection.execute(f"create policy ours on memoranda.{table} using (persona = 'main')")
    with MemoryEngine(role, embedder="hash/words") as engine:
        assert len(engine.persona("main").memories.write_many([f"Parcel {n}" for n in range(20)])) == 20
        assert len(engine.persona("main").memories.list(limit=50)) == 20


def test_a_database_without_the_extension_gets_it_or_an_error_that_names_it(role, blank_postgres_url):
    with _connect(blank_postgres_url) as connection:
        connection.execute("drop extension vector")
        connection.execute(f'grant create on database "{make_url(role).database}" to "{make_url(role).username}"')
    with MemoryEngine(role, embedder="none") as engine:
        with pytest.raises(ExtensionMissing, match="CREATE EXTENSION vector"):
            engine.setup()
        with pytest.raises(SchemaMissing):
            engine.persona("main").recall("lisbon")
    with MemoryEngine(blank_postgres_url, embedder="none") as engine:
        assert engine.setup()


def test_a_read_only_server_is_named(postgres_url):
    separator = "&" if "?" in postgres_url else "?"
    url = f"{postgres_url}{separator}options=-c%20default_transaction_read_only%3Don"
    with MemoryEngine(postgres_url, embedder="none") as engine:
        engine.persona("main").memories.write("Lisbon")
    with MemoryEngine(url, embedder="none") as engine:
        me = engine.persona("main")
        assert len(me.recall("lisbon")) == 1
        with pytest.raises(PermissionMissing, match="read-only"):
            me.memories.write("Porto")


def test_a_missing_driver_names_the_extra(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from memoranda import MemoryEngine\nfrom memoranda.errors import ExtraMissing\n"
        "try:\n    MemoryEngine('postgresql://localhost/x')\n"
        "except ExtraMissing as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "memoranda[postgres]" in done.stdout, done.stderr


# -- an engine of the caller's


def test_a_callers_engine_is_never_disposed(backend, twin):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a caller's engine in memory is refused")
    host = create_engine(backend.url)
    disposed = []
    event.listen(host, "engine_disposed", lambda _: disposed.append(True))
    with host.begin() as connection:
        connection.execute(text("create table if not exists host_rows (n integer)"))
        connection.execute(text("delete from host_rows"))
        connection.execute(text("insert into host_rows values (7)"))

    engine = twin(MemoryEngine(host, embedder="hash/words"))
    me = engine.persona("main")
    old = me.memories.write("Ana lives in Lisbon")
    me.memories.supersede(old.id, "Ana lives in Berlin")
    assert [hit.content for hit in me.recall("where does Ana live")] == ["Ana lives in Berlin"]
    engine.close()

    assert not disposed
    with host.begin() as connection:
        assert connection.scalar(text("select n from host_rows")) == 7
        connection.execute(text("drop table host_rows"))
    host.dispose()


def test_a_callers_engine_without_a_pool_works(backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: memory without a pool is a new store every time")
    host = create_engine(backend.url, poolclass=NullPool)
    engine = MemoryEngine(host, embedder="hash/words")
    engine.persona("main").memories.write("Lisbon")
    assert len(engine.persona("main").recall("lisbon")) == 1
    engine.close()


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_callers_isolation_level_costs_no_correction_and_no_count(postgres_url, level, request):
    host = create_engine(postgres_url, isolation_level=level, pool_size=8)
    request.addfinalizer(host.dispose)
    engine = MemoryEngine(host, embedder="none", preset="ledger")
    me = engine.persona("main", user="ana")
    old = me.memories.write("The office is in Lisbon.")

    def correct(n):
        try:
            return me.memories.supersede(old.id, f"The office is in town {n}.")
        except MemoryNotActive:
            return None

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(correct, range(24)))
        answers = list(pool.map(lambda _: me.recall("office"), range(40)))
    [winner] = [result for result in results if result]

    record = me.memories.get(winner.id)
    assert record is not None
    assert record.access_count == 40
    assert {answer.degraded for answer in answers} == {None}


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("sqlite://", {}),
        ("sqlite:///:memory:", {"poolclass": QueuePool}),
        ("sqlite:///file:shared?mode=memory&cache=shared&uri=true", {"poolclass": QueuePool}),
        ("sqlite://", {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}),
        ("sqlite:///{folder}/memory.db", {"poolclass": StaticPool}),
    ],
    ids=["memory", "memory with a queue", "shared memory", "static memory", "static file"],
)
def test_a_callers_engine_in_memory_or_of_one_connection_is_refused(tmp_path, url, options):
    host = create_engine(url.format(folder=tmp_path), **options)
    with pytest.raises(ConfigurationError, match="memory"):
        MemoryEngine(host, embedder="none")
    host.dispose()


def test_a_callers_sqlite_engine_may_begin_its_own_transactions(tmp_path):
    host = create_engine(f"sqlite:///{tmp_path}/memory.db")

    # what SQLAlchemy's documentation advises for SQLite
    @event.listens_for(host, "connect")
    def connected(connection, _):
        connection.isolation_level = None

    @event.listens_for(host, "begin")
    def begin(connection):
        connection.exec_driver_sql("BEGIN")

    engine = MemoryEngine(host, embedder="hash/words")
    me = engine.persona("main")
    me.memories.write("Lisbon")
    assert len(me.recall("lisbon")) == 1
    engine.close()
    host.dispose()


def test_a_callers_engine_may_execute_something_whenever_a_connection_is_taken(backend):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: nothing of a host's is in a store in memory")
    host = create_engine(backend.url)
    event.listen(host, "engine_connect", lambda connection: connection.exec_driver_sql("SELECT 1"))
    with MemoryEngine(host, embedder="none", background="off") as engine:
        engine.setup()
        me = engine.persona("main")
        me.memories.write("Lisbon")
        assert len(me.recall("lisbon")) == 1
    host.dispose()


def test_an_engine_that_leaves_transactions_open_is_refused(tmp_path):
    host = create_engine(f"sqlite:///{tmp_path / 'memory.db'}")
    host.dialect.skip_autocommit_rollback = True  # an option of create_engine from SQLAlchemy 2.0.43 on
    with pytest.raises(ConfigurationError, match="skip_autocommit_rollback"):
        MemoryEngine(host)


def test_a_search_inside_a_write_on_a_callers_engine_commits_nothing(postgres_url, request):
    host = create_engine(postgres_url)
    request.addfinalizer(host.dispose)
    database = Database(host, schema="memoranda", options=EngineOptions())

    def write(conn, tables):
        members = tables.project_members
        row = {"tenant": "acme", "persona": "main", "project": "atlas", "member": "ana", "granted_at": NOW}
        conn.execute(members.insert(), row)
        with tables.dialect.searching(conn, None):
            assert conn.scalar(select(members.c.member)) == "ana"
        raise LookupError

    for _ in range(2):  # what the first had committed would stand in the way of the second
        with pytest.raises(LookupError):
            database.run(write)


def test_an_asynchronous_engine_is_refused_by_name():
    class AsyncEngine:
        pass

    with pytest.raises(ConfigurationError, match="AsyncEngine"):
        MemoryEngine(AsyncEngine())  # type: ignore[arg-type]


# -- where the tables live


def test_the_tables_keep_to_themselves(backend, twin):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: nothing of a host's is in a store in memory")
    host = create_engine(backend.url, poolclass=NullPool)
    names = ("memories", "alembic_version", "settings", "version")
    with host.begin() as connection:
        for name in names:
            connection.execute(text(f"drop table if exists {name}"))
            connection.execute(text(f"create table {name} (n integer)"))
            connection.execute(text(f"insert into {name} values (1)"))
    engine = twin(MemoryEngine(backend.url, embedder="hash/words"))
    if backend.is_postgres:
        engine.setup()
    engine.persona("main").memories.write("Lisbon")
    assert len(engine.persona("main").recall("lisbon")) == 1
    engine.close()

    with host.begin() as connection:
        for name in names:
            assert connection.scalar(text(f"select count(*) from {name}")) == 1
            connection.execute(text(f"drop table {name}"))
        if backend.is_postgres:
            rows = connection.execute(
                text("select table_schema from information_schema.tables where table_name = 'memory_versions'")
            )
            assert {row[0] for row in rows} == {"memoranda"}
        else:
            rows = connection.execute(text("select name from sqlite_master where name not like 'sqlite_%'"))
            assert all(re.search("memoranda_", row[0]) for row in rows)


def test_a_schema_of_another_name(blank_postgres_url):
    with MemoryEngine(blank_postgres_url, embedder="hash/words", schema="notes") as engine:
        engine.setup()
        engine.persona("main").memories.write("Lisbon")
        assert len(engine.persona("main").recall("lisbon")) == 1
    with MemoryEngine(blank_postgres_url, embedder="hash/words") as engine, pytest.raises(SchemaMissing):
        engine.persona("main").recall("lisbon")
    for name in ("No", "a b", 'a"b', "", "x" * 60):
        with pytest.raises(ConfigurationError, match="schema"):
            MemoryEngine(blank_postgres_url, schema=name)
