"""How a store moves to another embedder: the new vectors are written beside the old, then reads switch at once.

An engine that was opened before goes on with the old vectors, as long as they are there, and what it answers or
compares says `degraded`: to look after the setting on every write would make every write dearer. From the switch on it
leaves all jobs to engines of the new embedder. What it embeds by itself has no new vector until one of these is told to
`backfill`: so open it anew, and call `backfill` once it is closed.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from memoranda.db.queries import store, vectors
from memoranda.db.schema import Tables
from memoranda.effects import Steps, embed, read, write
from memoranda.errors import ConfigurationError
from memoranda.pipelines.context import EMBEDDER, Context, settled
from memoranda.protocols import Progress
from memoranda.ranking.floors import SETTING

PAGE = 256
"""Texts embedded in one call and stored in one transaction: what an interruption can cost."""


def reembed(context: Context, prune: bool, progress: Progress | None) -> Steps[int]:
    """Embed all memories and chunks by the engine's embedder, make it the store's, and return how many were embedded.

    What is embedded already is not embedded again, so that a run that was interrupted goes on where it was.

    Raises:
        ConfigurationError: the engine was opened without naming an embedder, or in another language than the store's.
        EmbedderUnavailable: it failed; what was embedded stays, and the store goes on with the old one.
    """
    space = context.space
    if not space.chosen or not space.proposed:
        raise ConfigurationError("Name the embedder to move to when the engine is opened: MemoryEngine(embedder=...).")
    yield from settled(context)
    model, embedded = space.proposed, 0
    while True:
        embedded += yield from _filled(context, model, progress)
        if (yield from write(_switch, model)):
            break
    embedded += yield from _filled(context, model, None)  # what was written while reads switched
    made = yield from read(store.settings)
    space.settle(made[EMBEDDER], made.get(SETTING))
    if prune:
        for owner in (yield from read(vectors.owners)):
            yield from write(vectors.prune, owner, model)
    return embedded


def _filled(context: Context, model: str, progress: Progress | None) -> Steps[int]:
    missing = []
    for owner in (yield from read(vectors.owners)):
        ids = yield from read(vectors.missing_ids, owner, model)
        missing += [(owner, ids[start : start + PAGE]) for start in range(0, len(ids), PAGE)]
    total, done, filled = sum(len(ids) for _, ids in missing), 0, 0
    for owner, ids in missing:
        page: Sequence[vectors.Unembedded] = yield from read(vectors.missing, owner, model, ids)
        if page:
            filled += yield from write(vectors.fill, page, (yield from embed([x.text for x in page], "text")), model)
        done += len(ids)
        if progress is not None:
            progress(done, total)
    return filled


def _switch(conn: Connection, tables: Tables, model: str) -> bool:
    """Make a model the store's, if every memory and every chunk has its vector."""
    for owner in vectors.owners(conn, tables):
        if vectors.missing_ids(conn, tables, owner, model):
            return False
    store.change(conn, tables, {EMBEDDER: model})
    return True
