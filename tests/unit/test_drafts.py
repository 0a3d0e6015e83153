"""From what a caller gives to what is stored: the pure half of a write."""

from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memoranda.drafts import Setting, draft, draft_many, embedded_text, respell
from memoranda.errors import InvalidInput
from memoranda.fields import check
from memoranda.policies import DedupePolicy, Policies, RedactionPolicy, WritePolicy
from memoranda.scope import Scope, author_cell, project_cell
from memoranda.text import Tokenizer, join_terms

NOW = datetime(2026, 5, 8, 21, 30, tzinfo=UTC)
TOKENIZER = Tokenizer("english")
SECRET = "sk-ant-" + "a1B2" * 8


def setting(scope=None, policies=None, zone="UTC"):
    return Setting(
        scope=scope or Scope(), policies=policies or Policies(), tokenizer=TOKENIZER, zone=ZoneInfo(zone), now=NOW
    )


def made(content="The boiler was replaced.", *, within=None, **fields):
    return draft(*check(content, fields), within or setting())


def test_what_a_policy_says_fills_what_is_left_out():
    policies = Policies(write=WritePolicy(type="episodic", importance=2, confidence=3))
    memory = made(within=setting(policies=policies)).memory
    assert (memory.type, memory.importance, memory.confidence) == ("episodic", 2, 3)
    memory = made(within=setting(policies=policies), type="summary", importance=9, confidence=1).memory
    assert (memory.type, memory.importance, memory.confidence) == ("summary", 9, 1)


def test_what_a_scope_says_fills_what_is_left_out():
    scope = Scope(tenant="acme", user="ana", project="apollo", space="lab", agent="scribe")
    found = made(within=setting(scope))
    memory = found.memory
    assert (memory.tenant, memory.author, memory.project, memory.space) == ("acme", "ana", "apollo", "lab")
    assert (memory.about, memory.audience, found.source.actor) == ("", "private", "scribe")
    assert made(within=setting(scope), project="zeus").memory.project == "zeus"


@pytest.mark.behaviour("S05")
@pytest.mark.parametrize(
    ("zone", "day"),
    [("UTC", date(2026, 5, 8)), ("Europe/Berlin", date(2026, 5, 8)), ("Asia/Tokyo", date(2026, 5, 9))],
)
def test_the_day_is_that_of_the_zone(zone, day):
    assert made(within=setting(zone=zone)).memory.day == day


def test_index_terms_come_from_title_and_content_and_from_the_category():
    found = made("Gardens bloom.", title="Spring", category="Weather report")
    assert found.text == embedded_text("Gardens bloom.", "Spring") == "Spring\nGardens bloom."
    assert found.content_terms == join_terms(TOKENIZER.terms("Spring\nGardens bloom."))
    assert found.category_terms == join_terms(TOKENIZER.terms("Weather report"))
    assert found.length == len(found.content_terms.split()) + len(found.category_terms.split())
    assert made("...").content_terms == "" and made("...").length == 0
    assert made().category_terms == ""


def test_the_cells_say_who_may_see_it():
    scope = Scope(tenant="acme", user="ana", project="apollo")
    own, shared = author_cell("acme", "main", "ana"), project_cell("acme", "main", "apollo")
    assert made(within=setting(scope)).cells.split() == [own]
    assert made(within=setting(scope), audience="project").cells.split() == [own, shared]


def test_a_respelled_draft_is_shared_under_its_new_name():
    found = made(within=setting(Scope(tenant="acme", user="ana", project="ap-ollo")), audience="project")
    again = respell(found, "Apollo")
    assert again.memory.project == "Apollo"
    assert project_cell("acme", "main", "Apollo") in again.cells.split()
    same = made(within=setting(Scope(tenant="acme", user="ana", project="Apollo")), audience="project")
    assert again.dedupe_key == same.dedupe_key != found.dedupe_key


def test_secrets_leave_everything_that_is_stored_or_indexed():
    line = f"key {SECRET}"
    found = made(
        line,
        title=line,
        category=line,
        session=line,
        metadata={"x": [line], line: 1},
        source={"channel": line, "actor": line, "excerpt": line, "session": line},
    )
    memory, source = found.memory, found.source
    for text in (
        *(memory.content, memory.title, memory.category, memory.session, repr(memory.metadata)),
        *(source.channel, source.actor, source.excerpt, source.session),
        *(found.text, found.content_terms, found.category_terms),
    ):
        assert SECRET not in text and SECRET.lower() not in text
    assert "[REDACTED:" in memory.content
    kept = made(line, within=setting(policies=Policies(redaction=RedactionPolicy(enabled=False))))
    assert kept.memory.content == line


def test_the_key_of_a_memory_is_its_text_place_and_given_time():
    key = made().dedupe_key
    assert key and len(key) == 32 and key == made().dedupe_key
    assert key == made("  The boiler\twas\nreplaced. ").dedupe_key
    assert key == made(category="x", importance=9, metadata={"a": 1}, type="summary").dedupe_key
    others = [
        made("The boiler was replaced!"),
        made("the boiler was replaced."),
        made(title="t"),
        made(about="everyone"),
        made(session="s"),
        made(position=0),
        made(project="p"),
        made(project="p", audience="project"),
        made(day="2026-05-08"),
        made(event_time=NOW),
        made(valid_from=NOW),
        made(valid_to=NOW),
        made(within=setting(Scope(space="s"))),
        made(within=setting(Scope(tenant="t", user="ana"))),
    ]
    keys = {other.dedupe_key for other in others}
    assert len(keys) == len(others) and key not in keys
    none = setting(policies=Policies(dedupe=DedupePolicy(name="none")))
    assert made(within=none).dedupe_key is None


def test_check_cleans_and_parses():
    text, fields = check("a\x00b", {"category": "c\x00", "day": "2026-01-02", "source": {"excerpt": "x\x00"}})
    assert (text, fields) == ("ab", {"category": "c", "day": date(2026, 1, 2), "source": {"excerpt": "x"}})
    for content, given, name in (
        ("", {}, "content"),
        (None, {}, "content"),
        ("x", {"colour": 1}, "colour"),
        ("x", {"importance": 0}, "importance"),
        ("x", {"source": {"type": "rumour"}}, "source.type"),
    ):
        with pytest.raises(InvalidInput, match=r"^row 7: ") as error:
            check(content, given, index=7)
        assert (error.value.field, error.value.index) == (name, 7)


def test_fields_that_contradict_each_other_are_refused():
    for fields, name in (
        ({"valid_from": "2026-02-01", "valid_to": "2026-01-31"}, "valid_to"),
        ({"audience": "project"}, "audience"),
        ({"valid_to": "0001-01-01T00:00:00+01:00"}, "valid_to"),
    ):
        with pytest.raises(InvalidInput) as error:
            made(**fields)
        assert error.value.field == name


def test_memories_of_one_call_are_what_each_would_be_alone():
    fields: tuple[dict[str, Any], ...] = (
        {"session": "talk", "category": "travel"},
        {"session": f"talk {SECRET}", "category": f"travel {SECRET}", "about": "person:ana"},
        {"session": "talk", "audience": "project", "source": {"actor": f"bot {SECRET}"}},
        {"project": "zeus", "audience": "private", "event_time": "2026-05-06T23:30:00Z", "title": SECRET},
        {"project": "zeus", "audience": "project", "day": "2026-05-07", "type": "preference"},
        {"session": f"talk {SECRET}", "type": "preference"},
    )
    scope = Scope(tenant="acme", user="ana", project="apollo")
    within = setting(scope, Policies(write=WritePolicy(audience="by_type")), zone="Asia/Tokyo")
    checked = [check(f"Parcel {n} is here.", given) for n, given in enumerate(fields)]
    alone, together = [draft(*one, within) for one in checked], draft_many(checked, within)
    for one, other in zip(alone, together, strict=True):
        assert replace(other.memory, id=one.memory.id, short_id=one.memory.short_id) == one.memory
        assert other.source._replace(id=one.source.id) == one.source
        assert replace(other, memory=one.memory, source=one.source) == one
    assert not any(SECRET in repr((asdict(item.memory), item.source, item.text)) for item in together)


def test_a_row_that_contradicts_itself_is_named():
    checked = [check("Fine.", {}), check("Shared with nobody.", {"audience": "project"})]
    with pytest.raises(InvalidInput) as error:
        draft_many(checked, setting())
    assert (error.value.field, error.value.index) == ("audience", 1)


def test_two_drafts_of_one_memory_have_ids_of_their_own():
    one, two = made(), made()
    assert one.memory.id < two.memory.id and one.memory.short_id != two.memory.short_id
    assert one.source.id > one.memory.id
