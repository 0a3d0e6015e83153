"""`memoranda jobs`, `worker` and `check`: what is left to be done is seen, done, and never a secret."""

import json
import signal
import sys

import pytest

from memoranda import MemoryEngine
from memoranda.db.queries import jobs as queries
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import EmbedderRefused, EmbedderUnavailable
from memoranda.testing import BrokenEmbedder, DeferredEmbedder
from memoranda.testing.openai_server import KEY, Fault, OpenAIServer, revoked

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
OPENAI = "openai/text-embedding-3-small"
TEXTS = ("The lamp is green.", "The sofa is red.", "The kettle is blue.")


@pytest.fixture
def server():
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def remote(server):
    """The environment in which commands reach the server."""
    return {"MEMORANDA_EMBEDDER": OPENAI, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}


def leave_jobs(url, *texts, embedder=None):
    """Store memories one by one, as a program does whose worker runs elsewhere."""
    with MemoryEngine(url, embedder=embedder or DeferredEmbedder(HashWords()), background="external") as engine:
        engine.setup()
        for text in texts:
            engine.persona("main", tenant="acme", user="ana").memories.write(text)


def give_up(url, error):
    """Have one job given up."""
    embedder = BrokenEmbedder(error, name=HashWords.name, dimensions=HashWords().dimensions)
    with MemoryEngine(url, embedder=embedder, background="external") as engine:
        engine.drain()


REFUSED = EmbedderRefused("the key was revoked", status=401)


@pytest.mark.behaviour("W07")
@BACKENDS
def test_what_waits_and_what_was_given_up_is_listed_with_its_error(memoranda, answer, backend):
    leave_jobs(backend.url, TEXTS[0])
    give_up(backend.url, REFUSED)
    leave_jobs(backend.url, TEXTS[1])

    shown = memoranda("jobs")
    given_up, waiting = answer("jobs")["jobs"]

    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines() if "embed " in line] == ["given", "waiting"]
    assert "acme/main" in shown.stdout and "the key was revoked" in shown.stdout and "--retry" in shown.stdout
    assert (given_up["status"], given_up["error"], given_up["attempts"]) == ("failed", "the key was revoked", 1)
    assert (waiting["status"], waiting["running"], waiting["error"]) == ("waiting", False, "")
    assert not any(text in shown.stdout for text in TEXTS)


@BACKENDS
def test_without_jobs_the_exit_code_says_so(memoranda, answer):
    memoranda("write", TEXTS[0])

    none = memoranda("jobs")

    assert (none.exit_code, none.stdout, none.stderr) == (1, "(no jobs)\n", "")
    assert answer("jobs", code=1) == {"jobs": [], "retried": None}


@pytest.mark.behaviour("W07")
@BACKENDS
def test_what_was_given_up_is_tried_again_and_done(memoranda, answer, backend):
    leave_jobs(backend.url, TEXTS[0])
    give_up(backend.url, REFUSED)

    assert "1 job will be tried again" in memoranda("jobs", "--retry").stdout
    assert answer("jobs")["jobs"][0]["status"] == "waiting"
    assert memoranda("worker", "--once").stdout == "1 job begun; nothing is left to be done\n"
    assert answer("stats", "--tenant", "acme", "--user", "ana")["vectors"] == 1


@pytest.mark.behaviour("O01")
@BACKENDS
def test_a_worker_that_runs_once_ends_with_what_it_could_not_do(memoranda, answer, backend):
    down = BrokenEmbedder(EmbedderUnavailable("the service is down"), name=HashWords.name, dimensions=512)
    leave_jobs(backend.url, *TEXTS[:2])
    with MemoryEngine(backend.url, embedder=down, background="external") as engine:
        engine.drain(timeout=0)

    result = memoranda("worker", "--once")

    assert result.exit_code == 3
    assert result.stdout == "0 jobs begun; not everything is done: the service is down. See: memoranda jobs\n"
    document = answer("worker", "--once", code=3)
    assert (document["embedder"], document["begun"], len(document["left"])) == ("hash/words@512", 0, 2)


@pytest.mark.behaviour("W08")
@BACKENDS
def test_what_has_no_vector_is_seen_behind_a_hundred_other_jobs(memoranda, answer, backend):
    down = BrokenEmbedder(EmbedderUnavailable("the service is down"), name=HashWords.name, dimensions=512)
    with MemoryEngine(backend.url, embedder=DeferredEmbedder(HashWords()), background="external") as engine:
        engine.setup()
        for number in range(100):
            engine._database.run(queries.enqueue, ("", f"persona {number}"), queries.FLUSH, {"policies": "standard"})
        engine.persona("main").memories.write(TEXTS[0])
    with MemoryEngine(backend.url, embedder=down, background="external") as engine:
        engine.drain(timeout=0)

    result = memoranda("backfill")
    assert (result.exit_code, result.stdout) == (
        3,
        "not every memory has a vector: the service is down. See: memoranda jobs\n",
    )
    assert [job["kind"] for job in answer("backfill", code=3)["left"]] == ["embed"]
    assert "not everything is done: the service is down." in memoranda("worker", "--once").stdout


def test_a_worker_needs_a_store_and_makes_none(run, tmp_path):
    result = run("worker")

    assert (result.exit_code, result.stdout) == (3, "")
    assert "no database file" in result.stderr
    assert not list(tmp_path.iterdir())


def at_work(process):
    """Wait until a worker handles signals."""
    assert "at work" in process.stderr.readline()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_an_idle_worker_ends_when_it_is_told_to(start, postgres_url, number):
    leave_jobs(postgres_url, TEXTS[0])

    with start("worker", "--url", postgres_url) as process:
        at_work(process)
        while "is done" not in process.stderr.readline():
            pass
        process.send_signal(number)
        said = process.communicate(timeout=20)[1]

    assert process.returncode == 0
    assert said == "memoranda worker: ended\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@BACKENDS
def test_the_job_a_worker_is_at_is_its_last(start, answer, backend, server, remote, monkeypatch):
    for name, value in remote.items():
        monkeypatch.setenv(name, value)
    leave_jobs(backend.url, *TEXTS, embedder=OPENAI)
    server.fail(Fault(), 1)  # the start-up check
    server.fail(Fault(delay=1), 1)

    with start("worker", "--url", backend.url, **remote) as process:
        at_work(process)
        while len(server.requests) < 2:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=20)[1]

    assert process.returncode == 0
    assert said.count("is done") == 1 and said.endswith("memoranda worker: ended\n")
    assert not any(secret in said for secret in (*TEXTS, KEY, "acme", "ana", backend.url))
    assert [job["status"] for job in answer("jobs")["jobs"]] == ["waiting", "waiting"]
    assert answer("worker", "--once")["begun"] == 2


def test_a_worker_waits_for_a_service_that_is_down_and_not_for_a_refused_key(run, start, server, remote):
    run("write", TEXTS[0], **remote)

    server.fail(revoked())
    refused = run("worker", **remote)
    assert (refused.exit_code, KEY in refused.stderr) == (3, False)
    assert "refuses the key: check OPENAI_API_KEY (HTTP 401" in refused.stderr

    lacking = run("worker", **{**remote, "MEMORANDA_EMBEDDER": None})
    assert lacking.exit_code == 3
    assert "name it with --embedder or MEMORANDA_EMBEDDER" in lacking.stderr

    server.fail(Fault(status=503))
    with start("worker", **remote) as process:
        assert "warning: Embedder" in process.stderr.readline()
        at_work(process)
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


# -- the embedder of a store


@BACKENDS
def test_a_check_says_which_model_answers(memoranda, answer):
    memoranda("write", TEXTS[0])

    assert memoranda("check").stdout == "hash/words@512 answers\n"
    assert answer("check") == {"embedder": "hash/words@512"}


def test_a_store_of_words_has_nobody_to_ask(run):
    run("write", TEXTS[0], "--embedder", "none")

    result = run("check", "--embedder", "none")

    assert (result.exit_code, result.stdout) == (0, "the store goes by words only: there is no embedder to ask\n")


@pytest.mark.behaviour("W49")
def test_a_check_that_fails_says_what_to_do(run, server, remote):
    run("write", TEXTS[0], **remote)
    assert run("check", **remote).stdout == f"{OPENAI}@1536 answers\n"

    server.fail(revoked())
    refused = run("check", "--json", **remote)
    server.fail(None)
    unnamed = run("check", **{**remote, "MEMORANDA_EMBEDDER": None})
    keyless = run("check", **{**remote, "OPENAI_API_KEY": None, "OPENAI_BASE_URL": None})
    other = run("check", **{**remote, "MEMORANDA_EMBEDDER": "hash/words"})

    error = json.loads(refused.stderr)["error"]
    assert (error["kind"], error["exit_code"]) == ("EmbedderRefused", 3)
    assert "OPENAI_API_KEY" in error["message"] and KEY not in refused.stderr
    assert (unnamed.exit_code, keyless.exit_code, other.exit_code) == (3, 3, 2)
    assert f"'{OPENAI}@1536' sends texts out: name it with --embedder or MEMORANDA_EMBEDDER" in unnamed.stderr
    assert "has no key: set OPENAI_API_KEY." in keyless.stderr
    assert f"use --embedder {OPENAI}@1536, or leave" in other.stderr
    assert other.stderr.endswith("memoranda reembed --embedder hash/words\n")
