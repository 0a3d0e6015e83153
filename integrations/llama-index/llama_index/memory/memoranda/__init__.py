"""Memoranda's long-term memory for LlamaIndex: adapters, which translate and hold no SQL, ranking or prompts.

Names resolve when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index.memory.memoranda.attachment import attach, detach
    from llama_index.memory.memoranda.blocks import MemoryBlock, RecallBlock
    from llama_index.memory.memoranda.chat_store import MemorandaChatStore, MemorandaSyncChatStore
    from llama_index.memory.memoranda.ingest import KnowledgeSink, aingest_documents, ingest_documents
    from llama_index.memory.memoranda.memory import MemorandaMemory
    from llama_index.memory.memoranda.messages import from_memoranda, to_memoranda
    from llama_index.memory.memoranda.models import LlamaIndexEmbedder, LlamaIndexModel
    from llama_index.memory.memoranda.rerankers import LlamaIndexReranker
    from llama_index.memory.memoranda.retrievers import KnowledgeRetriever, MemoryRetriever
    from llama_index.memory.memoranda.tools import MemoryToolSpec
    from llama_index.memory.memoranda.vector_store import KnowledgeVectorStore

__version__ = "0.1.0"

__all__ = [
    "KnowledgeRetriever",
    "KnowledgeSink",
    "KnowledgeVectorStore",
    "LlamaIndexEmbedder",
    "LlamaIndexModel",
    "LlamaIndexReranker",
    "MemorandaChatStore",
    "MemorandaMemory",
    "MemorandaSyncChatStore",
    "MemoryBlock",
    "MemoryRetriever",
    "MemoryToolSpec",
    "RecallBlock",
    "__version__",
    "aingest_documents",
    "attach",
    "detach",
    "from_memoranda",
    "ingest_documents",
    "to_memoranda",
]

_HOMES = {
    "KnowledgeRetriever": "retrievers",
    "KnowledgeSink": "ingest",
    "KnowledgeVectorStore": "vector_store",
    "LlamaIndexEmbedder": "models",
    "LlamaIndexModel": "models",
    "LlamaIndexReranker": "rerankers",
    "MemorandaChatStore": "chat_store",
    "MemorandaMemory": "memory",
    "MemorandaSyncChatStore": "chat_store",
    "MemoryBlock": "blocks",
    "MemoryRetriever": "retrievers",
    "MemoryToolSpec": "tools",
    "RecallBlock": "blocks",
    "aingest_documents": "ingest",
    "attach": "attachment",
    "detach": "attachment",
    "from_memoranda": "messages",
    "ingest_documents": "ingest",
    "to_memoranda": "messages",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
