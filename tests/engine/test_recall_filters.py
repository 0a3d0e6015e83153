"""What narrows a recall: limit, day, types, categories, project, a moment in the past, the inactive."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from memoranda.errors import InvalidInput
from memoranda.policies import FloorPolicy, RankingPolicy
from memoranda.presets import STANDARD


def texts(hits):
    return {hit.memory.content for hit in hits}


@pytest.fixture
def me(make_engine, frozen_clock):
    return make_engine(embedder="none", clock=frozen_clock).persona("main")


@pytest.mark.behaviour("R02")
def test_the_journal_returns_five_and_a_limit_takes_the_best_of_the_same_order(make_engine):
    me = make_engine(preset="journal").persona("main")
    me.memories.write_many([{"content": f"Visit {n} to Lisbon", "importance": 1 + n % 10} for n in range(20)])

    every = [hit.memory.id for hit in me.recall("visit to Lisbon", limit=20)]

    assert len(every) == 20
    assert [hit.memory.id for hit in me.recall("visit to Lisbon")] == every[:5]
    assert [hit.memory.id for hit in me.recall("visit to Lisbon", limit=3)] == every[:3]


@pytest.mark.in_turn
@pytest.mark.parametrize("limit", [0, -1, 1001, True, 2.0, "3"])
def test_a_limit_that_makes_no_sense_is_refused(me, limit):
    with pytest.raises(InvalidInput, match="limit"):
        me.recall("lisbon", limit=limit)


@pytest.mark.behaviour("R08")
def test_a_date_keeps_one_day_of_the_users(make_engine, frozen_clock):
    me = make_engine(embedder="none", clock=frozen_clock, timezone="Pacific/Auckland").persona("main")
    frozen_clock.set(datetime(2026, 3, 1, 10, 59, tzinfo=UTC))
    me.memories.write("Lisbon before midnight in Auckland")
    frozen_clock.advance(minutes=2)
    me.memories.write("Lisbon after midnight in Auckland")
    me.memories.write("Lisbon on a day that was named", day=date(2025, 12, 24))

    assert texts(me.recall("lisbon", date=date(2026, 3, 1))) == {"Lisbon before midnight in Auckland"}
    assert texts(me.recall("lisbon", date="2026-03-02")) == {"Lisbon after midnight in Auckland"}
    assert texts(me.recall("lisbon", date=date(2025, 12, 24))) == {"Lisbon on a day that was named"}
    assert me.recall("lisbon", date=date(2025, 12, 25)).abstained


def test_a_common_word_is_looked_for_where_a_filter_hides_the_rows_of_a_rarer_one(make_engine):
    me = make_engine(embedder="none", preset="journal").persona("main")
    me.memories.write_many([{"content": f"A dentist of Lisbon, number {n}", "category": "health"} for n in range(50)])
    me.memories.write_many([{"content": f"A kitchen of Lisbon, number {n}", "category": "home"} for n in range(60)])

    found = me.recall("dentist kitchen", categories=["home"])

    assert len(found) == 5
    assert all(hit.memory.content.startswith("A kitchen") for hit in found)


@pytest.mark.parametrize("shares", [False, True], ids=["alone", "shares"])
def test_a_common_word_is_looked_for_where_the_rows_of_a_rarer_one_stand_in_another_space(make_engine, shares):
    policies = replace(STANDARD, ranking=RankingPolicy(candidates=8), floor=FloorPolicy(enabled=False))
    engine = make_engine(embedder="none", preset=policies)
    ana = engine.persona("main", tenant="acme", user="ana")
    if shares:  # then words are counted in another way, and nothing is held in memory
        ana.projects.add_member("apollo", "ana")
    ana.scoped(space="clinic").memories.write_many([f"The dentist has chair {n}" for n in range(40)])
    ana.memories.write_many([f"The kitchen has chair {n}" for n in range(150)])

    found = ana.recall("dentist kitchen", limit=2)

    assert len(found) == 2
    assert all(hit.memory.content.startswith("The kitchen") for hit in found)


@pytest.mark.behaviour("R23")
def test_a_project_keeps_its_own_rows_and_those_without_one(me):
    me.memories.write("Lisbon for the bridge", project="Bridge-Works")
    me.memories.write("Lisbon for the tunnel", project="tunnel")
    me.memories.write("Lisbon for nobody")

    assert len(me.recall("lisbon")) == 3
    assert texts(me.recall("lisbon", project="bridge_works")) == {"Lisbon for the bridge", "Lisbon for nobody"}
    assert texts(me.recall("lisbon", project="other")) == {"Lisbon for nobody"}
    assert texts(me.scoped(project="tunnel").recall("lisbon")) == {"Lisbon for the tunnel", "Lisbon for nobody"}


@pytest.mark.behaviour("R24")
def test_types_keep_what_is_listed_and_eight_is_the_usual_number(me):
    me.memories.write_many(
        [
            {"content": f"Lisbon note {n}", "type": kind}
            for n, kind in enumerate(["preference", "semantic", "episodic", "procedural"] * 5)
        ]
    )

    assert len(me.recall("lisbon")) == 8
    assert {hit.memory.type for hit in me.recall("lisbon", types=["preference"], limit=20)} == {"preference"}
    assert len(me.recall("lisbon", types=["preference", "episodic"], limit=20)) == 10
    assert len(me.recall("lisbon", types="procedural", limit=20)) == 5
    with pytest.raises(InvalidInput, match="preference"):
        me.recall("lisbon", types=["fact"])


def test_categories_keep_what_is_listed(me):
    for category in ("travel", "work", None):
        me.memories.write(f"Lisbon as {category}", category=category)

    assert texts(me.recall("lisbon", categories=["travel"])) == {"Lisbon as travel"}
    assert texts(me.recall("lisbon", categories=("travel", "work"))) == {"Lisbon as travel", "Lisbon as work"}
    assert me.recall("lisbon", categories=["Travel"]).abstained


def test_an_unknown_filter_is_refused(me):
    with pytest.raises(InvalidInput, match="project must have a letter or a digit"):
        me.recall("lisbon", project="-")
    with pytest.raises(InvalidInput, match="projects: is not a filter"):
        me.recall("lisbon", projects="x")


@pytest.mark.behaviour("R25")
def test_the_inactive_come_with_their_tag_and_only_on_request(me, frozen_clock):
    old = me.memories.write("Ana lives in Lisbon")
    frozen_clock.advance(days=1)
    me.memories.supersede(old.id, "Ana lives in Berlin")
    gone = me.memories.write("Ana lives on the moon")
    me.memories.delete(gone.id)
    me.memories.mark(me.memories.write("Ana lives in a tent").id, "expired")

    assert texts(me.recall("where does Ana live")) == {"Ana lives in Berlin"}

    lines = sorted(str(hit).partition("] ")[2] for hit in me.recall("Ana lives", include_inactive=True))
    assert lines == [
        "(semantic imp=5 [expired], 2026-01-02 valid ...->2026-01-02) Ana lives in a tent",
        "(semantic imp=5 [retracted], 2026-01-02 valid ...->2026-01-02) Ana lives on the moon",
        "(semantic imp=5 [superseded], 2026-01-01 valid ...->2026-01-02) Ana lives in Lisbon",
        "(semantic imp=5, 2026-01-02) Ana lives in Berlin",
    ]


@pytest.mark.parametrize("active", [0, 1])
def test_the_inactive_are_found_where_hardly_a_row_is_active(make_engine, active):
    me = make_engine(preset=replace(STANDARD, floor=FloorPolicy(enabled=False))).persona("main")
    last = me.memories.write("The fare to Lisbon is 0 euros", session="fares", position=0)
    for n in range(1, 25):
        last = me.memories.supersede(last.id, f"The fare to Lisbon is {n} euros").memory
    if not active:
        me.memories.delete(last.id)

    assert len(me.recall("fare Lisbon", limit=20)) == active
    assert len(me.recall("fare Lisbon", limit=20, include_inactive=True)) == 20
    assert len(me.recall("fare Lisbon", limit=40, include_inactive=True)) == 25


@pytest.mark.behaviour("R25")
def test_history_shows_nothing_that_the_scope_may_not_see(make_engine):
    engine = make_engine(embedder="none")
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    old = ana.memories.write("Ana's salary is 100")
    ana.memories.supersede(old.id, "Ana's salary is 200")

    answer = bob.recall("salary", include_inactive=True)

    assert answer.abstained
    assert not answer.nearest


@pytest.mark.behaviour("W20")
def test_a_moment_in_the_past_gets_the_answer_of_its_time(me, frozen_clock):
    old = me.memories.write("Ana lives in Lisbon", valid_from=datetime(2025, 1, 1, tzinfo=UTC))
    me.memories.supersede(old.id, "Ana lives in Berlin", valid_from=datetime(2025, 12, 1, tzinfo=UTC))

    assert texts(me.recall("where does Ana live")) == {"Ana lives in Berlin"}
    assert texts(me.recall("where does Ana live", as_of=datetime(2025, 6, 1, tzinfo=UTC))) == {"Ana lives in Lisbon"}
    assert texts(me.recall("where does Ana live", as_of="2025-12-24T00:00:00Z")) == {"Ana lives in Berlin"}
    assert me.recall("where does Ana live", as_of=datetime(2024, 12, 31, tzinfo=UTC)).abstained


def test_what_holds_only_later_or_no_longer_is_not_recalled(me, frozen_clock):
    now = frozen_clock()
    me.memories.write("Lisbon trip next year", valid_from=now.replace(year=now.year + 1))
    me.memories.write("Lisbon trip last year", valid_to=now.replace(year=now.year - 1))
    assert me.recall("lisbon trip").abstained

    frozen_clock.advance(days=366)
    assert texts(me.recall("lisbon trip")) == {"Lisbon trip next year"}


def test_filters_add_up(me):
    me.memories.write("Lisbon A", type="episodic", category="travel", day=date(2026, 1, 5))
    me.memories.write("Lisbon B", type="semantic", category="travel", day=date(2026, 1, 5))
    me.memories.write("Lisbon C", type="episodic", category="work", day=date(2026, 1, 5))
    me.memories.write("Lisbon D", type="episodic", category="travel", day=date(2026, 1, 6))

    hits = me.recall("lisbon", types="episodic", categories="travel", date=date(2026, 1, 5))

    assert texts(hits) == {"Lisbon A"}
