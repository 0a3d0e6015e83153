"""How jobs are done: claimed persona by persona, tried, and struck off in the transaction that does their work."""

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection

from memoranda import telemetry
from memoranda.db.queries import erasure, jobs, vectors
from memoranda.db.queries.jobs import Claim, Means
from memoranda.db.queries.vectors import Owner
from memoranda.db.schema import Tables
from memoranda.effects import Steps, apart, leased, pause, read, wake, write
from memoranda.errors import (
    ConfigurationError,
    EmbedderRefused,
    EmbedderUnavailable,
    ModelRefused,
    ModelUnavailable,
    StoreBusy,
    StoreError,
)
from memoranda.pipelines import erasing, extracting, reviewing
from memoranda.pipelines.context import Context, is_current, opened
from memoranda.pipelines.embedding import Embedded, TextsRefused, embedded
from memoranda.pipelines.means import means_of
from memoranda.policies import JobPolicy
from memoranda.protocols import Progress

_log = logging.getLogger("memoranda.jobs")
_LOOK_AGAIN = 0.05  # seconds between two looks at jobs that another worker holds
_LONGEST_ATTEMPT = 3_600.0  # seconds in which a worker renews the lease of a job: it may hang
_REST = 600.0  # seconds in which a service that refuses every call is left alone
_NEVER_ENDED = "It was begun and never ended: its process died each time."
_BEYOND = (
    "It was left by a persona with policies of its own, which the workers so far do not know: open an engine with them "
    "as `preset`, or call `flush` and `review` on the conversation."
)


@dataclass(kw_only=True)
class Worker:
    """Who does jobs."""

    name: str
    """As leases name it."""
    policy: JobPolicy
    resting: dict[str, float] = field(default_factory=dict)
    """Kinds of jobs that are left alone, because a service refuses every call, and until when by `time.monotonic`."""

    def rests(self) -> dict[str, float]:
        """Return the kinds that are left alone at this moment, and for how many seconds."""
        now = time.monotonic()
        return {kind: until - now for kind, until in self.resting.items() if until > now}


def work(
    context: Context,
    worker: Worker,
    *,
    owner: tuple[str, str] | None = None,
    progress: Progress | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Steps[int]:
    """Do every job that can be begun now, in turns: one of each persona, then the next of each.

    Args:
        context: The whole store's.
        worker: Who does them.
        owner: The tenant and persona whose jobs are done; everybody's when left out.
        progress: Told after each job.
        stopping: Says when it is time to stop: then no other is begun.

    Returns:
        How many were begun.

    Raises:
        StoreError: the database failed; the jobs that were held are tried again when their leases end.
    """
    yield from opened(context)
    yield from _tell_what_is_beyond(context)
    begun, more = 0, True
    while more and not stopping():
        more = False
        means = yield from _means(context, worker)
        for whose in (yield from read(jobs.owners_due, means)) if owner is None else [owner]:
            if stopping() or (job := (yield from write(jobs.claim, whose, means, worker.name, worker.policy))) is None:
                continue
            begun, more = begun + 1, True
            yield from _tried(context, worker, job)
            means = yield from _means(context, worker)  # the store may have moved, or a service refuse every call
            if progress is not None:
                progress(begun, begun + (yield from read(jobs.count_running_or_due, means)))
    return begun


def drain(context: Context, worker: Worker, timeout: float, progress: Progress | None) -> Steps[int]:
    """Do every job that can be begun, wait for those another worker holds, and return how many wait for later.

    Only those count that this process has the means for.
    """
    waited = 0.0
    while True:
        yield from work(context, worker, progress=progress)
        means = yield from _means(context, worker)
        if not (yield from read(jobs.count_running_or_due, means)) or waited >= timeout:
            return (yield from read(jobs.count, (yield from _means(context))))
        yield from pause(_LOOK_AGAIN)
        waited += _LOOK_AGAIN


def next_look(context: Context, worker: Worker) -> Steps[float | None]:
    """Return in how many seconds there will be something to do, None when nothing waits."""
    due = yield from read(jobs.seconds_until_due, (yield from _means(context, worker)))
    if (rests := worker.rests()) and (yield from read(jobs.any_waiting, (yield from _means(context)))):
        return min(rests.values() if due is None else (due, *rests.values()))
    return due


def backfill(context: Context) -> Steps[int]:
    """Leave jobs for every memory and chunk of the store that has no vector and is in none yet; return how many."""
    yield from opened(context)
    model = context.space.model
    if model is None:
        raise EmbedderUnavailable(context.space.problem or "This store goes by words only: it has no embedder.")
    found = 0
    for owner in (yield from read(vectors.owners)):
        found += yield from write(_enqueue_missing, owner, model)
    if found:
        yield from wake()
    return found


def revive(context: Context) -> Steps[int]:
    """Let every job be tried again that was given up."""
    found = yield from write(jobs.revive)
    if found:
        yield from wake()
    return found


def _enqueue_missing(conn: Connection, tables: Tables, owner: Owner, model: str) -> int:
    whose = (owner.tenant, owner.persona)
    tables.dialect.advise_lock(conn, "\x1f".join(("memoranda:backfill", *whose)))
    jobs.forget_failed(conn, tables, whose, jobs.EMBED)
    known = jobs.being_embedded(conn, tables, whose)
    ids = [identifier for identifier in vectors.missing_ids(conn, tables, owner, model) if identifier not in known]
    jobs.enqueue_embedding(conn, tables, whose, ids, owner.kind)
    return len(ids)


def _means(context: Context, worker: Worker | None = None) -> Steps[Means]:
    """Return what this process can do, or what a worker does of it at this moment.

    An embedder that the store has moved away from would make vectors nobody looks at.
    """
    means = means_of(context)
    if jobs.EMBED in means.kinds and not (yield from read(is_current, context.space.model)):
        means = means.without((jobs.EMBED,))
    return means if worker is None else means.without(worker.rests())


def _tell_what_is_beyond(context: Context) -> Steps[None]:
    """Say of jobs why this process leaves them alone, where it is not what anybody can see: once for each."""
    means = means_of(context)
    if (yield from read(jobs.any_beyond, means)):
        for id, kind in (yield from write(jobs.tell_beyond, means, _BEYOND)):
            _log.warning("job %s (%s) is left alone: %s", id, kind, _BEYOND)


def _tried(context: Context, worker: Worker, job: Claim) -> Steps[None]:
    policy, identity = worker.policy, telemetry.job(job.id, job.kind, job.attempts)
    if job.attempts > policy.attempts:
        yield from _given_up(job, _NEVER_ENDED, job.attempts - 1, identity)
        return
    until = time.monotonic() + _LONGEST_ATTEMPT
    try:
        yield from leased(
            apart(_performed(context, job), identity),
            policy.lease_seconds / 3,
            lambda: _renewed(job, policy, until),
            lambda: write(jobs.give_back, job),
        )
    except jobs.Lost:
        _log_lost(job, identity)
    except (EmbedderRefused, ModelRefused, ConfigurationError) as error:
        if _refuses_every_call(error):
            worker.resting[job.kind] = time.monotonic() + _REST
        yield from _given_up(job, str(error), job.attempts, identity)
    except Exception as error:
        told = isinstance(error, EmbedderUnavailable | ModelUnavailable | StoreError)
        said = str(error) if told else type(error).__name__
        if job.attempts >= policy.attempts:
            yield from _given_up(job, said, job.attempts, identity)
            return
        delay = max(policy.delay(job.attempts, random.random()), getattr(error, "retry_after", None) or 0.0)
        if (yield from write(jobs.postpone, job, delay, said)):
            message = "job %s (%s) failed, next attempt in %.0f s: %s"
            _log.warning(message, job.id, job.kind, delay, said, extra=identity)
        else:
            _log_lost(job, identity)
    else:
        _log.info("job %s (%s) is done", job.id, job.kind, extra=identity)


def _renewed(job: Claim, policy: JobPolicy, until: float) -> Steps[bool]:
    return time.monotonic() < until and (yield from write(jobs.renew, job, policy))


def _refuses_every_call(error: Exception) -> bool:
    if isinstance(error, ModelRefused):
        return error.refuses_caller
    return isinstance(error, EmbedderRefused) and not isinstance(error, TextsRefused)


def _given_up(job: Claim, said: str, attempts: int, identity: telemetry.Attributes) -> Steps[None]:
    # Told once it is stored: a database that was closed or is gone keeps the job as it is, to be begun again.
    if (yield from write(jobs.fail, job, said, attempts)):
        _log.error("job %s (%s) was given up after %d attempts: %s", job.id, job.kind, attempts, said, extra=identity)
    else:
        _log_lost(job, identity)


def _log_lost(job: Claim, identity: telemetry.Attributes) -> None:
    _log.warning("job %s (%s) is left to another worker", job.id, job.kind, extra=identity)


def _performed(context: Context, job: Claim) -> Steps[int]:
    """Do what a job asks for, and return how many rows it was about.

    Raises:
        Lost: the job is another worker's.
    """
    return (yield from _HANDLERS[job.kind](context, job))


def _embed(context: Context, job: Claim) -> Steps[int]:
    model = context.space.embedder.model
    owner = Owner(job.payload.get("kind", "memory"), job.tenant, job.persona)  # jobs of old name no kind
    ids = [UUID(hex=identifier) for identifier in job.payload["ids"]]
    made = yield from embedded((yield from read(vectors.missing, owner, model, ids)))
    filled, held = yield from write(_fill, job, made, model)
    if filled < len(made.rows):
        context.space.embedder.forget()  # a text that was erased meanwhile must not stay in memory
    if not held:
        raise jobs.Lost
    if made.error is not None:
        # What no service refused may be a service's answer that could not be read: that may pass.
        raise EmbedderUnavailable(str(made.error)) if made.error.texts else made.error
    return filled


def _fill(conn: Connection, tables: Tables, job: Claim, made: Embedded, model: str) -> tuple[int, bool]:
    """Store vectors and strike the job off, all but the rows that were refused; says whether the job was held."""
    if not is_current(conn, tables, model):
        jobs.give_back(conn, tables, job)
        return 0, False
    if made.refused:
        refused = [row.id.hex for row in made.refused]
        held = jobs.narrow(conn, tables, job, {**job.payload, "ids": refused})
    else:
        held = jobs.finish(conn, tables, job)
    # Vectors that come after the lease ended are as good as any: whoever has the job now need not make them. A text
    # that changed meanwhile left a job of its own.
    return vectors.fill(conn, tables, made.rows, made.vectors, model), held


def _scrub(context: Context, job: Claim) -> Steps[int]:
    """Remove what erasures had to leave on the disk, which is tried again while a reader stands in the way."""
    yield from erasing.finish_in_passing(context.clock)
    if (yield from read(erasure.unfinished)):
        raise StoreBusy("Somebody still reads what was there before an erasure.")
    if not (yield from write(jobs.finish, job)):
        raise jobs.Lost
    return 0


_HANDLERS: Mapping[str, Callable[[Context, Claim], Steps[int]]] = {
    jobs.EMBED: _embed,
    jobs.SCRUB: _scrub,
    jobs.FLUSH: extracting.flush_job,
    jobs.REVIEW: reviewing.review_job,
}
