"""How jobs are done: claimed persona by persona, tried, and struck off in the transaction that does their work."""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from sqlalchemy import Connection

from memoranda import telemetry
from memoranda.db.queries import erasure, jobs, vectors
from memoranda.db.queries.jobs import Claim
from memoranda.db.queries.vectors import Owner, Unembedded
from memoranda.db.schema import Tables
from memoranda.effects import Steps, apart, embed, pause, read, wake, write
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
from memoranda.policies import JobPolicy
from memoranda.protocols import Progress

_log = logging.getLogger("memoranda.jobs")
_LOOK_AGAIN = 0.05  # seconds between two looks at jobs that another worker holds
_NEVER_ENDED = "It was begun and never ended: its process died each time, or the lease is too short for it."


def work(
    context: Context,
    policy: JobPolicy,
    worker: str,
    progress: Progress | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Steps[int]:
    """Do every job that can be begun now, and return how many were; none is begun once it is time to stop.

    Raises:
        StoreError: the database failed; the jobs that were held are tried again when their leases end.
    """
    yield from opened(context)
    kinds, begun = (yield from _kinds(context)), 0
    for owner in (yield from read(jobs.owners_due, kinds, policy)) if kinds else []:
        while not stopping():
            if (job := (yield from write(jobs.claim, owner, kinds, worker, policy))) is None:
                break
            begun += 1
            yield from _tried(context, policy, job)
            kinds = yield from _kinds(context)  # the store may have moved to another embedder
            if progress is not None:
                progress(begun, begun + (yield from read(jobs.count_running_or_due, kinds, policy)))
    return begun


def drain(context: Context, policy: JobPolicy, worker: str, timeout: float, progress: Progress | None) -> Steps[int]:
    """Do every job that can be begun, wait for those another worker holds, and return how many wait for later.

    Only those count that this process has the means for.
    """
    waited = 0.0
    while True:
        yield from work(context, policy, worker, progress)
        kinds = yield from _kinds(context)
        if not (yield from read(jobs.count_running_or_due, kinds, policy)) or waited >= timeout:
            return (yield from read(jobs.count, kinds))
        yield from pause(_LOOK_AGAIN)
        waited += _LOOK_AGAIN


def next_look(context: Context, policy: JobPolicy) -> Steps[float | None]:
    """Return in how many seconds there will be something to do, None when nothing waits."""
    return (yield from read(jobs.seconds_until_due, (yield from _kinds(context)), policy))


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


def _kinds(context: Context) -> Steps[Sequence[str]]:
    """Return the kinds of jobs that this process has the means for.

    An embedder or a model without a key would give up what another process can do, and an embedder that the store has
    moved away from would make vectors nobody looks at.
    """
    embeds = context.space.configured and (yield from read(is_current, context.space.model))
    asks = context.model.configured
    means = {jobs.EMBED: embeds, jobs.FLUSH: asks, jobs.REVIEW: asks}
    return [kind for kind in _HANDLERS if means.get(kind, True)]


def _tried(context: Context, policy: JobPolicy, job: Claim) -> Steps[None]:
    identity = telemetry.job(job.id, job.kind, job.attempts)
    if job.attempts > policy.attempts:
        yield from _given_up(job, _NEVER_ENDED, job.attempts - 1, identity)
        return
    try:
        yield from apart(_performed(context, job), identity)
    except (EmbedderRefused, ModelRefused, ConfigurationError) as error:
        yield from _given_up(job, str(error), job.attempts, identity)
    except Exception as error:
        told = isinstance(error, EmbedderUnavailable | ModelUnavailable | StoreError)
        said = str(error) if told else type(error).__name__
        if job.attempts >= policy.attempts:
            yield from _given_up(job, said, job.attempts, identity)
        else:
            delay = max(policy.delay(job.attempts, random.random()), getattr(error, "retry_after", None) or 0.0)
            yield from write(jobs.postpone, job, delay, said)
            message = "job %s (%s) failed, next attempt in %.0f s: %s"
            _log.warning(message, job.id, job.kind, delay, said, extra=identity)
    else:
        _log.info("job %s (%s) is done", job.id, job.kind, extra=identity)


def _given_up(job: Claim, said: str, attempts: int, identity: telemetry.Attributes) -> Steps[None]:
    # Told once it is stored: a database that was closed or is gone keeps the job as it is, to be begun again.
    yield from write(jobs.fail, job, said, attempts)
    _log.error("job %s (%s) was given up after %d attempts: %s", job.id, job.kind, attempts, said, extra=identity)


def _performed(context: Context, job: Claim) -> Steps[int]:
    """Do what a job asks for, and return how many rows it was about."""
    return (yield from _HANDLERS[job.kind](context, job))


def _embed(context: Context, job: Claim) -> Steps[int]:
    model = context.space.embedder.model
    owner = Owner(job.payload.get("kind", "memory"), job.tenant, job.persona)  # jobs of old name no kind
    ids = [UUID(hex=identifier) for identifier in job.payload["ids"]]
    page = yield from read(vectors.missing, owner, model, ids)
    made = (yield from embed([item.text for item in page], "text")) if page else []
    filled = yield from write(_fill, job, page, made, model)
    if filled < len(page):
        context.space.embedder.forget()  # a text that was erased meanwhile must not stay in memory
    return filled


def _fill(
    conn: Connection, tables: Tables, job: Claim, page: Sequence[Unembedded], made: Sequence[object], model: str
) -> int:
    if not is_current(conn, tables, model):
        jobs.give_back(conn, tables, job)
        return 0
    if not jobs.finish(conn, tables, job):
        return 0  # the lease ended: whoever has the job now does the same
    # A text that changed meanwhile left a job of its own.
    return vectors.fill(conn, tables, page, made, model)


def _scrub(context: Context, job: Claim) -> Steps[int]:
    """Remove what erasures had to leave on the disk, which is tried again while a reader stands in the way."""
    yield from erasing.finish_in_passing(context.clock)
    if (yield from read(erasure.unfinished)):
        raise StoreBusy("Somebody still reads what was there before an erasure.")
    yield from write(jobs.finish, job)
    return 0


_HANDLERS: Mapping[str, Callable[[Context, Claim], Steps[int]]] = {
    jobs.EMBED: _embed,
    jobs.SCRUB: _scrub,
    jobs.FLUSH: extracting.flush_job,
    jobs.REVIEW: reviewing.review_job,
}
