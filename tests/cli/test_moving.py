"""`memoranda export`, `import` and `backup`: a whole store in a file, and the exit codes that tell how it went."""

import gzip
import json
import os
import pty
import subprocess
import sys

import pytest


@pytest.fixture
def filled(run):
    """A store in this folder with two memories."""
    run("write", "The lamp is green.")
    run("write", "The kettle is blue.", "--persona", "kitchen")


def test_help_names_the_format_and_says_what_the_file_holds(run):
    text = " ".join(run("export", "--help").stdout.split())

    assert "JSONL of memoranda.archive, version 1" in text.replace("`", "")
    assert "It holds everything of everybody" in text


@pytest.mark.parametrize("name", ["memories.jsonl", "memories.jsonl.gz"])
def test_a_store_goes_through_a_file(run, filled, name):
    out = run("export", name)
    into = run("import", name, "--url", "sqlite:///new.db")

    assert (out.exit_code, out.stdout) == (0, "exported 2 memories, 6 rows in all\n")
    assert (into.exit_code, into.stdout) == (0, "imported 2 memories, 6 rows in all\n")
    assert "The lamp is green." in run("list", "--url", "sqlite:///new.db").stdout
    again = run("import", name, "--url", "sqlite:///new.db")
    assert (again.exit_code, again.stdout) == (0, "imported 0 memories, 0 rows in all, 6 rows already there\n")


def test_a_part_of_a_store_is_asked_for_by_options_only(run, filled):
    whole = json.loads(run("export", "whole.jsonl", "--json", MEMORANDA_PERSONA="kitchen").stdout)
    part = json.loads(run("export", "part.jsonl", "--json", "--persona", "kitchen", "--no-vectors").stdout)

    assert whole["rows"] == {"memories": 2, "sources": 2, "vectors": 2}
    assert part["rows"] == {"memories": 1, "sources": 1}
    assert len(part["sha256"]) == 64


def test_json_says_what_became_of_every_row(run, filled):
    run("export", "x.jsonl")

    document = json.loads(run("import", "x.jsonl", "--no-vectors", "--url", "sqlite:///new.db", "--json").stdout)

    assert document == {
        "rows": {"memories": 2, "sources": 2},
        "already_there": {},
        "renamed": 0,
        "unkeyed": 0,
        "reindexed": 0,
        "without_vectors": 2,
        "erased": 0,
    }


def test_standard_output_and_input_carry_a_store(filled, spawn, tmp_path):
    out = spawn("export", "-", "--no-vectors")
    into = spawn("import", "-", "--url", "sqlite:///new.db", input=out.stdout)

    assert (out.returncode, out.stderr) == (0, "exported 2 memories, 4 rows in all\n")
    assert json.loads(out.stdout.splitlines()[0])["format"] == "memoranda"
    assert (into.returncode, into.stdout) == (0, "imported 2 memories, 4 rows in all\n")


def test_a_file_that_is_there_is_replaced_by_force_only(run, filled, tmp_path):
    (tmp_path / "x.jsonl").write_text("precious")

    refused = run("export", "x.jsonl")

    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "error: x.jsonl is there already: name another file, or remove it first\n"
    assert (tmp_path / "x.jsonl").read_text() == "precious"
    assert run("export", "x.jsonl", "--force").exit_code == 0


def test_a_file_that_was_cut_off_is_refused_with_its_line(run, filled, tmp_path):
    run("export", "x.jsonl")
    whole = (tmp_path / "x.jsonl").read_bytes()
    (tmp_path / "half.jsonl").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "half.gz").write_bytes(gzip.compress(whole)[:-20])
    for name in ("half.jsonl", "half.gz"):
        result = run("import", name, "--url", "sqlite:///new.db")

        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("error: line ")
        assert result.stderr.endswith("Nothing was imported.\n")
        assert run("list", "--url", "sqlite:///new.db").exit_code == 1


def test_vectors_of_another_embedder_are_refused_with_the_way_out(run, filled):
    run("export", "x.jsonl")

    result = run("import", "x.jsonl", "--url", "sqlite:///new.db", "--embedder", "none")

    assert result.exit_code == 2
    assert "--no-vectors" in result.stderr
    assert run("import", "x.jsonl", "--url", "sqlite:///new.db", "--embedder", "none", "--no-vectors").exit_code == 0


@pytest.mark.behaviour("O04")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["export", "x.jsonl", "--url", "sqlite:///none.db"], 3),
        (["backup", "x.db", "--url", "sqlite:///none.db"], 3),
        (["import", "none.jsonl"], 2),
        (["export", "no/folder/x.jsonl"], 2),
        (["backup", "no/folder/x.db"], 2),
        (["export"], 2),
        (["export", "x.jsonl", "--url", "postgresql://ana:hunter2-and-more@127.0.0.1:1/x"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_what_cannot_be_done_is_told_from_what_cannot_be_reached(run, filled, tmp_path, command, code):
    result = run(*command)

    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: ")
    assert "hunter2" not in result.stderr
    assert not (tmp_path / "none.db").exists()
    assert not list(tmp_path.glob("*x.*"))


def test_a_backup_is_a_store(run, filled):
    result = run("backup", "copy.db")

    assert result.exit_code == 0
    assert result.stdout.startswith("copied and checked: copy.db, ")
    assert "The lamp is green." in run("list", "--url", "sqlite:///copy.db").stdout
    again = run("backup", "copy.db")
    assert (again.exit_code, again.stdout) == (2, "")
    assert json.loads(run("backup", "other.db", "--json").stdout)["file"] == "other.db"


def test_on_postgres_pg_dump_is_named(run, postgres_url):
    result = run("backup", "copy.db", "--url", postgres_url)

    assert result.exit_code == 2
    assert "pg_dump" in result.stderr


def test_somebody_who_watches_sees_a_bar(run, filled, tmp_path):
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "memoranda.cli", "export", "x.jsonl"],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    seen = os.read(ours, 65536).decode()
    os.close(ours)

    assert "exporting" in seen
