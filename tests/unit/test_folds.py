"""Where a conversation is folded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.messages import Role
from memoranda.messages.folds import Turn, fold_end, limits, turn_end


@st.composite
def conversations(draw):
    """Turns of user, assistant and tools in any order; every call has an id, and some results say which they answer."""
    turns: list[Turn] = []
    calls = 0
    for position in range(1, draw(st.integers(0, 25)) + 1):
        role = draw(st.sampled_from(["user", "user", "assistant", "assistant", "tool"]))
        made: tuple[str, ...] = ()
        if role == "assistant":
            count = draw(st.sampled_from([0, 0, 1, 2]))
            made, calls = tuple(f"c{calls + n}" for n in range(count)), calls + count
        answers = draw(st.sampled_from([None, *(f"c{n}" for n in range(calls))])) if role == "tool" else None
        tokens = draw(st.integers(1, 100))
        turns.append(Turn(position=position, role=role, tokens=tokens, calls=made, answers=answers))
    return turns


@given(turns=conversations(), keep=st.integers(0, 400), most=st.integers(1, 600))
def test_a_fold_keeps_what_it_must_and_parts_nothing_that_belongs_together(turns, keep, most):
    fitting, allowed = limits(turns, keep, most)
    count = fold_end(turns, fitting, allowed)
    folded, kept = turns[:count], turns[count:]
    if not count:
        return
    assert sum(turn.tokens for turn in kept) >= keep
    if kept and kept[0].role != "user":  # between two steps, only where no turn ends
        assert kept[0].role == "assistant" and folded[-1].role != "user" and not turn_end(turns, fitting, allowed)
    elif not kept:
        assert folded[-1].role == "assistant" and not folded[-1].calls
    made = {call for turn in folded for call in turn.calls}
    assert not made & {turn.answers for turn in kept}
    if sum(turn.tokens for turn in folded) > most:  # only where no fold that fits could end
        ended = turn_end if turn_end(turns, fitting, allowed) else fold_end
        assert not ended(turns, fitting, fitting)


@pytest.mark.parametrize(
    ("roles", "keep", "most", "count"),
    [
        ("", 0, 100, 0),
        ("uaua", 0, 100, 4),
        ("uaua", 10, 100, 2),
        ("uaua", 40, 100, 0),
        ("uauau", 0, 100, 4),
        ("u", 0, 100, 0),
        ("uauaua", 0, 45, 4),
        ("uaaaaaua", 0, 20, 6),
        ("uaaaaaa", 0, 20, 7),
        ("aaua", 0, 100, 4),
        ("uatua", 0, 100, 5),
        ("uauta", 0, 30, 5),
        ("uatatat", 0, 40, 3),
        ("uatatat", 0, 20, 3),
        ("uatatat", 20, 100, 5),
        ("uatatat", 60, 100, 0),
        ("uatt", 0, 100, 0),
    ],
)
def test_folds_by_hand(roles, keep, most, count):
    names: dict[str, Role] = {"u": "user", "a": "assistant", "t": "tool"}
    turns = [Turn(position=n, role=names[role], tokens=10) for n, role in enumerate(roles, 1)]
    assert fold_end(turns, *limits(turns, keep, most)) == count
