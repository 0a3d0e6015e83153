"""The vector stores beside langchain-postgres, with its hybrid search, and beside LlamaIndex's store for Postgres."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import psycopg
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    ExactMatchFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from peers import Bench, in_turn, told
from speed import DIMENSIONS

from langchain_memoranda import KnowledgeVectorStore
from llama_index.memory.memoranda import KnowledgeVectorStore as NodeStore
from memoranda import MemoryEngine

BATCH, K = 100, 10
_FILL = 1000
_COLORS = 10  # a filter lets one row of ten through

Add: TypeAlias = Callable[[Sequence[tuple[str, str]]], object]
"""Store texts under ids, of a colour by the id."""
Ask: TypeAlias = Callable[[str, bool], Sequence[object]]
"""Search by words and meaning, filtered or not."""


def measure(bench: Bench) -> dict[str, Any]:
    """Fill the stores with the same texts, and let them take turns."""
    engines = {
        "ours/pg": bench.stack.enter_context(MemoryEngine(bench.postgres, embedder="none", background="off")),
        "ours/sqlite": bench.stack.enter_context(
            MemoryEngine(f"sqlite:///{bench.folder / 'nodes.db'}", embedder="none", background="off")
        ),
    }
    for engine in engines.values():
        engine.setup()
    personas = {name: engine.persona("vectors") for name, engine in engines.items()}
    chains = {
        name: _chain(KnowledgeVectorStore(persona, "chain", embedding=bench.given))
        for name, persona in personas.items()
    }
    nodes = {name: _nodes(NodeStore(persona=persona), bench) for name, persona in personas.items()}
    return {
        "langchain": _filled(bench, {"langchain-postgres": _their_chain(bench), **chains}),
        "llama-index": _filled(bench, {"PGVectorStore": _their_nodes(bench), **nodes}),
    }


def _filled(bench: Bench, stores: dict[str, tuple[Add, Ask]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    stored = 0
    for size in bench.sizes:
        for start in range(stored, size, _FILL):
            rows = [(str(start + n), text) for n, text in enumerate(bench.sentences(min(_FILL, size - start)))]
            for add, _ in stores.values():
                add(rows)
        with psycopg.connect(bench.dsn, autocommit=True) as conn:
            conn.execute("VACUUM ANALYZE")  # as a server does by itself, within a minute
        result[str(size)] = _steps(bench, stores, size)
        stored = size + bench.searches + 8 * BATCH
    return result


def _steps(bench: Bench, stores: dict[str, tuple[Add, Ask]], size: int) -> dict[str, Any]:
    steps: dict[str, Any] = {}
    questions = bench.sentences(bench.searches, length=7)
    for label, filtered in (("hybrid search", False), ("hybrid search, filtered", True)):
        runs = {
            name: [lambda a=ask, q=question, f=filtered: a(q, f) for question in questions]
            for name, (_, ask) in stores.items()
        }
        steps[label] = in_turn(runs)
        told(f"{size:,}: {label}, ms", steps[label])
    singles = [[(str(size + n), text)] for n, text in enumerate(bench.sentences(bench.searches))]
    batches = [
        [(str(size + bench.searches + part * BATCH + n), text) for n, text in enumerate(bench.sentences(BATCH))]
        for part in range(8)
    ]
    for label, given in (("add", singles), (f"add, {BATCH} in a batch", batches)):
        adds = {name: [lambda a=add, r=rows: a(r) for rows in given] for name, (add, _) in stores.items()}
        steps[label] = in_turn(adds)
        told(f"{size:,}: {label}, ms", steps[label])
    return steps


def _color(identifier: str) -> str:
    return f"c{int(identifier) % _COLORS}"


# -- LangChain


def _chain(store: VectorStore, **options: Callable[[], Any]) -> tuple[Add, Ask]:
    def add(rows: Sequence[tuple[str, str]]) -> object:
        documents = [Document(text, metadata={"color": _color(identifier)}) for identifier, text in rows]
        return store.add_documents(documents, ids=[identifier for identifier, _ in rows])

    def ask(question: str, filtered: bool) -> Sequence[object]:
        more = {name: make() for name, make in options.items()} | ({"filter": {"color": "c3"}} if filtered else {})
        return store.similarity_search(question, k=K, **more)

    return add, ask


def _their_chain(bench: Bench) -> tuple[Add, Ask]:
    from langchain_postgres import Column, PGEngine, PGVectorStore  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from langchain_postgres.v2.hybrid_search_config import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        HybridSearchConfig,
        reciprocal_rank_fusion,
    )

    def config() -> Any:
        # A new one a question: the store writes the question's text into the one it was given, and keeps it there.
        return HybridSearchConfig(
            tsv_column="content_tsv",
            tsv_lang="pg_catalog.english",
            fusion_function=reciprocal_rank_fusion,
            primary_top_k=K,
            secondary_top_k=K,
        )

    engine = PGEngine.from_connection_string(url=_url(bench, "asyncpg"))
    engine.init_vectorstore_table(
        table_name="chain",
        vector_size=DIMENSIONS,
        id_column=Column("langchain_id", "TEXT"),
        metadata_columns=[Column("color", "TEXT")],
        hybrid_search_config=config(),
    )
    columns = {"metadata_columns": ["color"], "hybrid_search_config": config()}
    store = PGVectorStore.create_sync(engine, bench.given, "chain", **columns)
    store.apply_hybrid_search_index()
    bench.stack.callback(lambda: engine._run_as_sync(engine.close()))
    return _chain(store, hybrid_search_config=config)


# -- LlamaIndex


def _nodes(store: BasePydanticVectorStore, bench: Bench) -> tuple[Add, Ask]:
    def node(identifier: str, text: str) -> TextNode:
        vector = bench.given.table[text]
        return TextNode(id_=identifier, text=text, embedding=vector, metadata={"color": _color(identifier)})

    def add(rows: Sequence[tuple[str, str]]) -> object:
        return store.add([node(*row) for row in rows])

    def ask(question: str, filtered: bool) -> Sequence[object]:
        filters = MetadataFilters(filters=[ExactMatchFilter(key="color", value="c3")]) if filtered else None
        query = VectorStoreQuery(
            query_embedding=bench.given.table[question],
            query_str=question,
            mode=VectorStoreQueryMode.HYBRID,
            similarity_top_k=K,
            filters=filters,
        )
        return store.query(query).nodes or ()

    return add, ask


def _their_nodes(bench: Bench) -> tuple[Add, Ask]:
    from llama_index.vector_stores.postgres import PGVectorStore  # type: ignore[import-not-found,import-untyped,unused-ignore]

    store = PGVectorStore(
        connection_string=_url(bench, "psycopg2"),
        async_connection_string=_url(bench, "asyncpg"),
        table_name="nodes",
        schema_name="public",
        hybrid_search=True,
        text_search_config="english",
        embed_dim=DIMENSIONS,
        perform_setup=True,
    )
    bench.stack.callback(lambda: asyncio.run(store.close()))
    return _nodes(store, bench)


def _url(bench: Bench, driver: str) -> str:
    return re.sub(r"^postgresql\+psycopg:", f"postgresql+{driver}:", bench.postgres)
