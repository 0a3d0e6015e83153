"""Conversations: messages in order, the frozen block of the prompt, what is folded away and what is saved of it."""

import builtins
from collections.abc import Collection, Iterable, Sequence

from memoranda.effects import Runner
from memoranda.messages import ConversationRecord, Message, Prompt
from memoranda.messages.forms import Said
from memoranda.pipelines import compacting, conversing, extracting, prompting, reviewing, searching
from memoranda.pipelines.context import Context
from memoranda.policies import CompactionPolicy
from memoranda.protocols import LanguageModel
from memoranda.reports import Cleared, Compacted, Flushed, Found, Pending, Reviewed
from memoranda.scope import Scope


class Conversation:
    """One conversation of a persona with its user: made by `Persona.conversation`, stored with its first message.

    Messages are kept as they are given and in the order of the database. What is rendered for the prompt is another
    scope's never: each scope has a frozen block of its own.
    """

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner, name: str) -> None:
        """Bind a conversation's name to a scope and an engine's runner."""
        self._context = context
        self._runner = runner
        self._name = name

    @property
    def name(self) -> str:
        """What it is called, such as the id of a thread."""
        return self._name

    @property
    def scope(self) -> Scope:
        """The scope inside which it is read and written."""
        return self._context.scope

    def __repr__(self) -> str:
        """Show the name."""
        return f"<Conversation {self._name!r}>"

    # -- messages

    def append(self, messages: Said | Iterable[Said], *, new_ids: bool = False) -> list[Message]:
        """Add messages at the end, in order, and return them as they are stored; what is there already stays one.

        A message with an `id` is the one appended under it before, and says from now on what it says here: this is a
        transcript of what stands, not of how it came about. Its place, and what was extracted or summed up of it, stay
        as they are; a form that was replaced does not come back. Messages without an id are compared with the end of
        the conversation: where a batch begins with what the conversation ends with, only the rest is new.

        Args:
            messages: One message or several.
            new_ids: Whether who says all again may have given it other ids: what has an unknown one is then compared
                with the conversation, by what user and assistant said. It may go on from further back, where an answer
                is asked for anew or a question is put another way: what is there behind that stays. A single message
                is new, unless it is what the user said last and nobody has answered.

        Raises:
            InvalidInput: something is no message; nothing was stored.
            NotAllowed: the preset wants an author, and the scope has no user.
            StoreError: the database failed.
        """
        return self._runner.run(conversing.append(self._context, self._name, messages, new_ids))

    async def aappend(self, messages: Said | Iterable[Said], *, new_ids: bool = False) -> list[Message]:
        """Async twin of `append`."""
        return await self._runner.arun(conversing.append(self._context, self._name, messages, new_ids))

    def reconcile(self, messages: Iterable[Said]) -> list[Message]:
        """Make these the messages that no summary speaks for, and return them.

        The beginning that agrees stays as it is stored; what follows it and is not among them is removed, what is
        missing is added. Folded messages, and what was remembered of any, stay. A pending message that is not among
        them is folded, not removed, and a job is left to extract memories from what is pending.

        Raises:
            InvalidInput: something is no message; nothing was changed.
        """
        return self._runner.run(conversing.reconcile(self._context, self._name, messages))

    async def areconcile(self, messages: Iterable[Said]) -> list[Message]:
        """Async twin of `reconcile`."""
        return await self._runner.arun(conversing.reconcile(self._context, self._name, messages))

    def messages(self, *, limit: int | None = None, before: int | None = None, folded: bool = True) -> list[Message]:
        """Return the messages in their order; the newest ones, where there is a limit.

        Args:
            limit: How many at most; all of them when left out.
            before: Only those at positions before this one.
            folded: Whether those count that a summary speaks for.

        Raises:
            InvalidInput: an argument cannot be used.
        """
        return self._runner.run(conversing.messages(self._context, self._name, limit, before, folded))

    async def amessages(
        self, *, limit: int | None = None, before: int | None = None, folded: bool = True
    ) -> list[Message]:
        """Async twin of `messages`."""
        return await self._runner.arun(conversing.messages(self._context, self._name, limit, before, folded))

    def window(self, max_tokens: int) -> list[Message]:
        """Return the newest messages that fit, in their order: what a model is shown.

        System messages are kept, a call of a tool stays with its results, the first that is no system message is the
        user's, and the newest user message is there even where it alone is too long. Never raises because of what is
        stored. What a summary speaks for is left out.

        Raises:
            InvalidInput: `max_tokens` is no positive whole number.
        """
        return self._runner.run(conversing.window(self._context, self._name, max_tokens))

    async def awindow(self, max_tokens: int) -> list[Message]:
        """Async twin of `window`."""
        return await self._runner.arun(conversing.window(self._context, self._name, max_tokens))

    def size(self) -> int:
        """Return about how many tokens the messages have that are not folded."""
        return self._runner.run(conversing.size(self._context, self._name))

    async def asize(self) -> int:
        """Async twin of `size`."""
        return await self._runner.arun(conversing.size(self._context, self._name))

    def archive(self, messages: Sequence[Message | int]) -> list[Message]:
        """Fold messages without a summary, and return those that were not folded before: they are kept, and pending.

        Args:
            messages: Stored messages, or their positions.

        Raises:
            InvalidInput: one is neither.
        """
        return self._runner.run(conversing.archive(self._context, self._name, messages))

    async def aarchive(self, messages: Sequence[Message | int]) -> list[Message]:
        """Async twin of `archive`."""
        return await self._runner.arun(conversing.archive(self._context, self._name, messages))

    def remove(self, messages: Sequence[Message | int]) -> list[Message]:
        """Delete messages, folded or not, and return those that were there; what was remembered of them stays.

        Args:
            messages: Stored messages, or their positions.

        Raises:
            InvalidInput: one is neither.
        """
        return self._runner.run(conversing.remove(self._context, self._name, messages))

    async def aremove(self, messages: Sequence[Message | int]) -> list[Message]:
        """Async twin of `remove`."""
        return await self._runner.arun(conversing.remove(self._context, self._name, messages))

    def record(self) -> ConversationRecord | None:
        """Return how the conversation stands; None when nothing was said in it yet."""
        return self._runner.run(conversing.record(self._context, self._name))

    async def arecord(self) -> ConversationRecord | None:
        """Async twin of `record`."""
        return await self._runner.arun(conversing.record(self._context, self._name))

    def clear(self) -> Cleared:
        """Remove the messages, the summary, the frozen block and the count of turns, in one transaction.

        Memories, the user model and knowledge stay as they are. Positions go on where they were. Where a framework
        keeps the messages too, as a LangGraph checkpointer does, delete its thread as well: what it gives again is
        added again.
        """
        return self._runner.run(conversing.clear(self._context, self._name))

    async def aclear(self) -> Cleared:
        """Async twin of `clear`."""
        return await self._runner.arun(conversing.clear(self._context, self._name))

    # -- the prompt

    def system_block(self) -> str:
        """Return the frozen block of memories for the system prompt; empty when there was nothing to remember.

        It is rendered once for this conversation and scope, stored, and then the same bytes until a compaction, a
        clear, an erasure of one of its memories, the loss of a membership one of them was seen by, or a secret that is
        found in it.
        """
        return self._runner.run(prompting.system_block(self._context, self._name))

    async def asystem_block(self) -> str:
        """Async twin of `system_block`."""
        return await self._runner.arun(prompting.system_block(self._context, self._name))

    def user_model_block(self) -> str:
        """Return what is known of the user, fresh; empty when nothing is."""
        return self._runner.run(prompting.user_model_block(self._context))

    async def auser_model_block(self) -> str:
        """Async twin of `user_model_block`."""
        return await self._runner.arun(prompting.user_model_block(self._context))

    def turn_block(self, text: str | None = None) -> str:
        """Return the memories that are always in mind and those that a text brings up; fails no turn.

        Args:
            text: What is relevant to it; the newest user message when left out.
        """
        return self._runner.run(prompting.turn_block(self._context, self._name, text))

    async def aturn_block(self, text: str | None = None) -> str:
        """Async twin of `turn_block`."""
        return await self._runner.arun(prompting.turn_block(self._context, self._name, text))

    def prompt(self, text: str | None = None) -> Prompt:
        """Return everything that is put before a model, the part that never changes first, with token counts.

        Args:
            text: What the turn is about; the newest user message when left out.
        """
        return self._runner.run(prompting.prompt(self._context, self._name, text))

    async def aprompt(self, text: str | None = None) -> Prompt:
        """Async twin of `prompt`."""
        return await self._runner.arun(prompting.prompt(self._context, self._name, text))

    def instructions(self) -> str:
        """Return the guidance for an agent: what to save at once, where each kind belongs, and what never to save."""
        return self._runner.run(prompting.instructions(self._context))

    async def ainstructions(self) -> str:
        """Async twin of `instructions`."""
        return await self._runner.arun(prompting.instructions(self._context))

    # -- folding

    def compact(self, policy: CompactionPolicy | None = None, model: LanguageModel | None = None) -> Compacted:
        """Fold the oldest messages into the summary, after saving what they hold of lasting value.

        One call of the model extracts memories from exactly the messages to be folded, a second one writes the summary;
        a failure of the first never stops the second, and leaves the messages pending. Folded messages are kept, and
        can be read and searched. The frozen block ends with it.

        Args:
            policy: Another policy than the persona's.
            model: Another model than the engine's.

        Returns:
            What was done; `folded` is 0 when there was nothing to fold or the summary failed, and `problem` says why.
        """
        return self._runner.run(compacting.compact(self._context, self._name, policy, model))

    async def acompact(self, policy: CompactionPolicy | None = None, model: LanguageModel | None = None) -> Compacted:
        """Async twin of `compact`."""
        return await self._runner.arun(compacting.compact(self._context, self._name, policy, model))

    def pending(self, messages: Sequence[Message | str | int] | None = None) -> Pending:
        """Mark messages that have left a model's sight, and return what is pending now.

        A job extracts memories from them once they reach `CompactionPolicy.flush_min_tokens`.

        Args:
            messages: The messages, their ids or their positions; nothing is marked when left out.
        """
        return self._runner.run(extracting.pending(self._context, self._name, messages))

    async def apending(self, messages: Sequence[Message | str | int] | None = None) -> Pending:
        """Async twin of `pending`."""
        return await self._runner.arun(extracting.pending(self._context, self._name, messages))

    def out_of_sight(self, in_sight: Collection[str]) -> Pending:
        """Mark as `pending` does every message that has an id and is not among these; return what is pending now.

        System messages and those that were folded, or from which something was extracted, are left as they are.

        Args:
            in_sight: The ids of the messages that a model sees.

        Raises:
            InvalidInput: something is no id.
        """
        return self._runner.run(extracting.out_of_sight(self._context, self._name, in_sight))

    async def aout_of_sight(self, in_sight: Collection[str]) -> Pending:
        """Async twin of `out_of_sight`."""
        return await self._runner.arun(extracting.out_of_sight(self._context, self._name, in_sight))

    def flush(self) -> Flushed:
        """Extract memories from the pending messages now, with one call of the model."""
        return self._runner.run(extracting.flush(self._context, self._name))

    async def aflush(self) -> Flushed:
        """Async twin of `flush`."""
        return await self._runner.arun(extracting.flush(self._context, self._name))

    def review(self) -> Reviewed:
        """Look through the newest messages now, with one call of the model, and apply what it is sure of."""
        return self._runner.run(reviewing.review(self._context, self._name))

    async def areview(self) -> Reviewed:
        """Async twin of `review`."""
        return await self._runner.arun(reviewing.review(self._context, self._name))

    def turn_done(self) -> bool:
        """Count a turn of the user's whose reply was delivered; True when it left a job to review the conversation."""
        return self._runner.run(extracting.turn_done(self._context, self._name))

    async def aturn_done(self) -> bool:
        """Async twin of `turn_done`."""
        return await self._runner.arun(extracting.turn_done(self._context, self._name))

    def end_session(self) -> bool:
        """Leave a job to extract what is pending, however little; True when there was something."""
        return self._runner.run(extracting.end_session(self._context, self._name))

    async def aend_session(self) -> bool:
        """Async twin of `end_session`."""
        return await self._runner.arun(extracting.end_session(self._context, self._name))


class Conversations:
    """The conversations of a scope."""

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner) -> None:
        """Bind a scope to an engine's runner."""
        self._context = context
        self._runner = runner

    def list(self, *, limit: int | None = None) -> builtins.list[ConversationRecord]:
        """Return the conversations, the one with the newest message first.

        Args:
            limit: How many at most, 1..1,000; 100 when left out.
        """
        return self._runner.run(conversing.listed(self._context, limit))

    async def alist(self, *, limit: int | None = None) -> builtins.list[ConversationRecord]:
        """Async twin of `list`."""
        return await self._runner.arun(conversing.listed(self._context, limit))

    def names(self) -> builtins.list[str]:
        """Return the name of every conversation that has messages, the oldest first."""
        return self._runner.run(conversing.names(self._context))

    async def anames(self) -> builtins.list[str]:
        """Async twin of `names`."""
        return await self._runner.arun(conversing.names(self._context))

    def search(self, text: str, *, limit: int | None = None, around: int = 1) -> builtins.list[Found]:
        """Return past messages that hold the words of a text, best first, each with the turns beside it.

        Args:
            text: What to look for; nothing in it acts as an operator.
            limit: How many at most, 1..1,000; the preset's own number when left out.
            around: How many messages before and after each are given, 0..10.

        Raises:
            InvalidInput: an argument cannot be used.
        """
        return self._runner.run(searching.search(self._context, text, limit, around))

    async def asearch(self, text: str, *, limit: int | None = None, around: int = 1) -> builtins.list[Found]:
        """Async twin of `search`."""
        return await self._runner.arun(searching.search(self._context, text, limit, around))
