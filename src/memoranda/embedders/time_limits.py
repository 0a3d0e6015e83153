"""Calls that are given up at a time limit, whatever they are at: how long an embedder may keep a caller waiting.

A blocking call cannot be stopped from outside, so it is made in a thread of its own, which ends with the call. Threads
whose callers have gone are few: while four of them have not come back the next call is refused at once, which also
spares callers the wait for an embedder that hangs. They are daemons, so that the end of a program waits for none.
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

    def __init__(self) -> None:
        """Begin with no call under way."""
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
        with self._lock:
            if self._given_up >= MOST_GIVEN_UP:
                raise TimeoutError
        outcome: Future[T] = Future()
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

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(run,), name="memoranda-embedder", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise TimeoutError from error
        try:
            return outcome.result(seconds)
        finally:
            with self._lock:
                if not outcome.done():
                    left = True
                    self._given_up += 1

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
