"""Who asks, and in which conversation: read off a LangGraph run, in one order, and never guessed.

Each name is looked for in

1. the run's `context`, a mapping or an object: `persona`, `tenant`, `user`, `project`, `space`, `agent`,
   `conversation`, each also with `_id` behind it;
2. `config["configurable"]`, under the same names;
3. for the user, the identity that LangGraph's server has authenticated; for the conversation, the run's `thread_id`.

A name is a text, a whole number or a UUID; anything else is an error, for it would name somebody by accident.

A user whom the server has authenticated is not overruled: another name in 1 or 2 is an error. So is a tenant there,
which a client may have written: under a server that authenticates, the resolver is given `tenant`. So is a run in which
no user or no conversation is found, unless the memory is bound to one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, TypeAlias
from uuid import UUID

from langchain_memoranda import running_tools
from memoranda import MemoryEngine
from memoranda.conversations import Conversation
from memoranda.errors import ConfigurationError, NotAllowed
from memoranda.persona import Persona

Memory: TypeAlias = MemoryEngine | Persona | Callable[[Any], Persona]
"""Whose memory it is: an engine, where each run says who asks; a persona, where it is always the same; or a function
from the run's `Runtime` or `ToolRuntime` to a persona, plain and not async. Tools ask it once without a run, with None,
for any persona of the preset that their set is chosen by."""

NameOf: TypeAlias = str | Callable[[Any], str]
"""A name, or a function from the run's `Runtime` to it."""

_SCOPED = ("project", "space", "agent")


@dataclass(frozen=True, slots=True)
class ScopeResolver:
    """Finds the persona and the conversation of a run.

    Args:
        memory: Whose memory it is.
        persona: The persona where the run names none; of an engine only.
        conversation: The name of the conversation, or a function from the run's `Runtime` to it; when left out it is
            looked for in the run.
        tenant: The tenant, or a function from the run's `Runtime` to it, such as
            `lambda runtime: runtime.server_info.user["org"]`; of an engine only. When left out it is looked for in the
            run, where no server has authenticated the user.

    Raises:
        ConfigurationError: one of the functions is async.
    """

    memory: Memory
    persona: str = "main"
    conversation: NameOf | None = None
    tenant: NameOf | None = None

    def __post_init__(self) -> None:
        for name in ("memory", "conversation", "tenant"):
            given = getattr(self, name)
            if iscoroutinefunction(given) or iscoroutinefunction(getattr(given, "__call__", None)):  # noqa: B004
                raise ConfigurationError(f"{name} must be a plain function: plain code and async code both call it.")

    def persona_of(self, runtime: Any) -> Persona:
        """Return who asks in a run.

        Raises:
            ConfigurationError: the run names no user.
            NotAllowed: it names another user than the one that the server has authenticated, or another tenant than
                that of the resolver, or one where the server has authenticated only the user.
        """
        if isinstance(self.memory, Persona):
            return self.memory
        if not isinstance(self.memory, MemoryEngine):
            if isinstance(found := self.memory(runtime), Persona):
                return found
            raise ConfigurationError("The function that says whose memory it is must return a persona.")
        tenant = _named("tenant", self.tenant(runtime) if callable(self.tenant) else self.tenant)
        if tenant is None and self.tenant is not None:
            raise ConfigurationError("The function that says whose tenant it is must return a name.")
        persona, tenant, user = identity_of(runtime, tenant)
        asked = self.memory.persona(persona or self.persona, tenant=tenant, user=user)
        names = _Names(runtime)
        narrowed = {axis: value for axis in _SCOPED if (value := names.of(axis)) is not None}
        return asked.scoped(**narrowed) if narrowed else asked  # type: ignore[arg-type]

    def conversation_of(self, runtime: Any) -> Conversation:
        """Return the conversation of a run.

        Raises:
            ConfigurationError: the run names neither a conversation nor a thread, or no user.
        """
        if callable(self.conversation):
            name = _named("conversation", self.conversation(runtime))
        else:
            name = self.conversation or _Names(runtime).of("conversation") or _thread(runtime)
        if not name:
            raise ConfigurationError(
                "This run belongs to no conversation: pass config={'configurable': {'thread_id': ...}}, with a "
                "checkpointer or without."
            )
        return self.persona_of(runtime).conversation(name)


def identity_of(runtime: Any, tenant: str | None = None) -> tuple[str, str, str]:
    """Return persona, tenant and user of a run; the first two are empty where it names none.

    Args:
        runtime: The run's.
        tenant: The tenant that the program has chosen.

    Raises:
        ConfigurationError: the run names no user.
        NotAllowed: it names another user than the one that the server has authenticated, or another tenant than the
            program's, or one where the server has authenticated only the user.
    """
    names = _Names(runtime)
    user, known = names.of("user"), _authenticated(runtime)
    if known is not None and user not in (None, known):
        raise NotAllowed("The run names another user than the one who is signed in.")
    if (user := user or known) is None:
        raise ConfigurationError(
            "No user is named in this run, and memory is never shared by accident: pass context={'user': ...} or "
            "config={'configurable': {'user_id': ...}}, or bind the memory to engine.persona(..., user=...)."
        )
    asked = names.of("tenant")
    if tenant is None and asked is not None and known is not None:
        raise NotAllowed(
            "The run names a tenant, and the server has authenticated the user alone: anybody could name it. Give the "
            "middleware, the tools or the resolver tenant=..., a name or a function from the run's Runtime to it."
        )
    if tenant is not None and asked not in (None, tenant):
        raise NotAllowed("The run names another tenant than the one that it belongs to.")
    return names.of("persona") or "", tenant or asked or "", user


class _Names:
    """The names that a run gives, by axis."""

    def __init__(self, runtime: Any) -> None:
        self._places = (getattr(runtime, "context", None), _configurable(runtime))

    def of(self, axis: str) -> str | None:
        for place in self._places:
            for name in (axis, f"{axis}_id"):
                value = place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)
                if (found := _named(name, value)) is not None:
                    return found
        return None


def _named(name: str, value: Any) -> str | None:
    """Return a name as text, None where there is none."""
    if value is None or (isinstance(value, str) and not value):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise ConfigurationError(f"The run's {name} is no name: a string, a number or a UUID is.")
    return str(value)


def _configurable(runtime: Any) -> Mapping[str, Any]:
    config = getattr(runtime, "config", None)  # a tool's runtime carries it
    if config is None:
        from langgraph.config import get_config

        try:
            config = get_config()
        except RuntimeError:  # outside a run
            return {}
    return config.get("configurable") or {}


def _thread(runtime: Any) -> str | None:
    thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
    return _named("thread_id", thread or _configurable(runtime).get("thread_id"))


def _authenticated(runtime: Any) -> str | None:
    user = getattr(getattr(runtime, "server_info", None), "user", None)
    return user.get("identity") if isinstance(user, Mapping) else getattr(user, "identity", None)


def is_sub_agent(runtime: Any) -> bool:
    """Say whether a run was begun by a tool, such as one of another agent, whose conversation it is no part of.

    An agent that is a node of a larger graph is none, unless the node is named `tools`: it talks to the user.
    """
    if running_tools.is_inside():
        return True
    *above, _ = (getattr(getattr(runtime, "execution_info", None), "checkpoint_ns", None) or "").split("|")
    return any(node.split(":")[0] == "tools" for node in above)
