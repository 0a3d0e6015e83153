"""Search on Postgres: full text by the generated tsvector, vectors compared one by one or by HNSW."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pgvector.sqlalchemy import Vector as VectorType
from psycopg import Connection as Driver
from psycopg.pq import TransactionStatus
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Integer,
    Select,
    String,
    Table,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlalchemy.types import UserDefinedType

from memoranda.db.counts import LARGE, Counts
from memoranda.db.dialects.base import EXACT_LIMIT, TextQuestion, VectorQuestion
from memoranda.db.dialects.postgresql_terms import CLOSE, weighing
from memoranda.db.dialects.postgresql_upkeep import Upkeep
from memoranda.db.dialects.text_cuts import least
from memoranda.db.statements import Leg, Selection
from memoranda.ranking.evidence import K1, B

if TYPE_CHECKING:
    from memoranda.db.corpora import Corpus, Kind
    from memoranda.db.resident import Owner
    from memoranda.db.schema import Tables

_CUSTOM = "SET LOCAL plan_cache_mode = force_custom_plan"
_EF_SEARCH = 200  # as many as the legs propose; pgvector's default of 40 would cut them short
_LEAST_SHARE = 0.02
"""Of the table: an index scan gives up after 20,000 rows, and must have met 200 of the scope by then."""
_PART, _REACH = 1.25, 16
"""A scope is a good part of a persona of up to 1.25 times its rows, for others' long vectors cost more to read than it
saves to ask later who may see them; it may see one of 16 of the nearest at least."""


class _TsQuery(UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "tsquery"


def _tsquery(name: str) -> ColumnElement[Any]:
    return cast(bindparam(name, type_=String), _TsQuery)


def _weight(rows: FromClause, terms: int) -> ColumnElement[Any]:
    """Return what the terms of a row weigh together."""
    nothing: ColumnElement[Any] = literal_column("0.0")
    parts: Iterator[ColumnElement[Any]] = (
        case((rows.c.search.bool_op("@@")(_tsquery(f"word_{i}")), bindparam(f"worth_{i}", type_=Float)), else_=nothing)
        for i in range(terms)
    )
    return reduce(add, parts)


def _distance(vectors: Table, size: int, *, indexed: bool) -> ColumnElement[float]:
    asked = cast(bindparam("asked", type_=VectorType(size)), VectorType(size))
    column: ColumnElement[Any] = cast(vectors.c.vector, VectorType(size)) if indexed else vectors.c.vector
    return column.op("<=>", return_type=Float())(asked)


def _of_model(vectors: Table, kind: "Kind") -> ColumnElement[bool]:
    # The kind is spelled out, for so it stands in the condition of an approximate index.
    return and_(vectors.c.kind == literal_column(f"'{kind}'"), vectors.c.model == bindparam("model"))


def _of_persona(tables: "Tables", kind: "Kind") -> ColumnElement[bool]:
    v = tables.vectors
    return and_(*(v.c[axis] == bindparam(axis) for axis in ("tenant", "persona")), _of_model(v, kind))


def _is_any(column: ColumnElement[Any], values: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return `column = ANY (values)`; negated, SQLAlchemy 2.0 makes `!=` of an equality, which is no negation here."""
    return column.bool_op("=")(func.any(values))


class PostgresqlSearch:
    """The part of `PostgresqlDialect` that finds candidates."""

    foreign: bool
    _upkeep: Upkeep

    def shortened(self, conn: Connection, tables: "Tables", question: VectorQuestion) -> VectorQuestion:
        """Walk the index where there is one, the scope is large, and it is no needle in the table's haystack.

        Without it, a scope that is a good part of its persona is compared before anybody asks what of it may be seen.
        """
        kind, rows = question.corpus.kind, question.rows
        if rows > EXACT_LIMIT:
            indexed = self._upkeep.indexed(conn, kind, question.model)
            if indexed is not None and rows >= indexed * _LEAST_SHARE:
                return replace(question, approximate=True)
        if rows < LARGE:
            return question
        return replace(question, nearest_first=self._is_good_part(conn, tables, question))

    def _is_good_part(self, conn: Connection, tables: "Tables", question: VectorQuestion) -> bool:
        """Say whether the persona has hardly more vectors than the scope has rows."""
        kind, added = question.corpus.kind, tables.inserts.added[tables.vectors.name]
        enough = int(_PART * question.rows)
        whose = (kind, question.tenant, question.persona, question.model, question.rows)
        counts = tables.counts.of(whose, added)
        if counts is None:

            def build() -> Select[Any]:
                some: Select[Any] = (
                    select(literal_column("1")).select_from(tables.vectors).where(_of_persona(tables, kind))
                )
                return select(func.count()).select_from(some.limit(bindparam("enough", type_=Integer)).subquery())

            own = {"tenant": question.tenant, "persona": question.persona, "model": question.model}
            values = {**own, "enough": enough}
            [(vectors,)] = tables.statements.rows(conn, ("vectors of a persona", kind), build, values)
            counts = Counts(int(vectors), 0.0)
            tables.counts.keep(whose, added, counts)
        return counts.rows < enough

    @contextmanager
    def searching(self, conn: Connection, question: VectorQuestion | None) -> Iterator[None]:
        """Keep plans custom on a caller's connections."""
        if not self.foreign:
            yield
            return
        driver = conn.connection.driver_connection
        assert isinstance(driver, Driver)
        if driver.info.transaction_status != TransactionStatus.IDLE:
            # Inside a write, which has to end as a whole, and the setting with it.
            conn.exec_driver_sql(_CUSTOM)
            yield
            return
        conn.exec_driver_sql(f"BEGIN; {_CUSTOM}")
        try:
            yield
        except BaseException:
            if not conn.invalidated:
                conn.exec_driver_sql("ROLLBACK")
            raise
        conn.exec_driver_sql("COMMIT")

    def resident(self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: "Owner") -> None:
        """Hold none: the server does."""
        return None

    def text_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: TextQuestion, limit: int
    ) -> Leg:
        """Search the generated tsvector, starting from the cells.

        What says any of the terms is scored by BM25 as if every term were said once, as on SQLite; by `ts_rank` where
        every term is said, or nobody has counted what one is worth.
        """
        m, weighs = question.corpus.table, question.match == "any" and any(question.document_frequency)
        terms = len(question.terms) if weighs else None

        def build() -> Select[Any]:
            matched = [wanted.where(m), m.c.search.bool_op("@@")(_tsquery("matched"))]
            most = bindparam("words_limit", type_=Integer)
            if terms is None:
                score = func.ts_rank(m.c.search, _tsquery("said")).label("score")
                found = select(m.c.id, score, *question.corpus.standing).where(*matched)
                return found.order_by(score.desc(), m.c.id.desc()).limit(most)
            # The offset keeps the planner from weighing each row again wherever its weight is named.
            weight = _weight(m, terms).label("weight")
            weighed = select(m.c.id, weight, m.c.length, *question.corpus.standing).where(*matched)
            rows = weighed.offset(literal_column("0")).subquery("weighed")
            base, slope = (bindparam(name, type_=Float) for name in ("base", "slope"))
            score = (rows.c.weight / (base + slope * rows.c.length)).label("score")
            # The index lets lighter rows through as well, and they must not fill the limit in place of heavy ones.
            heavy = rows.c.weight >= bindparam("least", type_=Float)
            columns = (rows.c.id, score, rows.c.container, rows.c.place)
            return select(*columns).where(heavy).order_by(score.desc(), rows.c.id.desc()).limit(most)

        needed = least(question, limit)
        said = " & ".join(question.terms) if question.match == "all" else weighing(question, needed)
        matched = f"({' | '.join(question.cells)}) & ({said})"
        values: dict[str, Any] = {"matched": matched, "words_limit": limit}
        if weighs:
            values["least"] = min(needed, sum(question.weights)) - CLOSE
            values |= {"base": 1 + K1 * (1 - B), "slope": K1 * B / max(question.average_length, 1.0)}
            for i, (term, weight) in enumerate(zip(question.terms, question.weights, strict=True)):
                values |= {f"word_{i}": term, f"worth_{i}": weight}
        else:
            values["said"] = " | ".join(question.terms)
        form = wanted.form and ("words", wanted.form, terms)
        return Leg(build, form, {**wanted.values, **values}, cut=needed > min(question.weights, default=0.0))

    def vector_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: VectorQuestion, limit: int
    ) -> Leg:
        """Compare one by one in a small scope; walk the index in a large one that has it."""
        m, v, size = question.corpus.table, tables.vectors, len(question.vector)
        distance = _distance(v, size, indexed=question.approximate).label("distance")
        kind, most = question.corpus.kind, bindparam("meaning_limit", type_=Integer)
        walking = self._walking(conn) if question.approximate else {}

        def build_joined() -> Select[Any]:
            compared = (
                select(m.c.id, distance, *question.corpus.standing)
                .select_from(m.join(v, and_(v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.owner == m.c.id)))
                .where(wanted.where(m), _of_model(v, kind))
            )
            # The offset keeps the planner from an approximate index where an exact answer is cheap, and the vectors out
            # of the sort, where each would be unpacked a second time.
            near = compared.offset(literal_column("0")).subquery()
            columns = (near.c.id, (1 - near.c.distance).label("score"), near.c.container, near.c.place)
            return select(*columns).order_by(near.c.distance).limit(most)

        def build_walk() -> Select[Any]:
            # The settings end with the statement, and stand before the walk begins, for it looks at them.
            settings = select(*(func.set_config(*pair, true()) for pair in walking.items())).subquery("settings")
            compared = (
                select(m.c.id, distance, *question.corpus.standing)
                .select_from(m.join(v, and_(v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.owner == m.c.id)))
                .where(wanted.where(m), _of_model(v, kind), *(setting.is_not(None) for setting in settings.c))
            )
            near = compared.order_by(distance).limit(most).lateral("near")
            columns = (near.c.id, (1 - near.c.distance).label("score"), near.c.container, near.c.place)
            return select(*columns).select_from(settings.join(near, true())).order_by(near.c.distance).limit(most)

        def build_nearest_first() -> Select[Any]:
            compared = select(v.c.owner, distance).where(_of_persona(tables, kind)).offset(0).subquery()
            reach = most * literal_column(str(_REACH))
            near = select(compared).order_by(compared.c.distance).limit(reach).subquery("near")
            one = select(m.c.id, *question.corpus.standing).where(wanted.where(m), m.c.id == near.c.owner)
            seen = one.offset(literal_column("0")).lateral("seen")
            columns = (seen.c.id, (1 - near.c.distance).label("score"), seen.c.container, seen.c.place)
            return select(*columns).select_from(near.join(seen, true())).order_by(near.c.distance).limit(most)

        form = wanted.form and ("meaning", wanted.form, size, question.approximate, question.nearest_first)
        build = build_nearest_first if question.nearest_first else build_walk if question.approximate else build_joined
        return Leg(build, form, {**wanted.values, **question.values, "meaning_limit": limit})

    def _walking(self, conn: Connection) -> Mapping[str, str]:
        """Return the settings that let an approximate scan go on until enough rows fit."""
        iterative = {"hnsw.iterative_scan": "relaxed_order"} if self._upkeep.vector_version(conn) >= (0, 8) else {}
        return {"hnsw.ef_search": str(_EF_SEARCH), **iterative}

    def with_cosines(
        self, rows: FromClause, tables: "Tables", question: VectorQuestion
    ) -> tuple[FromClause, ColumnElement[Any]]:
        """Compute the cosine in the statement."""
        m, v = question.corpus.table, tables.vectors
        own = and_(v.c.tenant == m.c.tenant, v.c.persona == m.c.persona, v.c.owner == m.c.id)
        joined = rows.outerjoin(v, and_(own, _of_model(v, question.corpus.kind)))
        return joined, 1 - _distance(v, len(question.vector), indexed=False)

    def cosines(
        self, conn: Connection, tables: "Tables", evidence: Sequence[Any], question: VectorQuestion
    ) -> list[float | None]:
        """Pass on what the statement computed; a zero vector has no direction and is like nothing."""
        return [None if c is None else float(c) if c == c else 0.0 for c in evidence]

    def frequencies(self, corpus: "Corpus", terms: int, most: int | None = None) -> Select[Any]:
        """Count by the index, one look a term."""
        m = corpus.table
        if most is None:
            # One pass over the rows that hold any: an index has to find most of them again for each term.
            times = (func.count().filter(m.c.search.bool_op("@@")(_tsquery(f"counted_{i}"))) for i in range(terms))
            any_of = m.c.search.bool_op("@@")(_tsquery("counted"))
            return select(array(list(times)).label("frequencies")).select_from(m).where(any_of)
        found = (
            select(literal_column("1")).select_from(m).where(m.c.search.bool_op("@@")(query)).limit(most).subquery()
            for query in (_tsquery("cells").op("&&")(_tsquery(f"counted_{i}")) for i in range(terms))
        )
        seen = (select(func.count()).select_from(rows).scalar_subquery() for rows in found)
        return select(array(list(seen)).label("frequencies"))

    def counting(self, cells: Sequence[str], terms: Sequence[str]) -> Mapping[str, Any]:
        """Return the terms as queries."""
        joined = f"({' | '.join(cells)})"
        each = {f"counted_{i}": term for i, term in enumerate(terms)}
        return {"cells": joined, "counted": f"{joined} & ({' | '.join(terms)})", **each} if terms else {}

    def moments(self, raw: Sequence[Any]) -> list[datetime]:
        """Pass them on: they are aware."""
        return list(raw)

    def identifiers(self, raw: Sequence[Any]) -> list[UUID]:
        """Pass them on."""
        return list(raw)

    def ids_in(self, column: ColumnElement[UUID], ids: Sequence[UUID], name: str | None = None) -> ColumnElement[bool]:
        """Send one array."""
        return _is_any(column, cast(bindparam(name, self.id_list(ids), ARRAY(PG_UUID)), ARRAY(PG_UUID)))

    def id_list(self, ids: Sequence[UUID]) -> Any:
        """Return a list."""
        return list(ids)

    def texts_in(self, column: ColumnElement[str], texts: Sequence[str]) -> ColumnElement[bool]:
        """Send one array."""
        return _is_any(column, cast(literal(list(texts), ARRAY(String)), ARRAY(String)))
