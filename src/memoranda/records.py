"""What the engine hands out: frozen records of memories, their provenance and the answers to a recall."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, TypeAlias, overload
from uuid import UUID

from memoranda.policies import MemoryType

Status: TypeAlias = Literal["active", "superseded", "retracted", "expired"]
Audience: TypeAlias = Literal["private", "project"]
RecallKind: TypeAlias = Literal["memory", "knowledge"]
"""What a recall finds."""
SourceType: TypeAlias = Literal[
    "user_message", "assistant_inference", "tool_result", "manual", "consolidation", "reflection"
]


_INSPECTED = 20_000  # characters: an order further down is read by nobody either


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One self-contained statement: an event, a decision or a fact.

    `event_time` and the window `valid_from`..`valid_to` say when it was so; `created_at` says when it was stored.
    """

    id: UUID
    short_id: str
    """Eight characters for people and models; accepted wherever an id is."""
    content: str
    type: MemoryType
    status: Status
    category: str | None = None
    title: str | None = None
    importance: int = 5
    """1..10, higher matters more."""
    confidence: int = 8
    """1..10, higher is surer."""
    core: bool = False
    """Whether it is always in mind."""
    day: date
    """The user's own day it belongs to."""
    event_time: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    """The moment from which it no longer holds; open when None."""
    tenant: str = ""
    persona: str = "main"
    author: str = ""
    audience: Audience = "private"
    project: str = ""
    space: str = ""
    about: str = ""
    session: str = ""
    position: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    superseded_by: UUID | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def suspicions(self) -> tuple[str, ...]:
        """What makes it look like an order to a model rather than a memory; see `memoranda.suspicion`.

        Such a memory is stored and found like any other, but never put before a model that did not ask.
        """
        from memoranda.suspicion import suspicions

        shown = (self.category, self.about, self.title, self.content)
        return suspicions("\n".join(filter(None, shown))[:_INSPECTED])

    def __repr__(self) -> str:
        """Show the id and the kind, never the text."""
        return f"<Memory {self.short_id} {self.type} {self.status}>"

    def __str__(self) -> str:
        """Return the line that people and models read."""
        from memoranda.rendering import memory_line

        return memory_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a memory came from."""

    id: UUID
    memory_id: UUID
    type: SourceType
    session: str = ""
    channel: str = ""
    actor: str = ""
    """The agent or job that wrote it; empty for a person or the program itself."""
    excerpt: str = field(default="", repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    """What a memory looked like before one of its changes."""

    memory_id: UUID
    version: int
    """1 for the oldest image."""
    change: str
    """The verb that replaced this image, such as `supersede`, `mark` or `delete`."""
    changed_by: str
    changed_at: datetime
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A memory with its chain: where it came from, what it replaced and what replaced it."""

    memory: Memory
    sources: tuple[Source, ...] = ()
    supersedes: tuple[Memory, ...] = ()
    superseded_by: Memory | None = None
    change: Source | None = None
    """Where what replaced it came from: the memory that superseded it, or its own next text."""
    versions: tuple[MemoryVersion, ...] = ()
    """Earlier images of this same memory, oldest first."""
    access_count: int = 0
    """How many recalls returned it, where the policy counts them."""
    last_accessed_at: datetime | None = None

    @property
    def was(self) -> str | None:
        """The text before the latest revision; None when the text was never changed in place."""
        return next((v.memory.content for v in reversed(self.versions) if v.change == "revise"), None)

    def __str__(self) -> str:
        """Return the lines that people and models read."""
        from memoranda.rendering import record_lines

        return record_lines(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The answer to a write."""

    memory: Memory
    created: bool
    """False when the same memory was already there and nothing was stored."""
    superseded: Memory | None = None
    """The memory that was replaced, as it is now."""
    was: str | None = field(default=None, repr=False)
    """The text the memory had before, where the policy `same` made the new one its text."""
    degraded: str | None = None
    """Why the memory can be found by its words only, or None."""

    @property
    def id(self) -> UUID:
        """The memory's id."""
        return self.memory.id

    @property
    def short_id(self) -> str:
        """The memory's short id."""
        return self.memory.short_id

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import written_line

        return written_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The answer to a `keep`; its text is the sentence for an agent."""

    memory: Memory
    outcome: Literal["remembered", "known", "updated"]
    was: str | None = field(default=None, repr=False)
    """The text it had before, when that changed."""
    degraded: str | None = None
    """Why the memory can be found by its words only, or None."""

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import kept_line

        return kept_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The answer to a `forget`; its text is the sentence for an agent."""

    memory: Memory

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import forgotten_line

        return forgotten_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The answer to an `undo`."""

    memory: Memory
    """The memory that holds again."""
    retracted: Memory | None = None
    """What had replaced it, if it was written for that and is taken back now."""

    def __str__(self) -> str:
        """Return the answer sentence."""
        from memoranda.rendering import undone_line

        return undone_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """What is known of a user under one name."""

    dimension: str
    content: str = field(repr=False)
    confidence: int = 5
    """1..10, higher is surer."""
    version: int = 1
    """1 for the first text."""
    created_at: datetime
    updated_at: datetime
    """When it was given this text."""
    replaced_at: datetime | None = None
    """When the next text took its place; None for the present one."""

    def __str__(self) -> str:
        """Return the line that models read."""
        from memoranda.rendering import dimension_line

        return dimension_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeDocument:
    """A document that was taken in."""

    source: str
    """Its name: what it is cited by and replaced under."""
    media_type: str
    chunks: int
    characters: int
    author: str = ""
    audience: Audience = "private"
    project: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    created_at: datetime
    updated_at: datetime
    """When its present chunks were stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeChunk:
    """A piece of a document."""

    id: UUID
    source: str
    chunk_index: int
    """From 0, in the order of the document."""
    content: str = field(repr=False)
    """Its own text behind the last words of the chunk before."""
    overlap: int
    """How many characters of `content` the chunk before has, too."""
    headings: tuple[str, ...] = field(default=(), repr=False)
    """Those it stands under, the outermost first."""
    author: str = ""
    project: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    created_at: datetime

    def __str__(self) -> str:
        """Return the line that people and models read."""
        from memoranda.rendering import chunk_line

        return chunk_line(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value under a namespace and a key."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] = field(repr=False, hash=False)
    """A copy: changing it changes nothing that is stored."""
    ttl_minutes: float | None = None
    """How long it is kept after it was last written or refreshed; None for ever."""
    expires_at: datetime | None = None
    """When its time is over, before a refresh by the read that returned it."""
    created_at: datetime
    updated_at: datetime
    """When it was given this value."""
    score: float | None = None
    """Of a search with a query: higher is better, -1..1; None for what is found by no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Where statements are learned."""

    name: str
    created_at: datetime
    archived_at: datetime | None = None
    """Since when nothing more may be written in it; None while it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One answer to a recall: a `MemoryHit` or a `KnowledgeHit`, as `kind` says."""

    kind: RecallKind
    score: float
    """What orders the hits of its kind, higher is better; comparable within one recall and kind only. Where a reranker
    ordered the answer, what it gave, on its own scale and for all kinds alike."""
    confidence: float
    """0..1, higher is surer; what the floor is compared with."""
    legs: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The parts of the score; where a reranker ordered the answer, those of our own, and what it gave as `reranker`."""
    reasons: tuple[str, ...] = field(default=(), repr=False)
    """Why it stands where it stands, in words."""

    @property
    def id(self) -> UUID:
        """The id of what was found."""
        raise NotImplementedError

    @property
    def content(self) -> str:
        """The text of what was found."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit(Hit):
    """A memory that answers."""

    kind: Literal["memory"] = "memory"
    memory: Memory

    @property
    def id(self) -> UUID:
        """The id of the memory."""
        return self.memory.id

    @property
    def content(self) -> str:
        """The text of the memory."""
        return self.memory.content

    def __str__(self) -> str:
        """Return the line that people and models read."""
        return str(self.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeHit(Hit):
    """A piece of a document that answers."""

    kind: Literal["knowledge"] = "knowledge"
    chunk: KnowledgeChunk

    @property
    def id(self) -> UUID:
        """The id of the chunk."""
        return self.chunk.id

    @property
    def content(self) -> str:
        """The text of the chunk."""
        return self.chunk.content

    def __str__(self) -> str:
        """Return the line that people and models read."""
        return str(self.chunk)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recall(Sequence[Hit]):
    """The answer to a recall: hits, best first, or an abstention that says why."""

    hits: tuple[Hit, ...] = ()
    abstained: bool = False
    """Whether nothing stored answers the question."""
    reason: str | None = None
    """Why there are no hits, in words."""
    degraded: str | None = None
    """What was not at hand for this answer, in words: it may be incomplete."""
    nearest: tuple[Hit, ...] = ()
    """What came nearest when the answer is an abstention, for people who calibrate; never for a prompt."""

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The memories among the hits, best first."""
        return tuple(hit.memory for hit in self.hits if isinstance(hit, MemoryHit))

    @property
    def chunks(self) -> tuple[KnowledgeChunk, ...]:
        """The pieces of documents among the hits, best first."""
        return tuple(hit.chunk for hit in self.hits if isinstance(hit, KnowledgeHit))

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        """Return a hit by its place, 0 is the best."""
        return self.hits[index]

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Return the number of hits."""
        return len(self.hits)

    def __str__(self) -> str:
        """Return the lines that people and models read."""
        from memoranda.rendering import recall_lines

        return recall_lines(self)
