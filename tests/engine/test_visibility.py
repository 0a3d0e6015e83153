"""Who sees what: the truth table, and random rows and askers against an oracle in plain Python."""

import os
import random
import uuid
from dataclasses import dataclass, replace
from typing import Any

import pytest

from memoranda import Policies
from memoranda.errors import MemorandaError, MemoryNotActive, MemoryNotFound, NotAllowed, NotTheAuthor
from memoranda.policies import DedupePolicy, FloorPolicy, VisibilityPolicy
from memoranda.presets import PRESETS

MISSING = ("abcdefgh", str(uuid.UUID(int=7 << 76)))


def ids(found):
    return {getattr(item, "memory", item).id for item in found}


# -- the truth table


@dataclass(frozen=True)
class Case:
    reader: str | None
    author: str | None
    audience: str
    member: bool
    readable: bool


TABLE = [
    Case(None, "ana", "private", False, False),
    Case(None, "ana", "project", False, False),
    Case("ana", "ana", "private", False, True),
    Case("ana", "ana", "project", True, True),
    Case("ana", "ana", "project", False, True),  # the membership was lost
    Case("bob", "ana", "private", False, False),
    Case("bob", "ana", "private", True, False),
    Case("bob", None, "private", True, False),
    Case("bob", "ana", "project", True, True),
    Case("bob", "ana", "project", False, False),
]


@pytest.mark.behaviour("S13", "S20")
def test_the_truth_table_of_readers_authors_and_members(engine):
    for number, case in enumerate(TABLE):
        tenant = f"tenant-{number}"
        author = engine.persona("main", tenant=tenant, user=case.author)
        reader = engine.persona("main", tenant=tenant, user=case.reader)
        for user in filter(None, {case.author}):
            author.projects.add_member("apollo", user)
        row = author.memories.write("A beacon was lit.", project="apollo", audience=case.audience)
        if case.author and case.author == case.reader and not case.member:
            author.projects.remove_member("apollo", case.author)
        elif case.reader and case.member:
            author.projects.add_member("apollo", case.reader)
        expected = {row.id} if case.readable else set()
        assert ids(reader.memories.list()) == expected, case
        assert ids(reader.memories.list(include_inactive=True)) == expected, case
        assert ids(reader.recall("A beacon was lit.")) == expected, case
        assert ids(reader.recall("A beacon was lit.", include_inactive=True)) == expected, case
        assert ids(filter(None, [reader.memories.get(row.id)])) == expected, case
        assert ids(filter(None, [reader.memories.get(row.short_id)])) == expected, case
        assert ids(reader.memories.history(row.id)) == expected, case
        assert ids(filter(None, [reader.memories.nearest("A beacon was lit.")])) == expected, case
        assert reader.stats().memories == len(expected), case


@pytest.mark.behaviour("S20")
def test_nobody_shares_with_a_project_unnamed(engine):
    engine.persona("main", tenant="acme", user="bob").projects.add_member("apollo", "bob")
    nobody = engine.persona("main", tenant="acme")
    with pytest.raises(NotAllowed):
        nobody.memories.write("A beacon was lit.", project="apollo", audience="project")
    assert nobody.stats().memories == 0


@pytest.mark.behaviour("S20")
def test_membership_is_explicit_exact_and_revocable(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    assert ana.projects.add_member("a", "ana") is True
    assert ana.projects.add_member("a", "ana") is False
    row = ana.memories.write("The beacon is shared.", project="a", audience="project")
    for other in ("A", "a ", "-a", "*", "%", "all"):
        ana.projects.add_member(other, "bob")
    assert bob.memories.list() == [] and bob.memories.get(row.id) is None
    ana.projects.add_member("a", "bob")
    assert ids(bob.memories.list()) == {row.id}
    assert ana.projects.members("a") == ["ana", "bob"]
    assert ana.projects.remove_member("a", "bob") is True
    assert ana.projects.remove_member("a", "bob") is False
    assert bob.memories.list() == [] and bob.memories.get(row.id) is None
    assert ids(ana.memories.list()) == {row.id}


@pytest.mark.behaviour("S20")
def test_a_membership_counts_in_its_own_tenant_and_persona(engine):
    ana = engine.persona("main", tenant="acme", user="ana")
    ana.projects.add_member("apollo", "ana")
    row = ana.memories.write("The beacon is shared.", project="apollo", audience="project")
    engine.persona("other", tenant="acme").projects.add_member("apollo", "bob")
    engine.persona("main", tenant="globex").projects.add_member("apollo", "bob")
    engine.persona("main").projects.add_member("apollo", "bob")
    bob = engine.persona("main", tenant="acme", user="bob")
    assert bob.memories.list() == [] and bob.memories.get(row.id) is None
    assert engine.persona("main", tenant="globex").projects.members("apollo") == ["bob"]


@pytest.mark.behaviour("W34")
def test_what_may_not_be_read_answers_as_what_does_not_exist(engine):
    ana = engine.persona("main", tenant="acme", user="ana")
    hidden = ana.memories.write("Only for Ana.")
    askers = [
        engine.persona("main", tenant="acme", user="bob"),
        engine.persona("main", tenant="acme"),
        engine.persona("other", tenant="acme", user="ana"),
        engine.persona("main", tenant="globex", user="ana"),
        engine.persona("main", user="ana"),
        engine.persona("main"),
    ]
    for asker in askers:
        mine = asker.memories.write("Mine.")
        verbs: list[Any] = [
            lambda id, a=asker: a.memories.get(id),
            lambda id, a=asker: a.memories.history(id),
            lambda id, a=asker: a.memories.supersede(id, "Guessed."),
            lambda id, a=asker: a.memories.mark(id, "expired"),
            lambda id, a=asker, m=mine: a.memories.mark(m.id, "superseded", by=id),
            lambda id, a=asker: a.memories.delete(id),
            lambda id, a=asker: a.memories.list(before=id),
        ]
        for verb in verbs:
            answers = {answer(verb, id) for id in (hidden.id, hidden.short_id, *MISSING)}
            assert len(answers) == 1
        assert asker.memories.get(mine.id).memory.status == "active"
    assert ana.memories.get(hidden.id).memory == hidden.memory
    assert ana.memories.get(hidden.id).versions == ()


def answer(verb, id):
    try:
        return repr(verb(id))
    except MemorandaError as error:
        return f"{type(error).__name__}: {error} {sorted(vars(error).items())}"


# -- random rows and askers


THOROUGH = os.environ.get("MEMORANDA_TEST_PROFILE") == "thorough"
PERSONAS = ("main", "trader")
ABOUT = (None, None, None, "everyone", "person:ana", "person:bob", "agent:scribe", "thread:t1")


@dataclass(frozen=True)
class Asker:
    tenant: str
    persona: str
    user: str | None
    project: str | None
    space: str | None
    agent: str | None
    thread: str | None
    people: tuple[str, ...] | None
    policy: VisibilityPolicy

    @property
    def home(self):
        return self.tenant or (f"user:{self.user}" if self.user else "")

    @property
    def author(self):
        return self.user or ""

    def open(self, engine):
        policies = Policies(visibility=self.policy, floor=FloorPolicy(enabled=False), dedupe=DedupePolicy(name="none"))
        persona = engine.persona(self.persona, tenant=self.tenant, user=self.user, preset=policies)
        return persona.scoped(
            project=self.project, space=self.space, agent=self.agent, thread=self.thread, people=self.people
        )


STRANGER = Asker("acme", "main", "dora", None, None, None, None, None, VisibilityPolicy())


def any_asker(rng):
    def mostly(usual, *others):
        return usual if rng.random() < 0.7 else rng.choice(others)

    return Asker(
        tenant=mostly("acme", ""),
        persona=mostly("main", "trader"),
        user=rng.choice((None, "ana", "ana", "bob", "bob")),
        project=mostly(None, "apollo", "zeus"),
        space=mostly(None, "kitchen", "garden"),
        agent=mostly(None, "scribe"),
        thread=mostly(None, "t1"),
        people=mostly(None, (), ("ana",), ("ana", "bob")),
        policy=VisibilityPolicy(
            author=mostly("optional", "required"),
            space=mostly("shared", "exact"),
            about=mostly("optional", "required"),
        ),
    )


def sees(asker, row, members):
    """Say from the words of the policies alone whether an asker may see a row."""
    if (row.tenant, row.persona) != (asker.home, asker.persona):
        return False
    if asker.user is None:
        if asker.policy.author == "required" or row.author:
            return False
    elif row.author != asker.user:
        member = (asker.home, asker.persona, row.project, asker.user) in members
        if row.audience != "project" or not member:
            return False
    spaces = {asker.space or ""} if asker.policy.space == "exact" else {"", asker.space or ""}
    if row.space not in spaces:
        return False
    nobody_named = asker.people is None and asker.agent is None and asker.thread is None
    if nobody_named and asker.policy.about == "optional":
        return True
    subjects = {"everyone"} | {f"person:{person}" for person in asker.people or ()}
    subjects |= {f"agent:{asker.agent}"} if asker.agent else set()
    subjects |= {f"thread:{asker.thread}"} if asker.thread else set()
    if asker.policy.about == "optional":
        subjects.add("")
    return row.about in subjects


def chain_of(start, rows):
    """Return the ids of all a row replaced and all that replaced it."""
    older, newer = {start.id}, {start.id}
    while grown := {row.id for row in rows.values() if row.superseded_by in older} - older:
        older |= grown
    while grown := {rows[id].superseded_by for id in newer if rows[id].superseded_by} - newer:
        newer |= grown
    return older | newer


class World:
    """An engine full of rows, and what is known about them."""

    def __init__(self, engine, clock, seed):
        self.engine, self.clock, self.rng = engine, clock, random.Random(seed)
        self.members = set()
        self.rows = {}

    def join_some(self):
        for tenant in ("", "acme", "user:ana", "user:bob"):
            for persona in PERSONAS:
                for project in ("apollo", "zeus"):
                    for user in ("ana", "bob"):
                        if self.rng.random() < 0.6 and tenant in ("acme", f"user:{user}"):
                            shown = "" if tenant.startswith("user:") else tenant
                            owner = user if tenant.startswith("user:") else None
                            handle = self.engine.persona(persona, tenant=shown, user=owner)
                            handle.projects.add_member(project, user)
                            self.members.add((tenant, persona, project, user))

    def leave_some(self):
        for tenant, persona, project, user in sorted(self.members):
            if self.rng.random() < 0.3 and tenant == "acme":
                self.engine.persona(persona, tenant=tenant).projects.remove_member(project, user)
                self.members.discard((tenant, persona, project, user))

    def write(self):
        self.clock.advance(seconds=1)
        asker, rng = any_asker(self.rng), self.rng
        fields = {"about": rng.choice(ABOUT), "audience": rng.choice(("private", "private", "project"))}
        if fields["audience"] == "project" and not asker.project:
            fields["project"] = "apollo"
        if asker.policy.about == "required":
            fields["about"] = fields["about"] or "everyone"
        try:
            row = asker.open(self.engine).memories.write(f"A beacon was lit on hill {len(self.rows)}.", **fields).memory
        except NotAllowed:
            project = fields.get("project", asker.project)
            member = (asker.home, asker.persona, project, asker.user) in self.members
            shared = fields["audience"] == "project"
            assert (asker.policy.author == "required" and not asker.user) or (shared and not member)
            return
        assert (row.tenant, row.persona, row.author) == (asker.home, asker.persona, asker.author)
        self.rows[row.id] = row

    def change(self):
        self.clock.advance(seconds=1)
        asker, row = any_asker(self.rng), self.rng.choice(list(self.rows.values()))
        if self.rng.random() < 0.7:  # mostly from where it was written
            asker = Asker(
                tenant="" if row.tenant.startswith("user:") else row.tenant,
                persona=row.persona,
                user=self.rng.choice((row.author or None, "bob")),
                project=None,
                space=row.space or None,
                agent=None,
                thread=None,
                people=None,
                policy=VisibilityPolicy(),
            )
        verb = self.rng.choice(("supersede", "mark", "delete"))
        memories = asker.open(self.engine).memories
        id = self.rng.choice((row.id, row.short_id))
        expected = self.expected_error(asker, row, verb)
        try:
            if verb == "supersede":
                written = memories.supersede(id, f"The beacon {len(self.rows)} went out.", audience="private")
                self.rows[written.id], self.rows[row.id] = written.memory, written.superseded
            elif verb == "mark":
                self.rows[row.id] = memories.mark(id, "expired")
            else:
                self.rows[row.id] = memories.delete(id)
        except MemorandaError as error:
            assert type(error) is expected, (verb, asker, row)
        else:
            assert expected is None, (verb, asker, row)

    def is_varied(self):
        rows = self.rows.values()
        every = {row.status for row in rows} == {"active", "superseded", "retracted", "expired"}
        return every and sum(row.superseded_by is not None for row in rows) >= 3

    def expected_error(self, asker, row, verb):
        if asker.policy.author == "required" and asker.user is None:
            return NotAllowed
        if not sees(asker, row, self.members):
            return MemoryNotFound
        if row.author != asker.author:
            return NotTheAuthor
        if verb == "supersede" and row.status != "active":
            return MemoryNotActive
        if verb == "delete" and row.status == "retracted":
            return MemoryNotFound
        if verb == "mark" and row.status == "retracted":
            return MemoryNotActive
        return None

    def compare(self, asker):
        me = asker.open(self.engine)
        every = sorted(self.rows.values(), key=lambda row: (row.created_at, row.id), reverse=True)
        seen = [row for row in every if sees(asker, row, self.members)]
        tagged = [row for row in seen if not asker.project or row.project in ("", asker.project)]
        current = [row for row in tagged if row.status == "active"]

        assert me.memories.list(limit=1000) == current
        assert me.memories.list(limit=1000, include_inactive=True) == tagged
        assert ids(me.recall("beacon", limit=1000)) == ids(current)
        assert ids(me.recall("beacon", limit=1000, include_inactive=True)) == ids(tagged)
        nearest = me.memories.nearest("A beacon was lit on hill 7.")
        assert (nearest is not None) == bool(current)
        assert nearest is None or nearest.memory in current
        stats = me.stats()
        assert (stats.memories, stats.vectors) == (len(seen), len(seen))
        assert stats.by_status == {
            status: count
            for status in sorted({row.status for row in seen})
            if (count := sum(r.status == status for r in seen))
        }
        for row in self.rng.sample(every, 6) + self.rng.sample(seen, min(3, len(seen))):
            self.compare_one(me, asker, row)
        return len(seen)

    def compare_one(self, me, asker, row):
        record = me.memories.get(self.rng.choice((row.id, str(row.id), row.short_id)))
        if not sees(asker, row, self.members):
            assert record is None and me.memories.history(row.id) == []
            return
        assert record.memory == row
        visible = [other for other in self.rows.values() if sees(asker, other, self.members)]
        chain = [other for other in visible if other.id in chain_of(row, self.rows)]
        assert me.memories.history(row.short_id) == sorted(chain, key=lambda other: (other.created_at, other.id))
        assert ids(record.supersedes) == {other.id for other in visible if other.superseded_by == row.id}
        successor = self.rows.get(row.superseded_by)
        if successor and sees(asker, successor, self.members):
            assert record.superseded_by == successor
        else:
            assert record.superseded_by is None


@pytest.mark.behaviour("S02", "S13", "S20", "W21")
def test_no_row_ever_crosses_a_scope(make_engine, frozen_clock, backend, mode):
    writes, changes, askers = (70, 40, 14) if THOROUGH else (40, 40, 8)
    world = World(make_engine(clock=frozen_clock), frozen_clock, f"{backend.name} {mode}")
    world.join_some()
    for _ in range(writes):
        world.write()
    while changes > 0 or not world.is_varied():
        world.change()
        changes -= 1
        assert changes > -300, "the dice never fell so that every kind of change was made"
    world.leave_some()
    met = [world.compare(any_asker(world.rng)) for _ in range(askers)]
    while max(met) < 4:
        met.append(world.compare(any_asker(world.rng)))
        assert len(met) < 60, "the dice never fell so that an asker saw more than three rows"
    assert world.compare(STRANGER) == 0


# -- nothing that others write is felt


def measured(me, questions):
    return [
        [
            (hit.memory.id, hit.score, hit.confidence, dict(hit.legs), hit.reasons)
            for hit in (*answer.hits, *answer.nearest)
        ]
        for answer in (me.recall(question, limit=50, include_inactive=True) for question in questions)
    ]


@pytest.mark.parametrize("preset", ["standard", "journal", "ledger", "statements"])
def test_the_scores_of_a_scope_do_not_change_when_others_write(make_engine, frozen_clock, preset):
    each_a_row = replace(PRESETS[preset], dedupe=DedupePolicy(name="none"))
    engine = make_engine(clock=frozen_clock, preset=each_a_row)
    ana = engine.persona("main", tenant="acme", user="ana").scoped(people=["ana"])
    animals, places = ("heron", "otter", "badger"), ("river", "meadow", "orchard")
    for number in range(18):
        text = f"The {animals[number % 3]} was seen near the {places[number // 3 % 3]}" + " again" * (number % 4)
        ana.memories.write(f"{text}, count {number}.", about="everyone", session="walk", position=number)
    questions = ["heron river", "otter orchard again", "badger", "meadow seen near", "the heron was seen"]
    before = measured(ana, questions), ana.stats()
    assert all(before[0])

    flood = [f"The heron {'heron ' * (n % 5)}stood in the water, note {n}." for n in range(60)]
    others = [
        engine.persona("main", tenant="acme", user="bob"),
        engine.persona("other", tenant="acme", user="ana"),
        engine.persona("main", tenant="globex", user="ana"),
        engine.persona("main", user="ana"),
        engine.persona("main", user="cleo"),
    ]
    for other in others:
        other.memories.write_many([{"content": text, "about": "everyone"} for text in flood])
        other.projects.add_member("apollo", other.scope.user)
        other.memories.write("The heron is shared.", about="everyone", project="apollo", audience="project")
    assert (measured(ana, questions), ana.stats()) == before
