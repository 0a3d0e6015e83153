"""One small adapter a peer: open, add, search, close, as its documentation says, with its defaults.

Every peer is given the same vectors and stores them where it would. `OPENERS` names them all; one that is not installed
raises `ImportError` when it is opened. None of them reaches for the network.
"""

import asyncio
import hashlib
import logging
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from memoranda import MemoryEngine
from memoranda.policies import FloorPolicy

FEW = 20
"""Hits that a peer's own fusion looks at in each leg, and at least as many as are asked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is to be remembered. The session and the place in it are for those that can use them."""

    id: str
    text: str
    when: datetime | None = None
    session: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: the ids, the best first, and the score of the best as the peer tells it."""

    ids: list[str]
    score: float | None
    abstained: bool


class Peer(ABC):
    """A peer that is open."""

    @abstractmethod
    def add(self, scope: str, rows: Sequence[Row]) -> None:
        """Store rows, by the single write if it is one, and by the best public batch write if there are more."""

    def fill(self, scope: str, rows: Sequence[Row]) -> None:
        """Store rows before anything is measured: as `add` does where that is not slower than anyone would wait."""
        self.add(scope, rows)

    def settle(self) -> None:  # noqa: B027 - most ask for nothing
        """Do what the peer asks for after many writes."""

    @abstractmethod
    def search(self, scope: str, question: str, limit: int) -> Found:
        """Search one scope by words and meaning, or by what the peer can."""


class Vectors(Embeddings):
    """Looks vectors up by their texts, as an embedder of each of the peers."""

    distinguishes_purpose = False
    local = True

    def __init__(self, name: str, dimensions: int, table: Mapping[str, Any]) -> None:
        self.name, self.dimensions = name, dimensions
        self.table = {text.strip(): vector for text, vector in table.items()}  # mem0 strips what it embeds

    def of(self, text: str) -> Any:
        """Look one text up."""
        return self.table[text.strip()]

    def embed(self, texts: Sequence[str], purpose: str = "text") -> list[Any]:
        """Look the texts up."""
        return [self.of(text) for text in texts]

    async def aembed(self, texts: Sequence[str], purpose: str = "text") -> list[Any]:
        """Look the texts up."""
        return self.embed(texts)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Look the texts up."""
        return [self.of(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Look the text up."""
        return list(self.of(text).tolist())


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a peer may keep what it stores."""

    stack: ExitStack
    folder: Path
    url: str
    """The SQLAlchemy URL of an empty database with the `vector` extension."""
    vectors: Vectors
    abstains: bool = True
    """Whether a peer that can tell that it has no answer may do so."""

    @property
    def dsn(self) -> str:
        """The same database for psycopg."""
        return self.url.replace("+psycopg:", ":")

    def driver(self, name: str) -> str:
        """Return the same database for another driver."""
        return re.sub(r"^postgresql\+psycopg:", f"postgresql+{name}:", self.url)


def quiet(folder: Path) -> None:
    """Tell every peer to stay off the network and to keep its own files in a folder; before any is imported."""
    names = {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "LANGSMITH_TRACING": "false"}
    names |= {"MEM0_DIR": str(folder / "mem0"), "LANCEDB_CONFIG_DIR": str(folder / "lance"), "DO_NOT_TRACK": "1"}
    os.environ.update(names | {"LANCE_LOG": "error", "LANCEDB_LOG": "error", "HF_HUB_OFFLINE": "1"})
    os.environ.setdefault("OPENAI_API_KEY", "unused")  # mem0 makes its clients at once
    logging.getLogger("mem0").setLevel(logging.ERROR)


def _found(pairs: Sequence[tuple[str, float]], limit: int) -> Found:
    return Found([found for found, _ in pairs[:limit]], pairs[0][1] if pairs else None, not pairs)


# -- ours


@dataclass
class _Ours(Peer):
    engine: MemoryEngine
    floor: FloorPolicy | None
    ids: dict[str, dict[Any, str]] = field(default_factory=dict)

    def add(self, scope: str, rows: Sequence[Row]) -> None:
        memories, ids = self.engine.persona(scope).memories, self.ids.setdefault(scope, {})
        if len(rows) == 1:
            fields = self._fields(rows[0])
            ids[memories.write(fields.pop("content"), **fields).id] = rows[0].id
            return
        for start in range(0, len(rows), 1000):
            part = rows[start : start + 1000]
            for row, result in zip(part, memories.write_many([self._fields(row) for row in part]), strict=True):
                ids.setdefault(result.memory.id, row.id)  # the same text twice is one memory, known by its first id

    @staticmethod
    def _fields(row: Row) -> dict[str, Any]:
        fields = {"event_time": row.when} if row.when else {}
        return {
            "content": row.text,
            **fields,
            **({"session": row.session, "position": row.position} if row.session else {}),
        }

    def search(self, scope: str, question: str, limit: int) -> Found:
        answer = self.engine.persona(scope).recall(question, limit=limit, floor=self.floor)
        ids = self.ids[scope]
        best = max((hit.confidence for hit in (*answer, *answer.nearest)), default=None)
        return Found([ids[hit.id] for hit in answer], best, answer.abstained)


def _ours_sqlite(place: Place) -> Peer:
    return _opened(place, f"sqlite:///{place.folder / 'ours.db'}")


def _ours_postgres(place: Place) -> Peer:
    return _opened(place, place.url)


def _opened(place: Place, url: str) -> Peer:
    engine = place.stack.enter_context(MemoryEngine(url, embedder=place.vectors, background="off"))
    engine.setup()
    return _Ours(engine, None if place.abstains else FloorPolicy(enabled=False))


# -- LangGraph


@dataclass
class _LangGraph(Peer):
    """Vectors only. One put an item: `batch` of the store in memory refuses two equal texts."""

    store: Any
    batches: bool

    def add(self, scope: str, rows: Sequence[Row]) -> None:
        from langgraph.store.base import PutOp

        if not self.batches or len(rows) == 1:
            for row in rows:
                self.store.put(("u", scope), row.id, {"text": row.text})
            return
        for start in range(0, len(rows), 500):
            part = rows[start : start + 500]
            self.store.batch([PutOp(("u", scope), row.id, {"text": row.text}) for row in part])

    def search(self, scope: str, question: str, limit: int) -> Found:
        found = self.store.search(("u", scope), query=question, limit=limit)
        return _found([(item.key, item.score) for item in found], limit)


def _langgraph_memory(place: Place) -> Peer:
    from langgraph.store.memory import InMemoryStore

    return _LangGraph(InMemoryStore(index=_index(place.vectors)), batches=False)


def _langgraph_postgres(place: Place) -> Peer:
    from langgraph.store.postgres import PostgresStore  # type: ignore[import-not-found,unused-ignore]

    store = place.stack.enter_context(PostgresStore.from_conn_string(place.dsn, index=_index(place.vectors)))
    store.setup()
    return _LangGraph(store, batches=True)


def _index(vectors: Vectors) -> Any:
    return {"dims": vectors.dimensions, "embed": vectors, "fields": ["text"]}


# -- LangChain's store for Postgres


@dataclass
class _LangChain(Peer):
    """Hybrid, fused by ranks as documented; its words are joined by AND."""

    store: Any
    config: Callable[[int], Any]

    def add(self, scope: str, rows: Sequence[Row]) -> None:
        texts, ids = [row.text for row in rows], [f"{scope}|{row.id}" for row in rows]
        self.store.add_texts(texts, metadatas=[{"scope": scope}] * len(rows), ids=ids)

    def search(self, scope: str, question: str, limit: int) -> Found:
        # A new configuration a question: the store keeps the first question's words in the one it was given.
        config = self.config(max(limit, FEW))
        found = self.store.similarity_search_with_score(
            question, k=limit, filter={"scope": scope}, hybrid_search_config=config
        )
        return _found([(document.id.split("|", 1)[1], score) for document, score in found], limit)


def _langchain_postgres(place: Place) -> Peer:
    from langchain_postgres import Column, PGEngine, PGVectorStore  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from langchain_postgres.v2.hybrid_search_config import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        HybridSearchConfig,
        reciprocal_rank_fusion,
    )

    def config(top: int) -> Any:
        return HybridSearchConfig(
            tsv_column="content_tsv",
            tsv_lang="pg_catalog.english",
            fusion_function=reciprocal_rank_fusion,
            primary_top_k=top,
            secondary_top_k=top,
        )

    engine = PGEngine.from_connection_string(url=place.driver("asyncpg"))
    engine.init_vectorstore_table(
        table_name="chain",
        vector_size=place.vectors.dimensions,
        id_column=Column("langchain_id", "TEXT"),
        metadata_columns=[Column("scope", "TEXT")],
        hybrid_search_config=config(FEW),
    )
    columns = {"metadata_columns": ["scope"], "hybrid_search_config": config(FEW)}
    store = PGVectorStore.create_sync(engine, place.vectors, "chain", **columns)
    store.apply_hybrid_search_index()
    place.stack.callback(lambda: engine._run_as_sync(engine.close()))
    return _LangChain(store, config)


# -- LlamaIndex's store for Postgres


@dataclass
class _LlamaIndex(Peer):
    """Hybrid gives the nearest first and then those found by words: cut to the limit it goes by vectors alone."""

    store: Any
    vectors: Vectors

    def add(self, scope: str, rows: Sequence[Row]) -> None:
        from llama_index.core.schema import TextNode

        nodes = [
            TextNode(
                id_=f"{scope}|{row.id}",
                text=row.text,
                embedding=self.vectors.embed_query(row.text),
                metadata={"scope": scope},
            )
            for row in rows
        ]
        self.store.add(nodes)

    def search(self, scope: str, question: str, limit: int) -> Found:
        from llama_index.core.vector_stores.types import (
            ExactMatchFilter,
            MetadataFilters,
            VectorStoreQuery,
            VectorStoreQueryMode,
        )

        query = VectorStoreQuery(
            query_embedding=self.vectors.embed_query(question),
            query_str=question,
            mode=VectorStoreQueryMode.HYBRID,
            similarity_top_k=limit,
            sparse_top_k=limit,
            filters=MetadataFilters(filters=[ExactMatchFilter(key="scope", value=scope)]),
        )
        found = self.store.query(query)
        names = [name.split("|", 1)[1] for name in found.ids]
        return _found(list(zip(names, found.similarities, strict=True)), limit)


def _llama_index_postgres(place: Place) -> Peer:
    from llama_index.vector_stores.postgres import PGVectorStore  # type: ignore[import-not-found,import-untyped,unused-ignore]

    store = PGVectorStore(
        connection_string=place.driver("psycopg2"),
        async_connection_string=place.driver("asyncpg"),
        table_name="nodes",
        schema_name="public",
        hybrid_search=True,
        text_search_config="english",
        embed_dim=place.vectors.dimensions,
        perform_setup=True,
    )
    place.stack.callback(lambda: asyncio.run(store.close()))
    return _LlamaIndex(store, place.vectors)


# -- Chroma


@dataclass
class _Chroma(Peer):
    """Vectors only, through its own HNSW."""

    collection: Any
    vectors: Vectors

    def add(self, scope: str, rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), 5000):
            part = rows[start : start + 5000]
            self.collection.add(
                ids=[f"{scope}|{row.id}" for row in part],
                documents=[row.text for row in part],
                embeddings=[self.vectors.of(row.text) for row in part],
                metadatas=[{"scope": scope}] * len(part),
            )

    def search(self, scope: str, question: str, limit: int) -> Found:
        found = self.collection.query(
            query_embeddings=[self.vectors.of(question)],
            n_results=limit,
            where={"scope": scope},
            include=["distances"],
        )
        names = [name.split("|", 1)[1] for name in found["ids"][0]]
        return _found([(name, 1 - far) for name, far in zip(names, found["distances"][0], strict=True)], limit)


def _chroma(place: Place) -> Peer:
    import chromadb  # type: ignore[import-not-found,unused-ignore]

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(place.folder / "chroma"), settings=settings)
    place.stack.callback(client._system.stop)
    collection = client.create_collection("bench", embedding_function=None, configuration={"hnsw": {"space": "cosine"}})
    return _Chroma(collection, place.vectors)


# -- LanceDB


@dataclass
class _Lance(Peer):
    """Hybrid: every vector is compared, words by its own index, both fused by ranks."""

    table: Any
    reranker: Any
    vectors: Vectors
    indexed: bool = False

    def add(self, scope: str, rows: Sequence[Row]) -> None:
        self.table.add(
            [{"id": row.id, "scope": scope, "text": row.text, "vector": self.vectors.of(row.text)} for row in rows]
        )

    def settle(self) -> None:
        if not self.indexed:
            from lancedb.index import FTS, BTree  # type: ignore[import-not-found,import-untyped,unused-ignore]

            self.table.create_index("text", config=FTS())
            self.table.create_index("scope", config=BTree())
            self.indexed = True
        self.table.optimize()

    def search(self, scope: str, question: str, limit: int) -> Found:
        search = self.table.search(query_type="hybrid").vector(self.vectors.of(question)).text(question)
        name = scope.replace("'", "''")
        ranked = search.where(f"scope = '{name}'").rerank(self.reranker).limit(limit).select(["id"]).to_list()
        return _found([(row["id"], row["_relevance_score"]) for row in ranked], limit)


def _lance(place: Place) -> Peer:
    import lancedb  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from lancedb.rerankers import RRFReranker  # type: ignore[import-not-found,import-untyped,unused-ignore]

    words = [(name, pyarrow.string()) for name in ("id", "scope", "text")]
    vector = pyarrow.list_(pyarrow.float32(), place.vectors.dimensions)
    database = lancedb.connect(str(place.folder / "lance"))
    table = database.create_table("bench", schema=pyarrow.schema([*words, ("vector", vector)]))
    return _Lance(table, RRFReranker(), place.vectors)


# -- mem0


@dataclass
class _Mem0(Peer):
    """No model extracts anything (`infer=False`), and words count only with models that it would have to download."""

    memory: Any
    embed: Callable[[list[str]], list[list[float]]]
    ids: dict[str, str] = field(default_factory=dict)

    def add(self, scope: str, rows: Sequence[Row]) -> None:
        messages = [{"role": "user", "content": row.text} for row in rows]
        added = self.memory.add(messages, user_id=scope, infer=False)["results"]
        self.ids.update((result["id"], row.id) for result, row in zip(added, rows, strict=True))

    def fill(self, scope: str, rows: Sequence[Row]) -> None:
        """Insert below `add`, which stores a row at a time with its history."""
        names = [str(uuid.uuid4()) for _ in rows]
        said = [{"user_id": scope, "role": "user", "data": row.text, "text_lemmatized": row.text} for row in rows]
        self.memory.vector_store.insert(self.embed([row.text for row in rows]), said, names)
        self.ids.update(zip(names, (row.id for row in rows), strict=True))

    def search(self, scope: str, question: str, limit: int) -> Found:
        found = self.memory.search(question, filters={"user_id": scope}, top_k=limit)["results"]
        return _found([(self.ids[item["id"]], item["score"]) for item in found], limit)


def _mem0_qdrant(place: Place) -> Peer:
    config = {"path": str(place.folder / "qdrant"), "on_disk": True}
    return _mem0(place, "qdrant", config, lambda memory: memory.vector_store.client.close())


def _mem0_postgres(place: Place) -> Peer:
    config = {"connection_string": place.dsn, "hnsw": True}
    return _mem0(place, "pgvector", config, lambda memory: memory.vector_store.connection_pool.close(timeout=5))


def _mem0(place: Place, provider: str, config: dict[str, Any], close: Callable[[Any], object]) -> Peer:
    from mem0 import Memory  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from mem0.embeddings.base import EmbeddingBase  # type: ignore[import-not-found,import-untyped,unused-ignore]

    class Given(EmbeddingBase):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            self.config = None

        def embed(self, text: str, memory_action: str | None = None) -> list[float]:
            return place.vectors.embed_query(text)

        def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
            return place.vectors.embed_documents(texts)

    name = "m" + hashlib.sha1(str(place.folder).encode()).hexdigest()[:8]
    config |= {"collection_name": name, "embedding_model_dims": place.vectors.dimensions}
    history = place.folder / f"mem0-{provider}.db"
    memory = Memory.from_config(
        {"vector_store": {"provider": provider, "config": config}, "history_db_path": str(history)}
    )
    memory.embedding_model = Given()
    place.stack.callback(close, memory)
    return _Mem0(memory, place.vectors.embed_documents)


OPENERS: Mapping[str, Callable[[Place], Peer]] = {
    "ours/sqlite": _ours_sqlite,
    "ours/pg": _ours_postgres,
    "langgraph/memory": _langgraph_memory,
    "langgraph/pg": _langgraph_postgres,
    "langchain/pg": _langchain_postgres,
    "llama-index/pg": _llama_index_postgres,
    "chroma": _chroma,
    "lancedb": _lance,
    "mem0/qdrant": _mem0_qdrant,
    "mem0/pg": _mem0_postgres,
}
