"""Policies say how: frozen data that the stores and rankers read. A preset is a named set of them."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from memoranda.errors import ConfigurationError

Ranking: TypeAlias = Literal["standard", "weighted", "rrf", "overlap"]
Dedupe: TypeAlias = Literal["none", "key", "novelty", "same"]
MemoryType: TypeAlias = Literal["preference", "semantic", "episodic", "prospective", "procedural", "summary"]

LONGEST_LEASE = 600.0
"""Seconds a lease of a job may last."""
LONGEST_DELAY = 3_600.0
"""Seconds after which a job is tried again at the latest, however long a service asks to be left alone."""

_REQUEST = 128  # texts


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
    candidates: int = 48
    """How many rows each leg (text, vector) proposes at least; four times as many as are asked for, where that is more.
    On the sets of tests/benchmarks 40 find a thousandth less than 64, and 200 no more."""
    neighbours: int = 2
    """How many rows before and after a candidate, in its own session, speak for it (`standard` only)."""
    recent: int = 0
    """Where a question has no vector, so many of the newest rows are compared by their words; 0 asks the text index."""
    match: Literal["any", "all"] = "any"
    """Whether one word of the query is enough for the text leg; `all` falls back to `any` when text alone answers."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.name in get_args(Ranking), f"unknown ranking {self.name!r}")
        _require(self.candidates >= 1, "candidates must be at least 1")
        _require(0 <= self.neighbours <= 2, "neighbours must be 0, 1 or 2")
        _require(self.recent >= 0, "recent must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankPolicy:
    """What a reranker is asked, in an engine that has one; see `memoranda.protocols.Reranker`.

    It is shown the best of our own order, each text with its title or headings, and without its date: of memories that
    say nearly the same it may put the older one first.
    """

    enabled: bool = True
    """Whether it is asked at all."""
    times: int = 4
    """How many texts it chooses from for each hit that is wanted."""
    least: int = 20
    """How many of them at least, however few hits are wanted."""
    most: int = 200
    """How many at most, unless more hits are wanted: what it is shown costs time, and often money."""
    characters: int = 4_000
    """A longer text is shown up to here."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.times >= 1 and self.least >= 1, "times and least must be at least 1")
        _require(self.most >= self.least, "most must not be less than least")
        _require(self.characters >= 100, "characters must be at least 100")

    def texts(self, hits: int) -> int:
        """Return how many texts it chooses so many hits from."""
        return max(hits, min(self.most, max(self.least, self.times * hits)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPolicy:
    """From which confidence, and up to which distance, a hit is worth showing; past it the answer is an abstention.

    A distance is 1 - cosine, 0..2, and a hit must be strictly nearer. `measured` stands for the value that was measured
    for the store's embedder, by `MemoryEngine.calibrate` on the store itself or by us.
    """

    enabled: bool = True
    least: float | None = None
    """The confidence of the best hit from which the question counts as answered; None is the measured value."""
    each: float | None = None
    """The confidence every single hit must have; None lets weaker hits stand behind a good one."""
    dense_max: float | Literal["measured"] | None = None
    """The distance that every hit must stay within; None asks for none, and 0 lets nothing pass that has a vector. What
    has no vector to compare, in the store or for the question, is exempt."""
    lexical_max: float | None = None
    """The same for a hit that shares a word with the question; None takes `dense_max`."""
    injected: float | None = None
    """The confidence every hit must have that is put before a model unasked, whatever else is allowed; None is the
    measured value."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name in ("least", "each", "injected", "dense_max", "lexical_max"):
            value = getattr(self, name)
            if value is None or (name == "dense_max" and value == "measured"):
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            _require(number and 0 <= value <= 2, f"{name} must be a number between 0 and 2")


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupePolicy:
    """When a new memory counts as one that is already there."""

    name: Dedupe = "key"
    """`none`: every write is a row. `key`: the same text in the same place, time and audience is one row. `novelty`: so
    is a text that says nothing new beside a memory of the same author, audience, project, space and subject; whatever
    corrects, denies or adds is a row of its own. `same`: a
    memory nearly the same as one there becomes its new text, and the old text its history."""
    repeat_distance: float = 0.12
    """`novelty`: nearer than this cosine distance the same words are a repeat, whatever fillers stand between them."""
    same_likeness: float = 0.9
    """`same`: from this cosine on two texts are one memory."""

    @property
    def compares(self) -> bool:
        """Whether a new memory is compared with those that are there."""
        return self.name in ("novelty", "same")

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.name in get_args(Dedupe), f"unknown dedupe policy {self.name!r}")
        _require(0 <= self.repeat_distance <= 2, "repeat_distance must be between 0 and 2")
        _require(-1 <= self.same_likeness <= 1, "same_likeness must be between -1 and 1")


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
    audience: Literal["private", "by_type"] = "private"
    """`by_type`: a preference is private, anything else is shared with its project if it has one."""
    space: Literal["free", "declared"] = "free"
    """`declared`: a space must have been created, and not be archived, before anything is written in it."""
    track_access: bool = False
    """Count how often recall returned a memory, and when last."""
    machine_importance: int = 7
    """The most that a model can give to what it extracts, so that it cannot pin itself into every prompt."""
    machine_confidence: int = 8
    """The same for confidence."""

    def __post_init__(self) -> None:
        """Refuse what the database would."""
        _require(self.type in get_args(MemoryType), f"type must be one of {', '.join(get_args(MemoryType))}")
        _require(1 <= self.importance <= 10, "importance must be between 1 and 10")
        _require(1 <= self.confidence <= 10, "confidence must be between 1 and 10")
        for name in ("machine_importance", "machine_confidence"):
            _require(1 <= getattr(self, name) <= 10, f"{name} must be between 1 and 10")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingPolicy:
    """How long the pieces are into which a document is cut."""

    size: int = 3000
    """Characters that a chunk adds to those before it, at most; the blank line behind it may come on top."""
    overlap: int = 200
    """Characters of the chunk before that it repeats, at most."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.size >= 500, "size must be at least 500")
        _require(0 <= self.overlap <= self.size // 2, "overlap must be between 0 and half of the size")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutPolicy:
    """How long a caller waits for an embedder or a reranker: seconds for each 128 texts (a request's worth) or fewer.

    When they are over, words alone decide, or our own order stands, and what is returned says `degraded`; `backfill`
    and, where somebody works in the background, a job make the vectors that are missing. Who says `local = True` waits
    for nobody and is given its time.
    """

    compare: float = 2.0
    """For the vector of a memory that is compared with others before it is stored: whoever remembers something in a
    conversation cannot be kept longer."""
    store: float = 30.0
    """For the vector of what is compared with nothing: it is stored without, and its vector is made later."""
    question: float = 5.0
    """For the vector of a question: a first call has a connection to open and perhaps a model to load, and words alone
    make a poorer answer."""
    rerank: float = 5.0
    """For the scores of a reranker."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        limits = (self.compare, self.store, self.question, self.rerank)
        _require(min(limits) > 0, "compare, store, question and rerank must be positive")

    def seconds(self, texts: int, purpose: Literal["compare", "store", "question", "rerank"]) -> float:
        """Return how long so many texts may take."""
        limits = {"compare": self.compare, "store": self.store, "question": self.question, "rerank": self.rerank}
        return limits[purpose] * max(1, -(-texts // _REQUEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPolicy:
    """What of the memories a prompt holds, and where."""

    memories: int = 20
    """How many memories the frozen block holds at most: by importance, then the newest."""
    budget: int = 2_000
    """Tokens of the frozen block; whole lines of the lowest value are left out, and the block says so."""
    user_model: Literal["system", "tail", "frozen"] = "system"
    """Where what is known of the user goes: `system`, fresh, behind the frozen block; `tail`, fresh, at the end of the
    messages; `frozen`, as it was when the block was rendered, inside it."""
    turn: bool = False
    """Whether each turn shows what is always in mind, and what the last user message brings up."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(0 <= self.memories <= 200, "memories must be between 0 and 200")
        _require(self.budget >= 200, "budget must be at least 200")
        _require(self.user_model in ("system", "tail", "frozen"), "user_model must be system, tail or frozen")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """How a conversation is folded, and what is saved of it before."""

    keep_tokens: int = 8_000
    """The newest messages that stay as they are, in tokens."""
    max_fold_tokens: int = 32_000
    """The oldest messages that one compaction folds, in tokens: what one call of a model reads."""
    flush_min_tokens: int = 2_000
    """From how many tokens that have left a model's sight on a job extracts memories from them."""
    flush_items: int = 10
    """How many memories one flush writes at most."""
    summary_characters: int = 4_000
    """The longest summary; what a model says beyond it is cut at a sentence."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.keep_tokens >= 0, "keep_tokens must not be negative")
        _require(self.max_fold_tokens >= 100, "max_fold_tokens must be at least 100")
        _require(self.flush_min_tokens >= 0, "flush_min_tokens must not be negative")
        _require(1 <= self.flush_items <= 100, "flush_items must be between 1 and 100")
        _require(self.summary_characters >= 200, "summary_characters must be at least 200")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPolicy:
    """When a conversation is looked through in the background, and what of the findings is applied."""

    every: int = 8
    """After so many delivered turns of the user; 0 for never."""
    messages_per_turn: int = 2
    """How many of the newest messages are looked at, for each turn since the last review."""
    message_characters: int = 1_000
    """A longer message is cut."""
    characters: int = 12_000
    """All of them together."""
    confidence: int = 7
    """1..10: what the model is less sure of is dropped."""
    rewrite_confidence: int = 8
    """The same for the new text of a dimension that has one."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.every >= 0, "every must not be negative")
        _require(self.messages_per_turn >= 1, "messages_per_turn must be at least 1")
        _require(self.message_characters >= 100, "message_characters must be at least 100")
        _require(self.characters >= self.message_characters, "characters must be at least message_characters")
        for name in ("confidence", "rewrite_confidence"):
            _require(1 <= getattr(self, name) <= 10, f"{name} must be between 1 and 10")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """How jobs are tried: of an engine as a whole, whatever the persona.

    Leases and delays are moments by the database's clock, and engines of other policies go by them as they stand in the
    row. A lease that ends more than 20 minutes ahead, or a job that is due more than two hours ahead, is twice what any
    policy can have asked for: the clock was put back since, and the moment counts as past. A smaller step back only
    makes the wait longer by as much, and a step forward only has a worker lose a lease that it had not yet renewed.
    """

    attempts: int = 5
    """How often a job is begun before it is given up."""
    delay_seconds: float = 15.0
    """The wait after an attempt that failed, to which 2 ** attempts seconds are added; never more than an hour."""
    jitter: float = 0.1
    """Up to this share of the wait is added by chance, so that workers do not come back together."""
    lease_seconds: float = 120.0
    """How long after its last sign of life a worker is taken for dead, 600 at most. While it is at a job it renews the
    lease three times as often, for an hour."""
    inline_seconds: float = 10.0
    """How long a call goes on to begin jobs of its persona where `background` is "inline"; the rest is for the next."""
    looked_at: int = 8
    """How many of a persona's jobs a worker tries to get, where others are faster."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.attempts >= 1 and self.looked_at >= 1, "attempts and looked_at must be at least 1")
        _require(self.delay_seconds >= 0 and self.jitter >= 0, "delay_seconds and jitter must not be negative")
        _require(0 < self.lease_seconds <= LONGEST_LEASE, f"lease_seconds must be positive, {LONGEST_LEASE:g} at most")
        _require(self.inline_seconds > 0, "inline_seconds must be positive")

    def delay(self, attempts: int, chance: float) -> float:
        """Return the seconds to wait after so many attempts; `chance` is a number from 0 to 1."""
        if not self.delay_seconds:
            return 0.0
        return (self.delay_seconds + 2.0**attempts) * (1 + self.jitter * chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Everything that the stores of a persona really disagree on; nothing else may branch on a preset."""

    visibility: VisibilityPolicy = field(default_factory=VisibilityPolicy)
    ranking: RankingPolicy = field(default_factory=RankingPolicy)
    rerank: RerankPolicy = field(default_factory=RerankPolicy)
    floor: FloorPolicy = field(default_factory=FloorPolicy)
    dedupe: DedupePolicy = field(default_factory=DedupePolicy)
    redaction: RedactionPolicy = field(default_factory=RedactionPolicy)
    write: WritePolicy = field(default_factory=WritePolicy)
    chunking: ChunkingPolicy = field(default_factory=ChunkingPolicy)
    prompt: PromptPolicy = field(default_factory=PromptPolicy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    review: ReviewPolicy = field(default_factory=ReviewPolicy)
    timeout: TimeoutPolicy = field(default_factory=TimeoutPolicy)
    limit: int = 8
    """How many hits a recall returns when the caller does not say."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(1 <= self.limit <= 1000, "limit must be between 1 and 1,000")
