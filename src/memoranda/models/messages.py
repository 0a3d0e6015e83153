"""Messages for models that take less than a list of them and a schema."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.protocols import PromptMessage

TIMEOUT = 600.0
"""Seconds a call may take unless told otherwise: a model of seven billion parameters on a processor needs minutes."""


def with_schema(messages: Sequence[PromptMessage], schema: Mapping[str, Any]) -> list[PromptMessage]:
    """Ask in words for JSON of this schema, at the end of the first message."""
    wish = "Answer with JSON only, nothing before or after it. Its JSON schema:\n" + json.dumps(schema)
    if not messages:
        return [{"role": "user", "content": wish}]
    first = messages[0]
    return [{"role": first["role"], "content": f"{first['content']}\n\n{wish}"}, *messages[1:]]


def as_text(messages: Sequence[PromptMessage]) -> str:
    """Write messages as one text; who speaks is said only where the model itself has spoken."""
    if any(message["role"] == "assistant" for message in messages):
        return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)
    return "\n\n".join(message["content"] for message in messages)
