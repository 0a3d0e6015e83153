"""Record keys: what an indexer has indexed, so that it leaves alone what has not changed and removes what vanished."""

import builtins
import math
from collections.abc import Iterable, Sequence

from memoranda.db.queries import record_keys as queries
from memoranda.effects import Runner, Steps, read, write
from memoranda.errors import InvalidInput
from memoranda.nodes import check_key
from memoranda.pipelines.context import Context


class RecordKeys:
    """The keys that one user's indexer has noted in one namespace, each with its group and the moment it was noted.

    All moments are the database's own, in seconds since 1970.
    """

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner, namespace: str) -> None:
        """Bind a namespace to an engine's runner."""
        self._context = context
        self._runner = runner
        self._namespace = namespace

    def now(self) -> float:
        """Return the moment by the database's clock."""
        return self._runner.run(self._now())

    async def anow(self) -> float:
        """Async twin of `now`."""
        return await self._runner.arun(self._now())

    def note(
        self,
        keys: Sequence[str],
        *,
        groups: Sequence[str | None] | None = None,
        not_before: float | None = None,
    ) -> None:
        """Note that records were indexed now.

        Args:
            keys: Their keys; of several that are equal the last one counts.
            groups: For each key what it belongs to, such as the document it was cut from.
            not_before: Refuse to note anything before this moment: the clock would have been put back.

        Raises:
            InvalidInput: a key cannot be stored, there are more groups than keys or fewer, or it is not yet that late.
        """
        self._runner.run(self._noted(keys, groups, not_before))

    async def anote(
        self,
        keys: Sequence[str],
        *,
        groups: Sequence[str | None] | None = None,
        not_before: float | None = None,
    ) -> None:
        """Async twin of `note`."""
        await self._runner.arun(self._noted(keys, groups, not_before))

    def exist(self, keys: Sequence[str]) -> builtins.list[bool]:
        """Return for each key whether it is noted."""
        return self._runner.run(self._exist(keys))

    async def aexist(self, keys: Sequence[str]) -> builtins.list[bool]:
        """Async twin of `exist`."""
        return await self._runner.arun(self._exist(keys))

    def list(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        groups: Sequence[str | None] | None = None,
        limit: int | None = None,
    ) -> builtins.list[str]:
        """Return keys, those noted first before the others.

        Args:
            before: Only those noted before this moment.
            after: Only those noted after this moment.
            groups: Only those of these groups, None for those of no group.
            limit: How many at most; all when left out.
        """
        return self._runner.run(self._listed(before, after, groups, limit))

    async def alist(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        groups: Sequence[str | None] | None = None,
        limit: int | None = None,
    ) -> builtins.list[str]:
        """Async twin of `list`."""
        return await self._runner.arun(self._listed(before, after, groups, limit))

    def delete(self, keys: Sequence[str]) -> int:
        """Forget keys, and return how many were noted."""
        return self._runner.run(self._deleted(keys))

    async def adelete(self, keys: Sequence[str]) -> int:
        """Async twin of `delete`."""
        return await self._runner.arun(self._deleted(keys))

    def _now(self) -> Steps[float]:
        return (yield from read(queries.now))

    def _noted(self, keys: Sequence[str], groups: Sequence[str | None] | None, not_before: float | None) -> Steps[None]:
        names = _checked(keys)
        if groups is None:
            groups = [None] * len(names)
        if isinstance(groups, str) or len(groups) != len(names):
            raise InvalidInput("there must be as many groups as keys", field="groups")
        for group in groups:
            if group is not None and not isinstance(group, str):
                raise InvalidInput("a group must be a string", field="groups")
        _check_moment(not_before, "not_before")
        scope = self._context.writing().scope
        if names:
            pairs = dict(zip(names, groups, strict=True))
            yield from write(queries.note, scope, self._namespace, pairs, not_before)

    def _exist(self, keys: Sequence[str]) -> Steps[builtins.list[bool]]:
        names = _checked(keys)
        found = yield from read(queries.existing, self._context.scope, self._namespace, names)
        return [name in found for name in names]

    def _listed(
        self,
        before: float | None,
        after: float | None,
        groups: Sequence[str | None] | None,
        limit: int | None,
    ) -> Steps[builtins.list[str]]:
        _check_moment(before, "before")
        _check_moment(after, "after")
        if groups is not None and (isinstance(groups, str) or not isinstance(groups, Iterable)):
            raise InvalidInput("groups must be a list of groups", field="groups")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidInput("limit must be a whole number that is not negative", field="limit")
        wanted = queries.Wanted(before=before, after=after, groups=None if groups is None else tuple(groups))
        return (yield from read(queries.listed, self._context.scope, self._namespace, wanted, limit))

    def _deleted(self, keys: Sequence[str]) -> Steps[int]:
        names = _checked(keys)
        return (yield from write(queries.forget, self._context.writing().scope, self._namespace, names))


def _checked(keys: Sequence[str]) -> list[str]:
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidInput("keys must be a list of keys", field="keys")
    return [check_key(key) for key in keys]


def _check_moment(moment: object, field: str) -> None:
    if moment is not None and (
        isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment)
    ):
        raise InvalidInput(f"{field} must be a moment in seconds since 1970", field=field)
