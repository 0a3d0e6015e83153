"""An async client on an event loop in a thread of its own, for callers of both kinds.

An async client belongs to the event loop that opened its connections. On a loop of its own it outlives its callers'
loops and serves threads, plain code, a second `asyncio.run` and a forked child alike; and a blocking call can be given
up at its time limit, which a blocking client cannot do while it reads byte by byte or waits to try again.
"""

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from memoranda.forks import renew_after_fork


class AsyncClient(Protocol):
    """What can live on the loop."""

    async def close(self) -> None:
        """Close its connections."""
        ...


C = TypeVar("C", bound=AsyncClient)
T = TypeVar("T")


class LoopThread(Generic[C]):
    """Runs coroutines with one client, made at the first call and closed once the object is gone."""

    def __init__(self, make_client: Callable[[], C], name: str) -> None:
        """Prepare the thread `name` without starting it; `make_client` must not refer to this object."""
        self._make_client = make_client
        self._name = name
        self._lock = threading.Lock()
        self._serving: _Serving[C] | None = None
        self._of_parents: list[_Serving[C]] = []
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Begin with a loop of the child's own, and leave the parent's alone."""
        self._lock = threading.Lock()
        if self._serving is not None:
            self._serving.release.detach()
            # Kept, not closed: its selector and its sockets are shared with the parent.
            self._of_parents.append(self._serving)
            self._serving = None

    def run(self, work: Callable[[C], Coroutine[Any, Any, T]]) -> T:
        """Return what `work(client)` gives, blocking the calling thread."""
        future = self._submit(work)
        try:
            return future.result()
        finally:
            future.cancel()  # an interrupted caller waits no longer, so nobody does

    async def arun(self, work: Callable[[C], Coroutine[Any, Any, T]]) -> T:
        """Do the same as `run` without blocking the event loop; a cancelled caller cancels the work."""
        return await asyncio.wrap_future(self._submit(work))

    def _submit(self, work: Callable[[C], Coroutine[Any, Any, T]]) -> "Future[T]":
        with self._lock:
            if self._serving is None:
                self._serving = _Serving(self._make_client, self._name, owner=self)
            serving = self._serving
        return asyncio.run_coroutine_threadsafe(serving.perform(work), serving.loop)


class _Serving(Generic[C]):
    """The running thread: its loop and its client. It does not hold the `LoopThread`, whose end is its own."""

    def __init__(self, make_client: Callable[[], C], name: str, *, owner: LoopThread[C]) -> None:
        self._make_client = make_client
        self._client: C | None = None
        self._stop = asyncio.Event()
        # With a factory the runner does not make its loop the calling thread's.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.loop = self._runner.get_loop()
        threading.Thread(target=self._serve, name=name, daemon=True).start()
        self.release = weakref.finalize(owner, self.loop.call_soon_threadsafe, self._stop.set)
        self.release.atexit = False  # the thread is a daemon: the end of the process is its end

    async def perform(self, work: Callable[[C], Coroutine[Any, Any, T]]) -> T:
        if self._client is None:
            self._client = self._make_client()
        return await work(self._client)

    def _serve(self) -> None:
        with self._runner:
            self._runner.run(self._until_released())

    async def _until_released(self) -> None:
        await self._stop.wait()
        if self._client is not None:
            await self._client.close()
