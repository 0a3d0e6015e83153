"""`memoranda reembed`: a store moves to another embedder by a command, and an interrupted move goes on."""

import json
import os
import subprocess
import sys

import pytest

from memoranda.testing.openai_server import KEY, Fault, OpenAIServer

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
SMALL = "openai/text-embedding-3-small@64"
ROWS = "\n".join(json.dumps(f"Parcel {number} went to address {number * 7}.") for number in range(300))


@pytest.fixture
def server(monkeypatch):
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


@pytest.mark.behaviour("E07", "S22")
@BACKENDS
def test_a_store_moves_and_old_vectors_go_when_they_are_pruned(memoranda, answer, server):
    memoranda("write", "-", input=ROWS)

    moved = memoranda("reembed", "--embedder", SMALL)

    assert moved.stdout == f"300 memories embedded: the store goes by {SMALL} now\n"
    assert len(server.texts) == 300
    assert memoranda("reembed", "--embedder", SMALL, "--prune").stdout == (
        f"the store goes by {SMALL}, and every memory has its vector\n"
    )
    assert len(server.texts) == 300  # what is embedded already is not sent again
    statistics = answer("stats", "--embedder", SMALL)
    assert (statistics["embedder"], statistics["vectors"], statistics["other_vectors"]) == (SMALL, 300, 0)
    assert answer("reembed", "--embedder", "hash/words")["embedded"] == 300


@pytest.mark.behaviour("E07", "S22")
@BACKENDS
def test_a_move_that_is_interrupted_says_how_far_it_came_and_goes_on_there(memoranda, answer, server):
    memoranda("write", "-", input=ROWS)
    server.fail(Fault(), 2)
    server.fail(Fault(status=401), 1)

    broken = memoranda("reembed", "--embedder", SMALL)

    assert (broken.exit_code, broken.stdout) == (3, "")
    assert "256 of 300 memories are done. The store goes on with its old vectors" in broken.stderr
    assert answer("recall", "address of parcel 12")["hits"]
    assert answer("stats")["embedder"] == "hash/words@512"
    assert answer("reembed", "--embedder", SMALL) == {"embedded": 44, "embedder": SMALL, "refused": []}
    assert len(set(server.texts)) == 300 and len(server.texts) == 300 + 44


@BACKENDS
def test_a_text_that_is_refused_is_told_and_the_store_moves_without_it(memoranda, answer, server):
    memoranda("write", "-", input='"Parcel 1."\n"Parcel 2."')
    refused = Fault(status=400)
    server.fail(refused, 2)  # both, then the first of them

    moved = memoranda("reembed", "--embedder", SMALL)

    assert moved.exit_code == 3
    assert moved.stdout.startswith(f"1 memory embedded: the store goes by {SMALL} now\nsome texts were refused")
    assert moved.stdout.endswith("See: memoranda jobs\n") and "Parcel" not in moved.stdout
    statistics = answer("stats", "--embedder", SMALL)
    assert (statistics["embedder"], statistics["vectors"]) == (SMALL, 1)
    assert [job["kind"] for job in answer("reembed", "--embedder", SMALL, code=0)["refused"]] == []
    assert answer("stats", "--embedder", SMALL)["vectors"] == 2


@pytest.mark.parametrize("name", [[], ["--embedder", "auto"], ["--embedder", "none"]], ids=" ".join)
def test_a_move_needs_a_name(run, name):
    run("write", "The lamp is green.")

    result = run("reembed", *name, MEMORANDA_EMBEDDER=None)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: name the embedder to move to: --embedder NAME\n"


def test_a_mismatch_names_the_command_that_moves_the_store(run, server):
    run("write", "The lamp is green.")
    run("write", "The lamp is green.", "--url", "sqlite:///words.db", "--embedder", "none")

    vectors = run("recall", "lamp", "--embedder", SMALL)
    words = run("recall", "lamp", "--embedder", "hash/words", "--url", "sqlite:///words.db")

    assert (vectors.exit_code, words.exit_code) == (2, 2)
    assert vectors.stderr.endswith(f"memoranda reembed --embedder {SMALL}\n")
    assert words.stderr.startswith("error: This store goes by words only; 'hash/words@512' was given")
    assert words.stderr.endswith("memoranda reembed --embedder hash/words\n")
    assert run("reembed", "--embedder", "hash/words", "--url", "sqlite:///words.db").exit_code == 0
    assert run("recall", "lamp", "--embedder", "hash/words", "--url", "sqlite:///words.db").exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal there")
def test_whoever_watches_sees_how_far_it_has_come(run, server, tmp_path):
    import pty

    run("write", "-", input=ROWS)
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "memoranda.cli", "reembed", "--embedder", SMALL],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    seen = os.read(ours, 65536).decode()
    os.close(ours)

    assert "embedding" in seen and "/300" in seen
