"""Who may read and write what a project shares."""

from typing import Any

from memoranda.db.queries import projects
from memoranda.effects import Runner, Steps, read, write
from memoranda.pipelines.context import Context
from memoranda.scope import check_name, check_project


class Projects:
    """Who may read and write what a project shares.

    Names are matched exactly; there is no name for "all projects". Whoever holds this handle decides who is a member:
    give it to the program that knows the users, never to an agent.
    """

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner) -> None:
        """Bind a scope to an engine's runner."""
        self._context = context
        self._runner = runner

    def add_member(self, project: str, member: str) -> bool:
        """Let a user read and write what a project shares; False when they could already."""
        return self._runner.run(self._added(project, member))

    async def aadd_member(self, project: str, member: str) -> bool:
        """Async twin of `add_member`."""
        return await self._runner.arun(self._added(project, member))

    def remove_member(self, project: str, member: str) -> bool:
        """Take a user's membership away; False when there was none. Their own rows stay theirs."""
        return self._runner.run(self._removed(project, member))

    async def aremove_member(self, project: str, member: str) -> bool:
        """Async twin of `remove_member`."""
        return await self._runner.arun(self._removed(project, member))

    def members(self, project: str) -> list[str]:
        """Return the members of a project, in order of their names."""
        return self._runner.run(self._members(project))

    async def amembers(self, project: str) -> list[str]:
        """Async twin of `members`."""
        return await self._runner.arun(self._members(project))

    def _members(self, project: str) -> Steps[list[str]]:
        check_project(project)
        return (yield from read(projects.members, self._context.scope, project))

    def _added(self, project: str, member: str) -> Steps[bool]:
        return (yield from self._change(projects.add_member, project, member, self._context.setting().now))

    def _removed(self, project: str, member: str) -> Steps[bool]:
        return (yield from self._change(projects.remove_member, project, member))

    def _change(self, fn: Any, project: str, member: str, *arguments: Any) -> Steps[bool]:
        check_project(project)
        check_name("member", member)
        return write(fn, self._context.scope, project, member, *arguments)
