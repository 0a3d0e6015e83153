"""The time after which items of a store go, and the thread that sweeps them."""

import gc
import time
import weakref

HERE = ("docs",)


def keys(found):
    return [item.key for item in found]


def test_times_of_fractions_of_a_minute(make_store, do):
    store = make_store(ttl={"default_ttl": 0.5, "refresh_on_read": False, "omit_expired": True})
    do(store, "put", HERE, "default", {})
    do(store, "put", HERE, "short", {}, ttl=0.0005)
    do(store, "put", HERE, "ever", {}, ttl=None)
    time.sleep(0.05)
    assert sorted(keys(do(store, "search", HERE))) == ["default", "ever"]
    assert do(store, "get", HERE, "short") is None and do(store, "get", HERE, "default") is not None
    assert do(store, "sweep_ttl") == 1 and do(store, "sweep_ttl") == 0


def test_reading_begins_the_time_anew_unless_told_otherwise(make_store, do):
    store = make_store(ttl={"default_ttl": 0.01})  # 0.6 seconds
    do(store, "put", HERE, "read", {})
    do(store, "put", HERE, "left", {})
    for _ in range(3):
        time.sleep(0.25)
        assert do(store, "get", HERE, "read") is not None
        do(store, "get", HERE, "left", refresh_ttl=False)
    store.sweep_ttl()
    assert keys(do(store, "search", HERE)) == ["read"]


def test_a_sweeper_sweeps_until_it_is_stopped(make_store):
    store = make_store(ttl={"default_ttl": 0.0001, "sweep_interval_minutes": 0.0005})
    ended = store.start_ttl_sweeper()
    assert store.start_ttl_sweeper() is ended
    store.put(HERE, "k", {})
    for _ in range(100):
        if store.get(HERE, "k", refresh_ttl=False) is None:
            break
        time.sleep(0.02)
    assert store.get(HERE, "k") is None
    assert store.stop_ttl_sweeper(5) and ended.done() and store.stop_ttl_sweeper()


def test_a_store_that_nobody_uses_is_gone_and_its_sweeper_with_it(make_store):
    store = make_store()
    ended = store.start_ttl_sweeper(0.001)
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None
    ended.result(5)
