"""`memoranda doctor`: exit code 0 when nothing is wrong, 1 when something is, 3 when nobody can say."""

import json
import sqlite3
from contextlib import closing

import pytest

SECRET = "hunter2-and-more"


@pytest.fixture
def filled(run):
    run("write", "The lamp is green.")


def test_a_healthy_store(run, filled):
    result = run("doctor")

    assert (result.exit_code, result.stderr) == (0, "")
    for said in ("SQLite 3.", "synchronous normal", "hash/words@512", "english", "text index", "whole", "0.3"):
        assert said in result.stdout
    assert "\nnothing is wrong\n" in result.stdout
    assert "lamp" not in result.stdout


def test_json_has_every_number(run, filled):
    document = json.loads(run("doctor", "--json").stdout)

    assert document["healthy"] is True
    assert document["findings"] == []
    assert (document["memories"], document["vectors"], document["without_vector"]) == (1, 1, 0)
    assert document["revision"] == document["head"]
    assert document["storage"]["page_size"] == 4096


def test_what_is_found_comes_with_what_helps(run, filled, tmp_path):
    with closing(sqlite3.connect(tmp_path / "memoranda.db")) as connection:
        connection.execute("delete from memoranda_vectors")
        connection.commit()

    result = run("doctor")

    assert result.exit_code == 1
    assert "missing vectors: 1 of 1 memories have no vector" in " ".join(result.stdout.split())
    assert "memoranda backfill" in result.stdout
    document = json.loads(run("doctor", "--json").stdout)
    assert (document["healthy"], [finding["name"] for finding in document["findings"]]) == (False, ["missing vectors"])


def test_postgres_is_examined_too(run, postgres_url):
    run("write", "The lamp is green.", "--url", postgres_url)

    result = run("doctor", "--url", postgres_url)

    assert result.exit_code == 0
    assert "PostgreSQL 1" in result.stdout
    assert "vector 0." in result.stdout


def test_tables_that_are_missing_are_a_finding(run, blank_postgres_url):
    result = run("doctor", "--url", blank_postgres_url)

    assert result.exit_code == 1
    assert "memoranda db upgrade" in result.stdout


@pytest.mark.behaviour("O04")
@pytest.mark.parametrize("url", ["sqlite:///none.db", f"postgresql://ana:{SECRET}@127.0.0.1:1/x", "sqlite:///torn.db"])
def test_a_store_that_cannot_be_reached(run, tmp_path, url):
    (tmp_path / "torn.db").write_bytes(b"torn" * 1000)

    result = run("doctor", "--url", url)

    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("error: ")
    assert SECRET not in result.stderr
    assert not (tmp_path / "none.db").exists()
