"""LlamaIndex's messages as Memoranda keeps them, and back.

What LlamaIndex itself would store of a message travels along as its payload, so that nothing is lost on the way back;
the neutral fields beside it are what another framework reads. Of a `ReActAgent`'s trace that is the answer: thoughts
and what tools gave are nothing that was said.
"""

import base64
import datetime as dates
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeGuard
from uuid import UUID, uuid4

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from pydantic import BaseModel, ValidationError

from memoranda.messages import Message, Role, ToolCall

_log = logging.getLogger("memoranda.llama_index")

CODEC = "llama-index"
"""The name under which payloads of this form are stored."""

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_PLAIN = (str, int, float, bool, bytes, Decimal, UUID, dates.date, dates.time, dates.timedelta, type(None))
_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""What a block of media is called in the neutral form, by its `block_type`."""
_DATA = ("image", "audio", "video", "data")  # where a block of media keeps its bytes, as base64
_TYPES = ("image_mimetype", "format", "video_mimetype", "document_mimetype")
_DEPTH_LIMIT = 50  # of what is inside a message; the engine takes twice as much
_CALLS = ("tool_use", "tool_call", "function_call", "invalid_tool_call")  # parts that repeat `tool_calls`
# 0.14.0 has none of the three: tool calls are among `additional_kwargs` there.
_VIDEO = getattr(types, "VideoBlock", None)
_THINKING = getattr(types, "ThinkingBlock", None)
_TOOL_CALL = getattr(types, "ToolCallBlock", None)


def to_memoranda(message: ChatMessage) -> Message:
    """Return a message as Memoranda keeps it; it has no id, so that it is known by what it says."""
    kwargs = message.additional_kwargs
    blocks = [_dumped(block) for block in message.blocks]
    role = _ROLES[message.role.value]
    return Message(
        role=role,
        content=_answer(_content(blocks)) if role == "assistant" else _content(blocks),
        name=_text(kwargs.get("name")),
        tool_calls=_calls(blocks, kwargs.get("tool_calls")),
        tool_call_id=_text(kwargs.get("tool_call_id")),
        codec=CODEC,
        payload={
            "role": message.role.value,
            # Images among them are blocks by now, and would be read as blocks once more.
            "additional_kwargs": {name: storable(value) for name, value in kwargs.items() if name != "images"},
            "blocks": blocks,
        },
    )


def new_to_memoranda(messages: Iterable[ChatMessage]) -> list[Message]:
    """Return messages each under an id of its own: the same words said twice are two messages."""
    return [replace(to_memoranda(message), id=f"{CODEC}-{uuid4().hex}") for message in messages]


def as_stored(messages: Sequence[ChatMessage], stored: Sequence[Message]) -> list[Message]:
    """Return messages as they are stored where the same one stands in the same place, the others under new ids."""
    found = []
    for place, message in enumerate(messages):
        there = stored[place] if place < len(stored) else None
        found += [there] if there is not None and from_memoranda(there) == message else new_to_memoranda([message])
    return found


def from_memoranda(message: Message) -> ChatMessage:
    """Return a message as LlamaIndex has it: as it was, where LlamaIndex wrote it, else put together anew."""
    kwargs: dict[str, Any] = {}
    if message.codec == CODEC and isinstance(message.payload, Mapping):
        try:
            return ChatMessage.model_validate(message.payload)
        except ValidationError:  # a file that is gone, or a block that only another LlamaIndex knows
            kwargs = dict(message.payload.get("additional_kwargs") or {})
    if message.tool_call_id is not None:
        kwargs["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        kwargs["name"] = message.name
    if isinstance(message.content, str):
        blocks: list[Any] = [TextBlock(text=message.content)] if message.content or not message.tool_calls else []
    else:
        blocks = [block for part in message.content for block in _blocks(part)]
    if _TOOL_CALL is not None:
        blocks += [
            _TOOL_CALL(tool_call_id=call.id, tool_name=call.name, tool_kwargs=_given(call.arguments))
            for call in message.tool_calls
        ]
    elif message.tool_calls:
        kwargs["tool_calls"] = [_openai_call(call) for call in message.tool_calls]
    return ChatMessage(role=MessageRole(message.role), blocks=blocks, additional_kwargs=kwargs)


def all_from_memoranda(messages: Iterable[Message]) -> list[ChatMessage]:
    """Return messages as LlamaIndex has them, each a new object."""
    return [from_memoranda(message) for message in messages]


def whole(message: Message) -> Message:
    """Return a message with all that a model is shown of it, the thoughts of a trace too: what is to be counted."""
    if message.codec == CODEC and isinstance(message.payload, Mapping):
        return replace(message, content=_content(message.payload["blocks"]))
    return message


# -- into the store


def _content(blocks: list[dict[str, Any]]) -> str | tuple[Mapping[str, Any], ...]:
    parts = [part for block in blocks for part in _parts(block)]
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return tuple(parts)


def _answer(content: str | tuple[Mapping[str, Any], ...]) -> str | tuple[Mapping[str, Any], ...]:
    """Return the answer at the end of a trace of thoughts, actions and observations; what is none as it is."""
    if not isinstance(content, str) or not content.startswith("Thought:"):
        return content
    _, _, answer = content[max(content.rfind("\nThought:"), 0) :].partition("\nAnswer:")
    return answer.strip() or content


def _parts(block: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give what another framework reads of a block; what cites, or is to be cited, is read as what it holds."""
    kind = block["block_type"]
    if kind == "text":
        yield {"type": "text", "text": block["text"]}
    elif kind == "thinking":
        yield {"type": "reasoning", "reasoning": block.get("content") or ""}
    elif kind == "citable":
        for inner in block["content"]:
            yield from _parts(inner)
    elif kind == "citation":
        yield from _parts(block["cited_content"])
    elif kind in _MEDIA:
        yield _medium(_MEDIA[kind], block)


def _medium(kind: str, block: Mapping[str, Any]) -> Mapping[str, Any]:
    data = next((block[name] for name in _DATA if block.get(name)), None)
    named = next((block[name] for name in _TYPES if block.get(name)), None)
    part: dict[str, Any] = {"type": kind}
    if data is not None:
        part["base64"] = base64.b64encode(data).decode("ascii") if isinstance(data, bytes) else data
    elif place := block.get("url") or block.get("path"):
        part["url"] = str(place)
    if named:
        part["mime_type"] = named if "/" in named else f"{kind}/{named}"
    return part


def _calls(blocks: list[dict[str, Any]], others: Any) -> tuple[ToolCall, ...]:
    """Return the calls among the blocks; where there are none, those that a provider's class has put beside them."""
    calls = [
        ToolCall(
            id=block.get("tool_call_id") or "", name=block["tool_name"], arguments=_arguments(block["tool_kwargs"])
        )
        for block in blocks
        if block["block_type"] == "tool_call"
    ]
    return tuple(calls) or tuple(call for other in _listed(others) if (call := _call(other)) is not None)


def _call(call: Any) -> ToolCall | None:
    said = storable(call)
    if not isinstance(said, Mapping):
        return None
    inner = said.get("function")
    function = inner if isinstance(inner, Mapping) else said
    arguments: Any = next((function[name] for name in ("arguments", "args", "input") if name in function), {})
    return ToolCall(
        id=_text(said.get("id")) or "",
        name=_text(function.get("name")) or "",
        arguments=_arguments(arguments),
    )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _arguments(arguments: Any) -> Mapping[str, Any] | str:
    if isinstance(arguments, Mapping):
        return arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=repr)
    try:
        read = json.loads(text) if text else {}
    except ValueError:
        return text
    return read if isinstance(read, dict) else text


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _dumped(block: BaseModel) -> dict[str, Any]:
    """Return a block as it is stored: media as base64 text."""
    stored: dict[str, Any] = {}
    for name in type(block).model_fields:
        value = getattr(block, name)
        if name in _DATA and value is not None:
            value = value if isinstance(value, bytes | str) else base64.b64encode(_read_from_the_start(value))
            # 0.14.0 leaves some raw bytes as they are.
            value = value.decode("ascii") if isinstance(value, bytes) and value.isascii() else value
        elif isinstance(value, list) and all(map(_is_block, value)):
            value = [_dumped(item) for item in value]
        elif _is_block(value):
            value = _dumped(value)
        if value is not None:
            stored[name] = storable(value)
    return stored


def _read_from_the_start(stream: Any) -> bytes:
    # Whoever has shown it to a model has read it to its end.
    if stream.seekable():
        stream.seek(0)
    return bytes(stream.read())


def _is_block(value: object) -> TypeGuard[BaseModel]:
    # Blocks have no class in common in 0.14.0.
    return isinstance(value, BaseModel) and "block_type" in type(value).model_fields


def storable(value: Any, depth: int = 0) -> Any:
    """Return a value with whatever no store could give back, such as a provider's own class, in a plain form."""
    if isinstance(value, Enum):
        return storable(value.value, depth)
    if isinstance(value, _PLAIN):
        return value
    if depth > _DEPTH_LIMIT:  # or it contains itself
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, BaseModel):
        return {name: storable(getattr(value, name), depth + 1) for name in type(value).model_fields}
    if isinstance(value, PurePath) or type(value).__module__.startswith("pydantic"):
        return str(value)
    for form in ("to_dict", "model_dump"):
        try:
            return storable(getattr(value, form)(), depth + 1)
        except Exception:
            continue
    _log.warning("a value of the class %s is kept as its repr", type(value).__name__)
    return repr(value)


# -- out of the store


def _blocks(part: Mapping[str, Any]) -> Iterator[Any]:
    kind = part.get("type")
    if isinstance(part.get("text"), str):
        yield TextBlock(text=part["text"])
    elif kind in ("reasoning", "thinking"):
        said = part.get("reasoning", part.get("thinking")) or ""
        if _THINKING is not None:
            beside = {key: part[key] for key in ("signature", "extras") if key in part}
            yield _THINKING(content=said, additional_information=beside)
    elif isinstance(kind, str) and (made := _medium_block(kind, part)) is not None:
        yield made
    elif kind not in _CALLS:
        yield TextBlock(text=json.dumps(storable(part), default=repr))


def _medium_block(kind: str, part: Mapping[str, Any]) -> Any:
    try:
        return _read_medium(kind, part)
    except ValidationError:  # a path is no address
        return None


def _read_medium(kind: str, part: Mapping[str, Any]) -> Any:
    """Return media in the neutral form, or in that of OpenAI."""
    inner = part.get(kind)
    source: Mapping[str, Any] = inner if isinstance(inner, Mapping) else part
    url = source.get("url") or (inner if isinstance(inner, str) else None)
    data = source.get("base64") or source.get("data") or source.get("file_data")
    named = source.get("mime_type") or source.get("format")
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
        named, data = url[5:].split(";base64,", 1)
        url = None
    if not isinstance(data, str) and not isinstance(url, str):
        return None
    where: dict[str, Any] = {"url": url} if url else {}
    content = data.encode("ascii", "replace") if isinstance(data, str) and not url else None
    match kind:
        case "image" | "image_url" | "input_image":
            return types.ImageBlock(image=content, image_mimetype=named, **where)
        case "audio" | "input_audio":
            return types.AudioBlock(audio=content, format=named, **where)
        case "video" if _VIDEO is not None:
            return _VIDEO(video=content, video_mimetype=named, **where)
        case "file" | "document" | "input_file":
            return types.DocumentBlock(data=content, document_mimetype=named, title=source.get("filename"), **where)
    return None


def _given(arguments: Mapping[str, Any] | str) -> dict[str, Any] | str:
    return arguments if isinstance(arguments, str) else dict(arguments)


def _openai_call(call: ToolCall) -> dict[str, Any]:
    said = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, default=repr)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": said}}
