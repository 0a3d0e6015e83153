"""The one candidate generator: rows that might answer a question, with the evidence a ranker judges by.

Two legs propose rows of a corpus, by words and by meaning; the rows beside them in their container come along. What
differs by database are the two legs, which the dialect supplies as subqueries of the one statement that collects the
evidence; what differs by table stands in `memoranda.db.corpora`.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    String,
    Uuid,
    and_,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    select,
    true,
    type_coerce,
    union_all,
)
from sqlalchemy.types import NullType

from memoranda.candidates import Candidates, Query
from memoranda.db.corpora import Corpus, Kind
from memoranda.db.counts import LARGE
from memoranda.db.dialects.base import Dialect, TextQuestion, VectorQuestion
from memoranda.db.queries import projects, resident
from memoranda.db.queries.counting import Counted, counted
from memoranda.db.queries.visibility import seen_rows, wanted_rows
from memoranda.db.resident import Owner
from memoranda.db.schema import Tables
from memoranda.db.statements import Leg, Selection, named
from memoranda.filters import Filters
from memoranda.policies import RankingPolicy, VisibilityPolicy
from memoranda.ranking import READS_TEXTS
from memoranda.ranking.evidence import inverse_frequency
from memoranda.scope import Scope, author_cell, project_cell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]


_SHORTENED = 4  # times as many rows as are wanted: of fewer nearly all have to be compared after all
_SMALL = 200
"""Rows of a scope up to which all of them are read once for those that stand beside others."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Question:
    """What is asked, of what, by whom and how."""

    kind: Kind = "memory"
    text: str
    terms: tuple[str, ...]
    words: frozenset[str]
    vector: "Vector | None"
    model: str | None
    scope: Scope
    visibility: VisibilityPolicy
    ranking: RankingPolicy
    filters: Filters
    now: datetime
    texts: bool = False
    """Whether the terms of the candidates are read as they are written, not only counted."""


def gather(conn: Connection, tables: Tables, question: Question) -> tuple[Query, Candidates]:
    """Return the question with the statistics of the rows it is asked of, and the candidates in no particular order."""
    corpus, scope, filters = tables.corpora[question.kind], question.scope, question.filters
    shared = projects.projects_of(conn, tables, scope) if corpus.shared else ()
    in_memory = _in_memory(conn, tables, corpus, question, shared)
    found = _counted(conn, tables, corpus, question, shared) if in_memory is None else in_memory.counted()
    query = _query(corpus, question, found)
    if not query.rows and filters.as_of is None and not filters.include_inactive:
        return query, Candidates.of(())  # the count leaves out what does not hold now, and nothing else
    if in_memory is None:
        tables.dialect.learn_statistics(conn, tables, corpus, scope.tenant, scope.persona, query.rows)
    vectors = _vector_question(conn, tables, corpus, question, query)
    text, limit = _text_question(corpus, question, query, shared), question.ranking.candidates
    search = (
        partial(_candidates, conn, tables, question, shared)
        if in_memory is None
        else partial(in_memory.search, conn, _wanted(tables, question, shared))
    )
    candidates = search(text, vectors)
    if vectors is not None and vectors.partial and sum(candidates.column["by_meaning"]) < limit:
        vectors = vectors.whole()
        candidates = search(text, vectors)
    if text is not None and text.match == "all" and vectors is None and not any(candidates.column["by_words"]):
        candidates = search(replace(text, match="any"), vectors)
    return query, candidates


def _in_memory(
    conn: Connection, tables: Tables, corpus: Corpus, question: Question, shared: Sequence[str]
) -> "resident.Asked | None":
    """Return the rows asked where they are in memory: an author's own, of now, of a database that keeps any there."""
    scope, filters = question.scope, question.filters
    if shared or filters.as_of is not None or filters.include_inactive or _asks_newest(corpus, question):
        return None
    owner = Owner(scope.tenant, scope.persona, scope.author, corpus.kind, question.model or "")
    texts = question.texts or question.ranking.name in READS_TEXTS
    own = tables.dialect.resident(conn, tables, corpus, owner)
    return (
        None if own is None else resident.Asked(tables.dialect, own, question.terms, question.ranking, filters, texts)
    )


def _asks_newest(corpus: Corpus, question: Question) -> bool:
    """Say whether the newest rows are asked, whatever they say."""
    return question.vector is None and question.ranking.recent > 0 and not corpus.timeless


def any_to_ask(conn: Connection, tables: Tables, question: Question) -> bool:
    """Say whether there is any row the question is asked of."""
    corpus = tables.corpora[question.kind]
    shared = projects.projects_of(conn, tables, question.scope) if corpus.shared else ()
    chosen, rows = _wanted(tables, question, shared), corpus.table
    return bool(
        tables.statements.rows(
            conn,
            chosen.form and ("any", chosen.form),
            lambda: select(rows.c.id).where(chosen.where(rows)).order_by(rows.c.author).limit(1),
            chosen.values,
        )
    )


def _cells(scope: Scope, shared: Sequence[str]) -> list[str]:
    own = author_cell(scope.tenant, scope.persona, scope.author)
    return [own, *(project_cell(scope.tenant, scope.persona, project) for project in shared)]


def _counted(conn: Connection, tables: Tables, corpus: Corpus, question: Question, shared: Sequence[str]) -> Counted:
    """Count over the asker's own rows and those shared with them, never over anybody else's.

    One index answers that; status, space and subject, which it does not know, do not count here.
    """
    scope = question.scope
    whose: tuple[Hashable, ...] = (corpus.kind, scope.whose, scope.author)
    if shared:  # what is shared is seen by all axes of the scope
        whose = (*whose, scope, question.visibility, tuple(shared))
    rows = seen_rows(tables, corpus, scope, question.visibility, shared) if shared else _authored(scope)
    return counted(conn, tables, corpus, rows, whose, _cells(scope, shared), question.terms)


def _query(corpus: Corpus, question: Question, found: Counted) -> Query:
    return Query(
        text=question.text,
        terms=question.terms,
        words=question.words,
        embedded=question.vector is not None,
        now=question.now,
        rows=found.rows,
        average_length=found.average_length,
        document_frequency=found.frequencies,
        timeless=corpus.timeless,
    )


def _authored(scope: Scope) -> Selection:
    """Return an author's rows, which one index finds by itself."""
    own = {"tenant": scope.tenant, "persona": scope.persona, "author": scope.author}
    return Selection(lambda m: and_(*(m.c[name] == named(name, value) for name, value in own.items())), "author", own)


def _text_question(corpus: Corpus, question: Question, query: Query, shared: Sequence[str]) -> TextQuestion | None:
    if not question.terms or _asks_newest(corpus, question):
        return None
    return TextQuestion(
        corpus=corpus,
        cells=_cells(question.scope, shared),
        terms=question.terms,
        weights=[inverse_frequency(max(query.rows, seen), seen) for seen in query.document_frequency],
        document_frequency=query.document_frequency,
        average_length=query.average_length,
        match=question.ranking.match,
        # What a filter hides was counted all the same; to look at every row of a small scope costs next to nothing.
        lending=question.filters == Filters() or query.rows >= LARGE,
    )


def _vector_question(
    conn: Connection, tables: Tables, corpus: Corpus, question: Question, query: Query
) -> VectorQuestion | None:
    if question.vector is None or question.model is None:
        return None
    found = VectorQuestion(
        corpus=corpus,
        tenant=question.scope.tenant,
        persona=question.scope.persona,
        model=question.model,
        vector=question.vector,
        rows=query.rows,
    )
    # Of what is nearest, or met on the way there, filters may let too few rows through.
    shortens = question.filters == Filters() and query.rows > _SHORTENED * question.ranking.candidates
    return tables.dialect.shortened(conn, tables, found) if shortens else found


def _candidates(
    conn: Connection,
    tables: Tables,
    question: Question,
    shared: Sequence[str],
    text: TextQuestion | None,
    vectors: VectorQuestion | None,
) -> Candidates:
    limit, dialect, corpus = question.ranking.candidates, tables.dialect, tables.corpora[question.kind]
    chosen = _wanted(tables, question, shared)
    legs: dict[str, Leg] = {}
    with dialect.searching(conn, vectors):
        if text is not None:
            legs["words"] = dialect.text_leg(conn, tables, chosen, text, limit)
        elif vectors is None and _asks_newest(corpus, question):
            legs["words"] = _newest(corpus, chosen, question.ranking.recent)
        if vectors is not None:
            legs["meaning"] = dialect.vector_leg(conn, tables, chosen, vectors, limit)
        if not legs:
            return Candidates.of(())
        reach, said = question.ranking.neighbours, question.ranking.name == "overlap"
        held_then = question.filters.as_of is not None or question.filters.include_inactive  # more than are counted
        small = vectors is not None and vectors.rows <= _SMALL and not held_then
        forms = [(name, leg.form) for name, leg in legs.items()]
        kept = chosen.form is not None and all(form is not None for _, form in forms)
        values = {**chosen.values, **(vectors.values if vectors else {})}
        for leg in legs.values():
            values |= leg.values
        found = tables.statements.rows(
            conn,
            ("evidence", chosen.form, *forms, reach, said, small) if kept else None,
            lambda: _with_evidence(tables, corpus, chosen, legs, vectors, reach, said=said, small=small),
            values,
        )
        cosines: Sequence[float | None] = [None] * len(found)
        if found and vectors:
            cosines = dialect.cosines(conn, tables, [row[-1] for row in found], vectors)
    candidates = _read(dialect, found, cosines) if found else Candidates.of(())
    if text is not None and legs["words"].cut and sum(candidates.column["by_words"]) < limit:
        # The rows that say the rarer terms were counted without filters, or are gone by now.
        return _candidates(conn, tables, question, shared, replace(text, lending=False), vectors)
    return candidates


def _read(dialect: Dialect, found: Sequence[Sequence[Any]], cosines: Sequence[float | None]) -> Candidates:
    """Return rows of `_with_evidence` as candidates."""
    ids, *said, importances, stored, happened, containers, places, words, meaning, _ = zip(*found, strict=True)
    moments = dialect.moments(stored + happened)
    created_at, happened_at = moments[: len(found)], moments[len(found) :]
    proposed = (list(map(bool, words)), list(map(bool, meaning)))
    columns = (*said, cosines, *proposed, importances, created_at, happened_at, containers, places)
    return Candidates((dialect.identifiers(ids), *columns))


def _newest(corpus: Corpus, chosen: Selection, limit: int) -> Leg:
    """Propose the rows stored last, whatever they say."""
    m = corpus.table

    def build() -> Select[Any]:
        newest = select(m.c.id, literal_column("0.0").label("score"), *corpus.standing).where(chosen.where(m))
        return newest.order_by(m.c.created_at.desc(), m.c.id.desc()).limit(bindparam("newest", type_=Integer))

    return Leg(build, chosen.form and ("newest", chosen.form), {**chosen.values, "newest": limit})


def _wanted(tables: Tables, question: Question, shared: Sequence[str]) -> Selection:
    corpus, scope, filters = tables.corpora[question.kind], question.scope, question.filters
    return wanted_rows(tables, corpus, scope, question.visibility, shared, filters, question.now)


def _with_evidence(
    tables: Tables,
    corpus: Corpus,
    chosen: Selection,
    legs: Mapping[str, Leg],
    vectors: VectorQuestion | None,
    reach: int,
    *,
    said: bool,
    small: bool,
) -> Select[Any]:
    """Join what the legs propose, and what stands beside it, with everything a ranker looks at."""
    m = corpus.table
    yes: ColumnElement[int] = literal_column("1")
    no: ColumnElement[int] = literal_column("0")
    marks = ("words", "meaning")
    proposals = {name: leg.build().cte(f"by_{name}") for name, leg in legs.items()}
    proposed = union_all(
        *(
            select(
                leg.c.id, leg.c.container, leg.c.place, *((yes if name == mark else no).label(mark) for mark in marks)
            )
            for name, leg in proposals.items()
        )
    ).cte("proposed")
    parts: list[Select[Any]] = [select(proposed.c.id, *(proposed.c[mark] for mark in marks))]
    if reach:
        beside = _beside(tables, corpus, chosen, proposed, reach, small=small)
        parts.append(select(beside.c.id, *(no.label(mark) for mark in marks)))
    every = union_all(*parts).subquery("every")
    # One row an id: each leg speaks of it once at most, and a row may stand beside several.
    each = (
        select(every.c.id, *(func.max(every.c[mark]).label(mark) for mark in marks)).group_by(every.c.id).cte("chosen")
    )
    joined: FromClause = each.join(m, and_(_own(m), m.c.id == each.c.id))
    evidence: ColumnElement[Any] = null()
    if vectors is not None:
        joined, evidence = tables.dialect.with_cosines(joined, tables, vectors)
    happened = [corpus.evidence(name) for name in ("event_time", "valid_from") if name in m.c]
    columns: dict[str, ColumnElement[Any]] = {
        "id": m.c.id,
        "content": m.c.content if said else literal_column("''"),
        "category_terms": m.c.category_terms,
        "content_terms": m.c.content_terms,
        "length": m.c.length,
        "importance": m.c.importance if "importance" in m.c else no,
        "created_at": m.c.created_at,
        "happened_at": func.coalesce(*happened, m.c.created_at) if happened else m.c.created_at,
        "container": _as_text(m.c[corpus.container]),
        "place": m.c[corpus.place],
        "words": each.c.words,
        "meaning": each.c.meaning,
        "evidence": evidence,
    }
    # As the driver gives them: there are hundreds of rows, and SQLAlchemy's types would look at every value.
    raw = (type_coerce(column, NullType()).label(name) for name, column in columns.items())
    return select().add_columns(*raw).select_from(joined)


def _beside(tables: Tables, corpus: Corpus, chosen: Selection, proposed: CTE, reach: int, *, small: bool) -> FromClause:
    """Return the ids of the rows beside those that are proposed, some of them several times."""
    other, kept = corpus.other, corpus.contained(proposed.c.container)
    container, place = other.c[corpus.container], other.c[corpus.place]
    wanted = and_(corpus.contained(container), chosen.where(other))
    if tables.dialect.laterals:
        places = select(proposed.c.container, proposed.c.place).where(kept).distinct().subquery("places")
        if small:
            # Read once: the planner believes that there is hardly a row, and would read all of them for each place.
            columns = (other.c.id, container.label("container"), place.label("place"))
            own = select(*columns).where(wanted).cte("own").prefix_with("MATERIALIZED")
            beside = _near(own.c.container, own.c.place, places, reach)
            return select(own.c.id).select_from(places.join(own, beside)).subquery("beside")
        # The offset keeps the planner from reading a whole table for what a few looks at an index give.
        beside = _near(container, place, places, reach)
        found = select(other.c.id).where(beside, wanted).offset(literal_column("0")).lateral("found")
        return select(found.c.id).select_from(places.join(found, true())).subquery("beside")
    # By equality a step, for of a range the planner does not believe that it holds few rows.
    steps = union_all(*(select(literal_column(str(step)).label("step")) for step in _steps(reach))).cte("steps")
    near = and_(container == proposed.c.container, place == proposed.c.place + steps.c.step)
    joined = proposed.join(steps, true()).join(other, near)
    return select(other.c.id).select_from(joined).where(kept, wanted).subquery("beside")


def _near(
    container: ColumnElement[Any], place: ColumnElement[Any], places: FromClause, reach: int
) -> ColumnElement[bool]:
    reached = place.between(places.c.place - reach, places.c.place + reach)
    return and_(container == places.c.container, reached, place != places.c.place)


def _steps(reach: int) -> list[int]:
    return [step for step in range(-reach, reach + 1) if step]


def _as_text(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return cast(column, String) if isinstance(column.type, Uuid) else column


def _own(rows: FromClause) -> ColumnElement[bool]:
    return and_(*(rows.c[name] == bindparam(name) for name in ("tenant", "persona")))
