"""LangChain's messages as Memoranda keeps them, and back.

What LangChain itself would store of a message travels along as its payload, so that nothing is lost on the way back;
the neutral fields beside it are what another framework reads.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from langchain_core.messages import ToolCall as LangChainToolCall

from memoranda import metadata
from memoranda.errors import InvalidInput
from memoranda.messages import Message, Role, ToolCall

CODEC = "langchain"
"""The name under which payloads of this form are stored."""

_ROLES: Mapping[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant", "ai": "assistant"}
_DEPTH = 90
"""How deep a value is kept as it is; the engine takes a hundred levels, the message's own among them."""
_BITS = 10_000
"""How long a whole number is kept as one; beyond about 14,000 Python reads none back from text."""
_SUMMARY = "lc_source"


def to_memoranda(message: BaseMessage) -> Message:
    """Return a message as Memoranda keeps it."""
    return Message(
        role=_role(message),
        content=_content(message.content),
        id=message.id,
        name=message.name,
        tool_calls=_calls(message),
        tool_call_id=getattr(message, "tool_call_id", None),
        codec=CODEC,
        payload={"type": message.type, "data": _storable(_dumped(message))},
    )


def from_memoranda(message: Message) -> BaseMessage:
    """Return a message as LangChain has it: as it was, where LangChain wrote it, else put together anew."""
    if message.codec == CODEC and isinstance(message.payload, Mapping):
        try:
            return messages_from_dict([dict(message.payload)])[0]
        except ValueError:  # a class of somebody's own: LangChain gives back only those that it knows
            pass
    content: Any = message.content if isinstance(message.content, str) else [dict(part) for part in message.content]
    common: dict[str, Any] = {"content": content, "name": message.name, "id": message.id}
    match message.role:
        case "system":
            return SystemMessage(**common)
        case "user":
            return HumanMessage(**common)
        case "tool":
            return ToolMessage(**common, tool_call_id=message.tool_call_id or "")
        case "assistant":
            return AIMessage(
                **common,
                tool_calls=[
                    LangChainToolCall(name=call.name, args=dict(call.arguments), id=call.id, type="tool_call")
                    for call in message.tool_calls
                    if isinstance(call.arguments, Mapping)
                ],
                invalid_tool_calls=[
                    InvalidToolCall(
                        name=call.name, args=call.arguments, id=call.id, error=None, type="invalid_tool_call"
                    )
                    for call in message.tool_calls
                    if isinstance(call.arguments, str)
                ],
            )


def all_to_memoranda(messages: Iterable[BaseMessage]) -> list[Message]:
    """Return messages as Memoranda keeps them."""
    return [to_memoranda(message) for message in messages]


def all_from_memoranda(messages: Iterable[Message]) -> list[BaseMessage]:
    """Return messages as LangChain has them."""
    return [from_memoranda(message) for message in messages]


def said(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that somebody said: not a summariser's words, nor the order to remove a message."""
    return [message for message in messages if message.type != "remove" and not is_summary(message)]


def is_summary(message: BaseMessage) -> bool:
    """Say whether a summariser wrote it in place of messages."""
    return message.additional_kwargs.get(_SUMMARY) == "summarization"


def _role(message: BaseMessage) -> Role:
    match message:
        case AIMessage():
            return "assistant"
        case SystemMessage():
            return "system"
        case ToolMessage() | FunctionMessage():
            return "tool"
        case ChatMessage():
            return _ROLES.get(message.role, "user")
    return "user"


def _content(content: str | Sequence[str | Mapping[str, Any]]) -> str | tuple[Mapping[str, Any], ...]:
    if isinstance(content, str):
        return content
    return tuple({"type": "text", "text": part} if isinstance(part, str) else _storable(part) for part in content)


def _calls(message: BaseMessage) -> tuple[ToolCall, ...]:
    if not isinstance(message, AIMessage):
        return ()
    read = [
        ToolCall(id=call["id"] or "", name=call["name"], arguments=_storable(call["args"]))
        for call in message.tool_calls
    ]
    unread = [
        ToolCall(id=call["id"] or "", name=call["name"] or "", arguments=call["args"] or "")
        for call in message.invalid_tool_calls
    ]
    return (*read, *unread)


def _storable(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Return a value with whatever no store could give back, such as an object that a tool returned, as its repr.

    Args:
        value: The value.
        above: What it lies in, by `id`: what contains itself is not followed.
    """
    if isinstance(value, Enum):
        return _storable(value.value, above)
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _BITS else hex(value)
    if id(value) in above or len(above) >= _DEPTH:
        return _described(value)
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {str(key): _storable(item, above) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(item, above) for item in value]
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _storable(_dumped(value), above)
    try:
        metadata.encode(value)
    except InvalidInput:
        return _described(value)
    return value


def _dumped(model: Any) -> Any:
    """Return the fields of a pydantic model; those of the first level only where what they hold cannot be followed."""
    try:
        return model.model_dump()
    except (ValueError, RecursionError):
        return dict(model)


def _described(value: Any) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # too deep, or a number too long
        return f"<{type(value).__name__}>"
