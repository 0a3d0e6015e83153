"""Collections: nodes under keys of the caller's, stored, replaced and found one by one; knowledge like any document."""

from collections.abc import Iterable, Sequence

from memoranda.conditions import Condition
from memoranda.effects import Runner
from memoranda.nodes import Node, NodeHit, SearchMode
from memoranda.pipelines import collecting
from memoranda.pipelines.collecting import Shelf


class Collection:
    """The nodes that one user keeps under one name.

    It begins with its first node. To a recall it is a document of this name, whose chunks its nodes are.
    """

    _memoranda_handle = True

    def __init__(self, shelf: Shelf, runner: Runner) -> None:
        """Bind a collection to an engine's runner."""
        self._shelf = shelf
        self._runner = runner

    @property
    def name(self) -> str:
        """What it is called."""
        return self._shelf.name

    def __repr__(self) -> str:
        """Show the name."""
        return f"<Collection {self.name!r}>"

    def add(self, nodes: Iterable[Node]) -> list[str]:
        """Store nodes, each in place of the one with the same key, all or none, and return their keys.

        Of several with the same key the last one counts.

        Raises:
            InvalidInput: a node cannot be stored, its vector is missing, or a document has the collection's name;
                nothing was stored.
            ConfigurationError: the collection has vectors of another model.
            NotAllowed: the preset wants an author, and the scope has no user.
            StoreError: the database failed.
        """
        return self._runner.run(collecting.add(self._shelf, nodes))

    async def aadd(self, nodes: Iterable[Node]) -> list[str]:
        """Async twin of `add`."""
        return await self._runner.arun(collecting.add(self._shelf, nodes))

    def get(
        self,
        keys: Sequence[str] | None = None,
        *,
        where: Condition | None = None,
        limit: int | None = None,
        vectors: bool = False,
    ) -> list[Node]:
        """Return nodes: those of keys in the keys' order, what is missing left out, else in the order of their adding.

        Args:
            keys: Only these.
            where: Only those whose metadata meets this condition.
            limit: How many at most; all when left out.
            vectors: Whether with their vectors.
        """
        return self._runner.run(collecting.get(self._shelf, keys, where, limit, vectors))

    async def aget(
        self,
        keys: Sequence[str] | None = None,
        *,
        where: Condition | None = None,
        limit: int | None = None,
        vectors: bool = False,
    ) -> list[Node]:
        """Async twin of `get`."""
        return await self._runner.arun(collecting.get(self._shelf, keys, where, limit, vectors))

    def search(
        self,
        text: str | None = None,
        *,
        vector: Sequence[float] | None = None,
        mode: SearchMode = "hybrid",
        limit: int = 4,
        keys: Sequence[str] | None = None,
        where: Condition | None = None,
        alpha: float | None = None,
        text_limit: int | None = None,
        dense_limit: int | None = None,
        mmr_balance: float | None = None,
        mmr_pool: int | None = None,
    ) -> list[NodeHit]:
        """Return the nodes that answer a question, best first; equal ones in the order in which they were added.

        Without an embedder at hand a hybrid search goes by words alone.

        Args:
            text: The question; nothing in it acts as an operator.
            vector: Its vector, in place of the one that the store's embedder would make; needed where the vectors of
                the collection are the caller's.
            mode: By words and meaning (`hybrid`), by meaning (`dense`) or by words (`text`).
            limit: How many at most, 1..10,000.
            keys: Only among these.
            where: Only among those whose metadata meets this condition.
            alpha: The share of meaning in a hybrid search, 0..1; see `memoranda.ranking.fusion`.
            text_limit: How many are proposed by words; twice the limit, and at least 20, when left out.
            dense_limit: How many are proposed by meaning; the same.
            mmr_balance: Choose what says different things, by `memoranda.ranking.mmr`: 1 for nearness alone, 0 for
                difference alone.
            mmr_pool: How many of the best are chosen from then; four times the limit when left out.

        Raises:
            InvalidInput: an argument is missing or cannot be used.
            ConfigurationError: the collection has vectors of another model.
            EmbedderUnavailable: a dense search has no vector to go by.
            StoreError: the database failed.
        """
        return self._runner.run(
            collecting.search(
                self._shelf,
                text,
                vector,
                mode,
                limit,
                keys,
                where,
                alpha,
                text_limit,
                dense_limit,
                mmr_balance,
                mmr_pool,
            )
        )

    async def asearch(
        self,
        text: str | None = None,
        *,
        vector: Sequence[float] | None = None,
        mode: SearchMode = "hybrid",
        limit: int = 4,
        keys: Sequence[str] | None = None,
        where: Condition | None = None,
        alpha: float | None = None,
        text_limit: int | None = None,
        dense_limit: int | None = None,
        mmr_balance: float | None = None,
        mmr_pool: int | None = None,
    ) -> list[NodeHit]:
        """Async twin of `search`."""
        return await self._runner.arun(
            collecting.search(
                self._shelf,
                text,
                vector,
                mode,
                limit,
                keys,
                where,
                alpha,
                text_limit,
                dense_limit,
                mmr_balance,
                mmr_pool,
            )
        )

    def count(self, *, where: Condition | None = None) -> int:
        """Return how many nodes there are, or how many meet a condition."""
        return self._runner.run(collecting.count(self._shelf, where))

    async def acount(self, *, where: Condition | None = None) -> int:
        """Async twin of `count`."""
        return await self._runner.arun(collecting.count(self._shelf, where))

    def delete(self, keys: Sequence[str] | None = None, *, where: Condition | None = None) -> int:
        """Delete nodes with their vectors, and return how many there were.

        Args:
            keys: Those of these keys; what is missing is nothing to delete.
            where: Those whose metadata meets this condition; with keys, those of them that do.

        Raises:
            InvalidInput: neither is given.
        """
        return self._runner.run(collecting.delete(self._shelf, keys, where))

    async def adelete(self, keys: Sequence[str] | None = None, *, where: Condition | None = None) -> int:
        """Async twin of `delete`."""
        return await self._runner.arun(collecting.delete(self._shelf, keys, where))

    def clear(self) -> int:
        """Delete the collection with all its nodes, and return how many there were."""
        return self._runner.run(collecting.clear(self._shelf))

    async def aclear(self) -> int:
        """Async twin of `clear`."""
        return await self._runner.arun(collecting.clear(self._shelf))
