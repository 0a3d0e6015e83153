"""What is told of a store as a whole: numbers, jobs, and what became of work on all of it; never a memory's text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from memoranda.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """How much a scope holds, in numbers only."""

    memories: int = 0
    by_status: Mapping[str, int] = field(default_factory=dict, hash=False)
    by_type: Mapping[str, int] = field(default_factory=dict, hash=False)
    by_category: Mapping[str, int] = field(default_factory=dict, hash=False)
    vectors: int = 0
    """Memories, of whatever status, with a vector of the store's embedder."""
    other_vectors: int = 0
    """Memories whose only vectors were made by another embedder."""
    documents: int = 0
    chunks: int = 0
    """The pieces these documents were cut into."""
    embedded_chunks: int = 0
    """Those of them with a vector of the store's embedder."""
    items: int = 0
    """Values under a namespace and a key."""
    first_day: date | None = None
    last_day: date | None = None
    embedder: str | None = None
    """`name@dimensions` of the store's embedder, None for words only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something left to be done in the background."""

    tenant: str
    persona: str
    id: UUID
    kind: str
    status: Literal["waiting", "failed"]
    """`failed`: given up, until somebody has it tried again."""
    attempts: int
    running: bool
    """Whether a worker holds it at this moment."""
    due_at: datetime
    error: str
    """What the last attempt failed with; empty before the first."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """The answer to an erasure: how much is gone, and whether every trace of it is."""

    memories: int = 0
    rows: int = 0
    """Rows of all tables: the memories with their versions, sources, vectors and counts, members and spaces."""
    dry_run: bool = False
    """True when this is what would go, and nothing was changed."""
    finished: int | None = None
    """How many earlier erasures have left no trace now, where `finish_erasures` was called."""
    pending: bool = False
    """True when the rows are gone and traces of them may still be read from the disk."""
    reason: str | None = None
    """Why it is pending, and what to do."""
    elsewhere: str | None = None
    """Where copies may be that the engine cannot reach."""

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import erased_line

        return erased_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Where questions with an answer part from those without one, measured on a store's own rows."""

    embedder: str | None
    """`name@dimensions` of the store's embedder, None for words only."""
    questions: int
    """How many were asked, each with the row it was made of and without it."""
    floor: float
    """What the best hit should have at least, 0..1: 95 % of the answers reach it, more where the two part cleanly."""
    distance: float | None
    """The cosine distance, 0..2, that 95 % of the answers stay within, more likewise; None without vectors."""
    auroc: float
    """How often an answer is surer than the best wrong hit for a question without one: 0.5 is chance, 1 always."""
    answered: float
    """The share of the questions with an answer that `floor` answers."""
    absent_answered: float
    """The share of the questions without one that it answers nevertheless."""
    floor_before: float
    """The floor that held until now."""
    answered_before: float
    absent_answered_before: float
    answered_histogram: tuple[int, ...]
    """Confidences of the answers, counted in 20 bins of 0.05."""
    absent_histogram: tuple[int, ...]
    """Confidences of the best wrong hits, in the same bins."""
    applied: bool
    """Whether recall uses the floor from now on, where the policy leaves it to measurement."""

    def __str__(self) -> str:
        """Return the lines that people read."""
        from memoranda.rendering import calibration_lines

        return calibration_lines(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The answer to an export."""

    rows: Mapping[str, int] = field(hash=False)
    """How many rows of each table the file holds."""
    sha256: str
    """The digest in its footer."""

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import exported_line

        return exported_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The answer to an import."""

    rows: Mapping[str, int] = field(hash=False)
    """How many rows of each table were stored."""
    already_there: Mapping[str, int] = field(hash=False)
    """How many rows of each table were left alone, because the store has them."""
    renamed: int = 0
    """Memories whose short id another one has here: they got a new one."""
    unkeyed: int = 0
    """Memories another one here says the same as: both are kept."""
    reindexed: int = 0
    """Memories, chunks and texts of items whose words were indexed anew, in this store's language."""
    without_vectors: int = 0
    """Vectors of the file that were left out."""
    erased: int = 0
    """Rows that had been erased here, and were erased again."""

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import imported_line

        return imported_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something about a store that somebody should see to."""

    name: str
    """What it is about, in a word or two that scripts can compare."""
    message: str
    """What was found, in words."""
    remedy: str
    """What helps: a command, or what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """How it stands with a whole store, in numbers and words; no text of a memory is in it."""

    database: str
    revision: str | None
    """Of the tables; None when there are none."""
    head: str
    """The revision this release needs."""
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    storage: Mapping[str, str | int] = field(default_factory=dict, hash=False)
    """How the database keeps the store; sizes in bytes."""
    size: int = 0
    """What the store takes, in bytes."""
    embedder: str | None = None
    """`name@dimensions` of the store's embedder, None for words only."""
    language: str | None = None
    floor: float | None = None
    """The confidence an answer needs, None where the policy asks for none."""
    memories: int = 0
    chunks: int = 0
    """The pieces that documents were cut into."""
    items: int = 0
    """Values under a namespace and a key."""
    item_texts: int = 0
    """The texts they are found by."""
    vectors: int = 0
    """Vectors of the store's embedder, of memories, of chunks and of texts of items."""
    without_vector: int = 0
    """Memories, chunks and texts of items without a vector of the store's embedder, which should have one."""
    other_vectors: int = 0
    """Vectors of other embedders, which no search reads."""
    ownerless_vectors: int = 0
    """Vectors of memories, chunks or texts of items that are gone."""
    waiting_jobs: int = 0
    failed_jobs: int = 0
    """Jobs that were given up."""
    oldest: datetime | None = None
    """When the oldest memory was stored."""
    search: Literal["whole", "damaged", "not checked"] = "not checked"
    """Whether the indexes of full text agree with their tables."""
    vector_index: Literal["not needed", "advised", "built", "damaged"] = "not needed"
    findings: tuple[Finding, ...] = ()
    suggestions: tuple[str, ...] = ()
    """What could be better, though nothing is wrong."""

    @property
    def healthy(self) -> bool:
        """Whether nothing has to be done."""
        return not self.findings

    def __str__(self) -> str:
        """Return a line a finding, or the sentence that there are none."""
        from memoranda.rendering import diagnosis_lines

        return diagnosis_lines(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The answer to the clearing of a conversation."""

    messages: int
    """How many messages are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """What became of messages that left a model's sight."""

    messages: int = 0
    """How many messages were looked at."""
    written: int = 0
    """How many memories were stored; those that were there already do not count."""
    problem: str | None = None
    """Why nothing could be read from the model, and the messages stay pending; None when they are done with."""
    skipped: str | None = None
    """Why no model was asked, such as that nothing is pending; None when one was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did."""

    folded: int = 0
    """How many messages the summary speaks for now that it did not before."""
    first: int | None = None
    """The position of the first of them."""
    last: int | None = None
    """The position of the last of them."""
    flushed: Flushed = field(default_factory=Flushed)
    summary: str = field(default="", repr=False)
    problem: str | None = None
    """Why nothing was folded though there was something to fold; None when it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What has left a model's sight without having been looked through."""

    messages: int
    tokens: int
    job: bool
    """Whether a job was left to look through it, now or before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """What a review did."""

    messages: int = 0
    """How many messages were looked at."""
    memories: int = 0
    """How many memories were written."""
    dimensions: int = 0
    """How many dimensions of the user model were rewritten."""
    dropped: int = 0
    """How many proposals the model was not sure enough of, or that would have wiped what was known."""
    problem: str | None = None
    """Why nothing could be read from the model; the review is tried again when it is a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A message that a search found."""

    conversation: str
    message: Message
    before: tuple[Message, ...] = ()
    """The messages right before it."""
    after: tuple[Message, ...] = ()
    score: float
    """Higher is better; comparable within one search only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of one document."""

    source: str
    chunks: int
    """How many chunks it has now."""
    embedded: bool
    """Whether they have vectors already; False means they are found by words until a job has embedded them."""
    unchanged: bool = False
    """Whether it was there already, just so, and nothing was done."""
    replaced: int = 0
    """How many chunks it had before."""
    degraded: str | None = None
    """Why the chunks have no vectors, in words."""
    problem: str | None = None
    """Why it was not taken in, and nothing of it was changed: of a folder's files only."""

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import ingested_line

        return ingested_line(self)
