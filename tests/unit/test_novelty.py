"""A repeat says nothing new; whatever corrects, denies or adds is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.novelty import contains, denials, says_nothing_new, telling
from memoranda.text import Tokenizer

TERMS = Tokenizer("english").query_terms

REPEATS = [  # new, old
    ("Ana likes tea.", "Ana likes tea."),
    ("ana likes   TEA", "Ana likes tea"),
    ("Ana likes tea", "As everybody knows, Ana likes tea and biscuits"),
    ("The tests run on every push", "The tests run on every push, and once a night"),
    ("Deploys on Friday are forbidden", "Deploys are forbidden on Friday"),
    ("Anas Hund heißt Rex", "Anas Hund heißt Rex."),
    ("小美喜欢喝咖啡", "小美喜欢喝咖啡。"),
]
NO_REPEATS = [
    ("Ana prefers Cursor", "Ana prefers Zed"),
    ("Ana prefers Zed no longer", "Ana prefers Zed"),
    ("The limit is 2000 rows", "The limit is 1000 rows"),
    ("The port is 1000", "The port is 10000"),
    ("Ana does not like tea", "Ana does like tea"),
    ("I hate Chinese food", "I love Chinese food"),
    ("Ana likes window seats", "Ana likes aisle seats"),
    ("Ana likes green tea", "Ana likes tea"),
    ("The launch moved to the 14th", "The launch moved to the 12th"),
    ("Use config.prod.yaml for deploys", "Use config.dev.yaml for deploys"),
    ("Mara approves deploys", "Jonas approves deploys"),
    ("Ana mag keinen Tee", "Ana mag Tee"),
    ("小美不喜欢喝咖啡", "小美喜欢喝咖啡"),
    ("Аня не любит чай", "Аня любит чай"),
    ("Ana no longer lives in Lisbon", "Ana lives in Lisbon"),
    ("Ana likes tea", "It is not true that Ana likes tea"),
]


def repeats(new, old, *, near=True):
    return says_nothing_new(new, old, TERMS(new), TERMS(old), near=near)


@pytest.mark.parametrize(("new", "old"), REPEATS)
def test_what_says_nothing_new_is_a_repeat(new, old):
    assert repeats(new, old)


@pytest.mark.parametrize(("new", "old"), NO_REPEATS)
def test_what_corrects_denies_or_adds_is_no_repeat_however_near(new, old):
    assert not repeats(new, old)


def test_other_words_are_a_repeat_only_when_the_vectors_say_so():
    assert repeats("Deploys on Friday are forbidden", "Deploys are forbidden on Friday")
    assert not repeats("Deploys on Friday are forbidden", "Deploys are forbidden on Friday", near=False)


def test_what_follows_the_part_that_is_compared_must_be_equal():
    start = "The minutes of the meeting say a good deal. " * 10
    assert repeats(start + "It ended at noon", start + "It ended at noon")
    assert not repeats(start + "It ended at noon", start + "It ended in a quarrel")


@given(st.text(min_size=1))
def test_every_text_that_says_something_repeats_itself(text):
    assert repeats(text, text, near=False) == bool(" ".join(text.casefold().split()).strip(" .!?,;"))


@given(st.text(), st.text())
def test_no_pair_of_texts_raises(new, old):
    assert repeats(new, old) in (True, False)
    assert contains(new, old) in (True, False)


def test_denials_and_telling_words():
    assert denials("We don't deploy, and never on Fridays") == ("dont", "never")
    assert denials("We deploy on Fridays") == ()
    assert telling("Mara moved db-7 to v1.2 on port 8080 in Lisbon") == {"mara", "db-7", "v1.2", "8080", "lisbon"}
