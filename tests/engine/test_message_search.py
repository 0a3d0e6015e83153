"""Past messages are found by their words, with the turns beside them, by whoever they belong to."""

import pytest

from memoranda.errors import InvalidInput

TURNS = (
    {"role": "user", "content": "Good morning!"},
    {"role": "assistant", "content": "Good morning, how can I help?"},
    {"role": "user", "content": "Which hotel did you book in Porto?"},
    {"role": "assistant", "content": "The one by the river, with breakfast."},
    {"role": "user", "content": "Thanks, and what about the rent?"},
    {"role": "assistant", "content": "It went up again."},
)


def said(found):
    return [item.message.text for item in found]


@pytest.fixture
def me(make_engine):
    return make_engine(embedder="none").persona("main")


def test_a_message_is_found_with_the_turns_beside_it(me):
    me.conversation("trip").append(TURNS)
    me.conversation("garden").append([{"role": "user", "content": "The roses need water."}])

    (found,) = me.conversations.search("hotel in porto")

    assert (found.conversation, found.message.text, found.message.position) == ("trip", TURNS[2]["content"], 3)
    assert [message.text for message in found.before] == [TURNS[1]["content"]]
    assert [message.text for message in found.after] == [TURNS[3]["content"]]
    assert found.score > 0


def test_as_many_turns_are_given_as_are_asked_for_and_no_others(me):
    me.conversation("trip").append(TURNS)
    me.conversation("next").append([{"role": "user", "content": "Another conversation begins here."}])
    for around, before, after in ((0, [], []), (2, [1, 2], [4, 5]), (10, [1, 2], [4, 5, 6])):
        (found,) = me.conversations.search("Porto", around=around)
        assert [message.position for message in found.before] == before
        assert [message.position for message in found.after] == after
        assert {message.text for message in found.after} <= {turn["content"] for turn in TURNS}


def test_the_turns_beside_a_message_speak_for_it(me):
    me.conversation("a").append(["Where is the key?", "The key to the boiler room hangs by the door."])
    me.conversation("b").append(["Where is the lamp?", "The key to the boiler room is lost."])
    me.conversation("c").append(["The key to the boiler room is new.", "Somebody has to paint the wall."])

    found = me.conversations.search("Where is the key to the boiler room?", limit=3)

    assert (found[0].conversation, found[0].message.position) == ("a", 2)


def test_the_limit_takes_the_best(me):
    me.conversation("log").append([f"Tram number {n} was late" for n in range(30)])
    every = said(me.conversations.search("tram late", limit=30))
    assert len(every) == len(set(every)) == 30
    assert said(me.conversations.search("tram late", limit=4)) == every[:4]


def test_messages_are_seen_by_their_own_user_alone(make_engine):
    engine = make_engine(embedder="none")
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    for user in (ana, bob):
        user.projects.add_member("harbour", user.handle.scope.user)
        user.conversation("chat").append(f"The crane of {user.handle.scope.user} is stuck")

    assert said(ana.conversations.search("crane")) == ["The crane of ana is stuck"]
    assert said(bob.conversations.search("crane")) == ["The crane of bob is stuck"]
    assert engine.persona("main", tenant="acme").conversations.search("crane") == []
    assert engine.persona("side", tenant="acme", user="ana").conversations.search("crane") == []


@pytest.mark.behaviour("P25")
def test_what_was_said_in_a_space_comes_up_there_alone(make_engine):
    me = make_engine(embedder="none", preset="statements").persona("main")
    office, home = me.scoped(space="office", people=["ana"]), me.scoped(space="home", people=["ana"])
    office.conversation("a").append(["The crane in the harbour is stuck.", "It is an old one."])
    home.conversation("a").append("Nobody is at the harbour.")

    assert said(office.conversations.search("harbour")) == ["The crane in the harbour is stuck."]
    [found] = home.conversations.search("harbour")
    assert found.message.text == "Nobody is at the harbour." and found.before == found.after == ()
    assert me.conversations.search("harbour") == []


def test_a_space_of_other_presets_sees_what_was_said_outside_every_space(make_engine):
    me = make_engine(embedder="none").persona("main")
    for place in (me, me.scoped(space="office"), me.scoped(space="home")):
        place.conversation("a").append(f"The crane of {place.handle.scope.space} is stuck.")
    assert said(me.conversations.search("crane")) == ["The crane of None is stuck."]
    there = said(me.scoped(space="office").conversations.search("crane"))
    assert set(there) == {"The crane of None is stuck.", "The crane of office is stuck."}


def test_where_every_statement_is_about_somebody_only_who_was_there_finds_what_was_said(make_engine):
    me = make_engine(embedder="none", preset="statements").persona("main")
    me.scoped(people=["ana", "bob"]).conversation("a").append("The crane is stuck, says Bob.")
    me.scoped(thread="t1").conversation("a").append("The crane is stuck in thread one.")
    me.conversation("a").append("The crane is stuck for everyone.")

    def found(**axes):
        return {text.split()[-1] for text in said(me.scoped(**axes).conversations.search("crane"))}

    assert found() == {"everyone."}
    assert found(people=["bob", "eve"]) == {"everyone.", "Bob."} and found(people=["eve"]) == {"everyone."}
    assert found(thread="t1") == {"everyone.", "one."} and found(thread="t2") == {"everyone."}


def test_what_is_cleared_is_found_no_more_and_a_new_message_at_once(me):
    chat = me.conversation("chat")
    chat.append("The ferry leaves at ten")
    assert len(me.conversations.search("ferry")) == 1
    chat.clear()
    assert me.conversations.search("ferry") == []
    chat.append("The ferry leaves at noon")
    assert said(me.conversations.search("ferry")) == ["The ferry leaves at noon"]


def test_nothing_in_the_text_is_an_operator_and_a_secret_is_not_looked_for(me):
    me.conversation("chat").append('The NEAR "quay" is wet OR dry')
    assert len(me.conversations.search('quay* AND (wet OR "NEAR")')) == 1
    for nothing in ("", "   ", "the of and", "!?*", "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a"):
        assert me.conversations.search(nothing) == []
    assert me.recall("quay").abstained  # messages are no memories


@pytest.mark.parametrize(
    ("field", "value"), [("limit", 0), ("limit", 1001), ("around", -1), ("around", 11), ("text", 7)]
)
def test_arguments_that_make_no_sense_are_refused(me, field, value):
    arguments = {"text": "quay"} | {field: value}
    with pytest.raises(InvalidInput, match=field):
        me.conversations.search(arguments.pop("text"), **arguments)
