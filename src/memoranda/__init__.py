"""Memoranda: drop-in long-term memory for agents.

Names resolve when they are first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoranda.engine import MemoryEngine
    from memoranda.errors import MemorandaError
    from memoranda.persona import Persona
    from memoranda.policies import Policies
    from memoranda.records import Hit, KnowledgeHit, Memory, MemoryHit, MemoryRecord, Recall, Written

__version__ = "0.1.0"

__all__ = [
    "Hit",
    "KnowledgeHit",
    "MemorandaError",
    "Memory",
    "MemoryEngine",
    "MemoryHit",
    "MemoryRecord",
    "Persona",
    "Policies",
    "Recall",
    "Written",
    "__version__",
]

_HOMES = {
    "Hit": "records",
    "KnowledgeHit": "records",
    "MemorandaError": "errors",
    "Memory": "records",
    "MemoryEngine": "engine",
    "MemoryHit": "records",
    "MemoryRecord": "records",
    "Persona": "persona",
    "Policies": "policies",
    "Recall": "records",
    "Written": "records",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name in _HOMES:
        return getattr(import_module(f"memoranda.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'memoranda' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
