"""The store of memories: each verb a pair of one-liners over one pipeline."""

import builtins
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from memoranda import filters as filtering
from memoranda.db.queries import memories
from memoranda.effects import Runner, Steps, read
from memoranda.errors import InvalidInput
from memoranda.pipelines import recalling, writing
from memoranda.pipelines.context import Context
from memoranda.records import Forgotten, Kept, Memory, MemoryHit, MemoryRecord, Recall, Undone, Written

if TYPE_CHECKING:
    from typing import Unpack

    from memoranda.fields import MemoryFields
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

    def keep(self, content: str, *, id: Identifier | None = None, **fields: "Unpack[MemoryFields]") -> Kept:
        """Remember a statement about somebody, once: what says nearly the same in the same place is given its text.

        The text it had stays in its history. The answer's `str` is the sentence for an agent.

        Args:
            content: One self-contained statement.
            id: The memory to update, whatever it says.
            **fields: See `MemoryFields`; `about` must be among them. An update changes what is named, nothing else.

        Raises:
            InvalidInput: something cannot be stored as it is; nothing was stored.
            NotAllowed: the space is not open, or an author is missing.
            MemoryNotFound: `id` names none that this scope may see.
            MemoryNotActive: `id` names one that was replaced, deleted or marked.
            NotTheAuthor: `id` names one that another user wrote.
            StoreError: the database failed.
        """
        return self._runner.run(writing.keep(self._context, content, id, fields))

    async def akeep(self, content: str, *, id: Identifier | None = None, **fields: "Unpack[MemoryFields]") -> Kept:
        """Async twin of `keep`."""
        return await self._runner.arun(writing.keep(self._context, content, id, fields))

    def forget(self, id: Identifier) -> Forgotten:
        """Take one memory out of every answer, and say what it said; its history stays, as with `delete`.

        Raises:
            MemoryNotFound: there is none, none this scope may see, or it was forgotten already.
            NotTheAuthor: another user wrote it.
        """
        return self._runner.run(writing.forget(self._context, id))

    async def aforget(self, id: Identifier) -> Forgotten:
        """Async twin of `forget`."""
        return await self._runner.arun(writing.forget(self._context, id))

    def core(self, *, limit: int | None = None) -> builtins.list[Memory]:
        """Return the memories that are always in mind, the most important first, then the newest.

        One that looks like an order to a model is left out; see `Memory.suspicions`.

        Args:
            limit: How many at most, 1..1,000; 50 when left out.

        Raises:
            InvalidInput: the limit cannot be used.
        """
        return self._runner.run(recalling.core(self._context, limit))

    async def acore(self, *, limit: int | None = None) -> builtins.list[Memory]:
        """Async twin of `core`."""
        return await self._runner.arun(recalling.core(self._context, limit))

    def relevant(self, text: str, *, limit: int | None = None) -> Recall:
        """Return what is worth putting before a model that did not ask; core memories are left out.

        Every hit is over the floor for what is injected, and none looks like an order to a model. Never fails a turn: a
        database, an embedder or a reranker that is down is logged, and the answer says `degraded`.

        Args:
            text: What was said, such as the latest message.
            limit: How many hits at most, 1..1,000; the preset's own number when left out.

        Raises:
            InvalidInput: the text is no string, or the limit cannot be used.
        """
        return self._runner.run(recalling.relevant(self._context, text, limit))

    async def arelevant(self, text: str, *, limit: int | None = None) -> Recall:
        """Async twin of `relevant`."""
        return await self._runner.arun(recalling.relevant(self._context, text, limit))

    def get(self, id: Identifier, *, as_of: datetime | str | None = None) -> MemoryRecord | None:
        """Return a memory with its chain and sources; None when there is none, or none this scope may see.

        Args:
            id: The memory.
            as_of: The moment to look at: the answer is the memory of the same chain that held then, in the words it
                had, with what replaced it and where that change came from; None when none held.

        Raises:
            InvalidInput: `as_of` is no moment.
        """
        return self._runner.run(self._record(id, as_of))

    async def aget(self, id: Identifier, *, as_of: datetime | str | None = None) -> MemoryRecord | None:
        """Async twin of `get`."""
        return await self._runner.arun(self._record(id, as_of))

    def _record(self, id: Identifier, as_of: datetime | str | None) -> Steps[MemoryRecord | None]:
        moment = filtering.check({"as_of": as_of}, self._context.zone).as_of
        return (yield from read(memories.record, self._context.setting(), id, moment))

    def history(self, id: Identifier) -> builtins.list[Memory]:
        """Return a memory with all it replaced and all that replaced it, oldest first; empty when there is none."""
        return self._runner.run(self._history(id))

    async def ahistory(self, id: Identifier) -> builtins.list[Memory]:
        """Async twin of `history`."""
        return await self._runner.arun(self._history(id))

    def _history(self, id: Identifier) -> Steps[builtins.list[Memory]]:
        return (yield from read(memories.history, self._context.setting(), id))

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
        return (yield from read(memories.listed, self._context.setting(), checked, wanted, order, before))

    def undo(self, id: Identifier) -> Undone:
        """Take back that a memory was replaced or marked: it holds again as before, and what replaced it is retracted.

        A successor that was there before it replaced this memory stays as it is. The history keeps every step.

        Args:
            id: The memory that was replaced.

        Raises:
            MemoryNotFound: there is none, or none this scope may see.
            MemoryNotActive: it was deleted, or what replaced it was replaced in turn: undo that first.
            InvalidInput: nothing has replaced or marked it.
            NotTheAuthor: another user wrote it, or what replaced it.
        """
        return self._runner.run(writing.undo(self._context, id))

    async def aundo(self, id: Identifier) -> Undone:
        """Async twin of `undo`."""
        return await self._runner.arun(writing.undo(self._context, id))

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

    def nearest(self, content: str, *, project: str | None = None) -> MemoryHit | None:
        """Return the one memory that means most nearly the same, whatever the distance; None in an empty scope."""
        return self._runner.run(recalling.nearest(self._context, content, project))

    async def anearest(self, content: str, *, project: str | None = None) -> MemoryHit | None:
        """Async twin of `nearest`."""
        return await self._runner.arun(recalling.nearest(self._context, content, project))
