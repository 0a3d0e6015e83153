"""What every pipeline of a persona needs, and the steps that open a store."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection

from memoranda.db.queries import jobs, store
from memoranda.db.queries.store import EMBEDDER, WORDS
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.effects import Steps, read, wake, write
from memoranda.embedders.space import VectorSpace
from memoranda.errors import ConfigurationError, EmbedderUnavailable, NotAllowed
from memoranda.models.checked import CheckedModel
from memoranda.pipelines import erasing
from memoranda.pipelines.embedding import in_halves
from memoranda.pipelines.means import means_of
from memoranda.policies import Policies
from memoranda.protocols import Clock, Purpose
from memoranda.ranking.floors import SETTING
from memoranda.rerankers import CheckedReranker
from memoranda.scope import Scope
from memoranda.text import TERMS_VERSION, Tokenizer

if TYPE_CHECKING:
    from memoranda.effects import MaybeVectors

_TO_COME = "its vector is made in the background"
_MOVED = "the store has moved to another embedder since this engine was opened: open it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Scope and policies of a persona, and what it shares with its engine."""

    scope: Scope
    policies: Policies
    tokenizer: Tokenizer
    zone: tzinfo
    clock: Clock
    space: VectorSpace
    leaves_jobs: bool = False
    """Whether somebody does in the background what cannot be done at once."""
    model: CheckedModel = field(default_factory=lambda: CheckedModel(None))
    """The language model, or the absence of one; it is asked through `memoranda.effects.complete`."""
    reranker: CheckedReranker | None = None
    """What orders the answers of a recall, asked through `memoranda.effects.rerank`; None for our own order."""

    def setting(self) -> Setting:
        """Return everything a draft or a query depends on, at this moment."""
        return Setting(
            scope=self.scope,
            policies=self.policies,
            tokenizer=self.tokenizer,
            zone=self.zone,
            now=self.clock().astimezone(UTC),
            leaves_jobs=self.leaves_jobs and self.space.configured,
        )

    def writing(self) -> Setting:
        """Return the setting of a write.

        Raises:
            NotAllowed: the preset wants every row to have an author, and the scope has no user.
        """
        if self.policies.visibility.author == "required" and self.scope.user is None:
            raise NotAllowed(
                "This preset records who wrote each memory: name the user with engine.persona(..., user=...), or set "
                "MEMORANDA_USER on the command line."
            )
        return self.setting()


def opened(context: Context) -> Steps[None]:
    """Learn from the store how it was made; a new store is made as the caller says.

    Raises:
        EmbedderMismatch: its vectors were made by another embedder than the one the caller chose.
        ConfigurationError: its words were indexed in another language.
    """
    space = context.space
    if space.settled:
        return
    made = yield from settled(context)
    space.settle(made[EMBEDDER], made.get(SETTING))
    yield from erasing.finish_in_passing(context.clock)
    if context.leaves_jobs and (yield from read(jobs.any_waiting, means_of(context))):
        yield from wake(passing=True)


def settled(context: Context) -> Steps[dict[str, Any]]:
    """Return the settings of the store; a new one is made as the caller says.

    Raises:
        ConfigurationError: its words were indexed in another language, or by another release.
    """
    words = {"language": context.tokenizer.language, "version": TERMS_VERSION}
    made = yield from read(store.settings)
    if not {EMBEDDER, WORDS} <= made.keys():
        made = yield from write(store.settle, {EMBEDDER: context.space.proposed, WORDS: words})
    if made[WORDS]["language"] != words["language"]:
        raise ConfigurationError(
            f"This store's words were indexed in {made[WORDS]['language']}: open it with that language."
        )
    if made[WORDS]["version"] != TERMS_VERSION:
        raise ConfigurationError("This store's words were indexed by another release: open it with that one.")
    return made


def is_current(conn: Connection, tables: Tables, model: str | None) -> bool:
    """Say whether the store still goes by a model."""
    return moved(store.settings(conn, tables).get(EMBEDDER), model) is None


def moved(embedder: Any, model: str | None) -> str | None:
    """Return what to say where the store's embedder is another one than made the vectors at hand."""
    return None if embedder == model else _MOVED


def vectors_of(
    context: Context, texts: Sequence[str], purpose: Purpose, *, asked: bool = False, checked: bool = True
) -> "Steps[tuple[MaybeVectors, str | None]]":
    """Return a vector a text, or None a text, and why there are none or why they find less than they should.

    Args:
        context: Whose embedder.
        texts: What to embed.
        purpose: Why.
        asked: Whether somebody waits for the answer to a question, which must come whatever the embedder does.
        checked: Whether to look if the store still goes by the embedder's model; else the transaction that compares the
            vectors does.
    """
    if context.space.model is None:
        return [None] * len(texts), context.space.problem
    stored = purpose == "text" and not asked
    comparing = stored and context.policies.dedupe.compares
    later = context.leaves_jobs and context.space.configured and context.space.deferred
    if stored and later and not comparing:
        return [None] * len(texts), _TO_COME
    waits_for: Literal["compare", "store", "question"] = "question" if asked else "compare" if comparing else "store"
    try:
        seconds = context.policies.timeout.seconds(len(texts), waits_for)
        vectors, refused = yield from in_halves(texts, purpose, seconds)
        if refused is not None or waits_for == "store" or not checked:
            return vectors, None if refused is None else str(refused)
        made = yield from read(store.settings)
        return vectors, moved(made.get(EMBEDDER), context.space.model)
    except EmbedderUnavailable as error:
        return [None] * len(texts), str(error)
    except ConfigurationError as error:
        if stored:
            raise  # a memory is not stored with a vector missing that only a mistake keeps away
        return [None] * len(texts), str(error)
