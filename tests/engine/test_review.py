"""What a conversation is looked through for in the background: counted exactly, one call, and only what is sure."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from memoranda.errors import ModelUnavailable
from memoranda.policies import JobPolicy, Policies, ReviewPolicy
from memoranda.presets import STATEMENTS
from memoranda.reports import Reviewed
from memoranda.testing import ScriptedModel

EMPTY = '{"user_model": [], "memories": []}'


def findings(*dimensions, memories=()):
    names = ("dimension", "content", "confidence")
    return json.dumps({"user_model": [dict(zip(names, d, strict=True)) for d in dimensions], "memories": memories})


def event(content, confidence=9, **fields):
    return {"content": content, "confidence": confidence, "category": "event", "importance": 5, **fields}


@pytest.fixture
def opened(make_engine):
    """An engine whose jobs nobody does unless the test asks, a conversation of one turn, and the model."""

    def open_(*answers, **options):
        model = ScriptedModel(answers)
        policy = JobPolicy(delay_seconds=0)
        engine = make_engine(model=model, **{"background": "external", "job_policy": policy, **options})
        me = engine.persona("main")
        chat = me.conversation("thread-1")
        chat.append([{"role": "user", "content": "I moved to Ghent."}, {"role": "assistant", "content": "Lovely."}])
        return engine, me, chat, model

    return open_


def texts(me):
    return {one.dimension: (one.content, one.confidence) for one in me.user_model.list()}


@pytest.mark.behaviour("C02", "C05", "C06")
def test_a_review_comes_after_every_eighth_delivered_turn(opened):
    engine, _, chat, model = opened(EMPTY, EMPTY)
    chat.append("A long story. " * 5_000)
    for turn in range(1, 17):
        assert chat.turn_done() is (turn % 8 == 0)
        assert len(engine.jobs()) == (turn % 8 == 0)
        if turn % 8 == 0:
            assert chat.record().user_turns == 0
            chat.append(f"turn {turn}")
            engine.drain()
    assert len(model.calls) == 2
    assert len(model.calls[0].text) < 20_000
    assert "moved to Ghent" in model.calls[0].text and "moved to Ghent" not in model.calls[1].text


@pytest.mark.behaviour("C03")
def test_turns_that_end_at_once_fire_once_a_threshold_and_leave_one_job(opened):
    engine, _, chat, _ = opened()
    handle = chat.handle

    def turn(number):
        handle.append(f"turn {number}")
        return handle.turn_done()

    with ThreadPoolExecutor(16) as pool:
        fired = list(pool.map(turn, range(16 * 3)))
    assert sum(fired) == 6 and chat.record().user_turns == 0
    said = [message.text for message in chat.messages()][2:]
    assert sorted(said) == sorted(f"turn {number}" for number in range(16 * 3))
    assert [job.kind for job in engine.jobs()] == ["review"]


@pytest.mark.behaviour("C04")
def test_only_delivered_turns_count(opened):
    engine, _, chat, _ = opened()
    for number in range(8):
        chat.append(f"a turn that failed, {number}")
    assert chat.record().user_turns == 0 and engine.jobs() == []


def test_a_policy_says_how_often_and_zero_is_never(opened, make_engine):
    _, _, chat, _ = opened(preset=Policies(review=ReviewPolicy(every=1)))
    assert chat.turn_done() and chat.turn_done()
    _, _, chat, _ = opened(preset=Policies(review=ReviewPolicy(every=0)))
    assert not any(chat.turn_done() for _ in range(9))


@pytest.mark.behaviour("C30")
def test_statements_are_kept_after_as_many_turns_as_the_policy_says(opened):
    said = event("Ana moved to Ghent.", about="everyone", message=1)
    policies = replace(STATEMENTS, review=ReviewPolicy(every=2))
    engine, me, chat, _ = opened(findings(memories=[said]), ModelUnavailable("down"), EMPTY, preset=policies)
    assert [chat.turn_done() for _ in range(2)] == [False, True]
    engine.drain()
    [memory] = me.memories.list()
    [source] = me.memories.get(memory.id).sources
    assert (memory.content, memory.about, source.actor) == ("Ana moved to Ghent.", "everyone", "memory")
    assert (source.session, source.excerpt) == ("thread-1", "I moved to Ghent.")
    chat.append("And now to Bruges.")
    assert [chat.turn_done() for _ in range(2)] == [False, True]
    engine.drain()
    assert me.memories.list() == [memory] and engine.jobs() == []


def test_turns_are_counted_on_where_nobody_does_jobs(opened):
    engine, _, chat, _ = opened(EMPTY, background="off")
    assert not any(chat.turn_done() for _ in range(9))
    assert engine.jobs() == [] and chat.record().user_turns == 9
    assert chat.review().messages == 2 and chat.record().user_turns == 0


@pytest.mark.behaviour("C07")
def test_the_model_sees_the_user_model_and_the_top_memories_and_an_echo_is_not_written(opened):
    echo = event("The March release went out on the 12th.")
    _, me, chat, model = opened(findings(("baseline", "lives in Lisbon", 9), memories=[echo]), preset="journal")
    me.memories.write("The March release went out on the 12th.", importance=9)
    me.user_model.write("baseline", "lives in Lisbon", confidence=6)
    done = chat.review()
    assert (done.messages, done.memories, done.dimensions) == (2, 0, 0)
    assert "- [baseline, conf=6] lives in Lisbon" in model.calls[0].text
    assert "The March release went out on the 12th." in model.calls[0].text
    assert len(me.memories.list()) == 1 and len(me.user_model.history("baseline")) == 1


@pytest.mark.behaviour("C08")
def test_only_what_the_model_is_sure_of_is_written(opened):
    answer = findings(
        ("goals", "run a marathon", 7),
        ("feedback", "shorter answers", 6),
        ("health", "allergic to nuts", None),
        memories=[
            event("Ana moved to Ghent.", 7, importance=10),
            event("Ana may move on.", 6),
            event("No number.", "?"),
        ],
    )
    _, me, chat, _ = opened(answer)
    done = chat.review()
    assert (done.memories, done.dimensions, done.dropped, done.problem) == (1, 1, 4, None)
    assert texts(me) == {"goals": ("run a marathon", 7)}
    [memory] = me.memories.list()
    assert (memory.content, memory.confidence, memory.importance) == ("Ana moved to Ghent.", 7, 7)
    [source] = me.memories.get(memory.id).sources
    assert (source.channel, source.session, source.actor) == ("review", "thread-1", "memory")


def test_a_dimension_that_is_there_is_rewritten_at_eight_and_in_a_journal_at_seven(opened):
    known, new = "lives in Lisbon", "lives in Ghent, before that in Lisbon"
    for preset, confidence, expected in (
        ("standard", 7, known),
        ("standard", 8, new),
        ("journal", 6, known),
        ("journal", 7, new),
    ):
        _, me, chat, _ = opened(findings(("Baseline", new, confidence)), preset=preset)
        chat.clear()
        chat.append("I moved to Ghent.")
        me.user_model.write("baseline", known)
        assert chat.review().dimensions == (expected == new)
        assert texts(me)["baseline"][0] == expected
    assert [one.content for one in me.user_model.history("baseline")][-2:] == [known, new]


@pytest.mark.behaviour("C08")
def test_no_dimension_is_wiped(opened):
    known = "Ana lives in Lisbon with two cats, works at night, and answers mail on Mondays."
    _, me, chat, _ = opened(
        findings(("baseline", "Lives in Ghent.", 9), ("goals", " ", 10), ("feedback", "x" * 2_001, 10)),
        findings(("baseline", "Lives in Ghent.", 10)),
    )
    me.user_model.write("baseline", known)
    done = chat.review()
    assert (done.dimensions, done.dropped) == (0, 3) and texts(me) == {"baseline": (known, 5)}
    chat.append("Really, all of that is over.")
    assert chat.review().dimensions == 1 and texts(me) == {"baseline": ("Lives in Ghent.", 8)}


def test_a_dimension_that_changed_while_the_model_thought_keeps_its_text(opened):
    def slow(_):
        writer.user_model.write("baseline", "lives in Turku")
        return findings(("baseline", "lives in Lisbon and Ghent", 9), ("goals", "a nap", 9))

    _, me, chat, _ = opened(slow)
    writer = me.handle
    me.user_model.write("baseline", "lives in Lisbon")
    done = chat.review()
    assert (done.dimensions, done.dropped) == (1, 1)
    assert texts(me)["baseline"][0] == "lives in Turku"


@pytest.mark.behaviour("C09")
def test_nothing_is_put_into_the_conversation(opened):
    engine, _, chat, _ = opened(findings(("goals", "a nap", 9), memories=[event("Ana moved to Ghent.")]))
    before = chat.messages()
    for _ in range(8):
        chat.turn_done()
    engine.drain()
    assert chat.messages() == before


def test_an_answer_that_cannot_be_read_changes_nothing_and_the_job_comes_back(opened):
    broken = '{"user_model": [{"dimension": "goals", "content": "run a mar'
    engine, me, chat, model = opened("[]", broken, ModelUnavailable("asleep"), findings(("goals", "a marathon", 9)))
    done = chat.review()
    assert (done.messages, done.dimensions) == (2, 0) and done.problem
    for _ in range(8):
        chat.turn_done()
    engine.drain()
    assert len(model.calls) == 4 and texts(me) == {"goals": ("a marathon", 8)} and engine.jobs() == []
    assert chat.review().messages == 0


def test_a_job_whose_messages_are_gone_does_nothing(opened):
    engine, _, chat, model = opened()
    for _ in range(8):
        chat.turn_done()
    chat.clear()
    assert engine.drain() == 0 and engine.jobs() == [] and not model.calls


def test_what_a_review_has_read_is_told_to_the_flush(opened):
    _, me, chat, model = opened(findings(memories=[event("Ana moved to Ghent.")]), '["?"]', "[]")
    chat.review()
    for number in range(40):
        me.memories.write(f"Something else, {number}.")
    chat.pending([1, 2])
    chat.flush()
    assert "Ana moved to Ghent." in model.calls[1].text
    assert "Messages 1 to 2 were looked through before" in model.calls[1].text


def test_two_reviews_at_once_apply_one(opened):
    def slow(_):
        done.append(other.review())
        return findings(memories=[event("Ana has moved to Ghent, in Belgium.")])

    done: list[Reviewed] = []
    _, me, chat, _ = opened(slow, findings(memories=[event("Ana moved to Ghent.")]))
    other = chat.handle
    late = chat.review()
    assert done[0].memories == 1 and late.memories == 0 and late.problem
    assert [memory.content for memory in me.memories.list()] == ["Ana moved to Ghent."]


def test_each_scope_is_reviewed_for_itself_and_a_flush_is_told_of_what_was_shown(opened):
    _, me, chat, model = opened(EMPTY, EMPTY, "[]", "[]")
    lab = me.scoped(space="lab").conversation("thread-1")
    lab.append("In the lab.")
    chat.append(["I moved on. " + "So it goes. " * 200, "And on."])
    assert (chat.review().messages, chat.review().messages, chat.review().messages) == (4, 1, 0)
    assert "In the lab." not in model.calls[0].text and "In the lab." in model.calls[1].text
    chat.pending([1, 2, 3, 4, 5])
    assert (chat.flush().messages, chat.flush().messages) == (4, 1)
    assert "Messages 1 to 2, 5 to 5 were looked through before" in model.calls[2].text
    assert "Messages 3 to 3 were looked through before" in model.calls[3].text


def test_an_answer_of_another_shape_is_never_nothing_to_note(opened):
    answers = ({"user_model": "none", "memories": []}, {"user_model": [], "memories": "none"})
    said = 'No. The format would be {"user_model": [], "memories": []} otherwise.'
    _, me, chat, _ = opened(*map(json.dumps, answers), said, '{"user_model": {"goals": "a nap"}}')
    assert all(chat.review().problem for _ in range(3))
    done = chat.review()
    assert (done.dropped, done.problem) == (1, None) and me.user_model.list() == []


def test_turns_that_end_while_a_review_runs_leave_the_next_one(opened):
    def during(_):
        chat = handle.persona("main").conversation("thread-1")
        chat.append("I moved on.")
        for _ in range(8):
            chat.turn_done()
        return EMPTY

    engine, _, chat, model = opened(during, EMPTY)
    handle = engine.handle
    for _ in range(8):
        chat.turn_done()
    assert engine.drain() == 0 and engine.jobs() == [] and chat.record().user_turns == 0
    assert ["I moved on." in call.text for call in model.calls] == [False, True]


def test_reviews_that_rewrite_the_same_dimensions_do_not_wait_for_each_other(opened):
    names = [f"d{number}" for number in range(40)]
    meeting = Barrier(2)

    def answering(order):
        def answer(_):
            meeting.wait(30)
            return findings(*((name, f"text of {name}", 9) for name in order))

        return answer

    engine, _, chat, _ = opened(answering(names), answering(names[::-1]))
    other = engine.handle.persona("main").conversation("thread-2")
    other.append("I moved to Ghent.")
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda one: one.review(), (chat.handle, other)))
    assert [one.problem for one in done] == [None, None] and sum(one.dimensions for one in done) == 40


def test_where_nothing_may_be_written_any_more_no_model_is_asked(make_engine):
    model = ScriptedModel()
    engine = make_engine(model=model, preset="statements", background="external")
    me = engine.persona("main", tenant="acme", user="ana")
    me.spaces.create("home")
    chat = me.scoped(space="home", people=["ana"]).conversation("thread-1")
    chat.append("I moved to Ghent.")
    me.spaces.archive("home")
    assert "archived" in chat.review().problem
    for _ in range(8):
        chat.turn_done()
    assert engine.drain() == 0
    [job] = engine.jobs()
    assert (job.status, job.attempts) == ("failed", 1) and "archived" in job.error and not model.calls
