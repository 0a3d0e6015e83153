"""Rows of a file on their way into a store: what is there already is left alone, and nobody's row is lost."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, UniqueConstraint, delete, exists, select, tuple_
from sqlalchemy.exc import DataError, IntegrityError

from memoranda import namespaces
from memoranda.archive import ArchiveReader, Line, UnreadableArchive, decoded
from memoranda.db import migrations
from memoranda.db.corpora import Kind
from memoranda.db.queries import erasure, jobs, merging, rows, store
from memoranda.db.queries.moving import noun, row_key, shape
from memoranda.db.queries.store import EMBEDDER, WORDS
from memoranda.db.schema import Tables
from memoranda.drafts import Owner, cells, chunk_terms, index_terms
from memoranda.errors import StoreBusy
from memoranda.ids import new_short_id
from memoranda.nodes import node_terms
from memoranda.redaction import redact
from memoranda.reports import Imported
from memoranda.text import TERMS_VERSION, Tokenizer, join_terms

_PAGE = 500  # rows written at once
_PAGE_BYTES = 4 << 20  # or fewer, where they are long
_ATTEMPTS = 5  # at short ids and keys that others take at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How rows are taken in."""

    tokenizer: Tokenizer
    embedder: str
    """What a new store is made with."""
    vectors: bool
    """Whether vectors are taken in."""
    now: datetime


@dataclass(slots=True)
class _Ledger:
    stored: Counter[str] = field(default_factory=Counter)
    there: Counter[str] = field(default_factory=Counter)
    renamed: int = 0
    unkeyed: int = 0
    reindexed: int = 0
    left_out: int = 0
    said: merging.Arrived = field(default_factory=merging.Arrived)
    left: set[Any] = field(default_factory=set)
    """The rows with parts that are left alone, because the store has one of the same id or name: table and key."""
    parts: list[Any] = field(default_factory=list)
    """Those of their parts that have vectors of their own."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with the line it stands in."""

    line: int
    values: dict[str, Any]


def load(
    conn: Connection,
    tables: Tables,
    arrival: Arrival,
    open_file: Callable[[], AbstractContextManager[ArchiveReader]],
    progress: Callable[[], object] | None,
) -> Imported:
    """Take in every row of a file that is not there yet; what is wrong with the file undoes all of it.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        arrival: How rows are taken in.
        open_file: Opens the file.
        progress: Is called now and then.

    Raises:
        UnreadableArchive: the file is not whole, or holds what the tables do not take; names the line.
    """
    tables.dialect.advise_lock(conn, "memoranda:import")  # two of the same file would meet at every row
    words = {"language": arrival.tokenizer.language, "version": TERMS_VERSION}
    stands = store.settle(conn, tables, {EMBEDDER: arrival.embedder, WORDS: words})
    if (stands[EMBEDDER], stands[WORDS]) != (arrival.embedder, words):
        raise StoreBusy("Somebody else made this store at the same moment, in another way: try again.")
    known, ledger = shape(tables), _Ledger()
    extractions: list[list[_Row]] = []
    empty = _is_empty(conn, tables)
    by_noun = {noun(tables, table): table for table in tables.metadata.sorted_tables}
    foreigners = (tables.settings, tables.jobs, tables.erasures, tables.snapshots, tables.snapshot_memories)
    with open_file() as file:
        foreign = (file.header.language, file.header.terms) != (words["language"], words["version"])
        complete = file.header.revision == migrations.HEAD
        for name, lines in _pages(file.rows()):
            page = [_Row(line.number, decoded(line, known, complete=complete)) for line in lines]
            if name == noun(tables, tables.vectors):
                _check_vectors(page)
                if not arrival.vectors:
                    ledger.left_out += len(page)
                    continue
            if by_noun[name] in foreigners and not empty:
                # They speak of the store they come from: what was erased there, say, or was to be done, or shown in a
                # prompt, says nothing about the rows that were here before. Vectors that were still to come are.
                page = _still_to_embed(page) if by_noun[name] is tables.jobs else []
                if not page:
                    continue
            if name == noun(tables, tables.memories) and foreign:
                ledger.reindexed += _reindex(page, arrival.tokenizer)
            if name == noun(tables, tables.knowledge_chunks) and foreign:
                ledger.reindexed += _reindex_chunks(page, arrival.tokenizer)
            if name == noun(tables, tables.store_item_texts) and foreign:
                ledger.reindexed += _reindex_item_texts(page, arrival.tokenizer)
            if name == noun(tables, tables.messages) and foreign:
                for row in page:
                    merging.reindex(row.values, arrival.tokenizer)
            if by_noun[name] is tables.extractions:  # these name places of messages, which come after them
                extractions.append(page)
                continue
            _take_in(conn, tables, by_noun[name], page, ledger)
            if progress:
                progress()
    for page in extractions:
        _take_in(conn, tables, tables.extractions, page, ledger)
    _forget_vectors(conn, tables, ledger)
    merging.count_on(conn, tables, ledger.said)
    erased = 0 if empty else erasure.reapply(conn, tables, arrival.now)
    return Imported(
        rows=dict(+ledger.stored),
        already_there=dict(+ledger.there),
        renamed=ledger.renamed,
        unkeyed=ledger.unkeyed,
        reindexed=ledger.reindexed,
        without_vectors=ledger.left_out,
        erased=erased,
    )


def _is_empty(conn: Connection, tables: Tables) -> bool:
    """Say whether nobody has anything here, nor ever had anything that was erased."""
    others = (table for table in tables.metadata.sorted_tables if table is not tables.settings)
    return all(conn.execute(select(*row_key(table)).limit(1)).first() is None for table in others)


def _pages(lines: Iterator[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Cut the rows into pages of one table, one scope and one set of columns."""
    page: list[Line] = []
    kept: tuple[Any, ...] = ()
    size = 0
    for line in lines:
        kind = (line.table, line.row.get("tenant"), line.row.get("persona"), *line.row)
        if page and (kind != kept or len(page) == _PAGE or size + line.size > _PAGE_BYTES):
            yield page[0].table, page
            page, size = [], 0
        kept = kind
        page.append(line)
        size += line.size
    if page:
        yield page[0].table, page


def _check_vectors(page: Sequence[_Row]) -> None:
    for row in page:
        if not str(row.values["model"]).endswith(f"@{len(row.values['vector'])}"):
            raise UnreadableArchive("the vector has another length than its model says", line=row.line)


def _reindex(page: Sequence[_Row], tokenizer: Tokenizer) -> int:
    """Make the index terms anew: they were made in another language or by another release."""
    for row in page:
        memory = rows.memory([row.values[name] for name in rows.FIELDS])
        category, content, length = index_terms(memory, tokenizer)
        row.values.update(
            cells=join_terms(cells(memory)), category_terms=category, content_terms=content, length=length
        )
    return len(page)


def _reindex_chunks(page: Sequence[_Row], tokenizer: Tokenizer) -> int:
    for row in page:
        values = row.values
        if values.get("key") is None:
            category, content, length = chunk_terms(values["source"], values["content"], values["headings"], tokenizer)
        else:
            category, (content, length) = "", node_terms(redact(values["content"]), tokenizer)
        owner = Owner(*(values[axis] for axis in Owner._fields))
        values.update(cells=join_terms(cells(owner)), category_terms=category, content_terms=content, length=length)
    return len(page)


def _reindex_item_texts(page: Sequence[_Row], tokenizer: Tokenizer) -> int:
    for row in page:
        values = row.values
        terms = tokenizer.terms(values["content"])
        owner = (values["tenant"], values["persona"], values["author"])
        values.update(
            cells=join_terms(namespaces.cells(owner, values["namespace"])),
            content_terms=join_terms(terms),
            length=len(join_terms(terms).split()),
        )
    return len(page)


def _still_to_embed(page: Sequence[_Row]) -> list[_Row]:
    """Return the jobs that are to make vectors, as nobody has begun them."""
    afresh = {"status": "waiting", "attempts": 0, "lease_until": None, "worker": "", "error": ""}
    return [_Row(row.line, row.values | afresh) for row in page if row.values["kind"] == jobs.EMBED]


def _take_in(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Store the rows of a page, and say which line it was if the database takes one of them not."""
    insert = {
        tables.memories: _insert_memories,
        tables.user_model: _insert_wholes,
        tables.knowledge_documents: _insert_wholes,
        tables.store_items: _insert_wholes,
        tables.conversations: _insert_said,
        tables.messages: _insert_said,
        tables.extractions: _insert_said,
    }.get(table, _insert)
    page = _without_parts(tables, table, page, ledger)
    if not page:
        return
    try:
        with conn.begin_nested():
            insert(conn, tables, table, page, ledger)
    except (IntegrityError, DataError):
        before = _Ledger(left=ledger.left, said=ledger.said)
        for row in page:
            try:
                insert(conn, tables, table, [row], before)
            except (IntegrityError, DataError):
                raise UnreadableArchive(
                    f"the table {noun(tables, table)} does not take this row", line=row.line
                ) from None
        raise StoreBusy("Somebody else wrote the same rows at the same moment: try again.") from None


def _insert(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert what is not there yet."""
    name = noun(tables, table)
    stored = tables.inserts.add(conn, table, [row.values for row in page], skip_conflicts=True)
    ledger.stored[name] += stored
    ledger.there[name] += len(page) - stored
    if stored < len(page):
        _all_there(conn, table, page)


def _all_there(conn: Connection, table: Table, page: Sequence[_Row]) -> None:
    """See to it that a row which was left out is there indeed, and not held off by another unique key of its table."""
    key = row_key(table)
    if not any(isinstance(c, UniqueConstraint) and list(c.columns) != key for c in table.constraints):
        return
    for row in page:
        if conn.execute(select(*key).where(*(c == row.values[c.name] for c in key))).first() is None:
            raise UnreadableArchive("another row, with a key of its own, stands in the way of this one", line=row.line)


def _insert_wholes(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert what has parts and is not there yet, by its key or by name; what is there keeps all its parts."""
    key = row_key(table)
    keys = [tuple(row.values[column.name] for column in key) for row in page]

    def found() -> set[Any]:
        wanted = tuple_(*key).in_(keys)
        return {tuple(row) for row in conn.execute(select(*key).where(*_scope_of(table, page), wanted))}

    before = found()
    tables.inserts.add(conn, table, [row.values for row in page], skip_conflicts=True)
    _leave(tables, table, set(keys) - (found() - before), len(page), ledger)


def _scope_of(table: Table, page: Sequence[_Row]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.tenant == page[0].values["tenant"], table.c.persona == page[0].values["persona"]


def _leave(tables: Tables, table: Table, keys: Set[Any], of: int, ledger: _Ledger) -> None:
    """Note what was left alone of so many rows."""
    name = noun(tables, table)
    ledger.left |= {(name, *key) for key in keys}
    ledger.stored[name] += of - len(keys)
    ledger.there[name] += len(keys)


def _without_parts(tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> Sequence[_Row]:
    """Return the rows that are no part of what was left alone: its history, say, is that of another row here."""
    memories = (noun(tables, tables.memories), "memory_id")
    whole, *names = {
        tables.memory_versions: memories,
        tables.memory_access: memories,
        tables.sources: memories,
        tables.vectors: (memories[0], "owner"),
        tables.user_model_versions: (noun(tables, tables.user_model), "user", "dimension"),
        tables.knowledge_chunks: (noun(tables, tables.knowledge_documents), "document_id"),
        tables.store_item_texts: (noun(tables, tables.store_items), "item_id"),
    }.get(table, ("",))

    def left(row: _Row) -> bool:
        return (whole, *(row.values[name] for name in ("tenant", "persona", *names))) in ledger.left

    if not whole:
        return page
    parts = [row.values for row in page if left(row)]
    ledger.there[noun(tables, table)] += len(parts)
    for corpus in tables.corpora.values():
        if corpus.table is table:
            ledger.parts += [(corpus.kind, part["tenant"], part["persona"], part["id"]) for part in parts]
    return [row for row in page if not left(row)]


def _insert_said(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert conversations, messages or extractions that are not there yet, whatever is said here under their names."""
    insert = {
        tables.conversations: merging.insert_conversations,
        tables.messages: merging.insert_messages,
        tables.extractions: merging.insert_extractions,
    }[table]
    stored = insert(conn, tables, [row.values for row in page], ledger.said)
    ledger.stored[noun(tables, table)] += stored
    ledger.there[noun(tables, table)] += len(page) - stored


def _forget_vectors(conn: Connection, tables: Tables, ledger: _Ledger) -> None:
    """Delete the vectors that came with chunks and texts that were not taken in."""
    v = tables.vectors
    places: dict[tuple[Kind, str, str], list[Any]] = {}
    for kind, tenant, persona, identifier in ledger.parts:
        places.setdefault((kind, tenant, persona), []).append(identifier)
    for (kind, tenant, persona), ids in places.items():
        c = tables.corpora[kind].table
        own = (v.c.tenant == tenant, v.c.persona == persona, v.c.kind == kind)
        owner = exists().where(c.c.tenant == tenant, c.c.persona == persona, c.c.id == v.c.owner)
        gone = conn.execute(delete(v).where(*own, tables.dialect.ids_in(v.c.owner, ids), ~owner)).rowcount
        ledger.stored[noun(tables, v)] -= gone
        ledger.there[noun(tables, v)] += gone


def _insert_memories(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert memories that are not there yet, whoever has their short ids and keys here."""
    m, scope = tables.memories, _scope_of(table, page)
    fresh: set[Any] | None = None
    renamed: set[Any] = set()
    unkeyed: set[Any] = set()
    pending = {row.values["id"]: row.values for row in page}
    for _ in range(_ATTEMPTS):
        there = set(conn.scalars(select(m.c.id).where(*scope, tables.dialect.ids_in(m.c.id, list(pending)))))
        pending = {key: values for key, values in pending.items() if key not in there}
        fresh = set(pending) if fresh is None else fresh
        if not pending:
            break
        renamed |= _rename(conn, tables, scope, pending)
        unkeyed |= _release(conn, tables, scope, pending)
        if tables.inserts.add(conn, m, list(pending.values()), skip_conflicts=True) == len(pending):
            break
    else:
        raise StoreBusy("Somebody else writes the same memories at the same time: try again.")
    whose = (page[0].values["tenant"], page[0].values["persona"])
    _leave(
        tables, table, {(*whose, row.values["id"]) for row in page if row.values["id"] not in fresh}, len(page), ledger
    )
    ledger.renamed += len(renamed)
    ledger.unkeyed += len(unkeyed)


def _rename(conn: Connection, tables: Tables, scope: Sequence[Any], pending: Mapping[Any, dict[str, Any]]) -> set[Any]:
    """Give another short id to whoever's is taken, and return who that is."""
    m = tables.memories
    wanted = [values["short_id"] for values in pending.values()]
    taken = set(conn.scalars(select(m.c.short_id).where(*scope, tables.dialect.texts_in(m.c.short_id, wanted))))
    renamed = set()
    for key, values in pending.items():
        if values["short_id"] in taken:
            values["short_id"] = new_short_id()
            renamed.add(key)
        taken.add(values["short_id"])
    return renamed


def _release(conn: Connection, tables: Tables, scope: Sequence[Any], pending: Mapping[Any, dict[str, Any]]) -> set[Any]:
    """Let go of keys that hold off duplicates where another row has them already, and return whose they were."""
    m = tables.memories
    wanted = [key for values in pending.values() if (key := values["dedupe_key"])]
    found = select(m.c.dedupe_key).where(*scope, tables.dialect.texts_in(m.c.dedupe_key, wanted))
    taken = set(conn.scalars(found)) if wanted else set()
    released = set()
    for key, values in pending.items():
        if values["dedupe_key"] in taken:
            values["dedupe_key"] = None
            released.add(key)
        elif values["dedupe_key"]:
            taken.add(values["dedupe_key"])
    return released
