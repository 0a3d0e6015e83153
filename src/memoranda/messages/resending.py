"""Where a history that is sent again stands in a conversation, told by ids and words alone.

Pure. A conversation loses nothing, so an answer that was asked for anew, or a question that was put another way, stands
behind what it took the place of. A history that is sent again is one path through it, in its order and with gaps. Where
it is in doubt whether something was said before it is new: a message twice is better than a message lost.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Spoken: TypeAlias = tuple[str, str | int]
"""A role, and what was said; in place of that the position of the message, where its id is known."""


def standing(there: Sequence[Spoken], batch: Sequence[Spoken]) -> list[int | None]:
    """Return the place of each message of a batch among those that are there, None for one that is new.

    What was said before the batch's last answer stands somewhere behind what was said before it. From there on it may
    be new: it is what stands right behind, or what the user said last and nobody has answered. After a message that is
    not there all are new, up to the next whose id is known. Takes n log n steps.

    Args:
        there: The end of a conversation, in its order.
        batch: What is said now, in its order.
    """
    places: dict[Spoken, list[int]] = defaultdict(list)
    for place, said in enumerate(there):
        places[said].append(place)
    last = len(there) - 1
    certain = _certain(batch)
    in_a_row = _path(places, last, batch, _beginning(there, batch, certain))
    with_gaps = _path(places, last, batch, 0)
    if certain > len(batch) or None in with_gaps[:certain]:
        return in_a_row
    return min(in_a_row, with_gaps, key=lambda found: found.count(None))


def _certain(batch: Sequence[Spoken]) -> int:
    """Return how much of a batch's beginning is more than chance repeats; more than there is where nothing is.

    That is a message whose id is known, or a question with its answer where the batch goes on behind it.
    """
    asked = False
    for index, (role, said) in enumerate(batch, 1):
        if isinstance(said, int) or (asked and role == "assistant" and index < len(batch)):
            return index
        asked = asked or role == "user"
    return len(batch) + 1


def _beginning(there: Sequence[Spoken], batch: Sequence[Spoken], certain: int) -> int | None:
    """Return from where on most of a batch's beginning stands in a row: at the end, or as much as is certain."""
    longest, beginning = 1, None
    for place, length in enumerate(_beginnings(there, batch)):
        if length >= longest and (length >= certain or place + length == len(there)):
            longest, beginning = length, place
    return beginning


def _path(
    places: Mapping[Spoken, Sequence[int]], last: int, batch: Sequence[Spoken], behind: int | None
) -> list[int | None]:
    """Return where the messages of a batch stand from a place on; where that is None, only those whose id is known."""
    sent_again = max((index for index, (role, _) in enumerate(batch[:-1]) if role == "assistant"), default=-1)
    found: list[int | None] = []
    for index, said in enumerate(batch):
        possible = places.get(said, ())
        first = 0 if isinstance(said[1], int) else len(possible) if behind is None else bisect_left(possible, behind)
        place = possible[first] if first < len(possible) else None
        if index > sent_again and not isinstance(said[1], int) and place != behind:
            place = place if place == last and said[0] == "user" else None
        found.append(place)
        behind = None if place is None else place + 1
    return found


def _beginnings(there: Sequence[Spoken], batch: Sequence[Spoken]) -> list[int]:
    """Return for each place how much of a batch's beginning stands there in a row."""
    # The Z function of Gusfield, over the batch and what is there: linear in both.
    joined = [*batch, None, *there]
    lengths = [0] * len(joined)
    left = right = 0
    for i in range(1, len(joined)):
        length = min(right - i, lengths[i - left]) if i < right else 0
        while i + length < len(joined) and joined[i + length] == joined[length]:
            length += 1
        lengths[i] = length
        if i + length > right:
            left, right = i, i + length
    return lengths[len(batch) + 1 :]
