"""How a store moves to another embedder: the new vectors are written beside the old, then reads switch at once.

An engine that was opened before goes on with the old vectors, as long as they are there, and what it answers or
compares says `degraded`: to look after the setting on every write would make every write dearer. From the switch on it
leaves all jobs to engines of the new embedder. What it embeds by itself has no new vector until one of these is told to
`backfill`: so open it anew, and call `backfill` once it is closed.
"""

import logging
from typing import TypeAlias
from uuid import UUID

from sqlalchemy import Connection

from memoranda.db.queries import jobs, store, vectors
from memoranda.db.queries.store import EMBEDDER
from memoranda.db.queries.vectors import Owner
from memoranda.db.schema import Tables
from memoranda.effects import Steps, read, write
from memoranda.errors import ConfigurationError
from memoranda.pipelines.context import Context, settled
from memoranda.pipelines.embedding import embedded
from memoranda.protocols import Progress
from memoranda.ranking.floors import SETTING

PAGE = 256
"""Texts embedded in one call and stored in one transaction: what an interruption can cost."""

_log = logging.getLogger("memoranda.jobs")
Refused: TypeAlias = dict[Owner, dict[UUID, str]]
"""The rows whose texts the new embedder refuses, and what it says."""


def reembed(context: Context, prune: bool, progress: Progress | None) -> Steps[int]:
    """Embed all memories and chunks by the engine's embedder, make it the store's, and return how many were embedded.

    What is embedded already is not embedded again, so that a run that was interrupted goes on where it was. A text that
    the embedder refuses keeps no store from moving: its row is left in a job that is given up.

    Raises:
        ConfigurationError: the engine was opened without naming an embedder, or in another language than the store's.
        EmbedderUnavailable: it failed; what was embedded stays, and the store goes on with the old one.
    """
    space = context.space
    if not space.chosen or not space.proposed:
        raise ConfigurationError("Name the embedder to move to when the engine is opened: MemoryEngine(embedder=...).")
    yield from settled(context)
    model, total = space.proposed, 0
    refused: Refused = {}
    while True:
        total += yield from _filled(model, refused, progress)
        if (yield from write(_switch, model, refused)):
            break
    total += yield from _filled(model, refused, None)  # what was written while reads switched
    if refused:
        yield from write(_give_up, refused)
        count = sum(len(rows) for rows in refused.values())
        _log.warning("the new embedder refused some texts, which are found by their words: %d", count)
    made = yield from read(store.settings)
    space.settle(made[EMBEDDER], made.get(SETTING))
    if prune:
        for owner in (yield from read(vectors.owners)):
            yield from write(vectors.prune, owner, model)
    return total


def _filled(model: str, refused: Refused, progress: Progress | None) -> Steps[int]:
    """Embed what has no vector and was not refused; note what is refused, and return how many were embedded."""
    missing = []
    for owner in (yield from read(vectors.owners)):
        known = refused.get(owner, {})
        ids = [id for id in (yield from read(vectors.missing_ids, owner, model)) if id not in known]
        missing += [(owner, ids[start : start + PAGE]) for start in range(0, len(ids), PAGE)]
    total, done, filled = sum(len(ids) for _, ids in missing), 0, 0
    for owner, ids in missing:
        made = yield from embedded((yield from read(vectors.missing, owner, model, ids)))
        if made.rows:
            filled += yield from write(vectors.fill, made.rows, made.vectors, model)
        if made.refused:
            refused.setdefault(owner, {}).update((row.id, str(made.error)) for row in made.refused)
        done += len(ids)
        if progress is not None:
            progress(done, total)
    return filled


def _switch(conn: Connection, tables: Tables, model: str, refused: Refused) -> bool:
    """Make a model the store's, if every memory and every chunk has its vector, or cannot have one."""
    for owner in vectors.owners(conn, tables):
        if set(vectors.missing_ids(conn, tables, owner, model)) - refused.get(owner, {}).keys():
            return False
    _give_up(conn, tables, refused)
    store.change(conn, tables, {EMBEDDER: model})
    return True


def _give_up(conn: Connection, tables: Tables, refused: Refused) -> None:
    """Leave the rows that were refused in jobs that are given up; those of the embedder before are of no use."""
    for owner in vectors.owners(conn, tables):
        jobs.forget_failed(conn, tables, (owner.tenant, owner.persona), jobs.EMBED)
    for owner, rows in refused.items():
        for id, error in rows.items():
            jobs.give_up_embedding(conn, tables, (owner.tenant, owner.persona), [id], owner.kind, error)
