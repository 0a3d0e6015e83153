"""Which messages a model really got, whatever middleware stood between."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.tracers.context import register_configure_hook


class Sight(BaseCallbackHandler):
    """Keeps what the last call of a chat model was shown: of several the last one made the answer."""

    run_inline = True

    def __init__(self) -> None:
        self._shown: Sequence[BaseMessage] | None = None

    @property
    def ignore_llm(self) -> bool:
        """Not told of tokens."""
        return True

    @property
    def ignore_chain(self) -> bool:
        """Not told of chains."""
        return True

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        """Note what a model is shown."""
        self._shown = [message for batch in messages for message in batch]

    def of(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Return which of the messages were shown; all where that is not known. One without its id is told by words."""
        if self._shown is None:
            return messages
        ids = {message.id for message in self._shown if message.id}
        words = {(message.type, str(message.text)) for message in self._shown if not message.id}
        return [m for m in messages if m.id in ids or (m.type, str(m.text)) in words]


@contextmanager
def watching() -> Iterator[Sight]:
    """Watch the calls of chat models that are made inside."""
    watcher = _watcher()
    token = watcher.set(sight := Sight())
    try:
        yield sight
    finally:
        watcher.reset(token)


@cache
def _watcher() -> ContextVar[Any]:
    """Return the variable that holds who watches, of which LangChain is told once in a process."""
    watcher: ContextVar[Any] = ContextVar("langchain_memoranda_sight", default=None)
    register_configure_hook(watcher, inheritable=True)
    return watcher
