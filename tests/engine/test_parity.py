"""Every verb of every handle comes twice: `verb` and its async twin `averb`."""

import inspect
import typing
from typing import Any

import pytest

from memoranda.engine import MemoryEngine
from memoranda.persona import Persona
from memoranda.testing.handles import handles

HANDLES = handles()


def functions(cls):
    names = {name for base in cls.__mro__[:-1] for name in vars(base) if not name.startswith("_")}
    return {name: getattr(cls, name) for name in sorted(names) if inspect.isfunction(getattr(cls, name))}


def makes_a_handle(function):
    returned = inspect.signature(function).return_annotation
    if isinstance(returned, str):
        returned = {cls.__name__: cls for cls in HANDLES}.get(returned.strip("'\""))
    return bool(getattr(returned, "_memoranda_handle", False))


def verbs(cls):
    """Return the names of the verbs that wait for something: all but makers of handles and the twins themselves."""
    return [
        name
        for name, function in functions(cls).items()
        if not inspect.iscoroutinefunction(function) and not makes_a_handle(function)
    ]


PAIRS = [(cls, name) for cls in HANDLES for name in verbs(cls)]
LABELS = [f"{cls.__name__}.{name}" for cls, name in PAIRS]


def test_the_walk_finds_the_handles_and_their_verbs():
    assert {MemoryEngine, Persona} <= set(HANDLES)
    assert {cls.__name__ for cls in HANDLES} >= {"MemoryEngine", "Persona", "Memories", "Projects"}
    expected = {"MemoryEngine.setup", "MemoryEngine.revision", "MemoryEngine.close", "Persona.recall", "Persona.stats"}
    expected |= {f"Memories.{v}" for v in ("write", "write_many", "supersede", "get", "history", "list", "delete")}
    expected |= {
        "Memories.mark",
        "Memories.nearest",
        "Projects.add_member",
        "Projects.remove_member",
        "Projects.members",
    }
    assert expected <= set(LABELS), expected - set(LABELS)


@pytest.mark.parametrize(("cls", "name"), PAIRS, ids=LABELS)
def test_a_verb_has_an_async_twin_of_the_same_signature(cls, name):
    verb, twin = getattr(cls, name), getattr(cls, f"a{name}", None)
    assert inspect.iscoroutinefunction(twin), f"{cls.__name__}.a{name} is missing or no coroutine"
    assert inspect.signature(verb) == inspect.signature(twin)
    assert inspect.getdoc(twin) == f"Async twin of `{name}`."


@pytest.mark.parametrize(("cls", "name"), PAIRS, ids=LABELS)
def test_a_verb_says_what_it_does(cls, name):
    first = (inspect.getdoc(getattr(cls, name)) or "").splitlines()[0]
    assert first.endswith(".") and first[0].isupper() and len(first) <= 120
    assert not first.startswith("Async")


@pytest.mark.parametrize("cls", HANDLES, ids=lambda cls: cls.__name__)
def test_no_coroutine_stands_alone(cls):
    for name, function in functions(cls).items():
        if inspect.iscoroutinefunction(function):
            assert name.startswith("a") and name[1:] in verbs(cls), f"{cls.__name__}.{name}"


@pytest.mark.parametrize("cls", HANDLES, ids=lambda cls: cls.__name__)
def test_a_handle_is_a_context_manager_in_both_halves_or_in_none(cls):
    assert hasattr(cls, "__enter__") == hasattr(cls, "__aenter__")
    assert hasattr(cls, "__exit__") == hasattr(cls, "__aexit__")


@pytest.mark.parametrize("cls", HANDLES, ids=lambda cls: cls.__name__)
def test_no_verb_or_twin_is_hidden_behind_a_property(cls):
    for name, value in inspect.getmembers(cls, lambda value: isinstance(value, property)):
        returned = typing.get_type_hints(value.fget).get("return")
        assert not inspect.iscoroutinefunction(value.fget), name
        assert returned is not None, name


async def test_both_halves_of_an_engine_give_the_same_answers(frozen_clock):
    with MemoryEngine("sqlite://", embedder="hash/words", clock=frozen_clock) as one:
        async with MemoryEngine("sqlite://", embedder="hash/words", clock=frozen_clock) as two:
            sync, other = one.persona("main"), two.persona("main")
            fields: Any = {"category": "plan", "importance": 7, "metadata": {"x": (1, 2)}}
            first, second = (
                sync.memories.write("Tea at four.", **fields),
                await other.memories.awrite("Tea at four.", **fields),
            )
            assert alike(first.memory) == alike(second.memory)
            a, b = sync.recall("when is tea?"), await other.arecall("when is tea?")
            assert [(h.score, h.confidence, h.legs, h.reasons) for h in (*a, *a.nearest)] == [
                (h.score, h.confidence, h.legs, h.reasons) for h in (*b, *b.nearest)
            ]
            assert (a.abstained, a.reason, a.degraded) == (b.abstained, b.reason, b.degraded)
            assert sync.stats() == await other.astats()
            assert one.revision() == await two.arevision()


def alike(memory):
    return {name: getattr(memory, name) for name in memory.__slots__ if name not in ("id", "short_id")}
