"""Random pairs of scopes: what the one writes reaches the other exactly where the rules say so, by every read verb.

The rules stand here once more, in plain Python and from the words of the policies alone. Forty writers meet ten
readers in a world of their own; the worlds share one store, in which nothing may pass from one to another either.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

from memoranda.errors import NotAllowed
from memoranda.policies import FloorPolicy

WRITERS, READERS = 40, 10
WORLDS = {("sqlite-memory", "sync"): 5}
"""Four hundred pairs each; one world where none is named, for what decides is the same predicate there."""
ASKED_NEAREST = 2
"""How many rows of a world each reader asks for by their own words; every other verb is asked for all of them."""
PRESETS = ("standard", "journal", "ledger", "statements")
AXES: dict[str, tuple[Any, ...]] = {
    "preset": PRESETS,
    "tenant": ("acme", "acme", ""),
    "persona": ("main", "trader"),
    "user": (None, "ana", "bob"),
    "project": (None, "apollo", "zeus"),
    "space": (None, "lab", "bar"),
    "agent": (None, "scribe"),
    "thread": (None, "t1"),
    "people": (None, (), ("ana",), ("ana", "bob")),
}
PERSONAS, PROJECTS, SPACES, USERS = AXES["persona"], ("apollo", "zeus"), ("lab", "bar"), ("ana", "bob")
ABOUT = (None, None, "everyone", "everyone", "person:ana", "person:bob", "agent:scribe", "thread:t1")
ASKED = "beacon burned brightly tonight"
"""What every row says, so that one question asks for all of them."""
_WORDS = """
amber basil cedar delta ember fjord grove heron ivory jetty kayak lotus maple nectar onyx pebble quartz raven saffron
tulip umber velvet willow yarrow zephyr acorn bramble clover dune egret
"""
WORDS = _WORDS.split()


@dataclass(frozen=True, kw_only=True)
class Who:
    """A scope, and the preset it is opened with."""

    preset: str
    tenant: str
    persona: str
    user: str | None
    project: str | None
    space: str | None
    agent: str | None
    thread: str | None
    people: tuple[str, ...] | None

    @property
    def home(self):
        return self.tenant or (f"user:{self.user}" if self.user else "")

    def opened(self, engine, world):
        me = engine.persona(f"{self.persona}-{world}", tenant=self.tenant, user=self.user, preset=self.preset)
        axes = {axis: getattr(self, axis) for axis in ("project", "space", "agent", "thread", "people")}
        return me.scoped(**axes)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the rules need to know of a memory."""

    writer: Who
    about: str
    audience: str
    project: str
    core: bool
    text: str
    memory: Any = None


# -- the rules


def is_member(who, project, members):
    return who.user is not None and (who.home, who.persona, project, who.user) in members


def row_of(who, text, fields, members):
    """Return what a write stores, or None where it must be refused."""
    if who.preset == "ledger" and who.user is None:
        return None
    project = fields.get("project") or who.project or ""
    shares = who.preset == "ledger" and project and fields["type"] != "preference"
    audience = fields.get("audience") or ("project" if shares else "private")
    if audience == "project" and not is_member(who, project, members):
        return None
    about = fields.get("about") or ""
    return Row(writer=who, about=about, audience=audience, project=project, core=fields["core"], text=text)


def obstacles(reader, row, members):
    """Return which axes keep a reader from a row; none means that it is seen."""
    found = []
    if (reader.home, reader.persona) != (row.writer.home, row.writer.persona):
        found.append("place")
    own = reader.user == row.writer.user and (reader.user is not None or reader.preset != "ledger")
    if not own and not (row.audience == "project" and is_member(reader, row.project, members)):
        found.append("author")
    here = (reader.space,) if reader.preset == "statements" else (None, reader.space)
    if row.writer.space not in here:
        found.append("space")
    named = {"everyone", *(f"person:{person}" for person in reader.people or ())}
    named |= {f"agent:{reader.agent}", f"thread:{reader.thread}"}
    if reader.preset != "statements":
        nobody = reader.people is None and reader.agent is None and reader.thread is None
        named |= {row.about} if nobody else {""}
    return found if row.about in named else [*found, "about"]


# -- the worlds


class World:
    """A few scopes much alike, what the half of them wrote, and who is a member of what."""

    def __init__(self, engine, number, dice):
        self.engine, self.number, self.dice = engine, number, dice
        self.base = Who(**{axis: dice.choice(values) for axis, values in AXES.items()})
        self.members: set[tuple[str, str, str, str]] = set()
        self.rows: list[Row] = []

    def somebody(self):
        """Return a scope that differs from the others of this world on one or two axes."""
        changed = self.dice.sample(list(AXES), self.dice.choice((0, 1, 1, 2, 2, 3)))
        return replace(self.base, **{axis: self.dice.choice(AXES[axis]) for axis in changed})

    def settle(self):
        """Open every space, and make some users members of some projects."""
        for tenant, user in (("acme", None), ("", None), ("", "ana"), ("", "bob")):
            home = tenant or (f"user:{user}" if user else "")
            for persona in PERSONAS:
                me = self.engine.persona(f"{persona}-{self.number}", tenant=tenant, user=user)
                for space in SPACES:
                    me.spaces.create(space)
                for project in PROJECTS:
                    for member in USERS:
                        if self.dice.random() < 0.6:
                            me.projects.add_member(project, member)
                            self.members.add((home, persona, project, member))

    def write(self):
        """Let somebody write a memory no other resembles, or be refused."""
        who, dice = self.somebody(), self.dice
        text = f"The {ASKED}, {len(self.rows)}: {' '.join(dice.sample(WORDS, 3))}"
        fields = {
            "type": dice.choice(("preference", "semantic", "episodic")),
            "about": dice.choice(ABOUT),
            "audience": dice.choice(("private", "project", "project")),
            "project": dice.choice((None, "apollo")),
            "core": dice.random() < 0.3,
        }
        if fields["about"] is None and who.preset == "statements":
            fields["about"] = "everyone"
        if dice.random() < 0.3 or not (fields["project"] or who.project):
            del fields["audience"]
        expected = row_of(who, text, fields, self.members)
        try:
            memory = who.opened(self.engine, self.number).memories.write(text, **fields).memory
        except NotAllowed:
            assert expected is None, (who, fields)
        else:
            assert expected is not None, (who, fields)
            assert (memory.author, memory.audience) == (who.user or "", expected.audience)
            self.rows.append(replace(expected, memory=memory))

    def compare(self, reader):
        """Hold everything a reader gets against the rules; return what stood between them and each row."""
        me = reader.opened(self.engine, self.number)
        between = {row.memory.id: obstacles(reader, row, self.members) for row in self.rows}
        seen = [row for row in self.rows if not between[row.memory.id]]
        tagged = [row for row in seen if not reader.project or row.project in ("", reader.project)]
        shown = ids(tagged)

        assert ids(me.memories.list(limit=1000)) == shown, reader
        assert ids(me.memories.list(limit=1000, include_inactive=True)) == shown, reader
        assert ids(me.memories.core(limit=1000)) == ids(row for row in tagged if row.core), reader
        assert ids(me.memories.relevant(ASKED, limit=1000)) == ids(row for row in tagged if not row.core), reader
        assert ids(me.recall(ASKED, limit=1000, floor=FloorPolicy(enabled=False))) == shown, reader
        stats = me.stats()
        assert (stats.memories, stats.vectors, sum(stats.by_type.values())) == (len(seen), len(seen), len(seen)), reader
        for row in self.rows:
            one, other = self.dice.sample((row.memory.id, row.memory.short_id), 2)
            record, expected = me.memories.get(one), row.memory if row in seen else None
            assert (record and record.memory) == expected, (reader, row)
            assert me.memories.history(other) == ([expected] if expected else []), (reader, row)
        for row in self.dice.sample(self.rows, ASKED_NEAREST):
            nearest = me.memories.nearest(row.text)
            assert (nearest is not None) == bool(tagged), reader
            assert nearest is None or nearest.memory == (row.memory if row in tagged else nearest.memory), (reader, row)
            assert nearest is None or nearest.memory.id in shown, (reader, row)
        return list(between.values())


def ids(found):
    return {getattr(item, "memory", item).id for item in found}


@pytest.mark.behaviour("S02", "A02", "R31", "P25")
def test_what_a_scope_writes_reaches_another_exactly_where_the_rules_say_so(make_engine, backend, mode):
    engine, between, worlds = make_engine(), [], WORLDS.get((backend.name, mode), 1)
    for number in range(worlds):
        world = World(engine, number, random.Random(f"{backend.name} {mode} {number}"))
        world.settle()
        while len(world.rows) < WRITERS:
            world.write()
        for _ in range(READERS):
            between += world.compare(world.somebody())

    assert len(between) == worlds * WRITERS * READERS
    if worlds == 1:
        return  # too few throws of the dice for each rule to have its turn
    alone = [axes[0] for axes in between if len(axes) == 1]
    assert between.count([]) >= len(between) / 10, "too few of the pairs may see each other"
    for axis in ("place", "author", "space", "about"):
        assert alone.count(axis) >= len(between) / 100, f"{axis} alone stands between too few pairs"
