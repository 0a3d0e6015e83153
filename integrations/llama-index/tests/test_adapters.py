"""Blocks, tools, retrievers, models and ingestion."""

import asyncio
import threading
from pathlib import PurePosixPath
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.core.storage.docstore import SimpleDocumentStore

import llama_index.memory.memoranda as package
from llama_index.memory.memoranda import (
    KnowledgeRetriever,
    KnowledgeSink,
    KnowledgeVectorStore,
    LlamaIndexEmbedder,
    LlamaIndexModel,
    MemoryBlock,
    MemoryRetriever,
    MemoryToolSpec,
    RecallBlock,
    aingest_documents,
    ingest_documents,
)
from memoranda.errors import InvalidInput
from memoranda.protocols import Embedder, LanguageModel
from memoranda.testing import FixedEmbedder


def user(text):
    return ChatMessage(role="user", content=text)


def test_every_public_name_is_there():
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert dir(package) == sorted(package.__all__)
    with pytest.raises(AttributeError):
        _ = package.nothing


# -- blocks


async def test_one_block_serves_sessions_and_freezes_its_text_in_each(ana):
    block = MemoryBlock(persona=ana)
    assert await block.aget([], session_id="a") == ""
    ana.memories.write("Tea is at four.")
    first = await block.aget([], session_id="b", initial_token_count=3)
    ana.memories.write("Tea is at five.")
    assert "four" in first and await block.aget([], session_id="b") == first
    assert await block.aget([], session_id="a") == ""
    assert "five" in await block.aget([], session_id="c")


async def test_what_leaves_the_history_is_kept_once_in_its_own_session(ana):
    block, batch = MemoryBlock(persona=ana), [user("yes"), user("yes")]
    for session in ("a", "b", "a"):
        await block.aput(batch, from_short_term_memory=True, session_id=session)
    assert batch[0].additional_kwargs["session_id"] == "a", "LlamaIndex's own mark, and left alone"
    for session in ("a", "b"):
        assert [message.text for message in ana.conversation(session).messages()] == ["yes", "yes"]
        assert ana.conversation(session).record().pending == 2


async def test_a_block_is_shortened_from_its_end_and_never_fails(make_engine):
    engine = make_engine().handle
    me = engine.persona("main", user="ana")
    for n in range(9):
        me.memories.write(f"Tea number {n} was at {n} o'clock.", importance=9 - n)
    block = MemoryBlock(persona=me, priority=1)
    whole = await block.aget([], session_id="a")
    less = await block.atruncate(whole, 20)
    assert less and len(less) < len(whole) and less.startswith("<memoranda-") and less.endswith(whole.split("\n")[-1])
    assert "number 0" in less and "number 8" not in less
    assert await block.atruncate(whole, 10_000) is None and await block.atruncate([], 5) is None
    refusing = MemoryBlock(persona=engine.persona("main", preset="ledger"))
    assert await refusing.aget([], session_id="a") == ""
    await refusing.aput([user("hello")], session_id="a")


async def test_a_block_that_is_shortened_stays_in_its_fences_and_loses_memories_first(ana):
    for n in range(4):
        ana.memories.write(f"Tea number {n} was at {n} o'clock.", importance=9 - n)
    ana.user_model.write("baseline", "based in Lisbon")
    block = MemoryBlock(persona=ana, priority=1)
    text = await block.aget([], session_id="a")
    seen = []
    while text:
        lines = text.split("\n")
        opened = [line[1:] for line in lines if line.startswith("<memoranda-")]
        assert opened == [line[2:] for line in lines if line.startswith("</memoranda-")]
        seen.append((text.count("Tea number"), "Lisbon" in text))
        text = await block.atruncate(text, 1) or ""
    assert seen == [(4, True), (3, True), (2, True), (1, True), (0, True)]


async def test_recall_follows_the_newest_user_message(ana):
    ana.memories.write("Tea is at four.")
    block = RecallBlock(persona=ana)
    said = [user("What is new?"), user("When is tea?")]
    assert "Tea is at four" in await block.aget(said, session_id="s") and await block.aget(said[:1]) == ""
    assert await block.aget([]) == "" and await block.aget([user("")]) == ""


# -- tools


def test_tools_are_the_engine_s_for_sync_and_async_callers(ana):
    tools = {tool.metadata.name: tool for tool in MemoryToolSpec(ana).to_tool_list()}
    assert list(tools) == ["memory", "recall", "user_model_write", "knowledge_ingest", "knowledge_search"]
    assert "persona" not in tools["recall"].metadata.get_parameters_dict()["properties"]
    assert "Wr" in tools["memory"].metadata.description
    written = tools["memory"].call(action="write", content="Tea is at four.")
    assert "Tea" in str(written) or len(ana.memories.list()) == 1
    assert "Tea is at four" in str(asyncio.run(tools["recall"].acall(query="When is tea?")))
    assert "limit" in str(tools["recall"].call(query="tea", limit="many"))
    assert [tool.metadata.name for tool in MemoryToolSpec(ana, names=["forget"]).to_tool_list()] == ["forget"]


# -- retrievers and ingestion


def test_memories_and_documents_are_retrieved_apart(ana, call):
    ana.memories.write("Tea is at four.", category="habits", importance=7)
    ana.knowledge.ingest("manual", text="The tea kettle holds two litres.", metadata={"page": 3})
    [memory] = call(MemoryRetriever(ana, limit=3), "retrieve", "When is tea?")
    assert memory.node.text == "Tea is at four." and 0 <= memory.score <= 1
    assert memory.node.metadata["category"] == "habits" and memory.node.metadata["importance"] == 7
    assert memory.node.get_content(MetadataMode.LLM).strip() == memory.node.text
    [chunk] = call(KnowledgeRetriever(ana), "retrieve", "tea kettle litres")
    assert (chunk.node.metadata["source"], chunk.node.metadata["page"]) == ("manual", 3)
    assert "source: manual" in chunk.node.get_content(MetadataMode.LLM)
    assert chunk.node.get_content(MetadataMode.EMBED).strip() == chunk.node.text
    assert call(MemoryRetriever(ana, filters={"categories": ["work"]}), "retrieve", "When is tea?") == []


def test_a_question_that_brings_its_embedding_is_not_embedded_again(make_engine, call):
    embedder = FixedEmbedder({"Tea is at four.": [1, 0], "The ferry is late.": [0, 1]})
    me = make_engine(embedder=embedder).handle.persona("main", user="ana")
    for text in embedder.vectors:
        me.memories.write(text)
    [first, *_] = call(MemoryRetriever(me), "retrieve", QueryBundle("unknown words", embedding=[0.0, 1.0]))
    assert first.text == "The ferry is late."
    with pytest.raises(InvalidInput, match="vector"):
        call(MemoryRetriever(me), "retrieve", QueryBundle("unknown words", embedding=[1.0]))


def test_documents_are_taken_in_once_replaced_and_removed(ana, mode):
    def ingest(*texts: str, collection: str | None = "notes") -> Any:
        documents = [Document(id_=text.split()[0], text=text, metadata={"n": 1}) for text in texts]
        if mode == "sync":
            return ingest_documents(ana, documents, collection=collection)
        return asyncio.run(aingest_documents(ana, documents, collection=collection))

    assert [told.unchanged for told in ingest("one is here", "two is here")] == [False, False]
    assert [told.unchanged for told in ingest("one is here", "two has moved")] == [True, False]
    assert [told.source for told in ingest("one is here")] == ["one"]
    assert [document.source for document in ana.knowledge.list()] == ["one"]
    ingest("three is here", collection=None)
    ingest("one is here")
    assert [document.source for document in ana.knowledge.list()] == ["one", "three"]


def test_a_document_that_was_emptied_is_gone_and_others_documents_stay(engine, mode):
    ana, ben = (engine.handle.persona("main", tenant="t", user=name) for name in ("ana", "ben"))
    ana.projects.add_member("p", "ana")
    ana.projects.add_member("p", "ben")

    def ingest(persona, *documents, **fields):
        if mode == "sync":
            return ingest_documents(persona, documents, **fields)
        return asyncio.run(aingest_documents(persona, documents, **fields))

    shared = {"audience": "project", "project": "p", "collection": "notes"}
    ingest(ben, Document(id_="his", text="Ben's tea."), **shared)
    ingest(ana, Document(id_="hers", text="Ana's tea.", metadata={"at": PurePosixPath("/x")}), **shared)
    ingest(ana, Document(id_="other", text="Coffee.", metadata={"collection": "notes"}))
    assert [document.source for document in ana.knowledge.list()] == ["hers", "his", "other"]
    assert ingest(ana, Document(id_="hers", text=" "), Document(id_="his", text="")) == []
    assert [document.source for document in ana.knowledge.list()] == ["his", "other"]
    ingest(ana, **shared)
    assert [document.source for document in ana.knowledge.list()] == ["his", "other"]


def test_a_pipeline_takes_in_what_its_cache_and_its_document_store_know(engine):
    ana, ben = (engine.handle.persona("main", user=name) for name in ("ana", "ben"))
    sinks = [KnowledgeSink(persona=persona, collection="notes") for persona in (ana, ben)]
    model = MockEmbedding(embed_dim=2)
    pipeline = IngestionPipeline(
        transformations=[model, *sinks], docstore=SimpleDocumentStore(), vector_store=KnowledgeVectorStore(persona=ana)
    )
    for text in ("Tea.", "Tea.", "Coffee."):
        pipeline.run(documents=[Document(id_="a", text=text), Document(id_="b", text="Tea.")])
    for persona in (ana, ben):
        assert [chunk.content for source in "ab" for chunk in persona.knowledge.get(source)] == ["Coffee.", "Tea."]
    whole = KnowledgeSink(persona=ben, collection="notes", deletes_vanished=True)
    IngestionPipeline(transformations=[whole]).run(documents=[Document(id_="b", text="Tea.")])
    assert [document.source for document in ben.knowledge.list()] == ["b"]


def test_a_pipeline_ends_in_the_knowledge(ana):
    nodes = IngestionPipeline(transformations=[KnowledgeSink(persona=ana)]).run(
        documents=[Document(id_="d", text="Tea.")]
    )
    assert len(nodes) == 1 and [chunk.content for chunk in ana.knowledge.get("d")] == ["Tea."]
    asyncio.run(KnowledgeSink(persona=ana).acall(nodes))


# -- models


class Apart(MockEmbedding):
    """Embed questions and texts each in its own way."""

    def _get_query_embedding(self, query):
        return [1.0, 0.0]

    def _get_text_embedding(self, text):
        return [0.0, 1.0]

    async def _aget_query_embedding(self, query):
        return [1.0, 0.0]

    async def _aget_text_embedding(self, text):
        return [0.0, 1.0]


async def test_embeddings_and_models_serve_the_engine(scripted):
    for native in (False, True):
        embedder = LlamaIndexEmbedder(Apart(embed_dim=2), native_async=native)
        assert isinstance(embedder, Embedder) and embedder.dimensions == 2 and "Apart" in embedder.name
        for purpose, vector in (("query", [1.0, 0.0]), ("text", [0.0, 1.0])):
            assert embedder.embed(["a", "b"], purpose) == [vector] * 2 == await embedder.aembed(["a", "b"], purpose)

    def answer(messages):
        kwargs = {"finish_reason": "length", "prompt_tokens": 3}
        return ChatMessage(role="assistant", content=f"{len(messages)} {messages[0].content}", additional_kwargs=kwargs)

    model = LlamaIndexModel(scripted(answer))
    assert isinstance(model, LanguageModel)
    for said in (
        model.complete([{"role": "user", "content": "hi"}], schema={"type": "array"}, max_tokens=9),
        await model.acomplete([{"role": "user", "content": "hi"}], schema={"type": "array"}),
    ):
        assert said.text.startswith("1 hi") and "array" in said.text and said.cut and said.input_tokens == 3


class Blocking(CustomLLM):
    """A model that has a sync half only, and says in which thread it was asked."""

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **options):
        return CompletionResponse(text=threading.current_thread().name)

    def stream_complete(self, prompt, formatted=False, **options):
        raise NotImplementedError


async def test_a_model_without_an_async_half_is_asked_in_a_thread():
    said = await LlamaIndexModel(Blocking()).acomplete([{"role": "user", "content": "hi"}])
    assert said.text != threading.current_thread().name
    native = LlamaIndexModel(Blocking(), native_async=True)
    assert (await native.acomplete([{"role": "user", "content": "hi"}])).text == threading.current_thread().name
