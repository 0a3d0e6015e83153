"""What a ranker says about one candidate, and the one way to put such statements in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Any, overload
from uuid import UUID

import numpy as np

from memoranda.candidates import Candidate, Candidates
from memoranda.ranking.evidence import Evidence
from memoranda.ranking.terms import Bools, Floats


@dataclass(slots=True, kw_only=True, repr=False)
class Account:
    """What a ranking can tell of its rows, as arrays of one value a candidate: put in words for what is shown only."""

    evidence: Evidence
    legs: dict[str, Floats]
    """The parts of the score by name; NaN where a row has no such part."""
    notes: dict[str, Bools] = field(default_factory=dict)
    """What there is to add to the reasons, and of which rows it is true."""


@dataclass(slots=True, repr=False)  # not frozen and made by position, for the reasons `Candidate` is
class Scored:
    """A candidate with its place in a ranking explained."""

    candidates: Candidates = field(compare=False)
    """Those that were ranked."""
    place: int
    """The candidate's own among them, whatever its rank."""
    score: float
    """What orders the ranking: higher is better. Comparable within one ranking only; see `memoranda.ranking.merged`."""
    confidence: float
    """How surely this row belongs to an answer: higher is better, comparable between queries of one embedder. 0..1, see
    `memoranda.ranking.evidence`; `overlap`: the score itself, -1..1.2, which a hit shows cut to 0..1."""
    account: Account | None = field(default=None, compare=False)
    """The ranking it comes from."""
    _reasons: tuple[str, ...] | None = field(default=None, compare=False, init=False)

    @property
    def candidate(self) -> Candidate:
        """The whole row, made now if nobody has asked for it yet."""
        return self.candidates[self.place]

    @property
    def id(self) -> UUID:
        """The row's id, which is all that a hit needs of it."""
        identifier: UUID = self.candidates.column["id"][self.place]
        return identifier

    @property
    def legs(self) -> dict[str, float]:
        """The parts of the score by name; in `standard` and `rrf` they add up to it."""
        if self.account is None:
            return {}
        legs = {name: float(values[self.place]) for name, values in self.account.legs.items()}
        return {name: value for name, value in legs.items() if not isnan(value)}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it stands here, in a few plain words each; empty when nothing but its place speaks for it."""
        if self._reasons is None:
            self._reasons = () if self.account is None else self._told(self.account)
        return self._reasons

    def _told(self, account: Account) -> tuple[str, ...]:
        notes = (note for note, holds in account.notes.items() if holds[self.place])
        return (*account.evidence.reasons(self.place), *notes)


class Ranking(Sequence[Scored]):
    """Candidates in an order, each made only when somebody asks for it: a few of hundreds are shown."""

    def __init__(self, account: Account, scores: Floats, confidences: Floats, order: Sequence[int]) -> None:
        self._account = account
        self._scores = scores
        self._confidences = confidences
        self._order = order

    @property
    def surest(self) -> float:
        """The highest confidence."""
        return float(self._confidences.max(initial=-inf))

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Scored: ...
    @overload
    def __getitem__(self, place: slice) -> list[Scored]: ...
    def __getitem__(self, place: int | slice) -> Scored | list[Scored]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        i, account = self._order[place], self._account
        return Scored(account.evidence.candidates, i, float(self._scores[i]), float(self._confidences[i]), account)


def scored(scores: Floats, confidences: Floats, account: Account, order: Sequence[int]) -> Ranking:
    """Return the candidates of an account in an order."""
    return Ranking(account, scores, confidences, order)


def by_age(candidate: Candidate) -> Any:
    """Order equals by `happened_at`, then by the id."""
    return candidate.happened_at, candidate.id


def best_first(
    scores: Floats, candidates: Sequence[Candidate], among_equals: Callable[[Candidate], Any] = by_age
) -> list[int]:
    """Return the places of the candidates in the order of their scores, and of what decides among equals, falling."""
    order: list[int] = np.argsort(-scores).tolist()
    # few are equal, and to compare moments and ids takes long
    begins = np.flatnonzero(np.diff(scores[order], prepend=np.nan))
    ends = np.append(begins[1:], len(order))
    several = ends - begins > 1
    for begin, end in zip(begins[several].tolist(), ends[several].tolist(), strict=True):
        order[begin:end] = sorted(order[begin:end], key=lambda i: among_equals(candidates[i]), reverse=True)
    return order
