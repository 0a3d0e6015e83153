"""What is searched: the tables whose rows are found by what they say and by what they mean.

Memories, chunks of documents, messages and items lie in tables of their own, and one candidate generator searches them
all. A `Corpus` says where in a table it finds what; what a table has no column for does not count among its rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, FromClause, Table, null, true

Kind: TypeAlias = Literal["memory", "knowledge", "message", "item"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A table that is searched.

    It has `tenant`, `persona`, `id`, `author`, `content`, `created_at` and what `memoranda.db.columns.searched`
    declares. Further axes decide who sees a row where it has columns for them: see `memoranda.db.queries.visibility`.
    """

    kind: Kind
    """What a question names it by, and what `vectors.kind` says of the vectors of its rows: their `owner` is its id."""
    table: Table
    other: FromClause
    """The table under another name, for a statement that looks from one row at others."""
    container: str
    """The column that says which session, document or conversation a row stands in."""
    place: str
    """The column that says where in it: whole numbers, one apart for rows that stand beside each other."""
    loose: bool = False
    """Whether a row may stand in no container; the column is empty then."""
    embedded: bool = True
    """Whether its rows have vectors."""

    @property
    def fts(self) -> str:
        """The name of its table of full text, on a database that has one beside the table."""
        return f"{self.table.name}_fts"

    @property
    def shared(self) -> bool:
        """Whether its rows can be shared with the members of a project."""
        return "audience" in self.table.c

    @property
    def timeless(self) -> bool:
        """Whether age and importance count for nothing among its rows."""
        return "importance" not in self.table.c

    @property
    def standing(self) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        """Where a row stands: its `container` and its `place`."""
        return self.table.c[self.container].label("container"), self.table.c[self.place].label("place")

    def contained(self, container: ColumnElement[str]) -> ColumnElement[bool]:
        """Return the condition for rows that stand in a container, by its column."""
        return container != "" if self.loose else true()

    def evidence(self, name: str) -> ColumnElement[Any]:
        """Return a column that rankers look at, NULL where the table has none."""
        column: ColumnElement[Any] | None = self.table.c.get(name)
        return null().label(name) if column is None else column


def declare(memories: Table, chunks: Table, messages: Table, item_texts: Table) -> Mapping[Kind, Corpus]:
    """Return what is searched, by its kind."""

    def corpus(kind: Kind, table: Table, container: str, place: str, **traits: bool) -> Corpus:
        return Corpus(kind, table, table.alias("other"), container, place, **traits)

    corpora = (
        corpus("memory", memories, "session", "position", loose=True),
        corpus("knowledge", chunks, "document_id", "chunk_index"),
        corpus("message", messages, "conversation_id", "position", embedded=False),
        corpus("item", item_texts, "item_id", "position"),
    )
    return MappingProxyType({item.kind: item for item in corpora})
