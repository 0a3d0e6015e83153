"""The engine's tools as LangChain's: the same names, schemas and answers, with nobody's name among the arguments."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, ConfigDict, Field

from langchain_memoranda.scopes import Memory, ScopeResolver
from memoranda import MemoryEngine
from memoranda.persona import Persona
from memoranda.tools import Tool, agent_tools


def memory_tools(
    memory: Memory, *, persona: str = "main", names: Iterable[str] | None = None, root: str | Path | None = None
) -> list[BaseTool]:
    """Return the tools with which an agent remembers, recalls and reads documents.

    Who reads and writes is decided outside the model: by `memory`, and by the run where `memory` is an engine or a
    function.

    Args:
        memory: Whose memory it is; see `langchain_memoranda.scopes`.
        persona: The persona where the run names none; of an engine only.
        names: Which of `memoranda.tools.NAMES`; what suits the preset when left out.
        root: The folder whose files an agent may take in; texts only when left out.
    """
    scopes = ScopeResolver(memory, persona)
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
    names: tuple[str, ...] | None = None
    """Which tools; what suits the preset when left out."""
    root: Path | None = None
    """The folder whose files an agent may take in."""

    def get_tools(self) -> list[BaseTool]:
        """Return the tools."""
        return memory_tools(self.memory, persona=self.persona, names=self.names, root=self.root)


def _example(memory: Memory, persona: str) -> Persona:
    """Return a persona of the same policies, by which the set of tools is chosen."""
    if isinstance(memory, Persona):
        return memory
    return memory.persona(persona) if isinstance(memory, MemoryEngine) else memory(None)


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
