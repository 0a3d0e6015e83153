"""What is said of an operation: ids and counts, nothing else; and next to nothing is done where nobody looks."""

import importlib
import inspect
import logging
import pkgutil
import subprocess
import sys
from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoranda
from memoranda import telemetry
from memoranda.loop_thread import LoopThread
from memoranda.records import Forgotten, Kept, Memory, MemoryHit, MemoryRecord, Recall, Source, Space, Undone, Written
from memoranda.reports import Erased, Exported, Imported, Statistics

MOMENT = datetime(2026, 5, 8, tzinfo=UTC)
ONE, TWO = UUID(int=1), UUID(int=2)


def memory(number=1, said="something", **fields):
    return Memory(
        id=UUID(int=number),
        short_id="abcdefgh",
        content=said,
        title=said,
        type="semantic",
        status="active",
        metadata={said: said},
        day=date(2026, 5, 8),
        created_at=MOMENT,
        updated_at=MOMENT,
        **fields,
    )


def answers(said="something"):
    """Return one of each kind of answer, with the same words wherever words may be."""
    one = memory(1, said, tenant=said, persona=said, author=said, project=said, space=said, about=said, session=said)
    two = memory(2, said)
    hit = MemoryHit(memory=one, score=1.5, confidence=0.25, legs={said: 1.0}, reasons=(said,))
    source = Source(
        id=ONE, memory_id=ONE, type="manual", session=said, channel=said, actor=said, excerpt=said, created_at=MOMENT
    )
    return {
        "recall": Recall(hits=(hit, MemoryHit(memory=two, score=0.5, confidence=0.75)), degraded=said),
        "abstention": Recall(abstained=True, reason=said, nearest=(hit,)),
        "nothing asked": Recall(abstained=True, reason=said),
        "hit": hit,
        "written": Written(memory=one, created=True, was=said, degraded=said),
        "superseded": Written(memory=two, created=False, superseded=one),
        "kept": Kept(memory=one, outcome="updated", was=said),
        "forgotten": Forgotten(memory=one),
        "undone": Undone(memory=one, retracted=two),
        "undone alone": Undone(memory=one),
        "memory": one,
        "record": MemoryRecord(memory=one, sources=(source,), supersedes=(two,), superseded_by=two, change=source),
        "memories": [one, two],
        "batch": [Written(memory=one, created=True), Written(memory=two, created=False, degraded=said)],
        "erased": Erased(memories=2, rows=9, pending=True, reason=said, elsewhere=said),
        "exported": Exported(rows={"memories": 2, "vectors": 3}, sha256=said),
        "imported": Imported(rows={"memories": 1}, already_there={"memories": 4}),
        "statistics": Statistics(memories=3, by_category={said: 3}, embedder=said),
        "spaces": [Space(name=said, created_at=MOMENT)],
        "names": [said],
        "a word": said,
        "a number": 4,
        "yes": True,
        "nothing": None,
        "none": [],
    }


EXPECTED = {
    "recall": {
        "gen_ai.memory.record.ids": [str(ONE), str(TWO)],
        "gen_ai.memory.record.count": 2,
        "gen_ai.memory.record.scores": [1.5, 0.5],
        "gen_ai.memory.abstained": False,
        "gen_ai.memory.degraded": True,
        "gen_ai.memory.confidence": 0.75,
    },
    "abstention": {
        "gen_ai.memory.record.ids": [],
        "gen_ai.memory.record.count": 0,
        "gen_ai.memory.record.scores": [],
        "gen_ai.memory.abstained": True,
        "gen_ai.memory.degraded": False,
        "gen_ai.memory.confidence": 0.25,
    },
    "nothing asked": {
        "gen_ai.memory.record.ids": [],
        "gen_ai.memory.record.count": 0,
        "gen_ai.memory.record.scores": [],
        "gen_ai.memory.abstained": True,
        "gen_ai.memory.degraded": False,
    },
    "hit": {
        "gen_ai.memory.record.id": str(ONE),
        "gen_ai.memory.record.count": 1,
        "gen_ai.memory.record.scores": [1.5],
        "gen_ai.memory.confidence": 0.25,
    },
    "written": {
        "gen_ai.memory.record.id": str(ONE),
        "gen_ai.memory.record.count": 1,
        "gen_ai.memory.degraded": True,
        "memoranda.created.count": 1,
    },
    "superseded": {
        "gen_ai.memory.record.id": str(TWO),
        "gen_ai.memory.record.ids": [str(TWO), str(ONE)],
        "gen_ai.memory.record.count": 1,
        "gen_ai.memory.degraded": False,
        "memoranda.created.count": 0,
    },
    "kept": {
        "gen_ai.memory.record.id": str(ONE),
        "gen_ai.memory.record.count": 1,
        "gen_ai.memory.degraded": False,
        "memoranda.created.count": 0,
    },
    "forgotten": {"gen_ai.memory.record.id": str(ONE), "gen_ai.memory.record.count": 1},
    "undone": {
        "gen_ai.memory.record.id": str(ONE),
        "gen_ai.memory.record.ids": [str(ONE), str(TWO)],
        "gen_ai.memory.record.count": 1,
    },
    "undone alone": {"gen_ai.memory.record.id": str(ONE), "gen_ai.memory.record.count": 1},
    "memory": {"gen_ai.memory.record.id": str(ONE), "gen_ai.memory.record.count": 1},
    "record": {"gen_ai.memory.record.id": str(ONE), "gen_ai.memory.record.count": 1},
    "memories": {"gen_ai.memory.record.ids": [str(ONE), str(TWO)], "gen_ai.memory.record.count": 2},
    "batch": {
        "gen_ai.memory.record.ids": [str(ONE), str(TWO)],
        "gen_ai.memory.record.count": 2,
        "gen_ai.memory.degraded": True,
        "memoranda.created.count": 1,
    },
    "erased": {
        "gen_ai.memory.record.count": 2,
        "memoranda.count": 9,
        "memoranda.erasure.pending": True,
        "memoranda.erasure.dry_run": False,
    },
    "exported": {"gen_ai.memory.record.count": 2, "memoranda.count": 5},
    "imported": {"gen_ai.memory.record.count": 1, "memoranda.count": 1},
    "statistics": {"gen_ai.memory.record.count": 3},
    "spaces": {"memoranda.count": 1},
    "names": {"memoranda.count": 1},
    "a word": {},
    "a number": {"memoranda.count": 4},
    "yes": {},
    "nothing": {},
    "none": {"memoranda.count": 0},
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_an_answer_is_described_by_ids_and_counts(kind):
    assert telemetry.describe("an_operation", answers()[kind]) == EXPECTED[kind]


def test_every_kind_of_answer_is_described():
    assert EXPECTED.keys() == answers().keys()


@pytest.mark.parametrize("result", [None, []])
def test_a_search_that_found_nothing_found_no_memory(result):
    assert telemetry.describe("search_memory", result) == {
        "gen_ai.memory.record.ids": [],
        "gen_ai.memory.record.count": 0,
    }


@given(st.text(min_size=1))
def test_no_text_and_no_name_is_in_a_description(said):
    plain, other = answers("something"), answers(said)
    for kind in plain:
        assert telemetry.describe("search_memory", plain[kind]) == telemetry.describe("search_memory", other[kind])


def test_of_many_memories_the_first_twenty_are_named_and_all_are_counted():
    described = telemetry.describe("search_memory", [memory(number) for number in range(1, 31)])
    assert described["gen_ai.memory.record.ids"] == [str(UUID(int=number)) for number in range(1, 21)]
    assert described["gen_ai.memory.record.count"] == 30


def modules():
    for found in pkgutil.walk_packages(memoranda.__path__, "memoranda."):
        if not found.name.startswith(("memoranda.testing", "memoranda.cli")) and not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def test_every_name_of_an_operation_is_that_of_a_pipeline():
    members = [value for module in modules() for value in vars(module).values()]
    members += [value for cls in set(filter(inspect.isclass, members)) for value in vars(cls).values()]
    pipelines = {
        f"{value.__module__.rpartition('.')[2]}.{value.__qualname__}"
        for value in members
        if inspect.isgeneratorfunction(value)
    }
    assert telemetry._OPERATIONS.keys() <= pipelines


def test_every_logger_is_a_child_of_memoranda():
    loggers = {value.name for m in modules() for value in vars(m).values() if isinstance(value, logging.Logger)}
    assert "memoranda.operations" in loggers
    assert not [name for name in loggers if not name.startswith("memoranda.")]


VERBS = """
import sys
from memoranda import MemoryEngine
{before}
with MemoryEngine("sqlite://", embedder="hash/words", background="inline") as engine:
    me = engine.persona("main")
    me.memories.write("The release went out.")
    assert len(me.recall("release")) == 1
{after}
"""


def run(before, after):
    script = VERBS.format(before=before, after=after)
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, capture_output=True, text=True)


def test_a_host_without_opentelemetry_is_spared_its_import():
    run("", "assert not [name for name in sys.modules if name.partition('.')[0] == 'opentelemetry']")


def test_opentelemetry_need_not_be_installed():
    run("sys.modules['opentelemetry'] = None", "")


def test_the_log_can_be_watched_without_opentelemetry():
    before = """
import logging
sys.modules["opentelemetry"] = None
seen = []
class Handler(logging.Handler):
    def emit(self, record): seen.append(vars(record)["gen_ai.operation.name"])
logging.getLogger("memoranda.operations").addHandler(Handler())
logging.getLogger("memoranda").setLevel(logging.DEBUG)
"""
    run(before, "assert seen == ['embeddings', 'create_memory', 'embeddings', 'search_memory'], seen")


def test_without_a_provider_nothing_is_watched():
    before = """
from opentelemetry import trace
from memoranda import telemetry
def recall(): yield
assert telemetry.operation(recall()) is telemetry._UNWATCHED
"""
    run(before, "")


class Client:
    async def close(self):
        pass


def test_an_embedders_own_loop_knows_what_it_works_for():
    from opentelemetry import context

    async def asked(client):
        return context.get_value("asked by")

    line = LoopThread(Client, "test")
    for name in ("one", "two"):
        token = context.attach(context.set_value("asked by", name))
        assert line.run(asked) == name
        context.detach(token)
    assert line.run(asked) is None
