"""How a store is examined: look at it, compare its indexes, and say in words what should be seen to and what helps."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

from memoranda.db import migrations
from memoranda.db.queries import diagnosis
from memoranda.db.queries.diagnosis import Seen
from memoranda.db.queries.store import EMBEDDER, WORDS
from memoranda.effects import Steps, embed, read, rerank, write
from memoranda.errors import ConfigurationError, EmbedderUnavailable, PermissionMissing, StoreBusy
from memoranda.pipelines.context import Context, opened
from memoranda.ranking import floors
from memoranda.reports import Diagnosis, Finding
from memoranda.text import Tokenizer

_LARGE_LOG = 256 << 20  # bytes: a log is emptied at 16 MB, unless a reader keeps it
_MUCH_FREE = 0.5  # of the file
_SMALL = 64 << 20  # bytes: what is free in a file of this size is nobody's concern
_ITERATIVE = (0, 8)  # of pgvector: before it an approximate scan stops at the first rows it meets
_WORDS = ("memoranda", "things to be remembered")
_REBUILD = "`memoranda export` and `memoranda import` into a new store build it anew"


def diagnose(context: Context, database: str, revision: str | None) -> Steps[Diagnosis]:
    """Examine a whole store.

    Args:
        context: The engine's.
        database: What kind of database it is.
        revision: The revision of its tables, None when there are none: others than this release's are not looked into.
    """
    empty = Diagnosis(database=database, revision=revision, head=migrations.HEAD)
    if revision != migrations.HEAD:
        return replace(empty, findings=(_of_revision(revision),))
    seen = yield from read(diagnosis.look)
    faults, unchecked = yield from _compared(seen)
    misfit = yield from _misfit(context, seen)
    examination, counts, words = seen.examination, seen.counts, seen.settings.get(WORDS) or {}
    floor = _floor(context)
    found = replace(
        empty,
        versions=examination.versions,
        storage=examination.storage,
        size=examination.size,
        embedder=seen.settings.get(EMBEDDER) or None,
        language=words.get("language"),
        floor=floor,
        memories=counts.memories,
        chunks=counts.chunks,
        items=counts.items,
        item_texts=counts.item_texts,
        vectors=counts.vectors,
        without_vector=counts.without_vector,
        other_vectors=counts.other_vectors,
        ownerless_vectors=counts.ownerless_vectors,
        waiting_jobs=counts.waiting_jobs,
        failed_jobs=counts.failed_jobs,
        oldest=counts.oldest,
        search="not checked" if unchecked else "damaged" if faults else "whole",
        vector_index=examination.vector_index,
    )
    findings = (*_of_structure(seen, faults), *([misfit] if misfit else ()), *_of_counts(found, counts.overdue_jobs))
    return replace(found, findings=findings, suggestions=tuple(_suggestions(context, found, unchecked)))


def _compared(seen: Seen) -> Steps[tuple[list[str], str | None]]:
    """Return what is wrong with the index of full text, and why it was not compared if it was not."""
    try:
        return (yield from write(diagnosis.check_search)), None
    except (StoreBusy, PermissionMissing) as error:
        return [], str(error)


def _misfit(context: Context, seen: Seen) -> Steps[Finding | None]:
    """Open the store as its users do; one that was never used is left as it is."""
    if not {EMBEDDER, WORDS} <= seen.settings.keys():
        return None
    words = Tokenizer(seen.settings[WORDS]["language"])  # in which language it is opened here is no fault of the store
    try:
        yield from opened(replace(context, tokenizer=words))
    except ConfigurationError as error:
        return Finding(name="settings", message=str(error).rstrip("."), remedy="Open the store as it was made")
    if context.space.problem:
        return Finding(
            name="embedder",
            message=f"answers come from words only: {context.space.problem}",
            remedy="Install or name the embedder the store was made with",
        )
    return None


def _floor(context: Context) -> float | None:
    space = context.space
    measured = space.measured or floors.measured_for(space.name, embedded=space.model is not None)
    settled = floors.settle(context.policies.floor, measured)
    return settled.least if settled.enabled else None


# -- what is wrong


def _of_revision(revision: str | None) -> Finding:
    if revision is None:
        return Finding(name="tables", message="there are no tables yet", remedy="Run `memoranda db upgrade`")
    if revision in migrations.REVISIONS:
        return Finding(
            name="tables",
            message=f"the tables are of revision {revision}, this release needs {migrations.HEAD}",
            remedy="Run `memoranda db upgrade`",
        )
    return Finding(
        name="tables",
        message=f"the tables are of revision {revision}, which this release does not know",
        remedy="Upgrade the `memoranda` package on this machine",
    )


def _of_structure(seen: Seen, faults: list[str]) -> Iterator[Finding]:
    remedy = "Have an administrator run REINDEX on it" if seen.examination.readable else "Restore a backup"
    for fault in seen.examination.damage:
        yield Finding(name="damage", message=fault, remedy=remedy)
    for fault in seen.missing:
        yield Finding(name="tables", message=fault, remedy=f"Restore a backup, or {_REBUILD}")
    for fault in faults:
        yield Finding(name="text index", message=fault, remedy=_REBUILD.capitalize())


def _of_counts(found: Diagnosis, overdue: int) -> Iterator[Finding]:
    if found.without_vector:
        yield Finding(
            name="missing vectors",
            message=f"{found.without_vector:,} of {_embeddable(found)} have no vector of {found.embedder!r}: "
            "they are found by their words only",
            remedy="Run `memoranda backfill`",
        )
    if found.other_vectors:
        yield Finding(
            name="stale vectors",
            message=f"{found.other_vectors:,} vectors were made by another embedder than {found.embedder or 'none'!r}, "
            "and no search reads them",
            remedy="They do no harm; an export without vectors leaves them behind",
        )
    if found.ownerless_vectors:
        yield Finding(
            name="ownerless vectors",
            message=f"{found.ownerless_vectors:,} vectors belong to rows that are gone",
            remedy="Delete them if somebody else deleted the rows; if nobody did, please report it",
        )
    if found.failed_jobs:
        yield Finding(
            name="failed jobs",
            message=f"{found.failed_jobs:,} jobs were given up",
            remedy="See why with `memoranda jobs`, mend it, and have them tried again",
        )
    if overdue:
        yield Finding(
            name="orphaned jobs",
            message=f"{overdue:,} jobs have waited for more than an hour: no worker seems to run",
            remedy="Run `memoranda worker`, or open the engine with a background that works them off",
        )
    if found.vector_index == "advised":
        yield Finding(
            name="vector index",
            message="a persona is so large that an index of its vectors pays",
            remedy="Run `memoranda db index`",
        )
    log = int(found.storage.get("wal_bytes", 0))
    if log > _LARGE_LOG:
        yield Finding(
            name="write-ahead log",
            message=f"the log beside the file has grown to {log >> 20:,} MB: a reader that never ends keeps it",
            remedy="End the programs that hold the file open",
        )
    if found.storage.get("encoding", "UTF8") != "UTF8":
        yield Finding(
            name="encoding",
            message="the database is not encoded in UTF-8, so it cannot hold every text",
            remedy="Create one with `createdb --encoding=UTF8` and move the store with `memoranda export`",
        )


def _embeddable(found: Diagnosis) -> str:
    kinds = {"memories": found.memories, "chunks": found.chunks, "texts of items": found.item_texts}
    *others, last = [name for name, count in kinds.items() if count] or ["memories"]
    return f"{sum(kinds.values()):,} {', '.join(others)}{' and ' if others else ''}{last}"


# -- what could be better


def _suggestions(context: Context, found: Diagnosis, unchecked: str | None) -> Iterator[str]:
    if unchecked:
        yield f"the text index was not compared with the tables: {unchecked}"
    if found.embedder and found.embedder.startswith("hash/words@") and not find_spec("wordllama"):
        yield (
            'this store compares texts by the words they share; with `pip install "memoranda[local]"` a new one knows '
            "related words, too"
        )
    vector = found.versions.get("vector", "")
    if found.vector_index in ("advised", "built") and _version(vector) < _ITERATIVE:
        yield f"pgvector {vector} cannot continue a scan under a filter: upgrade the extension to 0.8 or newer"
    size, free = found.size, int(found.storage.get("free_bytes", 0))
    if size > _SMALL and free > _MUCH_FREE * size:
        yield "more than half of the file is free: VACUUM in the sqlite3 shell makes it smaller"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def check(context: Context) -> Steps[str | None]:
    """Embed a word, have words put in order, and return the store's model; None where it goes by words only."""
    yield from opened(context)
    if context.space.problem:
        raise EmbedderUnavailable(context.space.problem)
    if context.space.model is not None:
        yield from embed(["memoranda"], "text")
    if context.reranker is not None:
        yield from rerank(context.reranker, "memoranda", _WORDS)
    return context.space.model
