"""Jobs: rows that say what is left to do, written in the transaction of what they serve.

A worker claims a job by comparing and setting its lease, so that two never hold one; who dies holding one loses it when
the lease ends. A lease is never renewed, so a job that takes longer is begun by a second worker while the first is at
it: both do the work, and only the one that was begun last stores it. All moments are the database's, and one that lies
further ahead than any lease or delay can reach was set by a clock that has been put back since: it counts as past.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, or_, select, update

from memoranda.db.corpora import Kind
from memoranda.db.schema import Tables
from memoranda.ids import new_id
from memoranda.policies import JobPolicy
from memoranda.reports import Job

LONGEST_DELAY = timedelta(hours=1)
"""However long a service asks to be left alone, a job is tried again after an hour."""

EMBED = "embed"
SCRUB = "scrub"
FLUSH = "flush"
REVIEW = "review"
EMBEDDED_TOGETHER = 256
"""Memories of one job: one call to the embedder, as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job as the worker holds it."""

    tenant: str
    persona: str
    id: UUID
    kind: str
    payload: Any
    attempts: int
    """How often it was begun, this time included."""
    worker: str


def enqueue(
    conn: Connection,
    tables: Tables,
    owner: tuple[str, str],
    kind: str,
    payload: Any,
    *,
    unique_key: str | None = None,
) -> bool:
    """Leave a job for later; returns False when one with this key is waiting already."""
    now = tables.dialect.now(conn)
    row = {
        "tenant": owner[0],
        "persona": owner[1],
        "id": new_id(),
        "kind": kind,
        "payload": payload,
        "unique_key": unique_key,
        "due_at": now,
        "created_at": now,
    }
    return tables.inserts.add(conn, tables.jobs, [row], skip_conflicts=True) > 0


def is_waiting(conn: Connection, tables: Tables, owner: tuple[str, str], unique_key: str) -> bool:
    """Say whether there is a job with this key that was not given up, whether somebody is at it or not."""
    j = tables.jobs
    own = (j.c.tenant == owner[0], j.c.persona == owner[1], j.c.unique_key == unique_key)
    return conn.execute(select(j.c.id).where(*own)).first() is not None


def enqueue_embedding(
    conn: Connection, tables: Tables, owner: tuple[str, str], ids: Sequence[UUID], kind: Kind = "memory"
) -> None:
    """Leave it for later to embed rows of one kind and persona."""
    for start in range(0, len(ids), EMBEDDED_TOGETHER):
        part = ids[start : start + EMBEDDED_TOGETHER]
        enqueue(conn, tables, owner, EMBED, {"kind": kind, "ids": [identifier.hex for identifier in part]})


def owners_due(conn: Connection, tables: Tables, kinds: Sequence[str], policy: JobPolicy) -> list[tuple[str, str]]:
    """Return every tenant and persona with a job of these kinds that can be begun now."""
    j, now = tables.jobs, tables.dialect.now(conn)
    found = conn.execute(
        select(j.c.tenant, j.c.persona).where(_ready(tables, now, policy), j.c.kind.in_(kinds)).distinct()
    )
    return [(row.tenant, row.persona) for row in found]


def claim(
    conn: Connection,
    tables: Tables,
    owner: tuple[str, str],
    kinds: Sequence[str],
    worker: str,
    policy: JobPolicy,
) -> Claim | None:
    """Take the job of a persona that has waited longest, if there is one nobody holds."""
    j, now = tables.jobs, tables.dialect.now(conn)
    own = and_(j.c.tenant == owner[0], j.c.persona == owner[1])
    ready = and_(own, _ready(tables, now, policy), j.c.kind.in_(kinds))
    for identifier in conn.scalars(select(j.c.id).where(ready).order_by(j.c.due_at, j.c.id).limit(policy.looked_at)):
        taken = conn.execute(
            update(j)
            .where(own, j.c.id == identifier, _ready(tables, now, policy))
            .values(lease_until=now + timedelta(seconds=policy.lease_seconds), worker=worker, attempts=j.c.attempts + 1)
            .returning(j.c.kind, j.c.payload, j.c.attempts)
        ).first()
        if taken is not None:
            return Claim(
                tenant=owner[0],
                persona=owner[1],
                id=identifier,
                kind=taken.kind,
                payload=taken.payload,
                attempts=taken.attempts,
                worker=worker,
            )
    return None


def finish(conn: Connection, tables: Tables, job: Claim) -> bool:
    """Strike a job off; returns False when its lease ended and another worker has it."""
    j = tables.jobs
    return conn.execute(delete(j).where(_held(tables, job)).returning(j.c.id)).first() is not None


def postpone(conn: Connection, tables: Tables, job: Claim, seconds: float, error: str) -> None:
    """Give a job back, to be tried again later."""
    due = tables.dialect.now(conn) + min(timedelta(seconds=seconds), LONGEST_DELAY)
    values = {"due_at": due, "lease_until": None, "worker": "", "error": error}
    conn.execute(update(tables.jobs).where(_held(tables, job)).values(**values))


def give_back(conn: Connection, tables: Tables, job: Claim) -> None:
    """Leave a job to another worker, as if it had not been begun."""
    values = {"lease_until": None, "worker": "", "attempts": job.attempts - 1}
    conn.execute(update(tables.jobs).where(_held(tables, job)).values(**values))


def fail(conn: Connection, tables: Tables, job: Claim, error: str, attempts: int) -> None:
    """Give a job up after so many attempts: it is kept, and tried again only when somebody asks for it."""
    values = {
        "status": "failed",
        "lease_until": None,
        "worker": "",
        "error": error,
        "unique_key": None,
        "attempts": attempts,
    }
    conn.execute(update(tables.jobs).where(_held(tables, job)).values(**values))


def revive(conn: Connection, tables: Tables) -> int:
    """Let every failed job be tried again, from the first attempt, and return how many."""
    j = tables.jobs
    values = {"status": "waiting", "attempts": 0, "due_at": tables.dialect.now(conn)}
    return conn.execute(update(j).where(j.c.status == "failed").values(**values)).rowcount


def any_waiting(conn: Connection, tables: Tables) -> bool:
    """Say whether there is anything to do, now or later."""
    j = tables.jobs
    return conn.execute(select(j.c.id).where(j.c.status == "waiting").limit(1)).first() is not None


def seconds_until_due(conn: Connection, tables: Tables, kinds: Sequence[str], policy: JobPolicy) -> float | None:
    """Return in how many seconds the next job can be begun, 0 for now, None when none waits."""
    j, now = tables.jobs, tables.dialect.now(conn)
    waiting = (j.c.status == "waiting", j.c.kind.in_(kinds))
    if conn.execute(select(j.c.id).where(_ready(tables, now, policy), j.c.kind.in_(kinds)).limit(1)).first():
        return 0.0
    later = case((j.c.lease_until > j.c.due_at, j.c.lease_until), else_=j.c.due_at)
    first = conn.scalar(select(func.min(later)).where(*waiting, later > now))
    return (first - now).total_seconds() if first is not None else None


def count_running_or_due(conn: Connection, tables: Tables, kinds: Sequence[str], policy: JobPolicy) -> int:
    """Return how many jobs a worker holds or could begin now."""
    j, now = tables.jobs, tables.dialect.now(conn)
    due = or_(_past(j.c.due_at, now, LONGEST_DELAY), j.c.lease_until.is_not(None))
    found = select(func.count()).where(j.c.status == "waiting", j.c.kind.in_(kinds), due)
    return conn.scalar(found) or 0


def count(conn: Connection, tables: Tables, kinds: Sequence[str]) -> int:
    """Return how many jobs of these kinds wait, now or for later; the failed ones do not."""
    j = tables.jobs
    return conn.scalar(select(func.count()).where(j.c.status == "waiting", j.c.kind.in_(kinds))) or 0


def listed(conn: Connection, tables: Tables, limit: int) -> list[Job]:
    """Return the jobs of the whole store, the oldest first."""
    j, now = tables.jobs, tables.dialect.now(conn)
    names = ("tenant", "persona", "id", "kind", "status", "attempts", "due_at", "error", "created_at")
    found = conn.execute(select(*(j.c[name] for name in names), j.c.lease_until).order_by(j.c.created_at).limit(limit))
    return [
        Job(
            **{name: getattr(row, name) for name in names},
            running=row.lease_until is not None and row.lease_until > now,
        )
        for row in found
    ]


def being_embedded(conn: Connection, tables: Tables, owner: tuple[str, str]) -> set[UUID]:
    """Return the rows of a persona, of whatever kind, that a waiting job will embed."""
    j = tables.jobs
    payloads = conn.scalars(
        select(j.c.payload).where(
            j.c.tenant == owner[0], j.c.persona == owner[1], j.c.kind == EMBED, j.c.status == "waiting"
        )
    )
    return {UUID(hex=identifier) for payload in payloads for identifier in payload["ids"]}


def forget_failed(conn: Connection, tables: Tables, owner: tuple[str, str], kind: str) -> None:
    """Delete the jobs of a persona that were given up, because new ones do the same."""
    j = tables.jobs
    own = (j.c.tenant == owner[0], j.c.persona == owner[1], j.c.kind == kind)
    conn.execute(delete(j).where(*own, j.c.status == "failed"))


def _past(moment: ColumnElement[datetime | None], now: datetime, reach: timedelta) -> ColumnElement[bool]:
    return or_(moment <= now, moment > now + reach)


def _ready(tables: Tables, now: datetime, policy: JobPolicy) -> ColumnElement[bool]:
    j = tables.jobs
    # Twice a lease, for another worker may have looked at the clock a little later.
    free = or_(j.c.lease_until.is_(None), _past(j.c.lease_until, now, timedelta(seconds=2 * policy.lease_seconds)))
    return and_(j.c.status == "waiting", _past(j.c.due_at, now, LONGEST_DELAY), free)


def _held(tables: Tables, job: Claim) -> ColumnElement[bool]:
    j = tables.jobs
    own = (j.c.tenant == job.tenant, j.c.persona == job.persona, j.c.id == job.id)
    # The thread of an engine and a caller of its `drain` are one worker: only the attempt tells them apart.
    return and_(*own, j.c.worker == job.worker, j.c.attempts == job.attempts)
