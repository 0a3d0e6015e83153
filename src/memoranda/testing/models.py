"""A language model for tests: it says what the test wrote down, and remembers what it was asked."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from memoranda.protocols import Completion

if TYPE_CHECKING:
    from memoranda.protocols import PromptMessage

Answer: TypeAlias = "str | Completion | Exception | Callable[[Sequence[PromptMessage]], str | Completion | Exception]"


@dataclass(frozen=True)
class ModelCall:
    """What the model was asked."""

    messages: "tuple[PromptMessage, ...]"
    schema: Mapping[str, Any] | None
    max_tokens: int | None

    @property
    def text(self) -> str:
        """Everything that was said to the model, in one text."""
        return "\n\n".join(message["content"] for message in self.messages)


class ScriptedModel:
    """Answer from a list, one answer a call; `calls` holds every call, oldest first.

    An answer is a text, a completion, an error to raise, or a function of the messages that returns one of these. More
    can be appended to `answers` at any time. A call for which no answer is left is an error.

    >>> ScriptedModel(["[]"]).complete([{"role": "user", "content": "What is new?"}]).text
    '[]'
    """

    def __init__(self, answers: "Sequence[Answer]" = (), *, name: str = "test/scripted") -> None:
        self.name = name
        self.answers = list(answers)
        self.calls: list[ModelCall] = []
        self._lock = threading.Lock()

    def complete(
        self,
        messages: "Sequence[PromptMessage]",
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return the next answer, or raise it.

        Raises:
            AssertionError: there is no answer left.
        """
        with self._lock:
            self.calls.append(ModelCall(tuple(messages), schema, max_tokens))
            if not self.answers:
                raise AssertionError(f"ScriptedModel has no answer left for call {len(self.calls)}")
            answer = self.answers.pop(0)
        said = answer(messages) if callable(answer) else answer
        if isinstance(said, Exception):
            raise said
        return Completion(said) if isinstance(said, str) else said

    async def acomplete(
        self,
        messages: "Sequence[PromptMessage]",
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Async twin of `complete`."""
        return self.complete(messages, schema=schema, max_tokens=max_tokens)
