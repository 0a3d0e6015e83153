"""Rows of a file on their way into a store: what is there already is left alone, and nobody's row is lost."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, UniqueConstraint, delete, exists, select
from sqlalchemy.exc import DataError, IntegrityError

from memoranda.archive import ArchiveReader, Line, UnreadableArchive, decoded
from memoranda.db import migrations
from memoranda.db.queries import erasure, merging, rows, store
from memoranda.db.queries.moving import EMBEDDER, WORDS, noun, row_key, shape
from memoranda.db.schema import Tables
from memoranda.drafts import Owner, cells, chunk_terms, index_terms
from memoranda.errors import StoreBusy
from memoranda.ids import new_short_id
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
    documents: set[Any] = field(default_factory=set)
    """Those of the file that are not taken in, because the store has a document of the same id or name."""
    chunks: list[Any] = field(default_factory=list)
    """Their chunks."""


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
                # prompt, says nothing about the rows that were here before.
                continue
            if name == noun(tables, tables.memories) and foreign:
                ledger.reindexed += _reindex(page, arrival.tokenizer)
            if name == noun(tables, tables.knowledge_chunks) and foreign:
                ledger.reindexed += _reindex_chunks(page, arrival.tokenizer)
            if name == noun(tables, tables.messages) and foreign:
                for row in page:
                    merging.reindex(row.values, arrival.tokenizer)
            _take_in(conn, tables, by_noun[name], page, ledger)
            if progress:
                progress()
    _forget_vectors(conn, tables, ledger)
    merging.count_on(conn, tables)
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
        memory = rows.memory(row.values)
        category, content, length = index_terms(memory, tokenizer)
        row.values.update(
            cells=join_terms(cells(memory)), category_terms=category, content_terms=content, length=length
        )
    return len(page)


def _reindex_chunks(page: Sequence[_Row], tokenizer: Tokenizer) -> int:
    for row in page:
        values = row.values
        category, content, length = chunk_terms(values["source"], values["content"], values["headings"], tokenizer)
        owner = Owner(*(values[axis] for axis in Owner._fields))
        values.update(cells=join_terms(cells(owner)), category_terms=category, content_terms=content, length=length)
    return len(page)


def _take_in(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Store the rows of a page, and say which line it was if the database takes one of them not."""
    insert = {
        tables.memories: _insert_memories,
        tables.knowledge_documents: _insert_documents,
        tables.knowledge_chunks: _insert_chunks,
        tables.conversations: _insert_said,
        tables.messages: _insert_said,
    }.get(table, _insert)
    try:
        with conn.begin_nested():
            insert(conn, tables, table, page, ledger)
    except (IntegrityError, DataError):
        before = _Ledger(documents=ledger.documents)
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


def _insert_documents(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert documents that are not there yet, by id or by name; one that is there keeps its chunks, all of them."""
    name, d, ids = noun(tables, table), tables.knowledge_documents, [row.values["id"] for row in page]
    scope = (d.c.tenant == page[0].values["tenant"], d.c.persona == page[0].values["persona"])
    found = select(d.c.id).where(*scope, tables.dialect.ids_in(d.c.id, ids))
    before = set(conn.scalars(found))
    tables.inserts.add(conn, table, [row.values for row in page], skip_conflicts=True)
    left = set(ids) - (set(conn.scalars(found)) - before)
    ledger.documents |= left
    ledger.stored[name] += len(page) - len(left)
    ledger.there[name] += len(left)


def _insert_chunks(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert the chunks of documents that were taken in."""
    kept = [row for row in page if row.values["document_id"] not in ledger.documents]
    left = [row for row in page if row.values["document_id"] in ledger.documents]
    ledger.there[noun(tables, table)] += len(left)
    ledger.chunks += [(row.values["tenant"], row.values["persona"], row.values["id"]) for row in left]
    if kept:
        _insert(conn, tables, table, kept, ledger)


def _insert_said(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert conversations or messages that are not there yet, whatever is said here under the same names."""
    insert = merging.insert_messages if table is tables.messages else merging.insert_conversations
    stored = insert(conn, tables, [row.values for row in page])
    ledger.stored[noun(tables, table)] += stored
    ledger.there[noun(tables, table)] += len(page) - stored


def _forget_vectors(conn: Connection, tables: Tables, ledger: _Ledger) -> None:
    """Delete the vectors that came with chunks that were not taken in."""
    v, c = tables.vectors, tables.knowledge_chunks
    places: dict[tuple[str, str], list[Any]] = {}
    for tenant, persona, identifier in ledger.chunks:
        places.setdefault((tenant, persona), []).append(identifier)
    for (tenant, persona), ids in places.items():
        own = (v.c.tenant == tenant, v.c.persona == persona, v.c.kind == "knowledge")
        owner = exists().where(c.c.tenant == tenant, c.c.persona == persona, c.c.id == v.c.owner)
        gone = conn.execute(delete(v).where(*own, tables.dialect.ids_in(v.c.owner, ids), ~owner)).rowcount
        ledger.stored[noun(tables, v)] -= gone
        ledger.there[noun(tables, v)] += gone


def _insert_memories(conn: Connection, tables: Tables, table: Table, page: Sequence[_Row], ledger: _Ledger) -> None:
    """Insert memories that are not there yet, whoever has their short ids and keys here."""
    name, m = noun(tables, table), tables.memories
    scope = (m.c.tenant == page[0].values["tenant"], m.c.persona == page[0].values["persona"])
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
    ledger.stored[name] += len(fresh)
    ledger.there[name] += len(page) - len(fresh)
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
