"""LangChain's document compressors as the engine's reranker.

The other way needs nothing: `ContextualCompressionRetriever` takes the retrievers of this package as they are.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableLambda

from langchain_memoranda.models import hidden_call
from memoranda.errors import RerankerUnavailable
from memoranda.rerankers import scores_of_order

_PLACE = "memoranda_place"


class LangChainReranker:
    """Any `BaseDocumentCompressor` as the engine's reranker.

    What it returns stands first, in its order; what it drops follows in the engine's own order, and none is lost. So
    give it a `top_n` that is no less than the hits that are wanted. A text that it shortens is shown whole. Where it
    says a falling `relevance_score` of each document, hits have that as their score.

    Args:
        compressor: A cross-encoder, a service that reranks, a language model, or a pipeline of such.
        name: What hits, spans and a `degraded` answer call it; by default its class.
        local: Whether it computes in this process and waits for nobody: then no call is cut short.
    """

    def __init__(self, compressor: BaseDocumentCompressor, *, name: str | None = None, local: bool = False) -> None:
        self._compressor = compressor
        self._called = RunnableLambda(self._compressed, self._acompressed)
        self.name = name or f"langchain/{type(compressor).__name__}"
        self.local = local
        inherited = type(compressor).acompress_documents is BaseDocumentCompressor.acompress_documents
        self.ascore: Callable[[str, Sequence[str]], Awaitable[list[float]]] | None = None if inherited else self._ascore
        """Its own async half; None where it has none, and is called in a thread."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text.

        Raises:
            RerankerUnavailable: it returns a document that is none of those it was given.
        """
        return self._scores(self._called.invoke((query, texts), config=hidden_call()), len(texts))

    async def _ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        return self._scores(await self._called.ainvoke((query, texts), config=hidden_call()), len(texts))

    def _compressed(self, asked: tuple[str, Sequence[str]]) -> Sequence[Document]:
        return self._compressor.compress_documents(_documents(asked[1]), asked[0])

    async def _acompressed(self, asked: tuple[str, Sequence[str]]) -> Sequence[Document]:
        return await self._compressor.acompress_documents(_documents(asked[1]), asked[0])

    def _scores(self, kept: Sequence[Document], count: int) -> list[float]:
        return scores_of_order(count, [(self._place(document, count), _score(document)) for document in kept])

    def _place(self, document: Document, count: int) -> int:
        place = document.metadata.get(_PLACE)
        if not isinstance(place, int) or not 0 <= place < count:
            raise RerankerUnavailable(
                f"Reranker {self.name!r} returned a document without the metadata it was given: have it keep them."
            )
        return place


def _documents(texts: Sequence[str]) -> list[Document]:
    return [Document(text, id=str(place), metadata={_PLACE: place}) for place, text in enumerate(texts)]


def _score(document: Document) -> float | None:
    said: Any = document.metadata.get("relevance_score")
    try:
        return None if said is None else float(said)
    except (TypeError, ValueError):
        return None
