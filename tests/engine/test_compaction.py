"""How a conversation is folded: planned once, flushed, summed up, and changed in one transaction or not at all."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from memoranda.effects import Runner
from memoranda.errors import ConfigurationError, InvalidInput, ModelUnavailable
from memoranda.policies import CompactionPolicy, JobPolicy
from memoranda.protocols import Completion
from memoranda.testing import ScriptedModel

SMALL = CompactionPolicy(keep_tokens=0, max_fold_tokens=10_000)
KEY = "sk-ant-" + "A1b2" * 10


def reply(*contents):
    return json.dumps([{"content": content, "category": "event", "importance": 5} for content in contents])


def turns(*numbers):
    said = [(f"question {number}", f"answer {number}") for number in numbers]
    return [
        {"role": role, "content": text} for pair in said for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


@pytest.fixture
def opened(make_engine):
    """An engine whose jobs nobody does unless the test asks, its model, and a conversation of three turns."""

    def open_(*answers, talk=None, **options):
        model = ScriptedModel(answers)
        policy = JobPolicy(delay_seconds=0)
        engine = make_engine(model=model, **{"background": "external", "job_policy": policy, **options})
        me = engine.persona("main")
        chat = me.conversation("thread-1")
        chat.append(turns(1, 2, 3) if talk is None else talk)
        return engine, me, chat, model

    return open_


def contents(me):
    return sorted(memory.content for memory in me.memories.list())


def state(chat):
    """Everything a compaction may change."""
    record = chat.record()
    folded = [message.position for message in chat.messages() if message.folded]
    return record.summary, folded, record.pending, chat.system_block()


@pytest.mark.behaviour("C10", "P05")
def test_what_is_folded_is_flushed_summed_up_and_taken_out_of_sight(opened):
    _, me, chat, model = opened(reply("Ana asked the first question."), "They spoke of one.")
    me.memories.write("Ana is there.")
    before = chat.system_block()
    done = chat.compact(CompactionPolicy(keep_tokens=15))
    assert (done.folded, done.first, done.last, done.problem) == (2, 1, 2, None)
    assert (done.flushed.messages, done.flushed.written) == (2, 1)
    assert done.summary == chat.record().summary == "They spoke of one."
    for call in model.calls:
        assert "question 1" in call.text and "answer 1" in call.text and "question 2" not in call.text
    assert [message.folded for message in chat.messages()] == [True] * 2 + [False] * 4
    assert [message.text for message in chat.window(1_000)] == ["question 2", "answer 2", "question 3", "answer 3"]
    assert "Ana asked the first question." in chat.system_block() != before
    assert chat.record().pending == 0


def test_the_next_summary_carries_the_one_before_on(opened):
    _, _, chat, model = opened("[]", "First they spoke of <one>.", "[]", "Then of all.")
    chat.compact(CompactionPolicy(keep_tokens=15))
    done = chat.compact(SMALL)
    assert (done.first, done.last, done.summary) == (3, 6, "Then of all.")
    assert "First they spoke of <one>." in model.calls[3].text
    assert "question 1" not in model.calls[2].text + model.calls[3].text
    assert chat.compact(SMALL).problem is None and chat.compact(SMALL).folded == 0 and len(model.calls) == 4


@pytest.mark.behaviour("C14")
def test_a_summary_is_cut_at_a_sentence(opened):
    long = "They spoke of the harbour. " * 400
    cut = Completion("One thing. Another thing th", cut=True)
    _, _, chat, _ = opened("[]", f"<think>Let me see.</think>{long}", "[]", cut)
    summary = chat.compact(SMALL).summary
    assert 3_900 < len(summary) <= 4_000 and summary.endswith("harbour.") and summary.startswith("They")
    chat.append(turns(4))
    assert chat.compact(SMALL).summary == "One thing."


@pytest.mark.behaviour("C12")
@pytest.mark.parametrize("broken", [ModelUnavailable("It is asleep."), "no JSON at all"], ids=["down", "lying"])
def test_a_flush_that_fails_leaves_its_messages_pending_and_the_summary_goes_ahead(opened, caplog, broken):
    engine, me, chat, model = opened(broken, "They spoke.", reply("Ana asked."))
    with caplog.at_level(logging.WARNING, "memoranda.extraction"):
        done = chat.compact(SMALL)
    assert done.folded == 6 and done.summary == "They spoke." and done.flushed.problem
    assert len(caplog.records) == 1 and len(model.calls) == 2
    assert chat.record().pending == 6 and contents(me) == []
    assert [job.kind for job in engine.jobs()] == ["flush"]
    assert engine.drain() == 0 and contents(me) == ["Ana asked."] and chat.record().pending == 0


@pytest.mark.behaviour("P05")
@pytest.mark.parametrize("broken", [ModelUnavailable("asleep"), " ", "<think>So"], ids=["down", "empty", "thinking"])
def test_a_summary_that_fails_leaves_everything_as_it_was_and_nothing_is_extracted_twice(opened, broken):
    _, me, chat, model = opened(reply("Ana asked."), broken, "They spoke.")
    me.memories.write("Ana is there.")
    chat.system_block()
    before = state(chat)
    done = chat.compact(SMALL)
    assert done.folded == 0 and done.first is None and done.problem and done.flushed.written == 1
    assert state(chat) == before and contents(me) == ["Ana asked.", "Ana is there."]

    done = chat.compact(SMALL)
    assert done.folded == 6 and done.flushed.skipped and len(model.calls) == 3
    assert contents(me) == ["Ana asked.", "Ana is there."] and chat.record().pending == 0


def test_without_a_model_it_says_so(opened, make_engine):
    engine = make_engine(model="none")
    chat = engine.persona("main").conversation("thread-2")
    assert chat.compact(SMALL).problem is None
    chat.append(turns(1))
    done = chat.compact(SMALL)
    assert done.folded == 0 and "no language model" in done.problem
    assert chat.record().folded == 0


def test_another_model_can_be_asked_for_one_call(opened):
    other = ScriptedModel(["[]", "By the other."], name="test/other")
    _, _, chat, model = opened()
    assert chat.compact(SMALL, model=other).summary == "By the other."
    assert len(other.calls) == 2 and not model.calls
    for wrong in ({"policy": 3}, {"model": 3}):
        with pytest.raises((InvalidInput, ConfigurationError)):
            chat.compact(**wrong)


def test_only_what_was_not_extracted_before_is_flushed(opened):
    _, me, chat, model = opened(reply("Of the first."), reply("Of the rest."), "They spoke.")
    chat.pending([3, 4])
    chat.flush()
    done = chat.compact(SMALL)
    assert (done.folded, done.flushed.messages) == (6, 4)
    assert "question 2" not in model.calls[1].text and "question 3" in model.calls[1].text
    assert "question 2" in model.calls[2].text and contents(me) == ["Of the first.", "Of the rest."]


@pytest.mark.behaviour("C25")
def test_no_secret_reaches_the_model_nor_the_summary(opened):
    talk = [{"role": "user", "content": f"My key is {KEY}."}, {"role": "assistant", "content": "Noted."}]
    _, _, chat, model = opened("[]", f"The key is {KEY}.", talk=talk)
    assert chat.compact(SMALL).summary == "The key is [REDACTED:anthropic-key]."
    assert all(KEY not in call.text for call in model.calls)


def test_system_messages_are_never_folded_and_a_call_stays_with_its_result(opened):
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "look", "args": {}}]}
    talk = [
        {"role": "system", "content": "Be brief."},
        *turns(1),
        {"role": "user", "content": "Look it up."},
        call,
        {"role": "user", "content": "Hurry."},
        {"role": "tool", "content": "herring " * 200, "tool_call_id": "c1"},
        {"role": "assistant", "content": "Here."},
        *turns(2),
    ]
    _, _, chat, model = opened("[]", "They spoke.", "[]", "They looked.", talk=talk)
    done = chat.compact(CompactionPolicy(keep_tokens=20, max_fold_tokens=100))
    assert (done.folded, done.last) == (2, 3)
    done = chat.compact(CompactionPolicy(keep_tokens=10, max_fold_tokens=100))
    assert (done.folded, done.last) == (5, 8)
    assert "herring" not in model.calls[2].text and "[7] " in model.calls[3].text and len(model.calls[3].text) < 2_600
    assert not chat.messages(limit=1, before=2)[0].folded
    said = [message.text for message in chat.window(1_000) if message.role != "system"]
    assert said == ["question 2", "answer 2"]


class Noting(Runner):
    """Keeps the names of the database functions it is asked for."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.asked = []

    def _perform(self, effect):
        self.asked.append(getattr(getattr(effect, "fn", None), "__name__", type(effect).__name__))
        return super()._perform(effect)


@pytest.mark.behaviour("C13")
def test_the_plan_is_read_once_and_no_transaction_is_open_while_the_model_is_asked(opened):
    engine, _, _, _ = opened("[]", "They spoke.")
    handle = engine.handle
    handle._runner = noting = Noting(handle._database, handle._space, handle._model)
    handle.persona("main").conversation("thread-1").compact(SMALL)
    once = ["plan", "known", "read_before", "Complete", "save", "Complete", "fold"]
    assert [name for name in noting.asked if name in once] == once


def test_two_compactions_at_once_fold_once(opened):
    meeting = Barrier(2)

    def together(_):
        meeting.wait(30)
        return reply("Ana asked.")

    _, me, chat, _ = opened(together, together, "They spoke.", "They spoke.")
    handle = chat.handle
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: handle.compact(SMALL), range(2)))
    assert sorted(one.folded for one in done) == [0, 6]
    [late] = [one for one in done if not one.folded]
    assert "Somebody else was first" in late.problem
    assert contents(me) == ["Ana asked."]
    record = chat.record()
    assert (record.summary, record.folded, record.pending) == ("They spoke.", 6, 0)


def test_a_conversation_that_was_cleared_meanwhile_is_left_alone(opened):
    def clearing(_):
        handle.clear()
        handle.append("A new beginning.")
        return "They spoke."

    _, _, chat, _ = opened("[]", clearing)
    handle = chat.handle
    done = chat.compact(SMALL)
    assert done.folded == 0 and done.problem
    assert [message.text for message in chat.messages(folded=False)] == ["A new beginning."]
    assert chat.record().summary == ""


def test_what_is_appended_meanwhile_is_kept(opened):
    def appending(_):
        handle.append(turns(4))
        return "They spoke."

    _, _, chat, _ = opened("[]", appending)
    handle = chat.handle
    assert chat.compact(SMALL).folded == 6
    assert [message.text for message in chat.messages(folded=False)] == ["question 4", "answer 4"]


def test_what_was_archived_beyond_the_fold_counts_for_nothing(opened):
    """The newest were archived: those that stay must be among the others."""
    _, _, chat, model = opened("[]", "They spoke.")
    archived = chat.archive([5, 6])
    done = chat.compact(CompactionPolicy(keep_tokens=10))
    assert (done.folded, done.last, chat.record().folded) == (2, 2, 4)
    assert [message.text for message in chat.window(1_000)] == ["question 2", "answer 2"]
    chat.append(turns(4))
    model.answers += ["[]", "They spoke on."]
    done = chat.compact(SMALL)
    assert (done.folded, done.first, done.last) == (4, 3, 8) and "question 3" not in model.calls[-1].text
    assert len(archived) == 2 and chat.record().folded == 8


def test_of_a_turn_that_no_call_can_read_at_once_the_rest_stays_pending(opened):
    steps = [{"role": "assistant", "content": f"Step {number}. " + "So it goes. " * 15} for number in range(6)]
    talk = [{"role": "user", "content": "Begin."}, *steps, *turns(1)]
    engine, _, chat, model = opened("[]", "They began.", *["[]"] * 9, talk=talk)
    done = chat.compact(CompactionPolicy(keep_tokens=10, max_fold_tokens=150))
    assert (done.folded, done.flushed.messages, chat.record().pending) == (7, 3, 4)
    assert engine.drain() == 0 and chat.record().pending == 0
    assert (
        sum(f"Step {number}. So" in call.text for number in range(6) for call in model.calls[:1] + model.calls[2:]) == 6
    )


def test_a_message_that_no_call_can_read_is_left_to_a_job(opened):
    talk = [{"role": "user", "content": " ".join(f"Parcel {number}." for number in range(90))}, *turns(1)[1:]]
    engine, _, chat, model = opened("Parcels.", *["[]"] * 9, talk=talk)
    done = chat.compact(CompactionPolicy(keep_tokens=0, max_fold_tokens=100))
    assert done.folded == 2 and "longer than one call" in done.flushed.skipped and chat.record().pending == 2
    assert [job.kind for job in engine.jobs()] == ["flush"] and len(model.calls) == 1
    assert engine.drain() == 0 and chat.record().pending == 0


def test_a_long_run_of_tools_is_folded_between_two_of_its_steps(opened):
    def step(number):
        call = {"id": f"c{number}", "name": "look", "args": {}}
        result = {"role": "tool", "content": "herring " * 20, "tool_call_id": f"c{number}"}
        return [{"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]}, result]

    talk = [{"role": "user", "content": "Find it."}, *(message for number in range(9) for message in step(number))]
    _, _, chat, model = opened("[]", "They look.", talk=talk)
    done = chat.compact(CompactionPolicy(keep_tokens=150, max_fold_tokens=200))
    assert done.folded % 2 == 1 and done.folded >= 5 and done.problem is None
    assert "Step 0." in model.calls[1].text
    window = chat.window(1_000)
    assert len(window) == len(talk) - done.folded and window[0].tool_calls and window[-1].role == "tool"


def test_a_compaction_has_the_rest_flushed_at_once_where_jobs_are_done_in_line(opened):
    _, me, chat, model = opened(reply("Ana asked."), "They spoke.", reply("In the lab."), background="inline")
    me.scoped(space="lab").conversation("thread-1").append("In the lab.")
    chat.append("What is next?")
    assert chat.compact(SMALL).flushed.messages == 6
    assert len(model.calls) == 3 and chat.record().pending == 0
