"""The pytest plugin of Memoranda's own tests, and of anyone's who builds on it: `-p memoranda.testing.plugin`.

It gives databases, engines in both halves of the API from one test body, and two rules: no test reaches the network,
and a test that skips for a reason not starting with "not applicable:" has failed.

| fixture | what it is |
| --- | --- |
| `engine`, `me`, `make_engine` | a wrapped engine, its persona "main", the factory: every `backend` in every `mode` |
| `backend` | "sqlite-memory", "sqlite-file", "postgres": `.name`, `.url`, `.is_postgres` |
| `empty_store` | a SQLite store without rows: `.copy_to(file)` is faster than making another |
| `mode`, `twin` | "sync", "async"; `twin(handle)` wraps any handle for it |
| `postgres_url` | a Postgres database with our schema and empty tables, one a worker |
| `blank_postgres_url` | a database of its own with nothing but the `vector` extension |
| `own_postgres` | a server of its own, which a test may stop and restart |
| `pgbouncer_url` | the database of `postgres_url` through a pooler; such tests carry the marker `pgbouncer` |
| `frozen_clock`, `network` | a `FrozenClock`; the guard that closes the network (on for every test) |

`MEMORANDA_TEST_POSTGRES_URL` names a maintenance database on a server to use instead of the wheel's,
`MEMORANDA_TEST_POSTGRES_WHEEL` another wheel, `MEMORANDA_TEST_PGBOUNCER_URL` the pooler. `-m postgres` selects the
tests that run on Postgres. It runs where POSIX does (Linux, macOS): workers wait for each other at a file lock.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from memoranda.testing.clocks import FrozenClock
from memoranda.testing.network import NetworkGuard
from memoranda.testing.postgres import URL_VARIABLE, PostgresServer, new_folder, temporary_server
from memoranda.testing.shortcuts import EmptyStore, keep_garbage_collection_short, shared_statements
from memoranda.testing.twin import Loop, Mode, Twin

PGBOUNCER_VARIABLE = "MEMORANDA_TEST_PGBOUNCER_URL"
SKIP_REASON = "not applicable:"
SCHEMA = "memoranda"
# It says which revisions were applied: it describes the tables, which stay.
KEPT_TABLES = ("version",)

_run_folder = pytest.StashKey[Path]()
_IN_WORKER = "memoranda_run_folder"


# -- the session


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and agree on the folder that the workers of this run share."""
    config.addinivalue_line("markers", "behaviour(*ids): the behaviours that the test proves, four at most")
    config.addinivalue_line("markers", "blank: the SQLite databases of `backend` begin without our tables")
    config.addinivalue_line("markers", "postgres: runs on Postgres (set by the plugin)")
    config.addinivalue_line("markers", f"pgbouncer: needs a pooler; runs where {PGBOUNCER_VARIABLE} is set")
    worker = getattr(config, "workerinput", None)
    config.stash[_run_folder] = Path(worker[_IN_WORKER]) if worker else new_folder()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker the folder."""
    node.workerinput[_IN_WORKER] = str(node.config.stash[_run_folder])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the run's server, in the process that outlives the workers."""
    if not hasattr(config, "workerinput") and (folder := config.stash.get(_run_folder, None)):
        PostgresServer(folder).stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what runs on Postgres; leave out what needs a pooler where there is none."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        fixtures = getattr(item, "fixturenames", ())
        if parameters.get("backend") == "postgres" or {"postgres_server", "own_postgres"} & set(fixtures):
            item.add_marker("postgres")
    if PGBOUNCER_VARIABLE not in os.environ:
        left_out = [item for item in items if item.get_closest_marker("pgbouncer")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not item.get_closest_marker("pgbouncer")]


def pytest_collection_finish() -> None:
    """Take the tests themselves out of what is looked through for garbage."""
    keep_garbage_collection_short()


@pytest.fixture(scope="session", autouse=True)
def _shared_statements() -> Iterator[None]:
    with shared_statements():
        yield


# -- a skip nobody expected is a failure


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Turn an unexpected skip of a test into a failure."""
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Turn an unexpected skip of a whole module into a failure."""
    report = yield
    return _refuse_skip(report)


def _refuse_skip(report: Any) -> Any:
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reason = text.removeprefix("Skipped: ")
        if not reason.startswith(SKIP_REASON):
            report.outcome = "failed"
            report.longrepr = f"unexpected skip ({reason}): mend it, or begin its reason with {SKIP_REASON!r}"
    return report


# -- network and clock


@pytest.fixture(autouse=True)
def network() -> Iterator[NetworkGuard]:
    """Close the network for the test, and fail it for an attempt even if the code under test swallowed the error."""
    with NetworkGuard() as guard:
        yield guard
    if guard.attempts:
        pytest.fail(f"the test reached for the network: {', '.join(guard.attempts)}", pytrace=False)


@pytest.fixture
def frozen_clock() -> FrozenClock:
    """A clock that stands still until the test moves it."""
    return FrozenClock()


# -- Postgres


class Server(Protocol):
    """A Postgres server: the wheel's or the one that the environment names."""

    def url(self, database: str | None = None) -> str:
        """Return the SQLAlchemy URL of one of its databases, of the maintenance database without a name."""
        ...


@dataclass(frozen=True)
class NamedServer:
    """The server that the environment names."""

    maintenance: str = field(repr=False)

    def url(self, database: str | None = None) -> str:
        """Return the SQLAlchemy URL of one of its databases, of the maintenance database without a name."""
        return _with_database(self.maintenance, database or _database_of(self.maintenance))


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Server:
    """The run's one server, started by the first worker that asks."""
    if named := os.environ.get(URL_VARIABLE):
        return NamedServer(named)
    folder = pytestconfig.stash[_run_folder]
    server = PostgresServer(folder)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            server.start(guardian=_controller(pytestconfig))
        except RuntimeError as error:
            pytest.fail(str(error), pytrace=False)
    return server


@pytest.fixture(scope="session")
def _worker_database(postgres_server: Server, pytestconfig: pytest.Config) -> Iterator[str]:
    from memoranda import MemoryEngine

    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with _database(postgres_server, f"{pytestconfig.stash[_run_folder].name}_{worker}") as url:
        engine = MemoryEngine(url, embedder="hash/words")
        engine.setup()
        engine.close()
        yield url


@pytest.fixture
def postgres_url(_worker_database: str) -> str:
    """The SQLAlchemy URL of this worker's database: our schema is there, its tables are empty."""
    with _connect(_worker_database) as connection:
        # A connection that a test left in a transaction would block this for ever.
        connection.execute("set lock_timeout = '10s'")
        rows = connection.execute(
            # A table without a page has had no row since it was truncated: most are left alone, and truncating is slow.
            "select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = to_regnamespace(%s)"
            " and relname <> all(%s) and pg_relation_size(oid) > 0",
            (SCHEMA, list(KEPT_TABLES)),
        )
        if tables := ", ".join(name for (name,) in rows):
            connection.execute(f"truncate {tables} cascade")
    return _worker_database


@pytest.fixture
def blank_postgres_url(postgres_server: Server, pytestconfig: pytest.Config) -> Iterator[str]:
    """The SQLAlchemy URL of a database of the test's own, with the `vector` extension and without our schema."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with _database(postgres_server, f"{pytestconfig.stash[_run_folder].name}_{worker}_blank") as url:
        yield url


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server of the test's own, from the wheel: stop it, restart it, look at its processes."""
    with temporary_server() as server:
        with _connect(server.url()) as connection:
            connection.execute("create extension vector")
        yield server


@pytest.fixture
def pgbouncer_url(postgres_url: str) -> str:
    """The database of `postgres_url`, through the pooler that the environment names."""
    return _with_database(os.environ[PGBOUNCER_VARIABLE], _database_of(postgres_url))


@contextlib.contextmanager
def _database(server: Server, name: str) -> Iterator[str]:
    with _connect(server.url()) as connection:
        connection.execute(f'create database "{name}"')
    try:
        with _connect(server.url(name)) as connection:
            connection.execute("create extension if not exists vector")
        yield server.url(name)
    finally:
        with _connect(server.url()) as connection:
            connection.execute(f'drop database if exists "{name}" with (force)')


def _connect(url: str) -> Any:
    import psycopg
    from sqlalchemy import make_url

    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True)


def _with_database(url: str, database: str) -> str:
    from sqlalchemy import make_url

    return make_url(url).set(drivername="postgresql+psycopg", database=database).render_as_string(hide_password=False)


def _database_of(url: str) -> str:
    from sqlalchemy import make_url

    return make_url(url).database or ""


def _controller(config: pytest.Config) -> int:
    return os.getppid() if hasattr(config, "workerinput") else os.getpid()


# -- engines


@dataclass(frozen=True)
class Backend:
    """A database to open an engine on."""

    name: str
    url: str = field(repr=False)

    @property
    def is_postgres(self) -> bool:
        """Whether it is Postgres."""
        return self.name == "postgres"


@pytest.fixture(scope="session")
def empty_store() -> Iterator[EmptyStore]:
    """A SQLite store without rows, to be copied."""
    store = EmptyStore()
    yield store
    store.close()


@pytest.fixture(params=["sqlite-memory", "sqlite-file", "postgres"])
def backend(request: pytest.FixtureRequest, empty_store: EmptyStore) -> Iterator[Backend]:
    """Each database in turn, with our tables and no rows; with the marker `blank` SQLite has no tables either."""
    name, blank = request.param, request.node.get_closest_marker("blank")
    if name == "postgres":
        yield Backend(name, request.getfixturevalue("postgres_url"))
    elif name == "sqlite-file":
        file = request.getfixturevalue("tmp_path") / "memory.db"
        if not blank:
            empty_store.copy_to(file)
        yield Backend(name, f"sqlite:///{file}")
    else:
        with contextlib.nullcontext() if blank else empty_store.in_memory():
            yield Backend(name, "sqlite:///:memory:")


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """Each half of the API in turn."""
    half: Mode = request.param
    return half


@pytest.fixture
def twin(mode: Mode) -> Iterator[Callable[[object], Twin]]:
    """Wrap a handle so that its verbs run in this test's mode, all on one event loop."""
    loop = Loop()
    yield lambda handle: Twin(handle, mode, loop)
    loop.close()


@pytest.fixture
def make_engine(backend: Backend, twin: Callable[[object], Twin]) -> Iterator[Callable[..., Any]]:
    """Open wrapped engines on this test's database, closed at the end; two on "sqlite-memory" share nothing.

    Keyword arguments go to `MemoryEngine`; the embedder is "hash/words" if left out.
    """
    from memoranda import MemoryEngine

    engines: list[Twin] = []

    def make(**options: Any) -> Twin:
        engine: MemoryEngine = MemoryEngine(backend.url, **{"embedder": "hash/words", "background": "off", **options})
        engines.append(twin(engine))
        return engines[-1]

    yield make
    for engine in reversed(engines):
        engine.close()


@pytest.fixture
def engine(make_engine: Callable[..., Any]) -> Any:
    """A wrapped engine with the default options."""
    return make_engine()


@pytest.fixture
def me(engine: Any) -> Any:
    """The persona "main" of `engine`."""
    return engine.persona("main")
