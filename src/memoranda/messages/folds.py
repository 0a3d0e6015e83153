"""Where a conversation is folded: which of its oldest messages a summary is to speak for. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from memoranda.messages import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What of a message decides where a conversation may be folded; system messages are none."""

    position: int
    role: Role
    tokens: int
    calls: tuple[str, ...] = ()
    """The ids of the calls it asks for."""
    answers: str | None = None
    """Of a tool's message: the call it answers, None where nobody says."""


def limits(turns: Sequence[Turn], keep_tokens: int, max_fold_tokens: int) -> tuple[int, int]:
    """Return how many of the oldest messages fit into one fold, and how many may be folded at all.

    Those that stay have at least `keep_tokens`.
    """
    spent = list(accumulate(turn.tokens for turn in turns))
    spare = spent[-1] - keep_tokens if spent else 0
    return sum(tokens <= max_fold_tokens for tokens in spent), sum(tokens <= spare for tokens in spent)


def fold_end(turns: Sequence[Turn], fitting: int, most: int) -> int:
    """Return how many of the oldest messages are folded: as many as end with a turn, else between two steps of one.

    Between two steps only where no turn ends, as in a long run of tools: what is left of half a turn is shown to a
    model only until the user says something.

    Args:
        turns: All that are not folded.
        fitting: How many fit.
        most: How many may be folded.
    """
    return turn_end(turns, fitting, most) or _whole_end(turns, fitting, most, _ends_step)


def turn_end(turns: Sequence[Turn], fitting: int, most: int) -> int:
    """Return how many of the oldest messages are folded: as many as fit and end before a message of the user's.

    A call of a tool stays with its results. The end of the conversation will do where the assistant has answered. A
    turn of the user's that does not fit is folded whole. The arguments are those of `fold_end`.
    """
    return _whole_end(turns, fitting, most, _ends_turn)


def _whole_end(turns: Sequence[Turn], fitting: int, most: int, ends: Callable[[Sequence[Turn], int], bool]) -> int:
    split = _splitting(turns)
    counts = (*range(min(fitting, most), 0, -1), *range(fitting + 1, most + 1))
    return next((count for count in counts if ends(turns, count) and not split[count]), 0)


def _ends_turn(turns: Sequence[Turn], count: int) -> bool:
    if count < len(turns):
        return turns[count].role == "user"
    return turns[-1].role == "assistant" and not turns[-1].calls


def _ends_step(turns: Sequence[Turn], count: int) -> bool:
    return count < len(turns) and turns[count].role == "assistant" and turns[count - 1].role != "user"


def _splitting(turns: Sequence[Turn]) -> list[bool]:
    """Say of each number of oldest messages whether to part them from the rest would part a call from a result."""
    made: dict[str, int] = {}
    asked = None  # the last message that could have asked for something
    edges = [0] * (len(turns) + 2)
    for place, turn in enumerate(turns):
        if turn.role == "assistant":
            asked = place
            made.update(dict.fromkeys(turn.calls, place))
        elif turn.role == "tool" and (start := made.get(turn.answers or "", asked)) is not None:
            edges[start + 1] += 1
            edges[place + 1] -= 1
    return [depth > 0 for depth in accumulate(edges)]
