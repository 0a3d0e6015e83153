"""The user model: what is known of one user, by dimension, written in place and read fresh on every turn."""

import builtins
from datetime import datetime

from memoranda import filters as filtering
from memoranda.db.queries import user_model
from memoranda.dimensions import CONTENT_LIMIT, RECOMMENDED, dimension_name
from memoranda.drafts import hidden
from memoranda.effects import Runner, Steps, read, write
from memoranda.errors import InvalidInput
from memoranda.pipelines.context import Context
from memoranda.records import Dimension
from memoranda.text import clean

__all__ = ["CONTENT_LIMIT", "RECOMMENDED", "UserModel", "dimension_name"]


class UserModel:
    """What one persona knows of the user who asks; without a user, of whoever talks to it.

    A dimension holds all that is known under its name: a write replaces the text, and the text before stays as history.
    """

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner) -> None:
        """Bind a scope to an engine's runner."""
        self._context = context
        self._runner = runner

    def write(self, dimension: str, content: str, confidence: int | None = None) -> Dimension:
        """Give a dimension its text, in place of the one it has.

        Args:
            dimension: Its name; spellings in other cases and with dashes or spaces are the same one. Recommended:
                `baseline`, `preferences`, `working_patterns`, `feedback`, `goals`.
            content: All that is known under this name, at most 2,000 characters; secrets are taken out.
            confidence: 1..10, higher is surer; when left out it stays as it is, and is 5 for a new dimension.

        Raises:
            InvalidInput: something cannot be stored as it is; nothing was stored.
            NotAllowed: the preset wants an author, and the scope has no user.
            StoreError: the database failed.
        """
        return self._runner.run(self._written(dimension, content, confidence))

    async def awrite(self, dimension: str, content: str, confidence: int | None = None) -> Dimension:
        """Async twin of `write`."""
        return await self._runner.arun(self._written(dimension, content, confidence))

    def list(self) -> builtins.list[Dimension]:
        """Return every dimension, the surest first, then by name."""
        return self._runner.run(self._listed())

    async def alist(self) -> builtins.list[Dimension]:
        """Async twin of `list`."""
        return await self._runner.arun(self._listed())

    def history(self, dimension: str) -> builtins.list[Dimension]:
        """Return every text a dimension had, the oldest first, the present one last; empty when there is none."""
        return self._runner.run(self._history(dimension))

    async def ahistory(self, dimension: str) -> builtins.list[Dimension]:
        """Async twin of `history`."""
        return await self._runner.arun(self._history(dimension))

    def as_of(self, moment: datetime | str) -> builtins.list[Dimension]:
        """Return the dimensions as they were at a moment; one without an offset is read in the engine's time zone.

        Raises:
            InvalidInput: it is no moment.
        """
        return self._runner.run(self._as_of(moment))

    async def aas_of(self, moment: datetime | str) -> builtins.list[Dimension]:
        """Async twin of `as_of`."""
        return await self._runner.arun(self._as_of(moment))

    def undo(self, dimension: str) -> Dimension | None:
        """Take the last write of a dimension back; None when it was its first text, and the dimension is gone.

        Called again it takes back the write before, step by step. Each text that is taken back stays in the history.

        Raises:
            InvalidInput: there is no such dimension.
        """
        return self._runner.run(self._undone(dimension))

    async def aundo(self, dimension: str) -> Dimension | None:
        """Async twin of `undo`."""
        return await self._runner.arun(self._undone(dimension))

    def _written(self, dimension: str, content: str, confidence: int | None) -> Steps[Dimension]:
        name, setting = dimension_name(dimension), self._context.writing()
        if not isinstance(content, str) or not content.strip():
            raise InvalidInput("content must be a string that is not empty", field="content")
        text = hidden(clean(content).strip(), self._context.policies)
        if len(text) > CONTENT_LIMIT:
            raise InvalidInput(
                f"content has {len(text):,} characters, more than {CONTENT_LIMIT:,}: a dimension is read on every "
                "turn, so say it shorter or give part of it another name",
                field="content",
            )
        if confidence is not None and (isinstance(confidence, bool) or confidence not in range(1, 11)):
            raise InvalidInput("confidence must be a whole number from 1 to 10", field="confidence")
        return (yield from write(user_model.write, self._context.scope, name, text, confidence, setting.now))

    def _listed(self) -> Steps[builtins.list[Dimension]]:
        return (yield from read(user_model.listed, self._context.setting()))

    def _history(self, dimension: str) -> Steps[builtins.list[Dimension]]:
        return (yield from read(user_model.history, self._context.setting(), dimension_name(dimension)))

    def _as_of(self, moment: datetime | str) -> Steps[builtins.list[Dimension]]:
        checked = filtering.check({"as_of": moment}, self._context.zone).as_of
        if checked is None:
            raise InvalidInput("moment is missing", field="moment")
        return (yield from read(user_model.as_of, self._context.setting(), checked))

    def _undone(self, dimension: str) -> Steps[Dimension | None]:
        now = self._context.writing().now
        return (yield from write(user_model.undo, self._context.scope, dimension_name(dimension), now))
