"""The worker behind an engine: does in the background what writes have left to be done.

What is to be done are rows of the database, so nothing is lost when a process dies: the next engine that is opened, or
`memoranda worker`, goes on with it.
"""

import logging
import os
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from memoranda.errors import MemorandaError
from memoranda.forks import renew_after_fork
from memoranda.pipelines import working
from memoranda.policies import JobPolicy

if TYPE_CHECKING:
    from memoranda.effects import Runner, Steps
    from memoranda.pipelines.context import Context
    from memoranda.protocols import Progress

BackgroundMode: TypeAlias = Literal["thread", "inline", "external", "off"]

_log = logging.getLogger("memoranda.jobs")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0  # seconds between two looks while there is nothing to do
_HEEDS = 0.5  # seconds until an idle worker sees that it is to stop
_LEAVES = 5.0  # seconds in which a closing engine lets its worker end the job it is at


class Background:
    """Works off jobs in a thread of its own, in the caller's, or leaves them to `memoranda worker`."""

    def __init__(
        self, mode: BackgroundMode, runner: "Runner", context: "Callable[[], Context]", policy: JobPolicy
    ) -> None:
        """Begin without a thread: the first job starts it."""
        self.mode = mode
        self.policy = policy
        self._runner = runner
        self._context = context
        self._start()
        renew_after_fork(self)

    def _start(self) -> None:
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._lock = threading.Lock()
        self._called = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def after_fork(self) -> None:
        """Begin without the parent's thread, and with locks that nobody holds."""
        self._start()

    def work(self, stopping: "Callable[[], bool]" = lambda: False) -> "Steps[int]":
        """Do what can be begun now, or until it is time to stop."""
        return working.work(self._context(), self.policy, self._name, stopping=stopping)

    def drain(self, timeout: float, progress: "Progress | None") -> "Steps[int]":
        """Do what can be begun, and wait for what others have begun."""
        return working.drain(self._context(), self.policy, self._name, timeout, progress)

    def wake(self) -> None:
        """Tell the thread that there is something to do; starts it where there is none."""
        if self.mode != "thread":
            return
        with self._lock:
            self._called.set()
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._work_on, name="memoranda-jobs", daemon=True)
                self._thread.start()

    def _work_on(self) -> None:
        self.run(stay=False)

    def run(self, *, stay: bool, stop: threading.Event | None = None) -> None:
        """Work until told to stop; with `stay` also while there is nothing to do.

        Looks less and less often while nothing is there, at the latest every 30 seconds, and at once when a job of this
        process is left or one is due.
        """

        def stopping() -> bool:
            return self._closing or (stop is not None and stop.is_set())

        pause = _FIRST_PAUSE
        while not stopping():
            self._called.clear()
            try:
                begun = self._runner.run(self.work(stopping))
                due = self._runner.run(working.next_look(self._context(), self.policy))
            except MemorandaError as error:
                _log.warning("the background worker could not go on: %s", error)
                begun, due = 0, pause
            if begun:
                pause = _FIRST_PAUSE
                continue
            if due is None and not stay and self._left():
                return
            self._wait(min(pause, due) if due is not None else pause, stop)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _wait(self, seconds: float, stop: threading.Event | None) -> None:
        """Wait until there may be something to do; whoever sets `stop` calls nobody, so it is looked at meanwhile."""
        if stop is None:
            self._called.wait(seconds)
            return
        while seconds > 0 and not stop.is_set() and not self._called.wait(min(seconds, _HEEDS)):
            seconds -= _HEEDS

    def _left(self) -> bool:
        """End the thread, unless somebody called in this very moment."""
        with self._lock:
            if self._called.is_set():
                return False
            self._thread = None
            return True

    def close(self) -> None:
        """Let the job end that is being done, and begin none."""
        with self._lock:
            self._closing = True
            self._called.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LEAVES)
