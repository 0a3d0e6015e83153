"""The scope: its axes, its checks, and the keys that are made of it."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.scope import Scope, author_cell, project_cell, project_key


def test_the_plain_scope():
    scope = Scope()
    assert (scope.persona, scope.tenant, scope.user, scope.author, scope.subjects) == ("main", "", None, "", None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        scope.persona = "other"  # type: ignore[misc]
    assert hash(scope) == hash(Scope())


def test_a_user_without_a_tenant_gets_their_own():
    assert Scope(user="ana").tenant == "user:ana"
    assert Scope(user="ana", tenant="acme").tenant == "acme"
    assert Scope(user="ana", tenant="user:ana") == Scope(user="ana")
    assert dataclasses.replace(Scope(user="ana"), project="apollo").tenant == "user:ana"
    for user in (None, "bob"):
        with pytest.raises(InvalidInput, match="single user"):
            Scope(user=user, tenant="user:ana")


@pytest.mark.parametrize("axis", [field.name for field in dataclasses.fields(Scope)])
def test_every_axis_is_checked(axis):
    wrong: Any
    for wrong in ("\t", "x" * 201, "a\x1fb", "\udc00", 7, b"x", ["x", ""]):
        axes: dict[str, Any] = {axis: [wrong] if axis == "people" else wrong}
        with pytest.raises(InvalidInput) as error:
            Scope(**axes)
        assert error.value.field == axis


def test_people_are_a_list_of_names():
    given: Any
    for given in (["ana", "bob"], ("ana", "bob"), (name for name in ("ana", "bob"))):
        assert Scope(people=given).people == ("ana", "bob")
    assert Scope(people=()).people == ()
    wrong: Any
    for wrong in ("ana", 5, [None], [""]):
        with pytest.raises(InvalidInput) as error:
            Scope(people=wrong)
        assert error.value.field == "people"


def test_whom_a_scope_concerns():
    assert Scope(people=()).subjects == ("everyone",)
    named = Scope(people=("ana", "bob"), agent="scribe", thread="t1")
    assert named.subjects == ("everyone", "person:ana", "person:bob", "agent:scribe", "thread:t1")
    assert Scope(user="ana", project="p", space="s").subjects is None


def test_spellings_of_a_project_share_a_key():
    keys = {project_key(name) for name in ("My-Project", "my_project", "MY PROJECT", "myproject", "m-y p_r\toject")}
    assert keys == {"myproject"}
    assert project_key("My-Project-2") != project_key("My-Project")
    assert project_key("STRASSE") == project_key("straße")


@given(st.text(max_size=30))
def test_a_key_is_its_own_key(name):
    assert project_key(project_key(name)) == project_key(name)


names = st.text(max_size=20)


@given(st.tuples(names, names, names), st.tuples(names, names, names))
def test_cells_are_index_terms_that_differ_where_scopes_do(one, two):
    for cell in (author_cell, project_cell):
        assert cell(*one).isascii() and cell(*one).isalnum() and cell(*one)[0].isalpha() and len(cell(*one)) == 21
        same = [part.replace("\x1f", "") for part in one] == [part.replace("\x1f", "") for part in two]
        assert (cell(*one) == cell(*two)) == (one == two) or same
    assert author_cell(*one) != project_cell(*one)
