"""The OpenAI embedder against a local server: what it sends, what it makes of failures, where it can be called."""

import asyncio
import base64
import gc
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.embedders import openai_wire as wire
from memoranda.embedders import resolve
from memoranda.embedders.openai import OpenAIEmbedder
from memoranda.errors import ConfigurationError, EmbedderRefused, EmbedderUnavailable, ExtraMissing, MemorandaError
from memoranda.protocols import Embedder
from memoranda.testing.openai_server import KEY, LOCAL_MODELS, Fault, OpenAIServer, rate_limited, revoked, vector_of


def open_embedder(server, model="text-embedding-3-small", **options):
    return OpenAIEmbedder(model, **{"base_url": server.url, "api_key": server.key, "dimensions": 8, **options})


# -- choosing it


@pytest.mark.behaviour("E02")
def test_it_is_chosen_by_name_with_key_and_address_from_the_environment(server, embed, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)

    embedder = resolve("openai/text-embedding-3-small")
    shorter = resolve("openai/text-embedding-3-small@512")

    assert isinstance(embedder, OpenAIEmbedder) and isinstance(shorter, Embedder)
    assert (embedder.name, embedder.dimensions) == ("openai/text-embedding-3-small", 1536)
    assert (shorter.name, shorter.dimensions) == ("openai/text-embedding-3-small", 512)
    assert embed(embedder, ["hello"]).shape == (1, 1536) and embed(shorter, ["hello"]).shape == (1, 512)
    assert [request.body["dimensions"] for request in server.requests] == [1536, 512]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_server_that_is_named_is_sent_no_key_that_was_not_meant_for_it(local_server, embed, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embedder = OpenAIEmbedder("bge-m3", base_url=local_server.url)
    assert embed(embedder, ["hello"]).shape == (1, 1024)
    assert local_server.requests[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize(
    ("name", "model", "dimensions"),
    [
        ("openai/text-embedding-3-large", "text-embedding-3-large", 1536),
        ("openai/text-embedding-ada-002", "text-embedding-ada-002", 1536),
        ("openai/bge-m3", "bge-m3", 1024),
        ("openai/bge-m3:latest", "bge-m3:latest", 1024),
        ("openai/BAAI/bge-m3@1024", "BAAI/bge-m3", 1024),
        ("openai/@cf/baai/bge-base-en-v1.5@768", "@cf/baai/bge-base-en-v1.5", 768),
    ],
)
def test_names_hold_model_and_length(name, model, dimensions):
    embedder = resolve(name)
    assert isinstance(embedder, OpenAIEmbedder)
    assert (embedder.model, embedder.dimensions) == (model, dimensions)


@pytest.mark.parametrize("name", ["openai", "openai/", "openai/two words", "OpenAI/x@8"])
def test_other_names_are_refused(name):
    with pytest.raises(ConfigurationError, match="openai/MODEL"):
        resolve(name)


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"dimensions": 0},
        {"timeout": 0},
        {"max_retries": -1},
        {"batch_size": 0},
        {"batch_tokens": 0},
        {"api_key": "hunter2\nhunter3"},
        {"base_url": "localhost:11434/v1"},
        {"base_url": "https://ana:hunter2@example.com/v1"},
    ],
)
def test_unusable_options_are_refused(options):
    with pytest.raises(ConfigurationError) as caught:
        OpenAIEmbedder(**options)
    assert "hunter2" not in str(caught.value)


def test_auto_never_chooses_it_not_even_in_a_store_that_it_made(make_engine, server, backend, monkeypatch):
    if backend.name == "sqlite-memory":
        pytest.skip("not applicable: a store in memory has one engine")
    me = make_engine(embedder=open_embedder(server)).persona("main")
    me.memories.write("The office is in Lisbon.")
    before = len(server.requests)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)

    for chosen in ("auto", None):
        answer = make_engine(embedder=chosen).persona("main").recall("lisbon office")
        assert [hit.memory.content for hit in answer] == ["The office is in Lisbon."]
        assert "openai/text-embedding-3-small@8" in answer.degraded
    assert len(server.requests) == before


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)  # as where it is not installed: not found, and no import
    with pytest.raises(ExtraMissing, match=r"memoranda\[openai\]"):
        resolve("openai/text-embedding-3-small")


def test_the_client_is_not_loaded_before_the_first_call():
    script = (
        "import sys, memoranda.embedders\n"
        "memoranda.embedders.resolve('openai/text-embedding-3-small')\n"
        "assert 'openai' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# -- what is sent


@pytest.mark.behaviour("W05")
def test_a_length_is_asked_only_of_models_that_take_the_wish(server, embed):
    server.models["other"] = 24
    for model, dimensions in (("text-embedding-3-large", 100), ("text-embedding-ada-002", 1536), ("other", 24)):
        assert embed(open_embedder(server, model, dimensions=dimensions), ["hello"]).shape == (1, dimensions)
    assert [request.body.get("dimensions") for request in server.requests] == [100, None, None]
    assert {request.body["encoding_format"] for request in server.requests} == {"base64"}


@pytest.mark.behaviour("E09")
@pytest.mark.parametrize("float_lists", [False, True], ids=["base64", "lists"])
def test_a_local_server_needs_no_key_and_may_answer_in_lists(local_server, embed, float_lists):
    local_server.float_lists = float_lists

    embedder = OpenAIEmbedder("bge-m3", base_url=local_server.url)
    vectors = embed(embedder, ["hello world"])

    assert embedder.configured
    assert vectors.shape == (1, 1024) and vectors[0].tolist() == list(vector_of("hello world", 1024))
    [request] = local_server.requests
    assert request.body == {"model": "bge-m3", "input": ["hello world"], "encoding_format": "base64"}
    assert request.headers["authorization"] == "Bearer none"


@pytest.mark.behaviour("E09")
def test_the_length_of_an_unknown_model_is_learnt_once_or_given(local_server, embed):
    local_server.models["nobody-knows"] = 48

    given_length = OpenAIEmbedder("nobody-knows", base_url=local_server.url, dimensions=48)
    assert not local_server.requests
    learnt = OpenAIEmbedder("nobody-knows", base_url=local_server.url)
    assert learnt.dimensions == 48 and len(local_server.requests) == 1
    assert embed(given_length, ["hello"]).tolist() == embed(learnt, ["hello"]).tolist()


def test_a_length_that_cannot_be_learnt_says_why(local_server):
    local_server.models["nobody-knows"] = 48
    local_server.fail(Fault(503), 1)
    with pytest.raises(EmbedderUnavailable, match="HTTP 503"):
        OpenAIEmbedder("nobody-knows", base_url=local_server.url, max_retries=0)


@pytest.mark.behaviour("E05", "E08")
def test_texts_go_in_batches_and_come_back_in_order(server, embed):
    texts = [f"text number {number}" for number in range(300)]
    server.fail(Fault(reverse=True))

    vectors = embed(open_embedder(server), texts)

    assert [len(request.body["input"]) for request in server.requests] == [128, 128, 44]
    assert server.texts == texts
    assert vectors.tolist() == [list(vector_of(text, 8)) for text in texts]


def test_a_smaller_limit_of_the_server_is_kept(local_server, embed):
    local_server.max_inputs = 32
    options = {"base_url": local_server.url, "dimensions": 1024}
    texts = [f"text {number}" for number in range(70)]

    assert embed(OpenAIEmbedder("bge-m3", **options), texts).shape == (70, 1024)  # unasked, for a model of one's own
    with pytest.raises(EmbedderRefused, match="limits of a batch"):
        embed(OpenAIEmbedder("bge-m3", batch_size=64, **options), texts)
    local_server.max_inputs = 8
    assert embed(OpenAIEmbedder("bge-m3", batch_size=8, **options), texts).shape == (70, 1024)


def test_long_texts_share_a_request_only_within_its_tokens(server, embed):
    embed(open_embedder(server), ["word " * 2_400] * 100)
    assert [len(request.body["input"]) for request in server.requests] == [41, 41, 18]


def test_a_text_that_is_too_long_for_the_model_is_cut_with_a_warning(server, embed, caplog):
    with caplog.at_level(logging.WARNING, logger="memoranda.embedders"):
        vectors = embed(open_embedder(server), ["茶" * 12_000, "short"])

    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-3)
    assert [len(text) for text in server.texts] == [5_460, 5]
    [record] = caplog.records
    assert "1 of 2 texts" in record.getMessage() and "茶" not in record.getMessage()


def test_an_empty_text_is_the_zero_vector_and_is_not_sent(server, embed):
    vectors = embed(open_embedder(server), ["", "hello", " \n"])
    assert server.texts == ["hello"]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([0, 1, 0], abs=1e-3)
    assert embed(open_embedder(server), []).shape == (0, 8)


def test_half_a_character_does_no_harm(server, embed):
    embed(open_embedder(server), ["a\ud800b"])
    assert server.texts == ["a?b"]


@pytest.mark.behaviour("E06")
def test_tags_travel_with_their_purpose(server, embed):
    embed(open_embedder(server, tags={"team": "Zürich"}), ["hello"])
    embed(open_embedder(server), ["hello"])

    tagged, plain = [request.headers.get("x-memoranda-tags") for request in server.requests]
    assert json.loads(tagged) == {"team": "Zürich", "purpose": "memory"}
    assert plain is None


# -- what becomes of failures

FAULTS = {
    "limited": (rate_limited(), r"limits its calls \(HTTP 429, rate_limit_exceeded\)\.$", 2),
    "limited for long": (rate_limited(60), r"\(HTTP 429, rate_limit_exceeded\)\. It asks to be tried again in 60 s", 1),
    "error": (Fault(500), r"is failing \(HTTP 500\)", 2),
    "overloaded": (Fault(503, headers={"retry-after": "60"}), r"HTTP 503\)\. .* in 60 s", 1),
    "broken off": (Fault(broken_off=True), "broke off", 2),
    "not JSON": (Fault(body=b"<html>502 Bad Gateway</html>"), "not JSON", 1),
    "truncated": (Fault(body=b'{"object": "list", "data": [{"object": "embedd'), "not whole", 1),
    "no data": (Fault(body=b'{"error": {"message": "overloaded"}}'), "no list of embeddings", 1),
    "too few": (Fault(count=-1), "1 vectors came for 2 texts", 1),
    "too many": (Fault(count=1), "3 vectors came for 2 texts", 1),
}


@pytest.mark.behaviour("W07")
@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_service_is_unavailable_and_heals(server, embed, name):
    fault, message, requests = FAULTS[name]
    embedder = open_embedder(server, max_retries=1)
    server.fail(fault)

    with pytest.raises(EmbedderUnavailable, match=message) as caught:
        embed(embedder, ["one", "two"])

    assert not isinstance(caught.value, EmbedderRefused)
    assert caught.value.retry_after == (60 if "60" in fault.headers.values() else None)
    assert len(server.requests) == requests
    server.fail(None)
    assert embed(embedder, ["one", "two"]).shape == (2, 8)


@pytest.mark.behaviour("W07")
@pytest.mark.parametrize("fault", [rate_limited(0.01), Fault(500), Fault(broken_off=True)])
def test_a_short_failure_is_not_noticed(server, embed, fault):
    server.fail(fault, 1)
    assert embed(open_embedder(server), ["one"]).shape == (1, 8)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "fault",
    [Fault(delay=60), Fault(drip=0.02), rate_limited(0.19), Fault(500)],
    ids=["silent", "byte by byte", "after a wait", "before a further try"],
)
def test_a_call_ends_at_its_time_limit(server, embed, fault):
    server.fail(fault)
    embedder = open_embedder(server, max_retries=9)
    for options in ({"timeout": 0.2}, {"timeout": 0.3}):
        with pytest.raises(EmbedderUnavailable, match=rf"within {options['timeout']} s|HTTP 429"):
            embed(embedder, ["one"], **options)


def test_the_time_limit_grows_with_the_requests(server, embed):
    server.fail(Fault(delay=60))
    with pytest.raises(EmbedderUnavailable, match=r"within 0\.3 s"):
        embed(open_embedder(server, timeout=0.1, batch_size=1), ["one", "two", "three"])


def test_an_address_where_nothing_listens_is_unavailable(embed):
    embedder = OpenAIEmbedder(base_url="http://127.0.0.1:9/v1", max_retries=0)
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        embed(embedder, ["one"])


@pytest.mark.behaviour("W05")
def test_a_wrong_length_names_both(server, embed):
    server.fail(Fault(length=1535))
    with pytest.raises(ConfigurationError, match="1535 numbers where 1536 were expected"):
        embed(open_embedder(server, dimensions=None), ["one"])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (revoked(), "check OPENAI_API_KEY"),
        (Fault(403, "no_access"), "HTTP 403, no_access"),
        (Fault(404, "model_not_found"), "check the model's name and the base URL"),
        (Fault(400, KEY), r"refuses the request: .* \(HTTP 400\)"),
        (Fault(422), r"refuses the request: .* \(HTTP 422\)"),
    ],
)
def test_a_refusal_can_be_told_from_an_outage_and_is_not_tried_again(server, embed, fault, message):
    server.fail(fault)
    with pytest.raises(EmbedderRefused, match=message) as caught:
        embed(open_embedder(server), ["one"])
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.status, copy.retry_after, str(copy)) == (fault.status, None, str(caught.value))
    assert len(server.requests) == 1


def test_a_key_may_come_from_a_file_that_ends_in_a_line_break(server, embed):
    assert embed(open_embedder(server, api_key=f"{KEY}\n"), ["one"]).shape == (1, 8)


@pytest.mark.behaviour("W06")
def test_without_a_key_nothing_is_sent(embed):
    embedder = OpenAIEmbedder()
    assert not embedder.configured
    with pytest.raises(EmbedderRefused, match="set OPENAI_API_KEY"):
        embed(embedder, ["one"])
    assert embed(embedder, ["", " "]).shape == (2, 1536)


@pytest.mark.behaviour("W49")
def test_the_check_says_what_is_wrong(server, mode):
    def check(embedder):
        asyncio.run(embedder.acheck()) if mode == "async" else embedder.check()

    check(open_embedder(server))
    with pytest.raises(EmbedderRefused, match="model's name"):
        check(open_embedder(server, "text-embedding-9"))
    with pytest.raises(EmbedderRefused, match="OPENAI_API_KEY"):
        check(open_embedder(server, api_key="sk-other"))
    with pytest.raises(ConfigurationError, match="1536 numbers where 8 were"):
        check(open_embedder(server, "text-embedding-ada-002"))
    server.fail(Fault(503))
    with pytest.raises(EmbedderUnavailable, match="HTTP 503"):
        check(open_embedder(server, max_retries=0))


def test_neither_key_nor_text_is_in_a_log_a_repr_or_an_error(server, embed, caplog):
    caplog.set_level(logging.DEBUG)
    embedder = open_embedder(server, timeout=0.5, max_retries=1)
    shown = [repr(embedder), repr(vars(embedder))]
    for fault in (None, revoked(), Fault(500, message=f"{KEY} cannot embed 'a private plan'"), Fault(delay=60)):
        server.fail(fault)
        try:
            embed(embedder, ["a private plan"])
        except MemorandaError as error:
            assert error.__cause__ is None and error.__context__ is None
            shown += ["".join(traceback.format_exception(error, chain=True)), repr(vars(error))]
    assert len(shown) == 8
    for text in (*shown, caplog.text):
        assert KEY not in text
        assert "private plan" not in text.replace('["a private plan"]', "")  # this file's own line


# -- where it can be called


def test_event_loops_that_end_threads_and_plain_code_share_one_embedder(server):
    embedder = open_embedder(server)
    expected = [list(vector_of("hello", 8))]

    async def inside():
        assert embedder.embed(["hello"]).tolist() == expected  # blocks, as it says, but does not fail
        rows = await asyncio.gather(*(embedder.aembed(["hello"]) for _ in range(10)))
        assert all(row.tolist() == expected for row in rows)

    for _ in range(3):
        asyncio.run(inside())
    calls = [embedder.embed, lambda texts: asyncio.run(embedder.aembed(texts))] * 16
    with ThreadPoolExecutor(8) as pool:
        assert all(rows.tolist() == expected for rows in pool.map(lambda call: call(["hello"]), calls))


def test_a_cancelled_call_ends_and_harms_no_other(server):
    embedder = open_embedder(server)
    server.fail(Fault(delay=60), 1)

    async def cancel():
        slow = asyncio.create_task(embedder.aembed(["slow"]))
        while not server.requests:
            await asyncio.sleep(0.01)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return await embedder.aembed(["quick"])

    assert asyncio.run(cancel()).shape == (1, 8)


def test_an_embedder_that_is_gone_leaves_no_thread(server):
    before = set(threading.enumerate())
    embedder = open_embedder(server)
    embedder.embed(["hello"])
    [line] = [thread for thread in set(threading.enumerate()) - before if thread.name == "memoranda-openai"]
    del embedder
    gc.collect()
    line.join(10)
    assert not line.is_alive()


FORK = """
import os, sys
from memoranda.embedders.openai import OpenAIEmbedder
embedder = OpenAIEmbedder(base_url=sys.argv[1], dimensions=8)
first = embedder.embed(["parent"]).tolist()
child = os.fork()
if not child:
    right = embedder.embed(["parent"]).tolist() == first
    del embedder
    os._exit(0 if right else 1)
_, status = os.waitpid(child, 0)
assert embedder.embed(["parent"]).tolist() == first
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not applicable: this platform does not fork")
def test_a_child_of_a_fork_and_its_parent_go_on():
    with OpenAIServer(key=None) as server:
        subprocess.run([sys.executable, "-c", FORK, server.url], check=True, timeout=60)
        assert server.texts == ["parent"] * 3


# -- with the engine


@pytest.mark.behaviour("E07")
@pytest.mark.parametrize("name", ["hash/words", "openai/text-embedding-3-small@512", "openai/bge-m3"])
def test_another_embedder_is_another_setting_and_no_other_code(make_engine, monkeypatch, name):
    with OpenAIServer(models={"text-embedding-3-small": 1536, **LOCAL_MODELS}) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("MEMORANDA_EMBEDDER", name)
        engine = make_engine(embedder=None)
        me = engine.persona("main")
        me.memories.write_many(["The office is in Lisbon.", "Ana's dog is called Rex."])

        [hit, *_] = me.recall("Where is the office?")

        assert hit.memory.content == "The office is in Lisbon."
        assert me.stats().embedder.startswith(name.partition("@")[0])


@pytest.mark.behaviour("S06")
def test_a_key_that_was_revoked_costs_no_memory(make_engine, server):
    me = make_engine(embedder=open_embedder(server)).persona("main")
    server.fail(revoked())

    me.memories.write("The office is in Lisbon.")

    assert [hit.memory.content for hit in me.recall("lisbon office")] == ["The office is in Lisbon."]


# -- the wire, without a wire

NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["data", "index", "embedding"]), inner),
    max_leaves=12,
)


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(1, 5), st.integers(1, 40))
def test_batches_hold_every_text_once_in_order_and_within_the_limits(texts, size, tokens):
    counted = [wire.cut(text) for text in texts]
    made = list(wire.batches(counted, size=size, tokens=tokens))

    counts = iter(counted)
    assert [text for batch in made for text in batch] == [text for text, _ in counted]
    for batch in made:
        total = sum(count for _, (_, count) in zip(batch, counts, strict=False))
        assert 1 <= len(batch) <= size and (total <= tokens or len(batch) == 1)


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 20_000))
def test_a_cut_text_is_a_beginning_and_within_the_tokens(text, times):
    long = (text * times)[:30_000]
    short, tokens = wire.cut(long)
    assert long.startswith(short) and tokens <= wire.TEXT_TOKENS
    assert short == long or len(short.encode()) > 2 * wire.TEXT_TOKENS - 4


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=5), min_size=1, max_size=5), st.randoms(), st.booleans())
def test_vectors_come_back_in_order_whatever_order_and_form_they_have(vectors, random, as_lists):
    arrays = [np.asarray(vector, dtype="<f4") for vector in vectors]
    items = [
        {"index": index, "embedding": array.tolist() if as_lists else base64.b64encode(array.tobytes()).decode()}
        for index, array in enumerate(arrays)
    ]
    random.shuffle(items)
    read = wire.read(json.dumps({"data": items}).encode(), len(items)).vectors
    assert [vector.tolist() for vector in read] == [array.tolist() for array in arrays]


@given(JSON | st.fixed_dictionaries({"data": st.lists(st.fixed_dictionaries({"embedding": JSON, "index": JSON}))}))
def test_no_answer_is_so_strange_that_it_is_not_refused_or_read(answer):
    try:
        assert len(wire.read(json.dumps(answer).encode(), 1).vectors) == 1
    except wire.UnreadableAnswer as error:
        assert str(error)


NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "2"}, 0.25),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90))}, 90),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=90))}, 0),
        ({"retry-after": format_datetime(NOW + timedelta(days=900))}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 99 Foo 2026 99:99:99 GMT"}, None),
    ],
)
def test_how_long_to_wait_is_read_from_the_headers(headers, seconds):
    assert wire.retry_after(headers, NOW.timestamp()) == seconds
