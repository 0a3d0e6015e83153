"""The engine's tools as LangChain's: the same names, schemas and answers, with nobody's name among the arguments."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, ConfigDict, Field

from langchain_memoranda.scopes import Memory, NameOf, ScopeResolver
from memoranda import MemoryEngine
from memoranda.errors import ConfigurationError
from memoranda.persona import Persona
from memoranda.tools import Tool, agent_tools

_WITHOUT_A_RUN = (
    "The function that says whose memory it is must give a persona without a run, too: it is called once with None, to "
    "choose the tools by its preset, and nothing is read or written there. Begin it with `if runtime is None: return "
    "engine.persona('main')`, or give the middleware tools=False."
)


def memory_tools(
    memory: Memory,
    *,
    persona: str = "main",
    tenant: NameOf | None = None,
    names: Iterable[str] | None = None,
    root: str | Path | None = None,
) -> list[BaseTool]:
    """Return the tools with which an agent remembers, recalls and reads documents.

    Who reads and writes is decided outside the model: by `memory`, and by the run where `memory` is an engine or a
    function.

    Args:
        memory: Whose memory it is; see `langchain_memoranda.scopes`. A function is called once here with None, for
            the preset, and must answer with any persona.
        persona: The persona where the run names none; of an engine only.
        tenant: The tenant, or a function from the run's `ToolRuntime` to it; of an engine only.
        names: Which of `memoranda.tools.NAMES`; what suits the preset when left out.
        root: The folder whose files an agent may take in; texts only when left out.

    Raises:
        ConfigurationError: a function is async, or gives no persona for None.
    """
    scopes = ScopeResolver(memory, persona, tenant=tenant)
    return [_tool(tool, scopes) for tool in agent_tools(_example(memory, persona), names=names, root=root)]


class MemoryToolkit(BaseToolkit):
    """The same tools as a toolkit.

    Example:
        `MemoryToolkit(memory=engine.persona("main", user="ana")).get_tools()`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Any = Field(exclude=True, repr=False)
    """Whose memory it is; see `langchain_memoranda.scopes`."""
    persona: str = "main"
    """The persona where the run names none; of an engine only."""
    tenant: Any = Field(default=None, exclude=True, repr=False)
    """The tenant, or a function from the run's `ToolRuntime` to it; of an engine only."""
    names: tuple[str, ...] | None = None
    """Which tools; what suits the preset when left out."""
    root: Path | None = None
    """The folder whose files an agent may take in."""

    def get_tools(self) -> list[BaseTool]:
        """Return the tools."""
        return memory_tools(self.memory, persona=self.persona, tenant=self.tenant, names=self.names, root=self.root)


def _example(memory: Memory, persona: str) -> Persona:
    """Return a persona of the same policies, by which the set of tools is chosen."""
    if isinstance(memory, Persona):
        return memory
    if isinstance(memory, MemoryEngine):
        return memory.persona(persona)
    try:
        found = memory(None)
    except Exception as error:
        raise ConfigurationError(_WITHOUT_A_RUN) from error
    if not isinstance(found, Persona):
        raise ConfigurationError(_WITHOUT_A_RUN)
    return found


class _MemoryTool(StructuredTool):
    """A tool that hands on what a model gave: the engine checks it, and answers in words what cannot be used."""

    arguments: type[BaseModel] = Field(exclude=True)

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the model of the arguments."""
        return self.arguments


def _tool(tool: Tool, scopes: ScopeResolver) -> BaseTool:
    def call(runtime: ToolRuntime[Any, Any] = None, **arguments: Any) -> str:  # type: ignore[assignment]
        return tool.run(scopes.persona_of(runtime), arguments)

    async def acall(runtime: ToolRuntime[Any, Any] = None, **arguments: Any) -> str:  # type: ignore[assignment]
        return await tool.arun(scopes.persona_of(runtime), arguments)

    return _MemoryTool(
        func=call,
        coroutine=acall,
        name=tool.name,
        description=tool.description,
        args_schema=tool.schema,
        arguments=tool.arguments,
    )
