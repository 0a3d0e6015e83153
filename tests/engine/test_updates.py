"""Of two facts that contradict each other the newer one answers: for what they say, not for being the newest of all."""

from datetime import UTC, datetime, timedelta

import pytest

NAMES = ["Ana", "Bruno", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas"]
# the question, and two answers to it that cannot both hold
CHANGES = [
    ("Where does {0} live?", "{0} lives in a flat in Lisbon.", "{0} lives in a house in Ghent."),
    ("What does {0} work as?", "{0} works as a nurse at the clinic.", "{0} works as a baker in the old town."),
    ("Which car does {0} drive?", "{0} drives a red Fiat to work.", "{0} drives a blue Volvo to work."),
    ("What is {0}'s favourite food?", "{0}'s favourite food is lasagne.", "{0}'s favourite food is ramen."),
    ("Which instrument does {0} play?", "{0} plays the violin in a quartet.", "{0} plays the oboe in an orchestra."),
    ("What is {0} allergic to?", "{0} is allergic to peanuts.", "{0} is allergic to shellfish."),
    ("Who is {0}'s doctor?", "{0}'s doctor is Dr Meyer.", "{0}'s doctor is Dr Okafor."),
    ("Which team does {0} support?", "{0} supports the team from the harbour.", "{0} supports the team from the hill."),
    ("How does {0} get to the office?", "{0} gets to the office by train.", "{0} gets to the office by bicycle."),
    ("What time does {0} get up?", "{0} gets up at six every day.", "{0} gets up at nine every day."),
]
UNRELATED = [
    "The library closes early on public holidays.",
    "Quarterly figures are due before the board meets.",
    "Two swans nest by the lower lock.",
    "The printer on the third floor is out of toner.",
]
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def answered(engine, case, *, swapped=False, newest=None):
    """Store nine other facts, the old and the new one, and return the two places among the answers."""
    name, (question, old, new) = NAMES[case % len(NAMES)], CHANGES[case // len(NAMES)]
    facts = [
        (earlier if case % 2 else later) for number, (_, earlier, later) in enumerate(CHANGES) if number != case // 10
    ]
    facts.insert(case % 5, old)
    facts.append(new)
    if newest:
        facts.append(newest)
    dates = [START + timedelta(days=3 * number) for number in range(len(facts))]
    if swapped:
        first, last = facts.index(old), facts.index(new)
        dates[first], dates[last] = dates[last], dates[first]
    me = engine.persona(f"case-{case}-{swapped}-{bool(newest)}")
    me.memories.write_many(
        [{"content": fact.format(name), "event_time": date} for fact, date in zip(facts, dates, strict=True)]
    )
    order = [hit.memory.content for hit in me.recall(question.format(name), limit=20)]
    return [order.index(fact.format(name)) if fact.format(name) in order else 99 for fact in (new, old)]


def share(results):
    results = list(results)
    return sum(results) / len(results)


@pytest.fixture
def cases(backend):
    return range(100) if backend.name == "sqlite-memory" else range(0, 100, 7)


@pytest.fixture
def slack(cases):
    """Of fifteen cases one more or less is .07."""
    return 0.0 if len(cases) == 100 else 0.1


# Hashed words see that two facts say the same only by the words they share, and a few of these share hardly any.
@pytest.mark.parametrize(("embedder", "least", "steady"), [("hash/words", 0.75, 0.95), ("wordllama", 0.95, 0.98)])
@pytest.mark.in_turn
def test_the_newer_fact_answers_because_it_says_the_same_and_is_newer(
    make_engine, cases, slack, embedder, least, steady
):
    engine = make_engine(embedder=embedder)
    plain = [answered(engine, case) for case in cases]
    swapped = [answered(engine, case, swapped=True) for case in cases]
    beside = [answered(engine, case, newest=UNRELATED[case % len(UNRELATED)]) for case in cases]

    assert share(new < old for new, old in plain) >= least - slack
    assert share(old < new for new, old in swapped) >= least - slack
    assert share(before[0] == after[0] for before, after in zip(plain, beside, strict=True)) >= steady - slack
    assert share(new < old for new, old in beside) >= least - slack
