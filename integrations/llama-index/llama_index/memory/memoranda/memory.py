"""The drop-in `memory=` of agents, workflows and chat engines: every message kept, a window shown, nothing lost."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Self
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.types import BaseMemory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.utils import get_tokenizer
from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from llama_index.memory.memoranda import folding, histories
from llama_index.memory.memoranda.attachment import default_persona, described, restored
from llama_index.memory.memoranda.insertion import Method, inserted
from llama_index.memory.memoranda.messages import all_from_memoranda, new_to_memoranda, whole
from memoranda import tokens
from memoranda.conversations import Conversation
from memoranda.errors import MemorandaError
from memoranda.messages import Message, Prompt, windowing
from memoranda.persona import Persona
from memoranda.policies import CompactionPolicy
from memoranda.reports import Flushed

_log = logging.getLogger("memoranda.llama_index")
_SCALE = 0.8  # to begin with: the engine's estimate counts up to a third more tokens than a tokenizer does
_COUNTED = 20_000  # messages whose tokens are kept at hand


class MemorandaMemory(BaseMemory):
    """Long-term memory of an agent or a chat engine, in place of `Memory` or `ChatMemoryBuffer`.

    Every message is stored at once, in order and whole. A model is shown what is remembered, frozen for the
    conversation so that a provider's cache keeps it, the summary, and the newest messages that fit. When the messages
    outgrow `token_limit * chat_history_token_ratio`, the oldest are looked through for what is worth remembering and
    then summed up; a model that fails costs neither the turn nor a message.

    Nothing but a handle is kept here: another object of the same persona and session is the same memory, in threads,
    event loops and processes alike.

    Args:
        persona: Whose memory it is, such as `engine.persona("main", user="ana")`.
        session_id: The conversation's name; a new one when left out.
        token_limit: Tokens of everything `get` returns; what is remembered, which keeps to `PromptPolicy.budget`, and
            the newest message of the user's are there even where they alone have more.
        chat_history_token_ratio: The share of it from which on messages are summed up.
        insert_method: Where what is remembered goes: `system`, a system message of its own in front; `user`, on the
            first user message that is shown, and what is fresh on the newest; `merged`, into one system message with
            the conversation's own; `none`, for those who put `snapshot()` into a system prompt.
        tokenizer_fn: Counts tokens, by default as LlamaIndex does.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persona: Persona = Field(exclude=True, repr=False)
    session_id: str = Field(default_factory=lambda: str(uuid4()))
    token_limit: int = Field(default=30_000, ge=1)
    chat_history_token_ratio: float = Field(default=0.7, gt=0, le=1)
    insert_method: Method = "system"
    tokenizer_fn: Callable[[str], Sequence[Any]] = Field(default_factory=get_tokenizer, exclude=True, repr=False)

    _lock: Any = PrivateAttr(default_factory=Lock)
    _counts: OrderedDict[Any, int] = PrivateAttr(default_factory=OrderedDict)
    _turn: tuple[Any, str] = PrivateAttr(default=(None, ""))
    _scale: float = PrivateAttr(default=_SCALE)  # tokens by the tokenizer, for one by the engine's estimate

    @field_validator("insert_method", mode="before")
    @classmethod
    def _plain_method(cls, value: Any) -> Any:
        return getattr(value, "value", value)

    @classmethod
    def class_name(cls) -> str:
        """Return the class name."""
        return "MemorandaMemory"

    @classmethod
    def from_defaults(
        cls,
        persona: Persona | None = None,
        session_id: str | None = None,
        chat_history: list[ChatMessage] | None = None,
        token_limit: int | None = None,
        tokenizer_fn: Callable[[str], Sequence[Any]] | None = None,
        **options: Any,
    ) -> Self:
        """Return a memory; arguments of the stock classes that have no meaning here are ignored.

        Args:
            persona: Whose memory; when left out that of the engine attached as `default`, see `attach`.
            session_id: The conversation's name; a new one when left out.
            chat_history: What the conversation is to hold.
            token_limit: Tokens of everything `get` returns.
            tokenizer_fn: Counts tokens.
            **options: `chat_history_token_ratio` and `insert_method`.
        """
        given = {"session_id": session_id, "token_limit": token_limit, "tokenizer_fn": tokenizer_fn}
        given |= {name: options.get(name) for name in ("chat_history_token_ratio", "insert_method")}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        memory = cls(persona=persona if persona is not None else default_persona(), **chosen)
        if chat_history:
            memory.set(chat_history)
        return memory

    @property
    def conversation(self) -> Conversation:
        """The engine's own handle: messages with their positions, `remove`, `compact`, `record` and the rest."""
        return self.persona.conversation(self.session_id)

    # -- out

    def get(self, input: str | ChatMessage | None = None, **kwargs: Any) -> list[ChatMessage]:
        """Return what a model is to be shown: what is remembered, and the newest messages that fit."""
        chat = self.conversation
        stored = chat.window(self._asked_tokens)
        text, key, cached = self._topic(input, stored)
        prompt = self._with_turn(chat.prompt("" if cached else text), key, cached)
        return self._shown(prompt, stored, text, kwargs)

    async def aget(self, input: str | ChatMessage | None = None, **kwargs: Any) -> list[ChatMessage]:
        """Async twin of `get`."""
        chat = self.conversation
        stored = await chat.awindow(self._asked_tokens)
        text, key, cached = self._topic(input, stored)
        prompt = self._with_turn(await chat.aprompt("" if cached else text), key, cached)
        return self._shown(prompt, stored, text, kwargs)

    def get_all(self, status: MessageStatus | None = None) -> list[ChatMessage]:
        """Return the messages of the conversation: those that a summary speaks for are the archived ones.

        Args:
            status: Active or archived ones only; all of them when left out.
        """
        return all_from_memoranda(_of_status(self.conversation.messages(), status))

    async def aget_all(self, status: MessageStatus | None = None) -> list[ChatMessage]:
        """Async twin of `get_all`."""
        return all_from_memoranda(_of_status(await self.conversation.amessages(), status))

    def snapshot(self) -> str:
        """Return the frozen block, to be put into a system prompt where `insert_method` is `none`."""
        return self.conversation.system_block()

    async def asnapshot(self) -> str:
        """Async twin of `snapshot`."""
        return await self.conversation.asystem_block()

    # -- in

    def put(self, message: ChatMessage) -> None:
        """Store a message."""
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """Async twin of `put`."""
        await self.aput_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Store messages in one transaction; then count the turn, and sum up what has outgrown the window."""
        chat = self.conversation
        stored = chat.append(new_to_memoranda(messages))
        try:
            if _ends_turn(stored):
                chat.turn_done()
            if stored and folding.begins(chat, chat.size(), self._budget):
                failed = None
                try:
                    if chat.compact(self._policy()).problem:
                        failed = self._not_again_at(chat.size())
                finally:
                    folding.ended(chat, failed=failed)
        except MemorandaError as error:
            _told(error)

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Async twin of `put_messages`."""
        chat = self.conversation
        stored = await chat.aappend(new_to_memoranda(messages))
        try:
            if _ends_turn(stored):
                await chat.aturn_done()
            if stored and folding.begins(chat, await chat.asize(), self._budget):
                failed = None
                try:
                    if (await chat.acompact(self._policy())).problem:
                        failed = self._not_again_at(await chat.asize())
                finally:
                    folding.ended(chat, failed=failed)
        except MemorandaError as error:
            _told(error)

    def set(self, messages: list[ChatMessage]) -> None:
        """Make these the messages: what agrees with the beginning stays, and so does all that was remembered.

        A history that begins with a window, as `get` returns one, archives what was out of it.
        """
        chat, said = self.conversation, histories.given(messages)
        stored = chat.messages()
        if unseen := histories.out_of_window(said, stored):
            chat.archive(unseen)
            stored = chat.messages()
        chat.reconcile(histories.reconcilable(said, stored))

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Async twin of `set`."""
        chat, said = self.conversation, histories.given(messages)
        stored = await chat.amessages()
        if unseen := histories.out_of_window(said, stored):
            await chat.aarchive(unseen)
            stored = await chat.amessages()
        await chat.areconcile(histories.reconcilable(said, stored))

    def reset(self, status: MessageStatus | None = None) -> None:
        """Remove the messages, the summary and the frozen block; what was remembered stays.

        Args:
            status: Removes active or archived messages only, and nothing else.
        """
        chat = self.conversation
        if status is None:
            chat.clear()
        else:
            chat.remove(_of_status(chat.messages(), status))

    async def areset(self, status: MessageStatus | None = None) -> None:
        """Async twin of `reset`."""
        chat = self.conversation
        if status is None:
            await chat.aclear()
        else:
            await chat.aremove(_of_status(await chat.amessages(), status))

    # -- saving

    def flush(self) -> Flushed:
        """Extract memories from what was said and not looked through yet, with one call of the model.

        What is more than one call reads stays pending: `conversation.record().pending` says how much, another call of
        this or the engine's background worker goes on with it.
        """
        chat = self.conversation
        chat.pending(chat.messages())
        return chat.flush()

    async def aflush(self) -> Flushed:
        """Async twin of `flush`."""
        chat = self.conversation
        await chat.apending(await chat.amessages())
        return await chat.aflush()

    def end_session(self) -> bool:
        """Leave the same to the engine's background worker; True when there was something."""
        chat = self.conversation
        chat.pending(chat.messages())
        return chat.end_session()

    async def aend_session(self) -> bool:
        """Async twin of `end_session`."""
        chat = self.conversation
        await chat.apending(await chat.amessages())
        return await chat.aend_session()

    # -- across processes

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return what it takes to find this memory again: names and options, no message and no secret."""
        return {**super().to_dict(**kwargs), **described(self.persona)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Return the memory that was described.

        Raises:
            ConfigurationError: no engine is attached under its name; see `attach`.
        """
        options = {name: value for name, value in {**data, **kwargs}.items() if name not in _NAMES}
        return cls(persona=options.pop("persona", None) or restored(data), **options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as a handle."""
        return type(self).from_dict, (self.to_dict(),)

    def __deepcopy__(self, memo: Any = None) -> Self:
        """Return another handle of the same memory."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields})

    # -- the window

    @property
    def _asked_tokens(self) -> int:
        # By the engine's estimate, and a fifth more: the next messages may be shorter than these.
        return int(1.2 * self.token_limit / self._scale)

    def _topic(self, input: str | ChatMessage | None, stored: Sequence[Message]) -> tuple[str, Any, bool]:
        """Return what the turn is about, what tells the turn apart, and whether its recall is at hand."""
        newest = next((message for message in reversed(stored) if message.role == "user"), None)
        said = input.content or "" if isinstance(input, ChatMessage) else input
        text = said if said else newest.text if newest else ""
        key = (self.persona.scope, self.session_id, text, newest.position if newest else 0)
        with self._lock:
            return text, key, self._turn[0] == key

    def _with_turn(self, prompt: Prompt, key: Any, cached: bool) -> Prompt:
        with self._lock:
            if cached and self._turn[0] == key:
                return replace(prompt, turn=self._turn[1])
            self._turn = (key, prompt.turn)
            return prompt

    def _shown(
        self, prompt: Prompt, stored: Sequence[Message], text: str, options: dict[str, Any]
    ) -> list[ChatMessage]:
        late = prompt.user_model if prompt.user_model_last or self.insert_method == "user" else ""
        stable = _joined([prompt.system, prompt.summary, "" if late else prompt.user_model])
        fresh = _joined([late, prompt.turn])
        if self.insert_method == "none":
            stable = fresh = ""  # and take no room
        taken = options.get("initial_token_count") or 0
        room = self.token_limit - taken - self._count(stable) - self._count(fresh)
        sizes = self._sizes(stored)
        estimated = sum(m.tokens or 0 for m in stored)
        self._scale = sum(sizes.values()) / estimated if estimated else _SCALE
        window = windowing.window(stored, max(1, room), lambda message: sizes[message.position])
        said = next((message.text for message in reversed(window) if message.role == "user"), None)
        shown = all_from_memoranda(window)
        return inserted(shown, self.insert_method, stable=stable, fresh=fresh, is_there=said == text)

    def _count(self, text: str) -> int:
        return len(self.tokenizer_fn(text)) if text else 0

    def _sizes(self, stored: Sequence[Message]) -> dict[int | None, int]:
        """Return the tokens of stored messages by their positions, counted once for as long as they say the same."""
        sizes: dict[int | None, int] = {}
        with self._lock:
            for message in stored:
                key = (self.session_id, message.position, message.tokens)
                if (size := self._counts.get(key)) is None:
                    size = self._counts[key] = tokens.of_message(whole(message), self._count)
                sizes[message.position] = size
            while len(self._counts) > _COUNTED:
                self._counts.popitem(last=False)
        return sizes

    # -- folding

    @property
    def _budget(self) -> int:
        # By the engine's estimate, which knows nothing of a tokenizer, nor of the thoughts of a trace.
        return int(self.token_limit * self.chat_history_token_ratio / max(1.0, self._scale))

    def _policy(self) -> CompactionPolicy:
        policy = self.persona._context.policies.compaction
        return replace(policy, keep_tokens=min(policy.keep_tokens, self._budget // 2))

    def _not_again_at(self, size: int) -> range:
        # A model that failed is not asked again before a tenth more was said.
        return range(size, size + self._budget // 10 + 1)


_NAMES = ("class_name", "engine", "scope")


def _told(error: MemorandaError) -> None:
    _log.warning("the messages are stored; what comes after failed: %s", error)


def _of_status(messages: list[Message], status: MessageStatus | None) -> list[Message]:
    return messages if status is None else [m for m in messages if m.folded is (status is MessageStatus.ARCHIVED)]


def _ends_turn(stored: Sequence[Message]) -> bool:
    return bool(stored) and stored[-1].role == "assistant" and not stored[-1].tool_calls


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)
