"""Calls that are given up at a time limit, whatever they are at: how long an embedder or a reranker may keep a caller.

A blocking call cannot be stopped from outside, so it is made in a thread of its own, which ends with the call. Threads
whose callers have gone are few: while four of them have not come back the next call is refused at once, which also
spares callers the wait for a service that hangs. They are daemons, so that the end of a program waits for none.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from memoranda.forks import renew_after_fork

T = TypeVar("T")

MOST_GIVEN_UP = 4
"""Calls that were given up and are still running, from which on no other is begun."""


class TimeLimit:
    """Makes calls and gives them up at a time limit."""

    def __init__(self, called: str) -> None:
        """Begin with no call under way; the threads bear the name of what is called."""
        self._name = f"memoranda-{called}"
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Begin without the parent's threads."""
        self._lock = threading.Lock()
        self._given_up = 0

    def within(self, seconds: float, call: Callable[[], T]) -> T:
        """Return what a blocking call returns, or raise what it raises; it goes on unheard where it takes longer.

        Raises:
            TimeoutError: it took longer, four earlier ones are still running, or no thread is to be had.
        """
        outcome, leave = self._begun(call)
        try:
            return outcome.result(seconds)
        finally:
            leave()

    async def beside(self, seconds: float, call: Callable[[], T]) -> T:
        """Do the same as `within` without blocking the event loop."""
        outcome, leave = self._begun(call)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(outcome), seconds)
        finally:
            leave()

    def _begun(self, call: Callable[[], T]) -> tuple[Future[T], Callable[[], None]]:
        """Make a call in a thread, and return what will come of it and what its caller has to call on leaving."""
        with self._lock:
            if self._given_up >= MOST_GIVEN_UP:
                raise TimeoutError
        outcome: Future[T] = Future()
        outcome.set_running_or_notify_cancel()  # whoever leaves does not take the place of the outcome
        left = False

        def run() -> None:
            try:
                result = call()
            except BaseException as error:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)
            with self._lock:
                self._given_up -= left

        def leave() -> None:
            nonlocal left
            with self._lock:
                if not outcome.done():
                    left = True
                    self._given_up += 1

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(run,), name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise TimeoutError from error
        return outcome, leave

    async def awithin(self, seconds: float, call: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns, or raise what it raises; it is cancelled where it takes longer.

        Raises:
            TimeoutError: it took longer.
        """
        task = asyncio.create_task(call)
        task.add_done_callback(_heard)
        try:
            # Unlike `asyncio.timeout` this waits for no call that will not be cancelled.
            await asyncio.wait((task,), timeout=seconds)
            if task.done():
                return task.result()
            raise TimeoutError
        finally:
            task.cancel()


def _heard(task: "asyncio.Task[Any]") -> None:
    """Look at how a task ended, or the loop reports an error that nobody heard of."""
    if not task.cancelled():
        task.exception()
