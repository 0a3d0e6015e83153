"""What a ranker says about one candidate, and the one way to put such statements in order."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from memoranda.candidates import Candidate


@dataclass(slots=True, kw_only=True, repr=False)  # not frozen, for the reason `Candidate` is not
class Scored:
    """A candidate with its place in a ranking explained."""

    candidate: Candidate
    score: float
    """What orders the ranking: higher is better. Comparable within one ranking only; see `memoranda.ranking.merged`."""
    confidence: float
    """How surely this row belongs to an answer: higher is better, comparable between queries of one embedder. 0..1, see
    `memoranda.ranking.evidence`; `overlap`: the score itself, -1..1.2, which a hit shows cut to 0..1."""
    legs: dict[str, float] = field(default_factory=dict)
    """The parts of the score by name; in `standard` and `rrf` they add up to it."""
    notes: tuple[str, ...] = ()
    """What the ranker has to add to the reasons."""
    explain: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)
    """Finds what the candidate has in common with the question, in words: asked only of what is shown."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it stands here, in a few plain words each; empty when nothing but its place speaks for it."""
        return self.explain() + self.notes


def best_first(scored: Iterable[Scored]) -> list[Scored]:
    """Sort by score; equal scores by the newer `happened_at`, then by the higher id."""
    return sorted(scored, key=lambda s: (s.score, s.candidate.happened_at, s.candidate.id), reverse=True)
