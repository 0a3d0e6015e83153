"""LangChain's own standard tests, on this test's database."""

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_memoranda import KnowledgeRetriever, MemoryRetriever, memory_tools
from memoranda import MemoryEngine
from memoranda.tools import NAMES

EXAMPLES = {
    "memory": {"action": "write", "content": "Falcon is released on 2026-03-12.", "category": "plan"},
    "recall": {"query": "When is Falcon released?", "limit": 3},
    "user_model_write": {"dimension": "baseline", "content": "lives in Lisbon"},
    "knowledge_ingest": {"source": "manual", "text": "Press the green button first."},
    "knowledge_search": {"query": "Which button first?"},
    "remember": {"text": "Ana likes tea.", "about": "everyone"},
    "forget": {"id": "abcd2345"},
}


@pytest.fixture(scope="module")
def opened():
    """A persona with memories and documents."""
    with MemoryEngine("sqlite:///:memory:", embedder="hash/words", background="off") as engine:
        me = engine.persona("main")
        for station in "ABCDE":
            me.memories.write(f"The code of station {station} is {station}42.")
            me.knowledge.ingest(f"station {station}", text=f"The handbook says: the code of station {station} is long.")
        yield me


class _Retriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _persona(self, opened):
        self.persona = opened

    @property
    def retriever_constructor_params(self):
        return {"persona": self.persona}

    @property
    def retriever_query_example(self):
        return "What is the code of the station?"


class TestMemoryRetriever(_Retriever):
    @property
    def retriever_constructor(self):
        return MemoryRetriever


class TestKnowledgeRetriever(_Retriever):
    @property
    def retriever_constructor(self):
        return KnowledgeRetriever


@pytest.fixture(params=NAMES)
def tool_name(request):
    """Each tool in turn."""
    return request.param


class _EachTool:
    @pytest.fixture(autouse=True)
    def _named(self, opened, tool_name):
        self.name = tool_name
        [self.made] = memory_tools(opened, names=[tool_name])

    @property
    def tool_constructor(self):
        return self.made

    @property
    def tool_invoke_params_example(self):
        return EXAMPLES[self.name]


class TestToolsUnit(_EachTool, ToolsUnitTests):
    pass


class TestToolsIntegration(_EachTool, ToolsIntegrationTests):
    pass
