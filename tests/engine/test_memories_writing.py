"""What a write stores, what it fills in, and what it holds off."""

import logging
from datetime import UTC, date, datetime, timedelta

import pytest

from memoranda.errors import InvalidInput, NotAllowed
from memoranda.testing import BrokenEmbedder, CountingEmbedder, FrozenClock

TYPES = ("preference", "semantic", "episodic", "prospective", "procedural", "summary")
SOURCES = ("user_message", "assistant_inference", "tool_result", "manual", "consolidation", "reflection")


def contents(memories):
    return [memory.content for memory in memories]


# -- the smallest write, and everything at once


@pytest.mark.blank
@pytest.mark.behaviour("S10", "S04", "W02")
def test_text_alone_is_a_complete_memory(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    written = me.memories.write("The boiler was replaced.")
    memory = written.memory
    assert written.created and written.superseded is None and written.degraded is None
    assert str(written) == f"saved [{memory.short_id}]"
    assert (memory.content, memory.type, memory.status) == ("The boiler was replaced.", "semantic", "active")
    assert (memory.category, memory.title, memory.importance, memory.confidence, memory.core) == (
        None,
        None,
        5,
        8,
        False,
    )
    assert (memory.event_time, memory.valid_from, memory.valid_to, memory.position) == (None, None, None, None)
    assert (memory.tenant, memory.persona, memory.author, memory.audience) == ("", "main", "", "private")
    assert (memory.project, memory.space, memory.about, memory.session) == ("", "", "", "")
    assert (memory.metadata, memory.superseded_by) == ({}, None)
    assert memory.created_at == memory.updated_at == frozen_clock()
    assert me.memories.get(memory.id).memory == memory


@pytest.mark.behaviour("W02", "S03", "S12")
def test_every_field_comes_back_as_it_was_given(make_engine, frozen_clock):
    engine = make_engine(clock=frozen_clock)
    engine.persona("main", tenant="acme", user="ana").projects.add_member("apollo", "ana")
    me = engine.persona("main", tenant="acme", user="ana").scoped(space="office", agent="scribe", people=["ana"])
    given = {
        "type": "procedural",
        "category": "position",
        "title": "Release checklist",
        "importance": 10,
        "confidence": 1,
        "core": True,
        "day": date(2025, 12, 24),
        "event_time": datetime(2025, 12, 24, 9, 30, tzinfo=UTC),
        "valid_from": datetime(2025, 12, 1, tzinfo=UTC),
        "valid_to": datetime(2027, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "about": "person:ana",
        "audience": "project",
        "project": "apollo",
        "session": "s-1",
        "position": 0,
        "metadata": {"ticket": 7, "tags": ["a", "b"]},
    }
    source = {
        "type": "user_message",
        "session": "s-9",
        "channel": "chat",
        "actor": "importer",
        "excerpt": "as she said",
    }
    memory = me.memories.write("Tag, build, announce.", **given, source=source).memory
    record = me.memories.get(memory.short_id)
    assert record.memory == memory
    assert {name: getattr(record.memory, name) for name in given} == given
    assert (memory.tenant, memory.author, memory.space) == ("acme", "ana", "office")
    assert memory.created_at == memory.updated_at == frozen_clock()
    [stored] = record.sources
    assert {name: getattr(stored, name) for name in source} == source
    assert (stored.memory_id, stored.created_at) == (memory.id, frozen_clock())


@pytest.mark.behaviour("S02")
def test_a_persona_never_sees_what_another_wrote(engine):
    main, trader = engine.persona("main"), engine.persona("trader")
    written = main.memories.write("The dentist moved to Elm Street.")
    assert [hit.memory.id for hit in main.recall("dentist")] == [written.id]
    assert not trader.recall("dentist") and trader.recall("dentist").abstained
    assert trader.memories.list(include_inactive=True) == []
    assert trader.memories.get(written.id) is None and trader.memories.get(written.short_id) is None
    assert trader.stats().memories == 0


@pytest.mark.behaviour("S03")
def test_any_category_or_none_is_accepted(me):
    categories = [None, "position", "preference", "プロジェクト", "a b/c", "x" * 200]
    written = [me.memories.write(f"Fact number {i}.", category=category) for i, category in enumerate(categories)]
    assert [me.memories.get(w.id).memory.category for w in written] == categories
    assert me.memories.write("Fact with an empty one.", category="").memory.category is None


@pytest.mark.behaviour("S04")
def test_importance_and_confidence_run_from_one_to_ten(me):
    for value in (1, 10):
        memory = me.memories.write(f"Worth {value}.", importance=value, confidence=value).memory
        assert (memory.importance, memory.confidence) == (value, value)
    for name in ("importance", "confidence"):
        for wrong in (0, 11, -1, 5.0, "5", True, None):
            with pytest.raises(InvalidInput) as error:
                me.memories.write("Worth nothing.", **{name: wrong})
            assert error.value.field == name
    assert len(me.memories.list()) == 2


@pytest.mark.behaviour("S09", "S10")
def test_the_six_types_and_nothing_else(me):
    for kind in TYPES:
        assert me.memories.write(f"This one is {kind}.", type=kind).memory.type == kind
    for wrong in ("fact", "Semantic", "", None, 3):
        with pytest.raises(InvalidInput) as error:
            me.memories.write("This one is not.", type=wrong)
        assert error.value.field == "type"
    assert me.stats().by_type == dict.fromkeys(sorted(TYPES), 1)


# -- time


@pytest.mark.behaviour("S05")
def test_the_day_is_the_users_own_even_late_in_the_evening(make_engine):
    late = FrozenClock(datetime(2026, 5, 8, 21, 30, tzinfo=UTC))  # 23:30 in Berlin, 06:30 of the 9th in Tokyo
    for zone, day in (("Europe/Berlin", date(2026, 5, 8)), ("Asia/Tokyo", date(2026, 5, 9)), ("UTC", date(2026, 5, 8))):
        me = make_engine(clock=late, timezone=zone).persona(zone.replace("/", "-"))
        memory = me.memories.write("The night train left on time.").memory
        assert memory.day == day
        assert memory.created_at == datetime(2026, 5, 8, 21, 30, tzinfo=UTC)
        assert contents(me.memories.list(date=day)) == ["The night train left on time."]
        assert me.memories.list(date=day + timedelta(days=1)) == []
    late.advance(hours=2, minutes=-59)  # 00:31 in Berlin
    me = make_engine(clock=late, timezone="Europe/Berlin").persona("main")
    assert me.memories.write("Past midnight.").memory.day == date(2026, 5, 9)


@pytest.mark.behaviour("S05")
def test_the_day_follows_the_event_and_yields_to_the_callers(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock, timezone="America/New_York").persona("main")
    event = datetime(2025, 7, 5, 2, 0, tzinfo=UTC)  # still the 4th in New York
    assert me.memories.write("Fireworks.", event_time=event).memory.day == date(2025, 7, 4)
    assert me.memories.write("Fireworks!", event_time=event, day="2025-07-06").memory.day == date(2025, 7, 6)


@pytest.mark.behaviour("S05", "S12")
def test_moments_without_an_offset_are_read_in_the_engines_zone(make_engine):
    me = make_engine(timezone="Asia/Kolkata").persona("main")
    expected = datetime(2026, 3, 1, 4, 30, tzinfo=UTC)
    forms = [
        datetime(2026, 3, 1, 10, 0),
        "2026-03-01T10:00:00",
        "2026-03-01 10:00",
        "2026-03-01T04:30:00Z",
        "2026-03-01T05:30:00+01:00",
        datetime(2026, 3, 1, 4, 30, tzinfo=UTC),
    ]
    for position, form in enumerate(forms):
        memory = me.memories.write("Kickoff.", event_time=form, valid_from=form, position=position).memory
        assert memory.event_time == memory.valid_from == expected
        assert memory.event_time.utcoffset() == timedelta(0)
        assert me.memories.get(memory.id).memory.event_time == expected
    at_start = me.memories.write("From midnight on.", valid_from="2026-03-01").memory
    assert at_start.valid_from == datetime(2026, 2, 28, 18, 30, tzinfo=UTC)


@pytest.mark.behaviour("S12", "S13")
def test_a_past_window_is_kept_beside_the_moment_of_storing(make_engine, frozen_clock):
    me = make_engine(clock=frozen_clock).persona("main")
    start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
    written = me.memories.write("The shop was in Mill Lane.", valid_from=start, valid_to=end)
    memory = me.memories.get(written.id).memory
    assert (memory.valid_from, memory.valid_to) == (start, end)
    assert memory.created_at == frozen_clock()
    assert memory.status == "active"  # the window alone hides it
    assert me.memories.list() == []
    assert contents(me.memories.list(as_of=datetime(2024, 3, 1, tzinfo=UTC))) == ["The shop was in Mill Lane."]


# -- provenance


@pytest.mark.behaviour("S17")
def test_each_source_type_is_kept_and_nothing_else_is_one(me):
    for kind in SOURCES:
        written = me.memories.write(f"It came by {kind}.", source={"type": kind})
        assert [source.type for source in me.memories.get(written.id).sources] == [kind]
    plain = me.memories.write("It came by hand.", session="s-3")
    [source] = me.memories.get(plain.id).sources
    assert (source.type, source.session, source.channel, source.actor, source.excerpt) == ("manual", "s-3", "", "", "")
    by_agent = me.scoped(agent="scribe").memories.write("An agent wrote it.")
    assert me.memories.get(by_agent.id).sources[0].actor == "scribe"
    with pytest.raises(InvalidInput) as error:
        me.memories.write("From nowhere.", source={"type": "rumour"})
    assert error.value.field == "source.type"


@pytest.mark.behaviour("S17")
def test_a_supersede_has_a_source_of_its_own(me):
    old = me.memories.write("The gate code is 1111.", source={"type": "user_message"})
    new = me.memories.supersede(old.id, "The gate code is 2222.", source={"type": "tool_result", "channel": "mail"})
    assert [s.type for s in me.memories.get(old.id).sources] == ["user_message"]
    assert [(s.type, s.channel) for s in me.memories.get(new.id).sources] == [("tool_result", "mail")]


# -- the same memory twice


@pytest.mark.behaviour("W03")
def test_the_journal_only_appends(make_engine):
    me = make_engine(preset="journal").persona("main")
    first, second = me.memories.write("Ran five kilometres."), me.memories.write("Ran five kilometres.")
    assert first.created and second.created and first.id != second.id
    assert contents(me.memories.list()) == ["Ran five kilometres."] * 2
    assert first.memory.type == "episodic"
    assert [w.created for w in me.memories.write_many(["Ran."] * 3)] == [True] * 3


def test_the_same_memory_in_the_same_place_is_one_row(me):
    first = me.memories.write("Ana likes  tea.", category="taste", importance=3)
    again = me.memories.write("Ana likes tea.\n", importance=9)
    assert not again.created and again.memory == first.memory
    assert str(again) == f"already there [{first.short_id}]"
    assert len(me.memories.list()) == 1
    many = me.memories.write_many(["Bob likes tea.", "Ana likes tea.", "Bob likes tea."])
    assert [w.created for w in many] == [True, False, False]
    assert many[0].id == many[2].id and many[1].id == first.id
    assert len(me.memories.get(first.id).sources) == 1


def test_another_place_or_time_makes_another_memory(engine):
    ana = engine.persona("main", tenant="acme", user="ana")
    ana.projects.add_member("apollo", "ana")
    text = "The deploy key was rotated."
    written = [
        ana.memories.write(text),
        ana.memories.write(text, about="person:bob"),
        ana.memories.write(text, project="apollo"),
        ana.memories.write(text, project="apollo", audience="project"),
        ana.memories.write(text, session="s"),
        ana.memories.write(text, session="s", position=1),
        ana.memories.write(text, event_time="2026-01-01T00:00:00Z"),
        ana.memories.write(text, day="2026-01-01"),
        ana.memories.write(text, valid_from="2026-01-01T00:00:00Z"),
        ana.scoped(space="lab").memories.write(text),
        engine.persona("main", tenant="acme", user="bob").memories.write(text),
        engine.persona("main", tenant="globex", user="ana").memories.write(text),
        engine.persona("other", tenant="acme", user="ana").memories.write(text),
        engine.persona("main").memories.write(text),
    ]
    assert all(w.created for w in written)
    assert len({w.id for w in written}) == len(written)


def test_a_memory_that_left_may_be_written_anew(me):
    first = me.memories.write("The cafe closes at six.")
    me.memories.delete(first.id)
    second = me.memories.write("The cafe closes at six.")
    assert second.created and second.id != first.id
    me.memories.mark(second.id, "expired")
    third = me.memories.write("The cafe closes at six.")
    assert third.created
    me.memories.supersede(third.id, "The cafe closes at seven.")
    assert me.memories.write("The cafe closes at six.").created


# -- vectors


@pytest.mark.behaviour("S06")
def test_a_memory_is_stored_and_found_by_words_while_the_embedder_is_down(make_engine):
    me = make_engine(embedder=BrokenEmbedder()).persona("main")
    written = me.memories.write("The museum opens on Tuesday.")
    assert written.created and "test/broken" in written.degraded
    assert me.stats().vectors == 0
    found = me.recall("museum")
    assert [hit.memory.id for hit in found] == [written.id]
    assert found.degraded
    assert all(w.degraded for w in me.memories.write_many(["One.", "Two."]))


@pytest.mark.behaviour("W06", "S06")
def test_without_an_embedder_nothing_is_called_and_words_find_it(make_engine):
    me = make_engine(embedder="none").persona("main")
    written = me.memories.write("The museum opens on Tuesday.")
    assert me.stats().vectors == 0 and me.stats().embedder is None
    assert [hit.memory.id for hit in me.recall("when does the museum open")] == [written.id]


@pytest.mark.behaviour("W31")
def test_a_long_text_is_embedded_in_part_and_stored_whole(make_engine, caplog):
    from memoranda.embedders.hash_words import HashWords

    embedder = CountingEmbedder(HashWords())
    me = make_engine(embedder=embedder, preset="journal").persona("main")
    text = "word " * 2_599 + "zebra"
    assert len(text) == 13_000
    with caplog.at_level(logging.WARNING, logger="memoranda"):
        written = me.memories.write(text)
    assert "12000" in caplog.text and "word" not in caplog.text.replace("words", "")
    assert [len(sent) for sent in embedder.texts] == [12_000]
    assert me.memories.get(written.id).memory.content == text
    assert [hit.memory.id for hit in me.recall("zebra")] == [written.id]
    caplog.clear()
    me.memories.write("A short one.")
    assert caplog.text == ""


def test_write_many_embeds_once_and_answers_in_order(make_engine):
    from memoranda.embedders.hash_words import HashWords

    embedder = CountingEmbedder(HashWords())
    me = make_engine(embedder=embedder).persona("main")
    texts = [f"Entry {i} of the log." for i in range(510)]
    written = me.memories.write_many(texts)
    assert [w.memory.content for w in written] == texts
    assert [len(call) for call in embedder.calls] == [510]
    assert me.stats().memories == me.stats().vectors == 510
    assert me.memories.write_many([]) == [] and me.memories.write_many(iter(["One more."]))[0].created


# -- projects


@pytest.mark.behaviour("W32")
def test_spellings_of_one_project_become_one_tag(engine):
    ana = engine.persona("main", tenant="acme", user="ana")
    spellings = ("My-Project", "my_project", "MY PROJECT", "myproject")
    written = [ana.memories.write(f"Note {i}.", project=name) for i, name in enumerate(spellings)]
    assert {w.memory.project for w in written} == {"My-Project"}
    assert ana.scoped(project="my-project").memories.write("Note 9.").memory.project == "My-Project"
    assert len(ana.memories.list(project="my project")) == 5
    assert ana.memories.write("Another.", project="My-Project-2").memory.project == "My-Project-2"


@pytest.mark.behaviour("W32", "S20")
def test_a_membership_decides_the_spelling_and_nobody_elses_rows_do(engine):
    ana = engine.persona("main", tenant="acme", user="ana")
    bob = engine.persona("main", tenant="acme", user="bob")
    bob.memories.write("Private to Bob.", project="AP-OLLO")
    assert ana.memories.write("Note.", project="ap_ollo").memory.project == "ap_ollo"
    ana.projects.add_member("Zeus", "ana")
    shared = ana.memories.write("Shared.", project="zeus", audience="project")
    assert shared.memory.project == "Zeus"


@pytest.mark.behaviour("S19")
def test_sharing_needs_a_project_and_a_membership(engine):
    ana = engine.persona("main", tenant="acme", user="ana")
    with pytest.raises(InvalidInput) as error:
        ana.memories.write("For all.", audience="project")
    assert error.value.field == "audience"
    with pytest.raises(NotAllowed, match="Only a member"):
        ana.memories.write("For all.", audience="project", project="apollo")
    with pytest.raises(NotAllowed, match="Only a member"):
        ana.memories.write_many(["Mine.", {"content": "For all.", "audience": "project", "project": "apollo"}])
    assert ana.memories.list() == []
    ana.projects.add_member("apollo", "ana")
    assert ana.scoped(project="apollo").memories.write("For all.", audience="project").memory.audience == "project"


@pytest.mark.behaviour("S18")
def test_a_preset_that_wants_authors_refuses_a_write_without_one(make_engine):
    engine = make_engine(preset="ledger")
    nobody = engine.persona("main")
    for refused in (
        lambda: nobody.memories.write("Whose?"),
        lambda: nobody.memories.write_many(["Whose?"]),
        lambda: nobody.memories.supersede("abcdefgh", "Whose?"),
        lambda: nobody.memories.mark("abcdefgh", "expired"),
        lambda: nobody.memories.delete("abcdefgh"),
    ):
        with pytest.raises(NotAllowed, match="MEMORANDA_USER"):
            refused()
    assert engine.persona("main", user="ana").memories.write("Hers.").memory.author == "ana"
    assert nobody.memories.list(include_inactive=True) == []


# -- secrets


def test_secrets_are_taken_out_of_everything_that_is_stored(me):
    secret = "sk-ant-" + "a1B2" * 8
    line = f"the key is {secret}"
    written = me.memories.write(
        f"Note: {line}",
        title=line,
        category=line,
        session=line,
        metadata={"note": line, "deep": [{"x": line}]},
        source={"excerpt": line, "channel": line, "actor": line, "session": line},
    )
    record = me.memories.get(written.id)
    memory, [source] = record.memory, record.sources
    stored = [memory.content, memory.title, memory.category, memory.session, repr(dict(memory.metadata))]
    stored += [source.excerpt, source.channel, source.actor, source.session]
    for text in stored:
        assert secret not in text and "[REDACTED:" in text
    assert not me.recall(secret) or secret not in str(me.recall(secret))
    assert memory == written.memory
