"""About how many tokens a model reads: an estimate from the bytes of a text, the same for every model and machine."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.messages import Message

_BYTES_PER_TOKEN = 4
"""UTF-8 bytes: English has 4 to 5 a token; a character of Chinese has 3 bytes and is about one token, which this makes
0.75."""
_PER_MESSAGE = 4
"""What a chat template puts around a message."""
_PER_MEDIUM = 1_000
"""An image of a megapixel is 765 tokens to OpenAI (high detail) and 1,400 to Anthropic (pixels / 750)."""
_MEDIA = ("image", "input_image", "audio", "input_audio", "video", "file", "input_file", "document")


def count(text: str) -> int:
    """Return about how many tokens a text has: 0 for an empty one, never fewer for a longer one."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // _BYTES_PER_TOKEN)


def of_message(message: Message, counted: Callable[[str], int] = count) -> int:
    """Return about how many tokens a message has, with its tool calls and its pictures; at least 4.

    Args:
        message: The message.
        counted: Counts the tokens of a text, as a model's own tokenizer does.
    """
    content = message.content
    parts = counted(content) if isinstance(content, str) else sum(_of_part(part, counted) for part in content)
    calls = sum(counted(call.name) + _of_value(call.arguments, counted) for call in message.tool_calls)
    return _PER_MESSAGE + parts + calls


def _of_part(part: Mapping[str, Any], counted: Callable[[str], int]) -> int:
    kind, text = part.get("type"), part.get("text")
    if isinstance(text, str):
        return counted(text)
    if isinstance(kind, str) and kind.startswith(_MEDIA):
        return _PER_MEDIUM
    return _of_value(part, counted)


def _of_value(value: object, counted: Callable[[str], int]) -> int:
    return counted(value if isinstance(value, str) else json.dumps(value, default=str))
