"""Knowledge: documents cut into chunks, found on demand and never put into a prompt by themselves."""

import builtins
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from memoranda.effects import Runner
from memoranda.pipelines import ingesting
from memoranda.pipelines.context import Context
from memoranda.protocols import Progress
from memoranda.records import KnowledgeChunk, KnowledgeDocument
from memoranda.reports import Ingested

if TYPE_CHECKING:
    from typing import Unpack

    from memoranda.documents.drafts import DocumentFields

Path: TypeAlias = str | PathLike[str]


class Knowledge:
    """The documents of a scope: seen by the user who ingested them, or by the members of a project."""

    _memoranda_handle = True

    def __init__(self, context: Context, runner: Runner) -> None:
        """Bind a scope to an engine's runner."""
        self._context = context
        self._runner = runner

    def ingest(
        self,
        source: str,
        *,
        path: Path | None = None,
        text: str | None = None,
        documents: Iterable[Any] | None = None,
        root: Path | None = None,
        progress: Progress | None = None,
        **fields: "Unpack[DocumentFields]",
    ) -> builtins.list[Ingested]:
        """Take documents in, or take them in again: a source's new chunks replace its old ones at once.

        Exactly one of `path`, `text` and `documents` says what. A document that is there already, just so, is left
        alone. When anything fails, the chunks from before stay. Of a folder each file is a document of its own, stored
        by itself and called `source/its/path`; one that cannot be read is left out, and its answer says the `problem`.

        Args:
            source: The document's name: what it is cited by and replaced under. Of a folder, what its files' names
                begin with.
            path: A file (text, Markdown, HTML, PDF) or a folder of them.
            text: The text itself.
            documents: Documents of a framework: objects with `page_content` or `text`, and `metadata`; they are the
                parts of one document, in order.
            root: The folder that `path` must lie in, links followed; the current one when left out.
            progress: Told after each document how many are done, and of how many.
            **fields: See `DocumentFields`: `metadata`, `audience`, `project`, `media_type`.

        Returns:
            One answer a document.

        Raises:
            InvalidInput: nothing or too much was given, or a field cannot be used; nothing was stored.
            UnreadableDocument: the file cannot be read, or no file of the folder; says which and why.
            ExtraMissing: the file is a PDF, and the extra that reads it is not installed.
            NotAllowed: it is to be shared with a project the user is no member of, or an author is missing.
            StoreError: the database failed.
        """
        return self._runner.run(ingesting.ingest(self._context, source, path, text, documents, root, progress, fields))

    async def aingest(
        self,
        source: str,
        *,
        path: Path | None = None,
        text: str | None = None,
        documents: Iterable[Any] | None = None,
        root: Path | None = None,
        progress: Progress | None = None,
        **fields: "Unpack[DocumentFields]",
    ) -> builtins.list[Ingested]:
        """Async twin of `ingest`."""
        return await self._runner.arun(
            ingesting.ingest(self._context, source, path, text, documents, root, progress, fields)
        )

    def list(self, *, metadata: Mapping[str, Any] | None = None) -> builtins.list[KnowledgeDocument]:
        """Return the documents, by name.

        Args:
            metadata: Only those whose metadata has these values.
        """
        return self._runner.run(ingesting.listed(self._context, metadata))

    async def alist(self, *, metadata: Mapping[str, Any] | None = None) -> builtins.list[KnowledgeDocument]:
        """Async twin of `list`."""
        return await self._runner.arun(ingesting.listed(self._context, metadata))

    def get(self, source: str) -> builtins.list[KnowledgeChunk]:
        """Return the chunks of a document in their order; empty when there is no such document.

        One's own document comes before one of the same name that somebody shares.
        """
        return self._runner.run(ingesting.get(self._context, source))

    async def aget(self, source: str) -> builtins.list[KnowledgeChunk]:
        """Async twin of `get`."""
        return await self._runner.arun(ingesting.get(self._context, source))

    def delete(self, source: str) -> int:
        """Remove a document of one's own with its chunks and their vectors, and return how many chunks it had.

        Raises:
            NotTheAuthor: somebody else shares it; 0 is returned when there is none.
        """
        return self._runner.run(ingesting.delete(self._context, source))

    async def adelete(self, source: str) -> int:
        """Async twin of `delete`."""
        return await self._runner.arun(ingesting.delete(self._context, source))
