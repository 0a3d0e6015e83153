"""Every error Memoranda raises, under one root.

The docstring of a class is its default message: it says what happened and what to do next. Data goes into attributes.
No message carries a memory's text, a secret or a connection string.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class MemorandaError(Exception):
    """Memoranda could not do what was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((self.__doc__ or "").split()))

    def __reduce__(self) -> tuple[object, ...]:
        """Cross a process border as it is: the message is complete, and must not go through `__init__` again."""
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[MemorandaError], args: tuple[object, ...], data: dict[str, object]) -> MemorandaError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(data)
    return error


# -- the caller's side: what was asked cannot be done as it stands


class ConfigurationError(MemorandaError):
    """A setting is not usable: see the message for the setting and its accepted values."""


class ExtraMissing(ConfigurationError):
    """An optional dependency is not installed: install the extra named in the message."""


class InvalidInput(MemorandaError):
    """A value was refused before anything was stored."""

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        index: int | None = None,
        rows: "Sequence[InvalidInput]" = (),
    ) -> None:
        """Name the field that was refused and, for a batch, the position of its row, or every refused row."""
        place = "" if index is None else f"row {index}: "
        super().__init__(f"{place}{message}" if message else None)
        self.field = field
        self.index = index
        self.rows = tuple(rows)


class UnreadableDocument(InvalidInput):
    """The document cannot be read: the message names it and says why."""


class MemoryNotFound(MemorandaError):
    """No memory has this id here: it does not exist, or it is outside the scope that asks."""


class MemoryNotActive(MemorandaError):
    """The memory is no longer active, so it cannot be replaced: see what became of it with `get`."""

    def __init__(self, status: str) -> None:
        """Say which status stands in the way."""
        super().__init__(
            f"The memory is {status}, not active, so it cannot be replaced: see what became of it with `get`."
        )
        self.status = status


class NotTheAuthor(MemorandaError):
    """Another user wrote this memory: you may read it, but only its author may replace, mark or delete it."""


class NotAllowed(MemorandaError):
    """The scope that asks may not do this."""


# -- the store's side


class StoreError(MemorandaError):
    """The store failed: the message says how."""


class StoreUnavailable(StoreError):
    """The database cannot be reached: check that it runs and that the address is right, then try again."""


class StoreBusy(StoreError):
    """Too many calls wait for this engine's connections: try again, or open it with a larger pool_size."""


class SchemaMissing(StoreError):
    """The database has no Memoranda tables yet: run `memoranda db upgrade` or call `MemoryEngine.setup()` once."""


class SchemaOutdated(StoreError):
    """The database's tables are older than this release: run `memoranda db upgrade` or `MemoryEngine.setup()`."""


class SchemaTooNew(StoreError):
    """The database's tables were made by a newer release: upgrade the `memoranda` package on this machine."""


class ExtensionMissing(StoreError):
    """The database lacks the `vector` extension: have an administrator run `CREATE EXTENSION vector` in it."""


class PermissionMissing(StoreError):
    """The database user lacks a right that is needed: the message names it."""


# -- embedders, rerankers and models


class EmbedderUnavailable(MemorandaError):
    """The embedder gave no usable answer: texts stay findable by their words."""

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        """Keep in how many seconds the service wants to be asked again, if it said so."""
        super().__init__(message)
        self.retry_after = retry_after


class EmbedderRefused(EmbedderUnavailable):
    """The embedder refuses the call and would refuse it again: check its key, its model and its address."""

    def __init__(self, message: str | None = None, *, status: int | None = None, texts: bool = False) -> None:
        """Keep why.

        Args:
            message: What to say.
            status: The HTTP status, None where no call was made.
            texts: Whether the embedder failed over the texts themselves, as far as can be told.
        """
        super().__init__(message)
        self.status = status
        self.texts = texts


class ModelUnavailable(MemorandaError):
    """The language model gave no usable answer: nothing was taken from it, so ask again later."""

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        """Keep in how many seconds the service wants to be asked again, if it said so."""
        super().__init__(message)
        self.retry_after = retry_after


class ModelRefused(ModelUnavailable):
    """The language model refuses the call and would refuse it again: check its key, its model and its address."""

    def __init__(self, message: str | None = None, *, status: int | None = None) -> None:
        """Keep the HTTP status, None where no call was made or the model itself declined."""
        super().__init__(message)
        self.status = status

    @property
    def refuses_caller(self) -> bool:
        """Whether the service refuses whoever asks, whatever is asked."""
        return self.status in (401, 403, 404)


class RerankerUnavailable(MemorandaError):
    """The reranker gave no usable scores: what was found stands in the engine's own order."""


class EmbedderMismatch(ConfigurationError):
    """The store's vectors were made by another embedder, and vectors of two embedders cannot be compared."""

    def __init__(self, stored: str, given: str) -> None:
        """Name the embedder of the store and the one that was given."""
        made = "goes by words only" if stored == "none" else f"has vectors made by {stored!r}"
        super().__init__(
            f"This store {made}; {given!r} was given, and vectors of two embedders cannot be compared. Leave "
            "`embedder` out, or give the one the store was made with. To move the store to another, run `memoranda "
            "reembed --embedder NAME` or call `MemoryEngine.reembed()`."
        )
        self.stored = stored
        self.given = given
