"""How something is erased: first the rows, in one transaction, then every trace of them on the disk.

The second part may have to wait for readers of an older state. The ledger remembers that it is due: the next erasure
does it, `finish_erasures`, a job, and every engine when it is opened and, on a file, when it is closed.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import UUID

from sqlalchemy import Connection

from memoranda.db.dialects.base import Scrubbed
from memoranda.db.queries import erasure, jobs
from memoranda.db.queries.erasure import Target
from memoranda.db.schema import Tables
from memoranda.effects import Steps, outside, read, wake, write
from memoranda.errors import InvalidInput, MemorandaError, StoreBusy, StoreError
from memoranda.ids import parse
from memoranda.protocols import Clock
from memoranda.reports import Erased
from memoranda.scope import Scope, check_name, owner_of

if TYPE_CHECKING:
    from memoranda.db.dialects.base import Dialect
    from memoranda.embedders.space import VectorSpace

T = TypeVar("T")
Identifier: TypeAlias = UUID | str

_ATTEMPTS = 3  # a writer and an erasure may wait for each other, and the database gives one of them up
_PATIENCE = 2.0  # seconds a person waits for readers to end
_IN_PASSING = 0.1  # seconds that whoever opens or closes an engine does


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasing:
    """What erasing needs of an engine."""

    dialect: "Dialect"
    space: "VectorSpace"
    clock: Clock
    leaves_jobs: bool
    """Whether somebody does in the background what cannot be done at once."""

    def now(self) -> datetime:
        """Return the moment."""
        return self.clock().astimezone(UTC)

    def forget(self) -> None:
        """Let go of the texts and vectors this process remembers."""
        self.dialect.forget()
        if self.space.model is not None:
            self.space.embedder.forget()


def target_of(
    *, tenant: str, persona: str | None, user: str | None, about: str | None, memory: Identifier | None, chain: bool
) -> Target:
    """Return what a caller wants erased.

    Raises:
        InvalidInput: it is not exactly one thing, or a name cannot be one.
    """
    if sum(named is not None for named in (user, about, memory)) > 1:
        raise InvalidInput("erase takes one of memory, user and about, or persona alone")
    if chain and memory is None:
        raise InvalidInput("chain goes with memory only", field="chain")
    if persona is not None:
        check_name("persona", persona)
    if user is not None:
        scope = Scope(tenant=tenant, user=user)
        return Target(kind="user", tenant=scope.tenant, persona=persona, subject=user)
    Scope(tenant=tenant, user=owner_of(tenant))
    if about is not None:
        if not isinstance(about, str) or not about.strip():
            raise InvalidInput("about must be a subject such as person:ana", field="about")
        return Target(kind="about", tenant=tenant, persona=persona, subject=about)
    if persona is None:
        wanted = "say what to erase: a memory, a user, an about or a persona"
        raise InvalidInput(wanted if memory is None else "persona is missing: say whose memory it is", field="persona")
    if memory is None:
        return Target(kind="persona", tenant=tenant, persona=persona, subject=persona)
    identifier = parse(memory)
    if identifier is None:
        raise InvalidInput("memory must be an id or a short id", field="memory")
    return Target(kind="memory", tenant=tenant, persona=persona, subject=identifier, chain=chain)


def erase(erasing: Erasing, target: Target, dry_run: bool) -> Steps[Erased]:
    """Erase a target, or only count what would go."""
    if dry_run:
        found = yield from read(erasure.count, target)
        return Erased(memories=found.memories, rows=found.rows, dry_run=True)
    tally = yield from _persistently(lambda: write(erasure.erase, target, erasing.now()))
    erasing.forget()
    _, scrubbed = yield from _finish(erasing.clock, _PATIENCE)
    if scrubbed.obstacle is not None and erasing.leaves_jobs:
        yield from write(_leave_scrubbing)
        yield from wake(jobs.NOBODY)
    return Erased(
        memories=tally.memories,
        rows=tally.rows,
        pending=scrubbed.obstacle is not None,
        reason=scrubbed.obstacle,
        elsewhere=scrubbed.elsewhere if tally.rows else None,
    )


def reapply(erasing: Erasing) -> Steps[int]:
    """Erase again what came back, and return the number of rows."""
    rows = yield from _persistently(lambda: write(erasure.reapply, erasing.now()))
    erasing.forget()
    yield from _finish(erasing.clock, _PATIENCE)
    return rows


def finish(erasing: Erasing) -> Steps[Erased]:
    """Remove the traces of what was erased before."""
    waiting, scrubbed = yield from _finish(erasing.clock, _PATIENCE)
    return Erased(
        finished=0 if scrubbed.obstacle else waiting,
        pending=scrubbed.obstacle is not None,
        reason=scrubbed.obstacle,
        elsewhere=scrubbed.elsewhere,
    )


def finish_in_passing(clock: Clock) -> Steps[None]:
    """Do the same for whoever came for something else: without an error, and without a wait worth mentioning."""
    with suppress(MemorandaError):
        yield from _finish(clock, _IN_PASSING)


def _finish(clock: Clock, patience: float) -> Steps[tuple[int, Scrubbed]]:
    """Return how many erasures left traces, and what became of these."""
    waiting = yield from read(erasure.unfinished)
    if not waiting:
        return 0, Scrubbed()
    try:
        scrubbed = yield from outside(_scrub, patience)
        if scrubbed.obstacle is None:
            yield from write(erasure.finish, waiting, clock().astimezone(UTC))
    except StoreError as error:  # the rows are gone all the same, and the ledger knows what is left to do
        scrubbed = Scrubbed(obstacle=f"{str(error).rstrip('.')}; then run `memoranda erase --finish`")
    return len(waiting), scrubbed


def _leave_scrubbing(conn: Connection, tables: Tables) -> None:
    jobs.enqueue(conn, tables, jobs.NOBODY, jobs.SCRUB, {}, unique_key=jobs.SCRUB)


def _scrub(conn: Connection, tables: Tables, patience: float) -> Scrubbed:
    return tables.dialect.scrub(conn, tables, patience)


def _persistently(steps: Callable[[], Steps[T]]) -> Steps[T]:
    for _ in range(_ATTEMPTS - 1):
        with suppress(StoreBusy):
            return (yield from steps())
    return (yield from steps())
