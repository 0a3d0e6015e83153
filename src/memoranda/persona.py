"""A persona: the handle through which everything inside one scope is read and written."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from memoranda.collections import Collection
from memoranda.conversations import Conversation, Conversations
from memoranda.db.queries import store
from memoranda.effects import Runner, Steps, read
from memoranda.items import Items
from memoranda.knowledge import Knowledge
from memoranda.memories import Memories
from memoranda.pipelines import collecting, recalling
from memoranda.pipelines.context import Context, opened
from memoranda.policies import FloorPolicy
from memoranda.projects import Projects
from memoranda.record_keys import RecordKeys
from memoranda.records import Recall, RecallKind
from memoranda.reports import Statistics
from memoranda.scope import Scope, check_name
from memoranda.spaces import Spaces
from memoranda.user_model import UserModel

if TYPE_CHECKING:
    from typing import Unpack

    from memoranda.filters import RecallFields

T = TypeVar("T")


class Persona:
    """Everything one persona remembers, as the asking scope may see it.

    Made by `MemoryEngine.persona`. Cheap, immutable and safe to share between threads, tasks and event loops.
    """

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner) -> None:
        """Bind a scope to an engine's runner."""
        self._context = context
        self._runner = runner
        self.memories = Memories(context, runner)
        self.projects = Projects(context, runner)
        self.spaces = Spaces(context, runner)
        self.user_model = UserModel(context, runner)
        self.knowledge = Knowledge(context, runner)
        self.conversations = Conversations(context, runner)
        self.items = Items(context, runner)

    @property
    def scope(self) -> Scope:
        """The scope inside which this persona reads and writes."""
        return self._context.scope

    def __repr__(self) -> str:
        """Show the persona's name."""
        return f"<Persona {self.scope.persona!r}>"

    def scoped(
        self,
        *,
        project: str | None = None,
        space: str | None = None,
        agent: str | None = None,
        thread: str | None = None,
        people: list[str] | tuple[str, ...] | None = None,
    ) -> "Persona":
        """Return this persona inside a narrower scope; an axis that is left out stays as it is.

        Args:
            project: What new memories are tagged with, and what recall is narrowed to, beside rows without a project.
            space: Where new memories are learned, and the space whose memories come up beside those of none.
            agent: Who acts: memories about other agents do not come up.
            thread: Which thread is on: memories about other threads do not come up.
            people: Who is present: memories about other people do not come up.

        Raises:
            InvalidInput: a name is empty or too long.
        """
        axes: dict[str, Any] = {"project": project, "space": space, "agent": agent, "thread": thread, "people": people}
        scope = replace(self.scope, **{axis: value for axis, value in axes.items() if value is not None})
        return Persona(replace(self._context, scope=scope), self._runner)

    def conversation(self, name: str) -> Conversation:
        """Return the handle of a conversation; nothing is read or stored yet.

        Args:
            name: What it is called, such as the id of a thread. A conversation of another user's is another one; a
                narrower scope, and everybody who asks without a user, speaks in the same. What is taken from a message
                is stored in the scope it was said in.

        Raises:
            InvalidInput: the name is empty or too long.
        """
        check_name("conversation", name)
        return Conversation(self._context, self._runner, name)

    def collection(self, name: str, *, model: str | None = None) -> Collection:
        """Return the handle of a collection of nodes; nothing is read or stored yet.

        Args:
            name: What it is called; no document of the user's has the same name.
            model: What makes the vectors that come with its nodes and with the questions asked of it. When left out
                the store's embedder makes them. Vectors of two models are never compared.

        Raises:
            InvalidInput: a name is empty, too long, or looks like a secret.
        """
        return Collection(collecting.shelf(self._context, name, model), self._runner)

    def record_keys(self, namespace: str) -> RecordKeys:
        """Return the handle of what an indexer has noted under a name; nothing is read or stored yet.

        Raises:
            InvalidInput: the name is empty or too long.
        """
        check_name("namespace", namespace)
        return RecordKeys(self._context, self._runner, namespace)

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        kinds: Sequence[RecallKind] | None = None,
        floor: FloorPolicy | None = None,
        vector: Sequence[float] | None = None,
        **filters: "Unpack[RecallFields]",
    ) -> Recall:
        """Return the memories and the knowledge that answer a question, best first, or an abstention that says why not.

        Each kind is ranked and compared with the floor among its own; first in the one list stands what comes nearest
        to the best that its kind can reach. A new memory is found at once. An embedder that is down costs meaning, not
        the answer: it comes from words and says so in `degraded`. Where the engine has a reranker, this puts what was
        found in its own order, whatever the kind; a reranker that is down costs that order, and `degraded` says so too.

        Args:
            query: The question, in any words and script; nothing in it acts as an operator.
            limit: How many hits at most, 1..1,000; the preset's own number when left out.
            kinds: What is asked, of `memory` and `knowledge`; both when left out.
            floor: Another floor than the preset's, for this question only.
            vector: The question's vector by the store's own embedder, where it is at hand: nothing is embedded then.
            **filters: See `RecallFields`: `date`, `types`, `categories`, `project`, `as_of`, `include_inactive`, and
                `sources`. A kind that has nothing a filter could look at is not asked.

        Raises:
            InvalidInput: the limit, a kind, the vector or a filter cannot be used.
            StoreError: the database failed.
        """
        steps = recalling.recall(self._context, query, limit, filters, floor, kinds=kinds, vector=vector)
        return self._runner.run(steps)

    async def arecall(
        self,
        query: str,
        *,
        limit: int | None = None,
        kinds: Sequence[RecallKind] | None = None,
        floor: FloorPolicy | None = None,
        vector: Sequence[float] | None = None,
        **filters: "Unpack[RecallFields]",
    ) -> Recall:
        """Async twin of `recall`."""
        steps = recalling.recall(self._context, query, limit, filters, floor, kinds=kinds, vector=vector)
        return await self._runner.arun(steps)

    def stats(self) -> Statistics:
        """Return how much this scope holds, in numbers."""
        return self._runner.run(_statistics(self._context))

    async def astats(self) -> Statistics:
        """Async twin of `stats`."""
        return await self._runner.arun(_statistics(self._context))


def _statistics(context: Context) -> Steps[Statistics]:
    yield from opened(context)
    return (yield from read(store.statistics, context.setting(), context.space.model))
