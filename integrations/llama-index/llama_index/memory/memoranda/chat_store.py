"""Chat stores: for the stock `Memory`, from LlamaIndex 0.14.24 on, and for the older buffers.

A key is the name of a conversation of the persona's. Archived messages are folded ones: kept, readable, searchable and
pending for extraction.
"""

from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from pydantic import ConfigDict, Field

from llama_index.memory.memoranda.messages import all_from_memoranda, as_stored, new_to_memoranda
from memoranda.messages import Message
from memoranda.persona import Persona


class MemorandaChatStore(AsyncDBChatStore):
    """The store of `Memory.from_defaults(chat_store=...)`, which takes one from LlamaIndex 0.14.24 on.

    Messages are in the order of the database, a batch is one transaction, and an empty one is no error. `idx` is a
    message's position in its conversation, as `persona.conversation(key).messages()` says it, not its place in a list.

    Example:
        `Memory.from_defaults(session_id="thread-1", chat_store=MemorandaChatStore(persona=me))`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persona: Persona = Field(exclude=True, repr=False)
    """Whose conversations they are."""

    @classmethod
    def class_name(cls) -> str:
        """Return the class name."""
        return "MemorandaChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages of a key with a status; with any where it is None."""
        found = await self._stored(key, status)
        start = offset or 0
        return all_from_memoranda(found[start : None if limit is None else start + limit])

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """Return how many messages a key has with a status."""
        return len(await self._stored(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Add a message at the end."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Add messages at the end, all or none."""
        chat = self.persona.conversation(key)
        stored = await chat.aappend(new_to_memoranda(messages))
        if status is MessageStatus.ARCHIVED:
            await chat.aarchive(stored)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Make these the active messages, in one transaction; archived ones stay."""
        chat = self.persona.conversation(key)
        stored = await chat.areconcile(as_stored(messages, await chat.amessages(folded=False)))
        if status is MessageStatus.ARCHIVED:
            await chat.aarchive(stored)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message at a position, and return it."""
        removed = await self.persona.conversation(key).aremove([idx])
        return all_from_memoranda(removed)[0] if removed else None

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of a key with a status; all of them, and the summary, where it is None."""
        chat = self.persona.conversation(key)
        if status is None:
            await chat.aclear()
        else:
            await chat.aremove(await self._stored(key, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the oldest active messages, and return them."""
        oldest = (await self._stored(key, MessageStatus.ACTIVE))[: max(0, n)]
        return all_from_memoranda(await self.persona.conversation(key).aremove(oldest))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and return them: of two who archive the same ones, one gets them."""
        oldest = (await self._stored(key, MessageStatus.ACTIVE))[: max(0, n)]
        return all_from_memoranda(await self.persona.conversation(key).aarchive(oldest))

    async def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        return await self.persona.conversations.anames()

    async def _stored(self, key: str, status: MessageStatus | None) -> Sequence[Message]:
        chat = self.persona.conversation(key)
        found = await chat.amessages(folded=status is not MessageStatus.ACTIVE)
        return [message for message in found if message.folded] if status is MessageStatus.ARCHIVED else found


class MemorandaSyncChatStore(BaseChatStore):
    """The store of `ChatMemoryBuffer` and its kin; `idx` is a message's place in the list, from 0."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persona: Persona = Field(exclude=True, repr=False)
    """Whose conversations they are."""

    @classmethod
    def class_name(cls) -> str:
        """Return the class name."""
        return "MemorandaSyncChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Make these the messages of a key, in one transaction."""
        chat = self.persona.conversation(key)
        chat.reconcile(as_stored(messages, chat.messages(folded=False)))

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Async twin of `set_messages`."""
        chat = self.persona.conversation(key)
        await chat.areconcile(as_stored(messages, await chat.amessages(folded=False)))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a key."""
        return all_from_memoranda(self.persona.conversation(key).messages(folded=False))

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """Async twin of `get_messages`."""
        return all_from_memoranda(await self.persona.conversation(key).amessages(folded=False))

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Add a message at the end."""
        self.persona.conversation(key).append(new_to_memoranda([message]))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """Async twin of `add_message`."""
        await self.persona.conversation(key).aappend(new_to_memoranda([message]))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete the messages of a key, and return them; None when there were none."""
        chat = self.persona.conversation(key)
        return all_from_memoranda(chat.remove(chat.messages(folded=False))) or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message at a place in the list, and return it; None when there is none."""
        chat = self.persona.conversation(key)
        there = chat.messages(folded=False)
        if not -len(there) <= idx < len(there):
            return None
        removed = chat.remove([there[idx]])
        return all_from_memoranda(removed)[0] if removed else None

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the newest message, and return it; None when there is none."""
        return self.delete_message(key, -1)

    def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        return self.persona.conversations.names()
