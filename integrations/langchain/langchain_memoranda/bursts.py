"""Operations on items that many tasks ask for at once, done together.

A graph whose nodes run side by side asks for hundreds of operations in one turn of its event loop. Those of one turn
are one batch, in which the same question is asked once; what writes an item is done after what was asked to write it
before, also where the one who asked was cancelled. Nothing lives longer than its batch: no task waits on a loop for the
next one, so a store serves any number of loops, one after the other or side by side.
"""

import asyncio
from asyncio import AbstractEventLoop, Task
from collections.abc import Sequence
from copy import deepcopy
from typing import Any
from weakref import WeakKeyDictionary

from memoranda.item_operations import DeleteItem, ItemOperation, PutItem
from memoranda.items import Items
from memoranda.namespaces import Path

_AT_ONCE = 64  # batches of a loop that run or wait for a thread


class _Burst:
    """The operations of one turn."""

    def __init__(self) -> None:
        self.operations: list[ItemOperation] = []
        self.task: Task[list[Any]]
        self.shared: set[int] = set()
        """The places of answers that several callers are given."""
        self.written: set[tuple[Path, str]] = set()
        """The namespaces and keys of items that are put or deleted."""
        self._places: dict[str, int] = {}

    def join(self, operations: Sequence[ItemOperation]) -> list[int]:
        """Add operations, and return at which places their answers will stand."""
        return [self._joined(op) for op in operations]

    def _joined(self, op: ItemOperation) -> int:
        place = len(self.operations)
        if isinstance(op, PutItem | DeleteItem):
            self.written.add((op.namespace, op.key))
        else:
            place = self._places.setdefault(f"{op!r}{getattr(op, 'query', '')}", place)
        if place == len(self.operations):
            self.operations.append(op)
        else:
            self.shared.add(place)
        return place


class Bursts:
    """Does what is asked for in one turn of an event loop as one batch."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._gathering: WeakKeyDictionary[AbstractEventLoop, _Burst] = WeakKeyDictionary()
        self._gates: WeakKeyDictionary[AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._running: set[Task[list[Any]]] = set()
        self._writing: WeakKeyDictionary[AbstractEventLoop, dict[tuple[Path, str], Task[list[Any]]]]
        self._writing = WeakKeyDictionary()

    async def run(self, operations: Sequence[ItemOperation]) -> list[Any]:
        """Return what operations give; a caller that is cancelled takes nobody else's answers away."""
        loop = asyncio.get_running_loop()
        burst = self._gathering.get(loop)
        if burst is None:
            burst = self._gathering[loop] = _Burst()
            burst.task = loop.create_task(self._done(loop, burst))
            self._running.add(burst.task)
            burst.task.add_done_callback(self._ended)
        places = burst.join(operations)
        answers = await asyncio.shield(burst.task)
        return [deepcopy(answers[place]) if place in burst.shared else answers[place] for place in places]

    async def _done(self, loop: AbstractEventLoop, burst: _Burst) -> list[Any]:
        # It is begun after everybody of this turn has joined.
        del self._gathering[loop]
        writing = self._writing.setdefault(loop, {})
        before = {writing[name] for name in burst.written if name in writing}
        writing.update(dict.fromkeys(burst.written, burst.task))
        try:
            if before:
                await asyncio.wait(before)
            async with self._gates.setdefault(loop, asyncio.Semaphore(_AT_ONCE)):
                return await self._items.abatch(burst.operations)
        finally:
            for name in burst.written:
                if writing[name] is burst.task:
                    del writing[name]

    def _ended(self, task: "Task[list[Any]]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has been told
