"""Jobs: rows that say what is left to do, written in the transaction of what they serve.

A worker claims a job by comparing and setting its lease, so that two never hold one; it renews the lease while it is at
the job, and who dies holding one loses it when the lease ends. All moments are the database's, and one that lies
further ahead than twice the longest lease or delay was set by a clock that has been put back since: it counts as past.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Row,
    and_,
    case,
    delete,
    func,
    or_,
    select,
    true,
    type_coerce,
    update,
)

from memoranda.db.corpora import Kind
from memoranda.db.schema import Tables
from memoranda.ids import new_id
from memoranda.policies import LONGEST_DELAY, LONGEST_LEASE, JobPolicy
from memoranda.reports import Job

EMBED = "embed"
SCRUB = "scrub"
FLUSH = "flush"
REVIEW = "review"
KINDS = (EMBED, SCRUB, FLUSH, REVIEW)
NOBODY = ("", "")
"""Tenant and persona of what is done for the whole store."""
_UNDER_POLICIES = (FLUSH, REVIEW)  # the payload names those of whoever left the job
EMBEDDED_TOGETHER = 256
"""Memories of one job: one call to the embedder, as a rule."""


class Lost(Exception):
    """A job is another worker's: what this one made of it is stored where it can be, and the job is not done by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a process can do: the jobs it may claim."""

    kinds: Sequence[str]
    policies: Sequence[str] = ()
    """Names of the policies it knows, for the jobs that are done under those of whoever left them."""

    def without(self, kinds: Collection[str]) -> "Means":
        """Return the means for all but some kinds."""
        return replace(self, kinds=[kind for kind in self.kinds if kind not in kinds])


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


def leave_for(conn: Connection, tables: Tables, conversation: Row[Any], kind: str, payload: Any) -> None:
    """Leave a job about a conversation, one of a kind."""
    owner, key = key_for(conversation, kind)
    enqueue(conn, tables, owner, kind, payload, unique_key=key)


def key_for(conversation: Row[Any], kind: str) -> tuple[tuple[str, str], str]:
    """Return whose the job of a kind about a conversation is, and the key of which there is one."""
    return (conversation.tenant, conversation.persona), f"{kind}:{conversation.id.hex}"


def enqueue_embedding(
    conn: Connection, tables: Tables, owner: tuple[str, str], ids: Sequence[UUID], kind: Kind = "memory"
) -> None:
    """Leave it for later to embed rows of one kind and persona."""
    for start in range(0, len(ids), EMBEDDED_TOGETHER):
        part = ids[start : start + EMBEDDED_TOGETHER]
        enqueue(conn, tables, owner, EMBED, {"kind": kind, "ids": [identifier.hex for identifier in part]})


def give_up_embedding(
    conn: Connection, tables: Tables, owner: tuple[str, str], ids: Sequence[UUID], kind: Kind, error: str
) -> None:
    """Leave a job that is given up already, for rows that an embedder refused."""
    now = tables.dialect.now(conn)
    row = {
        "tenant": owner[0],
        "persona": owner[1],
        "id": new_id(),
        "kind": EMBED,
        "payload": {"kind": kind, "ids": [identifier.hex for identifier in ids]},
        "status": "failed",
        "attempts": 1,
        "due_at": now,
        "error": error,
        "created_at": now,
    }
    tables.inserts.add(conn, tables.jobs, [row])


def owners_due(conn: Connection, tables: Tables, means: Means) -> list[tuple[str, str]]:
    """Return every tenant and persona with a job that can be begun now."""
    j, now = tables.jobs, tables.dialect.now(conn)
    found = conn.execute(select(j.c.tenant, j.c.persona).where(_ready(tables, now, means)).distinct())
    return [(row.tenant, row.persona) for row in found]


def claim(
    conn: Connection, tables: Tables, owner: tuple[str, str], means: Means, worker: str, policy: JobPolicy
) -> Claim | None:
    """Take the job of a persona that has waited longest, if there is one nobody holds."""
    j, now = tables.jobs, tables.dialect.now(conn)
    own = and_(j.c.tenant == owner[0], j.c.persona == owner[1])
    ready = and_(own, _ready(tables, now, means))
    for identifier in conn.scalars(select(j.c.id).where(ready).order_by(j.c.due_at, j.c.id).limit(policy.looked_at)):
        taken = conn.execute(
            update(j)
            .where(ready, j.c.id == identifier)
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


def renew(conn: Connection, tables: Tables, job: Claim, policy: JobPolicy) -> bool:
    """Begin the lease of a job anew; returns False when another worker has it, or it is gone."""
    until = tables.dialect.now(conn) + timedelta(seconds=policy.lease_seconds)
    return _changed(conn, tables, job, lease_until=until)


def narrow(conn: Connection, tables: Tables, job: Claim, payload: Any) -> bool:
    """Leave of a job only what could not be done; returns False when another worker has it."""
    return _changed(conn, tables, job, payload=payload)


def finish(conn: Connection, tables: Tables, job: Claim) -> bool:
    """Strike a job off; returns False when its lease ended and another worker has it."""
    j = tables.jobs
    return conn.execute(delete(j).where(_held(tables, job)).returning(j.c.id)).first() is not None


def postpone(conn: Connection, tables: Tables, job: Claim, seconds: float, error: str) -> bool:
    """Give a job back, to be tried again later; returns False when another worker has it."""
    due = tables.dialect.now(conn) + timedelta(seconds=min(seconds, LONGEST_DELAY))
    return _changed(conn, tables, job, due_at=due, lease_until=None, worker="", error=error)


def give_back(conn: Connection, tables: Tables, job: Claim) -> bool:
    """Leave a job to another worker, as if it had not been begun; returns False when one has it already."""
    return _changed(conn, tables, job, lease_until=None, worker="", attempts=job.attempts - 1)


def fail(conn: Connection, tables: Tables, job: Claim, error: str, attempts: int) -> bool:
    """Give a job up after so many attempts: it is kept, and tried again only when somebody asks for it.

    Returns False when another worker has it.
    """
    free = {"lease_until": None, "worker": "", "unique_key": None}
    return _changed(conn, tables, job, status="failed", error=error, attempts=attempts, **free)


def revive(conn: Connection, tables: Tables) -> int:
    """Let every failed job be tried again, from the first attempt, and return how many."""
    j = tables.jobs
    values = {"status": "waiting", "attempts": 0, "due_at": tables.dialect.now(conn)}
    return conn.execute(update(j).where(j.c.status == "failed").values(**values)).rowcount


def any_waiting(conn: Connection, tables: Tables, means: Means | None = None) -> bool:
    """Say whether there is anything to do, now or later, by these means or by any."""
    j = tables.jobs
    waiting = j.c.status == "waiting" if means is None else _waiting(tables, means)
    return conn.execute(select(j.c.id).where(waiting).limit(1)).first() is not None


def any_beyond(conn: Connection, tables: Tables, means: Means) -> bool:
    """Say whether a job waits, of a kind that can be done, under policies that are not known here, and says nothing."""
    return conn.execute(select(tables.jobs.c.id).where(_beyond(tables, means)).limit(1)).first() is not None


def tell_beyond(conn: Connection, tables: Tables, means: Means, why: str) -> list[tuple[UUID, str]]:
    """Have those jobs say why they wait, and return their ids and kinds."""
    j = tables.jobs
    told = update(j).where(_beyond(tables, means)).values(error=why).returning(j.c.id, j.c.kind)
    return [(row.id, row.kind) for row in conn.execute(told)]


def seconds_until_due(conn: Connection, tables: Tables, means: Means) -> float | None:
    """Return in how many seconds the next job can be begun, 0 for now, None when none waits."""
    j, now = tables.jobs, tables.dialect.now(conn)
    if conn.execute(select(j.c.id).where(_ready(tables, now, means)).limit(1)).first():
        return 0.0
    later = case((j.c.lease_until > j.c.due_at, j.c.lease_until), else_=j.c.due_at)
    first = conn.scalar(select(func.min(later)).where(_waiting(tables, means), later > now))
    return (first - now).total_seconds() if first is not None else None


def count_running_or_due(conn: Connection, tables: Tables, means: Means) -> int:
    """Return how many jobs a worker holds or could begin now."""
    j, now = tables.jobs, tables.dialect.now(conn)
    due = or_(_past(j.c.due_at, now, LONGEST_DELAY), j.c.lease_until.is_not(None))
    return conn.scalar(select(func.count()).where(_waiting(tables, means), due)) or 0


def count(conn: Connection, tables: Tables, means: Means) -> int:
    """Return how many jobs wait, now or for later; the failed ones do not."""
    return conn.scalar(select(func.count()).where(_waiting(tables, means))) or 0


def listed(conn: Connection, tables: Tables, limit: int, kind: str | None) -> list[Job]:
    """Return the jobs of the whole store, or those of one kind, the oldest first."""
    j, now = tables.jobs, tables.dialect.now(conn)
    names = ("tenant", "persona", "id", "kind", "status", "attempts", "due_at", "error", "created_at")
    wanted = true() if kind is None else j.c.kind == kind
    found = conn.execute(
        select(*(j.c[name] for name in names), j.c.lease_until).where(wanted).order_by(j.c.created_at).limit(limit)
    )
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


def _past(moment: ColumnElement[datetime | None], now: datetime, longest: float) -> ColumnElement[bool]:
    # Twice as long, for a clock that is put back by less must not end the longest waits.
    return or_(moment <= now, moment > now + timedelta(seconds=2 * longest))


def _waiting(tables: Tables, means: Means) -> ColumnElement[bool]:
    j = tables.jobs
    known = or_(j.c.kind.not_in(_UNDER_POLICIES), _policies(tables).in_(means.policies))
    return and_(j.c.status == "waiting", j.c.kind.in_(means.kinds), known)


def _beyond(tables: Tables, means: Means) -> ColumnElement[bool]:
    j = tables.jobs
    kinds = [kind for kind in _UNDER_POLICIES if kind in means.kinds]
    strange = and_(j.c.kind.in_(kinds), _policies(tables).not_in(means.policies))
    return and_(j.c.status == "waiting", strange, j.c.error == "")


def _policies(tables: Tables) -> ColumnElement[str]:
    named: ColumnElement[str] = type_coerce(tables.jobs.c.payload, JSON)["policies"].as_string()
    return named


def _ready(tables: Tables, now: datetime, means: Means) -> ColumnElement[bool]:
    j = tables.jobs
    free = or_(j.c.lease_until.is_(None), _past(j.c.lease_until, now, LONGEST_LEASE))
    return and_(_waiting(tables, means), _past(j.c.due_at, now, LONGEST_DELAY), free)


def _changed(conn: Connection, tables: Tables, job: Claim, **values: Any) -> bool:
    return conn.execute(update(tables.jobs).where(_held(tables, job)).values(**values)).rowcount > 0


def _held(tables: Tables, job: Claim) -> ColumnElement[bool]:
    j = tables.jobs
    own = (j.c.tenant == job.tenant, j.c.persona == job.persona, j.c.id == job.id)
    # The thread of an engine and a caller of its `drain` are one worker: only the attempt tells them apart.
    return and_(*own, j.c.worker == job.worker, j.c.attempts == job.attempts)
