"""LlamaIndex's postprocessors as the engine's reranker, and our retrievers with one behind them."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LLMRerank, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import PrivateAttr

from llama_index.memory.memoranda import LlamaIndexReranker, MemoryRetriever
from memoranda.protocols import Reranker

TEXTS = ["Falcon is released on 12 March.", "Falcon is painted red.", "Falcon is built by Ana.", "Falcon is fast."]
ASKED = "What of Falcon?"


class Scripted(BaseNodePostprocessor):
    """Returns what a function of the nodes says, and keeps what it was asked."""

    _script = PrivateAttr()
    _seen = PrivateAttr(default_factory=list)

    def __init__(self, script):
        super().__init__()
        self._script = script

    def _postprocess_nodes(self, nodes, query_bundle=None):
        self._seen.append((query_bundle.query_str, *(node.text for node in nodes)))
        return self._script(nodes)


def by_length(nodes):
    """The longer a text, the better it answers."""
    scored = [NodeWithScore(node=node.node, score=len(node.text) / 10) for node in nodes]
    return sorted(scored, key=lambda node: node.score or 0, reverse=True)


@pytest.fixture
def ordered(make_engine, call):
    """What is recalled through a postprocessor, beside the order without it."""

    def ordered_(postprocessor, **options):
        me = make_engine(reranker=LlamaIndexReranker(postprocessor, **options)).handle.persona("main")
        me.memories.write_many(TEXTS)
        plain = make_engine().handle.persona("plain")
        plain.memories.write_many(TEXTS)
        return call(me, "recall", ASKED), [hit.content for hit in plain.recall(ASKED)]

    return ordered_


def test_it_orders_with_its_own_scores_and_what_it_drops_follows_as_it_stood(ordered):
    postprocessor = Scripted(lambda nodes: by_length(nodes)[:2])
    found, plain = ordered(postprocessor)
    best = sorted(TEXTS, key=len, reverse=True)[:2]
    assert [hit.content for hit in found] == [*best, *(text for text in plain if text not in best)]
    assert [hit.score for hit in found][:2] == [len(text) / 10 for text in best]
    assert postprocessor._seen == [(ASKED, *plain)] and "ordered by llama-index/Scripted" in found[0].reasons


def test_one_that_gives_no_scores_gives_an_order(ordered):
    found, plain = ordered(Scripted(lambda nodes: nodes[::-1]), name="the other way")
    assert [hit.content for hit in found] == plain[::-1] and found[0].score == 1
    assert "ordered by the other way" in found[0].reasons


@pytest.mark.parametrize("native", [False, True])
def test_a_language_model_puts_memories_in_order(ordered, scripted, native):
    said = "Doc: 4, Relevance: 9\nDoc: 2, Relevance: 7\nDoc: 1, Relevance: 7"
    model = scripted(lambda messages: ChatMessage(role="assistant", content=said))
    found, plain = ordered(LLMRerank(llm=model), native_async=native)
    assert [hit.content for hit in found] == [plain[3], plain[1], plain[0], plain[2]]
    assert found.degraded is None and TEXTS[0] in str(model.shown)


def test_one_that_keeps_nothing_or_makes_nodes_of_its_own_leaves_our_order(ordered):
    found, plain = ordered(SimilarityPostprocessor(similarity_cutoff=0.5))  # which drops what has no score
    assert [hit.content for hit in found] == plain and found.degraded is None
    found, plain = ordered(Scripted(lambda nodes: [NodeWithScore(node=TextNode(text="mine"), score=1.0)]))
    assert [hit.content for hit in found] == plain and "another id" in found.degraded


def test_it_is_awaited_only_where_it_is_said_to_be_worth_it():
    postprocessor = Scripted(by_length)
    assert isinstance(LlamaIndexReranker(postprocessor), Reranker)
    assert LlamaIndexReranker(postprocessor).ascore is None
    native = LlamaIndexReranker(postprocessor, native_async=True, local=True)
    assert native.ascore is not None and native.local
    assert asyncio.run(native.ascore(ASKED, TEXTS)) == native.score(ASKED, TEXTS) == [len(text) / 10 for text in TEXTS]


def test_our_retrievers_work_in_front_of_a_postprocessor(make_engine):
    me = make_engine().handle.persona("main")
    me.memories.write_many(TEXTS)
    answering = get_response_synthesizer(llm=MockLLM())
    engine = RetrieverQueryEngine(MemoryRetriever(me), answering, node_postprocessors=[Scripted(by_length)])
    answer = engine.query(ASKED)
    assert [node.text for node in answer.source_nodes] == sorted(TEXTS, key=len, reverse=True)
