"""What the tests of the LlamaIndex adapters share: each runs on every database, in one of the two modes."""

import asyncio
import json
import re
from zlib import crc32

import pytest

from memoranda.testing import ScriptedModel


@pytest.fixture
def mode(request, backend):
    """The half of the API that this test takes on this database: both halves are in turn."""
    name = getattr(request.node, "originalname", request.node.name)
    number = crc32(name.encode()) + ("sqlite-memory", "sqlite-file", "postgres").index(backend.name)
    return ("sync", "async")[number % 2]


@pytest.fixture
def call(mode):
    """Call a verb in this test's mode, each time on an event loop of its own."""

    def call_(thing, verb, *args, **options):
        if mode == "sync":
            return getattr(thing, verb)(*args, **options)

        async def on_a_loop():
            return await getattr(thing, f"a{verb}")(*args, **options)

        return asyncio.run(on_a_loop())

    return call_


def facts_of(messages):
    """Answer a flush with every fact that its messages hold, and a summary with a sentence."""
    said = "\n".join(message["content"] for message in messages)
    found = dict.fromkeys(re.findall(r"The code of station \d+ is \w+", said))
    return json.dumps([{"content": f"{fact}."} for fact in found]) if "JSON" in said else "They spoke of stations."


@pytest.fixture
def remembering(make_engine):
    """Make an engine whose jobs wait, and the model it asks."""

    def make(answers=None, **options):
        model = ScriptedModel([facts_of] * 50 if answers is None else answers)
        return make_engine(**{"model": model, "background": "external", **options}).handle, model

    return make


@pytest.fixture
def ana(engine):
    """The persona of a user."""
    return engine.handle.persona("main", user="ana")
