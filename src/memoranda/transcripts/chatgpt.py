"""A conversation of a ChatGPT export: a tree of messages, of which the path to the current node was had.

An edited or regenerated message begins a branch of its own; what stands on the others is left out, and counted.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memoranda.messages import Message, Role, ToolCall
from memoranda.transcripts.skipped import Skipped

BRANCHES = "messages of branches that were edited away"
EMPTY = "empty messages"
HIDDEN = "hidden messages"
THINKING = "steps of a model's thinking"
NO_MESSAGE = "entries that are no message"

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_THINKING = ("thoughts", "reasoning_recap")
_SETTINGS = ("user_editable_context", "model_editable_context")
# Content that has its text under these names; for each the first that holds any is taken.
_TEXTS = {
    "code": ("text",),
    "execution_output": ("text",),
    "system_error": ("text",),
    "tether_browsing_display": ("result", "summary"),
    "tether_quote": ("text",),
}


def is_conversation(value: object) -> bool:
    """Say whether a JSON value is a conversation of such an export."""
    return isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping)


def messages(conversation: Mapping[str, Any], name: str, skipped: Skipped) -> list[Message]:
    """Return the messages of a conversation that were on the path to its current node, in order."""
    nodes: Mapping[str, Any] = conversation["mapping"]
    path = _path(nodes, conversation.get("current_node"))
    on_path = set(path)
    aside = sum(1 for key, node in nodes.items() if key not in on_path and _said(node))
    if aside:
        skipped.add(BRANCHES, name, aside)
    found: list[Message] = []
    when, call = _moment(conversation.get("create_time")), None
    for key in path:
        message = nodes[key].get("message") if isinstance(nodes[key], Mapping) else NO_MESSAGE
        if message is None and key == path[0]:  # the root of every tree
            continue
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), Mapping):
            skipped.add(NO_MESSAGE, name)
            continue
        when = _moment(message.get("create_time")) or when
        read = _message(message, str(message.get("id") or key), when, call)
        if isinstance(read, str):
            skipped.add(read, name)
            continue
        found.append(read)
        if read.tool_calls:
            call = read.tool_calls[0].id
    return found


def _path(nodes: Mapping[str, Any], current: object) -> list[str]:
    """Return the keys from the root to the current node; to the newest one where that is not there."""
    if not isinstance(current, str) or current not in nodes:
        current = max(nodes, key=lambda key: (_when(nodes[key]), key), default=None)
    path: list[str] = []
    seen: set[str] = set()
    while isinstance(current, str) and current in nodes and current not in seen:
        path.append(current)
        seen.add(current)
        node = nodes[current]
        current = node.get("parent") if isinstance(node, Mapping) else None
    return path[::-1]


def _said(node: object) -> bool:
    """Say whether a node holds something that somebody may miss."""
    message = node.get("message") if isinstance(node, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), Mapping):
        return False
    return not isinstance(_message(message, "", None, None), str)


def _when(node: object) -> float:
    message = node.get("message") if isinstance(node, Mapping) else None
    moment = _moment(message.get("create_time")) if isinstance(message, Mapping) else None
    return moment.timestamp() if moment else 0.0


def _moment(time: object) -> datetime | None:
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None
    try:
        return datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _message(message: Mapping[str, Any], id: str, when: datetime | None, call: str | None) -> Message | str:
    """Return a message, or the reason to leave it out."""
    author = message.get("author")
    author = author if isinstance(author, Mapping) else {}
    metadata = message.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    content: Mapping[str, Any] = message["content"]
    kind, role = str(content.get("content_type")), _ROLES.get(str(author.get("role")))
    if role is None:
        return f"messages of the role {str(author.get('role'))[:40]!r}"
    if kind in _SETTINGS or (role != "tool" and metadata.get("is_visually_hidden_from_conversation")):
        return HIDDEN
    if kind in _THINKING:
        return THINKING
    body = _content(kind, content)
    if body is None:
        return f"messages with content of the type {kind[:40]!r}"
    if not body:
        return EMPTY
    extra = {"model": metadata["model_slug"]} if isinstance(metadata.get("model_slug"), str) else {}
    said_by = author.get("name") if isinstance(author.get("name"), str) else None
    recipient = message.get("recipient")
    if role == "assistant" and isinstance(recipient, str) and recipient not in ("all", ""):
        text = body if isinstance(body, str) else json.dumps(body)
        calls = (ToolCall(id=id, name=recipient, arguments=_arguments(text)),)
        return Message(role=role, id=id, tool_calls=calls, extra=extra, created_at=when)
    answers = call if role == "tool" else None
    return Message(role=role, content=body, id=id, name=said_by, tool_call_id=answers, extra=extra, created_at=when)


def _arguments(text: str) -> Mapping[str, Any] | str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _content(kind: str, content: Mapping[str, Any]) -> str | tuple[Mapping[str, Any], ...] | None:
    """Return a text, or parts where there are others than texts; None for what is not known."""
    if kind in ("text", "multimodal_text"):
        parts = content.get("parts")
        found = tuple(_parts(parts)) if isinstance(parts, list) else ()
        if all(part["type"] == "text" for part in found):
            return "\n".join(part["text"] for part in found).strip("\n")
        return found
    if kind not in _TEXTS:
        return None
    return next((text for name in _TEXTS[kind] if isinstance(text := content.get(name), str) and text.strip()), "")


def _parts(parts: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a content: texts, and pointers to images and sounds as they are."""
    for part in parts:
        if isinstance(part, str):
            if part.strip():
                yield {"type": "text", "text": part}
        elif isinstance(part, Mapping):
            rest = {name: value for name, value in part.items() if name != "content_type"}
            kind = part.get("content_type")
            if kind == "audio_transcription" and isinstance(part.get("text"), str):
                yield {"type": "text", "text": part["text"]}
            else:
                yield {**rest, "type": kind if isinstance(kind, str) else "unknown"}
