"""The command line in this process (`run`) and in one of its own (`spawn`), without the settings of whoever tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from memoranda.cli.app import app


def _environment() -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEMORANDA_")},
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "MEMORANDA_EMBEDDER": "hash/words",
    }


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

    def invoke(*words: str, input: str | bytes | None = None, **environment: str) -> Any:
        return CliRunner().invoke(
            app, words, input=input, env=environment, prog_name="memoranda", catch_exceptions=False
        )

    return invoke


@pytest.fixture
def spawn(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as a process of its own in an empty folder; its standard streams are pipes."""

    def start(*words: str, input: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memoranda.cli", *words],
            cwd=tmp_path,
            env=_environment() | environment,
            input=input,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )

    return start
