"""`memory=` of LangChain's classic chains, on the same conversations and memories as everything else."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_classic.base_memory import BaseMemory
from langchain_classic.memory.utils import get_prompt_input_key
from langchain_core.messages import BaseMessage, SystemMessage, get_buffer_string
from pydantic import Field

from langchain_memoranda.messages import all_from_memoranda
from memoranda.conversations import Conversation
from memoranda.errors import ConfigurationError
from memoranda.messages import Message
from memoranda.persona import Persona


class ClassicMemory(BaseMemory):
    """What was said and what is remembered, as variables of a classic chain's prompt.

    What no longer fits into `max_tokens` is looked through by a job of the engine.

    Example:
        `ConversationChain(llm=model, memory=ClassicMemory(persona=me, session_id="thread-1"))`
    """

    persona: Persona = Field(exclude=True)
    """Whose memory it is."""
    session_id: str
    """The conversation's name: any text."""
    memory_key: str = "history"
    """The variable with the newest messages."""
    recall_key: str | None = None
    """The variable with what is remembered; ahead of the messages when left out."""
    input_key: str | None = None
    """Which of a chain's inputs the user said, where there are several."""
    output_key: str | None = None
    """Which of a chain's outputs is the answer, where there are several."""
    max_tokens: int = 2_000
    """How many tokens of messages are shown."""
    return_messages: bool = False
    """Whether the variables are lists of messages, for chat models, or texts."""
    human_prefix: str = "Human"
    ai_prefix: str = "AI"

    @property
    def memory_variables(self) -> list[str]:
        """The variables."""
        return [self.memory_key] if self.recall_key is None else [self.memory_key, self.recall_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the newest messages, and what is remembered that has to do with the input."""
        chat, asked = self._chat(), self._asked(inputs)
        known = (chat.system_block(), chat.user_model_block(), chat.turn_block(asked))
        return self._variables(known, chat.window(self.max_tokens))

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Async twin of `load_memory_variables`."""
        chat, asked = self._chat(), self._asked(inputs)
        known = (await chat.asystem_block(), await chat.auser_model_block(), await chat.aturn_block(asked))
        return self._variables(known, await chat.awindow(self.max_tokens))

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Keep what the user said and what the chain answered."""
        chat = self._chat()
        chat.append(self._said(inputs, outputs))
        chat.out_of_sight(_ids(chat.window(self.max_tokens)))
        chat.turn_done()

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Async twin of `save_context`."""
        chat = self._chat()
        await chat.aappend(self._said(inputs, outputs))
        await chat.aout_of_sight(_ids(await chat.awindow(self.max_tokens)))
        await chat.aturn_done()

    def clear(self) -> None:
        """Remove the messages; what was remembered of them stays."""
        self._chat().clear()

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await self._chat().aclear()

    def _chat(self) -> Conversation:
        return self.persona.conversation(self.session_id)

    def _asked(self, inputs: dict[str, Any]) -> str:
        return _text(inputs[self.input_key or get_prompt_input_key(inputs, self.memory_variables)]) if inputs else ""

    def _said(self, inputs: dict[str, Any], outputs: dict[str, str]) -> list[Message]:
        if self.output_key is None and len(outputs) != 1:
            raise ConfigurationError("The chain has several outputs: say with output_key which one is the answer.")
        answer = outputs[self.output_key or next(iter(outputs))]
        return [
            Message(role="user", content=self._asked(inputs), id=f"classic-{uuid4().hex}"),
            Message(role="assistant", content=_text(answer), id=f"classic-{uuid4().hex}"),
        ]

    def _variables(self, known: Sequence[str], window: Sequence[Message]) -> dict[str, Any]:
        told: list[BaseMessage] = [SystemMessage(block) for block in known if block]
        spoken = all_from_memoranda(window)
        if self.return_messages:
            if self.recall_key is None:
                return {self.memory_key: [*told, *spoken]}
            return {self.memory_key: spoken, self.recall_key: told}
        texts = [str(message.text) for message in told]
        history = get_buffer_string(spoken, self.human_prefix, self.ai_prefix)
        if self.recall_key is None:
            return {self.memory_key: "\n\n".join(filter(None, [*texts, history]))}
        return {self.memory_key: history, self.recall_key: "\n\n".join(texts)}


def _text(value: Any) -> str:
    return str(value.text if isinstance(value, BaseMessage) else value)


def _ids(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages if message.id]
