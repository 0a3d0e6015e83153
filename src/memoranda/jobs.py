"""The worker behind an engine: does in the background what writes have left to be done.

What is to be done are rows of the database, so nothing is lost when a process dies: the next engine that is opened, or
`memoranda worker`, goes on with it.
"""

import logging
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from functools import partial
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
        self._policy = policy
        self._runner = runner
        self._context = context
        self._start()
        renew_after_fork(self)

    def _start(self) -> None:
        self._worker = working.Worker(name=f"{os.getpid()}-{uuid.uuid4().hex[:8]}", policy=self._policy)
        self._lock = threading.Lock()
        self._called = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def after_fork(self) -> None:
        """Begin without the parent's thread, and with locks that nobody holds."""
        self._start()

    def drain(self, timeout: float, progress: "Progress | None") -> "Steps[int]":
        """Do what can be begun, and wait for what others have begun."""
        return working.drain(self._context(), self._told(), timeout, progress)

    def backfill(self) -> "Steps[int]":
        """Leave jobs for what has no vector."""
        self._told()
        return working.backfill(self._context())

    def revive(self) -> "Steps[int]":
        """Have the jobs tried again that were given up."""
        self._told()
        return working.revive(self._context())

    def _told(self) -> "working.Worker":
        """Return the worker, who is told to go on: a service that refused every call is asked again."""
        self._worker.resting.clear()
        return self._worker

    def at_once(self, owner: tuple[str, str] | None) -> "Steps[int]":
        """Do for a caller, whose own work is stored already, what can be begun now and in time for a persona.

        An error is logged, not raised.
        """
        until = time.monotonic() + self._policy.inline_seconds
        try:
            return (
                yield from working.work(
                    self._context(), self._worker, owner=owner, stopping=lambda: time.monotonic() > until
                )
            )
        except MemorandaError as error:
            _log.warning("jobs were left for later: %s", error)
            return 0

    def wake(self) -> None:
        """Tell the thread that there is something to do; starts it where there is none."""
        if self.mode != "thread":
            return
        with self._lock:
            self._called.set()
            if self._closing or (self._thread is not None and self._thread.is_alive()):
                return
            # It holds the worker only while it works, so that an engine nobody has any more can go.
            worker = weakref.ref(self, partial(_call, self._called))
            self._thread = threading.Thread(
                target=_work_on, args=(worker, self._called), name="memoranda-jobs", daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError as error:  # no thread is to be had, or the process is about to end
                self._thread = None
                _log.warning("jobs were left for later: %s", error)

    def run(self, *stops: threading.Event) -> None:
        """Work until one of them is set, also while there is nothing to do."""
        pace = _Pace()

        def told() -> bool:
            return any(stop.is_set() for stop in stops)

        while not told() and (seconds := self.round(pace, told)) is not None:
            # Whoever sets one calls nobody, so they are looked at meanwhile.
            while seconds > 0 and not told() and not self._called.wait(min(seconds, _HEEDS)):
                seconds -= _HEEDS

    def round(self, pace: "_Pace", told: "Callable[[], bool] | None" = None) -> float | None:
        """Do what can be begun, and return in how many seconds to look again at the latest.

        Returns:
            None when it is time to end: the engine is closed or, without `told`, there is nothing to wait for.
        """

        def stopping() -> bool:
            return self._closing or (told is not None and told())

        if stopping():
            return None
        self._called.clear()
        try:
            begun = self._runner.run(working.work(self._context(), self._worker, stopping=stopping))
            due = self._runner.run(working.next_look(self._context(), self._worker))
        except MemorandaError as error:
            if stopping():
                return None
            _log.warning("the background worker could not go on: %s", error)
            begun, due = 0, pace.pause
        if begun:
            return pace.begin_anew()
        if due is None and told is None and self.leave(unless_called=True):
            return None
        return pace.slow_down(due)

    def leave(self, *, unless_called: bool = False) -> bool:
        """Let go of the thread that calls, so that the next job starts another."""
        with self._lock:
            if unless_called and self._called.is_set():
                return False
            if self._thread is threading.current_thread():
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


class _Pace:
    """How long to wait: less and less often while nothing is there, at the latest every 30 seconds."""

    def __init__(self) -> None:
        self.pause = _FIRST_PAUSE

    def begin_anew(self) -> float:
        self.pause = _FIRST_PAUSE
        return 0.0

    def slow_down(self, due: float | None) -> float:
        """Return the next pause, which ends when a job is due."""
        seconds = self.pause if due is None else min(self.pause, due)
        self.pause = min(2 * self.pause, _LONGEST_PAUSE)
        return seconds


def _call(called: threading.Event, _: object) -> None:
    called.set()


def _work_on(worker: "weakref.ref[Background]", called: threading.Event) -> None:
    """Work as long as there is something to do and an engine to do it for."""
    pace = _Pace()
    while (seconds := _round(worker, pace)) is not None:
        called.wait(seconds)


def _round(worker: "weakref.ref[Background]", pace: _Pace) -> float | None:
    background = worker()
    if background is None:
        return None
    try:
        return background.round(pace)
    except BaseException:
        background.leave()
        raise
