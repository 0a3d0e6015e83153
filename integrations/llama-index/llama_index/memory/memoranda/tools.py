"""The engine's tools as LlamaIndex's: the same names, descriptions and answers, with nobody's name in the arguments."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from llama_index.core.tools.function_tool import FunctionTool
from llama_index.core.tools.tool_spec.base import SPEC_FUNCTION_TYPE, BaseToolSpec
from llama_index.core.tools.types import ToolMetadata

from memoranda.persona import Persona
from memoranda.tools import Tool, agent_tools


class MemoryToolSpec(BaseToolSpec):
    """The tools with which an agent remembers, recalls and reads documents, bound to one persona.

    Args:
        persona: Who reads and writes; no argument of a tool can change that.
        names: Which of `memoranda.tools.NAMES`; what suits the preset when left out.
        root: The folder whose files an agent may take in; texts only when left out.

    Example:
        `FunctionAgent(tools=MemoryToolSpec(me).to_tool_list(), ...)`
    """

    def __init__(self, persona: Persona, *, names: Iterable[str] | None = None, root: str | Path | None = None) -> None:
        self._persona = persona
        self._tools = {tool.name: tool for tool in agent_tools(persona, names=names, root=root)}
        self.spec_functions: list[SPEC_FUNCTION_TYPE] = [(name, f"a{name}") for name in self._tools]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a tool as a function, or as a coroutine function with an `a` in front."""
        tools: dict[str, Tool] = self.__dict__.get("_tools", {})
        if name in tools:
            return self._call(tools[name])
        if name.startswith("a") and name[1:] in tools:
            return self._acall(tools[name[1:]])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def to_tool_list(
        self,
        spec_functions: list[SPEC_FUNCTION_TYPE] | None = None,
        func_to_metadata_mapping: dict[str, ToolMetadata] | None = None,
    ) -> list[FunctionTool]:
        """Return the tools, each for sync and async callers."""
        own = {
            name: ToolMetadata(name=name, description=tool.description, fn_schema=tool.arguments)
            for name, tool in self._tools.items()
        }
        return super().to_tool_list(spec_functions, {**own, **(func_to_metadata_mapping or {})})

    def _call(self, tool: Tool) -> Callable[..., str]:
        def call(**arguments: Any) -> str:
            return tool.run(self._persona, arguments)

        return call

    def _acall(self, tool: Tool) -> Callable[..., Any]:
        async def acall(**arguments: Any) -> str:
            return await tool.arun(self._persona, arguments)

        return acall
