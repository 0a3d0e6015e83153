"""Which candidates belong together: to one session, one document or one conversation, and beside each other in it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from memoranda.candidates import Candidate
from memoranda.ranking.scored import by_age
from memoranda.ranking.terms import Floats, Places

Near: TypeAlias = Mapping[int, Places]
"""By distance, -2 to 2: the place among the candidates of what stands so far from each, or one past the last."""


def sessions(candidates: Sequence[Candidate]) -> list[list[int]]:
    """Return for each session the places of its candidates."""
    members: dict[str, list[int]] = {}
    for i, candidate in enumerate(candidates):
        if candidate.session:
            members.setdefault(candidate.session, []).append(i)
    return list(members.values())


def neighbours(candidates: Sequence[Candidate], together: Sequence[Sequence[int]], reach: int) -> Near:
    """Return what stands near each candidate; of several rows in one seat the newest is seen.

    Args:
        candidates: The rows.
        together: Their sessions.
        reach: How far is near.
    """
    nobody = len(candidates)
    near = {distance: [nobody] * nobody for step in range(1, reach + 1) for distance in (-step, step)}
    for places in together:
        seated = [(position, i) for i in places if (position := candidates[i].position) is not None]
        seats = dict(seated)
        if len(seats) < len(seated):
            seats = dict(sorted(seated, key=lambda seat: by_age(candidates[seat[1]])))
        for step in range(1, reach + 1):
            before, after = near[-step], near[step]
            for position, i in seats.items():
                if (other := seats.get(position + step)) is not None:
                    after[i], before[other] = other, i
        if len(seats) < len(seated):
            for seen in near.values():
                for position, i in seated:
                    seen[i] = seen[seats[position]]
    return {distance: np.array(places, np.intp) for distance, places in near.items()}


def mean_of_best(together: Sequence[list[int]], scores: Floats, most: int) -> Floats:
    """Return for each candidate the mean of the best scores of its session; its own where it belongs to none."""
    means, own = scores.copy(), scores.tolist()
    for places in together:
        if len(places) > 1:
            best = sorted([own[i] for i in places], reverse=True)[:most]
            means[places] = sum(best) / len(best)
    return means
