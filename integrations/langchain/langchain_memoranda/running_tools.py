"""Whether code runs inside a tool, which LangChain's callbacks tell: no config that the code passes on can hide it.

A hook of an agent's middleware around its tools would tell it, too, but create_agent changes for such a hook: it then
takes tools that it does not know.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Run:
    """A tool that is called: a context that outlives the call, as an async caller's does, is not in it any more."""

    outer: "_Run | None"
    over: bool = False


_NEWEST: ContextVar[_Run | None] = ContextVar("langchain_memoranda_tool", default=None)


class _Watcher(BaseCallbackHandler):
    run_inline = True  # in the caller's context

    def __init__(self) -> None:
        self._runs: WeakValueDictionary[UUID, _Run] = WeakValueDictionary()

    @property
    def ignore_llm(self) -> bool:
        return True

    @property
    def ignore_chain(self) -> bool:
        return True

    @property
    def ignore_chat_model(self) -> bool:
        return True

    @property
    def ignore_retriever(self) -> bool:
        return True

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        self._runs[run_id] = run = _Run(_unfinished())
        _NEWEST.set(run)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def _end(self, run_id: UUID) -> None:
        if (run := self._runs.pop(run_id, None)) is not None:
            run.over = True


@cache
def watch() -> None:
    """Have tools watched from now on, once in a process."""
    # Of every context: the handler keeps nothing but what it finds by a run's id.
    watcher: ContextVar[Any] = ContextVar("langchain_memoranda_watcher", default=_Watcher())  # noqa: B039
    register_configure_hook(watcher, inheritable=False)


def is_inside() -> bool:
    """Say whether a tool is running that has called this code."""
    return _unfinished() is not None


def _unfinished() -> _Run | None:
    run = _NEWEST.get()
    while run is not None and run.over:
        run = run.outer
    return run
