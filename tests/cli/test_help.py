"""Help answers at once, teaches by example, and needs nothing but the extra."""

import os
import subprocess
import sys
from typing import Any

import pytest
import typer

from memoranda.cli.app import app

COMMANDS = (
    *("demo", "write", "supersede", "mark", "undo", "delete"),
    *("recall", "nearest", "get", "history", "list", "stats"),
    *("keep", "forget", "core", "relevant"),
    *("prompt", "flush", "compact", "review"),
    *("export", "import", "backup", "doctor", "calibrate", "erase"),
    *("check", "backfill", "reembed", "jobs", "worker"),
)
GROUPS = {
    "conversations": ("list", "show", "search"),
    "knowledge": ("ingest", "list", "show", "delete"),
    "projects": ("add", "remove", "members"),
    "spaces": ("create", "archive", "list"),
    "db": ("upgrade", "current", "check", "index"),
}
WHOLE_STORE = ("export", "import", "backup", "check", "backfill", "reembed", "jobs", "worker")
"""Commands that ask for no persona."""
SCOPED = ("write", "supersede", "recall", "get", "list", "delete", "keep", "forget", "core", "relevant", "nearest")


@pytest.mark.parametrize(
    "words",
    [[name] for name in COMMANDS] + [[group, name] for group, names in GROUPS.items() for name in names],
    ids=" ".join,
)
def test_every_command_teaches_by_example(run, words):
    text = run(*words, "--help").stdout

    assert f"memoranda {' '.join(words)}" in text.partition("Examples:")[2]
    assert "Exit codes: 0 done or found" in text
    for option in ("--url", "--embedder", "--schema", "--json"):
        assert option in text
    assert ("--persona" in text) or words[0] in WHOLE_STORE


@pytest.mark.parametrize("name", SCOPED)
def test_every_axis_of_a_scope_can_be_named(run, name):
    text = run(name, "--help").stdout

    for option in ("--persona", "--user", "--tenant", "--space", "--agent", "--thread", "--person "):
        assert option in text
    assert "--project" in text or name in ("get", "delete", "forget")  # one memory needs no project to be found


def test_the_commands_are_all_there(run):
    command: Any = typer.main.get_command(app)

    assert tuple(command.commands) == (*COMMANDS, *GROUPS)
    assert {group: tuple(command.commands[group].commands) for group in GROUPS} == GROUPS
    assert run().stdout.strip() == run("--help").stdout.strip()
    assert run().exit_code == 0
    assert {run(group).exit_code for group in GROUPS} == {0}
    assert run("--version").stdout.startswith("memoranda 0.")


def test_help_loads_neither_the_engine_nor_numpy():
    # Newer releases of Typer load pydantic by themselves.
    script = (
        "import sys, contextlib, io, memoranda.cli.app as a\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): a.app(['write', '--help'])\n"
        "heavy = {'sqlalchemy', 'alembic', 'numpy', 'psycopg', 'wordllama', 'snowballstemmer'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_help_is_less_work_than_loading_the_engine():
    def work(*words):
        before = os.times()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    # Processor time of the same machine in the same minute, for one that tests is a busy one; the first run compiles.
    helped = min(work("-m", "memoranda.cli", "--help") for _ in range(2))
    assert helped < work("-c", "import memoranda.engine")


def test_without_the_extra_the_command_says_what_to_install():
    script = "import sys; sys.modules['typer'] = None; import memoranda.cli; memoranda.cli.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.returncode == 2
    assert 'pip install "memoranda[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_output_is_utf_8_whatever_the_locale(run, spawn):
    run("write", "東京は晴れです。")

    result = spawn("list", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")

    assert result.returncode == 0
    assert "東京は晴れです。" in result.stdout
