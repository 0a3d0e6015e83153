"""Which candidates belong together: to one session, one document or one conversation, and beside each other in it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoranda.candidates import NOWHERE, Candidate, Candidates
from memoranda.ranking.scored import by_age
from memoranda.ranking.terms import Floats, Places

Positions: TypeAlias = NDArray[np.int64]
Near: TypeAlias = Mapping[int, Places]
"""By distance, -2 to 2: the place among the candidates of what stands so far from each, or one past the last."""


ALONE = -1
"""The number of no session."""
_SPAN = 1 << 33  # numbers a session: places lie between -2^31 and 2^31, and their neighbours hardly beyond


def sessions(candidates: Sequence[Candidate]) -> Places:
    """Return the number of each candidate's session, -1 where it belongs to none."""
    columns, numbers = Candidates.of(candidates), {"": ALONE}
    known: Places | None = columns.known.get("session")
    if known is not None:
        return known
    return np.array([numbers.setdefault(name, len(numbers)) for name in columns.column["session"]], np.intp)


def neighbours(candidates: Sequence[Candidate], together: Places, reach: int) -> Near:
    """Return what stands near each candidate; of several rows in one seat the newest is seen.

    Args:
        candidates: The rows.
        together: The numbers of their sessions.
        reach: How far is near.
    """
    nobody, positions = len(candidates), _positions(Candidates.of(candidates))
    seated = (together != ALONE) & (positions != NOWHERE)
    seat = np.where(seated, together * _SPAN + positions, ALONE)
    at = np.flatnonzero(seated)
    at = at[np.argsort(seat[at], kind="stable")]
    begins = np.flatnonzero(np.diff(seat[at], prepend=-_SPAN))
    seats, owners = seat[at[begins]], at[begins]
    for place, group in enumerate(np.split(at, begins[1:])) if len(begins) < len(at) else ():
        if len(group) > 1:
            owners[place] = max(group.tolist(), key=lambda i: by_age(candidates[i]))
    distances = [distance for step in range(1, reach + 1) for distance in (-step, step)]
    beside = seat + np.array(distances, np.int64).reshape(-1, 1)
    found = np.searchsorted(seats, beside)
    there = seated & (np.append(seats, -_SPAN)[found] == beside)
    return dict(zip(distances, np.where(there, np.append(owners, nobody)[found], nobody), strict=True))


def _positions(candidates: Candidates) -> Positions:
    known: Positions | None = candidates.known.get("position")
    if known is not None:
        return known
    positions = candidates.column["position"]
    return np.array([NOWHERE if position is None else position for position in positions], np.int64)


def mean_of_best(together: Places, scores: Floats, most: int) -> Floats:
    """Return for each candidate the mean of the best scores of its session; its own where it belongs to none."""
    means, members = scores.copy(), np.flatnonzero(together != ALONE)
    members = members[np.lexsort((-scores[members], together[members]))]
    begins = np.flatnonzero(np.diff(together[members], prepend=ALONE))
    sizes = np.diff(begins, append=len(members))
    session = np.repeat(np.arange(len(begins)), sizes)
    best = np.arange(len(members)) - begins[session] < most
    sums = np.bincount(session[best], scores[members[best]], len(begins))
    means[members] = (sums / np.minimum(sizes, most))[session]
    return means
