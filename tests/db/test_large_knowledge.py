"""A hundred chunks of one user's among thousands of others': every search by words and by meaning is exact."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from memoranda.db.queries.vectors import VECTOR, vector_row
from memoranda.ids import new_id
from memoranda.policies import RankingPolicy
from memoranda.presets import STANDARD
from memoranda.scope import author_cell
from memoranda.testing import HashedEmbedder, unwrap
from memoranda.text import Tokenizer, join_terms

CROWD, FEW = 6_000, 100
NOW = datetime(2026, 5, 8, tzinfo=UTC)
OPEN = replace(STANDARD, floor=replace(STANDARD.floor, enabled=False))
BY_COSINE = replace(OPEN, ranking=RankingPolicy(name="overlap", neighbours=0))
EMBEDDER = HashedEmbedder(32)
TOKENIZER = Tokenizer("english")


def content(n):
    return f"Invoice {n} for the harbour of Lisbon, paid by lot{n % 7} at gate{n % 11}"


def fill(conn, tables, author, count):
    """Store a document of so many chunks, with the vectors of their texts."""
    whose = {"tenant": "acme", "persona": "main", "author": author}
    document = whose | {"id": new_id(), "source": "invoices", "digest": "", "media_type": "text/plain"}
    document |= {"chunks": count, "characters": 0, "metadata": {}, "created_at": NOW, "updated_at": NOW}
    tables.inserts.add(conn, tables.knowledge_documents, [document])
    cells = join_terms([author_cell("acme", "main", author)])
    rows = []
    for n in range(count):
        terms = TOKENIZER.terms(content(n))
        words = {"cells": cells, "category_terms": "", "content_terms": join_terms(terms), "length": len(terms)}
        place = {"id": new_id(), "document_id": document["id"], "source": "invoices", "chunk_index": n}
        text = {"content": content(n), "overlap": 0, "start": 0, "headings": [], "metadata": {}, "created_at": NOW}
        rows.append(whose | place | text | words)
    tables.inserts.add(conn, tables.knowledge_chunks, rows)
    vectors = EMBEDDER.embed([row["content"] for row in rows], "text")
    model = f"{EMBEDDER.name}@{EMBEDDER.dimensions}"
    owned = [
        vector_row(("acme", "main"), row["id"], model, vector, "knowledge")
        for row, vector in zip(rows, vectors, strict=True)
    ]
    tables.inserts.add_values(conn, tables.vectors, VECTOR, owned)


@pytest.fixture
def engine(make_engine):
    engine = make_engine(embedder=EMBEDDER)
    engine.setup()
    for author, count in (("crowd", CROWD), ("ana", FEW)):
        unwrap(engine)._database.run(fill, author, count)
    return engine


@pytest.mark.behaviour("S32")
def test_a_small_scope_is_searched_exactly(engine):
    ana = engine.persona("main", tenant="acme", user="ana", preset=BY_COSINE)
    texts = [content(n) for n in range(FEW)]
    rows = np.array(EMBEDDER.embed(texts, "text"))
    for asked in ("invoice 17", "lot3 gate5", "harbour of Lisbon", "zzz"):
        [query] = np.array(EMBEDDER.embed([asked], "query"))
        hits = ana.recall(asked, limit=10)
        assert {hit.kind for hit in hits} == {"knowledge"} and {hit.chunk.author for hit in hits} == {"ana"}
        # Texts that are equally near may take each other's place: the cosines cannot.
        by_text = {text: cosine for text, cosine in zip(texts, rows @ query, strict=True)}
        near = ana.recall(asked, limit=FEW)
        assert {hit.content: hit.legs["vector"] for hit in near} == pytest.approx(by_text, abs=1e-5)


def test_words_are_found_inside_the_scope_alone(engine):
    ana = engine.persona("main", tenant="acme", user="ana", preset=OPEN)
    assert ana.recall("invoice 42", limit=1)[0].content == content(42)
    assert ana.recall(f"invoice {CROWD - 1}", limit=100).chunks[0].author == "ana"
    bob = engine.persona("main", tenant="acme", user="bob", preset=OPEN)
    assert not bob.recall("invoice 42").hits
    crowd = engine.persona("main", tenant="acme", user="crowd", preset=OPEN)
    assert crowd.recall(f"invoice {CROWD - 1}", limit=1)[0].content == content(CROWD - 1)


def test_memories_and_chunks_of_one_persona_are_never_taken_for_each_other(engine):
    ana = engine.persona("main", tenant="acme", user="ana", preset=OPEN)
    ana.memories.write_many([f"Receipt {n} for the harbour of Lisbon" for n in range(FEW)])
    for kind in ("memory", "knowledge", "memory"):
        hits = ana.recall("harbour of Lisbon", limit=50, kinds=(kind,))
        assert len(hits) == 50 and {hit.kind for hit in hits} == {kind}
        assert all(hit.legs["vector"] > 0 for hit in hits)
    assert {hit.kind for hit in ana.recall("harbour of Lisbon", limit=100)} == {"memory", "knowledge"}
