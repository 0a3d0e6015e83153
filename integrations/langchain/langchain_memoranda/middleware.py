"""Memory for `create_agent`: what a model is shown, what is kept of the turn, and what is saved before it is lost."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal, NamedTuple
from weakref import WeakKeyDictionary

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from langchain_memoranda import running_tools
from langchain_memoranda.messages import all_to_memoranda, is_summary, said, to_memoranda
from langchain_memoranda.scopes import Memory, NameOf, ScopeResolver, is_sub_agent
from langchain_memoranda.sight import uncleared, watching
from langchain_memoranda.streams import TRANSFORMERS
from langchain_memoranda.tools import memory_tools
from memoranda.conversations import Conversation
from memoranda.messages import Message, Prompt

_AT_HAND = 1_000
"""Conversations of which it is known what was recorded; of others everything is offered to the store once more."""
_IDS_AT_HAND = 1_000
"""Ids that are known of a conversation; four times as many as its state has messages, where that is more."""


class MemoryMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Gives an agent long-term memory: its block in the prompt, its tools, its transcript, and the flush.

    The block of memories is frozen for each conversation and follows the caller's system prompt as a content block of
    its own, so that the prefix a provider caches stays the same, byte for byte. Messages are recorded by their ids when
    the agent begins, and before and after each call of the model; what has left the model's sight since, whoever
    trimmed or summarised it, is looked through by a job of the engine. No text of the memory is put into the graph's
    state.

    Put it behind middleware that replaces the system prompt, such as `dynamic_prompt`, and before one that marks the
    prompt for caching. Where several are on one agent, give each its `name`, and tools to one.

    Args:
        memory: Whose memory it is: an engine, a persona, or a function from the run's `Runtime` to a persona; see
            `langchain_memoranda.scopes` for where an engine looks for names.
        persona: The persona where the run names none; of an engine only.
        conversation: The conversation's name, or a function from the run's `Runtime` to it; the run's own
            `conversation` or `thread_id` when left out.
        tenant: The tenant, or a function from the run's `Runtime` to it; of an engine only.
        tools: Whether the agent gets the tools of the memory, or which of them.
        root: The folder whose files an agent may take in; texts only when left out.
        instructions: Whether the prompt holds the engine's guidance on what to save and where.
        concatenate: Whether the block is joined to the text of the system prompt: for providers that take no list.
            Content with a picture stays a list.
        record: Whether messages are recorded; an agent that a tool runs records nothing anyway, unless the tool runs it
            in a thread that knows nothing of the tool's context.
        flush: `job` leaves it to the engine's worker to look through what left the model's sight; `inline` does it at
            once when a summariser has rewritten the state, which costs the turn a call of the engine's model.
        name: Tells two of them apart on one agent.
    """

    transformers: ClassVar[Sequence[Any]] = TRANSFORMERS  # type: ignore[misc]

    def __init__(
        self,
        memory: Memory,
        *,
        persona: str = "main",
        conversation: NameOf | None = None,
        tenant: NameOf | None = None,
        tools: bool | Iterable[str] = True,
        root: str | Path | None = None,
        instructions: bool = True,
        concatenate: bool = False,
        record: bool = True,
        flush: Literal["job", "inline"] = "job",
        name: str = "MemoryMiddleware",
    ) -> None:
        super().__init__()
        running_tools.watch()
        self._scopes = ScopeResolver(memory, persona, conversation, tenant)
        self._instructions = instructions
        self._concatenate = concatenate
        self._records = record
        self._inline = flush == "inline"
        self._name = name
        self._transcripts = _Transcripts()
        names = None if isinstance(tools, bool) else tuple(tools)
        self.tools = []
        if tools:
            self.tools = memory_tools(memory, persona=persona, tenant=tenant, names=names, root=root)

    @property
    def name(self) -> str:
        """What tells it apart."""
        return self._name

    # -- the transcript

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Record what came in, before any summariser sees it."""
        if self._keeps(runtime):
            self._record(self._scopes.conversation_of(runtime), state["messages"])

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Record what came in, before any summariser sees it."""
        if self._keeps(runtime):
            await self._arecord(self._scopes.conversation_of(runtime), state["messages"])

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Record what tools have answered."""
        self.before_agent(state, runtime)

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Record what tools have answered."""
        await self.abefore_agent(state, runtime)

    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Record what the model said."""
        self.before_agent(state, runtime)

    async def aafter_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Record what the model said."""
        await self.abefore_agent(state, runtime)

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Count the turn: its reply is delivered."""
        if self._keeps(runtime):
            chat = self._scopes.conversation_of(runtime)
            self._record(chat, state["messages"])
            chat.turn_done()

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Count the turn: its reply is delivered."""
        if self._keeps(runtime):
            chat = self._scopes.conversation_of(runtime)
            await self._arecord(chat, state["messages"])
            await chat.aturn_done()

    def _keeps(self, runtime: Runtime[Any]) -> bool:
        """Say whether what is said in a run belongs to the conversation."""
        return self._records and not is_sub_agent(runtime)

    def _record(self, chat: Conversation, messages: Sequence[BaseMessage]) -> None:
        if edited := self._transcripts.edited(chat, messages):
            self._transcripts.add(chat, edited.given, chat.append(edited.to_store), len(messages))
        if new := self._transcripts.new(chat, messages):
            stored = chat.append(all_to_memoranda(new.given), new_ids=new.may_be_there)
            self._transcripts.add(chat, new.given, stored, len(messages))

    async def _arecord(self, chat: Conversation, messages: Sequence[BaseMessage]) -> None:
        if edited := self._transcripts.edited(chat, messages):
            self._transcripts.add(chat, edited.given, await chat.aappend(edited.to_store), len(messages))
        if new := self._transcripts.new(chat, messages):
            stored = await chat.aappend(all_to_memoranda(new.given), new_ids=new.may_be_there)
            self._transcripts.add(chat, new.given, stored, len(messages))

    # -- the prompt

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model what is remembered, and note what it does not see any more."""
        chat = self._scopes.conversation_of(request.runtime)
        if self._keeps(request.runtime):
            state = request.state["messages"]
            self._record(chat, state)  # the request may hold what nobody said
            chat.out_of_sight(self._transcripts.ids(chat, uncleared(request.messages, state)))
            if self._inline and self._transcripts.is_rewritten(chat, request.messages):
                chat.flush()
        shown = self._shown(request, chat.prompt(_newest_said(request.messages)))
        if not self._keeps(request.runtime):
            return handler(shown)
        with watching() as sight:
            response = handler(shown)
        # Middleware behind this one may have shown less.
        if len(seen := sight.of(request.messages, response.result)) < len(request.messages):
            chat.out_of_sight(self._transcripts.ids(chat, seen))
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Show the model what is remembered, and note what it does not see any more."""
        chat = self._scopes.conversation_of(request.runtime)
        if self._keeps(request.runtime):
            state = request.state["messages"]
            await self._arecord(chat, state)
            await chat.aout_of_sight(self._transcripts.ids(chat, uncleared(request.messages, state)))
            if self._inline and self._transcripts.is_rewritten(chat, request.messages):
                await chat.aflush()
        shown = self._shown(request, await chat.aprompt(_newest_said(request.messages)))
        if not self._keeps(request.runtime):
            return await handler(shown)
        with watching() as sight:
            response = await handler(shown)
        if len(seen := sight.of(request.messages, response.result)) < len(request.messages):
            await chat.aout_of_sight(self._transcripts.ids(chat, seen))
        return response

    def _shown(self, request: ModelRequest[Any], prompt: Prompt) -> ModelRequest[Any]:
        """Return the request with the parts of the prompt where they belong."""
        # The state's messages are the conversation here, a summary of them included.
        prompt = replace(prompt, summary="", instructions=prompt.instructions if self._instructions else "")
        shown = request
        empty: str | list[str | dict[Any, Any]] = "" if self._concatenate else []
        if prompt.ahead:
            system = request.system_message or SystemMessage(content=empty)
            shown = shown.override(system_message=self._with(system, prompt.ahead))
        if prompt.behind:
            # Behind what the user said last: a tool's results must follow their calls at once. Where a summary has
            # taken its place it stands at the end: in the system prompt it would change what a provider has cached.
            messages = list(request.messages)
            if (place := _last_human(messages)) is None:
                place = len(messages)
                messages.append(HumanMessage(content=empty))
            messages[place] = self._with(messages[place], prompt.behind)
            shown = shown.override(messages=messages)
        return shown

    def _with(self, message: Any, parts: Sequence[str]) -> Any:
        """Return a copy of a message with texts behind its content."""
        content = message.content
        if self._concatenate and _is_text(content):
            return message.model_copy(update={"content": "\n\n".join(filter(None, [str(message.text), *parts]))})
        given = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content)
        return message.model_copy(update={"content": [*given, *({"type": "text", "text": part} for part in parts)]})


class _Recorded(NamedTuple):
    """A message that is in the store."""

    id: str | None
    """That under which the store has it: a run without a checkpointer gives new ones to what is said again."""
    form: int | None
    """What it said then, see `_form`; None of one that the store tells by the message behind it, such as a result."""


class _New(NamedTuple):
    """Messages that may not be in the store yet."""

    given: list[BaseMessage]
    may_be_there: bool
    """Whether the store may have them under other ids; a single one behind others that are recorded is new."""


class _Edited(NamedTuple):
    """Messages that do not say what they said when they were recorded."""

    given: list[BaseMessage]
    to_store: list[Message]
    """The same under the ids that the store knows."""


@dataclass(slots=True)
class _Transcript:
    """What is known of a conversation's messages in the store."""

    recorded: dict[str, _Recorded] = field(default_factory=dict)
    """By the ids that runs gave to them, the oldest first."""
    summaries: set[str | None] = field(default_factory=set)
    """The summaries that were seen."""


class _Transcripts:
    """Which messages are in the store, so that a turn sends only what is new."""

    def __init__(self) -> None:
        # By the engine, of which each has one runner: names alone are the same in another database.
        self._by_engine: WeakKeyDictionary[Any, OrderedDict[tuple[str, ...], _Transcript]] = WeakKeyDictionary()
        self._lock = Lock()

    def new(self, chat: Conversation, messages: Iterable[BaseMessage]) -> _New | None:
        """Return the messages that were said and may not be in the store yet: the end, or all where it is not clear."""
        spoken = said(messages)
        with self._lock:
            recorded = self._of(chat).recorded
            fresh = [message.id not in recorded for message in spoken]
        if True not in fresh:
            return None
        first = fresh.index(True)
        given = spoken[first:] if all(fresh[first:]) else spoken
        return _New(given, len(given) > 1 or first == 0)

    def edited(self, chat: Conversation, messages: Iterable[BaseMessage]) -> _Edited | None:
        """Return the messages that do not say what they said when they were recorded; None where all do."""
        with self._lock:
            recorded = self._of(chat).recorded
            found = [
                (message, known.id)
                for message in said(messages)
                if message.id and (known := recorded.get(message.id)) and known.form not in (None, _form(message))
            ]
        if not found:
            return None
        return _Edited([given for given, _ in found], [replace(to_memoranda(given), id=id) for given, id in found])

    def add(self, chat: Conversation, messages: Sequence[BaseMessage], stored: Sequence[Message], state: int) -> None:
        """Remember under which ids messages are stored, but not for ever: `state` is how many there are in all."""
        with self._lock:
            recorded = self._of(chat).recorded
            behind = [*(kept.position for kept in stored[1:]), None]
            for given, kept, next_position in zip(messages, stored, behind, strict=True):
                if given.id:
                    recorded.pop(given.id, None)
                    is_other = kept.position == next_position
                    recorded[given.id] = _Recorded(None, None) if is_other else _Recorded(kept.id, _form(given))
            # Without a checkpointer each run gives new ids to the whole history.
            for id in list(islice(recorded, max(0, len(recorded) - max(_IDS_AT_HAND, 4 * state)))):
                del recorded[id]

    def ids(self, chat: Conversation, messages: Iterable[BaseMessage]) -> list[str]:
        """Return the ids under which the store has messages."""
        with self._lock:
            recorded = self._of(chat).recorded
            known = [recorded.get(message.id, _Recorded(message.id, 0)) for message in messages if message.id]
        return [one.id for one in known if one.id]

    def is_rewritten(self, chat: Conversation, messages: Iterable[BaseMessage]) -> bool:
        """Say whether a summariser has put its words in place of messages since the last time."""
        with self._lock:
            seen, now = self._of(chat).summaries, {message.id for message in messages if is_summary(message)}
            is_new = not now <= seen
            seen |= now
            return is_new

    def _of(self, chat: Conversation) -> _Transcript:
        scope = chat.scope
        key = (scope.tenant, scope.persona, scope.author, chat.name)
        by_conversation = self._by_engine.setdefault(chat._runner, OrderedDict())
        transcript = by_conversation.setdefault(key, _Transcript())
        by_conversation.move_to_end(key)
        while len(by_conversation) > _AT_HAND:
            by_conversation.popitem(last=False)
        return transcript


def _form(message: BaseMessage) -> int:
    """Return a digest of what the store tells messages apart by; of this process only."""
    calls = [getattr(message, name, None) for name in ("tool_calls", "invalid_tool_calls", "tool_call_id")]
    try:
        return hash(repr((message.type, message.content, message.name, calls)))
    except (ValueError, RecursionError):  # a number of thousands of digits, or an argument that contains itself
        return hash((message.type, str(message.text)))


def _is_text(content: str | Sequence[Any]) -> bool:
    """Say whether content can be one text: a picture cannot."""
    return isinstance(content, str) or all(isinstance(part, str) or part.get("type") == "text" for part in content)


def _newest_said(messages: Sequence[BaseMessage]) -> str:
    place = _last_human(messages)
    return "" if place is None else str(messages[place].text)


def _last_human(messages: Sequence[AnyMessage | BaseMessage]) -> int | None:
    human = (i for i in range(len(messages) - 1, -1, -1) if messages[i].type == "human" and not is_summary(messages[i]))
    return next(human, None)
