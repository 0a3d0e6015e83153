"""Narrower scopes: where a memory is learned, whom it is about, and what comes up where."""

from typing import Any

import pytest

from memoranda.errors import InvalidInput


def contents(found):
    return sorted(getattr(item, "memory", item).content for item in found)


@pytest.mark.behaviour("S02")
def test_a_user_without_a_tenant_is_a_tenant_of_their_own(engine):
    ana, bob = engine.persona("main", user="ana"), engine.persona("main", user="bob")
    assert (ana.scope.tenant, ana.scope.author) == ("user:ana", "ana")
    for user in (ana, bob):
        user.projects.add_member("apollo", "ana")
        user.projects.add_member("apollo", "bob")
    row = ana.memories.write("Shared in vain.", project="apollo", audience="project")
    assert bob.memories.get(row.id) is None and bob.memories.list() == []
    assert engine.persona("main").memories.list() == []
    assert engine.persona("main", tenant="acme", user="ana").memories.list() == []
    assert contents(engine.persona("main", user="ana").memories.list()) == ["Shared in vain."]


def test_a_personas_scope_keeps_what_a_narrower_one_does_not_name(engine):
    base = engine.persona("main", tenant="acme", user="ana").scoped(project="apollo", people=["bob"])
    inner = base.scoped(space="lab", agent="scribe").scoped(thread="t1")
    scope = inner.scope
    assert (scope.tenant, scope.persona, scope.user, scope.project) == ("acme", "main", "ana", "apollo")
    assert (scope.space, scope.agent, scope.thread, scope.people) == ("lab", "scribe", "t1", ("bob",))
    assert base.scope.space is None
    assert inner.scoped(people=[]).scope.people == ()


def test_a_space_shows_its_own_rows_beside_those_of_none(make_engine):
    engine = make_engine()
    me = engine.persona("main")
    me.memories.write("Learned anywhere.")
    me.scoped(space="lab").memories.write("Learned in the lab.")
    me.scoped(space="bar").memories.write("Learned in the bar.")
    assert contents(me.memories.list()) == ["Learned anywhere."]
    assert contents(me.scoped(space="lab").memories.list()) == ["Learned anywhere.", "Learned in the lab."]
    assert contents(me.scoped(space="lab").recall("learned")) == ["Learned anywhere.", "Learned in the lab."]
    me.spaces.create("lab")
    exact = engine.persona("main", preset="statements").scoped(space="lab")
    assert exact.memories.list() == []  # statements are about somebody
    exact.memories.write("Learned by rule.", about="everyone")
    assert contents(exact.memories.list()) == ["Learned by rule."]
    assert engine.persona("main", preset="statements").memories.list() == []


def test_what_is_about_somebody_comes_up_where_they_are(engine):
    me = engine.persona("main")
    me.memories.write("About nobody.")
    for subject in ("everyone", "person:ana", "person:bob", "agent:scribe", "thread:t1"):
        me.memories.write(f"About {subject}.", about=subject)
    always = ["About everyone.", "About nobody."]
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"people": []}, []),
        ({"people": ["ana"]}, ["person:ana"]),
        ({"people": ["ana", "bob"]}, ["person:ana", "person:bob"]),
        ({"agent": "scribe"}, ["agent:scribe"]),
        ({"agent": "scribe", "thread": "t1", "people": ["bob"]}, ["agent:scribe", "person:bob", "thread:t1"]),
        ({"people": ["Ana"], "agent": "scrib", "thread": "t1 "}, []),
    ]
    assert len(me.memories.list()) == 6
    for axes, named in cases:
        scoped = me.scoped(**axes)
        expected = sorted([*always, *(f"About {subject}." for subject in named)])
        assert contents(scoped.memories.list()) == expected
        assert contents(scoped.recall("about", limit=20)) == expected


def test_a_subject_is_somebody(me):
    for wrong in ("ana", "person:", "person: ana", "nobody", "everyone else", "person:a\nb", "PERSON:ana", 5):
        with pytest.raises(InvalidInput) as error:
            me.memories.write("About whom?", about=wrong)
        assert error.value.field == "about"
    for right in ("everyone", "person:ana", "person:Ana Sofia", "agent:scribe", "thread:2026/05", None):
        assert me.memories.write(f"About {right}.", about=right).memory.about == (right or "")


@pytest.mark.in_turn
@pytest.mark.parametrize("axis", ["project", "space", "agent", "thread", "people", "user", "tenant", "persona"])
def test_a_name_that_cannot_be_one_is_refused_and_named(engine, axis):
    for wrong in ("  ", "x" * 201, "a\nb", "a\x00b", "\ud800", 5, b"ana"):
        with pytest.raises(InvalidInput) as error:
            if axis == "persona":
                engine.persona(wrong)
            elif axis in ("user", "tenant"):
                engine.persona("main", **{axis: wrong})
            else:
                engine.persona("main").scoped(**{axis: [wrong] if axis == "people" else wrong})
        assert error.value.field == axis
    with pytest.raises(InvalidInput):
        engine.persona("main").scoped(people="ana")


def test_long_names_and_names_in_any_script_work(engine):
    for name in ("x" * 193, "ана", "山田さん", "a'b\"c%_\\", "😀", "user:ana", "'; DROP TABLE x; --"):
        me = engine.persona(name, tenant="acme", user=name).scoped(space=name, project=name, people=[name])
        me.projects.add_member(name, name)
        row = me.memories.write("Here.", audience="project", about=f"person:{name}")
        assert row.memory.persona == row.memory.author == row.memory.space == row.memory.project == name
        assert me.memories.get(row.short_id).memory == row.memory
        assert contents(me.recall("here")) == ["Here."]
        assert me.projects.members(name) == [name]


def test_a_users_own_tenant_cannot_be_named_by_another(engine):
    for user in ("bob", None):
        with pytest.raises(InvalidInput) as error:
            engine.persona("main", tenant="user:ana", user=user)
        assert error.value.field == "tenant"
    assert engine.persona("main", tenant="user:ana", user="ana").scope == engine.persona("main", user="ana").scope


def test_members_are_named_as_carefully_as_users(me):
    for project, member in (("", "ana"), ("apollo", ""), ("apollo", "a\nb"), ("x" * 201, "ana"), ("apollo", 5)):
        for change in (me.projects.add_member, me.projects.remove_member):
            with pytest.raises(InvalidInput):
                change(project, member)
    assert me.projects.members("apollo") == []


def test_what_cannot_name_a_project_is_refused(me):
    for odd in ("a\x00b", "\ud800", "a\nb", "--", " "):
        with pytest.raises(InvalidInput):
            me.projects.members(odd)
    assert me.projects.members("no such project") == []
