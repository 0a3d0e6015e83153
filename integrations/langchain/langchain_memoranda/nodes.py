"""The same for a hand-written graph: what a node calls to show, to record and to save."""

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import BaseMessage, SystemMessage

from langchain_memoranda.messages import all_to_memoranda, said
from memoranda.conversations import Conversation
from memoranda.messages import Message, Prompt
from memoranda.reports import Flushed


def block(conversation: Conversation, *, text: str = "", instructions: bool = True) -> SystemMessage | None:
    """Return what is remembered as a system message to put behind one's own; None when there is nothing.

    Args:
        conversation: Whose block.
        text: What the turn is about, where the policy shows what it brings up.
        instructions: Whether the engine's guidance on what to save and where is part of it.
    """
    return _message(conversation.prompt(text), instructions)


async def ablock(conversation: Conversation, *, text: str = "", instructions: bool = True) -> SystemMessage | None:
    """Async twin of `block`."""
    return _message(await conversation.aprompt(text), instructions)


def record(conversation: Conversation, messages: Sequence[BaseMessage]) -> None:
    """Keep messages, each once, and note which of the conversation's are not among them any more.

    Only of those with an id is it noted, as a graph's state gives one to each message.
    """
    conversation.out_of_sight(_ids(conversation.append(all_to_memoranda(said(messages)), new_ids=True)))


async def arecord(conversation: Conversation, messages: Sequence[BaseMessage]) -> None:
    """Async twin of `record`."""
    await conversation.aout_of_sight(_ids(await conversation.aappend(all_to_memoranda(said(messages)), new_ids=True)))


def flush(conversation: Conversation) -> Flushed:
    """Save now what the messages that are out of sight hold of value; once they are many a job does it anyway."""
    return conversation.flush()


async def aflush(conversation: Conversation) -> Flushed:
    """Async twin of `flush`."""
    return await conversation.aflush()


def _ids(stored: Sequence[Message]) -> list[str]:
    return [message.id for message in stored if message.id]


def _message(prompt: Prompt, instructions: bool) -> SystemMessage | None:
    # The state's messages are the conversation here, a summary of them included.
    shown = replace(prompt, summary="", instructions=prompt.instructions if instructions else "")
    parts = [{"type": "text", "text": part} for part in (*shown.ahead, *shown.behind)]
    return SystemMessage(content_blocks=parts) if parts else None  # type: ignore[arg-type]
