"""What is saved of messages that leave a model's sight: in one call, each message once, and no failure passes."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event

from memoranda import MemoryEngine
from memoranda.db.queries import extractions, folding, pending_messages
from memoranda.effects import Runner
from memoranda.errors import ConfigurationError, InvalidInput, ModelRefused, ModelUnavailable, NotAllowed
from memoranda.policies import CompactionPolicy, JobPolicy, Policies, RedactionPolicy
from memoranda.protocols import Completion
from memoranda.reports import Pending
from memoranda.testing import ScriptedModel

KEY = "sk-ant-" + "A1b2" * 10
TALK = [
    {"role": "user", "content": "We release Falcon on 12 March."},
    {"role": "assistant", "content": "Noted. I recommend a dry run on the 10th."},
    {"role": "user", "content": "Good, Ben does the dry run."},
]
FALCON = {"content": "Falcon is released on 2026-03-12.", "category": "plan", "importance": 6, "message": 1}
DRY_RUN = {"content": "Ben does the dry run of Falcon on 2026-03-10.", "category": "plan", "message": 3}


def reply(*items):
    return json.dumps(list(items))


@pytest.fixture
def opened(make_engine):
    """An engine whose jobs nobody does unless the test asks, its model, and a conversation of three messages."""

    def open_(*answers, background="external", job_policy=None, name="thread-1", talk=TALK, **options):
        model = ScriptedModel(answers)
        policy = job_policy or JobPolicy(delay_seconds=0)
        engine = make_engine(model=model, background=background, job_policy=policy, **options)
        me = engine.persona("main")
        chat = me.conversation(name)
        chat.append(talk)
        return engine, me, chat, model

    return open_


def contents(me):
    return sorted(memory.content for memory in me.memories.list())


@pytest.mark.behaviour("C11", "C27")
def test_one_call_whose_list_becomes_memories(opened):
    _, me, chat, model = opened(reply(FALCON, DRY_RUN, {"content": "The user likes dry runs.", "importance": 3}))
    assert chat.pending([1, 2, 3]).messages == 3
    done = chat.flush()
    assert (done.messages, done.written, done.problem, done.skipped) == (3, 3, None, None)
    assert contents(me) == [DRY_RUN["content"], FALCON["content"], "The user likes dry runs."]
    assert len(model.calls) == 1 and chat.pending().messages == 0
    assert chat.flush().skipped == "Nothing is pending." and len(model.calls) == 1


def test_a_memory_says_where_it_came_from(opened):
    _, me, chat, _ = opened(reply({"content": "The assistant recommended a dry run.", "message": 2}, FALCON))
    chat.pending([1, 2, 3])
    chat.flush()
    found = {memory.content: me.memories.get(memory.id) for memory in me.memories.list()}
    [said], [advised] = (found[text].sources for text in (FALCON["content"], "The assistant recommended a dry run."))
    assert (said.type, said.session, said.channel, said.actor) == ("user_message", "thread-1", "flush", "memory")
    assert said.excerpt == TALK[0]["content"] and advised.type == "assistant_inference"
    assert found[FALCON["content"]].memory.metadata == {"prompt": "flush/1", "model": "test/scripted"}


@pytest.mark.behaviour("C21")
def test_a_machine_s_numbers_are_capped_where_the_preset_says_so(opened):
    sure = {"content": "Everything matters.", "importance": 99, "confidence": 1.0}
    _, me, chat, _ = opened(reply(sure, {"content": "Little does.", "importance": 0.1}))
    chat.pending([1])
    chat.flush()
    memory = max(me.memories.list(), key=lambda memory: memory.importance)
    assert (memory.importance, memory.confidence) == (7, 8)
    more = {"content": "Nothing matters.", "importance": "10", "confidence": 10}
    _, me, chat, _ = opened(reply(more), preset="journal", name="thread-2")
    chat.pending([1])
    chat.flush()
    memory = me.memories.list(limit=1)[0]
    assert (memory.importance, memory.confidence) == (10, 10)


@pytest.mark.behaviour("C25")
def test_secrets_and_recalled_text_are_gone_before_the_model_sees_anything(opened):
    block = "<memoranda-recall nonce=0a1b2c3d>\nold news about Zanzibar\n</memoranda-recall nonce=0a1b2c3d>"
    talk = [
        {"role": "system", "content": "You remember Atlantis."},
        {"role": "user", "content": f"My key is {KEY}.\n{block}\nUse it."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "recall", "args": {"query": "x"}}]},
        {"role": "tool", "content": "Noise from Babylon.", "tool_call_id": "c1"},
        {"role": "assistant", "content": "Done."},
    ]
    _, me, chat, model = opened(reply({"content": f"The key is {KEY}."}), talk=talk)
    assert chat.pending([1, 2, 3, 4, 5]).messages == 4
    chat.flush()
    [call] = model.calls
    assert "My key is [REDACTED:" in call.text and "Use it." in call.text and "assistant: Done." in call.text
    for unseen in (KEY, "Zanzibar", "Atlantis", "Babylon"):
        assert unseen not in call.text
    assert contents(me) == ["The key is [REDACTED:anthropic-key]."]


def test_what_is_known_is_shown_and_not_saved_again(opened):
    _, me, chat, model = opened(reply({"content": "Falcon is  released on 2026-03-12."}, DRY_RUN), preset="journal")
    me.memories.write(FALCON["content"])
    me.user_model.write("baseline", "lives in Lisbon")
    chat.pending([1, 2, 3])
    assert chat.flush().written == 1
    assert FALCON["content"] in model.calls[0].text and "lives in Lisbon" in model.calls[0].text
    assert contents(me) == [DRY_RUN["content"], FALCON["content"]]


REPLIES = {
    "a fence": (f"```json\n{reply(FALCON)}\n```", 1),
    "thinking aloud": (f"<think>[1] or [2]?</think>{reply(FALCON)}", 1),
    "prose around": (f"Here you are:\n{reply(FALCON)}\nAnything else?", 1),
    "under a name": (json.dumps({"memories": [FALCON]}), 1),
    "a trailing comma": (reply(FALCON)[:-1] + ",]", 1),
    "single quotes": (str([FALCON]), 1),
    "wrong types": (reply({**FALCON, "importance": "7/10", "category": 3, "message": "[1]", "date": "soon"}), 1),
    "a type of its own": (reply({**FALCON, "type": "gossip"}, DRY_RUN), 1),
    "an item without a text": (reply(FALCON, {"importance": 3}), 1),
    "nothing to save": ("[]", 0),
    "nothing to save, under a name": ('{"memories": []}', 0),
    "nothing to save, after thinking": ("<think>hm</think>\n[]", 0),
}
UNREADABLE = {
    "nothing": "",
    "prose": "There is nothing I could save.",
    "thinking only": "<think>What could I",
    "null": "null",
    "broken off at once": '[{"content": "Falc',
    "no texts": '[{"importance": 3}]',
}


@pytest.mark.behaviour("C20")
def test_replies_as_models_really_write_them_are_read(opened):
    _, me, chat, _ = opened(*(text for text, _ in REPLIES.values()), talk=[str(n) for n in range(len(REPLIES))])
    for place, (label, (_, written)) in enumerate(REPLIES.items()):
        for memory in me.memories.list():
            me.memories.delete(memory.id)
        chat.pending([place + 1])
        done = chat.flush()
        assert (label, done.written, done.problem) == (label, written, None)
    assert chat.record().pending == 0


@pytest.mark.behaviour("C12", "C20")
def test_a_reply_that_cannot_be_read_is_never_nothing_to_save(opened, caplog):
    broken = [ModelUnavailable("It is asleep."), ModelRefused("It declines."), RuntimeError(KEY)]
    engine, me, chat, model = opened(*UNREADABLE.values(), *broken)
    chat.pending([1, 2, 3])
    with caplog.at_level(logging.DEBUG, "memoranda"):
        for _ in range(len(UNREADABLE) + len(broken)):
            done = chat.flush()
            assert done.messages == 3 and done.written == 0 and done.problem and done.skipped is None
    assert chat.record().pending == 3 and contents(me) == [] and not model.answers
    failures = [record for record in caplog.records if record.name == "memoranda.extraction"]
    assert len(failures) == len(UNREADABLE) + len(broken)
    assert {record.levelname for record in failures} == {"WARNING"}
    assert {getattr(record, "memoranda.extraction.outcome") for record in failures} == {"failed"}
    assert KEY not in caplog.text and "Falc" not in caplog.text
    assert [job.kind for job in engine.jobs()] == ["flush"]
    watched = [record for record in caplog.records if getattr(record, "memoranda.verb", "") == "flush"]
    assert {getattr(record, "memoranda.extraction.failed") for record in watched} == {True}


def test_of_an_answer_that_breaks_off_the_whole_items_are_saved_and_the_rest_is_asked_for_again(opened):
    cut = reply(FALCON, DRY_RUN)[:-30]
    _, me, chat, model = opened(Completion(cut, cut=True), reply(FALCON, DRY_RUN))
    chat.pending([1, 2, 3])
    done = chat.flush()
    assert (done.written, chat.record().pending) == (1, 3) and "breaks off" in done.problem
    assert chat.flush().written == 1
    assert contents(me) == [DRY_RUN["content"], FALCON["content"]] and chat.record().pending == 0
    assert FALCON["content"] in model.calls[1].text


@pytest.mark.behaviour("C16")
def test_a_job_is_left_once_enough_is_pending_and_does_the_flush(opened):
    policies = Policies(compaction=CompactionPolicy(flush_min_tokens=20))
    engine, me, chat, _ = opened(reply(FALCON, DRY_RUN), preset=policies)
    one = chat.pending([1])
    assert (one.messages, one.job) == (1, False) and 0 < one.tokens < 20
    assert chat.pending([1, 2, 3, 77, "unknown"]).job and chat.pending().messages == 3
    assert [job.kind for job in engine.jobs()] == ["flush"]
    assert engine.drain() == 0
    assert contents(me) == [DRY_RUN["content"], FALCON["content"]]
    sources = [source for memory in me.memories.list() for source in me.memories.get(memory.id).sources]
    assert [(source.session, source.channel) for source in sources] == [("thread-1", "flush")] * 2
    assert (chat.pending().messages, chat.pending([1, 2]).messages, engine.jobs()) == (0, 0, [])


def test_more_than_a_model_reads_at_once_is_flushed_call_by_call(opened):
    policies = Policies(compaction=CompactionPolicy(max_fold_tokens=100))
    talk = [f"Parcel {number} went astray. " + "So it goes. " * 10 for number in range(6)]
    engine, me, chat, model = opened(*(reply(FALCON), reply(DRY_RUN), "[]"), talk=talk, preset=policies)
    chat.pending(range(1, 7))
    chat.end_session()
    assert engine.drain() == 0 and engine.jobs() == [] and chat.record().pending == 0
    assert [call.text.count("Parcel") for call in model.calls] == [2, 2, 2] and len(me.memories.list()) == 2


def test_messages_are_named_by_position_by_id_or_as_they_are(opened):
    _, _, chat, _ = opened(talk=[{"role": "user", "content": text, "id": f"m{text}"} for text in "abc"])
    stored = chat.messages()
    assert [chat.pending([one]).messages for one in (1, "mb", stored[2])] == [1, 2, 3]
    for wrong in ("ma", [1.5], [True], [{"role": "user"}]):
        with pytest.raises(InvalidInput):
            chat.pending(wrong)


def test_the_end_of_a_session_flushes_however_little(opened):
    engine, me, chat, _ = opened(reply(FALCON))
    assert chat.end_session() is False
    chat.pending([1])
    assert chat.end_session() is True and chat.end_session() is True
    assert len(engine.jobs()) == 1 and engine.drain() == 0 and contents(me) == [FALCON["content"]]


def test_a_job_that_fails_is_tried_again_and_one_without_messages_does_nothing(opened):
    engine, me, chat, model = opened("no JSON", reply(FALCON), ModelRefused("No key."))
    chat.pending([1, 2, 3])
    chat.end_session()
    engine.drain()
    assert contents(me) == [FALCON["content"]] and len(model.calls) == 2

    chat.append("One more thing.")
    chat.pending([4])
    chat.end_session()
    engine.drain()
    [job] = engine.jobs()
    assert (job.status, job.attempts, job.error, chat.record().pending) == ("failed", 1, "No key.", 1)

    chat.end_session()
    chat.clear()
    engine.drain()
    assert [job.status for job in engine.jobs()] == ["failed"] and len(model.calls) == 3


def test_without_a_model_messages_stay_pending_and_the_job_waits(opened, make_engine, backend):
    engine, *_ = opened()
    without = make_engine(model="none", background="external") if backend.name != "sqlite-memory" else None
    if without is not None:
        other = without.persona("main").conversation("thread-1")
        other.pending([1, 2, 3])
        assert other.end_session() and without.drain() == 0
        done = other.flush()
        assert (done.messages, done.written) == (3, 0) and "no language model" in done.problem
        assert len(without.jobs()) == 1 and engine.persona("main").conversation("thread-1").record().pending == 3


def test_a_job_works_as_the_scope_and_under_the_preset_that_left_it(make_engine):
    answer = reply({"content": "Ana is allergic to nuts.", "about": "person:ana"}, {"content": "Bo likes tea."})
    model = ScriptedModel([answer])
    engine = make_engine(model=model, background="external")
    base = engine.persona("main", tenant="acme", user="ana", preset="statements")
    base.spaces.create("kitchen")
    here = base.scoped(space="kitchen", people=["ana"])
    chat = here.conversation("thread-1")
    chat.append(TALK)
    chat.pending([1, 2, 3])
    chat.end_session()
    assert engine.drain() == 0
    stored = here.memories.list()
    assert {(m.author, m.space, m.about) for m in stored} == {("ana", "kitchen", "person:ana")} and len(stored) == 2
    assert "person:ana" in model.calls[0].text
    assert base.scoped(people=["ana"]).memories.list() == []


def test_a_statement_that_says_nearly_the_same_is_given_its_text(make_engine):
    model = ScriptedModel([reply({"content": "Ana prefers to have her short answers in English now."})])
    engine = make_engine(model=model, preset="statements")
    me = engine.persona("main").scoped(people=["ana"])
    me.memories.keep("Ana prefers to have her short answers in English.", about="person:ana", importance=9)
    chat = me.conversation("thread-1")
    chat.append(TALK)
    chat.pending([1])
    assert chat.flush().written == 1
    [memory] = me.memories.list()
    assert (memory.content, memory.importance) == ("Ana prefers to have her short answers in English now.", 9)


def test_who_must_be_named_is_named(make_engine):
    engine = make_engine(model=ScriptedModel(), preset="ledger")
    chat = engine.persona("main").conversation("thread-1")
    for verb in (chat.flush, chat.review, chat.compact, chat.pending, chat.turn_done, chat.end_session):
        with pytest.raises(NotAllowed):
            verb()


def test_redaction_that_is_switched_off_is_off(opened):
    policies = Policies(redaction=RedactionPolicy(enabled=False))
    _, _, chat, model = opened("[]", preset=policies, talk=[f"My key is {KEY}."])
    chat.pending([1])
    chat.flush()
    assert KEY in model.calls[0].text


def test_of_two_workers_that_read_the_same_messages_one_saves(opened):
    """The second one answers while the first is asked: it finds the slice taken."""
    done = []

    def slow(_):
        done.append(other.flush())
        return reply(FALCON, {"content": "Ben does the dry run."})

    engine, me, chat, _ = opened(slow, reply(FALCON))
    chat.pending([1, 2, 3])
    other = engine.handle.persona("main").conversation("thread-1")
    late = chat.flush()
    assert done[0].written == 1 and (late.written, late.problem is None) == (0, False)
    assert contents(me) == [FALCON["content"]] and chat.record().pending == 0


def test_sixteen_flushes_at_once_save_each_memory_once(backend, make_engine):
    model = ScriptedModel([reply(FALCON)] * 16)
    engine = make_engine(model=model, preset="journal").handle
    chat = engine.persona("main").conversation("thread-1")
    chat.append(TALK)
    chat.pending([1, 2, 3])
    with ThreadPoolExecutor(16) as pool:
        written = [done.written for done in pool.map(lambda _: chat.flush(), range(16))]
    assert sum(written) == 1 and len(engine.persona("main").memories.list()) == 1
    assert chat.record().pending == 0


def said(*ids, text="So it goes. " * 10):
    return [{"role": "assistant" if n % 2 else "user", "content": f"{id} {text}", "id": id} for n, id in enumerate(ids)]


def test_what_is_not_in_sight_any_more_is_pending_once(opened):
    policies = Policies(compaction=CompactionPolicy(flush_min_tokens=100))
    rules = {"role": "system", "content": "Be kind.", "id": "s"}
    talk = [rules, *said("a", "b", "c", "d"), {"role": "user", "content": "No id."}]
    engine, _, chat, model = opened("[]", "[]", talk=talk, preset=policies)
    assert chat.out_of_sight(["a", "b", "c", "d"]) == chat.pending() == Pending(messages=0, tokens=0, job=False)
    first = chat.out_of_sight(["b", "c", "d"])
    assert (first.messages, first.job) == (1, False) and 0 < first.tokens < 100
    second = chat.out_of_sight(("c", "d", "unknown"))
    assert second == chat.out_of_sight({"d", "c"}) and second.messages == 2
    assert chat.out_of_sight(["d"]).job and engine.drain() == 0
    assert [message.pending for message in chat.messages()] == [False] * 6 and len(model.calls) == 1
    assert chat.out_of_sight(["d"]).messages == 0 and chat.out_of_sight([]).messages == 1
    assert [message.position for message in chat.messages() if message.pending] == [5]


def test_what_was_folded_or_read_is_not_looked_at_again(opened):
    talk = [*said("a", "b"), {"role": "system", "content": "Be kind."}, *said("c", "d", "e", "f")]
    _, _, chat, _ = opened("[]", "A summary.", talk=talk)
    assert chat.compact(CompactionPolicy(keep_tokens=60)).folded == 4
    assert chat.out_of_sight([]).messages == 2
    long = "x" * 300
    chat.append({"role": "user", "content": "A long id.", "id": long})
    assert chat.out_of_sight([long]).messages == 2


def test_nothing_is_out_of_sight_of_a_conversation_that_is_not_there(engine):
    chat = engine.persona("main").conversation("thread-1")
    assert chat.out_of_sight(["a"]).messages == 0
    for wrong in ("a", 3, [3], None):
        with pytest.raises(InvalidInput):
            chat.out_of_sight(wrong)


def test_eight_that_see_the_same_at_once_mark_each_message_once(make_engine):
    engine = make_engine(model=ScriptedModel(), background="external").handle
    chat = engine.persona("main").conversation("thread-1")
    chat.append(said(*"abcdefgh"))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: chat.out_of_sight(["h"]), range(8)))
    assert {pending.messages for pending in found} == {7} and not chat.messages()[-1].pending


def test_what_was_said_in_a_project_and_outside_of_it_is_extracted_apart(make_engine):
    """Or a word said in private would be shared with the members of the project that the next job is of."""
    answers = ({"content": "Apollo starts in May.", "message": 1}, {"content": "Gout.", "message": 2})
    model = ScriptedModel([reply(answer) for answer in answers])
    engine = make_engine(model=model, background="external", preset="ledger")
    ana, ben = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "ben"))
    for persona in (ana, ben):
        persona.projects.add_member("apollo", persona.scope.user)
    for me, said, id in ((ana.scoped(project="apollo"), "Apollo starts in May.", "1"), (ana, "I have gout.", "2")):
        chat = me.conversation("thread-1")
        chat.append([{"role": "user", "content": said, "id": id}])
        chat.pending([id])
        chat.end_session()
    assert engine.drain() == 0
    first, second = model.calls
    assert "gout" not in first.text and "I have gout." in second.text
    found = {memory.content: (memory.project, memory.audience) for memory in ana.memories.list()}
    assert found == {"Apollo starts in May.": ("apollo", "project"), "Gout.": ("", "private")}
    assert [memory.content for memory in ben.memories.list()] == ["Apollo starts in May."]


def test_a_compaction_leaves_what_was_said_in_another_scope_to_a_job(opened):
    _, me, chat, model = opened(reply(FALCON), "They plan Falcon.", reply(DRY_RUN))
    me.scoped(space="lab").conversation("thread-1").append([{"role": "user", "content": "In the lab.", "id": "9"}])
    chat.append("What is next?")
    done = chat.compact(CompactionPolicy(keep_tokens=0))
    assert (done.folded, done.flushed.messages, chat.pending().messages, chat.pending().job) == (4, 3, 1, True)
    assert chat.flush().messages == 1 and "In the lab." in model.calls[2].text
    assert "We release Falcon" not in model.calls[2].text


def test_what_was_left_under_policies_of_a_persona_s_own_waits_for_an_engine_that_has_them(make_engine, caplog):
    model = ScriptedModel([reply(FALCON)])
    engine = make_engine(model=model, background="external", job_policy=JobPolicy(delay_seconds=0))
    chat = engine.persona("main", preset=Policies(limit=3)).conversation("thread-1")
    chat.append([{"role": "user", "content": "We release Falcon.", "id": "1"}])
    chat.pending(["1"])
    chat.end_session()
    for _ in range(2):
        assert engine.drain() == 0
    [job] = engine.jobs()
    assert not model.calls and (job.status, job.attempts) == ("waiting", 0) and "policies of its own" in job.error
    assert caplog.text.count("is left alone: It was left by a persona with policies of its own") == 1
    assert chat.pending().messages == 1 and chat.flush().written == 1


@pytest.mark.parametrize("before", range(270, 300, 3))
def test_an_excerpt_holds_no_half_of_a_secret(opened, before):
    _, me, chat, _ = opened(reply({"content": "There is a key.", "message": 1}), talk=["x " * (before // 2) + KEY])
    chat.pending([1])
    chat.flush()
    [memory] = me.memories.list()
    [source] = me.memories.get(memory.id).sources
    assert "sk-" not in source.excerpt


APART = Policies(compaction=CompactionPolicy(max_fold_tokens=100, flush_min_tokens=10))
"""Two messages of `long` are two slices."""


def long(text):
    return (text + " ") * (300 // len(text))


def declining(messages):
    return ModelRefused("It declines.") if "bombs" in messages[1]["content"] else reply(FALCON)


def test_what_a_model_refuses_is_set_aside_and_everything_else_goes_on(opened, frozen_clock):
    talk = [long("How to make bombs?"), long("We release Falcon.")]
    engine, me, chat, model = opened(*[declining] * 6, talk=talk, preset=APART, clock=frozen_clock)
    assert chat.pending([1, 2]).job and engine.drain() == 0
    assert contents(me) == [FALCON["content"]] and [message.pending for message in chat.messages()] == [True, False]
    [job] = engine.jobs()
    assert (job.status, job.error, len(model.calls)) == ("failed", "It declines.", 2)

    chat.append(long("And then?"))
    assert chat.pending([3]).messages == 2 and engine.drain() == 0 and len(model.calls) == 3
    assert [message.pending for message in chat.messages()] == [True, False, False]
    done = chat.flush()  # whoever asks is answered
    assert (done.messages, done.problem, len(model.calls)) == (1, "It declines.", 4)

    engine.drain()
    frozen_clock.advance(days=2)
    model.answers[:] = [reply(DRY_RUN)] * 2
    chat.append(long("Well?"))
    assert chat.pending([4]).job and engine.drain() == 0
    assert chat.record().pending == 0 and "bombs" in model.calls[-1].text


def test_an_answer_that_cannot_be_read_twice_lets_others_go_first(opened):
    engine, me, chat, model = opened(
        "no", "no", reply(FALCON), "no", "[]", talk=[long("One."), long("Two.")], preset=APART
    )
    chat.pending([1, 2])
    assert engine.drain() == 0 and engine.jobs() == []
    assert ["One." in call.text for call in model.calls] == [True, True, False]
    assert contents(me) == [FALCON["content"]] and chat.record().pending == 1
    assert chat.flush().problem and chat.flush().problem is None and chat.record().pending == 0


def test_a_service_that_refuses_whoever_asks_sets_nothing_aside(opened):
    refused = ModelRefused("It refuses the key.", status=401)
    _, _, chat, model = opened(refused, "[]", "[]", talk=[long("One."), long("Two.")], preset=APART)
    chat.pending([1, 2])
    assert [bool(chat.flush().problem) for _ in range(3)] == [True, False, False]
    assert ["One." in call.text for call in model.calls] == [True, True, False]


def test_where_nothing_may_be_written_any_more_nobody_is_asked_and_others_go_on(make_engine):
    answer = reply({"content": "The desk is red.", "about": "everyone"})
    model = ScriptedModel([answer, answer])
    engine = make_engine(model=model, preset="statements", background="external")
    me = engine.persona("main", tenant="acme", user="ana")
    for number, space in enumerate(("home", "work"), 1):
        me.spaces.create(space)
        chat = me.scoped(space=space, people=["ana"]).conversation("thread-1")
        chat.append([{"role": "user", "content": f"At {space}."}])
        chat.pending([number])
    me.spaces.archive("home")
    assert chat.flush().written == 1 and "At work." in model.calls[0].text
    done = chat.flush()
    assert (done.messages, done.written) == (1, 0) and "archived" in done.problem
    assert not chat.end_session() and engine.drain() == 0 and engine.jobs() == []
    assert chat.record().pending == 1 and len(model.calls) == 1
    me.spaces.create("home")
    assert chat.flush().messages == 1 and chat.record().pending == 0 and "At home." in model.calls[1].text


def test_who_has_left_a_project_keeps_what_was_said_in_it_in_private(make_engine):
    model = ScriptedModel([reply({"content": "Apollo starts in May."}), reply({"content": "Gout."})])
    engine = make_engine(model=model, preset="ledger")
    ana, ben = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "ben"))
    for persona in (ana, ben):
        persona.projects.add_member("apollo", persona.scope.user)
    for number, (me, said) in enumerate(((ana.scoped(project="Apollo"), "Apollo starts."), (ana, "I have gout.")), 1):
        chat = me.conversation("thread-1")
        chat.append([{"role": "user", "content": said}])
        chat.pending([number])
    ana.projects.remove_member("apollo", "ana")
    assert [chat.flush().written, chat.flush().written] == [1, 1]
    assert {memory.audience for memory in ana.memories.list()} == {"private"} and ben.memories.list() == []


def test_a_message_longer_than_one_call_reads_is_read_part_by_part(opened):
    parcels = [f"Parcel {number} went astray." for number in range(60)]
    _, me, chat, model = opened(
        reply(FALCON),
        "[]",
        ModelUnavailable("asleep"),
        *[reply(FALCON, DRY_RUN)] * 5,
        talk=[" ".join(parcels), "Oh."],
        preset=APART,
    )
    chat.pending([1, 2])
    done = chat.flush()
    assert (done.messages, done.written, done.problem) == (1, 1, "asleep") and chat.record().pending == 2
    while chat.record().pending:
        assert chat.flush().problem is None
    seen = "".join(call.text for call in model.calls[3:])
    assert all(parcel in seen for parcel in parcels) and "Oh." in seen
    assert contents(me) == [DRY_RUN["content"], FALCON["content"]]
    assert all(call.text.count("Parcel") < 20 for call in model.calls)


def test_what_one_worker_saves_is_not_set_aside_by_another_nor_the_other_way_round(opened):
    """Of two that read the same messages one is refused: whoever has an answer saves it."""
    done = []

    def late(_):
        done.append(other.flush())
        return ModelRefused("It declines.")

    def first(_):
        done.append(other.flush())
        return reply(DRY_RUN)

    _, me, chat, _ = opened(late, reply(FALCON), first, ModelRefused("It declines."))
    other = me.handle.conversation("thread-1")
    for number in (1, 3):
        chat.pending([number])
        done.append(chat.flush())
        assert sorted(bool(one.problem) for one in done) == [False, True] and chat.flush().skipped
        done.clear()
    assert contents(me) == [DRY_RUN["content"], FALCON["content"]] and chat.record().pending == 0


class Unusable:
    """An embedder that somebody has set up wrongly."""

    name = "test/unusable"
    dimensions = 8

    def embed(self, texts, purpose):
        raise ConfigurationError("The key is refused.")

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


def test_whoever_flushes_or_reviews_is_told_of_an_embedder_that_is_set_up_wrongly(opened):
    findings = json.dumps({"user_model": [], "memories": [FALCON | {"confidence": 9}]})
    _, _, chat, _ = opened(reply(FALCON), findings, reply(FALCON), "A summary.", embedder=Unusable(), background="off")
    chat.pending([1])
    assert chat.flush().problem == chat.review().problem == "The key is refused." and chat.record().pending == 1
    done = chat.compact(CompactionPolicy(keep_tokens=0))
    assert done.folded and done.flushed.problem == "The key is refused." and chat.record().pending == done.folded


class Between(Runner):
    """Does something right before a database function is called for the first time."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.then = {}

    def _perform(self, effect):
        self.then.pop(getattr(getattr(effect, "fn", None), "__name__", ""), lambda: None)()
        return super()._perform(effect)


def test_what_is_marked_while_a_job_finds_nothing_is_not_forgotten(backend, make_engine):
    model = ScriptedModel(["[]", reply(FALCON)])
    handle = make_engine(model=model, background="external").handle
    chat = handle.persona("main").conversation("thread-1")
    chat.append("Nothing.")
    chat.pending([1])
    assert chat.end_session() and chat.flush().messages == 1

    def mark():
        chat.append("We release Falcon.")
        chat.pending([2])
        assert chat.end_session()

    handle._runner = between = Between(handle._database, handle._space, handle._model)
    between.background = handle._background
    handle._background._runner = between
    between.then["finish"] = mark
    assert handle.drain() == 0 and not between.then
    assert chat.record().pending == 0 and handle.jobs() == []


def test_a_clear_in_the_midst_of_a_plan_leaves_nothing_to_fold_or_to_flush(postgres_url):
    """Every statement sees what was committed before it."""
    with MemoryEngine(postgres_url, embedder="none") as engine, MemoryEngine(postgres_url, embedder="none") as other:
        me, late = engine.persona("main"), other.persona("main").conversation("thread-1")
        chat, database = me.conversation("thread-1"), engine._database
        left = 0

        def clearing(conn, cursor, statement, *rest):
            nonlocal left
            if "FROM memoranda.messages" in statement:
                left -= 1
                if left == 0:
                    late.clear()

        event.listen(database._engine, "after_cursor_execute", clearing)
        scope, setting, policy = me.scope, chat._context.setting(), CompactionPolicy(keep_tokens=0)
        for look in (
            lambda: database.read(folding.plan, scope, "thread-1", policy),
            lambda: database.read(pending_messages.next_slice, scope, "thread-1", 100),
            lambda: database.read(extractions.reviewable, setting, "thread-1"),
        ):
            for statement in (1, 2, 3):
                left = 0
                said = chat.append([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
                chat.pending(said)
                left = statement
                assert look() is None or statement > 1
