"""The few things a database does in its own way."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Engine, FromClause, Select, Table
from sqlalchemy.dialects.postgresql import Insert as PostgresqlInsert
from sqlalchemy.dialects.sqlite import Insert as SqliteInsert
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import Dialect as SqlDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from memoranda.db.inserts import Prepared
from memoranda.db.statements import Leg, Selection
from memoranda.errors import StoreError

if TYPE_CHECKING:
    import numpy as np
    from alembic.operations import Operations
    from numpy.typing import NDArray

    from memoranda.conditions import Condition
    from memoranda.db.corpora import Corpus
    from memoranda.db.resident import Owner, Rows
    from memoranda.db.schema import Tables
    from memoranda.protocols import Progress

    Vector: TypeAlias = NDArray[np.float32]

Upsert: TypeAlias = "SqliteInsert | PostgresqlInsert"
VectorIndex: TypeAlias = Literal["not needed", "advised", "built", "damaged"]
"""How it stands with the approximate index of vectors."""

EXACT_LIMIT = 20_000
"""Up to this many rows a scope's vectors are compared one by one; beyond it an approximate index is worth building."""

ROW_KEY = "row_key"
"""In the `info` of a unique constraint: it is the key of the rows, where another column is the primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How connections are made."""

    synchronous: Literal["normal", "full"] = "normal"
    """SQLite only. `normal`: a power failure may take the last commits, never the file. `full`: it takes nothing."""
    pool_size: int = 8
    """How many transactions run at once."""
    timeout: float = 30.0
    """Seconds to wait for a connection or a lock before an error."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TextQuestion:
    """What the text leg looks for. User text never becomes query syntax: these are encoded terms."""

    corpus: "Corpus"
    cells: Sequence[str]
    terms: Sequence[str]
    weights: Sequence[float]
    """What each term is worth among the asker's own rows and those shared with them: nobody else's move a cut."""
    document_frequency: Sequence[int]
    """In how many of these rows each term stands."""
    average_length: float
    """The mean number of indexed terms of these rows."""
    match: Literal["any", "all"]
    lending: bool = True
    """Whether rows in which only common terms stand may be left out; see `memoranda.db.dialects.text_cuts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorQuestion:
    """What the vector leg looks for."""

    corpus: "Corpus"
    tenant: str
    persona: str
    model: str
    vector: "Vector"
    rows: int
    """How many active rows the scope can see, by and large."""
    approximate: bool = False
    """Whether to walk an approximate index instead of comparing every row."""
    nearest_first: bool = False
    """Whether to take what is nearest in the persona, and of that what may be seen."""

    @property
    def partial(self) -> bool:
        """Whether fewer rows may be found than there are."""
        return self.approximate or self.nearest_first

    def whole(self) -> "VectorQuestion":
        """Return the question as every row of the scope answers it."""
        return replace(self, approximate=False, nearest_first=False)

    @property
    def values(self) -> "Mapping[str, Any]":
        """What a statement that compares vectors asks for by name."""
        return {"model": self.model, "asked": self.vector}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """What became of the traces of rows that are gone."""

    obstacle: str | None = None
    """What stands in the way, and what to do about it; None when no trace is left."""
    elsewhere: str | None = None
    """Where copies may be that this database does not reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What a doctor learns from the database itself."""

    versions: Mapping[str, str]
    """Of the database and what it needs, by name."""
    size: int
    """What the store takes on disk or in memory, in bytes."""
    storage: Mapping[str, str | int]
    """How it is kept, by name."""
    vector_index: VectorIndex = "not needed"
    damage: tuple[str, ...] = ()
    """What is broken, in words."""
    readable: bool = True
    """Whether rows can be read in spite of it."""


class AuthorRows(Protocol):
    """An author's rows as they are in memory, and what the database says of them."""

    @property
    def rows(self) -> "Rows":
        """What is in memory."""
        ...

    def refused(self, conn: Connection, chosen: Selection, numbers: Sequence[int]) -> Sequence[int]:
        """Return those of the numbers whose rows are not chosen."""
        ...

    def texts(self, conn: Connection, numbers: Sequence[int]) -> list[tuple[str, str, str]]:
        """Return the content of each of these rows, and the terms of its category and of its content."""
        ...


class Dialect(Protocol):
    """One database. Methods that search return ids and scores; shared code does the rest."""

    name: str
    schema: str | None
    """The schema the tables live in, where the database has schemas."""
    prefix: str
    """What every table's name begins with."""
    wide_indexes: bool
    """Whether indexes for orders that are rarely asked for are worth what they cost every write."""
    foreign: bool
    """Whether the engine is a caller's."""
    laterals: bool
    """Whether a subquery may look at each row of what stands before it."""
    copies: bool
    """Whether many rows are copied in: then one that breaks a unique key has all of them begun anew, row by row."""

    # -- connections

    def isolation(self) -> Literal["AUTOCOMMIT"] | None:
        """Return the isolation level of the connections, None for their own; `begin` opens the transactions."""
        ...

    def create_engine(self, url: URL, options: EngineOptions) -> Engine:
        """Return an engine of our own for an address."""
        ...

    def adopt(self, engine: Engine) -> None:
        """Get to know an engine that a caller made and owns."""
        ...

    def is_absent(self, url: URL) -> bool:
        """Say whether connecting would create the database."""
        ...

    def begin(self, conn: Connection, *, write: bool) -> None:
        """Open the transaction that a function will run in."""
        ...

    def after_fork(self) -> None:
        """Begin with nothing of the parent's, in a child."""
        ...

    def serial(self, engine: Engine) -> Literal["all", "writes", "none"]:
        """Say what must not run side by side inside one process."""
        ...

    def translate(self, error: DBAPIError) -> StoreError | None:
        """Return the error that names the remedy, or None for one that nobody foresaw."""
        ...

    # -- tables

    def key(self, *names: str, numbered: bool = False) -> list[SchemaItem]:
        """Return what makes these columns the key of a table's rows, which another index may have to number."""
        ...

    def search_columns(self) -> list[SchemaItem]:
        """Return the columns that full text needs in a table that is searched."""
        ...

    def search_indexes(self, table: Table) -> None:
        """Declare the indexes of full text that are indexes of the table."""
        ...

    def vector_type(self) -> TypeEngine[Any]:
        """Return the column type of a vector: float32, any length."""
        ...

    # -- revisions

    def before_upgrade(self, conn: Connection) -> None:
        """Take the lock that makes upgrades queue up, and see to what the tables need."""
        ...

    def create_search(self, op: "Operations", noun: str) -> None:
        """Create what full text needs beside the table of this noun."""
        ...

    def note_changes(self, op: "Operations", kept: int) -> None:
        """Have it noted which rows are changed or deleted, where rows are kept in memory.

        Args:
            op: What makes tables.
            kept: How many of the newest changes are kept.
        """
        ...

    def auto_upgrade(self) -> bool:
        """Say whether tables are made on first use, or only when a person asks."""
        ...

    # -- erasing

    def traces(self) -> Literal["none", "file", "server"]:
        """Say where what was deleted can still be read until `scrub` has run: in a file of ours, or on a server."""
        ...

    def scrub(self, conn: Connection, tables: "Tables", patience: float) -> Scrubbed:
        """Remove what is left on the disk of rows that are gone; runs outside a transaction.

        Readers of an older state stand in the way: they are waited for no longer than `patience`, in seconds.
        """
        ...

    def forget(self) -> None:
        """Let go of what this process remembers of rows."""
        ...

    # -- statements

    def insert(self, table: Table) -> Upsert:
        """Return an insert that can say what to do about rows that are already there."""
        ...

    def prepared(
        self, conn: Connection, table: Table, names: Sequence[str], compiled: SQLCompiler, *, skip_conflicts: bool
    ) -> Prepared:
        """Return what inserts rows of these columns as the driver takes them fastest."""
        ...

    def together(self, cursor: Any, rows: int) -> AbstractContextManager[object]:
        """Let inserts of at most so many rows inside the block go to the database together where that saves time."""
        ...

    def compiling(self, conn: Connection) -> SqlDialect:
        """Return what writes selects as `fetched` takes them."""
        ...

    def fetched(self, conn: Connection, text: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return the rows of a select as the driver gives them."""
        ...

    def snapshot(self, conn: Connection) -> AbstractContextManager[None]:
        """Let every statement inside the block, in a reading function, see the store at one moment."""
        ...

    def now(self, conn: Connection) -> datetime:
        """Return the moment by the database's own clock, in UTC."""
        ...

    def advise_lock(self, conn: Connection, key: str) -> None:
        """Let transactions that name the same key run one after the other."""
        ...

    def shortened(self, conn: Connection, tables: "Tables", question: VectorQuestion) -> VectorQuestion:
        """Return a question that no filter narrows as it is answered soonest; it may be `partial` then."""
        ...

    def learn_statistics(
        self, conn: Connection, tables: "Tables", corpus: "Corpus", tenant: str, persona: str, rows: int
    ) -> None:
        """See to it that the planner knows how many rows a persona has, by and large, before they are searched."""
        ...

    def build_vector_index(self, conn: Connection, tables: "Tables", model: str) -> bool:
        """Build the approximate indexes that a scope is large enough for; runs outside a transaction."""
        ...

    def searching(self, conn: Connection, question: VectorQuestion | None) -> AbstractContextManager[None]:
        """Set what the searching statements inside the block need."""
        ...

    def resident(self, conn: Connection, tables: "Tables", corpus: "Corpus", owner: "Owner") -> "AuthorRows | None":
        """Return an author's rows as they are in memory, None where the database is to be asked."""
        ...

    def text_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: TextQuestion, limit: int
    ) -> Leg:
        """Return what holds the words."""
        ...

    def vector_leg(
        self, conn: Connection, tables: "Tables", wanted: Selection, question: VectorQuestion, limit: int
    ) -> Leg:
        """Return what is nearest; the score is the cosine."""
        ...

    def with_cosines(
        self, rows: FromClause, tables: "Tables", question: VectorQuestion
    ) -> tuple[FromClause, ColumnElement[Any]]:
        """Return rows of the question's corpus, joined with a column from which `cosines` reads how near each is.

        A statement with it is executed with the question's `values`.
        """
        ...

    def cosines(
        self, conn: Connection, tables: "Tables", evidence: Sequence[Any], question: VectorQuestion
    ) -> list[float | None]:
        """Return the cosine of each row, None for a row without a vector."""
        ...

    def frequencies(self, corpus: "Corpus", terms: int, most: int | None = None) -> Select[Any]:
        """Return a statement for one list: for each of so many terms, how many rows hold it, counted up to `most`.

        It is executed with the values of `counting`.
        """
        ...

    def counting(self, cells: Sequence[str], terms: Sequence[str]) -> Mapping[str, Any]:
        """Return the values of `frequencies`: the terms, looked for in the rows of the cells."""
        ...

    def moments(self, raw: Sequence[Any]) -> list[datetime]:
        """Return moments that were read as the driver gives them."""
        ...

    def identifiers(self, raw: Sequence[Any]) -> list[UUID]:
        """Return ids that were read as the driver gives them."""
        ...

    def ids_in(self, column: ColumnElement[UUID], ids: Sequence[UUID], name: str | None = None) -> ColumnElement[bool]:
        """Return a condition that holds for a list of any length, as one parameter; see `id_list` for its value."""
        ...

    def id_list(self, ids: Sequence[UUID]) -> Any:
        """Return ids as `ids_in` sends them."""
        ...

    def texts_in(self, column: ColumnElement[str], texts: Sequence[str]) -> ColumnElement[bool]:
        """Return the same for texts."""
        ...

    def json_condition(self, column: ColumnElement[Any], condition: "Condition") -> ColumnElement[bool]:
        """Return what a column of JSON must meet; never NULL, so that it can be negated."""
        ...

    # -- upkeep

    def backup(self, conn: Connection, tables: "Tables", target: str, progress: "Progress | None") -> None:
        """Copy the whole database to a file while it is in use; runs in a reading function."""
        ...

    def check_backup(self) -> None:
        """Refuse where another program makes the backups, and name it."""
        ...

    def examine(self, conn: Connection, tables: "Tables", model: str | None) -> "Examination":
        """Look at what a doctor wants to know of this database; changes nothing."""
        ...

    def check_search(self, conn: Connection, tables: "Tables") -> list[str]:
        """Compare the indexes of full text with their tables, and return what is wrong; runs in a writing function."""
        ...
