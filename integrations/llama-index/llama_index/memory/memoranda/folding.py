"""When the messages of a conversation are folded: by one at a time, and not at once again where the model has failed.

It is known to the process, whichever object speaks for the conversation, and lost with it: that costs a call too many.
"""

from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

from memoranda.conversations import Conversation
from memoranda.effects import Runner

_Key: TypeAlias = tuple[str, str, str | None, str]


@dataclass
class _Folds:
    """The conversations of one engine that are being folded, and those whose model has failed."""

    running: set[_Key] = field(default_factory=set)
    failed: dict[_Key, range] = field(default_factory=dict)
    """The sizes, in tokens, at which nobody asks again."""


_lock = Lock()
_folds: WeakKeyDictionary[Runner, _Folds] = WeakKeyDictionary()


def begins(chat: Conversation, size: int, budget: int) -> bool:
    """Say whether messages are to be folded now; then nobody else begins until `ended` is called.

    Args:
        chat: Whose messages.
        size: How many tokens they have.
        budget: How many they may have.
    """
    with _lock:
        folds, key = _folds.setdefault(chat._runner, _Folds()), _key(chat)
        if size <= budget or key in folds.running or size in folds.failed.get(key, ()):
            return False
        folds.running.add(key)
        return True


def ended(chat: Conversation, *, failed: range | None = None) -> None:
    """Let others begin; at none of the sizes that are given where the model has failed."""
    with _lock:
        folds, key = _folds[chat._runner], _key(chat)
        folds.running.discard(key)
        folds.failed.pop(key, None)
        if failed is not None:
            folds.failed[key] = failed


def _key(chat: Conversation) -> _Key:
    return chat.scope.tenant, chat.scope.persona, chat.scope.user, chat.name
