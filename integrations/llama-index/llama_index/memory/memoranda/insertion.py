"""What is remembered among the messages: put in where a model is shown it, taken out of a history that comes back."""

from typing import Any, Literal, TypeAlias, TypeGuard

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock

from memoranda.prompts.material import unfenced

Method: TypeAlias = Literal["system", "user", "merged", "none"]
"""Where it goes; see `MemorandaMemory`."""

_FENCE = "<memoranda-"


def inserted(shown: list[ChatMessage], method: Method, *, stable: str, fresh: str, is_there: bool) -> list[ChatMessage]:
    """Return messages with what is remembered among them; those that it is written into are changed.

    Args:
        shown: The messages of a window.
        method: Where it goes.
        stable: What is the same in many turns.
        fresh: What is of this turn.
        is_there: Whether the user's newest message is the one that the turn is about.
    """
    if method == "none":
        return shown
    if fresh:
        shown = _on_newest(shown, fresh, is_there)
    if method == "merged":
        return _merged(shown, stable)
    if not stable:
        return shown
    return _on_first(shown, stable) if method == "user" else [_system([TextBlock(text=stable)]), *shown]


def own_words(message: ChatMessage) -> ChatMessage | None:
    """Return a message without what was put into it; None where nothing is left."""
    if message.role not in (MessageRole.SYSTEM, MessageRole.USER) or not any(map(_is_fenced, message.blocks)):
        return message
    blocks: list[Any] = []
    for block in message.blocks:
        if not _is_fenced(block):
            blocks.append(block)
        elif left := unfenced(block.text).strip():
            blocks.append(TextBlock(text=left))
    return message.model_copy(update={"blocks": blocks}) if blocks else None


def _is_fenced(block: object) -> TypeGuard[TextBlock]:
    return isinstance(block, TextBlock) and _FENCE in block.text


def _on_first(shown: list[ChatMessage], text: str) -> list[ChatMessage]:
    """Return messages with a text in front of the first one of the user's."""
    place = next((i for i, message in enumerate(shown) if message.role == MessageRole.USER), None)
    if place is None:
        return [*shown, _user(text)]
    shown[place].blocks = [TextBlock(text=text), *shown[place].blocks]
    return shown


def _on_newest(shown: list[ChatMessage], text: str, is_there: bool) -> list[ChatMessage]:
    """Return messages with a text in front of the user's newest, or at the end where the newest is still to come.

    An agent with a state writes it into the last text of the newest message, which has to be the user's own.
    """
    place = next((i for i in reversed(range(len(shown))) if shown[i].role == MessageRole.USER), None)
    if place is None or not is_there:
        return [*shown, _user(text)]
    shown[place].blocks = [TextBlock(text=text), *shown[place].blocks]
    return shown


def _merged(shown: list[ChatMessage], text: str) -> list[ChatMessage]:
    """Return messages with one system message: the conversation's own, then a text."""
    blocks = [block for message in shown if message.role == MessageRole.SYSTEM for block in message.blocks]
    blocks += [TextBlock(text=text)] if text else []
    others = [message for message in shown if message.role != MessageRole.SYSTEM]
    return [_system(blocks), *others] if blocks else others


def _system(blocks: list[Any]) -> ChatMessage:
    return ChatMessage(role=MessageRole.SYSTEM, blocks=blocks)


def _user(text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text=text)])
