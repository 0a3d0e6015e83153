"""The spaces in which statements are learned, and come up again."""

import builtins
from typing import Any

from memoranda.db.queries import spaces
from memoranda.effects import Runner, Steps, read, write
from memoranda.pipelines.context import Context
from memoranda.records import Space
from memoranda.scope import check_name


class Spaces:
    """The spaces of a persona; where the policy says `declared`, nothing is written in one that is not open.

    What was learned in a space that is archived stays, and comes up there as before.
    """

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner) -> None:
        """Bind a scope to an engine's runner."""
        self._context = context
        self._runner = runner

    def create(self, name: str) -> bool:
        """Open a space, or open it again; False when it is open already."""
        return self._runner.run(self._created(name))

    async def acreate(self, name: str) -> bool:
        """Async twin of `create`."""
        return await self._runner.arun(self._created(name))

    def archive(self, name: str) -> bool:
        """Let nothing more be written in a space; False when none of this name is open."""
        return self._runner.run(self._archived(name))

    async def aarchive(self, name: str) -> bool:
        """Async twin of `archive`."""
        return await self._runner.arun(self._archived(name))

    def list(self) -> builtins.list[Space]:
        """Return every space, in order of their names."""
        return self._runner.run(self._listed())

    async def alist(self) -> builtins.list[Space]:
        """Async twin of `list`."""
        return await self._runner.arun(self._listed())

    def _listed(self) -> Steps[builtins.list[Space]]:
        return (yield from read(spaces.listed, self._context.scope))

    def _created(self, name: str) -> Steps[bool]:
        return (yield from self._change(spaces.create, name))

    def _archived(self, name: str) -> Steps[bool]:
        return (yield from self._change(spaces.archive, name))

    def _change(self, fn: Any, name: str) -> Steps[bool]:
        check_name("space", name)
        return write(fn, self._context.scope, name, self._context.setting().now)
