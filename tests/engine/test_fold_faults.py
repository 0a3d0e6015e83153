"""Whatever becomes of the model or the process: no message is lost, none is extracted twice, and no turn fails."""

import asyncio
import json
import os
import re
import traceback
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from memoranda import MemoryEngine
from memoranda.effects import Complete, Runner, Transact
from memoranda.errors import ConfigurationError, ModelRefused, ModelUnavailable
from memoranda.policies import CompactionPolicy, DedupePolicy, JobPolicy, Policies, ReviewPolicy, WritePolicy
from memoranda.protocols import Completion
from memoranda.testing import ScriptedModel

DIED, FAILED = 7, 1
COMPACTION = {
    "after the plan": ("plan", 1, True),
    "after the flush was asked for": ("complete", 1, True),
    "while it is saved": ("save", 1, False),
    "after it was saved": ("save", 1, True),
    "after the summary was asked for": ("complete", 1, True),
    "in the fold": ("fold", 1, False),
    "after the fold": ("fold", 1, True),
}
"""Where a process dies: at which effect, which time it comes, and whether its transaction was committed before."""
REVIEW = {
    "after the claim": ("claim", 1, True),
    "after the messages were read": ("reviewable", 1, True),
    "after the model was asked": ("complete", 1, True),
    "while it is saved": ("save", 1, False),
    "after it was saved": ("save", 1, True),
}
FLUSH = {
    "after the messages were read": ("next_slice", 1, True),
    "after the model was asked": ("complete", 1, True),
    "while it is saved": ("save", 1, False),
    "after it was saved": ("save", 1, True),
}
POLICIES = Policies(
    dedupe=DedupePolicy(name="none"),
    review=ReviewPolicy(every=1),
    compaction=CompactionPolicy(keep_tokens=0),
)


class Reader:
    """Saves a memory of every message it reads, in words that come never again."""

    name = "test/reader"

    def complete(self, messages, *, schema=None, max_tokens=None):
        read = re.findall(r"^\[(\d+)\]", messages[1]["content"].partition("<memoranda-transcript")[2], re.MULTILINE)
        if schema is None:
            return Completion(f"A summary of {', '.join(read)}.")
        found = [{"content": f"message {n}: {uuid4().hex}", "confidence": 9, "message": int(n)} for n in read]
        return Completion(json.dumps({"user_model": [], "memories": found} if "Rewrite" in str(schema) else found))

    async def acomplete(self, messages, *, schema=None, max_tokens=None):
        return self.complete(messages, schema=schema, max_tokens=max_tokens)


class Mortal(Runner):
    """Ends its process at one effect."""

    death = ("", 0, False)
    met = 0

    def _perform(self, effect):
        effect, last = self._doomed(effect)
        result = super()._perform(effect)
        if last:
            os._exit(DIED)
        return result

    async def _aperform(self, effect):
        effect, last = self._doomed(effect)
        result = await super()._aperform(effect)
        if last:
            os._exit(DIED)
        return result

    def _doomed(self, effect):
        name, times, committed = self.death
        fn = getattr(effect, "fn", None)
        mine = name == ("complete" if isinstance(effect, Complete) else getattr(fn, "__name__", ""))
        self.met += mine
        mine = mine and self.met == times
        if mine and not committed:
            effect = Transact(_deadly, (effect.fn, *effect.args), write=True)
        return effect, mine


def _deadly(conn, tables, fn, *args):
    fn(conn, tables, *args)
    os._exit(DIED)


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request, tmp_path):
    """A store that outlives a process."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path}/memory.db"


def opened(url, **options):
    policy = JobPolicy(delay_seconds=0, attempts=20)
    settings: dict[str, Any] = {"embedder": "none", "preset": POLICIES, "background": "external", "model": Reader()}
    return MemoryEngine(url, **settings | {"job_policy": policy} | options)


def leases_end(engine):
    engine._database.run(lambda conn, tables: conn.execute(tables.jobs.update().values(lease_until=None)))


def die(url, death, work, **options):
    """Do something in a child until it dies; nothing of this process is open then, so nothing of it is shared."""
    child = os.fork()
    if child == 0:
        try:
            engine = opened(url, **options)
            engine._runner = mortal = Mortal(engine._database, engine._space, engine._model)
            mortal.death = death
            work(engine)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(FAILED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def chat_of(engine):
    return engine.persona("main").conversation("thread-1")


def say(chat, *numbers):
    for number in numbers:
        answer = {"role": "assistant", "content": f"answer {number}"}
        chat.append([{"role": "user", "content": f"question {number}"}, answer])


def extracted(engine, channel, *spaces):
    """Return how often each message was extracted, where it was said in one of some spaces."""
    found: Counter[int] = Counter()
    for space in spaces or (None,):
        me = engine.persona("main").scoped(space=space)
        for memory in me.memories.list(limit=1_000):
            if me.memories.get(memory.id).sources[0].channel == channel:
                found[int(memory.content.split(":")[0].removeprefix("message "))] += 1
    return found


def extractions(url, kind):
    host = create_engine(url)
    table = "memoranda.extractions" if host.dialect.name == "postgresql" else "memoranda_extractions"
    with host.connect() as connection:
        rows = connection.execute(text(f"select first_position, last_position from {table} where kind = '{kind}'"))
        spans = [position for first, last in rows for position in range(first, last + 1)]
    host.dispose()
    return sorted(spans)


FORKS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@FORKS
def test_a_compaction_killed_at_each_step_loses_nothing_and_extracts_nothing_twice(url):
    with opened(url) as engine:
        engine.setup()
    turns = 0
    for step, death in COMPACTION.items():
        with opened(url) as engine:
            say(chat_of(engine), turns := turns + 1)
            blocks = chat_of(engine).system_block()
        second = step == "after the summary was asked for"
        death = (death[0], 2, death[2]) if second and turns == 1 else death
        assert (step, die(url, death, lambda engine: chat_of(engine).compact())) == (step, DIED)
        with opened(url) as engine:
            chat = chat_of(engine)
            record, messages = chat.record(), chat.messages()
            assert [message.position for message in messages] == list(range(1, 2 * turns + 1))
            assert {message.folded for message in messages if message.position <= record.folded} <= {True}
            done = step == "after the fold"
            assert bool(record.summary) is done and (chat.system_block() == blocks or done)
    with opened(url) as engine:
        chat = chat_of(engine)
        say(chat, turns + 1)
        assert chat.compact().problem is None
        record = chat.record()
        assert record.folded == record.messages == 2 * turns + 2 and record.pending == 0
        assert extracted(engine, "flush") == Counter(range(1, record.messages + 1))
    assert extractions(url, "flush") == list(range(1, 2 * turns + 3))


@FORKS
@pytest.mark.parametrize(("kind", "steps"), [("review", REVIEW), ("flush", FLUSH)])
def test_a_job_killed_at_each_step_loses_nothing_and_extracts_nothing_twice(url, kind, steps):
    with opened(url) as engine:
        engine.setup()
        say(chat_of(engine), 1)
        chat_of(engine).pending([1, 2])
        assert chat_of(engine).turn_done() if kind == "review" else chat_of(engine).end_session()
    for step, death in steps.items():
        assert (step, die(url, death, lambda engine: engine.drain(timeout=0))) == (step, DIED)
        with opened(url) as engine:
            leases_end(engine)
            chat, done = chat_of(engine), step == "after it was saved"
            assert [message.text for message in chat.messages()] == ["question 1", "answer 1"]
            assert extracted(engine, kind) == (Counter([1, 2]) if done else Counter())
            assert len(engine.jobs()) == (not done)
    with opened(url) as engine:
        assert engine.drain() == 0 and extracted(engine, kind) == Counter([1, 2])
    assert extractions(url, kind) == [1, 2]


@FORKS
def test_whoever_awaits_a_compaction_dies_as_whoever_waits_for_it(url):
    with opened(url) as engine:
        engine.setup()
        say(chat_of(engine), 1)
    for step in ("after the flush was asked for", "while it is saved", "after it was saved", "in the fold"):
        assert (step, die(url, COMPACTION[step], lambda engine: asyncio.run(chat_of(engine).acompact()))) == (
            step,
            DIED,
        )
        with opened(url) as engine:
            assert not any(message.folded or message.pending for message in chat_of(engine).messages())
            assert extracted(engine, "flush") == Counter([1, 2][: 2 * (step in ("after it was saved", "in the fold"))])
    with opened(url) as engine:
        assert chat_of(engine).compact().folded == 2 and extracted(engine, "flush") == Counter([1, 2])


class Picky(Reader):
    """Does not do its work where somebody says so."""

    faulty = True

    def complete(self, messages, *, schema=None, max_tokens=None):
        if self.faulty and "question 1" in messages[1]["content"]:
            raise ModelRefused("It declines.")
        return super().complete(messages, schema=schema, max_tokens=max_tokens)


class Misconfigured(Picky):
    """Cannot be asked at all."""

    def complete(self, messages, *, schema=None, max_tokens=None):
        if self.faulty:
            raise ConfigurationError("There is no such model.")
        return super().complete(messages, schema=schema, max_tokens=max_tokens)


SPACES = Policies(
    dedupe=DedupePolicy(name="none"),
    write=WritePolicy(space="declared"),
    compaction=CompactionPolicy(keep_tokens=0),
)
FAULTS: dict[str, tuple[Reader, tuple[str, int, bool] | None]] = {
    "the oldest is refused": (Picky(), ("set_aside", 1, True)),
    "the oldest is refused, and its worker dies": (Picky(), ("set_aside", 1, False)),
    "the scope of the oldest is gone": (Reader(), None),
    "a setting is wrong": (Misconfigured(), None),
}


@FORKS
@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_extracted_is_not_lost_and_not_in_the_way(url, fault):
    model, death = FAULTS[fault]
    options: dict[str, Any] = {"model": model, "preset": SPACES}
    with opened(url, **options) as engine:
        engine.setup()
        me = engine.persona("main")
        for number, space in enumerate(("home", "work"), 1):
            me.spaces.create(space)
            say(me.scoped(space=space).conversation("thread-1"), number)
        chat = chat_of(engine)
        chat.pending([1, 2, 3, 4])
        chat.end_session()
        if isinstance(model, Picky):
            model.faulty = True
        else:
            me.spaces.archive("home")
    if death is not None:
        assert die(url, death, lambda engine: engine.drain(timeout=0), **options) == DIED
    with opened(url, **options) as engine:
        leases_end(engine)
        assert engine.drain() == 0 and {job.status for job in engine.jobs()} <= {"failed"}
        chat, wrong = chat_of(engine), isinstance(model, Misconfigured)
        assert extracted(engine, "flush", "home", "work") == (Counter() if wrong else Counter([3, 4]))
        assert chat.flush().problem and chat.record().pending == (4 if wrong else 2)
        if isinstance(model, Picky):
            model.faulty = False
        else:
            engine.persona("main").spaces.create("home")
        while (done := chat.flush()).skipped is None:
            assert done.problem is None
        assert extracted(engine, "flush", "home", "work") == Counter([1, 2, 3, 4]) and chat.record().pending == 0
    assert extractions(url, "flush") == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["review", "flush"])
def test_a_worker_that_lost_its_lease_saves_nothing_that_a_second_worker_has_saved(url, kind):
    reader = Reader()
    others: list[int] = []

    def slow(messages):
        with opened(url) as second:
            leases_end(second)
            second.drain()
            others.append(sum(extracted(second, kind).values()))
        return reader.complete(messages, schema={"title": "Rewrite"} if kind == "review" else {})

    with opened(url, model=ScriptedModel([slow])) as engine:
        engine.setup()
        chat = chat_of(engine)
        say(chat, 1)
        chat.pending([1, 2])
        assert chat.turn_done() if kind == "review" else chat.end_session()
        engine.drain()
        assert others == [2] and extracted(engine, kind) == Counter([1, 2]) and engine.jobs() == []


@pytest.mark.parametrize("background", ["inline", "thread", "external"])
def test_no_turn_fails_because_of_a_model(url, background):
    broken: list[Any] = [ModelUnavailable("asleep"), RuntimeError("gone"), "lies", "", "[}"] * 40
    with opened(url, model=ScriptedModel(broken), background=background, job_policy=JobPolicy()) as engine:
        engine.setup()
        chat = chat_of(engine)
        for number in range(3):
            say(chat, number)
            chat.turn_done()
            chat.pending([2 * number + 1])
            chat.end_session()
            chat.compact()
            chat.flush()
            chat.review()
            assert f"question {number}" in [message.text for message in chat.messages()]
        record = chat.record()
        assert record.messages == 6 and record.pending >= 3 and not extracted(engine, "flush")
