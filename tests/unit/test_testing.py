"""The shipped fakes and the plugin, tried on a toy handle and on a small pytest run of its own."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import NullPool, create_engine, text

from memoranda.testing import BrokenEmbedder, CountingEmbedder, FixedEmbedder, FrozenClock, NetworkClosed, Twin
from memoranda.testing.postgres import PostgresServer, PostgresUnavailable

pytest_plugins = ["pytester"]


class Shelf:
    _memoranda_handle = True

    def __init__(self, name):
        self.name = name
        self.calls = []
        self.loops = set()

    def shelf(self, name):
        return Shelf(name)

    @property
    def inner(self):
        return Shelf("inner")

    def put(self, text, *, times=1):
        self.calls.append("put")
        return text * times

    async def aput(self, text, *, times=1):
        self.calls.append("aput")
        self.loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return text * times

    def join(self, other):
        return type(other).__name__

    async def ajoin(self, other):
        return type(other).__name__

    def lonely(self):
        return 1

    def close(self):
        self.calls.append("close")

    async def aclose(self):
        self.calls.append("aclose")

    def __enter__(self):
        self.calls.append("enter")
        return self

    def __exit__(self, *exc_info):
        self.calls.append("exit")

    async def __aenter__(self):
        self.calls.append("aenter")
        return self

    async def __aexit__(self, *exc_info):
        self.calls.append("aexit")


def test_a_twin_calls_the_verb_of_its_mode_on_one_loop(twin, mode):
    shelf = twin(Shelf("outer"))
    assert shelf.put("ab", times=2) == "abab"
    assert shelf.put("c") == "c"
    assert shelf.handle.calls == (["put", "put"] if mode == "sync" else ["aput", "aput"])
    assert len(shelf.handle.loops) == (0 if mode == "sync" else 1)


def test_handles_that_come_out_of_a_twin_are_wrapped_and_values_are_not(twin):
    shelf = twin(Shelf("outer"))
    assert isinstance(shelf.shelf("new"), Twin)
    assert isinstance(shelf.inner, Twin)
    assert shelf.inner.name == "inner"
    assert shelf.join(shelf.inner) == "Shelf"


def test_a_twin_enters_and_leaves_the_handle_in_its_mode(twin, mode):
    with twin(Shelf("outer")) as shelf:
        assert isinstance(shelf, Twin)
    assert shelf.handle.calls == (["enter", "exit"] if mode == "sync" else ["aenter", "aexit"])


def test_a_verb_without_an_async_twin_is_an_error_in_async_mode(twin, mode):
    shelf = twin(Shelf("outer"))
    if mode == "sync":
        assert shelf.lonely() == 1
    else:
        with pytest.raises(TypeError, match="lonely has no async twin alonely"):
            shelf.lonely()


def test_a_frozen_clock_moves_only_when_told():
    clock = FrozenClock(datetime(2026, 5, 1, 1, tzinfo=timezone(timedelta(hours=2))))
    assert clock() == clock() == datetime(2026, 4, 30, 23, tzinfo=UTC)
    assert clock().tzinfo is UTC
    clock.advance(timedelta(hours=1), minutes=30)
    assert clock() == datetime(2026, 5, 1, 0, 30, tzinfo=UTC)
    with pytest.raises(ValueError, match="time zone"):
        clock.set(datetime(2026, 1, 1))


def test_embedders_fail_count_and_answer_as_scripted():
    broken = BrokenEmbedder()
    with pytest.raises(ConnectionError):
        broken.embed(["a"], "query")
    with pytest.raises(ConnectionError):
        asyncio.run(broken.aembed(["a"], "query"))
    assert broken.calls == 2

    fixed = FixedEmbedder({"a": [1, 0], "b": [0, 1]})
    counting = CountingEmbedder(fixed)
    assert counting.embed(["b", "a"], "text") == [[0.0, 1.0], [1.0, 0.0]]
    assert asyncio.run(counting.aembed(["a"], "query")) == [[1.0, 0.0]]
    assert counting.calls == [("b", "a"), ("a",)]
    assert counting.texts == ["b", "a", "a"]
    with pytest.raises(AssertionError, match="'c'"):
        fixed.embed(["a", "c"], "text")


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "example.invalid"])
def test_the_network_is_closed_and_attempts_are_remembered(network, host):
    with pytest.raises(NetworkClosed):
        socket.create_connection((host, 80), timeout=1)
    assert network.attempts == [host]
    network.attempts.clear()


def test_the_loopback_address_and_unix_sockets_stay_open(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=1).close()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(tmp_path / "s"))
        server.listen()
        client.connect(str(tmp_path / "s"))


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run_in_process_of_its_own(source):
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess("-p", "memoranda.testing.plugin")

    return run_in_process_of_its_own


def test_an_unexpected_skip_fails_and_a_named_one_does_not(run):
    result = run(
        """
        import pytest
        def test_forgotten(): pytest.skip("server down")
        def test_named(): pytest.skip("not applicable: SQLite has one writer")
        @pytest.mark.skip(reason="later")
        def test_marked(): pass
        @pytest.mark.xfail(strict=True)
        def test_known(): assert False
        """
    )
    result.assert_outcomes(failed=1, errors=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*unexpected skip (server down)*"])


def test_a_module_that_skips_itself_fails_the_run(run):
    result = run("import pytest\npytest.importorskip('no_such_module')\ndef test_one(): pass")
    result.assert_outcomes(errors=1)


def test_a_swallowed_attempt_at_the_network_fails_the_test(run):
    result = run(
        """
        import contextlib, socket
        def test_quiet():
            with contextlib.suppress(OSError):
                socket.create_connection(("192.0.2.1", 80), timeout=1)
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*reached for the network: 192.0.2.1*"])


def test_pooler_tests_are_left_out_where_there_is_no_pooler(run, monkeypatch):
    monkeypatch.delenv("MEMORANDA_TEST_PGBOUNCER_URL", raising=False)
    result = run("import pytest\n@pytest.mark.pgbouncer\ndef test_pooled(): pass\ndef test_direct(): pass")
    result.assert_outcomes(passed=1, deselected=1)


def test_a_blank_database_has_vectors_and_nothing_of_ours(blank_postgres_url):
    with create_engine(blank_postgres_url, poolclass=NullPool).connect() as connection:
        assert connection.scalar(text("select '[1,2]'::vector <=> '[1,2]'::vector")) == 0
        assert connection.scalar(text("select count(*) from pg_namespace where nspname = 'memoranda'")) == 0


def test_a_server_of_ones_own_keeps_its_data_through_a_restart(own_postgres):
    engine = create_engine(own_postgres.url(), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("create table kept as select 7 as n"))
    first = own_postgres.pid
    own_postgres.restart()
    assert own_postgres.pid not in (None, first)
    with engine.connect() as connection:
        assert connection.scalar(text("select n from kept")) == 7


def test_an_unknown_wheel_is_named_and_a_stopped_server_can_be_stopped_again(tmp_path):
    server = PostgresServer(tmp_path, wheel="no-such-wheel")
    with pytest.raises(PostgresUnavailable, match="no-such-wheel"):
        server.start()
    server.stop()
