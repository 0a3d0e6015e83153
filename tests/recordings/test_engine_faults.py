"""The engine on an embedder at a distance that fails in every way: each memory is embedded once, and none is lost."""

import time
from dataclasses import replace

import pytest

from memoranda.embedders.openai import OpenAIEmbedder
from memoranda.policies import JobPolicy, TimeoutPolicy
from memoranda.presets import resolve
from memoranda.testing.openai_server import KEY, LOCAL_MODELS, Fault, OpenAIServer, rate_limited, revoked

TEXT = "The lighthouse keeper is called Ottilie."
LIMIT = 1.0  # seconds a call may take in these tests

FAULTS = {
    "429 with retry-after": rate_limited(retry_after=0.2),
    "429": rate_limited(),
    "500": Fault(status=500),
    "503": Fault(status=503),
    "time-out": Fault(delay=120),
    "dripping": Fault(drip=0.05),
    "truncated": Fault(broken_off=True),
    "no JSON": Fault(body=b"<html>busy</html>"),
    "too few vectors": Fault(count=-1),
}


def opened(make_engine, server, **options):
    embedder = OpenAIEmbedder(base_url=server.url, api_key=server.key, timeout=LIMIT, max_retries=0)
    embedder.embed(["the client is loaded"])
    server.requests.clear()
    settings = {"background": "external", "job_policy": JobPolicy(delay_seconds=0), **options}
    return make_engine(embedder=embedder, **settings)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.behaviour("W04", "W07")
def test_an_outage_heals_itself_and_every_memory_is_embedded_once(make_engine, server, name):
    engine = opened(make_engine, server)
    me = engine.persona("main")
    me.memories.write(TEXT)
    server.fail(FAULTS[name], 2)

    while engine.drain():  # as long as an attempt is put off
        time.sleep(0.1)
    assert (engine.jobs(), me.stats().vectors) == ([], 1)
    assert len(server.requests) == 3
    assert me.recall("Who is the lighthouse keeper?")[0].legs["vector"] > 0


@pytest.mark.in_turn
@pytest.mark.parametrize("name", FAULTS)
def test_neither_a_write_nor_a_recall_waits_longer_than_the_time_limit(make_engine, server, name):
    engine = opened(make_engine, server)
    me = engine.persona("main")
    me.memories.list()
    server.fail(FAULTS[name])

    began = time.monotonic()
    written = me.memories.write(TEXT)
    assert written.created and not server.requests  # a write calls nobody
    found = me.recall("lighthouse keeper")
    assert found.degraded and [hit.memory.id for hit in found] == [written.id]
    assert time.monotonic() - began < 60  # far above the limit and what a busy machine adds; unbounded it is minutes


def quickest(call, times=3):
    """Return the seconds of the quickest of several calls: what else the machine does is no part of them all."""
    took = []
    for number in range(times):
        began = time.monotonic()
        call(number)
        took.append(time.monotonic() - began)
    return min(took)


@pytest.mark.parametrize("background", ["thread", "external"])
def test_a_service_that_hangs_keeps_a_caller_no_longer_than_the_policy_says(make_engine, server, background):
    embedder = OpenAIEmbedder(base_url=server.url, api_key=server.key, timeout=60.0, max_retries=0)
    embedder.embed(["the client is loaded"])
    policies = replace(resolve("standard"), timeout=TimeoutPolicy(question=0.5))
    engine = make_engine(embedder=embedder, background=background, preset=policies)
    me = engine.persona("main")
    me.memories.list()
    server.fail(Fault(delay=120))

    assert quickest(lambda number: me.memories.write(f"Parcel {number} is in locker {number}.")) < 0.5
    assert quickest(lambda number: me.recall(f"Where is parcel {number}?")) < 1.5
    assert [job.attempts for job in engine.jobs()] in ([0, 0, 0], [1, 0, 0])
    server.fail(None)


@pytest.mark.parametrize("most", [32, 5])
@pytest.mark.behaviour("E09")
def test_a_server_of_one_s_own_takes_few_texts_in_a_request(make_engine, monkeypatch, most):
    with OpenAIServer(models=LOCAL_MODELS, key=None, max_inputs=most) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        engine = make_engine(embedder="openai/bge-m3", background="external")
        me = engine.persona("main")
        me.memories.write_many([f"Parcel {number} is in locker {number}." for number in range(40)])

        engine.drain()
        assert (engine.jobs(), me.stats().vectors) == ([], 40)
        if most == 32:  # what TEI takes unless told otherwise
            assert [len(request.body["input"]) for request in server.requests] == [32, 8]


@pytest.mark.behaviour("W07")
def test_a_revoked_key_is_not_tried_with_every_job(make_engine, server):
    engine = opened(make_engine, server)
    me = engine.persona("main")
    for number in range(6):
        me.memories.write(f"Parcel {number} is in locker {number}.")
    server.fail(revoked())

    assert engine.drain() == 5
    assert (len(server.requests), [job.attempts for job in engine.jobs()]) == (1, [1, 0, 0, 0, 0, 0])

    server.fail(None)
    assert engine.drain() == 0 and me.stats().vectors == 5  # whoever drains says that it is time to ask again
    assert engine.retry_jobs() == 1 and engine.drain() == 0 and me.stats().vectors == 6


@pytest.mark.behaviour("W07")
def test_a_revoked_key_stops_at_once_and_a_new_one_goes_on(make_engine, server, backend):
    engine = opened(make_engine, server)
    me = engine.persona("main")
    me.memories.write(TEXT)
    server.fail(revoked())

    engine.drain()
    [job] = engine.jobs()
    assert (job.status, job.attempts, len(server.requests)) == ("failed", 1, 1)
    assert server.key not in job.error and me.recall("lighthouse keeper")

    server.fail(None)
    assert engine.backfill() == 1
    engine.drain()
    assert (engine.jobs(), me.stats().vectors) == ([], 1)


@pytest.mark.behaviour("W05")
def test_vectors_of_another_length_are_not_stored(make_engine, server):
    engine = opened(make_engine, server)
    me = engine.persona("main")
    me.memories.write(TEXT)
    server.fail(Fault(length=1535))

    engine.drain()
    [job] = engine.jobs()
    assert job.status == "failed" and "1535" in job.error and "1536" in job.error
    assert me.stats().vectors == 0
    assert server.requests[0].body["dimensions"] == 1536


@pytest.mark.behaviour("W06")
def test_without_a_key_nothing_is_called_nor_left_for_later(make_engine, network):
    engine = make_engine(embedder=OpenAIEmbedder(), background="inline")
    me = engine.persona("main")

    written = me.memories.write(TEXT)
    assert written.degraded and engine.jobs() == []
    assert [hit.memory.id for hit in me.recall("lighthouse keeper")] == [written.id]
    assert (me.stats().vectors, network.attempts) == (0, [])


@pytest.mark.behaviour("E02", "E07")
@pytest.mark.parametrize("dimensions", [512, 1536])
def test_the_whole_engine_runs_on_it(make_engine, server, monkeypatch, dimensions):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    name = f"openai/text-embedding-3-small@{dimensions}"
    engine = make_engine(embedder=name, background="inline")
    me = engine.persona("main")
    old = me.memories.write("The ferry leaves at nine.")
    me.memories.supersede(old.id, "The ferry leaves at ten.")
    me.memories.write_many([f"Parcel {number} is in locker {number}." for number in range(5)])

    assert me.stats().vectors == 7
    assert me.recall("When does the ferry leave?")[0].memory.content == "The ferry leaves at ten."
    assert engine.check() == name and engine.jobs() == []
    assert {request.body["dimensions"] for request in server.requests} == {dimensions}
