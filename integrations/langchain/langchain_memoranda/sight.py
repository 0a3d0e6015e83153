"""Which messages a model really got, whatever middleware stood between."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook


class Sight(BaseCallbackHandler):
    """Keeps what chat models were shown, and which of them made the answer."""

    run_inline = True

    def __init__(self) -> None:
        self._shown: dict[UUID, Sequence[BaseMessage]] = {}
        self._asked: dict[str, UUID] = {}

    @property
    def ignore_chain(self) -> bool:
        """Not told of chains."""
        return True

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note what a model is shown."""
        self._shown[run_id] = [message for batch in messages for message in batch]

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Note what it answered."""
        made = (getattr(one, "message", None) for batch in response.generations for one in batch)
        self._asked |= {message.id: run_id for message in made if message is not None and message.id}

    def of(self, messages: Sequence[BaseMessage], answer: Sequence[BaseMessage] = ()) -> Sequence[BaseMessage]:
        """Return which of the messages were shown; all where that is not known. One without its id is told by words.

        Args:
            messages: What there was to be shown.
            answer: What came of it: another model may have been asked before, or what it thinks of it. Where it is not
                known who said it, the last one asked did.
        """
        made = [run for message in answer if message.id and (run := self._asked.get(message.id)) in self._shown]
        runs = made or list(self._shown)[-1:]
        if not runs:
            return messages
        shown = self._shown[runs[0]]
        ids = {message.id for message in uncleared(shown, messages) if message.id}
        words = {(message.type, str(message.text)) for message in shown if not message.id}
        return [m for m in messages if m.id in ids or (m.type, str(m.text)) in words]


def uncleared(shown: Iterable[BaseMessage], said: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return what is shown, without results of tools of whose text something was taken away."""
    texts = {message.id: str(message.text) for message in said if message.type == "tool"}
    return [m for m in shown if not m.id or texts.get(m.id, "") in str(m.text)]


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
