"""Recorded answers of an embeddings service, replayed; and the local server that they were made with."""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vcr import VCR
from vcr.cassette import Cassette
from vcr.request import Request

from memoranda.embedders.openai import OpenAIEmbedder
from memoranda.testing import NetworkGuard
from memoranda.testing.openai_server import KEY, LOCAL_MODELS, OpenAIServer
from memoranda.testing.twin import Mode

CASSETTES = Path(__file__).parent / "cassettes"
# Nothing listens there: what is not in the recording cannot be answered.
NOWHERE = "http://127.0.0.1:9/v1"
# Everything else (keys, cookies, organisation, machine, dates) stays out of the files.
KEPT_HEADERS = {"content-type", "openai-model", "openai-version", "retry-after"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-mode",
        choices=["none", "rewrite"],
        default="none",
        help="rewrite: record anew, from OpenAI where OPENAI_API_KEY is set, else from the local server",
    )


@pytest.fixture(scope="session")
def recording_anew(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--record-mode", "none") == "rewrite")


@pytest.fixture(scope="session")
def recorded_key(recording_anew: bool) -> str | None:
    return os.environ.get("OPENAI_API_KEY") if recording_anew else None


@pytest.fixture(autouse=True)
def network(recorded_key: str | None) -> Iterator[object]:
    """Close the network as everywhere, but not while OpenAI is recorded."""
    with NetworkGuard() if recorded_key is None else contextlib.nullcontext() as guard:
        yield guard
    assert not guard or not guard.attempts


@pytest.fixture(autouse=True)
def no_settings(recorded_key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's own settings out."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "MEMORANDA_LLM_")) or name == "MEMORANDA_EMBEDDER":
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def local_server() -> Iterator[OpenAIServer]:
    """A server as Ollama's and TEI's: a model of its own, no key."""
    with OpenAIServer(models=LOCAL_MODELS, key=None) as server:
        yield server


@pytest.fixture
def embed(mode: Mode) -> Callable[..., Any]:
    """Call `embed` or, on an event loop of its own, `aembed`."""

    def call(embedder: OpenAIEmbedder, texts: list[str], **options: Any) -> Any:
        if mode == "async":
            return asyncio.run(embedder.aembed(texts, **options))
        return embedder.embed(texts, **options)

    return call


@pytest.fixture
def recording(request: pytest.FixtureRequest, recording_anew: bool) -> Iterator[Cassette]:
    """The recording named after the test, every interaction of which must be played; its module names the folder."""
    name, folder = request.node.originalname, request.module.CASSETTES
    if recording_anew:
        (folder / f"{name}.yaml").unlink(missing_ok=True)
    with cassette_of(name, "all" if recording_anew else "none", folder) as cassette:
        yield cassette
    if not recording_anew:
        assert len(cassette) and cassette.all_played, f"of {name} were played: {dict(cassette.play_counts)}"


@pytest.fixture
def replay() -> Callable[[str], Any]:
    """Replay the recording of that name; whether all of it is played is the test's affair."""
    return lambda name: cassette_of(name, "none")


def cassette_of(name: str, record_mode: str, folder: Path = CASSETTES) -> Any:
    recorder = VCR(
        record_mode=record_mode,
        match_on=("method", "path", "body"),
        before_record_request=_scrub_request,
        before_record_response=_scrub_response,
        decode_compressed_response=True,
    )
    return recorder.use_cassette(folder / f"{name}.yaml")


@pytest.fixture
def recorded(recording_anew: bool, recorded_key: str | None, server: OpenAIServer) -> Callable[..., OpenAIEmbedder]:
    """Make an embedder that talks to the recording, or to what is being recorded."""

    def make(model: str = "text-embedding-3-small", **options: Any) -> OpenAIEmbedder:
        address = (None if recorded_key else server.url) if recording_anew else NOWHERE
        return OpenAIEmbedder(model, **{"base_url": address, "api_key": recorded_key or KEY, **options})

    return make


def _scrub_request(request: Request) -> Request:
    request.headers = _kept(request.headers)
    request.uri = re.sub(r"(?<=127\.0\.0\.1):\d+", "", request.uri)
    return request


def _scrub_response(response: dict[str, Any]) -> dict[str, Any]:
    return {**response, "headers": _kept(response["headers"])}


def _kept(headers: dict[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in headers.items() if name.lower() in KEPT_HEADERS}
