"""How many rows a question is asked of, how long they are, and how many of them say each of its terms."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, null, select

from memoranda.db.corpora import Corpus
from memoranda.db.counts import Counts
from memoranda.db.queries.visibility import active
from memoranda.db.schema import Tables
from memoranda.db.statements import Selection


class Counted(NamedTuple):
    """What was counted, now or a while ago; see `memoranda.db.counts`."""

    rows: int
    average_length: float
    frequencies: tuple[int, ...]
    """In how many rows each term stands, in the order of the terms."""


def counted(
    conn: Connection,
    tables: Tables,
    corpus: Corpus,
    rows: Selection,
    whose: Hashable,
    cells: Sequence[str],
    terms: Sequence[str],
    most: int | None = None,
) -> Counted:
    """Count rows that hold now, and the terms in them.

    Args:
        conn: A connection.
        tables: The store's tables.
        corpus: What is searched.
        rows: Which of its rows count.
        whose: What these rows are remembered by.
        cells: The index terms that mark them.
        terms: The terms.
        most: Up to how many rows a term is counted; None for all.
    """
    added = tables.inserts.added[corpus.table.name]
    counts = tables.counts.of(whose, added)
    kept = {} if counts is None else counts.terms
    known = {term: kept[term] for term in terms if term in kept}
    unknown = [term for term in terms if term not in known]
    if counts is None or unknown:
        form = rows.form and ("counted", corpus.kind, rows.form, len(unknown), most, counts is None)
        every = counts is None
        values = {**rows.values, **tables.dialect.counting(cells, unknown)}
        [(number, average, frequencies)] = tables.statements.rows(
            conn, form, lambda: _counting(tables, corpus, rows, len(unknown), most, every), values
        )
        if counts is None:
            counts = Counts(int(number), float(average or 0))
            tables.counts.keep(whose, added, counts)
        if unknown:
            fresh = dict(zip(unknown, frequencies, strict=True))
            known |= fresh
            tables.counts.learn(counts, fresh)
    return Counted(counts.rows, counts.average, tuple(known[term] for term in terms))


def _counting(
    tables: Tables, corpus: Corpus, rows: Selection, terms: int, most: int | None, every: bool
) -> Select[Any]:
    m, frequencies = corpus.table, tables.dialect.frequencies(corpus, terms, most) if terms else None
    times = (null() if frequencies is None else frequencies.scalar_subquery()).label("frequencies")
    if not every:
        return select(null().label("rows"), null().label("average"), times)
    counts = select(func.count().label("rows"), func.avg(m.c.length).label("average"))
    all_rows = counts.where(rows.where(m), active(m)).subquery("counts")
    return select(all_rows.c.rows, all_rows.c.average, times)
