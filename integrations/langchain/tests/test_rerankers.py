"""LangChain's compressors as the engine's reranker, and our retrievers inside LangChain's own."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker, DocumentCompressorPipeline
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import Field

from langchain_memoranda import KnowledgeVectorStore, LangChainReranker, MemoryMiddleware, MemoryRetriever
from memoranda.protocols import Reranker

TEXTS = ["Falcon is released on 12 March.", "Falcon is painted red.", "Falcon is built by Ana.", "Falcon is fast."]
ASKED = "What of Falcon?"


class ByLength(BaseCrossEncoder):
    """The longer a text, the better it answers."""

    def score(self, text_pairs):
        return [len(text) / 10 for _, text in text_pairs]


class Scripted(BaseDocumentCompressor):
    """Returns what a function of the documents says."""

    script: Any
    seen: list[tuple[str, ...]] = Field(default_factory=list)

    def compress_documents(self, documents, query, callbacks=None):
        self.seen.append((query, *(document.page_content for document in documents)))
        return self.script(documents)


def scored(document, score):
    """Return a document as services that rerank do: without its id, with a score."""
    return Document(document.page_content, metadata={**document.metadata, "relevance_score": score})


@pytest.fixture
def ordered(make_engine):
    """What is recalled through a compressor, beside the order without it."""

    def ordered_(compressor, **options):
        me = make_engine(reranker=LangChainReranker(compressor, **options)).persona("main")
        me.memories.write_many(TEXTS)
        plain = make_engine().persona("plain")
        plain.memories.write_many(TEXTS)
        return me.recall(ASKED), [hit.content for hit in plain.recall(ASKED)]

    return ordered_


def test_a_cross_encoder_orders_and_what_it_drops_follows_as_it_stood(ordered):
    found, plain = ordered(CrossEncoderReranker(model=ByLength(), top_n=2))
    best = sorted(TEXTS, key=len, reverse=True)[:2]
    assert [hit.content for hit in found] == [*best, *(text for text in plain if text not in best)]
    assert found.degraded is None and "ordered by langchain/CrossEncoderReranker" in found[0].reasons


def test_a_services_scores_are_those_of_the_hits(ordered):
    def reverse(documents):
        return [scored(document, 0.9 - place / 10) for place, document in enumerate(reversed(documents))][:3]

    compressor = Scripted(script=reverse)
    found, plain = ordered(compressor, name="a service")
    assert [hit.content for hit in found][:3] == plain[::-1][:3]
    assert [hit.score for hit in found] == pytest.approx([0.9, 0.8, 0.7, -0.3])
    assert compressor.seen == [(ASKED, *plain)] and "ordered by a service" in found[0].reasons


def test_numbers_that_are_none_leave_the_order(ordered):
    found, plain = ordered(Scripted(script=lambda documents: [scored(one, "high") for one in documents[::-1]]))
    assert [hit.content for hit in found] == plain[::-1] and found[0].score == 1


def test_a_text_that_is_cut_up_counts_from_its_first_part_and_is_shown_whole(ordered):
    def halves(documents):
        parts = [(one, one.page_content[:9]) for one in documents[::-1]] + [(one, "the rest") for one in documents]
        return [Document(part, metadata=one.metadata) for one, part in parts]

    found, plain = ordered(Scripted(script=halves))
    assert [hit.content for hit in found] == plain[::-1]


def test_one_that_keeps_nothing_or_loses_the_metadata_leaves_our_order(ordered):
    found, plain = ordered(Scripted(script=lambda documents: []))
    assert [hit.content for hit in found] == plain and found.degraded is None
    found, plain = ordered(Scripted(script=lambda documents: [Document(one.page_content) for one in documents]))
    assert [hit.content for hit in found] == plain and "without the metadata" in found.degraded


def test_it_is_awaited_only_where_its_async_half_is_its_own():
    plain = CrossEncoderReranker(model=ByLength())
    assert isinstance(LangChainReranker(plain), Reranker)
    assert LangChainReranker(plain).ascore is None and not LangChainReranker(plain).local
    piped = LangChainReranker(DocumentCompressorPipeline(transformers=[plain]))
    assert piped.ascore is not None
    assert asyncio.run(piped.ascore(ASKED, TEXTS)) == piped.score(ASKED, TEXTS)


def test_what_a_model_is_asked_for_an_order_never_shows_in_a_stream(make_engine, chat_model, calling, mode):
    class Judge(BaseDocumentCompressor):
        model: Any

        def compress_documents(self, documents, query, callbacks=None):
            assert self.model.invoke("Which is best?").text == "The last one."
            return documents[::-1]

    judge = chat_model("The last one.")
    me = make_engine(reranker=LangChainReranker(Judge(model=judge))).handle.persona("main")
    me.memories.write_many(TEXTS)
    model = chat_model(calling("recall", query=ASKED), "Falcon is fast.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me, tools=["recall"])])
    config = {"configurable": {"thread_id": "thread-1"}}

    async def streamed():
        return [part async for part, _ in agent.astream({"messages": [ASKED]}, config, stream_mode="messages")]

    shown = (
        asyncio.run(streamed())
        if mode == "async"
        else [part for part, _ in agent.stream({"messages": [ASKED]}, config, stream_mode="messages")]
    )
    assert judge.seen and "Falcon is fast." in [part.text for part in shown]
    assert "The last one." not in [part.text for part in shown]


def test_our_retrievers_work_inside_a_compression_retriever(make_engine, call):
    me = make_engine().handle.persona("main")
    me.memories.write_many(TEXTS)
    store = KnowledgeVectorStore(me, "falcon")
    store.add_texts(TEXTS)
    compressor = CrossEncoderReranker(model=ByLength(), top_n=2)
    for retriever in (MemoryRetriever(persona=me), store.as_retriever()):
        compressing = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=retriever)
        found = call(compressing, ASKED)
        assert [one.page_content for one in found] == sorted(TEXTS, key=len, reverse=True)[:2]
