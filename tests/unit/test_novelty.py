"""A repeat says nothing new; whatever corrects, denies or adds is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.novelty import contains, denials, says_nothing_new

REPEATS = [  # new, old
    ("Ana likes tea.", "Ana likes tea."),
    ("ana likes   TEA", "Ana likes tea"),
    ("Ana likes tea", "As everybody knows, Ana likes tea and biscuits"),
    ("The tests run on every push", "The tests run on every push, and once a night"),
    ("Deploys on Friday are forbidden", "Deploys are forbidden on Friday"),
    ("Anas Hund heißt Rex", "Anas Hund heißt Rex."),
    ("小美喜欢喝咖啡", "小美喜欢喝咖啡。"),
    # The same words.
    ("Deploys are forbidden on Friday", "Deploys on Friday are forbidden"),
    ("Ana doesn't like tea", "Ana does not like tea."),
    ("Ana can't swim", "Ana cannot swim"),
    ("Please deploy on Monday", "deploy on Monday"),
    ("Ana also likes tea", "Ana likes tea"),
    ("Does Ana like tea?", "does Ana like tea?"),
    ("Bob’s dog is called Rex", "Bob's dog is called Rex"),
    ("Bob manages Carol!", "Bob manages Carol"),
    ("If it rains, the picnic is cancelled", "If it rains, the picnic is cancelled."),
    ("Аня любит чай", "Аня любит чай."),
    ("Ana vive en Lisboa", "Ana  vive en Lisboa."),
    ("小美不喜欢喝咖啡", "小美不喜欢喝咖啡。"),
    ("アナはお茶が好きです", "アナはお茶が好きです。"),
    # A sentence among others, in any place.
    ("Ana likes tea.", "Ana likes tea. Bob likes coffee."),
    ("Bob likes coffee", "Ana likes tea. Bob likes coffee. Carol has a dog."),
    ("Carol has a dog", "Ana likes tea; Carol has a dog"),
    ("Ana likes tea. Bob likes coffee", "Carol has a dog. Ana likes tea. Bob likes coffee!"),
    ("The port is 8080", "Setup:\n- The host is db-7\n- The port is 8080\n- The user is ana"),
    ("The port is 8080", "1. The host is db-7\n2. The port is 8080"),
    ("Ana does not like tea", "Bob likes coffee. Ana does not like tea."),
    ("Ana likes\ntea", "Bob likes coffee.\nAna likes tea."),
    ("The minutes are kept by Mara", "The minutes are kept by Mara. " + "The talk went on. " * 40),
    ("The door is locked", "The talk went on. " * 40 + "The door is locked."),
    ("The door is locked", "The talk did not end. " + "The talk went on. " * 40 + "The door is locked."),
    ("Anas Hund heißt Rex", "Ana wohnt in Bonn. Anas Hund heißt Rex und bellt."),
    ("Ana vive en Lisboa", "Ana trabaja en Acme. Ana vive en Lisboa."),
    ("Аня любит чай", "Кстати, Аня любит чай и печенье."),
    ("小美喜欢喝咖啡", "小美住在北京。小美喜欢喝咖啡。"),
    ("アナはお茶が好きです", "アナは東京に住んでいます。アナはお茶が好きです。"),
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
TURNED_ROUND = [
    ("Bob manages Carol", "Carol manages Bob"),
    ("bob manages carol", "carol manages bob"),
    ("The cat chased the dog", "The dog chased the cat"),
    ("Ana owes Bob 20 euros", "Bob owes Ana 20 euros"),
    ("Ana moved from Lisbon to Porto", "Ana moved from Porto to Lisbon"),
    ("Ana has two cats and three dogs", "Ana has three cats and two dogs"),
    ("Bob at 10, Carol at 11", "Carol at 10, Bob at 11"),
    ("Bob, says Ana, is late", "Bob says Ana is late"),
    ("Ana worked at Acme", "Ana works at Acme"),
    ("Ana will work at Acme", "Ana works at Acme"),
    ("Ana may travel", "Ana must travel"),
    ("The call is after lunch", "The call is before lunch"),
    ("Ana has one dog", "Ana has two dogs"),
    ("Ana has few friends", "Ana has a few friends"),
    ("Ana likes cats", "Ana likes the cats"),
    ("The meeting is cancelled on Friday", "The meeting on Friday is cancelled"),
    ("The friend of the boss is ill", "The boss of the friend is ill"),
    ("It is 5 degrees", "It is -5 degrees"),
    ("The factor is 1.5", "The factor is 15"),
    ("The factor is 1,5", "The factor is 15"),
    ("Ana writes C", "Ana writes C#"),
    ("Ana likes tea.", "Ana likes tea?"),
    ("Ana likes tea?", "Ana likes tea."),
    ('Ana is "ill"', "Ana is ill"),
    ("The picnic takes place if it rains", "The picnic also takes place if it rains"),
    ("Das Picknick ist, wenn es regnet", "Das Picknick ist auch, wenn es regnet"),
    ("La fête a lieu s'il pleut", "La fête a lieu aussi s'il pleut"),
    ("Ana trinkt Wein in Massen", "Ana trinkt Wein in Maßen"),
    ("Der Hund beißt den Mann", "Den Hund beißt der Mann"),
    ("Ana ging von Bonn nach Köln", "Ana ging von Köln nach Bonn"),
    ("Ana dirige a Bob", "Bob dirige a Ana"),
    ("Ana a quitté Paris pour Lyon", "Ana a quitté Lyon pour Paris"),
    ("Ana tiene treinta anos", "Ana tiene treinta años"),
    ("Аня любит Борю", "Боря любит Аню"),
    ("小美喜欢小明", "小明喜欢小美"),
    ("アナはボブが好き", "ボブはアナが好き"),
]
TAKEN_BACK = [
    ("The door is locked", "The talk went on. " * 40 + "It is not true that the door is locked."),
    ("The door is locked", "The door is locked. That is not true."),
    ("The door is locked", "The door is locked. " + "The talk went on. " * 40 + "All this was wrong."),
    ("The door is locked", "Myths about the house:\n- The lamp is lit\n- The dog barks\n- The door is locked"),
    ("The door is locked", "The door is locked. It is not true that the door is locked."),
    ("The picnic is cancelled", "If it rains the picnic is cancelled"),
    ("The picnic is cancelled", "If it rains, the picnic is cancelled"),
    ("The picnic is cancelled", "If it rains:\n- the picnic is cancelled"),
    ("The picnic is cancelled", "Unless Ana calls, the picnic is cancelled"),
    ("The picnic is cancelled", "The picnic is cancelled if it rains"),
    ("The picnic is cancelled", "The picnic is cancelled\nif it rains"),
    ("The picnic is cancelled", "The picnic is cancelled, unless Ana calls"),
    ("The picnic is cancelled", "Bob thinks the picnic is cancelled"),
    ("The picnic is cancelled", "Bob thinks so. The picnic is cancelled."),
    ("The picnic is cancelled", "The picnic is cancelled, says Bob"),
    ("The picnic is cancelled", "Maybe the picnic is cancelled"),
    ("The picnic is cancelled", "Bob: The picnic is cancelled"),
    ("The picnic is cancelled", 'Bob wrote "The picnic is cancelled."'),
    ("The picnic is cancelled", "> The picnic is cancelled"),
    ("The picnic is cancelled", "- [ ] The picnic is cancelled"),
    ("The picnic is cancelled", "~~The picnic is cancelled~~"),
    ("The picnic is cancelled", "Is it true? The picnic is cancelled."),
    ("The picnic is cancelled", "In April, the picnic is cancelled"),
    ("Ana likes tea", "Ana likes tea no more"),
    ("Ana likes tea", "Ana likes tea only when ill"),
    ("Ana likes tea", "Ana likes tea less than coffee"),
    ("Ana likes tea", "Ana likes tea and coffee only when ill"),
    ("Ana likes tea", "Ana likes tea and coffee on Mondays"),
    ("Ana likes tea", "Ana likes tea and coffee less"),
    ("Ana likes tea", "Ana likes tea. Not any more."),
    ("Ana likes tea", "Ana likes tea? Bob knows."),
    ("Ana likes tea", "Susana likes tea"),
    ("Ana likes tea", "Bob and Ana likes tea"),
    ("Ana likes tea", "Ana likes teapots"),
    ("Ana likes tea", "You: Ana likes tea"),
    ("Use Postgres", "Rejected:\n- Use MySQL\n- Use Postgres"),
    ("Use Postgres", "# Rejected\n\nUse MySQL.\n\nUse Postgres."),
    ("Use Postgres", "Everybody was against this. Use Postgres."),
    ("The meeting is at 10", "The meeting is at 10. Now it is at 11."),
    ("The meeting is at 10", "The meeting is at 10. It is at 11."),
    ("The meeting is at 10", "The meeting is at 10\n\nmoved to 11"),
    ("The port is 80", "The port is 80 ... 90"),
    ("The picnic is cancelled", "*If* it rains. The picnic is cancelled."),
    ("The picnic is cancelled", "Said Bob—or maybe Carol. The picnic is cancelled."),
    ("The picnic is cancelled", "~~, The picnic is cancelled"),
    ("The limit is two", "The limit is two and a half"),
    ("The limit is 1", "The limit is 1.5"),
    ("She likes tea", "Carol called Ana. She likes tea."),
    ("Das Picknick fällt aus", "Wenn es regnet, das Picknick fällt aus"),
    ("Das Picknick fällt aus", "Bob glaubt: Das Picknick fällt aus"),
    ("Ana mag Tee", "Ana mag Tee, falls sie krank ist"),
    ("Ana mag Tee", "Das ist falsch. Ana mag Tee."),
    ("Ana aime le thé", "Ana aime le thé si elle est malade"),
    ("Ana vit à Paris", "Ana vit à Paris en hiver"),
    ("Ana aime le thé", "Bob dit ceci. Ana aime le thé."),
    ("Ana vive en Lisboa", "Quizás Ana vive en Lisboa"),
    ("Ana vive en Lisboa", "No es cierto. Ana vive en Lisboa."),
    ("Аня любит чай", "Если Аня любит чай"),
    ("Аня любит чай", "Боря думает, что Аня любит чай"),
    ("Аня любит чай", "Аня любит чай, но редко"),
    ("小美喜欢喝咖啡", "如果小美喜欢喝咖啡"),
    ("小美喜欢喝咖啡", "小明觉得小美喜欢喝咖啡。"),
    ("小美喜欢喝咖啡", "小美喜欢喝咖啡吗"),
    ("小美喜欢喝咖啡", "小美喜欢喝咖啡。这是假的。"),
    ("アナはお茶が好き", "もしアナはお茶が好きなら"),
    ("アナはお茶が好き", "アナはお茶が好きではない"),
    ("アナはお茶が好き", "アナはお茶が好き。それは嘘です。"),
]


def repeats(new, old, *, near=True):
    return says_nothing_new(new, old, near=near)


@pytest.mark.parametrize(("new", "old"), REPEATS)
def test_what_says_nothing_new_is_a_repeat(new, old):
    assert repeats(new, old)


@pytest.mark.parametrize(("new", "old"), NO_REPEATS + TURNED_ROUND)
def test_what_corrects_denies_or_adds_is_no_repeat_however_near(new, old):
    assert not repeats(new, old)


@pytest.mark.parametrize(("new", "old"), TAKEN_BACK)
def test_what_the_old_text_holds_but_does_not_state_is_no_repeat(new, old):
    assert not repeats(new, old)


@pytest.mark.parametrize(("new", "old"), TURNED_ROUND)
def test_what_is_turned_round_is_no_repeat_either_way(new, old):
    assert not repeats(old, new)


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


def test_what_comes_too_often_to_be_looked_through_is_no_repeat():
    assert repeats("Ana likes tea", "Ana likes tea. " * 50)
    assert not repeats("Ana likes tea", "Ana likes tea. " * 51)


@given(st.text(alphabet="ab .,;!?\n-'\"", max_size=40), st.text(alphabet="ab .,;!?\n-'\"", max_size=12))
def test_no_pair_of_texts_full_of_marks_raises(new, old):
    assert contains(new, old) in (True, False)
    assert repeats(new, old) in (True, False)


STATEMENTS = st.sampled_from(["Ana likes tea", "Bob has a dog", "The port is 8080", "Аня любит чай"])


@given(st.lists(STATEMENTS, min_size=1, max_size=20), STATEMENTS)
def test_a_text_of_plain_statements_repeats_each_of_them_and_no_other(told, new):
    assert contains(". ".join(told), new) == (new in told)


@given(
    st.lists(STATEMENTS, max_size=10),
    STATEMENTS,
    st.sampled_from(["It is not true that {}", "If {}, Bob pays", "{} no more"]),
)
def test_no_number_of_other_statements_hides_what_is_taken_back(told, new, frame):
    assert not contains(". ".join([*told, frame.format(new), *told]), new)


def test_denials():
    assert denials("We don't deploy, and never on Fridays") == ("dont", "never")
    assert denials("We deploy on Fridays") == ()
