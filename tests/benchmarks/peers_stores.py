"""The stores of LangGraph: `MemoryStore` beside `PostgresStore` and, where nothing is kept, `InMemoryStore`."""

from typing import Any

import psycopg
from langgraph.store.base import BaseStore, IndexConfig, PutOp
from langgraph.store.memory import InMemoryStore
from peers import Bench, in_turn, told
from speed import DIMENSIONS

from langchain_memoranda import MemoryStore
from memoranda import MemoryEngine

BATCH = 100
_FILL = 500
_HERE = ("users", "u1")
_MANY, _FEW = 100_000, 100


def measure(bench: Bench) -> dict[str, Any]:
    """Fill the stores with the same items, and let them take turns."""
    stores = _opened(bench)
    result: dict[str, Any] = {}
    stored = 0
    for size in bench.sizes:
        for start in range(stored, size, _FILL):
            texts = bench.sentences(min(_FILL, size - start))
            for store in stores.values():
                store.batch([_put(start + n, text) for n, text in enumerate(texts)])
        stored = size
        result[str(size)] = _steps(bench, stores, size)
    result["few among many"] = _few_among_many(bench)
    return result


def _opened(bench: Bench) -> dict[str, BaseStore]:
    from langgraph.store.postgres import PostgresStore  # type: ignore[import-not-found,unused-ignore]

    index: IndexConfig = {"dims": DIMENSIONS, "embed": bench.given, "fields": ["text"]}
    with psycopg.connect(bench.dsn, autocommit=True) as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
    theirs = bench.stack.enter_context(PostgresStore.from_conn_string(bench.dsn, index=index))
    theirs.setup()
    stores: dict[str, BaseStore] = {"PostgresStore": theirs}
    for name, url in (("ours/pg", bench.postgres), ("ours/sqlite", f"sqlite:///{bench.folder / 'items.db'}")):
        engine = bench.stack.enter_context(MemoryEngine(url, embedder="none", background="off"))
        engine.setup()
        stores[name] = MemoryStore(engine, index=index)
    stores["InMemory"] = InMemoryStore(index=index)
    return stores


def _put(n: int, text: str) -> PutOp:
    return PutOp(_HERE, f"k{n}", {"text": text, "n": n, "color": f"c{n % 10}"})


def _steps(bench: Bench, stores: dict[str, BaseStore], size: int) -> dict[str, dict[str, float]]:
    steps: dict[str, dict[str, float]] = {}

    def step(label: str, count: int, call: Any, arguments: list[Any]) -> None:
        runs = {
            name: [lambda s=store, a=argument: call(s, a) for argument in arguments[:count]]
            for name, store in stores.items()
        }
        steps[label] = in_turn(runs)
        told(f"{size:,}: {label}, ms", steps[label])

    questions = bench.sentences(bench.searches, length=7)
    filter = {"color": "c3"}
    step("search, query and filter", len(questions), lambda s, q: s.search(_HERE, query=q, filter=filter), questions)
    step("search, query", len(questions), lambda s, q: s.search(_HERE, query=q), questions)
    step("search, filter", len(questions), lambda s, q: s.search(_HERE, filter=filter), questions)
    step("get", bench.searches, lambda s, n: s.get(_HERE, f"k{n}"), list(range(bench.searches)))
    texts = bench.sentences(bench.searches)
    step("put, new", bench.searches, lambda s, pair: s.batch([_put(*pair)]), list(enumerate(texts, size)))
    texts = bench.sentences(bench.searches)
    step("put, replacing", bench.searches, lambda s, pair: s.batch([_put(*pair)]), list(enumerate(texts, size)))
    batches = [
        [_put(size + bench.searches + part * BATCH + n, text) for n, text in enumerate(bench.sentences(BATCH))]
        for part in range(8)
    ]
    step(f"put, {BATCH} in a batch", len(batches), lambda s, batch: s.batch(batch), batches)
    gone = [PutOp(_HERE, f"k{size + n}", None) for n in range(bench.searches + 8 * BATCH)]
    for store in stores.values():
        store.batch(gone)  # so that the next size is what it says
    return steps


def _few_among_many(bench: Bench) -> dict[str, Any]:
    """Say how many of ten results a namespace of a hundred in a hundred thousand gives, at the hundredth search."""
    index: IndexConfig = {"dims": DIMENSIONS, "embed": bench.given, "fields": ["text"]}
    engine = bench.stack.enter_context(MemoryEngine(bench.postgres, embedder="none", background="off"))
    store = MemoryStore(engine.persona("many"), index=index)
    for start in range(0, _MANY, 2000):
        texts = bench.sentences(2000)
        namespace = ("users", f"u{start // 2000}")
        store.batch([PutOp(namespace, str(n), {"text": text, "n": n}) for n, text in enumerate(texts)])
        for text in texts:
            del bench.given.table[text]
    few = ("users", "few")
    store.batch([PutOp(few, str(n), {"text": text, "n": n}) for n, text in enumerate(bench.sentences(_FEW))])
    engine.build_indexes()
    questions = bench.sentences(100, length=7)
    found = [len(store.search(few, query=question, limit=10)) for question in questions]
    filtered = [len(store.search(few, query=question, filter={"n": {"$lt": 50}}, limit=10)) for question in questions]
    median = in_turn({"ours/pg": [lambda q=q: store.search(few, query=q, limit=10) for q in questions]})  # type: ignore[misc]
    result = {"found": [min(found), found[-1]], "with a filter": [min(filtered), filtered[-1]], "search_ms": median}
    told("100 in 100,000: least and hundredth of 10", {"found": found[-1], "filtered": filtered[-1], **median})
    return result
