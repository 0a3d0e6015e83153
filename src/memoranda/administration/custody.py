"""Custody: data that leaves a store or comes into it as a whole, and data that is to be gone for good."""

import os
from pathlib import Path
from uuid import UUID

from memoranda.administration.parts import EngineParts
from memoranda.pipelines import erasing, moving
from memoranda.pipelines.erasing import Erasing
from memoranda.pipelines.moving import Place
from memoranda.protocols import Progress
from memoranda.reports import Erased, Exported, Imported


class Custody(EngineParts):
    """Answers for what a store holds."""

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
        return Erasing(
            dialect=self._database.dialect, space=self._space, clock=self._clock, leaves_jobs=self._leaves_jobs
        )

    @property
    def _leaves_a_file(self) -> bool:
        # A server is not asked: whoever closes must not wait for one that is down.
        return self._database.is_used and self._database.dialect.traces() == "file" and not self._database.is_absent

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
        return self._runner.run(moving.import_from(self._everything(), path, vectors, progress))

    async def aimport_from(self, path: Place, *, vectors: bool = True, progress: Progress | None = None) -> Imported:
        """Async twin of `import_from`."""
        context = self._everything()
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
