"""Where a memory that was serialised finds its engine again: by a name within this process, never by an address.

What is written into a workflow's context says who, which conversation and the engine's name; a process that reads it
attaches its engine under that name first.
"""

import os
from dataclasses import asdict, replace
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from memoranda import MemoryEngine
from memoranda.effects import Runner
from memoranda.errors import ConfigurationError
from memoranda.persona import Persona
from memoranda.policies import Policies
from memoranda.scope import Scope

DEFAULT = "default"
"""The name under which an engine is attached when none is given."""

_lock = Lock()
_attached: dict[str, MemoryEngine] = {}
_runners: WeakValueDictionary[str, Runner] = WeakValueDictionary()
_contexts: dict[str, Any] = {}
_numbers = count()


def attach(engine: MemoryEngine, name: str = DEFAULT, *, preset: str | Policies | None = None) -> MemoryEngine:
    """Name an engine, so that what was serialised finds it, and return it; the one before under this name is let go.

    Args:
        engine: The engine.
        name: What it is called in this process and in those that read what this one has written.
        preset: The policies of the personas that go by this name, where they are not the engine's: they need one of
            their own.
    """
    with _lock:
        _attached[name] = engine
        _remember(name, engine.persona(preset=preset))
    return engine


def detach(name: str = DEFAULT) -> None:
    """Forget a name."""
    with _lock:
        _attached.pop(name, None)
        _runners.pop(name, None)
        _contexts.pop(name, None)


def default_persona() -> Persona:
    """Return the persona `main` of the engine attached as `default`, or of the one that `MEMORANDA_URL` names."""
    return _found(DEFAULT, Scope())


def described(persona: Persona) -> dict[str, Any]:
    """Return what it takes to find a persona again; no secret is in it."""
    with _lock:
        # A name that was given before one that was made up: only the first is known in other processes.
        name = next((name for name in [*_attached, *_contexts] if _is_of(persona, name)), None)
        if name is None:
            name = f"process-{os.getpid()}-{next(_numbers)}"
            _remember(name, persona)
    scope = {axis: value for axis, value in asdict(persona.scope).items() if value is not None}
    return {"engine": name, "scope": scope}


def restored(data: dict[str, Any]) -> Persona:
    """Return the persona that was described.

    Raises:
        ConfigurationError: no engine is attached under its name.
    """
    return _found(data["engine"], Scope(**data["scope"]))


def _found(name: str, scope: Scope) -> Persona:
    with _lock:
        if name not in _runners and name == DEFAULT and os.environ.get("MEMORANDA_URL"):
            _attached[name] = MemoryEngine()
            _remember(name, _attached[name].persona())
        runner, context = _runners.get(name), _contexts.get(name)
    if runner is None or context is None:
        raise ConfigurationError(
            f"No engine is attached as {name!r} in this process: call attach(engine, name) before a memory is written "
            "and, under the same name, before it is read; personas of another preset need attach(..., preset=...)."
        )
    return Persona(replace(context, scope=scope), runner)


def _remember(name: str, persona: Persona) -> None:
    for gone in [known for known in _contexts if known not in _runners]:
        del _contexts[gone]
    _runners[name] = persona._runner
    _contexts[name] = persona._context


def _is_of(persona: Persona, name: str) -> bool:
    if _runners.get(name) is not persona._runner:
        return False
    return bool(replace(_contexts[name], scope=persona.scope) == persona._context)
