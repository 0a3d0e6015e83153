"""Policies say how: frozen data that the stores and rankers read. A preset is a named set of them."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from memoranda.errors import ConfigurationError

Ranking: TypeAlias = Literal["standard", "weighted", "rrf", "overlap"]
MemoryType: TypeAlias = Literal["preference", "semantic", "episodic", "prospective", "procedural", "summary"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigurationError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityPolicy:
    """Which axes of a scope decide who sees a row, beyond tenant and persona, which always do."""

    author: Literal["optional", "required"] = "optional"
    """`required`: without a user nothing is seen and nothing can be written."""
    space: Literal["shared", "exact"] = "shared"
    """`shared`: a scope with a space also sees the rows that have none. `exact`: only the rows of its own space."""
    about: Literal["optional", "required"] = "optional"
    """`required`: a row is seen only if it is about everyone, the agent, the thread or a person present.
    `optional`: the same, but rows about nobody are seen too, and only once the scope names who is present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingPolicy:
    """How candidates become a ranking. The formulas stand in `memoranda.ranking`."""

    name: Ranking = "standard"
    candidates: int = 64
    """How many rows each leg (text, vector) proposes at least; four times as many as are asked for, where that is more.
    On the sets of tests/benchmarks 200 find no more than 64."""
    neighbours: int = 2
    """How many rows before and after a candidate, in its own session, speak for it (`standard` only)."""
    match: Literal["any", "all"] = "any"
    """Whether one word of the query is enough for the text leg; `all` falls back to `any` when text alone answers."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.name in get_args(Ranking), f"unknown ranking {self.name!r}")
        _require(self.candidates >= 1, "candidates must be at least 1")
        _require(0 <= self.neighbours <= 2, "neighbours must be 0, 1 or 2")


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPolicy:
    """From which score on a hit is worth showing; below it the answer is an abstention."""

    enabled: bool = True
    least: float | None = None
    """The confidence of the best hit from which the question counts as answered; None takes the value that was measured
    for the store's embedder."""
    each: float | None = None
    """The confidence every single hit must have; None lets weaker hits stand behind a good one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupePolicy:
    """When a new memory counts as one that is already there."""

    name: Literal["none", "key"] = "key"
    """`none`: every write is a row. `key`: the same text in the same place, time and audience is one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionPolicy:
    """Whether secrets are taken out of what is stored."""

    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePolicy:
    """What a memory is when the caller does not say."""

    type: MemoryType = "semantic"
    importance: int = 5
    confidence: int = 8
    track_access: bool = False
    """Count how often recall returned a memory, and when last."""

    def __post_init__(self) -> None:
        """Refuse what the database would."""
        _require(self.type in get_args(MemoryType), f"type must be one of {', '.join(get_args(MemoryType))}")
        _require(1 <= self.importance <= 10, "importance must be between 1 and 10")
        _require(1 <= self.confidence <= 10, "confidence must be between 1 and 10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Everything that the stores of a persona really disagree on; nothing else may branch on a preset."""

    visibility: VisibilityPolicy = field(default_factory=VisibilityPolicy)
    ranking: RankingPolicy = field(default_factory=RankingPolicy)
    floor: FloorPolicy = field(default_factory=FloorPolicy)
    dedupe: DedupePolicy = field(default_factory=DedupePolicy)
    redaction: RedactionPolicy = field(default_factory=RedactionPolicy)
    write: WritePolicy = field(default_factory=WritePolicy)
    limit: int = 8
    """How many hits a recall returns when the caller does not say."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(1 <= self.limit <= 1000, "limit must be between 1 and 1,000")
