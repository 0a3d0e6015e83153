"""The store of memories: each verb a pair of one-liners over one pipeline."""

import builtins
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from memoranda import filters as filtering
from memoranda.db.queries import memories
from memoranda.effects import Runner, Steps, read
from memoranda.errors import InvalidInput
from memoranda.pipelines import recalling, writing
from memoranda.pipelines.context import Context
from memoranda.records import Hit, Memory, MemoryRecord, Written

if TYPE_CHECKING:
    from typing import Unpack

    from memoranda.drafts import MemoryFields
    from memoranda.filters import FilterFields

Order = Literal["newest", "importance"]
Identifier = UUID | str
"""An id, or the short id that people and models see."""

_PAGE = 50


class Memories:
    """The memories of one persona: self-contained statements, each with time, importance, provenance and history."""

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner) -> None:
        """Bind a scope to an engine's runner."""
        self._context = context
        self._runner = runner

    def write(self, content: str, **fields: "Unpack[MemoryFields]") -> Written:
        """Store one memory; the same memory in the same place is stored once.

        Secrets are taken out before anything is stored. An embedder that is down does not cost the memory: it is
        stored, found by its words, and the answer says `degraded`.

        Args:
            content: One self-contained statement.
            **fields: See `MemoryFields`: `category`, `importance` (1..10), `event_time`, `metadata` and the others.

        Raises:
            InvalidInput: something cannot be stored as it is; nothing was stored.
            NotAllowed: it is to be shared with a project the user is no member of, or an author is missing.
            StoreError: the database failed.
        """
        return self._runner.run(writing.write_one(self._context, content, fields))

    async def awrite(self, content: str, **fields: "Unpack[MemoryFields]") -> Written:
        """Async twin of `write`."""
        return await self._runner.arun(writing.write_one(self._context, content, fields))

    def write_many(self, items: Iterable[str | Mapping[str, Any]]) -> builtins.list[Written]:
        """Store many memories in one transaction, embedded in one call: all of them, or none.

        Args:
            items: Texts, or mappings with `content` and the fields of `write`.

        Returns:
            One answer an item, in order.

        Raises:
            InvalidInput: an item cannot be stored as it is; names its row, and nothing was stored.
            NotAllowed: as for `write`.
            StoreError: the database failed; nothing was stored.
        """
        return self._runner.run(writing.write_many(self._context, items))

    async def awrite_many(self, items: Iterable[str | Mapping[str, Any]]) -> builtins.list[Written]:
        """Async twin of `write_many`."""
        return await self._runner.arun(writing.write_many(self._context, items))

    def supersede(self, id: Identifier, content: str, **fields: "Unpack[MemoryFields]") -> Written:
        """Store what replaces a memory; the old one leaves the answers and stays in the history.

        What is left out is inherited: type, category, importance, core, project, audience and subject. The new memory
        stays in the space of the old one, which holds until the new one's `valid_from`, else its `event_time`, at the
        latest now.

        Args:
            id: The memory that no longer holds.
            content: What holds instead.
            **fields: See `MemoryFields`.

        Raises:
            MemoryNotFound: there is none, or none this scope may see.
            MemoryNotActive: it was replaced or deleted already; says which.
            NotTheAuthor: another user wrote it.
            InvalidInput: as for `write`.
        """
        return self._runner.run(writing.supersede(self._context, id, content, fields))

    async def asupersede(self, id: Identifier, content: str, **fields: "Unpack[MemoryFields]") -> Written:
        """Async twin of `supersede`."""
        return await self._runner.arun(writing.supersede(self._context, id, content, fields))

    def get(self, id: Identifier) -> MemoryRecord | None:
        """Return a memory with its chain and sources; None when there is none, or none this scope may see."""
        return self._runner.run(read(memories.record, self._context.setting(), id))

    async def aget(self, id: Identifier) -> MemoryRecord | None:
        """Async twin of `get`."""
        return await self._runner.arun(read(memories.record, self._context.setting(), id))

    def history(self, id: Identifier) -> builtins.list[Memory]:
        """Return a memory with all it replaced and all that replaced it, oldest first; empty when there is none."""
        return self._runner.run(read(memories.history, self._context.setting(), id))

    async def ahistory(self, id: Identifier) -> builtins.list[Memory]:
        """Async twin of `history`."""
        return await self._runner.arun(read(memories.history, self._context.setting(), id))

    def list(
        self,
        *,
        limit: int = _PAGE,
        order: Order = "newest",
        before: Identifier | None = None,
        **filters: "Unpack[FilterFields]",
    ) -> builtins.list[Memory]:
        """Return a page of memories.

        Args:
            limit: How many at most, 1..1,000.
            order: `newest` by the time they were stored; `importance` first and then the newest.
            before: The last memory of the page before, to get the next one.
            **filters: See `FilterFields`.

        Raises:
            InvalidInput: an argument cannot be used.
            MemoryNotFound: `before` names none that this scope may see.
        """
        return self._runner.run(self._listed(limit, order, before, filters))

    async def alist(
        self,
        *,
        limit: int = _PAGE,
        order: Order = "newest",
        before: Identifier | None = None,
        **filters: "Unpack[FilterFields]",
    ) -> builtins.list[Memory]:
        """Async twin of `list`."""
        return await self._runner.arun(self._listed(limit, order, before, filters))

    def _listed(
        self, limit: int, order: Order, before: Identifier | None, fields: Mapping[str, Any]
    ) -> Steps[builtins.list[Memory]]:
        if order not in ("newest", "importance"):
            raise InvalidInput("order must be newest or importance", field="order")
        checked = filtering.check(fields, self._context.zone, project=self._context.scope.project)
        wanted = recalling.checked_limit(limit, _PAGE)
        return read(memories.listed, self._context.setting(), checked, wanted, order, before)

    def delete(self, id: Identifier) -> Memory:
        """Take one memory out of every answer; it stays in the history, marked as retracted.

        Raises:
            MemoryNotFound: there is none, none this scope may see, or it was deleted already.
            NotTheAuthor: another user wrote it.
        """
        return self._runner.run(writing.delete(self._context, id))

    async def adelete(self, id: Identifier) -> Memory:
        """Async twin of `delete`."""
        return await self._runner.arun(writing.delete(self._context, id))

    def mark(self, id: Identifier, status: str, *, by: Identifier | None = None) -> Memory:
        """Give a memory the status `superseded`, `retracted` or `expired`, and close its window.

        Args:
            id: The memory.
            status: The new status.
            by: The memory that displaces it.

        Raises:
            InvalidInput: the status is none of these.
            MemoryNotFound: there is none, or none this scope may see.
            MemoryNotActive: it was deleted, or `by` is given and something replaced it already.
            NotTheAuthor: another user wrote it.
        """
        return self._runner.run(writing.mark(self._context, id, status, by))

    async def amark(self, id: Identifier, status: str, *, by: Identifier | None = None) -> Memory:
        """Async twin of `mark`."""
        return await self._runner.arun(writing.mark(self._context, id, status, by))

    def nearest(self, content: str, *, project: str | None = None) -> Hit | None:
        """Return the one memory that means most nearly the same, whatever the distance; None in an empty scope."""
        return self._runner.run(recalling.nearest(self._context, content, project))

    async def anearest(self, content: str, *, project: str | None = None) -> Hit | None:
        """Async twin of `nearest`."""
        return await self._runner.arun(recalling.nearest(self._context, content, project))
