"""Locks and connections in a child after a fork: what a thread of the parent held, nobody in the child will release."""

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something that must begin anew in a child."""

    def after_fork(self) -> None:
        """Replace what belongs to the parent; called in the child before any other code of it."""
        ...


_watched: "WeakSet[Forkable] | None" = None


def renew_after_fork(thing: Forkable) -> None:
    """Have `after_fork` called in every child, for as long as the thing lives."""
    global _watched
    if _watched is None:
        _watched = WeakSet()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_renew)
    _watched.add(thing)


def _renew() -> None:
    for thing in list(_watched or ()):
        thing.after_fork()
