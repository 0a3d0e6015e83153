"""Memoranda's long-term memory for LangChain: adapters, which translate and hold no SQL, ranking or prompts.

Names resolve when they are first used: retrievers, chat history and models need `langchain-core` alone, what agents use
the extra `agents`, and `ClassicMemory` the extra `classic`. What a hand-written graph calls stands in `nodes`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_memoranda.chat_history import MemoryChatHistory
    from langchain_memoranda.classic import ClassicMemory
    from langchain_memoranda.messages import from_memoranda, to_memoranda
    from langchain_memoranda.middleware import MemoryMiddleware
    from langchain_memoranda.models import LangChainEmbedder, LangChainModel
    from langchain_memoranda.namespaces import decode_label, encode_label, persona_namespace
    from langchain_memoranda.record_manager import KnowledgeRecordManager
    from langchain_memoranda.rerankers import LangChainReranker
    from langchain_memoranda.retrievers import KnowledgeRetriever, MemoryRetriever
    from langchain_memoranda.scopes import ScopeResolver
    from langchain_memoranda.store import MemoryStore
    from langchain_memoranda.summarization import FlushingSummarizationMiddleware
    from langchain_memoranda.tools import MemoryToolkit, memory_tools
    from langchain_memoranda.vectorstore import KnowledgeVectorStore

__version__ = "0.1.0"

__all__ = [
    "ClassicMemory",
    "FlushingSummarizationMiddleware",
    "KnowledgeRecordManager",
    "KnowledgeRetriever",
    "KnowledgeVectorStore",
    "LangChainEmbedder",
    "LangChainModel",
    "LangChainReranker",
    "MemoryChatHistory",
    "MemoryMiddleware",
    "MemoryRetriever",
    "MemoryStore",
    "MemoryToolkit",
    "ScopeResolver",
    "__version__",
    "decode_label",
    "encode_label",
    "from_memoranda",
    "memory_tools",
    "persona_namespace",
    "to_memoranda",
]

_HOMES = {
    "ClassicMemory": "classic",
    "FlushingSummarizationMiddleware": "summarization",
    "KnowledgeRecordManager": "record_manager",
    "KnowledgeRetriever": "retrievers",
    "KnowledgeVectorStore": "vectorstore",
    "LangChainEmbedder": "models",
    "LangChainModel": "models",
    "LangChainReranker": "rerankers",
    "MemoryChatHistory": "chat_history",
    "MemoryMiddleware": "middleware",
    "MemoryRetriever": "retrievers",
    "MemoryStore": "store",
    "MemoryToolkit": "tools",
    "ScopeResolver": "scopes",
    "decode_label": "namespaces",
    "encode_label": "namespaces",
    "from_memoranda": "messages",
    "memory_tools": "tools",
    "persona_namespace": "namespaces",
    "to_memoranda": "messages",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name in _HOMES:
        try:
            return getattr(import_module(f"langchain_memoranda.{_HOMES[name]}"), name)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in ("langchain", "langgraph", "langchain_classic"):
                raise
            extra = "classic" if name == "ClassicMemory" else "agents"
            raise ImportError(f"{name} needs more: pip install 'langchain-memoranda[{extra}]'") from error
    raise AttributeError(f"module 'langchain_memoranda' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
