"""Whatever happens in two hundred turns, the bytes of a frozen block change exactly where they are said to."""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import select

from memoranda.db.queries import snapshots
from memoranda.errors import InvalidInput, MemorandaError, ModelUnavailable
from memoranda.policies import CompactionPolicy, PromptPolicy
from memoranda.presets import STANDARD
from memoranda.testing import BrokenEmbedder, ScriptedModel

USERS, NAMES, PROJECTS = ("ana", "bob"), ("a", "b"), ("apollo", "zeus")
POLICIES = replace(STANDARD, prompt=PromptPolicy(memories=5, budget=300))
EVERYTHING, NOTHING = CompactionPolicy(keep_tokens=0), '{"memories": []}'
TURNS = 200


ELSEWHERE = """
import json, sys
from dataclasses import replace
from memoranda import MemoryEngine
from memoranda.policies import PromptPolicy
from memoranda.presets import STANDARD

policies = replace(STANDARD, prompt=PromptPolicy(memories=5, budget=300))
with MemoryEngine(sys.argv[1], embedder="hash/words", preset=policies) as engine:
    for line in sys.stdin:
        user, space, name, text = json.loads(line)
        me = engine.persona("main", tenant="acme", user=user)
        me = me.scoped(space=space) if space else me
        answer = str(me.memories.write(text).id) if text else me.conversation(name).system_block()
        print(json.dumps(answer), flush=True)
"""


class Elsewhere:
    """Another process that uses the same store."""

    def __init__(self, url):
        command = [sys.executable, "-c", ELSEWHERE, url]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, user, space, name=None, text=None):
        asked: Any = self.process.stdin
        answered: Any = self.process.stdout
        asked.write(json.dumps([user, space, name, text]) + "\n")
        asked.flush()
        return json.loads(answered.readline())

    def close(self):
        self.process.communicate(timeout=60)


@dataclass(frozen=True)
class Written:
    id: object
    text: str
    author: str
    project: str | None


class Walk:
    """A walk by chance over one store, which two engines and a process share, beside a model of each block."""

    def __init__(self, engines, clock, seed, elsewhere=None):
        self.elsewhere = elsewhere
        self.engines, self.clock, self.chance = engines, clock, random.Random(seed)
        self.blocks: dict[tuple[str, str, str | None], str] = {}
        self.memories: list[Written] = []
        self.count = 0
        self.changes = 0
        for user in USERS:
            for project in PROJECTS:
                self.me(user).projects.add_member(project, user)
        self.members = {(project, user) for project in PROJECTS for user in USERS}
        self.keys = {
            (user, snapshots.key_of(self.me(user, space).handle.scope, POLICIES.visibility, POLICIES.prompt)): space
            for user in USERS
            for space in (None, "garden")
        }

    def me(self, user=None, space=None):
        engine = self.chance.choice(self.engines)
        me = engine.persona("main", tenant="acme", user=user or self.chance.choice(USERS))
        return me.scoped(space=space) if space else me

    # -- what ends nothing

    def write(self):
        user = self.chance.choice(USERS)
        project = self.chance.choice([None, *(p for p in PROJECTS if (p, user) in self.members)])
        self.count += 1
        text = f"Event {self.count} is {{odd}}."
        if self.elsewhere and not project and self.chance.random() < 0.3:
            identifier = self.elsewhere.ask(user, None, text=text)
            self.memories.append(Written(identifier, f"Event {self.count} is", user, None))
            return set()
        shared = {"project": project, "audience": "project"} if project else {}
        written = self.me(user, self.chance.choice([None, None, "garden"])).memories.write(
            text, importance=self.chance.randint(1, 10), **shared
        )
        self.memories.append(Written(written.id, f"Event {self.count} is", user, project))
        return set()

    def correct(self):
        if self.memories:
            old = self.chance.choice(self.memories)
            me = self.me(old.author, "garden")
            try:
                if self.chance.random() < 0.5:
                    me.memories.delete(old.id)
                else:
                    new = me.memories.supersede(old.id, f"Event {self.count + 1} is new.")
                    self.count += 1
                    self.memories.append(replace(old, id=new.id, text=f"Event {self.count} is"))
            except MemorandaError:
                pass  # it was replaced or deleted before
        return set()

    def talk(self):
        me = self.me()
        me.user_model.write("baseline", f"at turn {self.count}")
        self.count += 1
        said = [{"role": "user", "content": f"What is event {self.count}?"}, {"role": "assistant", "content": "New."}]
        for name in (self.chance.choice(NAMES), "another"):
            me.conversation(name).append(said)
        me.conversation(self.chance.choice(NAMES)).turn_block("what is new?")
        return set()

    def wait(self):
        self.clock.advance(days=self.chance.randint(1, 40))
        return set()

    def fail(self):
        me = self.me()
        with pytest.raises(InvalidInput):
            me.memories.write("Never stored.", importance=11)
        down = ScriptedModel([ModelUnavailable("down"), ModelUnavailable("down")])
        assert not me.conversation(self.chance.choice(NAMES)).compact(EVERYTHING, down).folded
        return set()

    # -- what ends some

    def compact(self):
        me, name = self.me(), self.chance.choice(NAMES)
        compacted = me.conversation(name).compact(EVERYTHING, ScriptedModel([NOTHING, "They spoke of events."]))
        return self.of_conversation(me, name) if compacted.folded else set()

    def clear(self):
        me, name = self.me(), self.chance.choice(NAMES)
        me.conversation(name).clear()
        return self.of_conversation(me, name)

    def erase(self):
        if not self.memories:
            return set()
        gone = self.chance.choice(self.memories)
        self.chance.choice(self.engines).erase(tenant="acme", persona="main", memory=gone.id)
        self.memories.remove(gone)
        return {key for key, block in self.blocks.items() if self.shows(block, gone)}

    def erase_user(self):
        user = self.chance.choice(USERS)
        self.chance.choice(self.engines).erase(tenant="acme", user=user)
        gone = [memory for memory in self.memories if memory.author == user]
        self.memories = [memory for memory in self.memories if memory.author != user]
        self.members = {member for member in self.members if member[1] != user}
        return {
            key for key, block in self.blocks.items() if key[0] == user or any(self.shows(block, one) for one in gone)
        }

    def change_member(self):
        project, user = self.chance.choice(PROJECTS), self.chance.choice(USERS)
        if (project, user) not in self.members:
            self.me().projects.add_member(project, user)
            self.members.add((project, user))
            return set()
        self.me().projects.remove_member(project, user)
        self.members.remove((project, user))
        others = [memory for memory in self.memories if memory.project == project and memory.author != user]
        return {
            key
            for key, block in self.blocks.items()
            if key[0] == user and any(self.shows(block, one) for one in others)
        }

    # -- checking

    @staticmethod
    def shows(block, memory):
        return f"] {memory.text} " in block

    def of_conversation(self, me, name):
        return {key for key in self.blocks if key[:2] == (me.handle.scope.user, name)}

    def stored(self):
        def found(conn, tables):
            c, s = tables.conversations, tables.snapshots
            joined = c.join(s, s.c.conversation_id == c.c.id)
            return conn.execute(select(c.c.author, c.c.name, s.c.scope_key, s.c.block).select_from(joined)).all()

        rows = self.chance.choice(self.engines).handle._database.read(found)
        return {(row.author, row.name, self.keys[row.author, row.scope_key]): row.block for row in rows}

    def turn(self, action):
        for ended in action():
            del self.blocks[ended]
            self.changes += 1
        assert self.stored() == self.blocks
        key = (self.chance.choice(USERS), self.chance.choice(NAMES), self.chance.choice([None, None, "garden"]))
        if self.elsewhere and self.chance.random() < 0.5:
            block = self.elsewhere.ask(key[0], key[2], key[1])
        else:
            block = self.me(key[0], key[2]).conversation(key[1]).system_block()
        assert block not in self.blocks.values() or key in self.blocks or not block, "an ended block came back"
        assert block == self.blocks.setdefault(key, block)
        assert block.count("\n- [") <= 5 and "{" not in block


@pytest.mark.behaviour("P04", "P05", "P07", "P09")
def test_the_bytes_change_exactly_where_they_are_said_to(make_engine, backend, frozen_clock):
    engines, elsewhere = [make_engine(clock=frozen_clock, preset=POLICIES)], None
    if backend.name != "sqlite-memory":
        broken = BrokenEmbedder(name="hash/words", dimensions=512)
        engines.append(make_engine(clock=frozen_clock, preset=POLICIES, embedder=broken))
        elsewhere = Elsewhere(backend.url)
    walk = Walk(engines, frozen_clock, seed=20261130, elsewhere=elsewhere)
    usual = [walk.write] * 6 + [walk.correct, walk.correct, walk.talk, walk.wait, walk.fail]
    ending = [walk.compact, walk.clear, walk.erase, walk.change_member]
    for turn in range(TURNS):
        action = walk.erase_user if turn % 60 == 59 else walk.chance.choice(usual + ending)
        walk.turn(action)
    if elsewhere:
        elsewhere.close()
        assert elsewhere.process.returncode == 0
    assert walk.changes >= 30 and len(walk.blocks) >= 4
