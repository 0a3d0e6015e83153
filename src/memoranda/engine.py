"""The engine: one database, one embedder, the policies; everything else is reached through it."""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Engine

from memoranda.administration.custody import Custody
from memoranda.administration.upkeep import Upkeep
from memoranda.db.database import Database
from memoranda.db.dialects.base import EngineOptions
from memoranda.effects import Runner
from memoranda.embedders.space import VectorSpace
from memoranda.errors import ConfigurationError
from memoranda.jobs import Background, BackgroundMode
from memoranda.models import resolve_model
from memoranda.models.checked import CheckedModel
from memoranda.persona import Persona
from memoranda.pipelines import erasing
from memoranda.policies import JobPolicy, Policies
from memoranda.presets import resolve
from memoranda.protocols import Embedder, LanguageModel, Reranker
from memoranda.rerankers import CheckedReranker
from memoranda.scope import Scope
from memoranda.text import Tokenizer

DEFAULT_URL = "sqlite:///memoranda.db"


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryEngine(Upkeep, Custody):
    """Long-term memory in one database.

    One engine serves plain code, threads, a running event loop, a second `asyncio.run` and a forked child.
    Nothing is opened before the first verb. A SQLite file is set up on first use; on Postgres call `setup` once, or
    run `memoranda db upgrade`.

    Args:
        url: `sqlite:///FILE`, `sqlite://` for memory, `postgresql://USER:PASSWORD@HOST/DATABASE`, or a SQLAlchemy
            `Engine` of your own, which stays yours, is never disposed, and whose events see what is read (on one that
            an address names the driver is asked directly, which costs less). `MEMORANDA_URL`, else `memoranda.db` in
            the current folder, when left out.
        preset: `standard`, `journal`, `ledger`, `statements`, or policies of your own.
        embedder: `auto` (WordLlama where installed, else hashed words), `hash/words`, `wordllama`,
            `openai/MODEL[@DIMENSIONS]` (of the service that `OPENAI_BASE_URL` and `OPENAI_API_KEY` name), `none`, or an
            object with the methods of `Embedder`. When left out `MEMORANDA_EMBEDDER`, else what the store was made
            with, unless that sends texts out: such a one is always named.
        model: The language model that extracts, reviews and summarises: `openai/MODEL`, `ollama/MODEL`, `command`,
            `none`, or an object with the methods of `LanguageModel`. When left out what `MEMORANDA_LLM_BACKEND` and its
            companions name, else none: everything but these three works without.
        reranker: What puts the answers of a recall in order, `relevant` and the tools of an agent included: an object
            with `name` and `score`, see `memoranda.protocols.Reranker`. It is shown more than is asked for, as the
            `RerankPolicy` says, and only what the scope may see; where it fails or takes too long our own order stands,
            and the answer says `degraded`. Abstentions, and the searches of messages, items and collections, which have
            an order of their own to keep, do without it. When left out there is none.
        timezone: The user's own, by its IANA name: it decides the `day` of a memory, and how a moment without an offset
            is read.
        language: The language words are stemmed in.
        schema: The Postgres schema the tables live in.
        synchronous: SQLite only: `normal` may lose the last commits in a power failure, `full` loses none.
        pool_size: How many transactions run at once.
        timeout: Seconds to wait for a connection or a lock.
        background: Who does what a write leaves for later, such as embedding: `thread`, one of this process's own;
            `inline`, the call itself before it returns, for its own persona and no longer than the job policy says;
            `external`, a `memoranda worker`; `off`, nobody, and nothing is left.
        job_policy: How jobs are tried.
        clock: What tells the time; for tests.

    Raises:
        ConfigurationError: an argument cannot be used.
        ExtraMissing: an optional dependency is needed; names it.
    """

    _memoranda_handle = True

    def __init__(
        self,
        url: str | Engine | None = None,
        *,
        preset: str | Policies = "standard",
        embedder: str | Embedder | None = None,
        model: str | LanguageModel | None = None,
        reranker: Reranker | None = None,
        timezone: str = "UTC",
        language: str = "english",
        schema: str = "memoranda",
        synchronous: Literal["normal", "full"] = "normal",
        pool_size: int = 8,
        timeout: float = 30.0,
        background: BackgroundMode = "thread",
        job_policy: JobPolicy | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        if background not in get_args(BackgroundMode):
            raise ConfigurationError(f"background must be one of {', '.join(get_args(BackgroundMode))}")
        if synchronous not in ("normal", "full"):
            raise ConfigurationError("synchronous must be normal or full")
        if pool_size < 1 or timeout <= 0:
            raise ConfigurationError("pool_size and timeout must be positive")
        try:
            self._zone = ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, TypeError):
            raise ConfigurationError(
                f"unknown time zone {timezone!r}: use an IANA name such as Europe/Lisbon"
            ) from None
        self._policies = resolve(preset)
        self._tokenizer = Tokenizer(language)
        self._tokenizer.load()
        self._clock = clock
        self._space = VectorSpace((os.environ.get("MEMORANDA_EMBEDDER") or None) if embedder is None else embedder)
        self._database = Database(
            url if url is not None else os.environ.get("MEMORANDA_URL") or DEFAULT_URL,
            schema=schema,
            options=EngineOptions(synchronous=synchronous, pool_size=pool_size, timeout=timeout),
        )
        self._model = CheckedModel(resolve_model(model))
        self._reranker = None if reranker is None else CheckedReranker(reranker)
        self._runner = Runner(self._database, self._space, self._model)
        self._leaves_jobs = background != "off"
        self._background = self._runner.background = Background(
            background, self._runner, self._everything, job_policy or JobPolicy()
        )

    def __repr__(self) -> str:
        """Show the kind of database, never its address."""
        return f"<MemoryEngine on {self._database.dialect.name}>"

    @property
    def is_new(self) -> bool:
        """Whether the first verb would create the database: there is no such file yet."""
        return self._database.is_absent

    def persona(
        self, name: str = "main", *, tenant: str = "", user: str | None = None, preset: str | Policies | None = None
    ) -> Persona:
        """Return the handle of a persona; nothing is read or stored yet.

        Args:
            name: Which persona: memories of one are never seen by another.
            tenant: Whose data it is. A user without a tenant is a tenant of their own.
            user: Who asks and writes. Without a user only rows without an author are seen.
            preset: Other policies than the engine's.

        Raises:
            InvalidInput: a name is empty or too long.
            ConfigurationError: the preset is unknown.
        """
        scope = Scope(persona=name, tenant=tenant, user=user)
        policies = self._policies if preset is None else resolve(preset)
        return Persona(self._context(scope, policies), self._runner)

    def close(self) -> None:
        """Give back every connection and thread; a SQLAlchemy engine of yours stays open.

        Jobs that were not begun are done by whoever opens the store next.
        """
        self._background.close()
        if self._leaves_a_file:
            self._runner.run(erasing.finish_in_passing(self._clock))
        self._database.close()

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await asyncio.to_thread(self._background.close)
        if await asyncio.to_thread(lambda: self._leaves_a_file):  # it looks at the disk
            await self._runner.arun(erasing.finish_in_passing(self._clock))
        await self._database.aclose()

    def __enter__(self) -> Self:
        """Return the engine."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the engine."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the engine."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the engine."""
        await self.aclose()
