"""What operators of other memories missed or feared: spans of every verb, and nothing in them that anybody said."""

import asyncio
import inspect
import io
import logging

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags

from memoranda import MemoryEngine
from memoranda.embedders.hash_words import HashWords
from memoranda.embedders.openai import OpenAIEmbedder
from memoranda.errors import EmbedderUnavailable, MemorandaError
from memoranda.item_operations import PutItem
from memoranda.messages import Message
from memoranda.nodes import Node
from memoranda.policies import JobPolicy
from memoranda.telemetry import count_input_tokens
from memoranda.testing import BrokenEmbedder, DeferredEmbedder, ScriptedReranker
from memoranda.testing.handles import handles
from memoranda.testing.openai_server import OpenAIServer

TEXT, ASKED, NAME = "zanzibarium", "quixotical", "persephonia"
PLAIN = {"setup", "revision", "build_indexes", "close", "work", "Tool.run"}
"""Verbs about tables and connections, which the database's instrumentation sees, and those that call other verbs."""
PLAIN |= {f"Items.{verb}" for verb in ("put", "get", "delete", "search", "list_namespaces")}  # a batch of one


class Collector(SpanProcessor):
    """Keeps the spans that ended, while a test looks at them."""

    def __init__(self):
        self.spans = None

    def on_end(self, span):
        if self.spans is not None:
            self.spans.append(span)


COLLECTOR = Collector()


@pytest.fixture(scope="session")
def provider():
    # A process can set one provider only, and only once.
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(COLLECTOR)
    trace.set_tracer_provider(provider)
    return provider


@pytest.fixture
def spans(provider):
    COLLECTOR.spans = []
    yield COLLECTOR.spans
    COLLECTOR.spans = None


def verb_of(span):
    return span.attributes.get("memoranda.verb")


def named(spans, name):
    return [span for span in spans if span.name == name]


def is_child(span, parent):
    return span.parent is not None and span.parent.span_id == parent.context.span_id


# -- every verb


def call_every_verb(engine, tmp_path):
    """Return the answer of each verb, by handle and verb; an error of ours is an answer too."""
    me = engine.persona(f"{NAME}-persona", tenant=f"{NAME}-tenant", user=f"{NAME}-user")
    me = me.scoped(project=f"{NAME}-project", space=f"{NAME}-space", people=[f"{NAME}-person"])
    fields = {"title": TEXT, "category": NAME, "metadata": {TEXT: TEXT}, "core": True, "session": NAME}
    answers = {}

    def call(handle, verb, *arguments, **options):
        label = f"{type(handle.handle).__name__}.{verb}"
        try:
            answers[label] = getattr(handle, verb)(*arguments, **options)
        except MemorandaError as error:
            answers[label] = error
        return answers[label]

    call(me.spaces, "create", f"{NAME}-space")
    call(me.spaces, "list")
    call(me.projects, "add_member", f"{NAME}-project", f"{NAME}-user")
    call(me.projects, "members", f"{NAME}-project")
    first = call(me.memories, "write", f"The {TEXT} release went out.", **fields)
    second, *_ = call(me.memories, "write_many", [f"The {TEXT} is open.", {"content": f"The {TEXT} is closed."}])
    about = f"person:{NAME}-person"
    kept = call(me.memories, "keep", f"Likes the {TEXT}.", about=about)
    call(me, "recall", f"the {ASKED} release")
    call(me.memories, "relevant", f"the {ASKED} release")
    call(me.memories, "nearest", f"the {ASKED} release")
    call(me.memories, "core")
    call(me.memories, "list", types=["semantic"])
    newer = call(me.memories, "supersede", first.id, f"The {TEXT} release was called back.")
    call(me.memories, "get", newer.id)
    call(me.memories, "history", newer.id)
    call(me.memories, "undo", first.id)
    call(me.memories, "mark", second.id, "expired")
    call(me.memories, "forget", kept.memory.id)
    call(me.memories, "delete", first.id)
    call(me.user_model, "write", NAME, f"Works on the {TEXT}.")
    call(me.user_model, "list")
    call(me.user_model, "history", NAME)
    call(me.user_model, "as_of", "2026-01-01")
    call(me.user_model, "undo", NAME)
    call(me.knowledge, "ingest", f"{NAME}-manual", text=f"The {TEXT} leaves at nine.")
    call(me.knowledge, "list")
    call(me.knowledge, "get", f"{NAME}-manual")
    call(me.knowledge, "delete", f"{NAME}-manual")
    nodes = me.collection(f"{NAME}-nodes")
    call(nodes, "add", [Node(key=f"{NAME}-node", content=f"The {TEXT} is blue.")])
    call(nodes, "get", [f"{NAME}-node"])
    call(nodes, "search", f"{ASKED}")
    call(nodes, "count")
    call(nodes, "delete", [f"{NAME}-node"])
    call(nodes, "clear")
    keys = me.record_keys(f"{NAME}-keys")
    call(keys, "now")
    call(keys, "note", [f"{NAME}-key"])
    call(keys, "exist", [f"{NAME}-key"])
    call(keys, "list")
    call(keys, "delete", [f"{NAME}-key"])
    call(me.items, "batch", [PutItem(namespace=(NAME,), key=NAME, value={TEXT: TEXT})])
    call(me.items, "check_embedder")
    call(me.items, "sweep")
    said = me.conversation(f"{NAME}-conversation")
    call(said, "append", [Message(role="user", content=f"The {TEXT} is late.", id="m1"), "Yes."])
    call(said, "reconcile", [Message(role="user", content=f"The {TEXT} is late.", id="m1"), "No."])
    for verb in ("messages", "record", "size", "system_block", "user_model_block", "turn_block", "prompt"):
        call(said, verb)
    call(said, "window", 100)
    for verb in ("instructions", "compact", "pending", "flush", "review", "turn_done", "end_session"):
        call(said, verb)
    call(said, "out_of_sight", [])
    call(said, "archive", ["m1"])
    call(said, "remove", ["m1"])
    call(said, "clear")
    call(me.conversations, "list")
    call(me.conversations, "names")
    call(me.conversations, "search", f"the {ASKED}")
    call(me, "stats")
    call(engine, "check")
    call(engine, "calibrate", tenant=f"{NAME}-tenant", persona=f"{NAME}-persona", user=f"{NAME}-user")
    call(engine, "backfill")
    call(engine, "reembed")
    call(engine, "jobs")
    call(engine, "retry_jobs")
    call(engine, "drain")
    file = io.BytesIO()
    call(engine, "export_to", file)
    call(engine, "import_from", io.BytesIO(file.getvalue()))
    call(engine, "backup", tmp_path / f"{NAME}.db")
    call(engine, "doctor")
    call(engine, "erase", tenant=f"{NAME}-tenant", about=about)
    call(engine, "finish_erasures")
    call(engine, "reapply_erasures")
    call(me.spaces, "archive", f"{NAME}-space")
    call(me.projects, "remove_member", f"{NAME}-project", f"{NAME}-user")
    return answers


def verbs():
    for handle in handles():
        for name, _ in inspect.getmembers(handle, inspect.isfunction):
            label = f"{handle.__name__}.{name}"
            if not name.startswith("_") and hasattr(handle, f"a{name}") and not {name, label} & PLAIN:
                yield label


def test_every_verb_is_one_span(engine, spans, tmp_path):
    answers = call_every_verb(engine, tmp_path)
    assert set(verbs()) == answers.keys()
    roots = [span for span in spans if span.parent is None]
    assert [verb_of(span) for span in roots] == [label.partition(".")[2] for label in answers]
    for span, answer in zip(roots, answers.values(), strict=True):
        assert span.name == span.attributes["gen_ai.operation.name"]
        failed = isinstance(answer, MemorandaError)
        assert span.status.status_code is (StatusCode.ERROR if failed else StatusCode.UNSET), (span.name, answer)
        assert ("error.type" in span.attributes) == failed
    assert {span.name for span in spans if span.parent is not None} == {"embeddings hash/words"}


def test_memory_operations_have_the_names_of_the_conventions(engine, spans, tmp_path):
    call_every_verb(engine, tmp_path)
    # In reverse, for the memories' verbs come before those of the same name.
    operations = {verb_of(span): span.name for span in reversed(spans) if span.parent is None}
    assert {
        verb: operations[verb]
        for verb in (
            "recall",
            "relevant",
            "nearest",
            "core",
            "write",
            "write_many",
            "keep",
            "supersede",
            "mark",
            "undo",
        )
    } == {
        "recall": "search_memory",
        "relevant": "search_memory",
        "nearest": "search_memory",
        "core": "search_memory",
        "write": "create_memory",
        "write_many": "create_memory",
        "keep": "upsert_memory",
        "supersede": "update_memory",
        "mark": "update_memory",
        "undo": "update_memory",
    }
    assert {operations[verb] for verb in ("delete", "forget", "erase", "reapply_erasures")} == {"delete_memory"}


# These are there to say who or where it was, or how a category is called.
SAYS_NAMES = {
    "Persona.stats",
    "Memories.get",
    "Projects.members",
    "Spaces.list",
    "UserModel.write",
    "UserModel.list",
    "UserModel.history",
    "UserModel.as_of",
    "UserModel.undo",
    "MemoryEngine.jobs",
    "MemoryEngine.backup",
    "Knowledge.ingest",
    "Knowledge.list",
    "Knowledge.get",
    "Collection.add",
    "Collection.get",
    "Collection.search",
    "RecordKeys.list",
    "Items.batch",
    "Conversation.record",
    "Conversations.list",
    "Conversations.names",
    "Conversations.search",
}


def test_no_text_and_no_name_is_in_a_span_a_log_record_or_a_repr(make_engine, spans, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    engine = make_engine(background="inline", embedder=DeferredEmbedder(HashWords()))
    answers = call_every_verb(engine, tmp_path)
    assert any(span.name == "run_job" for span in spans) and any(answers.values())
    shown = [span.to_json() for span in spans]
    shown += [f"{record.getMessage()} {vars(record)} {record.exc_text}" for record in caplog.records]
    for line in shown:
        assert not [word for word in (TEXT, ASKED, NAME) if word in line.casefold()], line
    for label, answer in answers.items():
        if isinstance(answer, str):
            continue  # a block that was asked for is its text
        assert TEXT not in repr(answer).casefold() and ASKED not in repr(answer).casefold(), label
        assert NAME not in repr(answer).casefold() or label in SAYS_NAMES, label


# -- what spans say


def test_a_recall_says_what_it_found_and_how_sure_it_is(me, spans):
    written = [me.memories.write(text) for text in ("The March release went out.", "Tea is at four.")]
    spans.clear()
    found, nothing = me.recall("when did the March release go out?"), me.recall("xylophone quartet")
    first, second = named(spans, "search_memory")
    assert first.attributes["gen_ai.memory.record.ids"] == tuple(str(hit.memory.id) for hit in found)
    assert str(written[0].id) in first.attributes["gen_ai.memory.record.ids"]
    assert first.attributes["gen_ai.memory.record.count"] == len(found) > 0
    assert first.attributes["gen_ai.memory.record.scores"] == tuple(hit.score for hit in found)
    assert first.attributes["gen_ai.memory.confidence"] == max(hit.confidence for hit in found)
    assert not first.attributes["gen_ai.memory.abstained"] and not first.attributes["gen_ai.memory.degraded"]
    assert nothing.abstained and second.attributes["gen_ai.memory.abstained"]
    assert second.attributes["gen_ai.memory.record.count"] == 0


def test_an_embedding_is_a_child_with_the_embedders_name(me, spans):
    me.memories.write_many(["one thing", "another thing"])
    embedding, write = spans
    assert is_child(embedding, write) and embedding.name == "embeddings hash/words"
    assert embedding.kind is SpanKind.INTERNAL
    assert dict(embedding.attributes) == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": "hash/words",
        "gen_ai.provider.name": "hash",
        "gen_ai.embeddings.dimension.count": 512,
        "memoranda.embeddings.text.count": 2,
        "memoranda.embeddings.purpose": "text",
    }


def test_a_call_that_leaves_the_machine_is_a_clients(make_engine, spans):
    embedder = BrokenEmbedder(name="openai/some-model", dimensions=8)
    make_engine(embedder=embedder).persona("main").memories.write("one thing")
    [embedding] = named(spans, "embeddings openai/some-model")
    assert embedding.kind is SpanKind.CLIENT and embedding.attributes["gen_ai.provider.name"] == "openai"


def test_the_tokens_that_a_service_counted_are_told(make_engine, spans):
    with OpenAIServer() as server:
        embedder = OpenAIEmbedder(base_url=server.url, api_key=server.key, batch_size=1)
        engine = make_engine(embedder=embedder, background="inline")
        me = engine.persona("main")
        me.memories.write_many(["one thing", "another thing"])
        me.recall("one thing")  # seen before: nobody is asked
    written, asked = (span.attributes for span in named(spans, f"embeddings {embedder.name}"))
    assert len(server.requests) == 2 and written["gen_ai.usage.input_tokens"] >= 4
    assert "gen_ai.usage.input_tokens" not in asked


def test_an_embedder_of_ones_own_can_tell_its_tokens_too(make_engine, spans):
    class Counting(HashWords):
        name, local = "test/counting", False

        def embed(self, texts, purpose="text"):
            for text in texts:
                count_input_tokens(len(text.split()))
            return super().embed(texts)

        async def aembed(self, texts, purpose="text"):
            return self.embed(texts)

    me = make_engine(embedder=Counting()).persona("main")
    me.memories.write_many(["one thing", "another little thing"])
    me.recall("which thing?")  # asked within a time limit
    tokens = [span.attributes["gen_ai.usage.input_tokens"] for span in named(spans, "embeddings test/counting")]
    assert tokens == [5, 2]
    count_input_tokens(1)  # nobody watches


def test_a_reranking_is_a_child_with_the_rerankers_name(make_engine, spans):
    scores = {f"The {TEXT} is open.": 0.5, f"The {TEXT} is closed.": -2.0}
    reranker = ScriptedReranker(scores, name="test/some-model")
    me = make_engine(reranker=reranker).persona("main")
    me.memories.write_many([*scores])
    spans.clear()
    found = me.recall(f"Is the {TEXT} open?")
    reranker.scores = lambda query, texts: [1.0]
    assert me.recall(f"Is the {TEXT} closed?").degraded
    (reranking, failed), (recall, degraded) = named(spans, "rerank test/some-model"), named(spans, "search_memory")
    assert is_child(reranking, recall) and is_child(failed, degraded)
    told = {
        "gen_ai.operation.name": "rerank",
        "gen_ai.request.model": "test/some-model",
        "gen_ai.provider.name": "test",
        "memoranda.rerank.text.count": 2,
    }
    assert dict(reranking.attributes) == told
    assert dict(failed.attributes) == {**told, "error.type": "memoranda.errors.RerankerUnavailable"}
    assert recall.attributes["gen_ai.memory.record.scores"] == (0.5, -2.0) == tuple(hit.score for hit in found)
    assert not recall.attributes["gen_ai.memory.degraded"] and degraded.attributes["gen_ai.memory.degraded"]
    assert not [span for span in spans if TEXT in span.to_json().casefold()]


def test_an_error_is_known_by_its_type_only(make_engine, spans):
    engine = make_engine(embedder=BrokenEmbedder(ConnectionError(f"cannot embed {TEXT}")))
    me = engine.persona("main")
    assert me.memories.write(f"the {TEXT}").degraded
    embedding, write = spans
    assert embedding.attributes["error.type"] == "memoranda.errors.EmbedderUnavailable"
    assert write.status.status_code is StatusCode.UNSET and write.attributes["gen_ai.memory.degraded"]
    with pytest.raises(MemorandaError):
        me.memories.delete(TEXT)
    failed = spans[-1]
    assert failed.attributes["error.type"] == "memoranda.errors.MemoryNotFound"
    for span in (embedding, failed):
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None and not span.events


def test_a_log_record_carries_what_its_span_does(me, spans, caplog):
    caplog.set_level(logging.DEBUG, "memoranda")
    me.memories.write("one thing")
    records = [record for record in caplog.records if record.name == "memoranda.operations"]
    assert [record.getMessage().partition(" took ")[0] for record in records] == [span.name for span in spans]
    for record, span in zip(records, spans, strict=True):
        said = {name: tuple(v) if isinstance(v, list) else v for name, v in vars(record).items() if "." in name}
        assert said == dict(span.attributes)


# -- whose child a span is


def test_what_an_operation_calls_knows_its_span_in_whatever_thread(engine, me, spans):
    seen = []

    def look(conn, tables):
        seen.append(trace.get_current_span().get_span_context().trace_id)

    with trace.get_tracer("host").start_as_current_span("a turn") as turn:
        me.memories.write("one thing")
        if me._mode == "async":
            engine._loop.run(engine.handle._database.aread(look))
        else:
            engine.handle._database.read(look)
    embedding, write, host = spans
    assert is_child(embedding, write) and is_child(write, host)
    assert seen == [turn.get_span_context().trace_id]


async def test_operations_side_by_side_do_not_mix(backend, spans):
    async with MemoryEngine(backend.url, embedder="hash/words", background="off") as engine:
        me = engine.persona("main")
        await me.memories.awrite("one thing")
        spans.clear()
        before = trace.get_current_span()
        await asyncio.gather(*(me.arecall(f"thing number {number}") for number in range(8)))
        assert trace.get_current_span() is before
    recalls, embeddings = named(spans, "search_memory"), named(spans, "embeddings hash/words")
    assert len({span.context.trace_id for span in recalls}) == len(recalls) == len(embeddings) == 8
    assert all(sum(is_child(child, parent) for child in embeddings) == 1 for parent in recalls)


class NeverDone(HashWords):
    def __init__(self):
        super().__init__()
        self.called = asyncio.Event()

    async def aembed(self, texts, purpose="text"):
        self.called.set()
        await asyncio.sleep(60)


async def test_a_cancelled_verb_ends_its_span(spans):
    embedder = NeverDone()
    async with MemoryEngine("sqlite://", embedder=embedder, background="off") as engine:
        writing = asyncio.create_task(engine.persona("main").memories.awrite("one thing"))
        await embedder.called.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert not trace.get_current_span().is_recording()
    assert [span.attributes["error.type"] for span in spans] == ["asyncio.exceptions.CancelledError"] * 2


def test_a_trace_that_is_not_sampled_gets_no_spans(me, spans):
    unsampled = trace.NonRecordingSpan(SpanContext(1, 1, is_remote=True, trace_flags=TraceFlags(0)))
    with trace.use_span(unsampled):
        me.memories.write("one thing")
        assert len(me.recall("thing")) == 1
    assert spans == []


# -- jobs


def test_a_job_is_a_span_with_its_identity(make_engine, spans, caplog):
    caplog.set_level(logging.INFO, "memoranda.jobs")
    later = DeferredEmbedder(HashWords(), [EmbedderUnavailable("down")])
    engine = make_engine(embedder=later, background="external", job_policy=JobPolicy(delay_seconds=0))
    engine.persona("main").memories.write("one thing")
    spans.clear()
    [job] = engine.jobs()
    assert engine.drain() == 0
    failed, done = named(spans, "run_job")
    assert failed.attributes["error.type"] == "memoranda.errors.EmbedderUnavailable"
    assert done.attributes["memoranda.count"] == 1
    for span, attempt in ((failed, 1), (done, 2)):
        assert span.attributes["memoranda.job.id"] == str(job.id)
        assert span.attributes["memoranda.job.kind"] == "embed"
        assert span.attributes["memoranda.job.attempt"] == attempt
        [drain] = named(spans, "drain_jobs")
        assert is_child(span, drain)
    said = [vars(record) for record in caplog.records]
    assert [record["memoranda.job.attempt"] for record in said] == [1, 2]
    assert {record["memoranda.job.id"] for record in said} == {str(job.id)}


def test_looking_for_jobs_is_no_operation(make_engine, spans):
    engine = make_engine(background="inline")
    engine.persona("main").memories.write("one thing")
    engine.persona("main").memories.write("another thing")
    assert {span.name for span in spans} == {"create_memory", "embeddings hash/words"}
