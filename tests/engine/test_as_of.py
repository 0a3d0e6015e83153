"""Questions about the past: what was rewritten since is found, filtered, ranked and shown as it was."""

from datetime import UTC, datetime, timedelta

import pytest

from memoranda.embedders.hash_words import HashWords
from memoranda.testing.embedders import CountingEmbedder

DAY = timedelta(days=1)


@pytest.fixture
def me(make_engine, frozen_clock):
    return make_engine(clock=frozen_clock).persona("main", user="ana")


def contents(answer):
    return [getattr(item, "memory", item).content for item in answer]


def write(me, content, **fields):
    return me.memories.write(content, about="everyone", **fields).memory


def keep(me, content, **fields):
    return me.memories.keep(content, about="everyone", **fields).memory


# -- what was rewritten is shown as it was


@pytest.mark.behaviour("W20")
def test_a_new_text_that_begins_now_leaves_the_old_one_its_time(me, frozen_clock):
    kept = keep(me, "Ana lives in Lisbon.")
    then = frozen_clock() + 5 * DAY
    moved = frozen_clock.advance(days=60)
    keep(me, "Ana lives in Porto.", id=kept.id, valid_from=moved)

    for moment, text in ((then, "Ana lives in Lisbon."), (moved, "Ana lives in Porto.")):
        assert me.memories.get(kept.id, as_of=moment).memory.content == text
        assert contents(me.memories.list(as_of=moment)) == [text]
        assert contents(me.recall("Where does Ana live?", as_of=moment)) == [text]
    assert me.memories.get(kept.id, as_of=then).memory.valid_from is None


def test_every_field_is_the_one_of_then(me, frozen_clock):
    old = {"importance": 3, "type": "semantic", "category": "home", "title": "Flat", "metadata": {"floor": 2}}
    new = {"importance": 9, "type": "preference", "category": "work", "title": "Desk", "metadata": {"floor": 7}}
    kept = keep(me, "Ana's flat is on the second floor.", **old)
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "Ana's desk is on the seventh floor.", id=kept.id, **new)
    frozen_clock.advance(days=1)

    [hit] = me.recall("Which floor is Ana's flat on?", as_of=then)
    assert [hit.memory] == me.memories.list(as_of=then) == [me.memories.get(kept.id, as_of=then).memory] == [kept]
    for name, value in new.items():
        assert getattr(me.memories.list()[0], name) == value


def test_filters_and_orders_look_at_what_was(me, frozen_clock):
    other = write(me, "The shed is green.", importance=5, category="garden")
    kept = keep(me, "The fence is white.", importance=8, category="garden", type="semantic")
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "The fence is blue.", id=kept.id, importance=2, category="paint", type="preference")

    assert contents(me.memories.list(as_of=then, categories="garden")) == ["The fence is white.", "The shed is green."]
    assert contents(me.memories.list(as_of=then, order="importance")) == ["The fence is white.", "The shed is green."]
    assert contents(me.memories.list(categories="garden")) == ["The shed is green."]
    assert me.memories.list(as_of=then, categories="paint") == me.memories.list(as_of=then, types="preference") == []
    assert contents(me.recall("fence", as_of=then, categories="garden")) == ["The fence is white."]
    assert not me.recall("fence", as_of=then, categories="paint").hits
    assert contents(me.memories.list(as_of=then, order="importance", before=kept.id)) == [other.content]


def test_pages_of_the_past_hold_each_memory_once(me, frozen_clock):
    kept = [write(me, f"Shelf {n} holds jars.", importance=1 + n % 3) for n in range(9)]
    then = frozen_clock()
    frozen_clock.advance(days=1)
    for memory in kept[::2]:
        keep(me, f"Emptied: {memory.short_id}.", id=memory.id, importance=10)

    for order in ("newest", "importance"):
        whole = me.memories.list(as_of=then, order=order)
        pages, before = [], None
        while page := me.memories.list(as_of=then, order=order, limit=2, before=before):
            pages += page
            before = page[-1].id
        assert pages == whole
        assert sorted(contents(whole)) == sorted(contents(kept))


MOMENTS = [datetime(2026, 1, day, 12, tzinfo=UTC) for day in (2, 9, 10, 14, 20, 26)]
TIMES = (None, datetime(2026, 1, 6, tzinfo=UTC), datetime(2026, 1, 16, tzinfo=UTC))
NARROWED: tuple[dict[str, str], ...] = (
    {},
    {"types": "episodic"},
    {"categories": "odd"},
    {"date": "2026-01-05"},
    {"project": "apollo"},
)


def test_an_answer_about_the_past_does_not_change_when_what_holds_is_rewritten(me, frozen_clock):
    frozen_clock.set(datetime(2026, 1, 10, 12, tzinfo=UTC))
    rows = []
    for n, (event, begin, end) in enumerate((e, b, x) for e in TIMES for b in TIMES for x in (None, TIMES[2])):
        fields = {"event_time": event, "valid_from": begin, "valid_to": end, "type": ("semantic", "episodic")[n % 2]}
        fields |= {"category": "odd"} if n % 3 else {"day": "2026-01-05"}
        fields |= {"project": ("apollo", "gemini", "")[n % 3]}
        rows.append(write(me, f"Statement {n} of the table.", **fields))
    asked = [{"as_of": moment, "limit": 100, **fields} for moment in MOMENTS for fields in NARROWED]
    before = [me.memories.list(**query) for query in asked]
    gotten = [[me.memories.get(row.id, as_of=moment) for moment in MOMENTS] for row in rows]

    frozen_clock.set(datetime(2026, 1, 27, tzinfo=UTC))
    for n, row in enumerate(rows):
        if row.valid_to is None:
            keep(me, f"Rewritten {n}.", id=row.id, category="new", day="2026-01-27", type="summary")
    frozen_clock.advance(days=1)

    assert [me.memories.list(**query) for query in asked] == before
    after = [[me.memories.get(row.id, as_of=moment) for moment in MOMENTS] for row in rows]
    assert [[record and record.memory for record in line] for line in after] == [
        [record and record.memory for record in line] for line in gotten
    ]
    assert {len(answer) for answer in before} > {0}


# -- ends


@pytest.mark.behaviour("W17", "W20")
def test_what_ended_later_ended_for_the_old_text_as_well(me, frozen_clock):
    first = keep(me, "The rent is 900.")
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "The rent is 900, heating included.", id=first.id)
    frozen_clock.advance(days=1)
    new = me.memories.supersede(first.id, "The rent is 950.", valid_from=then - DAY / 2).memory

    assert contents(me.memories.list(as_of=then)) == contents(me.recall("rent", as_of=then)) == ["The rent is 950."]
    assert me.memories.get(first.id, as_of=then).memory.id == new.id
    me.memories.undo(first.id)
    assert contents(me.memories.list(as_of=then)) == contents(me.recall("rent", as_of=then)) == ["The rent is 900."]
    assert me.memories.get(first.id, as_of=then).memory == first


def test_the_window_of_a_later_text_ends_no_earlier_one(me, frozen_clock):
    kept = keep(me, "The kiosk sells stamps.")
    then = frozen_clock()
    now = frozen_clock.advance(days=30)
    keep(me, "The kiosk sells sweets, until the spring.", id=kept.id, valid_from=now, valid_to=now + DAY)
    frozen_clock.advance(days=30)

    assert me.memories.list() == []
    assert contents(me.memories.list(as_of=then)) == ["The kiosk sells stamps."]
    assert me.memories.get(kept.id, as_of=then).memory.valid_to is None


@pytest.mark.behaviour("W20")
def test_an_old_text_is_not_shown_once_the_memory_is_deleted(me, frozen_clock):
    kept = keep(me, "The code is in the drawer.")
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "The code is in the safe.", id=kept.id)
    me.memories.delete(kept.id)

    assert me.memories.list(as_of=then) == []
    assert not me.recall("code drawer", as_of=then).hits
    assert me.memories.get(kept.id, as_of=then) is None


def test_only_its_author_is_asked_the_old_words_of_a_private_memory(me, make_engine, frozen_clock):
    kept = keep(me, "Ana's locker is number 12.")
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "Ana has no locker.", id=kept.id)
    bob = make_engine(clock=frozen_clock).persona("main", user="bob")

    assert contents(me.recall("Ana's locker", as_of=then)) == ["Ana's locker is number 12."]
    answer = bob.recall("Ana's locker", as_of=then)
    assert bob.memories.list(as_of=then) == [] and not answer.hits and not answer.nearest


# -- events to come


@pytest.mark.behaviour("W17", "W20")
def test_an_event_to_come_is_known_from_the_moment_it_was_told(me, frozen_clock):
    stored = frozen_clock()
    old = write(me, "The meeting is on Monday.")
    told = frozen_clock.advance(days=1)
    me.memories.supersede(old.id, "The meeting is on Tuesday.", event_time=told + 7 * DAY)
    frozen_clock.advance(days=1)

    for moment, text in (
        (stored, "Monday"),
        (told, "Tuesday"),
        (frozen_clock(), "Tuesday"),
        (told + 9 * DAY, "Tuesday"),
    ):
        assert contents(me.memories.list(as_of=moment)) == [f"The meeting is on {text}."]
        assert contents(me.recall("When is the meeting?", as_of=moment)) == [f"The meeting is on {text}."]
        assert me.memories.get(old.id, as_of=moment).memory.content == f"The meeting is on {text}."
    assert me.memories.list(as_of=frozen_clock()) == me.memories.list()


def test_an_event_that_was_told_later_held_from_the_day_it_happened(me, frozen_clock):
    write(me, "The roof was mended.", event_time=frozen_clock() - 10 * DAY)
    assert me.memories.list(as_of=frozen_clock() - 11 * DAY) == []
    assert contents(me.memories.list(as_of=frozen_clock() - 9 * DAY)) == ["The roof was mended."]


# -- ranking


def people(me, count, first):
    numbers = range(first, first + count)
    items = [{"content": f"Person {n} lives in town {n}.", "about": "everyone"} for n in numbers]
    return [written.memory for written in me.memories.write_many(items)]


@pytest.mark.behaviour("W20")
@pytest.mark.parametrize(
    ("embedder", "first"),
    [("hash/words", 0), ("hash/words", 100), ("none", 100)],  # a number of two digits is no term to look for
    ids=["vectors", "both", "words"],
)
@pytest.mark.in_turn
def test_rewriting_everything_leaves_the_ranking_of_then(make_engine, frozen_clock, embedder, first):
    me = make_engine(clock=frozen_clock, embedder=embedder).persona("main")
    rows = people(me, 120, first)
    question = f"Where does person {first + 77} live?"
    before = me.recall(question, limit=5)
    then = frozen_clock()
    frozen_clock.advance(days=1)
    for n, row in enumerate(rows):
        keep(me, f"Moved away to somewhere in the hills {n}.", id=row.id)

    after = me.recall(question, as_of=then, limit=5)
    # More texts than get a vector for one question: the tail may differ.
    assert contents(after)[:1] == contents(before)[:1] == [f"Person {first + 77} lives in town {first + 77}."]
    assert next(iter(after)).confidence == pytest.approx(next(iter(before)).confidence, abs=1e-6)


def test_words_are_as_rare_as_they_were(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock, embedder="none").persona("main")
    rows = [write(me, f"The heron {n} sleeps.") for n in range(30)]
    write(me, "The ibis flies.")
    question = "heron or ibis"
    before = me.recall(question, limit=40)
    then = frozen_clock()
    frozen_clock.advance(days=1)
    for n, row in enumerate(rows):
        keep(me, f"An ibis stands at pond {n} and waits for something to happen.", id=row.id)

    after = me.recall(question, as_of=then, limit=40)
    assert contents(after) == contents(before) and contents(after)[0] == "The ibis flies."
    assert [hit.confidence for hit in after] == pytest.approx([hit.confidence for hit in before])


def test_what_was_rewritten_takes_no_place_of_what_was_not(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    write(me, "The otter swims near the mill at dusk.")
    rows = [write(me, f"Note {n} about paper.") for n in range(150)]
    then = frozen_clock()
    frozen_clock.advance(days=1)
    for n, row in enumerate(rows):
        keep(me, f"The otter swims near the mill, {n}.", id=row.id)

    assert contents(me.recall("otter swims near the mill", as_of=then))[:1] == [
        "The otter swims near the mill at dusk."
    ]


def test_fields_changed_in_place_cost_a_memory_no_vector(me, frozen_clock):
    kept = keep(me, "The boat needs varnish.", importance=2)
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "The boat needs varnish.", id=kept.id, importance=9)

    [hit] = me.recall("boat varnish", as_of=then)
    assert hit.memory == kept
    assert hit.legs["vector"] > 0


class Losing(CountingEmbedder):
    """Fail for whatever it is asked for, once it is told to, but for questions."""

    fails = False

    def embed(self, texts, purpose):
        """Fail, or pass the texts on."""
        if self.fails and purpose == "text":
            raise ConnectionError
        return super().embed(texts, purpose)

    async def aembed(self, texts, purpose):
        """Async twin of `embed`."""
        return self.embed(texts, purpose)


def test_old_words_that_get_no_vector_are_found_as_words(make_engine, frozen_clock):
    embedder = Losing(HashWords())
    me = make_engine(clock=frozen_clock, embedder=embedder).persona("main")
    embedder.fails = True
    kept = keep(me, "The kettle has a red colour.")
    embedder.fails = False
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "It was sold at the market.", id=kept.id)
    embedder.fails = True

    [hit] = me.recall("Which colour has the kettle?", as_of=then)
    assert hit.memory.content == "The kettle has a red colour."
    assert "vector" not in hit.legs or hit.legs["vector"] == 0


def test_the_reason_of_an_abstention_knows_what_there_was(me, frozen_clock):
    kept = keep(me, "The kettle is red.")
    then = frozen_clock()
    frozen_clock.advance(days=1)
    keep(me, "The kettle is gone.", id=kept.id, valid_from=frozen_clock())

    unanswered = me.recall("quarterly revenue of the bakery", as_of=then)
    assert unanswered.abstained and unanswered.reason == me.recall("quarterly revenue of the bakery").reason
    assert me.recall("kettle", as_of=then - DAY).reason == "nothing is stored here that this question may see"


class QuestionsOnly(HashWords):
    """Embeds what is asked, and is down for anything else."""

    distinguishes_purpose = True

    def embed(self, texts, purpose="text"):
        if purpose == "text":
            raise ConnectionError("down")
        return super().embed(texts, purpose)

    async def aembed(self, texts, purpose="text"):
        return self.embed(texts, purpose)


@pytest.mark.behaviour("R36")
def test_old_words_that_cannot_be_embedded_are_found_and_the_answer_says_so(backend, make_engine, frozen_clock):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a second engine cannot open a store in memory")
    me = make_engine(clock=frozen_clock).persona("main")
    kept = keep(me, "The ferry is called Marlin.")
    then = frozen_clock()
    frozen_clock.advance(days=3)
    keep(me, "The ferry was sold for scrap.", id=kept.id)

    answer = make_engine(clock=frozen_clock, embedder=QuestionsOnly()).persona("main").recall("Marlin", as_of=then)

    assert contents(answer) == ["The ferry is called Marlin."]
    assert "rewritten" in answer.degraded
    assert me.recall("Marlin", as_of=then).degraded is None
