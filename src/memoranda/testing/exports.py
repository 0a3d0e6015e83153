"""A ChatGPT export for tests: trees of messages as the real one has them, with whatever a test wants to go wrong."""

import json
from collections.abc import Mapping
from typing import Any

_BEGAN = 1_736_758_800.0  # 2025-01-13 09:00 UTC


class Conversation:
    """One conversation under construction: what is said goes below what was said last.

    >>> talk = Conversation("Tea")
    >>> first = talk.say("user", "Is there tea?")
    >>> _ = talk.say("assistant", "There is.")
    >>> _ = talk.say("user", "Is there coffee?", parent=None)  # an edit: a branch beside the first message
    >>> len(talk.export()["mapping"])
    4
    """

    def __init__(self, title: str = "A conversation", id: str = "c0ffee00-0000-4000-8000-000000000001") -> None:
        self.title = title
        self.id = id
        self.root = f"{id}-root"
        self.nodes: dict[str, dict[str, Any]] = {
            self.root: {"id": self.root, "message": None, "parent": None, "children": []}
        }
        self.current = self.root

    def say(self, role: str, text: str | None = None, *, parent: str | None = "", **fields: Any) -> str:
        """Add a message and make it the current one.

        Args:
            role: Of its author.
            text: What it says, where it is a text.
            parent: The node it answers: the current one when left out, the root for None.
            **fields: Other fields of the message, such as `content`, `recipient`, `name` and `metadata`.

        Returns:
            The id of its node.
        """
        number = len(self.nodes)
        name = fields.pop("name", None)
        message = {
            "id": f"{self.id}-{number}",
            "author": {"role": role, "name": name, "metadata": {}},
            "create_time": _BEGAN + 60.0 * number,
            "content": {"content_type": "text", "parts": [text if text is not None else ""]},
            "status": "finished_successfully",
            "weight": 1.0,
            "metadata": {},
            "recipient": "all",
            **fields,
        }
        return self.node(message, parent=parent)

    def node(self, message: Any, *, parent: str | None = "") -> str:
        """Add a node with any message, and make it the current one."""
        above = self.current if parent == "" else parent or self.root
        key = f"{self.id}-node-{len(self.nodes)}"
        self.nodes[key] = {"id": key, "message": message, "parent": above, "children": []}
        self.nodes[above]["children"].append(key)
        self.current = key
        return key

    def export(self, **fields: Any) -> dict[str, Any]:
        """Return the conversation as an export has it; `fields` take the place of its own."""
        return {
            "title": self.title,
            "create_time": _BEGAN,
            "update_time": _BEGAN,
            "mapping": self.nodes,
            "current_node": self.current,
            "conversation_id": self.id,
            "id": self.id,
            **fields,
        }


def exported(*conversations: "Conversation | Mapping[str, Any]") -> bytes:
    """Return the `conversations.json` of conversations."""
    items = [one.export() if isinstance(one, Conversation) else one for one in conversations]
    return json.dumps(items, ensure_ascii=False).encode()
