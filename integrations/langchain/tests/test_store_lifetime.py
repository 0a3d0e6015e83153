"""A store among event loops, threads and connections: it lives as long as its engine and blocks nobody."""

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from blockbuster import blockbuster_ctx
from sqlalchemy import text

from langchain_memoranda import MemoryStore
from memoranda.errors import ConfigurationError

HERE = ("docs",)


def test_a_store_lives_as_long_as_its_engine(make_engine, backend):  # complaint 12
    engine = make_engine()

    def remember():
        return MemoryStore(engine.handle)

    store = remember()
    store.put(HERE, "k", {"text": "tea"})
    gc.collect()
    assert store.get(HERE, "k").value == {"text": "tea"}
    if not backend.is_postgres:
        with MemoryStore.from_conn_string("sqlite://", embedder="hash/words") as opened:
            opened.setup()
            opened.put(HERE, "k", {})
        with pytest.raises(ConfigurationError, match="closed"):
            opened.get(HERE, "k")


def test_a_lost_connection_costs_nothing(make_engine, backend):  # complaint 12
    engine = make_engine()
    store = MemoryStore(engine.handle)
    store.put(HERE, "k", {"text": "tea"})
    if backend.is_postgres:
        with engine.handle._database._engine.connect() as conn:
            others = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
            conn.execute(text(f"{others} and datname = current_database()"))
    assert store.get(HERE, "k") is not None


def test_one_store_serves_loops_threads_and_plain_code(by_letters, backend):  # complaint 13
    store = by_letters

    async def some(n):
        await asyncio.gather(*(store.aput(HERE, f"{n}-{i}", {"text": f"tea {i}"}) for i in range(5)))
        store.put(HERE, f"{n}-plain", {"text": "tea"})  # in a running loop
        found = await asyncio.gather(*(store.asearch(HERE, query="tea", limit=50) for _ in range(3)))
        assert [len(one) for one in found] == [6 * n + 6] * 3

    asyncio.run(some(0))
    asyncio.run(some(1))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: store.put(HERE, f"thread-{n}", {"text": "tea"}), range(3)))
        list(pool.map(lambda n: asyncio.run(store.aget(HERE, f"thread-{n}")), range(3)))
    assert len(store.search(HERE, query="tea", limit=50)) == 15


def test_a_cancelled_call_takes_nobody_else_s_answer(by_letters):  # complaint 13
    async def calls():
        await by_letters.aput(HERE, "k", {"text": "tea"})
        first, second = (asyncio.create_task(by_letters.aget(HERE, "k")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).value == {"text": "tea"}
        assert (await by_letters.aget(HERE, "k")).key == "k"
        assert first.cancelled()

    asyncio.run(calls())
    asyncio.run(calls())


def test_what_was_put_before_never_comes_after(make_store, make_letters):  # complaint 13
    async def slow_at_first(texts):
        await asyncio.sleep(0.1 * ("first" in texts[0]))
        return make_letters().embed_documents(texts)

    store = make_store(index={"dims": 26, "embed": slow_at_first})

    async def calls(n):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.aput(HERE, "k", {"text": f"first {n}"}), 0.01)
        await store.aput(HERE, "k", {"text": "second"})
        await asyncio.sleep(0.15)
        return await store.aget(HERE, "k")

    for n in range(2):
        assert asyncio.run(calls(n)).value == {"text": "second"}


def test_setting_up_twice_changes_nothing_and_needs_no_statement_outside_a_transaction(make_engine):  # complaint 16
    store = MemoryStore(make_engine().handle)
    store.setup()
    asyncio.run(store.asetup())
    store.put(HERE, "k", {})
    with pytest.raises(ConfigurationError, match="persona"):
        MemoryStore(make_engine().handle.persona("main")).setup()


def test_nothing_blocks_the_event_loop(make_store, make_letters):  # complaint 14
    async def letters(texts):
        return make_letters().embed_documents(texts)

    store = make_store(index={"dims": 26, "embed": letters})

    async def everything():
        await asyncio.gather(*(store.aput(HERE, str(n), {"text": f"tea {n}"}, ttl=5) for n in range(5)))
        assert len(await store.asearch(HERE, query="tea", filter={"text": {"$ne": "x"}})) == 5
        assert (await store.aget(HERE, "1")).key == "1"
        assert await store.alist_namespaces() == [HERE]
        await store.adelete(HERE, "1")
        assert await store.asweep_ttl() == 0

    async def opened():
        async with MemoryStore.afrom_conn_string("sqlite://", timezone="Pacific/Auckland") as other:
            await other.asetup()
            await other.aput(HERE, "k", {"text": "tea"})

    store.put(HERE, "0", {"text": "tea"})
    with blockbuster_ctx():
        asyncio.run(everything())
        asyncio.run(everything())
        asyncio.run(opened())


def test_what_is_asked_for_in_one_turn_is_one_batch(make_store, make_engine, make_letters):
    engine = make_engine()
    store = make_store(engine, index={"dims": 26, "embed": (counted := make_letters())})

    async def at_once():
        await asyncio.gather(*(store.aput(HERE, str(n), {"text": f"tea {n}"}) for n in range(40)))
        found = await asyncio.gather(*(store.asearch(HERE, limit=50) for _ in range(40)))
        assert {len(one) for one in found} == {40}
        found[0][0].value["text"] = "changed"
        assert found[1][0].value["text"] != "changed"

    asyncio.run(at_once())
    assert counted.calls == 1
