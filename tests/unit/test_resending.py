"""Where a history that is sent again stands: every message once, in its order, and nothing new is lost."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.messages.resending import Spoken, standing

FEW_WORDS = st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from("abc"))
TALK = st.lists(FEW_WORDS, max_size=12)


def turns(*texts):
    return [(("user", "assistant")[n % 2], text) for n, text in enumerate(texts)]


@given(TALK, TALK)
def test_what_is_found_says_the_same_and_stands_in_its_order(there, batch):
    found = standing(there, batch)
    assert len(found) == len(batch)
    known = [place for place in found if place is not None]
    assert known == sorted(set(known)) and found[: len(known)] == known, "one path, and what is new behind it"
    assert all(there[place] == said for place, said in zip(known, batch, strict=False))


@given(TALK, TALK, TALK)
def test_nothing_is_found_of_what_was_never_said(there, batch, more):
    new = [(role, text.upper()) for role, text in more]
    assert standing(there, [*new, *batch])[: len(new)] == [None] * len(new)
    assert standing(there, [*batch, *new])[len(batch) :] == [None] * len(new)


@given(st.lists(FEW_WORDS, min_size=1, max_size=12), st.integers(0, 11))
def test_what_a_conversation_ends_with_is_found(there, begin):
    begin %= len(there)
    assert all(place is not None for place in standing(there, there[begin:]))
    assert standing(there, there) == [*range(len(there))]


@given(st.lists(st.sampled_from(["go on", "ask again", "edit", "fail"]), max_size=12), st.data())
def test_whatever_a_client_does_each_message_is_there_once(steps, data):
    there, shown = [], turns("u", "a")
    there += shown
    for number, step in enumerate(steps):
        answered = len(shown) // 2
        if step in ("ask again", "edit") and answered > 1:
            shown = shown[: 2 * data.draw(st.integers(1, answered - 1)) + 1]
        if step != "ask again" or answered == 1:
            shown = [*shown[: len(shown) // 2 * 2], ("user", f"u{number}")]
        for _ in range(2 if step == "fail" else 1):
            found = standing(there, shown)
            assert None not in found[:-1], "nothing is said twice"
            there += [said for said, place in zip(shown, found, strict=True) if place is None]
        shown = [*shown, ("assistant", f"a{number}")]
        there.append(shown[-1])
    # Where a question was edited and its answer is asked for anew, the question stands there again.
    assert sum(there.count(said) - 1 for said in set(there)) <= steps.count("ask again")
    assert all(there.count(said) == 1 for said in there if said[0] == "assistant")


def test_what_is_behind_an_answer_that_is_asked_for_anew_is_passed_over():
    there = turns("u0", "a0", "u1", "a1")
    assert standing(there, turns("u0", "a0", "u1")) == [0, 1, 2]
    there += [("assistant", "b1")]
    assert standing(there, turns("u0", "a0", "u1", "b1", "u2")) == [0, 1, 2, 4, None]


def test_a_turn_alone_is_found_at_the_end_only():
    there = turns("u0", "a0", "u1", "a1")
    assert standing(there, turns("u1", "a1")) == [2, 3]
    assert standing(there, turns("u0", "a0")) == standing(there, turns("u0", "b0", "u1")[:2]) == [None, None]
    assert standing(there, turns("u0")) == [None] and standing(there[:3], turns("u1")) == [2]


def test_what_a_history_ends_with_is_new_where_it_says_what_was_said_later():
    there = turns("u0", "a0", "u1", "a1", "yes", "a2")
    assert standing(there, turns("u0", "a0", "yes")) == [0, 1, None]
    assert standing(there, turns("u0", "a0", "yes", "a2", "u3")) == [0, 1, 4, 5, None]


def test_a_known_id_is_its_own_message_and_tells_where_the_next_one_stands():
    there: list[Spoken] = [("user", 1), ("assistant", "a"), ("assistant", "b"), ("user", 4), ("assistant", "a")]
    assert standing(there, [("user", 1), ("assistant", "b"), ("user", 4)]) == [0, 2, 3]
    assert standing(there, [("user", 1), ("assistant", "new"), ("user", 4), ("assistant", "a")]) == [0, None, 3, 4]
    assert standing(there, [("user", 9), ("assistant", "a")]) == [None, None], "it is not known where that stands"
