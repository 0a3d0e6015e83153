"""Statements that are built once: what differs between two scopes of one form is a parameter, and nothing else is."""

from datetime import UTC, date, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import literal_column, select

from memoranda.db.dialects import dialect_for
from memoranda.db.queries.visibility import holding, narrowed, seen_rows, visible, wanted_rows
from memoranda.db.schema import declare
from memoranda.db.statements import MOST, Statements
from memoranda.filters import Filters, Place
from memoranda.policies import VisibilityPolicy
from memoranda.scope import Scope

NOW = datetime(2026, 5, 4, tzinfo=UTC)
TABLES = {name: declare(dialect_for(name, schema="memoranda")) for name in ("sqlite", "postgresql")}
NAMES = ("ana", "bob", "cy")


def optional(values):
    return st.none() | values


names = st.sampled_from(NAMES)
scopes = st.builds(
    Scope,
    persona=names,
    tenant=st.just("team"),
    user=optional(names),
    space=optional(names),
    thread=optional(names),
    people=optional(st.lists(names, max_size=2).map(tuple)),
)
policies = st.builds(
    VisibilityPolicy,
    author=st.sampled_from(["optional", "required"]),
    space=st.sampled_from(["shared", "exact"]),
    about=st.sampled_from(["optional", "required"]),
)
filters = st.builds(
    Filters,
    day=optional(st.just(date(2026, 5, 4))),
    types=st.sampled_from([(), ("semantic",)]),
    categories=st.lists(names, max_size=2).map(tuple),
    project=optional(names | st.just("-")),  # which has no letter to go by
    core=optional(st.booleans()),
    include_inactive=st.booleans(),
    pages=st.booleans(),
    place=optional(st.builds(Place, names, st.just("private"), names, names, names)),
)
projects = optional(st.lists(names, max_size=2, unique=True))


def compiled(tables, selection):
    rows = tables.memories
    return select(literal_column("1")).select_from(rows).where(selection.where(rows)).compile()


@pytest.mark.parametrize("name", TABLES)
@given(scope=scopes, policy=policies, shared=projects, narrowing=filters)
def test_whatever_a_scope_names_is_a_parameter(name, scope, policy, shared, narrowing):
    tables, said = TABLES[name], {}
    rows = tables.memories
    selection = wanted_rows(tables, tables.corpora["memory"], scope, policy, shared, narrowing, NOW)

    def saying(parameter, value):
        said[parameter] = value
        return value

    visible(tables, scope, policy, rows, shared=shared, value=saying)
    holding(rows, narrowing, NOW, saying)
    narrowed(rows, narrowing, saying)
    statement = compiled(tables, selection)
    left = {parameter for parameter, bind in statement.binds.items() if not bind.unique}
    assert {parameter: selection.values[parameter] for parameter in left} == {
        parameter: said[parameter] for parameter in left
    }
    for bind in statement.binds.values():  # a kept statement holds constants, and nobody's values
        assert bind.value not in (*NAMES, "team", NOW)


@pytest.mark.parametrize("name", TABLES)
@given(
    asking=st.tuples(scopes, scopes),
    policy=policies,
    shares=st.tuples(projects, projects),
    narrowing=st.tuples(filters, filters),
)
def test_one_form_is_one_statement(name, asking, policy, shares, narrowing):
    tables = TABLES[name]
    selections = [
        wanted_rows(tables, tables.corpora["memory"], scope, policy, shared, kept, NOW)
        for scope, shared, kept in zip(asking, shares, narrowing, strict=True)
    ]
    texts = [str(compiled(tables, selection)) for selection in selections]
    if selections[0].form == selections[1].form:
        assert texts[0] == texts[1]


def test_a_filter_that_comes_to_nothing_has_the_form_of_one_that_does_not():
    """The key of "-" is empty; a statement that was kept for it must not answer who asks without a filter."""
    tables = TABLES["sqlite"]
    forms = [
        wanted_rows(
            tables, tables.corpora["memory"], Scope(), VisibilityPolicy(), None, Filters(project=project), NOW
        ).form
        for project in ("-", "ana", None)
    ]
    assert forms[0] == forms[1] != forms[2]


def test_what_names_no_parameters_has_no_form():
    tables = TABLES["sqlite"]
    said = seen_rows(tables, tables.corpora["message"], Scope(), VisibilityPolicy(), None)
    past = wanted_rows(tables, tables.corpora["memory"], Scope(), VisibilityPolicy(), None, Filters(as_of=NOW), NOW)
    assert said.form is None and past.form is None


def test_a_statement_is_built_once_a_form():
    statements, built = Statements(dialect_for("sqlite", schema="memoranda")), []

    def build():
        built.append(object())
        return built[-1]

    assert statements.get("a", build) is statements.get("a", build) is not statements.get("b", build)
    assert statements.get(None, build) is not statements.get(None, build)
    for form in product(range(40), range(40)):
        statements.get(form, build)
    assert len(statements._built) <= MOST
