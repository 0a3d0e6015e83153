"""Messages in other forms: what a caller gives, the text a row holds, and OpenAI's chat form.

What a row holds is JSON as text: the order of keys, NUL, numbers of any size and halves of surrogate pairs come back as
they were, on every database. Values that JSON does not know are tagged as in `memoranda.metadata`; a tuple comes back
as a list.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from enum import Enum
from hashlib import sha256
from typing import Any, TypeAlias, cast, get_args

from memoranda import metadata
from memoranda.errors import InvalidInput
from memoranda.messages import Message, Role, ToolCall
from memoranda.moments import read_moment
from memoranda.text import clean

Said: TypeAlias = str | Message | Mapping[str, Any]
"""A message as it is given: a user's text, a `Message`, or a mapping in OpenAI's chat form."""

_ROLES = get_args(Role)
_OTHER_ROLES = {
    "developer": "system",
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "function": "tool",
}
_ROLE = "role"  # in `extra`: what the role was called where it has another name here
_TAG = "$type"
_PLAIN = "{}"  # the body of a message that is its text alone
_REPLACED = "replaced"  # in a body: the traces of the forms that a message had before
_TRACES_KEPT = 8
_TRACE_LENGTH = 6  # 24 bits: an edit is taken for an earlier form once in a million times
_DEPTH_LIMIT = 100
_KEY_BYTES = 200  # longer ids would not fit into an index of either database beside the other columns


# -- what a caller gives


def given(said: Said | Iterable[Said], zone: tzinfo) -> list[Message]:
    """Return what was said as messages, checked, completed and independent of the caller's objects.

    Args:
        said: One message or several.
        zone: Where a moment without an offset is read.

    Raises:
        InvalidInput: something is no message; names the row where there are several.
    """
    if isinstance(said, str | Message | Mapping):
        return [_message(said, zone, None)]
    several: object = said
    if isinstance(several, bytes) or not isinstance(several, Iterable):
        raise _no_message(said, None)
    return [_message(one, zone, index) for index, one in enumerate(several)]


def _message(said: object, zone: tzinfo, index: int | None) -> Message:
    if isinstance(said, str):
        return Message(role="user", content=str(said))
    if isinstance(said, Message):
        message = said
    elif isinstance(said, Mapping):
        message = _from_mapping(said, index)
    else:
        raise _no_message(said, index)
    return _checked(message, zone, index)


def _no_message(said: object, index: int | None) -> InvalidInput:
    return InvalidInput(
        f"a message is a string, a Message or a mapping with role and content, not {type(said).__name__}",
        field="messages",
        index=index,
    )


def _from_mapping(said: Mapping[str, Any], index: int | None) -> Message:
    extra = {key: value for key, value in said.items() if key not in _TAKEN}
    role = said.get(_ROLE)
    role = role.value if isinstance(role, Enum) else role
    if isinstance(role, str) and role in _OTHER_ROLES:
        extra[_ROLE], role = role, _OTHER_ROLES[role]
    content = said.get("content")
    calls = said.get("tool_calls")
    if not isinstance(calls, Iterable | None) or isinstance(calls, str | Mapping):
        raise InvalidInput("tool_calls must be a list", field="tool_calls", index=index)
    return Message(
        role=cast(Role, role),
        content="" if content is None else content,
        id=said.get("id"),
        name=said.get("name"),
        tool_calls=tuple(_call(call, index) for call in calls or ()),
        tool_call_id=said.get("tool_call_id"),
        extra=extra,
    )


_TAKEN = (_ROLE, "content", "id", "name", "tool_calls", "tool_call_id")


def _call(call: object, index: int | None) -> ToolCall:
    """Return a call in OpenAI's form, or in the plain one with `name` and `args` or `arguments`."""
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, Mapping):
        raise InvalidInput("each of tool_calls must be a mapping or a ToolCall", field="tool_calls", index=index)
    inner = call.get("function")
    function = inner if isinstance(inner, Mapping) else call
    arguments = function.get("arguments", function.get("args"))
    return ToolCall(
        id=_text_or_empty(call.get("id")),
        name=_text_or_empty(function.get("name")),
        arguments=_readable(arguments) if isinstance(arguments, str) else {} if arguments is None else arguments,
    )


def _text_or_empty(value: object) -> Any:
    return "" if value is None else value


def _readable(arguments: str) -> Mapping[str, Any] | str:
    """Return the arguments a model wrote, or their text where it is no JSON of a mapping."""
    try:
        value = json.loads(arguments, parse_constant=_refuse)
        return value if isinstance(value, dict) and _tagged(value, "arguments") is not None else arguments
    except (ValueError, RecursionError, InvalidInput):
        return arguments


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _checked(message: Message, zone: tzinfo, index: int | None) -> Message:
    """Refuse a message whose fields are of the wrong kind, and take off what only a stored one has."""

    def refuse(field: str, what: str) -> InvalidInput:
        return InvalidInput(f"{field} must be {what}", field=field, index=index)

    role = message.role.value if isinstance(message.role, Enum) else message.role
    if role not in _ROLES:
        raise refuse("role", f"one of {', '.join(_ROLES)}")
    for field in ("id", "name", "tool_call_id"):
        if not isinstance(getattr(message, field), str | None):
            raise refuse(field, "a string")
    if not isinstance(message.codec, str):
        raise refuse("codec", "a string")
    if not isinstance(message.extra, Mapping):
        raise refuse("extra", "a mapping")
    if not isinstance(message.created_at, datetime | None):
        raise refuse("created_at", "a datetime")
    if isinstance(message.tool_calls, str | Mapping) or not isinstance(message.tool_calls, Iterable):
        raise refuse("tool_calls", "a list of ToolCall")
    calls = tuple(message.tool_calls)
    for call in calls:
        if not isinstance(call, ToolCall) or not isinstance(call.id, str) or not isinstance(call.name, str):
            raise refuse("tool_calls", "calls with an id and a name, both strings")
        if not isinstance(call.arguments, str | Mapping):
            raise refuse("tool_calls", "calls whose arguments are a mapping or a string")
    return replace(
        message,
        role=role,
        content=_content(message.content, index),
        tool_calls=calls,
        created_at=read_moment(message.created_at, zone, "created_at", index),
        position=None,
        tokens=None,
        folded=False,
        pending=False,
    )


def _content(content: object, index: int | None) -> str | tuple[Mapping[str, Any], ...]:
    if isinstance(content, str):
        return str(content)
    if isinstance(content, Iterable) and not isinstance(content, Mapping | bytes):
        parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
        if all(isinstance(part, Mapping) for part in parts):
            return tuple(parts)
    raise InvalidInput(
        "content must be a string or a list of parts: mappings with type, such as text and image_url",
        field="content",
        index=index,
    )


# -- what a row holds


def key(message: Message) -> str | None:
    """Return what a message is found by when it comes again: its id, or a digest of one that fits into no index."""
    if not message.id:
        return None
    fits = len(message.id) <= _KEY_BYTES and len(message.id.encode("utf-8", "replace")) <= _KEY_BYTES
    if fits and clean(message.id) == message.id:
        return message.id
    return "sha256:" + sha256(message.id.encode("utf-8", "surrogatepass")).hexdigest()


def digest(message: Message) -> str:
    """Return what two messages that say the same have in common: role, content, names and tool calls."""
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    said = [message.role, message.content, message.name, calls, message.tool_call_id]
    if not calls and isinstance(message.content, str):
        text = json.dumps(said)
    else:
        text = json.dumps(_tagged(said, "content"), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:32]


def body(message: Message, index: int | None = None) -> str:
    """Return all of a message but its role, key, plain text and payload, as JSON.

    Raises:
        InvalidInput: something in it cannot be stored.
    """
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    fields = {
        "content": None if message.content == clean(message.text) else message.content,
        "id": None if message.id == key(message) else message.id,
        "name": message.name,
        "tool_calls": calls or None,
        "tool_call_id": message.tool_call_id,
        "extra": message.extra or None,
        "created_at": message.created_at,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return _written(given, "", index) if given else _PLAIN


def traces(role: str, content: str, digest: str) -> tuple[str, str]:
    """Return what is kept of a form that was replaced: of its words, but for the space around them, or of all of it.

    Either is too little to guess a redacted text by.
    """
    words = sha256(json.dumps([role, content.strip()]).encode()).hexdigest()
    return words[:_TRACE_LENGTH], digest[:_TRACE_LENGTH]


def replaced(body: str | None) -> list[str]:
    """Return the traces of the forms that a message had before, the oldest first."""
    return list(json.loads(body)[_REPLACED]) if body and has_replaced(body) else []


def has_replaced(body: Any) -> Any:
    """Say of a body, or of its column, whether its message had another form before."""
    return body.startswith(f'{{"{_REPLACED}":')


def replacing(body: str, traces: Sequence[str]) -> str:
    """Return the body of a message that takes the place of forms with these traces; the newest of them are kept."""
    head = json.dumps({_REPLACED: list(traces[-_TRACES_KEPT:])}, separators=(",", ":"))
    return head if body == _PLAIN else f"{head[:-1]},{body[1:]}"


def call_ids(body: str) -> tuple[str, ...]:
    """Return the ids of the calls of tools that the message of a body asks for, or of the one that it answers."""
    fields = json.loads(body)
    answered = fields.get("tool_call_id")
    return tuple(call["id"] for call in fields.get("tool_calls", ())) or (() if answered is None else (answered,))


def payload(message: Message, index: int | None = None) -> str | None:
    """Return the framework's own form as JSON, None where there is none.

    Raises:
        InvalidInput: something in it cannot be stored.
    """
    return None if message.payload is None else _written(message.payload, "payload", index)


def stored(row: Any) -> Message:
    """Return the message of a row."""
    fields = {
        "content": row.content,
        "id": row.key,
        "created_at": row.created_at,
        "codec": row.codec,
        "position": row.position,
        "tokens": row.tokens,
        "folded": row.folded_at is not None,
        "pending": row.pending_at is not None,
    }
    if row.body != _PLAIN:
        fields |= metadata.loads(row.body)
        fields.pop(_REPLACED, None)
        if not isinstance(fields["content"], str):
            fields["content"] = tuple(fields["content"])
        fields["tool_calls"] = tuple(ToolCall(**call) for call in fields.get("tool_calls", ()))
    if row.payload is not None:
        fields["payload"] = metadata.loads(row.payload)
    return Message(role=row.role, **fields)


def _written(value: object, place: str, index: int | None) -> str:
    try:
        tagged = _tagged(value, place, 0 if place else -1)
        text = json.dumps(tagged, ensure_ascii=False, separators=(",", ":"))
        return text if clean(text) == text else json.dumps(tagged, separators=(",", ":"))
    except InvalidInput as error:
        raise InvalidInput(str(error), field=error.field, index=index) from None
    except ValueError:
        name = place or "message"
        raise InvalidInput(f"{name} holds a number that is too long", field=name, index=index) from None


def _tagged(value: object, place: str, depth: int = 0) -> Any:
    """Return a value as JSON knows it; `metadata.decode` takes the tags off."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _tagged(value.value, place, depth)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | float):
        return value
    if depth > _DEPTH_LIMIT:
        field = _field(place)
        raise InvalidInput(f"{field} is nested deeper than {_DEPTH_LIMIT} levels or contains itself", field=field)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise InvalidInput(f"{place} has a key that is not a string", field=_field(place))
        items = {
            str(name): _tagged(item, f"{place}.{name[:40]}" if place else name, depth + 1)
            for name, item in value.items()
        }
        return {_TAG: "mapping", "value": [[n, item] for n, item in items.items()]} if _TAG in items else items
    if isinstance(value, list | tuple):
        return [_tagged(item, f"{place}[{number}]", depth + 1) for number, item in enumerate(value)]
    try:
        return metadata.encode(value, place)
    except InvalidInput as error:
        raise InvalidInput(str(error), field=_field(place)) from None


def _field(place: str) -> str:
    return re.split(r"[.\[]", place, maxsplit=1)[0]


# -- OpenAI's chat form


def chat_form(message: Message) -> dict[str, Any]:
    """Return a message as OpenAI's chat API takes it, without its id; what is in `extra` stands beside the other keys.

    Arguments that a model wrote as broken JSON are given back as they were.
    """
    content: Any = message.content if isinstance(message.content, str) else [dict(part) for part in message.content]
    form: dict[str, Any] = {**message.extra}
    form = {_ROLE: form.pop(_ROLE, message.role), "content": content, **form}
    if message.name is not None:
        form["name"] = message.name
    if message.tool_calls:
        form["content"] = content or None
        form["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    return form


def _arguments(call: ToolCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(_tagged(call.arguments, "arguments"), ensure_ascii=False)
