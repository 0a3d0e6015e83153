"""Chat history: for chains that still take `get_session_history=`.

LangChain itself points to middleware by now. This keeps older code going on the same conversations.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from langchain_memoranda.messages import all_from_memoranda, from_memoranda, to_memoranda
from memoranda.conversations import Conversation
from memoranda.messages import Message
from memoranda.messages.drafts import overlap
from memoranda.persona import Persona


class MemoryChatHistory(BaseChatMessageHistory):
    """One session's messages, lossless and in the order of the database; sync and async on one object.

    An instance shows what was there when it was first read, and what it has added itself: a turn that runs at the same
    time in another instance never shifts what this one reads. Make a new instance for each turn, as in the example: it
    sees what others have added, and two turns at the same time on one instance would share what they read.

    Args:
        persona: Whose conversation it is.
        session_id: The conversation's name: any text.

    Example:
        `RunnableWithMessageHistory(chain, lambda session_id: MemoryChatHistory(me, session_id))`
    """

    def __init__(self, persona: Persona, session_id: str) -> None:
        self._conversation: Conversation = persona.conversation(session_id)
        self._seen_to: int | None = None
        self._own: set[int] = set()

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages; setting them replaces those that are not folded, and folded ones at the beginning stay so."""
        return self._shown(self._conversation.messages())

    @messages.setter
    def messages(self, messages: Sequence[BaseMessage]) -> None:
        stored = self._conversation.messages()
        left = self._conversation.reconcile(_unfolded(messages, stored))
        self._seen_to, self._own = _last([*stored, *left]), set()

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages."""
        return self._shown(await self._conversation.amessages())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end."""
        self._keep_mark(self._conversation.append(_as_new(messages)))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end."""
        self._keep_mark(await self._conversation.aappend(_as_new(messages)))

    def clear(self) -> None:
        """Remove the messages; what was remembered of them stays."""
        self._conversation.clear()
        self._seen_to, self._own = None, set()

    async def aclear(self) -> None:
        """Remove the messages; what was remembered of them stays."""
        await self._conversation.aclear()
        self._seen_to, self._own = None, set()

    def _shown(self, stored: Sequence[Message]) -> list[BaseMessage]:
        if self._seen_to is None:
            self._seen_to = _last(stored)
        mark = self._seen_to
        return all_from_memoranda(m for m in stored if (m.position or 0) <= mark or m.position in self._own)

    def _keep_mark(self, stored: Sequence[Message]) -> None:
        self._own.update(message.position for message in stored if message.position is not None)


def _last(stored: Sequence[Message]) -> int:
    return max((message.position or 0 for message in stored), default=0)


def _unfolded(messages: Sequence[BaseMessage], stored: Sequence[Message]) -> list[Message]:
    """Return messages that are set, without the folded ones at their beginning; those that stand keep their ids."""
    folded_to = max((place for place, message in enumerate(stored, 1) if message.folded), default=0)
    before = all_from_memoranda(stored[:folded_to])
    count = overlap(before, messages)
    ahead = zip(messages[:count], stored[folded_to - count : folded_to], strict=True)
    left = [*(given for given, one in ahead if not one.folded), *messages[count:]]
    new = _as_new(left)
    for place, one in enumerate([one for one in stored if not one.folded][: len(left)]):
        if from_memoranda(one) != left[place]:
            break
        new[place] = one
    return new


def _as_new(messages: Sequence[BaseMessage]) -> list[Message]:
    """Return messages that are never taken for what was said before: whoever adds one twice has two."""
    return [replace(to_memoranda(message), id=f"history-{uuid4().hex}") for message in messages]
