"""What stands between the engine and any language model: foreign errors become ours, answers are checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.errors import MemorandaError, ModelRefused, ModelUnavailable
from memoranda.protocols import Completion, LanguageModel, PromptMessage


class CheckedModel:
    """A language model, or none: whatever goes wrong is an error of ours that repeats no text."""

    def __init__(self, model: LanguageModel | None) -> None:
        """Stand before a model; without one every call is refused."""
        self._model = model
        self.name = model.name if model else ""
        """The model's name, empty where there is none."""

    def __repr__(self) -> str:
        """Show the model's name."""
        return f"CheckedModel({self.name!r})"

    @property
    def configured(self) -> bool:
        """Whether there is a model that has what it needs to be called, such as a key."""
        return self._model is not None and bool(getattr(self._model, "configured", True))

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return what the model answers.

        Raises:
            ModelRefused: there is no model, or it refuses the call and would again.
            ModelUnavailable: it gave no usable answer.
        """
        try:
            answer = self._needed().complete(messages, schema=schema, max_tokens=max_tokens)
        except Exception as exc:
            raise self._failed(exc) from exc
        return self._checked(answer)

    async def acomplete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Async twin of `complete`."""
        try:
            answer = await self._needed().acomplete(messages, schema=schema, max_tokens=max_tokens)
        except Exception as exc:
            raise self._failed(exc) from exc
        return self._checked(answer)

    def _needed(self) -> LanguageModel:
        if self._model is None:
            raise ModelRefused("There is no language model: name one, or set MEMORANDA_LLM_BACKEND.")
        return self._model

    def _checked(self, answer: object) -> Completion:
        if not isinstance(answer, Completion) or not isinstance(answer.text, str):
            raise ModelUnavailable(f"Model {self.name!r} gave something that is not a completion with a text.")
        return answer

    def _failed(self, exc: Exception) -> MemorandaError:
        """Return the error to raise: our own as it is, anything else by its type, since its text may quote ours."""
        if isinstance(exc, MemorandaError):
            return exc
        if isinstance(exc, AssertionError):
            raise exc  # a test's model that was asked more often than it has answers
        return ModelUnavailable(f"Model {self.name!r} failed with {type(exc).__name__}.")
