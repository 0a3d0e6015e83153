"""The one predicate that says what a scope may see, and the conditions of time and filter that come on top."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, case, exists, false, func, or_, select, true, type_coerce

from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not
from memoranda.db.corpora import Corpus
from memoranda.db.schema import Tables
from memoranda.db.statements import Selection, Value, given, named
from memoranda.db.types import Json
from memoranda.filters import Filters, Place
from memoranda.policies import VisibilityPolicy
from memoranda.records import Memory
from memoranda.scope import Scope, project_key

REWRITING = ("revise", "amend")
"""The changes that give a row other words or fields, where the others end or reopen it."""


def visible(
    tables: Tables,
    scope: Scope,
    policy: VisibilityPolicy,
    rows: FromClause | None = None,
    *,
    shared: Sequence[str] | None = None,
    value: Value = given,
) -> ColumnElement[bool]:
    """Return the predicate every read, correction and look-up of memories, chunks and messages carries.

    An author sees their own rows. Others see a row only if it is shared with a project they are a member of. Without a
    user only rows without an author are seen, and none where the policy requires one. An axis that a table has no
    column for decides nothing about its rows: chunks have neither space nor subject. Messages are shared with nobody,
    and were said in a space, a thread and with people, who are their subjects.

    Args:
        tables: The store's tables.
        scope: Who asks.
        policy: Which axes decide.
        rows: What is looked at; the memories when left out.
        shared: The asker's projects, where this transaction has read them already: a list that is known lets the
            database start from an index.
        value: How values stand in it; see `seen` for those that it names.
    """
    m = tables.memories if rows is None else rows
    return and_(
        m.c.tenant == value("tenant", scope.tenant),
        m.c.persona == value("persona", scope.persona),
        _author(tables, scope, policy, m, shared, value),
        _space(scope, policy, m, value) if "space" in m.c else true(),
        _about(scope, policy, m, value) if "about" in m.c else true(),
        tables.dialect.json_condition(m.c.said_in, _said(scope, policy)) if "said_in" in m.c else true(),
    )


def owned(
    scope: Scope, policy: VisibilityPolicy, author: ColumnElement[str], value: Value = given
) -> ColumnElement[bool]:
    """Return the condition for what the asker has written; without a user for what nobody has, or for nothing."""
    if scope.user is None and policy.author == "required":
        return false()
    mine: ColumnElement[bool] = author == value("author", scope.author)
    return mine


def _author(
    tables: Tables,
    scope: Scope,
    policy: VisibilityPolicy,
    m: FromClause,
    shared: Sequence[str] | None,
    value: Value,
) -> ColumnElement[bool]:
    own = owned(scope, policy, m.c.author, value)
    if scope.user is None or "audience" not in m.c:
        return own
    if shared is None:
        members = tables.project_members
        mine = select(members.c.project).where(
            members.c.tenant == value("tenant", scope.tenant),
            members.c.persona == value("persona", scope.persona),
            members.c.member == value("author", scope.user),
        )
        return or_(own, and_(m.c.audience == "project", m.c.project.in_(mine)))
    if not shared:
        return own
    keys = value("shared_keys", _keys(shared))
    known = and_(m.c.project_key.in_(keys), m.c.project_key != "", m.c.project.in_(value("shared", list(shared))))
    return or_(own, and_(m.c.audience == "project", known))


def _keys(projects: Sequence[str]) -> list[str]:
    return sorted({project_key(project) for project in projects})


def _space(scope: Scope, policy: VisibilityPolicy, m: FromClause, value: Value) -> ColumnElement[bool]:
    if scope.space is None:
        return m.c.space == ""
    here: ColumnElement[bool] = m.c.space == value("space", scope.space)
    return here if policy.space == "exact" else or_(m.c.space == "", here)


def _about(scope: Scope, policy: VisibilityPolicy, m: FromClause, value: Value) -> ColumnElement[bool]:
    subjects = scope.subjects
    if policy.about == "required":
        return m.c.about.in_(value("about", list(subjects or ("everyone",))))
    return true() if subjects is None else m.c.about.in_(value("about", ["", *subjects]))


def _said(scope: Scope, policy: VisibilityPolicy) -> Condition:
    """Return what the axes that a message was said in must be; see `Scope.narrowing`."""
    nowhere = Not(Compare(("space",), "exists"))
    there = nowhere if scope.space is None else Compare(("space",), "eq", scope.space)
    place = there if scope.space is None or policy.space == "exact" else AnyOf((nowhere, there))
    if policy.about != "required":
        return place
    to_everyone = AllOf((Compare(("people",), "empty"), Compare(("thread",), "empty")))
    heard = [Compare(("people",), "has", person) for person in scope.people or ()]
    in_thread = [] if scope.thread is None else [Compare(("thread",), "eq", scope.thread)]
    return AllOf((place, AnyOf((to_everyone, *heard, *in_thread))))


def active(m: FromClause) -> ColumnElement[bool]:
    """Return the condition for rows that nothing replaced or took back; of what has no status all are."""
    return m.c.status == "active" if "status" in m.c else true()


def holding(m: FromClause, filters: Filters, now: datetime, value: Value = given) -> ColumnElement[bool]:
    """Return the condition for rows that hold now, or held at the moment asked for.

    A row without a window holds from the moment it was stored, or from an event that happened before. What was deleted
    never held.
    """
    if filters.include_inactive or "valid_from" not in m.c:
        return true()
    if filters.as_of is not None:
        known = case((m.c.event_time < m.c.created_at, m.c.event_time), else_=m.c.created_at)
        begun = func.coalesce(m.c.valid_from, known, type_=m.c.created_at.type)
        return and_(m.c.status != "retracted", begun <= filters.as_of, _open(m.c.valid_to, filters.as_of))
    moment = value("now", now)
    return and_(
        active(m),
        or_(m.c.valid_from.is_(None), m.c.valid_from <= moment),
        _open(m.c.valid_to, moment),
    )


def _open(valid_to: ColumnElement[Any], moment: datetime) -> ColumnElement[bool]:
    return or_(valid_to.is_(None), valid_to > moment)


def held(memory: Memory, moment: datetime) -> bool:
    """Say of a record what `holding` says of a row: what a row was before it was rewritten is in no table."""
    begun = memory.valid_from or min(memory.event_time or memory.created_at, memory.created_at)
    return memory.status != "retracted" and begun <= moment and (memory.valid_to is None or memory.valid_to > moment)


def narrowed(m: FromClause, filters: Filters, value: Value = given) -> ColumnElement[bool]:
    """Return the condition for the rows that day, types, categories, sources and project keep."""
    conditions: list[ColumnElement[bool]] = [true()]
    if filters.day is not None:
        conditions.append(m.c.day == value("day", filters.day))
    if filters.types:
        conditions.append(m.c.type.in_(value("types", filters.types)))
    if filters.categories:
        conditions.append(m.c.category.in_(value("categories", filters.categories)))
    if filters.sources:
        conditions.append(m.c.source.in_(value("sources", filters.sources)))
    if filters.project:
        that_one = m.c.project_key == value("project", project_key(filters.project))
        conditions.append(or_(m.c.project_key == "", that_one))
    if filters.core is not None:
        conditions.append(m.c.core == value("core", filters.core))
    if (place := filters.place) is not None:
        conditions += [m.c.author == value("place_author", place.author)]
        conditions += [m.c.audience == value("place_audience", place.audience)]
        conditions += [m.c.space == value("place_space", place.space), m.c.about == value("place_about", place.about)]
        conditions += [m.c.project_key == value("place_project", place.project)]
    if not filters.pages:
        kind = type_coerce(m.c.metadata, Json)["kind"].as_string()
        conditions.append(or_(kind.is_(None), kind != "page"))
    return and_(*conditions)


def is_kept(memory: Memory, filters: Filters) -> bool:
    """Say of a record what `narrowed` says of a row."""
    return (
        filters.day in (None, memory.day)
        and (not filters.types or memory.type in filters.types)
        and (not filters.categories or memory.category in filters.categories)
        and (not filters.project or project_key(memory.project) in ("", project_key(filters.project)))
        and filters.core in (None, memory.core)
        and filters.place in (None, Place.of(memory))
        and (filters.pages or memory.metadata.get("kind") != "page")
    )


def rewritten(tables: Tables, scope: Scope, m: FromClause, moment: datetime) -> ColumnElement[bool]:
    """Return the condition for rows that said something else at a moment."""
    v = tables.memory_versions
    return (
        exists()
        .where(
            v.c.tenant == scope.tenant,
            v.c.persona == scope.persona,
            v.c.memory_id == m.c.id,
            v.c.change.in_(REWRITING),
            v.c.changed_at > moment,
        )
        .correlate(m)
    )


def seen_rows(
    tables: Tables, corpus: Corpus, scope: Scope, policy: VisibilityPolicy, shared: Sequence[str] | None
) -> Selection:
    """Return the rows of a corpus that a scope may see, as a part of statements that are built once a form."""

    def where(rows: FromClause) -> ColumnElement[bool]:
        return visible(tables, scope, policy, rows, shared=shared, value=named)

    subjects = scope.subjects
    values: dict[str, Any] = {"tenant": scope.tenant, "persona": scope.persona, "author": scope.author}
    if shared:
        values |= {"shared": list(shared), "shared_keys": _keys(shared)}
    if scope.space is not None:
        values["space"] = scope.space
    if policy.about == "required":
        values["about"] = list(subjects or ("everyone",))
    elif subjects is not None:
        values["about"] = ["", *subjects]
    absent = (scope.user is None, scope.space is None, subjects is None)
    form = (corpus.kind, policy, absent, None if shared is None else bool(shared))
    # Where messages were said is looked for in JSON, which names no values.
    return Selection(where, None if "said_in" in corpus.table.c else form, values)


def wanted_rows(
    tables: Tables,
    corpus: Corpus,
    scope: Scope,
    policy: VisibilityPolicy,
    shared: Sequence[str] | None,
    filters: Filters,
    now: datetime,
) -> Selection:
    """Return what of it holds and is let through by filters."""
    may_see = seen_rows(tables, corpus, scope, policy, shared)

    def where(rows: FromClause) -> ColumnElement[bool]:
        kept = and_(may_see.where(rows), holding(rows, filters, now, named), narrowed(rows, filters, named))
        # What was rewritten since is asked in the words of then, see `memoranda.db.queries.past`.
        return kept if filters.as_of is None else and_(kept, ~rewritten(tables, scope, rows, filters.as_of))

    values = {
        **may_see.values,
        "now": now,
        "day": filters.day,
        "types": filters.types,
        "categories": filters.categories,
        "sources": filters.sources,
        "project": project_key(filters.project or ""),
        "core": filters.core,
        **({} if filters.place is None else {f"place_{k}": v for k, v in filters.place._asdict().items()}),
    }
    if may_see.form is None or filters.as_of is not None:
        return Selection(where, values=values)
    # As `holding` and `narrowed` look at them: which of them there are, not what they come to.
    narrowing = (filters.day, filters.types, filters.categories, filters.sources, filters.project, filters.core)
    form = (filters.include_inactive, filters.core is None, filters.place is None, filters.pages)
    return Selection(where, (may_see.form, form, tuple(map(bool, narrowing))), values)
