"""What every pipeline of a persona needs, and the steps that open a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from memoranda.db.queries import jobs, store
from memoranda.drafts import Setting
from memoranda.effects import Steps, embed, read, wake, write
from memoranda.embedders.space import VectorSpace
from memoranda.errors import ConfigurationError, EmbedderUnavailable, NotAllowed
from memoranda.pipelines import erasing
from memoranda.policies import Policies
from memoranda.protocols import Clock, Purpose
from memoranda.ranking.floors import SETTING
from memoranda.scope import Scope
from memoranda.text import TERMS_VERSION, Tokenizer

if TYPE_CHECKING:
    from memoranda.effects import VectorList

_TO_COME = "its vector is made in the background"
EMBEDDER, _WORDS = "embedder", "words"
"""Names of settings."""


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
    if context.leaves_jobs and space.configured and (yield from read(jobs.any_waiting)):
        yield from wake(passing=True)


def settled(context: Context) -> Steps[dict[str, Any]]:
    """Return the settings of the store; a new one is made as the caller says.

    Raises:
        ConfigurationError: its words were indexed in another language, or by another release.
    """
    words = {"language": context.tokenizer.language, "version": TERMS_VERSION}
    made = yield from read(store.settings)
    if not {EMBEDDER, _WORDS} <= made.keys():
        made = yield from write(store.settle, {EMBEDDER: context.space.proposed, _WORDS: words})
    if made[_WORDS]["language"] != words["language"]:
        raise ConfigurationError(
            f"This store's words were indexed in {made[_WORDS]['language']}: open it with that language."
        )
    if made[_WORDS]["version"] != TERMS_VERSION:
        raise ConfigurationError("This store's words were indexed by another release: open it with that one.")
    return made


def _compares(policies: Policies) -> bool:
    return policies.dedupe.name in ("novelty", "same")


def vectors_of(
    context: Context, texts: Sequence[str], purpose: Purpose
) -> "Steps[tuple[VectorList | list[None], str | None]]":
    """Return a vector a text, or None a text and why there are none."""
    if context.space.model is None:
        return [None] * len(texts), context.space.problem
    later = context.leaves_jobs and context.space.configured and context.space.deferred
    if purpose == "text" and later and not _compares(context.policies):
        return [None] * len(texts), _TO_COME
    try:
        return (yield from embed(texts, purpose)), None
    except EmbedderUnavailable as error:
        return [None] * len(texts), str(error)
    except ConfigurationError as error:
        if purpose == "text":
            raise  # a memory is not stored with a vector missing that only a mistake keeps away
        return [None] * len(texts), str(error)
