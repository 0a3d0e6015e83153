"""A fork: what a thread of the parent held, nobody in the child will release.

Our own locks and connections are made anew in the child. The locks of a library are not ours to replace: a `ForkGate`
has the fork wait until no thread is inside that library.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something that must begin anew in a child."""

    def after_fork(self) -> None:
        """Replace what belongs to the parent; called in the child before any other code of it."""
        ...


class ForkGate:
    """Is passed by every thread that goes where a fork must not find it."""

    def __init__(self, patience: float) -> None:
        """Open the gate; a fork waits for those inside no longer than `patience`, in seconds."""
        self._patience = patience
        self._moved = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._closed = False
        _watch_forks()
        _gates.add(self)

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Be inside during the block; who comes while a fork is under way waits for its end."""
        me = threading.get_ident()
        with self._moved:
            self._moved.wait_for(lambda: not self._closed or self._inside[me])
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._moved:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                self._moved.notify_all()

    def close(self) -> None:
        """Let nobody in, and wait until nobody else is inside; whoever forks from inside knows what they do."""
        me = threading.get_ident()
        with self._moved:
            self._closed = True
            self._moved.wait_for(lambda: not self._inside.keys() - {me}, self._patience)

    def open(self) -> None:
        """Let those in who waited."""
        with self._moved:
            self._closed = False
            self._moved.notify_all()


_renewed: "WeakSet[Forkable]" = WeakSet()
_gates: "WeakSet[ForkGate]" = WeakSet()
_watching = False


def renew_after_fork(thing: Forkable) -> None:
    """Have `after_fork` called in every child, for as long as the thing lives."""
    _watch_forks()
    _renewed.add(thing)


def _watch_forks() -> None:
    global _watching
    if not _watching:
        _watching = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_close, after_in_parent=_open, after_in_child=_renew)


def _close() -> None:
    for gate in list(_gates):
        gate.close()


def _open() -> None:
    for gate in list(_gates):
        gate.open()


def _renew() -> None:
    _gates.clear()  # those inside are not in the child: it makes gates of its own
    for thing in list(_renewed):
        thing.after_fork()
