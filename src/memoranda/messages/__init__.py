"""What is said in a conversation: messages as they come and as they are stored, and what a model is shown of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool that an assistant's message asks for."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict, repr=False, hash=False)
    """The arguments; the text of them where a model's JSON could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message; nothing of it is lost on the way into the store and out again."""

    role: Role
    content: str | tuple[Mapping[str, Any], ...] = field(default="", repr=False, hash=False)
    """Its text, or its parts: mappings with `type`, such as `text` and `image_url`."""
    id: str | None = None
    """The caller's own id, unique in the conversation: what is appended again under it is the same message."""
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """Of a tool's message: which call it answers."""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """What a provider adds."""
    codec: str = ""
    """Whose form `payload` has, such as `langchain`; empty where there is none."""
    payload: Any = field(default=None, repr=False, hash=False)
    """The message as the framework itself would store it, as JSON: read back only by the codec that wrote it."""
    created_at: datetime | None = None
    """When it was said; when it was appended, if nobody says."""
    position: int | None = None
    """Its place in the conversation, from 1; None until it is stored."""
    tokens: int | None = None
    """About how many tokens a model reads; None until it is stored."""
    folded: bool = False
    """Whether a summary speaks for it by now."""
    pending: bool = False
    """Whether it has left the model's sight and nothing was extracted from it yet."""

    @property
    def text(self) -> str:
        """What a person would read of it; parts that are no text are left out."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part["text"] for part in self.content if isinstance(part.get("text"), str))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRecord:
    """How a conversation stands."""

    name: str
    messages: int
    """How many are stored, the folded ones among them."""
    folded: int
    pending: int
    user_turns: int
    """Delivered turns since the last review."""
    summary: str = field(repr=False)
    """What is left of the folded messages; empty when nothing was folded."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model is shown before a turn, the part that never changes first."""

    system: str = field(repr=False)
    """The frozen block of memories: the same bytes until a compaction, a clear, an erasure or the loss of a
    membership; empty when there was nothing to remember."""
    user_model: str = field(repr=False)
    """What is known of the user, as of now; empty when nothing is, and where the frozen block holds it."""
    turn: str = field(default="", repr=False)
    """What is always in mind and what this turn brings up; empty where the policy has no such block."""
    summary: str = field(default="", repr=False)
    """What is left of folded messages, fenced; empty when nothing was folded."""
    instructions: str = field(default="", repr=False)
    """The guidance for the agent; see `Conversation.instructions`."""
    tokens: Mapping[str, int] = field(default_factory=dict, hash=False)
    """About how many tokens each part has, by its name."""
    user_model_last: bool = False
    """Whether what is known of the user goes behind the messages."""

    @property
    def ahead(self) -> tuple[str, ...]:
        """The parts that go into the system message, what changes least first."""
        last = "" if self.user_model_last else self.user_model
        return tuple(filter(None, (self.instructions, self.system, self.summary, last)))

    @property
    def behind(self) -> tuple[str, ...]:
        """The parts that go behind the messages."""
        return tuple(filter(None, (self.user_model if self.user_model_last else "", self.turn)))
