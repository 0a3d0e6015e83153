"""Statements about somebody: kept once, seen only where they were learned and by whom they concern.

Two rows of the behaviours do not apply. W47 forbids writing past the plugin through a collection API: there is no such
API here, every write goes through the verbs. R35 refuses `list` to an agent: `list` is the program's verb, and it is in
no list of tools that an agent is given.
"""

import logging
from math import sqrt
from typing import Any

import pytest

from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, NotAllowed
from memoranda.policies import FloorPolicy
from memoranda.testing import BrokenEmbedder, FixedEmbedder

EVERYTHING = FloorPolicy(enabled=False)
DOG = "Ana has a dog, a beagle that is called Rex."


@pytest.fixture
def engine(make_engine, frozen_clock):
    return make_engine(preset="statements", clock=frozen_clock)


@pytest.fixture
def main(engine):
    return engine.persona("main")


@pytest.fixture
def with_ana(main):
    return main.scoped(people=["ana"])


def contents(found):
    return [getattr(item, "memory", item).content for item in found]


def told(engine, texts, **fields):
    """Store texts as they are, however near they lie to each other, and return the persona that reads them."""
    diary = engine.persona("main", preset="journal")
    diary.memories.write_many([{"content": text, "about": "everyone", **fields} for text in texts])
    return engine.persona("main")


def at(cosine):
    """Return a vector of this cosine with [1, 0]."""
    return [cosine, sqrt(1 - cosine**2)]


# -- the two tests every rebuilding of the plugin starts with


@pytest.mark.behaviour("O05", "W36", "W37", "W38")
def test_remembering_what_is_known_already_updates_it(with_ana, frozen_clock):
    kept = with_ana.memories.keep(DOG, about="person:ana")
    id = kept.memory.short_id
    frozen_clock.advance(hours=1)
    assert str(with_ana.memories.keep(DOG, about="person:ana")) == f"Already remembered [{id}]."
    now = frozen_clock.advance(hours=1)
    update = with_ana.memories.keep("Ana has a dog, an old beagle that is called Rex.", about="person:ana")
    assert str(update) == f'Updated [{id}]; it said: "{DOG}".'
    [memory] = with_ana.memories.list(include_inactive=True)
    assert (memory.id, memory.content) == (kept.memory.id, "Ana has a dog, an old beagle that is called Rex.")
    assert (memory.created_at, memory.updated_at) == (kept.memory.created_at, now)
    assert with_ana.memories.get(id).was == DOG


@pytest.mark.behaviour("O05", "R31", "R32", "R34")
def test_recall_finds_by_meaning_and_words_among_what_the_conversation_may_read(main):
    both = main.scoped(people=["ana", "bob"])
    both.memories.keep("Ana's dog is called Rex.", about="person:ana")
    both.memories.keep("Ana prefers short answers.", about="person:ana", core=True)
    both.memories.keep("Bob's dog is called Luna.", about="person:bob")
    both.memories.keep("The office closes at six.", about="everyone")
    with_ana = main.scoped(people=["ana"])
    found = contents(with_ana.memories.relevant("What's the name of Ana's dog?"))
    assert found[0] == "Ana's dog is called Rex."
    assert not {"Bob's dog is called Luna.", "Ana prefers short answers."} & set(found)
    assert contents(with_ana.memories.core()) == ["Ana prefers short answers."]
    assert main.scoped(people=["bob"]).memories.core() == []


# -- a statement


@pytest.mark.behaviour("S25", "S26")
def test_a_statement_is_about_somebody(with_ana):
    for verb in (with_ana.memories.keep, with_ana.memories.write):
        with pytest.raises(InvalidInput) as error:
            verb("The heating is on.")
        assert error.value.field == "about"
        for wrong in ("ana", "person:", "person: ana", "people:ana", "Everyone", "everyone ", "", None, ["everyone"]):
            with pytest.raises(InvalidInput) as error:
                verb("The heating is on.", about=wrong)
            assert error.value.field == "about"
    with pytest.raises(InvalidInput) as error:
        with_ana.memories.write_many([{"content": "Fine.", "about": "everyone"}, "The heating is on."])
    assert (error.value.field, error.value.index) == ("about", 1)
    assert with_ana.stats().memories == 0
    for right in ("everyone", "person:ana", "agent:scribe", "thread:2026/05"):
        assert with_ana.memories.keep(f"The heating is on for {right}.", about=right).memory.about == right


@pytest.mark.behaviour("W48", "S25")
def test_a_statement_says_who_learned_it_and_from_what(with_ana, frozen_clock):
    scribe = with_ana.scoped(agent="scribe")
    by_agent = scribe.memories.keep("Ana cycles to work.", about="person:ana").memory
    source = {"type": "assistant_inference", "actor": "memory", "session": "thread-7", "excerpt": "I bike in"}
    by_job = with_ana.memories.keep("Ana has two bicycles.", about="person:ana", source=source).memory
    [first], [second] = (with_ana.memories.get(memory.id).sources for memory in (by_agent, by_job))
    assert (first.actor, first.created_at) == ("scribe", frozen_clock())
    assert {name: getattr(second, name) for name in source} == source


@pytest.mark.behaviour("S27", "P25", "W39")
def test_a_statement_lives_in_the_space_it_was_learned_in(main):
    for space in ("lab", "bar"):
        main.spaces.create(space)
    lab, bar = (main.scoped(space=space, people=["ana"]) for space in ("lab", "bar"))
    kept = lab.memories.keep(DOG, about="everyone")
    assert kept.memory.space == "lab"
    nowhere = main.scoped(people=["ana"])
    for other in (bar, nowhere):
        assert other.memories.list() == other.memories.core() == []
        assert not other.memories.relevant(DOG) and not other.recall(DOG) and other.memories.nearest(DOG) is None
        assert other.memories.get(kept.memory.id) is None
    for other in (bar, nowhere):
        assert other.memories.keep(DOG, about="everyone").outcome == "remembered"
    assert contents(lab.memories.relevant("Which dog does Ana have?")) == [DOG]
    assert lab.memories.keep(DOG, about="everyone").memory.id == kept.memory.id


@pytest.mark.behaviour("W46")
def test_a_space_must_exist_and_be_open(main):
    lab = main.scoped(space="lab")
    main.spaces.create("lab")
    row = lab.memories.keep(DOG, about="everyone").memory
    assert main.spaces.archive("lab") is True and main.spaces.archive("lab") is False
    calls: list[Any] = [
        lambda me: me.memories.keep("The lamp is broken.", about="everyone"),
        lambda me: me.memories.keep("The lamp is broken.", about="everyone", id=row.id),
        lambda me: me.memories.write("The lamp is broken.", about="everyone"),
        lambda me: me.memories.write_many([{"content": "The lamp is broken.", "about": "everyone"}]),
        lambda me: me.memories.supersede(row.id, "The lamp is broken."),
    ]
    for call in calls:
        with pytest.raises(NotAllowed, match="archived"):
            call(lab)
    for call in calls[:4]:
        with pytest.raises(NotAllowed, match="no space"):
            call(main.scoped(space="cellar"))
    assert lab.memories.list(include_inactive=True) == [row]
    assert contents(lab.recall("What dog does Ana have?")) == [DOG]  # what was learned still comes up
    assert main.spaces.create("lab") is True and main.spaces.create("lab") is False
    assert calls[0](lab).outcome == "remembered"
    assert [(space.name, space.archived_at) for space in main.spaces.list()] == [("lab", None)]


@pytest.mark.behaviour("W46", "S02")
def test_a_space_is_open_in_its_own_persona_and_tenant_only(engine):
    engine.persona("main").spaces.create("lab")
    for other in (engine.persona("other"), engine.persona("main", tenant="acme"), engine.persona("main", user="ana")):
        assert other.spaces.list() == [] and other.spaces.archive("lab") is False
        with pytest.raises(NotAllowed):
            other.scoped(space="lab").memories.keep(DOG, about="everyone")


# -- keep


@pytest.mark.behaviour("W35", "W45")
def test_a_new_statement_is_remembered(with_ana):
    kept = with_ana.memories.keep(DOG, about="person:ana", core=True)
    assert (str(kept), kept.outcome, kept.was) == (f"Remembered [{kept.memory.short_id}].", "remembered", None)
    assert with_ana.memories.list() == [kept.memory] == with_ana.memories.core()


@pytest.mark.behaviour("W37")
def test_keeping_what_is_known_writes_nothing(with_ana, frozen_clock):
    first = with_ana.memories.keep(DOG, about="person:ana", core=True).memory
    frozen_clock.advance(days=1)
    for fields in ({}, {"core": True}, {"importance": 5}):
        again = with_ana.memories.keep(DOG, about="person:ana", **fields)
        assert (again.outcome, again.memory, again.was) == ("known", first, None)
    record = with_ana.memories.get(first.id)
    assert (record.memory, record.versions, len(record.sources)) == (first, (), 1)


@pytest.mark.behaviour("W36", "W38", "S34")
def test_an_update_changes_text_and_vector_and_what_is_named(with_ana, frozen_clock):
    texts = [f"{DOG[:-1]} {rest}." for rest in ("now", "now too", "now too, surely")]
    first = with_ana.memories.keep(DOG, about="person:ana", importance=9, category="pets").memory
    for text in texts:
        frozen_clock.advance(days=1)
        kept = with_ana.memories.keep(text, about="person:ana", core=True)
        assert kept.outcome == "updated" and kept.memory.id == first.id
    record = with_ana.memories.get(first.id)
    memory = record.memory
    assert (memory.content, memory.core, memory.importance, memory.category) == (texts[-1], True, 9, "pets")
    assert memory.updated_at == frozen_clock() and record.was == texts[1]
    assert [version.memory.content for version in record.versions] == [DOG, *texts[:2]]
    assert [source.created_at for source in record.sources] == [first.created_at] + [
        version.changed_at for version in record.versions
    ]
    [hit] = with_ana.recall(texts[-1], floor=EVERYTHING)
    assert hit.legs["vector"] == pytest.approx(1, abs=1e-6)  # of the new text
    assert with_ana.stats().vectors == 1


@pytest.mark.behaviour("W38")
def test_a_correction_that_turns_a_number_or_a_denial_round_keeps_the_old_text(with_ana):
    rent = "The rent of the flat in Elm Street is {} euros a month in all."
    laptop = "Ana {} carry her laptop into the big clean room at work."
    cases = [(rent.format(900), rent.format(950)), (laptop.format("is to"), laptop.format("is not to"))]
    for old, new in cases:
        first = with_ana.memories.keep(old, about="everyone").memory
        kept = with_ana.memories.keep(new, about="everyone")
        assert (kept.memory.id, kept.memory.content, kept.was) == (first.id, new, old)
        assert with_ana.memories.get(first.id).was == old


@pytest.mark.behaviour("W39")
def test_statements_about_others_are_never_merged(main):
    both = main.scoped(people=["ana", "bob"], agent="scribe", thread="t1")
    subjects = ("person:ana", "person:bob", "agent:scribe", "thread:t1", "everyone")
    kept = [both.memories.keep("Likes to be called before nine in the morning.", about=about) for about in subjects]
    assert [answer.outcome for answer in kept] == ["remembered"] * 5
    assert len({answer.memory.id for answer in kept}) == 5 == len(both.memories.list())
    changed = both.memories.keep(
        "Likes to be called before ten in the morning.", about="person:bob", id=kept[1].memory.id
    )
    assert changed.outcome == "updated"
    assert [both.memories.get(answer.memory.id).memory for answer in kept] == [
        changed.memory if answer is kept[1] else answer.memory for answer in kept
    ]


@pytest.mark.behaviour("W40", "E03")
def test_without_an_embedder_only_the_same_text_is_known(make_engine):
    me = make_engine(preset="statements", embedder="none").persona("main")
    outcomes = [me.memories.keep(text, about="everyone").outcome for text in (DOG, f"{DOG[:-1]} now.", DOG)]
    assert outcomes == ["remembered", "remembered", "known"]
    assert len(me.memories.list()) == 2


@pytest.mark.behaviour("W41", "W44")
def test_what_was_forgotten_is_neither_matched_nor_revived(with_ana):
    first = with_ana.memories.keep(DOG, about="person:ana").memory
    with_ana.memories.forget(first.id)
    again = with_ana.memories.keep(DOG, about="person:ana")
    assert again.outcome == "remembered" and again.memory.id != first.id
    with_ana.memories.forget(again.memory.id)
    near = with_ana.memories.keep(f"{DOG[:-1]} now.", about="person:ana")
    assert near.outcome == "remembered" and with_ana.memories.list() == [near.memory]
    for gone in (first, again.memory):
        with pytest.raises(MemoryNotActive):
            with_ana.memories.keep("Ana has a cat.", id=gone.id, about="person:ana")
        assert with_ana.memories.get(gone.id).memory.content == DOG


@pytest.mark.behaviour("W42")
def test_a_change_of_core_alone_touches_no_text(with_ana, frozen_clock):
    first = with_ana.memories.keep(DOG, about="person:ana").memory
    for core in (True, False):
        now = frozen_clock.advance(hours=1)
        kept = with_ana.memories.keep(DOG, about="person:ana", core=core)
        assert (str(kept), kept.memory.core, kept.memory.updated_at) == (f"Updated [{first.short_id}].", core, now)
        assert with_ana.memories.get(first.id).was is None and kept.was is None
        assert with_ana.memories.core() == ([kept.memory] if core else [])
    plain = with_ana.memories.keep(DOG, about="person:ana", core=True)
    assert with_ana.memories.keep(DOG, about="person:ana").memory == plain.memory  # nothing was said of it


@pytest.mark.behaviour("W43")
def test_a_memory_that_is_named_is_updated_whatever_it_says(with_ana):
    first = with_ana.memories.keep(DOG, about="person:ana").memory
    other = with_ana.memories.keep("Ana prefers short answers.", about="person:ana").memory
    kept = with_ana.memories.keep("Ana moved to Porto.", id=first.short_id, about="person:ana")
    assert str(kept) == f'Updated [{first.short_id}]; it said: "{DOG}".'
    assert (kept.memory.id, kept.memory.created_at) == (first.id, first.created_at)
    for wrong in ("abcdefgh", "", "no id"):
        with pytest.raises(MemoryNotFound):
            with_ana.memories.keep("Ana moved to Braga.", id=wrong, about="person:ana")
    assert with_ana.memories.list() == [other, kept.memory]


# -- forget


@pytest.mark.behaviour("W44", "W45")
def test_forgetting_takes_a_statement_out_of_every_answer(with_ana):
    plain = with_ana.memories.keep(DOG, about="person:ana").memory
    core = with_ana.memories.keep("Ana is\n allergic to nuts.", about="person:ana", core=True).memory
    assert str(with_ana.memories.forget(plain.short_id)) == f'Forgotten [{plain.short_id}]; it said: "{DOG}".'
    sentence = str(with_ana.memories.forget(core.id))
    assert sentence == f'Forgotten [{core.short_id}]; it said: "Ana is allergic to nuts.".'
    assert with_ana.memories.list() == with_ana.memories.core() == []
    assert not with_ana.memories.relevant(DOG) and not with_ana.recall(DOG) and with_ana.memories.nearest(DOG) is None
    for memory in (plain, core):
        with pytest.raises(MemoryNotFound):
            with_ana.memories.forget(memory.id)
    assert [memory.status for memory in with_ana.memories.list(include_inactive=True)] == ["retracted"] * 2


# -- search


@pytest.mark.behaviour("S29", "S30", "S28")
def test_nearest_and_recall_give_the_cosine_best_first(make_engine):
    vectors = {"alpha": [2, 0], "beta": [8, 6], "gamma": [0, 3], "delta": [-1, 0], "query": [1, 0]}
    me = make_engine(preset="statements", embedder=FixedEmbedder(vectors)).persona("main")
    for text in ("gamma", "alpha", "delta", "beta"):
        me.memories.write(text, about="everyone")
    hits = me.recall("query", floor=EVERYTHING)
    assert contents(hits) == ["alpha", "beta", "gamma", "delta"]
    assert [hit.legs["vector"] for hit in hits] == pytest.approx([1, 0.8, 0, -1], abs=1e-6)
    assert contents(me.recall("query", floor=EVERYTHING, limit=2)) == ["alpha", "beta"]
    nearest = me.memories.nearest("query")
    assert (nearest.memory.content, nearest.legs["vector"]) == ("alpha", pytest.approx(1, abs=1e-6))
    assert me.stats().vectors == 4  # one a statement, without asking for it
    for wrong in ([1.0, 0.0], "", "  ", None, 5):
        with pytest.raises(InvalidInput):
            me.memories.nearest(wrong)


@pytest.mark.behaviour("R28", "R29")
def test_words_lift_a_statement_over_one_that_is_slightly_nearer(make_engine):
    vectors = {
        "locker 4711": [1, 0],
        "Bob's locker is 4711": at(0.6),
        "his cupboard": at(0.75),
        "locker of Cleo": at(0.6),
    }
    me = told(make_engine(preset="statements", embedder=FixedEmbedder(vectors)), list(vectors)[1:])
    hits = me.recall("locker 4711")
    assert contents(hits) == ["Bob's locker is 4711", "his cupboard", "locker of Cleo"]
    assert [hit.score for hit in hits] == pytest.approx([0.8, 0.75, 0.7], abs=1e-6)


@pytest.mark.behaviour("R30")
def test_without_a_vector_the_newest_five_hundred_are_compared_by_words(make_engine, frozen_clock):
    engine = make_engine(preset="statements", embedder="none", clock=frozen_clock)
    me = engine.persona("main")
    me.memories.write("The zeppelin is in hangar one.", about="everyone")
    frozen_clock.advance(seconds=1)
    told(engine, [f"The parcel {n} came." for n in range(499)])
    assert contents(me.recall("Which zeppelin?")) == ["The zeppelin is in hangar one."]
    assert me.recall("Whose submarine?").abstained
    frozen_clock.advance(seconds=1)
    me.memories.write("The parcel 499 came.", about="everyone")
    assert me.recall("Which zeppelin?").abstained
    [newest] = me.recall("zeppelin 499")
    assert (newest.memory.content, newest.score) == ("The parcel 499 came.", pytest.approx(0.1))


@pytest.mark.behaviour("R31", "R34")
def test_what_is_about_bob_never_comes_up_without_bob(main):
    both = main.scoped(people=["ana", "bob"])
    for core in (False, True):
        for person in ("ana", "bob"):
            text = f"{person} {'always sings' if core else 'never dances'} at the summer party."
            both.memories.keep(text, about=f"person:{person}", core=core)
    for people, name in (([], ""), (["ana"], "ana"), (["bob"], "bob"), (["Bob", "bo"], "")):
        me = main.scoped(people=people)
        always, never = f"{name} always sings at the summer party.", f"{name} never dances at the summer party."
        assert contents(me.memories.core()) == ([always] if name else [])
        assert contents(me.memories.list()) == ([always, never] if name else [])
        for asked in ("bob never dances at the summer party.", "bob always sings at the summer party."):
            assert set(contents(me.recall(asked, floor=EVERYTHING))) == ({always, never} if name else set())
            assert set(contents(me.memories.relevant(asked))) == ({never} if name else set())


@pytest.mark.behaviour("R32")
def test_relevant_is_what_is_over_the_floor_and_not_core(make_engine):
    vectors = {"asked": [1, 0], "out": at(0.29), "in": at(0.3), "core": at(0.9), "best": at(0.95)}
    engine = make_engine(preset="statements", embedder=FixedEmbedder(vectors))
    me = told(engine, ["out", "in", "best"])
    told(engine, ["core"], core=True)
    assert contents(me.memories.relevant("asked")) == ["best", "in"]
    assert contents(me.memories.relevant("asked", limit=1)) == ["best"]
    assert contents(me.recall("asked", floor=EVERYTHING)) == ["best", "core", "in", "out"]


@pytest.mark.behaviour("R33", "R36")
def test_relevant_fails_no_turn_while_the_embedder_is_down(make_engine, caplog):
    me = make_engine(preset="statements", embedder=BrokenEmbedder()).persona("main")
    kept = me.memories.keep(DOG, about="everyone")
    assert kept.degraded and kept.outcome == "remembered"
    for asked in ("Quarterly taxes", "Is there a beagle?"):  # words alone stay under the floor of what is injected
        with caplog.at_level(logging.WARNING, "memoranda"):
            caplog.clear()
            answer = me.memories.relevant(asked)
        assert len(answer) == 0 and answer.degraded
        assert len(caplog.records) == 1
        assert "beagle" not in caplog.text.lower() and "taxes" not in caplog.text.lower()
    assert contents(me.recall("Is there a beagle?")) == [DOG]


class Unsteady(FixedEmbedder):
    """Is down for every text that is not in its table."""

    def embed(self, texts, purpose):
        try:
            return super().embed(texts, purpose)
        except Exception as error:
            raise ConnectionError("the embedder is down") from error

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


def test_a_text_that_was_replaced_without_a_vector_is_not_found_by_its_old_meaning(make_engine):
    main = make_engine(preset="statements", embedder=Unsteady({DOG: [1, 0], "pets": [1, 0]})).persona("main")
    kept = main.memories.keep(DOG, about="everyone")
    assert contents(main.recall("pets")) == [DOG]

    main.memories.keep("Bob sings.", id=kept.memory.id, about="everyone")

    assert contents(main.recall("pets")) == []
