"""LangChain's summariser, made so that nothing is lost: flushed, summarised whole, tool calls kept together."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from langchain.agents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware.types import AgentState
from langchain.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langgraph.runtime import Runtime

from langchain_memoranda import running_tools
from langchain_memoranda.messages import all_to_memoranda, said
from langchain_memoranda.scopes import Memory, NameOf, ScopeResolver, is_sub_agent
from langchain_memoranda.streams import TRANSFORMERS


class FlushingSummarizationMiddleware(SummarizationMiddleware[Any, Any]):
    """Summarises as LangChain does, and saves what the messages hold of lasting value before they are replaced.

    Unlike the stock class it reads every message it replaces, the summary before among them (there is no limit of 4,000
    tokens unless one is given), and never leaves the result of a tool without its call.

    Args:
        model: Writes the summaries.
        memory: Whose memory it is; see `langchain_memoranda.scopes`.
        persona: The persona where the run names none; of an engine only.
        conversation: The conversation's name, or a function from the run's `Runtime` to it.
        tenant: The tenant, or a function from the run's `Runtime` to it; of an engine only.
        flush: `inline` saves at once, which costs the turn a call of the engine's model; `job` leaves it to the
            engine's worker.
        name: Tells two of them apart; "SummarizationMiddleware" takes the place of an agent's own.
        **options: As the stock class takes them: `trigger`, `keep`, `summary_prompt`, ...
    """

    transformers: ClassVar[Sequence[Any]] = TRANSFORMERS  # type: ignore[misc]

    def __init__(
        self,
        model: str | BaseChatModel,
        memory: Memory,
        *,
        persona: str = "main",
        conversation: NameOf | None = None,
        tenant: NameOf | None = None,
        flush: Literal["inline", "job"] = "inline",
        name: str = "FlushingSummarizationMiddleware",
        **options: Any,
    ) -> None:
        super().__init__(model, **{"trim_tokens_to_summarize": None, **options})
        running_tools.watch()
        self._scopes = ScopeResolver(memory, persona, conversation, tenant)
        self._inline = flush == "inline"
        self._name = name

    @property
    def name(self) -> str:
        """What tells it apart."""
        return self._name

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise when it is time, and flush what is replaced."""
        before = list(state["messages"])
        # Found first: a run of which nobody says whose it is must not cost a summary.
        chat = None if is_sub_agent(runtime) else self._scopes.conversation_of(runtime)
        update = _whole(before, super().before_model(state, runtime))
        if update is not None and chat is not None:
            spoken = said(before)
            stored = chat.append(all_to_memoranda(spoken), new_ids=True)
            chat.pending(_gone(spoken, stored, update))
            if self._inline:
                chat.flush()
        return update

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise when it is time, and flush what is replaced."""
        before = list(state["messages"])
        chat = None if is_sub_agent(runtime) else self._scopes.conversation_of(runtime)
        update = _whole(before, await super().abefore_model(state, runtime))
        if update is not None and chat is not None:
            spoken = said(before)
            stored = await chat.aappend(all_to_memoranda(spoken), new_ids=True)
            await chat.apending(_gone(spoken, stored, update))
            if self._inline:
                await chat.aflush()
        return update


def _whole(before: Sequence[AnyMessage], update: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an update that keeps the calls of the results it keeps, and what was said since; None if that is all."""
    if update is None:
        return None
    messages = update["messages"]
    kept = {message.id for message in messages}
    first = next((place for place, message in enumerate(before) if message.id in kept), len(before))
    asked = _asked(before)
    start, place = first, len(before)
    while place > start:  # what is taken in may be a result itself
        place -= 1
        start = min(start, asked.get(place, start))
    head = len(messages) - (len(before) - first)
    return {**update, "messages": [*messages[:head], *before[start:first], *messages[head:]]} if start else None


def _asked(messages: Sequence[AnyMessage]) -> dict[int, int]:
    """Return for the place of each result that of its call: the nearest ahead of it, for ids may come again."""
    calls: dict[str | None, int] = {}
    asked = {}
    for place, message in enumerate(messages):
        if isinstance(message, AIMessage):
            calls |= dict.fromkeys((call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)), place)
        elif isinstance(message, ToolMessage) and message.tool_call_id in calls:
            asked[place] = calls[message.tool_call_id]
    return asked


def _gone(before: Sequence[BaseMessage], stored: Sequence[Any], update: dict[str, Any]) -> list[Any]:
    kept = {message.id for message in update["messages"]}
    pairs = list(zip(before, stored, strict=True))
    # Calls and results that are sent again may be told by the message behind them, which is kept.
    in_sight = {row.position for message, row in pairs if message.id in kept}
    return [row for _, row in pairs if row.position not in in_sight]
