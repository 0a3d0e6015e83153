"""Memory blocks, for those who keep LlamaIndex's own `Memory`.

One block serves any number of sessions: what it shows is asked of the session's own conversation each time. A block
never fails a turn; where the store cannot be reached it is empty, and a warning is logged.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer
from pydantic import ConfigDict, Field

from llama_index.memory.memoranda.messages import to_memoranda
from memoranda import fencing
from memoranda.errors import MemorandaError
from memoranda.messages import Message
from memoranda.messages.forms import digest
from memoranda.persona import Persona

_log = logging.getLogger("memoranda.llama_index")
_SESSION = "session_id"
_ALONE = "llama-index"  # the conversation of a block that nobody names a session to
_BETWEEN = re.compile(r"\n\n(?=<memoranda-)")


class _PersonaBlock(BaseMemoryBlock[str]):
    """Asks a persona; subclasses say for what."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persona: Persona = Field(exclude=True, repr=False)
    """Whose memory is shown."""

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        try:
            return await self._text(messages or [], block_kwargs.get(_SESSION) or _ALONE)
        except MemorandaError as error:
            _log.warning("a turn goes on without the block %s: %s", self.name, error)
            return ""

    async def _text(self, messages: Sequence[ChatMessage], session: str) -> str:
        raise NotImplementedError

    async def _aput(self, messages: list[ChatMessage]) -> None:
        return None

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the text without the lines that matter least; None when nothing would be left.

        The last of the memories go first, those of the user model when no memory is left. Tokens are counted as
        LlamaIndex does by default.
        """
        count = get_tokenizer()
        parts = _BETWEEN.split(content) if content else []
        wanted = len(count(content)) - tokens_to_truncate if parts else 0
        while parts and len(count("\n\n".join(parts))) > wanted:
            shorter = _without_last_line(parts[0])
            parts[:1] = [shorter] if shorter else []
        return "\n\n".join(parts) or None


class MemoryBlock(_PersonaBlock):
    """What is known of the user and the most valuable memories, frozen for each session.

    What leaves the history is kept in the persona's conversation of that session, once, and memories are extracted from
    it in the background. Where that conversation is the history itself, as under `MemorandaChatStore`, it is there.
    """

    name: str = "memory"
    priority: int = 0

    async def _text(self, messages: Sequence[ChatMessage], session: str) -> str:
        prompt = await self.persona.conversation(session).aprompt("")
        return "\n\n".join(part for part in (prompt.system, prompt.user_model) if part)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str, list[ChatMessage]] = {}
        for message in messages:
            kwargs = dict(message.additional_kwargs)
            session = kwargs.pop(_SESSION, None) or _ALONE
            by_session.setdefault(session, []).append(message.model_copy(update={"additional_kwargs": kwargs}))
        try:
            for session, said in by_session.items():
                chat = self.persona.conversation(session)
                batch = _known(said)
                if not _is_archived(batch, await chat.amessages()):
                    await chat.apending(await chat.aappend(batch))
        except MemorandaError as error:
            _log.warning("messages that left the history were not kept: %s", error)


class RecallBlock(_PersonaBlock):
    """What the newest user message brings up, within the floor: made for `InsertMethod.USER`."""

    name: str = "recall"
    priority: int = 1
    accept_short_term_memory: bool = False
    limit: int | None = None
    """How many hits at most; the preset's own number when left out."""

    async def _text(self, messages: Sequence[ChatMessage], session: str) -> str:
        said = next((m.content for m in reversed(messages) if m.role == MessageRole.USER and m.content), None)
        if not said:
            return ""
        found = await self.persona.arecall(said, limit=self.limit)
        lines = "\n".join(f"- {hit}" for hit in found if not _reads_like_an_order(hit))
        if not lines:
            return ""
        nonce = fencing.steady_nonce("recall", lines)
        return fencing.without_braces(fencing.fence("recall", lines, nonce=nonce))


def _without_last_line(block: str) -> str:
    """Return a fenced block without its last line; empty when nothing is left that is remembered."""
    *body, _, tail = block.split("\n")
    return "\n".join([*body, tail]) if any(line.startswith("- ") for line in body) else ""


def _reads_like_an_order(hit: Any) -> bool:
    return bool(getattr(getattr(hit, "memory", None), "suspicions", ()))


def _is_archived(batch: Sequence[Message], stored: Sequence[Message]) -> bool:
    said, folded = ([digest(m) for m in messages] for messages in (batch, (m for m in stored if m.folded)))
    return any(folded[place : place + len(said)] == said for place in range(len(folded) - len(said) + 1))


def _known(messages: Sequence[ChatMessage]) -> list[Message]:
    """Return messages under ids made of the batch and the place in it: a batch that comes again is the same one."""
    said = [to_memoranda(message) for message in messages]
    batch = sha256("".join(map(digest, said)).encode()).hexdigest()[:32]
    return [replace(message, id=f"block-{batch}-{place}") for place, message in enumerate(said)]
