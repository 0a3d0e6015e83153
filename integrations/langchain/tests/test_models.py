"""LangChain's models as the engine's: embeddings and chat models of any kind."""

import asyncio
import subprocess
import sys

import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.stores import InMemoryStore

from langchain_memoranda import LangChainEmbedder, LangChainModel
from memoranda.errors import ConfigurationError
from memoranda.protocols import Completion, Embedder, LanguageModel


class TwoSided(DeterministicFakeEmbedding):
    """Embeds questions in another way than texts."""

    model: str = "two-sided"

    def embed_query(self, text):
        """Embed a question."""
        return super().embed_query(f"query: {text}")


def test_questions_and_texts_are_embedded_each_in_its_own_way():
    embedder = LangChainEmbedder(TwoSided(size=8))
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimensions, embedder.deferred) == ("langchain/TwoSided/two-sided", 8, False)
    texts = ["one", "two"]
    for purpose in ("text", "query"):
        plain = embedder.embed(texts, purpose)
        assert plain == asyncio.run(embedder.aembed(texts, purpose)) and len(plain) == 2
    assert embedder.embed(texts, "text") != embedder.embed(texts, "query")


def test_two_models_never_have_one_name():
    def named(kind="Served", **fields):
        return type(kind, (DeterministicFakeEmbedding,), {"__annotations__": dict.fromkeys(fields, str), **fields})

    served = [
        named(model_id="titan")(size=8),
        named(endpoint_name="ours")(size=8),
        named(model_path="/somewhere/small.gguf")(size=8),
        named(model="default", deployment="")(size=8, deployment="first"),
        named(model="default", deployment="")(size=8, deployment="second"),
        named(model="default", deployment="")(size=8),
    ]
    names = [LangChainEmbedder(model, dimensions=8).name for model in served]
    said = ["titan", "ours", "small.gguf", "first", "second", "default"]
    assert names == [f"langchain/Served/{name}" for name in said]
    cached = [CacheBackedEmbeddings(model, InMemoryStore()) for model in served]
    assert [LangChainEmbedder(model, dimensions=8).name for model in cached] == names
    with pytest.raises(ConfigurationError, match="give name="):
        LangChainEmbedder(DeterministicFakeEmbedding(size=8))


def test_an_engine_remembers_with_them(make_engine, chat_model, call):
    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=16), name="fake", dimensions=16)
    model = LangChainModel(chat_model('[{"content": "Ana likes tea."}]'))
    engine = make_engine(embedder=embedder, model=model)
    chat = engine.persona("main").conversation("thread-1")
    chat.append("I am Ana, and I like tea.")
    chat.pending([1])
    assert chat.flush().written == 1
    assert "Ana likes tea." in str(engine.persona("main").recall("What does Ana like?"))


def test_what_a_model_says_of_its_answer_is_handed_on(chat_model):
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    cut = AIMessage(
        [{"type": "text", "text": "[1"}], usage_metadata=usage, response_metadata={"finish_reason": "length"}
    )
    spoken = chat_model(cut, cut, "[]")
    model = LangChainModel(spoken, name="mine")
    assert isinstance(model, LanguageModel) and model.name == "mine"
    assert LangChainModel(spoken).name == "langchain/ScriptedChat"
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]
    told = Completion("[1", input_tokens=3, output_tokens=4, cut=True)
    assert model.complete(asked) == asyncio.run(model.acomplete(asked, max_tokens=5)) == told
    assert model.complete(asked, schema={"type": "array"}) == Completion("[]")
    system, human = spoken.seen[-1]
    assert (system.type, human.type) == ("system", "human") and '{"type": "array"}' in system.content


@pytest.mark.parametrize(
    "ended",
    [
        {"finish_reason": "MAX_TOKENS"},
        {"stop_reason": "max_tokens"},
        {"stopReason": "max_tokens"},
        {"done_reason": "length"},
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    ],
)
def test_an_answer_that_is_cut_is_known_for_it_whoever_gave_it(chat_model, ended):
    model = LangChainModel(chat_model(AIMessage("[1", response_metadata=ended)))
    assert model.complete([{"role": "user", "content": "Hi."}]).cut
    whole = {name: "stop" for name in ended}
    assert not LangChainModel(chat_model(AIMessage("[1]", response_metadata=whole))).complete([]).cut


def loaded_after(code):
    """Return which frameworks a Python of its own has loaded after some code."""
    told = "print(*sorted({name.split('.')[0] for name in sys.modules if 'lang' in name}))"
    whole = f"import sys, langchain_memoranda as m\n{code}\n{told}"
    return subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True).stdout.split()


def test_a_framework_is_loaded_only_for_what_needs_it():
    assert loaded_after("") == ["langchain_memoranda"]
    alone = loaded_after(
        "m.MemoryRetriever, m.MemoryChatHistory, m.LangChainModel, m.LangChainEmbedder, m.to_memoranda"
    )
    assert "langchain_core" in alone and not {"langchain", "langgraph", "langchain_classic"} & set(alone)
