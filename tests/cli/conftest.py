"""The command line in this process (`run`) and in one of its own (`spawn`), without the settings of whoever tests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from memoranda.cli.app import app


def _environment() -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEMORANDA_")},
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "MEMORANDA_EMBEDDER": "hash/words",
    }


# Typer builds all commands anew for each call, which costs more than most of them do.
_built = cache(typer.main.get_command)


@pytest.fixture
def clean_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMORANDA_")]:
        monkeypatch.delenv(name)
    for name, value in _environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(clean_environment, tmp_path, monkeypatch) -> Callable[..., Any]:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("typer.testing._get_command", _built)

    def invoke(*words: str, input: str | bytes | None = None, **environment: str) -> Any:
        return CliRunner().invoke(
            app, words, input=input, env=environment, prog_name="memoranda", catch_exceptions=False
        )

    return invoke


@pytest.fixture
def memoranda(run, backend) -> Callable[..., Any]:
    """Run a command on this backend's store."""
    return lambda *words, **options: run(*words, "--url", backend.url, **options)


@pytest.fixture
def answer(memoranda) -> Callable[..., Any]:
    """Run a command with `--json` and return what it says, having checked its exit code."""

    def ask(*words: str, code: int = 0, **options: Any) -> Any:
        result = memoranda(*words, "--json", **options)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return ask


@pytest.fixture
def start(tmp_path) -> Callable[..., subprocess.Popen[str]]:
    """Start a command as a process of its own in an empty folder; its standard streams are pipes."""

    def begin(*words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "memoranda.cli", *words],
            cwd=tmp_path,
            env=_environment() | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    return begin


@pytest.fixture
def spawn(start) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as `start` does, to its end."""

    def finish(*words: str, input: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        with start(*words, **environment) as process:
            try:
                stdout, stderr = process.communicate(input, timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)

    return finish
