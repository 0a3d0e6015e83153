"""A history that is set: what of it is stored already, and what it leaves out because it was out of the window."""

from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage

from llama_index.memory.memoranda.insertion import own_words
from llama_index.memory.memoranda.messages import as_stored, to_memoranda
from memoranda.messages import Message
from memoranda.messages.drafts import overlap
from memoranda.messages.forms import digest


def given(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a history without what `get` has put in."""
    return [message for message in map(own_words, messages) if message is not None]


def out_of_window(said: Sequence[ChatMessage], stored: Sequence[Message]) -> list[Message]:
    """Return the messages before a window, where a history begins with one: who sets it may have seen no others.

    System messages are in every window.
    """
    there = [message for message in stored if not message.folded and message.role != "system"]
    old = [digest(message) for message in there]
    new = [digest(message) for message in map(to_memoranda, said) if message.role != "system"]
    if not new or old[:1] == new[:1] or _begins(said, stored):
        return []
    shown = overlap(old, new)
    return there[:-shown] if shown else []


def reconcilable(said: Sequence[ChatMessage], stored: Sequence[Message]) -> list[Message]:
    """Return a history as what follows the folded messages: as it is stored where it says the same.

    Where it begins with the folded messages, they are left where they are.
    """
    if not _begins(said, stored):
        return as_stored(said, [message for message in stored if not message.folded])
    folded = _folded(stored)
    system = [message for message in stored[:folded] if not message.folded]
    return [*system, *as_stored(said, stored)[folded:]]


def _begins(said: Sequence[ChatMessage], stored: Sequence[Message]) -> bool:
    """Say whether a history begins with the folded messages."""
    folded = _folded(stored)
    beginning = [digest(to_memoranda(message)) for message in said[:folded]]
    return bool(folded) and beginning == [digest(message) for message in stored[:folded]]


def _folded(stored: Sequence[Message]) -> int:
    return max((place + 1 for place, message in enumerate(stored) if message.folded), default=0)
