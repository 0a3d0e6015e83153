"""Which candidates belong together: to one session, one document or one conversation, and beside each other in it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from memoranda.candidates import Candidate, Candidates
from memoranda.ranking.scored import by_age
from memoranda.ranking.terms import Floats, Places

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
    nobody, positions = len(candidates), Candidates.of(candidates).column["position"]
    seated = (together != ALONE) & np.array([position is not None for position in positions], np.bool_)
    seat = together * _SPAN + np.array([position or 0 for position in positions], np.int64)
    at = np.flatnonzero(seated)
    at = at[np.argsort(seat[at], kind="stable")]
    begins = np.flatnonzero(np.diff(seat[at], prepend=-_SPAN))
    seats, owners = seat[at[begins]], at[begins]
    for place, group in enumerate(np.split(at, begins[1:])) if len(begins) < len(at) else ():
        if len(group) > 1:
            owners[place] = max(group.tolist(), key=lambda i: by_age(candidates[i]))
    near = {}
    for distance in (d for step in range(1, reach + 1) for d in (-step, step)):
        found = np.searchsorted(seats, seat + distance)
        there = seated & (np.append(seats, -_SPAN)[found] == seat + distance)
        near[distance] = np.where(there, np.append(owners, nobody)[found], nobody)
    return near


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
