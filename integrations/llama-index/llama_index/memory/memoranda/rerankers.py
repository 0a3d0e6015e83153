"""LlamaIndex's node postprocessors as the engine's reranker.

The other way needs nothing: a query engine takes the retrievers of this package with `node_postprocessors` behind them.
"""

from collections.abc import Awaitable, Callable, Sequence

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode

from memoranda.errors import RerankerUnavailable
from memoranda.rerankers import scores_of_order


class LlamaIndexReranker:
    """Any `BaseNodePostprocessor` as the engine's reranker.

    What it returns stands first, in its order; what it drops follows in the engine's own order, and none is lost. So
    give it a `top_n` that is no less than the hits that are wanted. Nodes come to it without a score; where those it
    returns have scores that fall, hits have these as their score.

    Args:
        postprocessor: A cross-encoder, a service that reranks, or a language model.
        name: What hits, spans and a `degraded` answer call it; by default its class.
        local: Whether it computes in this process and waits for nobody: then no call is cut short.
        native_async: Whether its async half waits without blocking; many have none, and call the sync one: they are
            called in a thread.
    """

    def __init__(
        self,
        postprocessor: BaseNodePostprocessor,
        *,
        name: str | None = None,
        local: bool = False,
        native_async: bool = False,
    ) -> None:
        self._postprocessor = postprocessor
        self.name = name or f"llama-index/{type(postprocessor).__name__}"
        self.local = local
        self.ascore: Callable[[str, Sequence[str]], Awaitable[list[float]]] | None
        self.ascore = self._ascore if native_async else None
        """Its own async half; None where it has none."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text.

        Raises:
            RerankerUnavailable: it returns a node that is none of those it was given.
        """
        return self._scores(self._postprocessor.postprocess_nodes(_nodes(texts), query_str=query), len(texts))

    async def _ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        kept = await self._postprocessor.apostprocess_nodes(_nodes(texts), query_str=query)
        return self._scores(kept, len(texts))

    def _scores(self, kept: Sequence[NodeWithScore], count: int) -> list[float]:
        places = {str(place): place for place in range(count)}
        if any(node.node_id not in places for node in kept):
            raise RerankerUnavailable(
                f"Reranker {self.name!r} returned a node with another id than it was given: have it keep them."
            )
        return scores_of_order(count, [(places[node.node_id], node.score) for node in kept])


def _nodes(texts: Sequence[str]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=str(place), text=text)) for place, text in enumerate(texts)]
