"""Fourteen probes of a ledger with a second user: what is stale, absent, past or another's. Then what time does."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoranda.errors import InvalidInput, MemoryNotActive, MemoryNotFound, NotTheAuthor

DAY = timedelta(days=1)
Y2019, Y2021, Y2024 = (datetime(year, 1, 1, tzinfo=UTC) for year in (2019, 2021, 2024))
PRESETS = ("standard", "journal", "ledger", "statements")


@pytest.fixture
def engine(make_engine, frozen_clock):
    return make_engine(preset="ledger", clock=frozen_clock)


@pytest.fixture
def nora(engine):
    return engine.persona("main", tenant="acme", user="nora")


@pytest.fixture
def otto(engine):
    return engine.persona("main", tenant="acme", user="otto")


def contents(found):
    return [getattr(item, "memory", item).content for item in found]


# -- staleness


@pytest.mark.behaviour("W17", "S13")
def test_probe_staleness_the_correction_answers_and_the_old_does_not(nora, frozen_clock):
    old = nora.memories.write("The backup job runs at two in the morning.")
    frozen_clock.advance(days=20)
    nora.memories.supersede(old.id, "The backup job runs at five in the morning.")
    found = contents(nora.recall("When does the backup job run?"))
    assert found == ["The backup job runs at five in the morning."]


@pytest.mark.behaviour("S13", "S12")
def test_probe_staleness_what_has_run_out_is_silent_though_nobody_closed_it(nora, frozen_clock):
    row = nora.memories.write("The guest badge opens the side gate.", valid_to=frozen_clock() + 3 * DAY)
    assert contents(nora.recall("Which badge opens the side gate?")) == [row.memory.content]
    frozen_clock.advance(days=3)
    assert nora.recall("Which badge opens the side gate?").abstained
    assert nora.memories.get(row.id).memory.status == "active"


@pytest.mark.behaviour("R25", "S14")
def test_probe_staleness_the_history_shows_the_old_with_its_tag(nora, frozen_clock):
    old = nora.memories.write("The backup job runs at two in the morning.")
    frozen_clock.advance(days=20)
    new = nora.memories.supersede(old.id, "The backup job runs at five in the morning.")
    lines = str(nora.recall("When does the backup job run?", include_inactive=True)).splitlines()
    assert {line[1:9]: "[superseded]" in line for line in lines} == {old.short_id: True, new.short_id: False}
    assert [memory.id for memory in nora.memories.history(new.id)] == [old.id, new.id]


# -- abstention


FACTS = [
    "The coffee machine on the third floor takes only blue capsules.",
    "Parking permits are handed out by Helga at the reception.",
    "The quarterly report goes to the board on the tenth.",
    "Otto's desk stands next to the north window.",
    "The label printer needs the driver of 2018.",
    "Fire drills are held on the first Tuesday of May.",
    "The bicycle cellar closes at eight in the evening.",
    "Invoices above nine thousand need two signatures.",
    "The guest network is called Marlin and has no password.",
    "New laptops are ordered through the Utrecht office.",
    "The old archive moved to the basement of house seven.",
    "Lunch vouchers are valid in the canteen and the bakery.",
]
QUESTIONS = {
    "Which capsules does the coffee machine take?": 0,
    "Who hands out parking permits?": 1,
    "When does the quarterly report go to the board?": 2,
    "Next to which window stands Otto's desk?": 3,
    "Which driver does the label printer need?": 4,
    "When are fire drills held?": 5,
    "When does the bicycle cellar close?": 6,
    "Which invoices need two signatures?": 7,
    "What is the guest network called?": 8,
    "Through which office are new laptops ordered?": 9,
}


@pytest.mark.behaviour("R17")
def test_probe_abstention_a_question_nothing_answers_has_no_answer(nora):
    nora.memories.write_many(FACTS)
    for question in ("Explain quantum entanglement", "zyxwv qqqq", "Who won Wimbledon?", "Tell me a joke about frogs"):
        answer = nora.recall(question)
        assert answer.abstained and not answer and answer.reason, question
        assert str(answer).startswith("(no memories found")


# -- temporal


@pytest.mark.behaviour("W20")
def test_probe_temporal_the_past_is_asked_for_by_its_date(nora, frozen_clock):
    stored = frozen_clock()
    old = nora.memories.write("The support line is staffed by Milo.")
    changed = frozen_clock.advance(days=30)
    nora.memories.supersede(old.id, "The support line is staffed by Petra.")
    question = "Who staffs the support line?"
    assert contents(nora.recall(question, as_of=stored + DAY)) == ["The support line is staffed by Milo."]
    assert contents(nora.recall(question, as_of=changed)) == ["The support line is staffed by Petra."]
    assert nora.recall(question, as_of=stored - DAY).abstained


@pytest.mark.behaviour("S12", "S13")
def test_probe_temporal_what_begins_later_waits_for_its_day(nora, frozen_clock):
    nora.memories.write("The new canteen serves breakfast.", valid_from=frozen_clock() + 7 * DAY)
    assert nora.recall("Does the canteen serve breakfast?").abstained
    frozen_clock.advance(days=7)
    assert contents(nora.recall("Does the canteen serve breakfast?")) == ["The new canteen serves breakfast."]


# -- recall


@pytest.mark.behaviour("R14", "R24")
def test_probe_recall_the_answer_is_among_the_first_three(nora):
    nora.memories.write_many(FACTS)
    missed = [
        question for question, fact in QUESTIONS.items() if FACTS[fact] not in contents(nora.recall(question, limit=3))
    ]
    assert missed == []


# -- isolation


SECRET, ASKED = "Nora negotiates a salary of eighty thousand.", "Which salary does Nora negotiate?"


@pytest.fixture
def secret(nora, otto):
    otto.memories.write("Otto negotiates the lease of the warehouse.")
    return nora.memories.write(SECRET).memory


@pytest.mark.behaviour("A03")
def test_probe_isolation_the_author_finds_it(nora, secret):
    assert contents(nora.recall(ASKED))[0] == SECRET


@pytest.mark.behaviour("A03")
def test_probe_isolation_the_other_does_not_find_it(otto, secret):
    for answer in (otto.recall(ASKED), otto.recall(SECRET), otto.memories.relevant(SECRET)):
        assert SECRET not in contents([*answer, *answer.nearest])


@pytest.mark.behaviour("A03", "R25")
def test_probe_isolation_the_other_does_not_find_it_in_the_history(nora, otto, secret):
    new = nora.memories.supersede(secret.id, "Nora negotiates a salary of ninety thousand.")
    for answer in (otto.recall(SECRET, include_inactive=True), otto.recall(SECRET, as_of=secret.created_at)):
        assert not {SECRET, new.memory.content} & set(contents([*answer, *answer.nearest]))
    assert otto.memories.history(secret.id) == otto.memories.history(new.id) == []


@pytest.mark.behaviour("A03", "W34")
def test_probe_isolation_the_other_does_not_get_it_by_its_id(otto, secret):
    assert [otto.memories.get(id) for id in (secret.id, str(secret.id), secret.short_id)] == [None] * 3


@pytest.mark.behaviour("W21")
def test_probe_isolation_the_other_cannot_retract_it(otto, secret):
    for verb in (otto.memories.delete, otto.memories.forget, lambda id: otto.memories.mark(id, "retracted")):
        with pytest.raises(MemoryNotFound):
            verb(secret.id)


@pytest.mark.behaviour("W21")
def test_probe_isolation_the_other_cannot_supersede_it(otto, secret):
    with pytest.raises(MemoryNotFound):
        otto.memories.supersede(secret.id, "Nora works for free.")
    with pytest.raises(MemoryNotFound):
        otto.memories.keep("Nora works for free.", id=secret.id, about="everyone")
    assert contents(otto.memories.list(include_inactive=True)) == ["Otto negotiates the lease of the warehouse."]


@pytest.mark.behaviour("A03", "W21")
def test_probe_isolation_the_fact_survives_every_attempt(nora, otto, secret):
    attempts: list[Any] = [
        lambda: otto.memories.delete(secret.id),
        lambda: otto.memories.mark(secret.id, "expired"),
        lambda: otto.memories.supersede(secret.id, "Nora works for free."),
        lambda: otto.memories.undo(secret.id),
    ]
    for attempt in attempts:
        with pytest.raises(MemoryNotFound):
            attempt()
    assert otto.memories.write(SECRET).memory.author == "otto"  # the same words of his own change nothing either
    assert nora.memories.get(secret.id).memory == secret
    assert contents(nora.recall(ASKED))[0] == SECRET


# -- time: what held, what followed, and why


@pytest.mark.behaviour("W20")
def test_as_of_tells_the_text_of_then_what_followed_and_why(nora, frozen_clock):
    first = nora.memories.write("The lab is led by Iris.", source={"type": "user_message", "excerpt": "Iris leads it"})
    stored = frozen_clock()
    moved = frozen_clock.advance(days=10)
    source = {"type": "tool_result", "channel": "mail", "excerpt": "Iris retires, Juno takes over"}
    second = nora.memories.supersede(first.id, "The lab is led by Juno.", source=source)
    again = frozen_clock.advance(days=10)
    third = nora.memories.supersede(second.id, "The lab is led by Kai.", source={"type": "manual"})
    frozen_clock.advance(days=10)
    for id in (first.id, second.short_id, third.id):  # any link of the chain will do
        then = nora.memories.get(id, as_of=stored)
        assert (then.memory.content, then.superseded_by.id) == ("The lab is led by Iris.", second.id)
        assert (then.change.type, then.change.channel, then.change.excerpt) == tuple(source.values())
        assert [kept.excerpt for kept in then.sources] == ["Iris leads it"]
        between = nora.memories.get(id, as_of=moved.isoformat())
        assert (between.memory.content, between.superseded_by.id) == ("The lab is led by Juno.", third.id)
        assert between.change.type == "manual" and [old.id for old in between.supersedes] == [first.id]
        now = nora.memories.get(id, as_of=again)
        assert (now.memory.content, now.superseded_by, now.change) == ("The lab is led by Kai.", None, None)
        assert nora.memories.get(id, as_of=stored - DAY) is None
    assert f"changed by: tool_result via mail -- {source['excerpt']}" in str(nora.memories.get(first.id, as_of=stored))


@pytest.mark.behaviour("W20", "S34")
def test_as_of_gives_a_statement_that_was_rewritten_the_words_it_had(make_engine, frozen_clock):
    me = make_engine(preset="statements", clock=frozen_clock).persona("main")
    texts = [f"The key to the attic hangs behind the door of room {n} upstairs." for n in (1, 2, 3)]
    moments = []
    for n, text in enumerate(texts):
        kept = me.memories.keep(text, about="everyone", source={"type": "user_message", "excerpt": f"said {n}"})
        moments.append(frozen_clock())
        frozen_clock.advance(days=1)
    assert len(me.memories.list()) == 1
    for n, moment in enumerate(moments):
        for asked in (moment, moment + DAY / 2):
            assert contents(me.memories.list(as_of=asked)) == [texts[n]]
            assert contents(me.recall("Where does the key to the attic hang?", as_of=asked)) == [texts[n]]
            record = me.memories.get(kept.memory.id, as_of=asked)
            assert record.memory.content == texts[n]
            assert (record.change and record.change.excerpt) == (f"said {n + 1}" if n < 2 else None)
    assert me.memories.get(kept.memory.id, as_of=moments[0] - DAY) is None
    assert not me.recall("Where does the key to the attic hang?", as_of=moments[0] - DAY)


@pytest.mark.behaviour("S12", "W20")
@pytest.mark.parametrize("preset", PRESETS)
def test_what_was_so_twice_is_two_memories_with_two_windows(make_engine, frozen_clock, preset):
    me = make_engine(preset=preset, clock=frozen_clock).persona("main", user="nora")
    fact, subject = "Nora is a member of the rowing club by the lake.", {"about": "everyone"}
    once = me.memories.write(fact, valid_from=Y2019, valid_to=Y2021, **subject)
    again = me.memories.write(fact, valid_from=Y2024, **subject)
    assert once.created and again.created and once.id != again.id
    question = "Is Nora a member of the rowing club?"
    for year, expected in ((2018, []), (2019, [once.id]), (2022, []), (2024, [again.id]), (2025, [again.id])):
        moment = datetime(year, 7, 1, tzinfo=UTC)
        assert [memory.id for memory in me.memories.list(as_of=moment)] == expected, year
        assert [hit.memory.id for hit in me.recall(question, as_of=moment)] == expected, year
    assert [memory.id for memory in me.memories.list()] == [again.id]
    windows = {memory.id: (memory.valid_from, memory.valid_to) for memory in me.memories.list(include_inactive=True)}
    assert windows == {once.id: (Y2019, Y2021), again.id: (Y2024, None)}


@pytest.mark.behaviour("W18")
def test_a_window_is_cut_at_the_takeover_and_never_made_longer(nora, frozen_clock):
    now = frozen_clock()
    cases = [
        ({"valid_to": now + 365 * DAY}, {}, now),
        ({"valid_to": now + 365 * DAY}, {"valid_from": now - DAY}, now - DAY),
        ({"valid_to": now - 9 * DAY}, {}, now - 9 * DAY),
        ({"valid_from": now + 9 * DAY}, {}, now + 9 * DAY),
        ({}, {"valid_from": now + 5 * DAY}, now + 5 * DAY),
    ]
    for number, (fields, successor, end) in enumerate(cases):
        old = nora.memories.write(f"Permit {number} is pinned to the wall.", **fields)
        closed = nora.memories.supersede(old.id, f"Permit {number} was taken down.", **successor).superseded
        assert closed.valid_to == end, number


# -- taking a correction back


@pytest.mark.behaviour("W17", "S14")
def test_an_undone_correction_leaves_everything_as_before_and_its_history(nora, frozen_clock):
    end = frozen_clock() + 99 * DAY
    old = nora.memories.write("The server room is kept at 19 degrees.", valid_to=end).memory
    frozen_clock.advance(days=1)
    new = nora.memories.supersede(old.id, "The server room is kept at 23 degrees.")
    now = frozen_clock.advance(days=1)
    undone = nora.memories.undo(old.short_id)
    assert str(undone) == f"[{old.short_id}] holds again, retracted [{new.short_id}]"
    again = undone.memory
    assert (again.status, again.valid_to, again.superseded_by, again.updated_at) == ("active", end, None, now)
    assert (undone.retracted.id, undone.retracted.status) == (new.id, "retracted")
    assert contents(nora.memories.list()) == contents(nora.recall("How warm is the server room?")) == [old.content]
    assert [version.change for version in nora.memories.get(old.id).versions] == ["supersede", "undo"]
    assert contents(nora.memories.list(include_inactive=True)) == [new.memory.content, old.content]
    with pytest.raises(InvalidInput):
        nora.memories.undo(old.id)
    with pytest.raises(MemoryNotActive):
        nora.memories.undo(new.id)
    assert nora.memories.supersede(old.id, "The server room is kept at 21 degrees.").superseded.status == "superseded"


@pytest.mark.behaviour("W17", "S15")
def test_undo_takes_back_the_newest_link_only_and_leaves_what_was_there_before(nora):
    chain = [nora.memories.write("Shift plan A hangs in the hall.")]
    for name in "BC":
        chain.append(nora.memories.supersede(chain[-1].id, f"Shift plan {name} hangs in the hall."))
    with pytest.raises(MemoryNotActive):
        nora.memories.undo(chain[0].id)
    nora.memories.undo(chain[1].id)
    assert contents(nora.memories.list()) == ["Shift plan B hangs in the hall."]
    nora.memories.undo(chain[0].id)
    assert contents(nora.memories.list()) == ["Shift plan A hangs in the hall."]
    other = nora.memories.write("The plan is on the intranet now.")
    nora.memories.mark(chain[0].id, "superseded", by=other.id)
    undone = nora.memories.undo(chain[0].id)
    assert undone.retracted is None and nora.memories.get(other.id).memory.status == "active"
    nora.memories.mark(chain[0].id, "expired")
    assert nora.memories.undo(chain[0].id).memory.status == "active"
    nora.memories.delete(chain[0].id)
    with pytest.raises(MemoryNotActive):
        nora.memories.undo(chain[0].id)


@pytest.mark.behaviour("W21")
def test_only_the_author_takes_a_correction_back(nora, otto):
    for user in ("nora", "otto"):
        nora.projects.add_member("apollo", user)
    old = nora.memories.write("The pier is open to visitors.", project="apollo")
    new = nora.memories.supersede(old.id, "The pier is closed to visitors.")
    with pytest.raises(NotTheAuthor):
        otto.memories.undo(old.id)
    assert nora.memories.get(old.id).memory == new.superseded
    assert contents(otto.memories.list()) == ["The pier is closed to visitors."]


# -- at once


def failures(answers):
    return [type(answer) for answer in answers if isinstance(answer, Exception)]


@pytest.mark.behaviour("W19")
def test_of_an_undo_and_a_correction_at_once_one_whole_story_remains(nora, at_once):
    for round_ in range(5):
        old = nora.memories.write(f"Gauge {round_} reads low.")
        new = nora.memories.supersede(old.id, f"Gauge {round_} reads high.")
        calls = [
            (nora.memories, "undo", old.id),
            (nora.memories, "supersede", new.id, f"Gauge {round_} is broken."),
            (nora.memories, "undo", old.short_id),
        ]
        answers = at_once(calls)
        assert len(failures(answers)) == 2 and set(failures(answers)) <= {MemoryNotActive, InvalidInput}, answers
        active = [memory for memory in nora.memories.history(old.id) if memory.status == "active"]
        corrected = not isinstance(answers[1], Exception)
        assert contents(active) == [f"Gauge {round_} is broken." if corrected else f"Gauge {round_} reads low."]
        holds = [memory for memory in nora.memories.list() if f"Gauge {round_}" in memory.content]
        assert holds == active


@pytest.mark.behaviour("W19")
def test_of_two_takings_back_and_two_corrections_of_one_memory_each_sees_the_other_whole(nora, at_once):
    for round_ in range(4):
        old = nora.memories.write(f"Valve {round_} is shut.")
        nora.memories.mark(old.id, "expired")
        calls = [
            (nora.memories, "undo", old.id),
            (nora.memories, "supersede", old.id, f"Valve {round_} is open."),
            (nora.memories, "undo", old.id),
            (nora.memories, "supersede", old.id, f"Valve {round_} leaks."),
        ]
        answers = at_once(calls)
        assert set(failures(answers)) <= {MemoryNotActive, InvalidInput}, answers
        record = nora.memories.get(old.id)
        active = [memory for memory in nora.memories.history(old.id) if memory.status == "active"]
        assert len(active) == 1  # the one that was corrected to, or the old one once it was taken back
        assert [version.version for version in record.versions] == [*range(1, len(record.versions) + 1)]
        assert len(record.versions) == 1 + sum(not isinstance(answer, Exception) for answer in answers)
