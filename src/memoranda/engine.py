"""The engine: one database, one embedder, the policies; everything else is reached through it."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Engine

from memoranda.db.database import Database
from memoranda.db.dialects.base import EngineOptions
from memoranda.db.schema import Tables
from memoranda.effects import Runner
from memoranda.embedders.space import VectorSpace
from memoranda.errors import ConfigurationError
from memoranda.persona import Persona
from memoranda.pipelines.context import Context, opened
from memoranda.policies import Policies
from memoranda.presets import resolve
from memoranda.protocols import Embedder
from memoranda.scope import Scope
from memoranda.text import Tokenizer

DEFAULT_URL = "sqlite:///memoranda.db"


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryEngine:
    """Long-term memory in one database.

    One engine serves plain code, threads, a running event loop, a second `asyncio.run` and a forked child.
    Nothing is opened before the first verb. A SQLite file is set up on first use; on Postgres call `setup` once, or
    run `memoranda db upgrade`.

    Args:
        url: `sqlite:///FILE`, `sqlite://` for memory, `postgresql://USER:PASSWORD@HOST/DATABASE`, or a SQLAlchemy
            `Engine` of your own, which stays yours and is never disposed. `MEMORANDA_URL`, else `memoranda.db` in the
            current folder, when left out.
        preset: `standard`, `journal`, `ledger`, `statements`, or policies of your own.
        embedder: `auto` (WordLlama where installed, else hashed words), `hash/words`, `wordllama`, `none`, or an object
            with the methods of `Embedder`. When left out `MEMORANDA_EMBEDDER`, else what the store was made with.
        timezone: The user's own, by its IANA name: it decides the `day` of a memory, and how a moment without an offset
            is read.
        language: The language words are stemmed in.
        schema: The Postgres schema the tables live in.
        synchronous: SQLite only: `normal` may lose the last commits in a power failure, `full` loses none.
        pool_size: How many transactions run at once.
        timeout: Seconds to wait for a connection or a lock.
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
        timezone: str = "UTC",
        language: str = "english",
        schema: str = "memoranda",
        synchronous: Literal["normal", "full"] = "normal",
        pool_size: int = 8,
        timeout: float = 30.0,
        clock: Callable[[], datetime] = _now,
    ) -> None:
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
        self._clock = clock
        self._space = VectorSpace(os.environ.get("MEMORANDA_EMBEDDER") if embedder is None else embedder)
        self._database = Database(
            url if url is not None else os.environ.get("MEMORANDA_URL") or DEFAULT_URL,
            schema=schema,
            options=EngineOptions(synchronous=synchronous, pool_size=pool_size, timeout=timeout),
        )
        self._runner = Runner(self._database, self._space)

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

    def _context(self, scope: Scope, policies: Policies) -> Context:
        return Context(
            scope=scope,
            policies=policies,
            tokenizer=self._tokenizer,
            zone=self._zone,
            clock=self._clock,
            space=self._space,
        )

    def setup(self) -> list[str]:
        """Create or upgrade the tables, and return the revisions that were applied; safe to call at every start.

        Raises:
            ExtensionMissing: Postgres lacks pgvector; says what to do.
            PermissionMissing: the database user may not create tables; says what to grant.
        """
        return self._database.setup()

    async def asetup(self) -> list[str]:
        """Async twin of `setup`."""
        return await self._database.asetup()

    def revision(self) -> str | None:
        """Return the revision of the tables, None when there are none."""
        return self._database.revision()

    async def arevision(self) -> str | None:
        """Async twin of `revision`."""
        return await self._database.arevision()

    def build_indexes(self) -> bool:
        """Build the approximate vector index where a scope is large enough for it to pay; True when there is one now.

        Takes a while on a large store and holds up no reader or writer. SQLite compares every vector and needs none.
        """
        self._runner.run(opened(self._context(Scope(), self._policies)))
        return self._database.outside(_build_indexes, self._space.model)

    async def abuild_indexes(self) -> bool:
        """Async twin of `build_indexes`."""
        await self._runner.arun(opened(self._context(Scope(), self._policies)))
        return await self._database.aoutside(_build_indexes, self._space.model)

    def close(self) -> None:
        """Give back every connection and thread; a SQLAlchemy engine of yours stays open."""
        self._database.close()

    async def aclose(self) -> None:
        """Async twin of `close`."""
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


def _build_indexes(conn: object, tables: Tables, model: str | None) -> bool:
    return model is not None and tables.dialect.build_vector_index(conn, tables, model)  # type: ignore[arg-type]
