"""Items: values under a namespace and a key, found by what they say, by what they hold, or by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.conditions import Condition
from memoranda.effects import Runner
from memoranda.embedders.cache import CachedEmbedder
from memoranda.item_operations import DeleteItem, GetItem, ItemOperation, ListNamespaces, PutItem, SearchItems
from memoranda.namespaces import Path
from memoranda.pipelines import storing_items
from memoranda.pipelines.context import Context
from memoranda.protocols import Embedder
from memoranda.records import Item


class Items:
    """The items of one author in one persona, whatever project, space or thread is on.

    They are no memories: kept as they are given, found only here, and never put into a prompt by themselves.
    """

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner, embedder: CachedEmbedder | None = None) -> None:
        """Bind a scope to an engine's runner, and perhaps to another embedder than the store's."""
        self._context = context
        self._runner = runner
        self._embedder = embedder

    def embedded_by(self, embedder: Embedder) -> "Items":
        """Return the same items, stored and searched from now on with another embedder than the store's.

        What was stored by one embedder is found by another by its words only. `backfill` and `reembed` leave alone what
        another embedder than the store's has made.
        """
        known = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
        return Items(self._context, self._runner, known)

    def put(
        self,
        namespace: Path,
        key: str,
        value: Mapping[str, Any],
        *,
        texts: Mapping[str, str] | None = None,
        ttl_minutes: float | None = None,
    ) -> None:
        """Store a value, in place of the one that is there.

        Args:
            namespace: The path of labels under which it is found, such as `("users", "ana@example.com")`.
            key: Its name there.
            value: What to store: names and values, as metadata takes them; it comes back as it was.
            texts: What it is found by, each text under where it comes from; the whole value as JSON when left out, and
                nothing for `{}`.
            ttl_minutes: How long it is kept after it was last written or refreshed; for ever when left out.

        Raises:
            InvalidInput: something cannot be stored as it is; nothing was stored.
            EmbedderUnavailable: another embedder than the store's, see `embedded_by`, failed; nothing was stored.
            NotAllowed: the preset wants an author, and the scope has no user.
            StoreError: the database failed.
        """
        self.batch([PutItem(namespace=namespace, key=key, value=value, texts=texts, ttl_minutes=ttl_minutes)])

    async def aput(
        self,
        namespace: Path,
        key: str,
        value: Mapping[str, Any],
        *,
        texts: Mapping[str, str] | None = None,
        ttl_minutes: float | None = None,
    ) -> None:
        """Async twin of `put`."""
        await self.abatch([PutItem(namespace=namespace, key=key, value=value, texts=texts, ttl_minutes=ttl_minutes)])

    def get(self, namespace: Path, key: str, *, refresh: bool = False, omit_expired: bool = False) -> Item | None:
        """Return an item, None when there is none.

        Args:
            namespace: Its namespace.
            key: Its key.
            refresh: Whether its time begins anew, where it has one.
            omit_expired: Whether an item whose time is over counts as gone before it is swept.
        """
        op = GetItem(namespace=namespace, key=key, refresh=refresh, omit_expired=omit_expired)
        found: Item | None = self.batch([op])[0]
        return found

    async def aget(
        self, namespace: Path, key: str, *, refresh: bool = False, omit_expired: bool = False
    ) -> Item | None:
        """Async twin of `get`."""
        op = GetItem(namespace=namespace, key=key, refresh=refresh, omit_expired=omit_expired)
        found: Item | None = (await self.abatch([op]))[0]
        return found

    def delete(self, namespace: Path, key: str) -> None:
        """Remove an item, if there is one."""
        self.batch([DeleteItem(namespace=namespace, key=key)])

    async def adelete(self, namespace: Path, key: str) -> None:
        """Async twin of `delete`."""
        await self.abatch([DeleteItem(namespace=namespace, key=key)])

    def search(
        self,
        namespace: Path = (),
        *,
        query: str | None = None,
        where: Condition | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
        omit_expired: bool = False,
    ) -> list[Item]:
        """Return a page of the items below a namespace: best first for a query, else the one written last first.

        No page leaves out or repeats an item. What answers a query stands first; items that are found by no text
        follow, without a score.

        Args:
            namespace: The labels that their namespaces begin with; all items when left out.
            query: The question, in any words and script; nothing in it acts as an operator.
            where: What their values must say, see `memoranda.conditions`.
            limit: How many items at most.
            offset: How many of the first to leave out.
            refresh: Whether the time of what is returned begins anew.
            omit_expired: Whether items whose time is over count as gone before they are swept.

        Raises:
            InvalidInput: an argument cannot be used.
        """
        op = SearchItems(
            namespace=namespace,
            query=query,
            where=where,
            limit=limit,
            offset=offset,
            refresh=refresh,
            omit_expired=omit_expired,
        )
        [found] = self.batch([op])
        return list(found)

    async def asearch(
        self,
        namespace: Path = (),
        *,
        query: str | None = None,
        where: Condition | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
        omit_expired: bool = False,
    ) -> list[Item]:
        """Async twin of `search`."""
        op = SearchItems(
            namespace=namespace,
            query=query,
            where=where,
            limit=limit,
            offset=offset,
            refresh=refresh,
            omit_expired=omit_expired,
        )
        [found] = await self.abatch([op])
        return list(found)

    def list_namespaces(
        self,
        *,
        prefix: Path = (),
        suffix: Path = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
        omit_expired: bool = False,
    ) -> list[Path]:
        """Return the namespaces that have items, in order.

        Args:
            prefix: What they must begin with; `*` stands for exactly one label, whatever it is.
            suffix: What they must end with.
            max_depth: Longer ones are cut to so many labels, and given once.
            limit: How many at most.
            offset: How many of the first to leave out.
            omit_expired: Whether items whose time is over count as gone before they are swept.
        """
        op = ListNamespaces(
            prefixes=(prefix,),
            suffixes=(suffix,),
            max_depth=max_depth,
            limit=limit,
            offset=offset,
            omit_expired=omit_expired,
        )
        [found] = self.batch([op])
        return list(found)

    async def alist_namespaces(
        self,
        *,
        prefix: Path = (),
        suffix: Path = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
        omit_expired: bool = False,
    ) -> list[Path]:
        """Async twin of `list_namespaces`."""
        op = ListNamespaces(
            prefixes=(prefix,),
            suffixes=(suffix,),
            max_depth=max_depth,
            limit=limit,
            offset=offset,
            omit_expired=omit_expired,
        )
        [found] = await self.abatch([op])
        return list(found)

    def batch(self, operations: Sequence[ItemOperation]) -> list[Any]:
        """Do operations of `memoranda.item_operations`, and return what each gives, in their order.

        What reads sees what was there before the batch. What writes is one transaction, in which the last write of an
        item counts; it gives None.

        Raises:
            InvalidInput: one of them is no operation.
            EmbedderUnavailable: see `put`.
            NotAllowed: see `put`.
            StoreError: the database failed; nothing was written.
        """
        return self._runner.run(storing_items.batch(self._context, operations, self._embedder))

    async def abatch(self, operations: Sequence[ItemOperation]) -> list[Any]:
        """Async twin of `batch`."""
        return await self._runner.arun(storing_items.batch(self._context, operations, self._embedder))

    def check_embedder(self) -> str | None:
        """Ask for one vector, so that a wrong embedder fails the start; see `MemoryEngine.check`.

        Returns:
            The model whose vectors are searched as `name@dimensions`, None where there is none.

        Raises:
            EmbedderUnavailable: the embedder does not answer.
            ConfigurationError: it gives vectors of another length than it says.
        """
        return self._runner.run(storing_items.check(self._context, self._embedder))

    async def acheck_embedder(self) -> str | None:
        """Async twin of `check_embedder`."""
        return await self._runner.arun(storing_items.check(self._context, self._embedder))

    def sweep(self) -> int:
        """Delete the items whose time is over, by the database's clock, and return how many there were."""
        return self._runner.run(storing_items.sweep(self._context))

    async def asweep(self) -> int:
        """Async twin of `sweep`."""
        return await self._runner.arun(storing_items.sweep(self._context))
