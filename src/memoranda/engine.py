"""The engine: one database, one embedder, the policies; everything else is reached through it."""

import asyncio
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Engine

from memoranda.db.database import Database
from memoranda.db.dialects.base import EngineOptions
from memoranda.db.queries import jobs
from memoranda.db.schema import Tables
from memoranda.effects import Runner, Steps, read
from memoranda.embedders.space import VectorSpace
from memoranda.errors import ConfigurationError
from memoranda.jobs import Background, BackgroundMode
from memoranda.persona import Persona
from memoranda.pipelines import calibrating, diagnosing, erasing, moving, recalling, reembedding, working
from memoranda.pipelines.context import Context, opened
from memoranda.pipelines.erasing import Erasing
from memoranda.pipelines.moving import Place
from memoranda.policies import JobPolicy, Policies
from memoranda.presets import resolve
from memoranda.protocols import Embedder, Progress
from memoranda.records import Calibration, Diagnosis, Erased, Exported, Imported, Job
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
        embedder: `auto` (WordLlama where installed, else hashed words), `hash/words`, `wordllama`,
            `openai/MODEL[@DIMENSIONS]` (of the service that `OPENAI_BASE_URL` and `OPENAI_API_KEY` name), `none`, or an
            object with the methods of `Embedder`. When left out `MEMORANDA_EMBEDDER`, else what the store was made
            with, unless that sends texts out: such a one is always named.
        timezone: The user's own, by its IANA name: it decides the `day` of a memory, and how a moment without an offset
            is read.
        language: The language words are stemmed in.
        schema: The Postgres schema the tables live in.
        synchronous: SQLite only: `normal` may lose the last commits in a power failure, `full` loses none.
        pool_size: How many transactions run at once.
        timeout: Seconds to wait for a connection or a lock.
        background: Who does what a write leaves for later, such as embedding: `thread`, one of this process's own;
            `inline`, the call itself before it returns; `external`, a `memoranda worker`; `off`, nobody, and nothing
            is left.
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
        self._clock = clock
        self._space = VectorSpace((os.environ.get("MEMORANDA_EMBEDDER") or None) if embedder is None else embedder)
        self._database = Database(
            url if url is not None else os.environ.get("MEMORANDA_URL") or DEFAULT_URL,
            schema=schema,
            options=EngineOptions(synchronous=synchronous, pool_size=pool_size, timeout=timeout),
        )
        self._runner = Runner(self._database, self._space)
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

    def _context(self, scope: Scope, policies: Policies) -> Context:
        return Context(
            scope=scope,
            policies=policies,
            tokenizer=self._tokenizer,
            zone=self._zone,
            clock=self._clock,
            space=self._space,
            leaves_jobs=self._leaves_jobs,
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

    def calibrate(
        self,
        *,
        tenant: str = "",
        persona: str = "main",
        user: str | None = None,
        sample: int = 200,
        apply: bool = False,
        progress: Progress | None = None,
    ) -> Calibration:
        """Measure on a persona's own memories from which confidence on a question counts as answered.

        Asks for a sample of them in some of their own words, with the memory there and without it, and proposes the
        floor that still answers 95 % of the first. No language model is called; the embedder is.

        Args:
            tenant: Whose data it is.
            persona: Whose memories are sampled.
            user: Who asks.
            sample: How many memories to ask for at most, 30..10,000.
            apply: Record the floor for the whole store, as long as it keeps its embedder. Policies that leave a value
                to measurement use it from then on, an engine that is open elsewhere once it is opened anew.
            progress: Is called with how many of how many questions have been asked.

        Raises:
            InvalidInput: fewer than 30 memories can be asked for, or an argument cannot be used.
            EmbedderUnavailable: the store's embedder gives no vectors.
        """
        context = self._context(Scope(persona=persona, tenant=tenant, user=user), self._policies)
        return self._runner.run(calibrating.calibrate(context, sample, apply, progress))

    async def acalibrate(
        self,
        *,
        tenant: str = "",
        persona: str = "main",
        user: str | None = None,
        sample: int = 200,
        apply: bool = False,
        progress: Progress | None = None,
    ) -> Calibration:
        """Async twin of `calibrate`."""
        context = self._context(Scope(persona=persona, tenant=tenant, user=user), self._policies)
        return await self._runner.arun(calibrating.calibrate(context, sample, apply, progress))

    def erase(
        self,
        *,
        tenant: str = "",
        persona: str | None = None,
        user: str | None = None,
        about: str | None = None,
        memory: UUID | str | None = None,
        chain: bool = False,
        dry_run: bool = False,
    ) -> Erased:
        """Erase for good: rows, versions, sources, vectors and index terms, and every trace of them on the disk.

        Give one of `memory`, `user` and `about`, or `persona` alone. It is for the person who answers for the data, and
        stands on the engine only: no persona, and so no agent, can reach it. Nothing outside tenant and persona
        changes. What was replaced by an erased memory keeps its status and loses the link. A ledger remembers what was
        erased, by a digest and not by name, for `reapply_erasures`.

        A SQLite file is written anew, which takes as long as copying it, needs that much room, holds up writers, and
        may give rows of a host's own tables without an integer key other row numbers; a reader of an older state makes
        the answer `pending`. On Postgres the tables are vacuumed; its write-ahead log, replicas and backups are beyond
        reach, and free space in its files is written over in time. Copies of a file, and what other running processes
        hold in memory, are beyond reach too.

        Args:
            tenant: Whose data it is; a user's own when `user` is given without it.
            persona: Inside which persona; every one of the tenant when left out.
            user: Every row this user wrote, and their memberships.
            about: Every memory about this subject, such as `person:ana`.
            memory: One memory of `persona`, by its id or short id.
            chain: With `memory`: also everything it replaced, and everything that replaced it.
            dry_run: Only count what would go.

        Raises:
            InvalidInput: it is not exactly one thing to erase, or a name cannot be one.
            StoreError: the database failed; nothing was erased.
        """
        target = erasing.target_of(tenant=tenant, persona=persona, user=user, about=about, memory=memory, chain=chain)
        return self._runner.run(erasing.erase(self._erasing(), target, dry_run))

    async def aerase(
        self,
        *,
        tenant: str = "",
        persona: str | None = None,
        user: str | None = None,
        about: str | None = None,
        memory: UUID | str | None = None,
        chain: bool = False,
        dry_run: bool = False,
    ) -> Erased:
        """Async twin of `erase`."""
        target = erasing.target_of(tenant=tenant, persona=persona, user=user, about=about, memory=memory, chain=chain)
        return await self._runner.arun(erasing.erase(self._erasing(), target, dry_run))

    def finish_erasures(self) -> Erased:
        """Remove the traces that earlier erasures had to leave, now that nothing may stand in the way any more."""
        return self._runner.run(erasing.finish(self._erasing()))

    async def afinish_erasures(self) -> Erased:
        """Async twin of `finish_erasures`."""
        return await self._runner.arun(erasing.finish(self._erasing()))

    def reapply_erasures(self) -> int:
        """Erase again what an import brought back, and return the number of rows; what is newer than its erasure stays.

        Traces that cannot be removed yet are left for `finish_erasures`.
        """
        return self._runner.run(erasing.reapply(self._erasing()))

    async def areapply_erasures(self) -> int:
        """Async twin of `reapply_erasures`."""
        return await self._runner.arun(erasing.reapply(self._erasing()))

    def _erasing(self) -> Erasing:
        return Erasing(dialect=self._database.dialect, space=self._space, clock=self._clock)

    @property
    def _leaves_a_file(self) -> bool:
        # A server is not asked: whoever closes must not wait for one that is down.
        return self._database.is_used and self._database.dialect.traces() == "file" and not self.is_new

    def check(self) -> str | None:
        """Ask the embedder for one vector, so that a wrong one fails the start and not a conversation.

        Returns:
            The store's model as `name@dimensions`, None where it goes by words only.

        Raises:
            EmbedderUnavailable: the embedder does not answer.
            ConfigurationError: it gives vectors of another length, or is not the one the store was made with.
            StoreError: the database cannot be used.
        """
        return self._runner.run(working.check(self._everything()))

    async def acheck(self) -> str | None:
        """Async twin of `check`."""
        return await self._runner.arun(working.check(self._everything()))

    def backfill(self) -> int:
        """Have every memory of the store, whoever's, embedded that was stored without a vector.

        Returns:
            How many memories jobs were left for; those that are in one already do not count again.

        Raises:
            EmbedderUnavailable: there is no embedder.
        """
        return self._runner.run(working.backfill(self._everything()))

    async def abackfill(self) -> int:
        """Async twin of `backfill`."""
        return await self._runner.arun(working.backfill(self._everything()))

    def reembed(self, *, prune: bool = False, progress: Progress | None = None) -> int:
        """Move the store to the embedder this engine was opened with, while recall goes on with the old one.

        The new vectors are written beside the old; when every memory has one, reads switch at once. A run that is
        interrupted goes on where it was. Engines that were opened before go on with the old vectors until they are
        opened anew; `prune` deletes these.

        Args:
            prune: Whether to delete the old vectors at the end.
            progress: Told after each page how many are done, and of how many.

        Returns:
            How many memories were embedded.

        Raises:
            ConfigurationError: no embedder was named when the engine was opened.
            EmbedderUnavailable: the embedder failed; run it again.
        """
        return self._runner.run(reembedding.reembed(self._everything(), prune, progress))

    async def areembed(self, *, prune: bool = False, progress: Progress | None = None) -> int:
        """Async twin of `reembed`."""
        return await self._runner.arun(reembedding.reembed(self._everything(), prune, progress))

    def drain(self, *, timeout: float = 60.0, progress: Progress | None = None) -> int:
        """Do every job that can be begun now, here, and wait for those that another worker is at.

        Args:
            timeout: Seconds to wait for the others.
            progress: Told after each job how many are done, and of how many.

        Returns:
            How many jobs wait for later, because an attempt failed; see `jobs`.
        """
        return self._runner.run(self._background.drain(timeout, progress))

    async def adrain(self, *, timeout: float = 60.0, progress: Progress | None = None) -> int:
        """Async twin of `drain`."""
        return await self._runner.arun(self._background.drain(timeout, progress))

    def jobs(self, *, limit: int = 100) -> list[Job]:
        """Return what is left to be done and what was given up, whoever's, the oldest first."""
        return self._runner.run(self._jobs(limit))

    async def ajobs(self, *, limit: int = 100) -> list[Job]:
        """Async twin of `jobs`."""
        return await self._runner.arun(self._jobs(limit))

    def _jobs(self, limit: int) -> Steps[list[Job]]:
        return (yield from read(jobs.listed, recalling.checked_limit(limit, limit)))

    def retry_jobs(self) -> int:
        """Have every job tried again that was given up, and return how many there are."""
        return self._runner.run(working.revive(self._everything()))

    async def aretry_jobs(self) -> int:
        """Async twin of `retry_jobs`."""
        return await self._runner.arun(working.revive(self._everything()))

    def work(self, stop: threading.Event) -> None:
        """Do jobs in this thread, whoever leaves them, until told to stop: what `memoranda worker` runs.

        Args:
            stop: Set it, from a signal's handler for instance, and the job that is being done is the last.
        """
        self._background.run(stay=True, stop=stop)

    async def awork(self, stop: threading.Event) -> None:
        """Async twin of `work`."""
        await asyncio.to_thread(self._background.run, stay=True, stop=stop)

    def _everything(self) -> Context:
        """Return the context of what is nobody's in particular."""
        return self._context(Scope(), self._policies)

    def export_to(
        self,
        path: Place,
        *,
        tenant: str | None = None,
        persona: str | None = None,
        vectors: bool = True,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write every row of the store to a file of JSON lines, as they are at one moment.

        `memoranda.archive` describes the format. Who may see what is not asked: the file holds everything, private
        memories and what was deleted or replaced among it, so keep it as you keep the database. It is readable for
        its owner only, and has its name once it is complete. Writers go on meanwhile.

        Args:
            path: Where to write; compressed where the name ends in `.gz`. Or a file that is open for bytes.
            tenant: Only this tenant's rows.
            persona: Only the rows of personas of this name.
            vectors: Whether vectors are taken along; without them whoever imports has to embed the memories again.
            overwrite: Whether a file of this name is replaced.
            progress: Is called with how many of how many rows are written, in the thread that writes.

        Raises:
            InvalidInput: the file is there already, its folder is not, or a name cannot be one.
            StoreError: the database failed, or the file could not be written.
        """
        return self._runner.run(moving.export_to(path, tenant, persona, vectors, overwrite, progress))

    async def aexport_to(
        self,
        path: Place,
        *,
        tenant: str | None = None,
        persona: str | None = None,
        vectors: bool = True,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Async twin of `export_to`."""
        return await self._runner.arun(moving.export_to(path, tenant, persona, vectors, overwrite, progress))

    def import_from(self, path: Place, *, vectors: bool = True, progress: Progress | None = None) -> Imported:
        """Take in every row of an exported file that is not there yet: all of them or, if anything is wrong, none.

        Rows that the store has under the same key are left alone. A memory whose short id is taken gets a new one, and
        one that says the same as another is kept beside it. Words are indexed anew where the file's language or release
        was another one. A new store is made with the file's embedder, unless this engine was given one. What was erased
        here before is erased again; the file's own ledger of erasures comes along into an empty store only.

        All of it is stored in one transaction: on SQLite other writers wait for it. Who may write what is not asked.

        Args:
            path: The file, compressed or not, or one that is open for bytes.
            vectors: Whether the file's vectors are taken in.
            progress: Is called with how many of how many bytes of a file are read, in the thread that reads.

        Raises:
            InvalidInput: the file is not there, not whole, or holds what the store does not take; names the line.
            ConfigurationError: the file's vectors were made by another embedder than the store's.
            StoreError: the database failed.
        """
        return self._runner.run(moving.import_from(self._context(Scope(), self._policies), path, vectors, progress))

    async def aimport_from(self, path: Place, *, vectors: bool = True, progress: Progress | None = None) -> Imported:
        """Async twin of `import_from`."""
        context = self._context(Scope(), self._policies)
        return await self._runner.arun(moving.import_from(context, path, vectors, progress))

    def backup(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> Path:
        """Copy a SQLite store to a file while it is in use, and return its path; the copy has passed SQLite's checks.

        It is a database of its own: to restore, put it in the place of the old file while nobody uses that. It holds
        everything in the file, a host's own tables among it, and is readable for its owner only.

        Args:
            path: A file that is not there yet.
            progress: Is called with how many of how many pages are copied, in the thread that copies.

        Raises:
            InvalidInput: the file is there already, or its folder is not.
            ConfigurationError: the store is on Postgres; names pg_dump.
            StoreError: the copy could not be written, or is damaged as the store is.
        """
        return self._runner.run(moving.backup(path, progress))

    async def abackup(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> Path:
        """Async twin of `backup`."""
        return await self._runner.arun(moving.backup(path, progress))

    def doctor(self) -> Diagnosis:
        """Examine the whole store, whoever's rows they are, and say what should be seen to and what helps.

        Reads every page of a SQLite file, and lets its writers wait while the text index is compared with the table.
        Nothing is changed; tables that are missing or of another release are reported and left as they are.

        Raises:
            StoreError: the database cannot be reached, or is too damaged to be read.
        """
        name, revision = self._database.dialect.name, self.revision()
        return self._runner.run(diagnosing.diagnose(self._context(Scope(), self._policies), name, revision))

    async def adoctor(self) -> Diagnosis:
        """Async twin of `doctor`."""
        name, revision = self._database.dialect.name, await self.arevision()
        return await self._runner.arun(diagnosing.diagnose(self._context(Scope(), self._policies), name, revision))

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
        if self._leaves_a_file:
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


def _build_indexes(conn: object, tables: Tables, model: str | None) -> bool:
    return model is not None and tables.dialect.build_vector_index(conn, tables, model)  # type: ignore[arg-type]
