"""Retrievers: what is remembered, and what documents say, as documents."""

from langchain_memoranda import KnowledgeRetriever, MemoryRetriever


def test_a_memory_is_a_document_with_its_id_and_nothing_of_its_score_unless_asked(me, call):
    written = me.memories.write("Falcon is released on 12 March.", category="plan", metadata={"team": "red"})
    me.memories.write("Ana likes tea.", category="taste")
    [found] = call(MemoryRetriever(persona=me.handle), "When is Falcon released?")
    assert (found.id, found.page_content) == (str(written.memory.id), "Falcon is released on 12 March.")
    assert found.metadata["team"] == "red" and found.metadata["category"] == "plan" and "score" not in found.metadata
    [scored] = call(MemoryRetriever(persona=me.handle, with_scores=True), "When is Falcon released?")
    assert 0 <= scored.metadata["confidence"] <= 1 and scored.metadata["score"]


def test_filters_hold_and_an_abstention_is_an_empty_list(me, call):
    me.memories.write("Falcon is released on 12 March.", category="plan")
    retriever = MemoryRetriever(persona=me.handle, filters={"categories": ["taste"]})
    assert call(retriever, "When is Falcon released?") == []
    assert call(MemoryRetriever(persona=me.handle), "How deep is the Mariana Trench?") == []


def test_a_chunk_says_its_document_and_memories_are_no_knowledge(me, call):
    me.memories.write("Press the green button first, said Ana.")
    me.knowledge.ingest("manual", text="Press the green button first.", metadata={"edition": 3})
    [found] = call(KnowledgeRetriever(persona=me.handle), "Which button is pressed first?")
    assert found.page_content == "Press the green button first." and found.id
    assert found.metadata == {"edition": 3, "source": "manual", "chunk_index": 0}


def test_it_is_part_of_a_chain_and_shows_no_connection(me, call):
    me.memories.write("Falcon is released on 12 March.")
    retriever = MemoryRetriever(persona=me.handle, k=1)
    chain = retriever | (lambda found: [document.page_content for document in found])
    assert call(chain, "When is Falcon released?") == ["Falcon is released on 12 March."]
    assert "sqlite" not in repr(retriever) and "persona" not in retriever.model_dump()
    assert not retriever.is_lc_serializable()
