"""Upkeep: tables and indexes, the embedder and its vectors, jobs, the floor, a look at everything."""

import asyncio
import threading

from memoranda.administration.parts import EngineParts
from memoranda.db.queries import jobs
from memoranda.db.schema import Tables
from memoranda.effects import Steps, read
from memoranda.errors import InvalidInput
from memoranda.pipelines import calibrating, diagnosing, recalling, reembedding
from memoranda.pipelines.context import opened
from memoranda.protocols import Progress
from memoranda.reports import Calibration, Diagnosis, Job
from memoranda.scope import Scope


class Upkeep(EngineParts):
    """Keeps a store in order."""

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
        self._runner.run(opened(self._everything()))
        return self._database.outside(_build_indexes, self._space.model)

    async def abuild_indexes(self) -> bool:
        """Async twin of `build_indexes`."""
        await self._runner.arun(opened(self._everything()))
        return await self._database.aoutside(_build_indexes, self._space.model)

    def check(self) -> str | None:
        """Ask the embedder for one vector, and the reranker for scores, so that a wrong one fails the start.

        Returns:
            The store's model as `name@dimensions`, None where it goes by words only.

        Raises:
            EmbedderUnavailable: the embedder does not answer.
            RerankerUnavailable: the reranker does not, or gives no scores that can be used.
            ConfigurationError: the embedder gives vectors of another length, or is not the one the store was made with.
            StoreError: the database cannot be used.
        """
        return self._runner.run(diagnosing.check(self._everything()))

    async def acheck(self) -> str | None:
        """Async twin of `check`."""
        return await self._runner.arun(diagnosing.check(self._everything()))

    def backfill(self) -> int:
        """Have every memory of the store, whoever's, embedded that was stored without a vector.

        Returns:
            How many memories jobs were left for; those that are in one already do not count again.

        Raises:
            EmbedderUnavailable: there is no embedder.
        """
        return self._runner.run(self._background.backfill())

    async def abackfill(self) -> int:
        """Async twin of `backfill`."""
        return await self._runner.arun(self._background.backfill())

    def reembed(self, *, prune: bool = False, progress: Progress | None = None) -> int:
        """Move the store to the embedder this engine was opened with, while recall goes on with the old one.

        The new vectors are written beside the old; when every memory has one, reads switch at once. A run that is
        interrupted goes on where it was. A text that the embedder refuses is left in a job that is given up: see
        `jobs(kind="embed")`. Engines that were opened before go on with the old vectors, and say
        `degraded`, until they are opened anew; `prune` deletes these. What they write meanwhile gets its new vectors by
        `backfill`.

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

    def jobs(self, *, kind: str | None = None, limit: int = 100) -> list[Job]:
        """Return what is left to be done and what was given up, whoever's, the oldest first.

        Args:
            kind: `embed`, `flush`, `review` or `scrub`; all when left out.
            limit: How many at most, to 1,000.

        Raises:
            InvalidInput: an argument cannot be used.
        """
        return self._runner.run(self._jobs(kind, limit))

    async def ajobs(self, *, kind: str | None = None, limit: int = 100) -> list[Job]:
        """Async twin of `jobs`."""
        return await self._runner.arun(self._jobs(kind, limit))

    def _jobs(self, kind: str | None, limit: int) -> Steps[list[Job]]:
        if kind is not None and kind not in jobs.KINDS:
            raise InvalidInput(f"kind must be one of {', '.join(sorted(jobs.KINDS))}", field="kind")
        return (yield from read(jobs.listed, recalling.checked_limit(limit, limit), kind))

    def retry_jobs(self) -> int:
        """Have every job tried again that was given up, and return how many there are."""
        return self._runner.run(self._background.revive())

    async def aretry_jobs(self) -> int:
        """Async twin of `retry_jobs`."""
        return await self._runner.arun(self._background.revive())

    def work(self, stop: threading.Event) -> None:
        """Do jobs in this thread, whoever leaves them, until told to stop: what `memoranda worker` runs.

        Args:
            stop: Set it, from a signal's handler for instance, and the job that is being done is the last.
        """
        self._background.run(stop)

    async def awork(self, stop: threading.Event) -> None:
        """Async twin of `work`."""
        cancelled = threading.Event()
        working = asyncio.create_task(asyncio.to_thread(self._background.run, stop, cancelled))
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.shield(working)
            raise

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

    def doctor(self) -> Diagnosis:
        """Examine the whole store, whoever's rows they are, and say what should be seen to and what helps.

        Reads every page of a SQLite file, and lets its writers wait while the text index is compared with the table.
        Nothing is changed; tables that are missing or of another release are reported and left as they are.

        Raises:
            StoreError: the database cannot be reached, or is too damaged to be read.
        """
        name, revision = self._database.dialect.name, self.revision()
        return self._runner.run(diagnosing.diagnose(self._everything(), name, revision))

    async def adoctor(self) -> Diagnosis:
        """Async twin of `doctor`."""
        name, revision = self._database.dialect.name, await self.arevision()
        return await self._runner.arun(diagnosing.diagnose(self._everything(), name, revision))


def _build_indexes(conn: object, tables: Tables, model: str | None) -> bool:
    return model is not None and tables.dialect.build_vector_index(conn, tables, model)  # type: ignore[arg-type]
