"""The engine on an embedder at a distance that fails in every way: each memory is embedded once, and none is lost."""

import time

import pytest

from memoranda.embedders.openai import OpenAIEmbedder
from memoranda.policies import JobPolicy
from memoranda.testing.openai_server import Fault, rate_limited, revoked

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
def test_without_a_key_nothing_is_called_nor_left_for_later(make_engine):
    engine = make_engine(embedder=OpenAIEmbedder(), background="inline")
    me = engine.persona("main")

    written = me.memories.write(TEXT)
    assert written.degraded and engine.jobs() == []
    assert [hit.memory.id for hit in me.recall("lighthouse keeper")] == [written.id]


@pytest.mark.behaviour("E02", "E07")
def test_the_whole_engine_runs_on_it(make_engine, server):
    engine = opened(make_engine, server, background="inline")
    me = engine.persona("main")
    old = me.memories.write("The ferry leaves at nine.")
    me.memories.supersede(old.id, "The ferry leaves at ten.")
    me.memories.write_many([f"Parcel {number} is in locker {number}." for number in range(5)])

    assert me.stats().vectors == 7
    assert me.recall("When does the ferry leave?")[0].memory.content == "The ferry leaves at ten."
    assert engine.check() == "openai/text-embedding-3-small@1536"
    assert engine.jobs() == []
