"""Measure what a conversation costs a turn: appending, the window of a long one, and the frozen block of its prompt.

    python tests/benchmarks/conversations.py --backend sqlite --messages 10000 --json conversations.json

Texts are made up from a fixed seed, about 20 words each; every fourth turn calls a tool.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from memoranda import MemoryEngine, Persona
from memoranda.testing.postgres import temporary_server

BATCH = 500
WINDOWS = (2_000, 8_000, 32_000)


def spoken(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Return the messages of a conversation."""
    draw = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    words = ["".join(draw.choices(syllables, k=3)) for _ in range(5_000)]

    def text() -> str:
        return " ".join(draw.choices(words, k=20))

    said: list[dict[str, Any]] = []
    for turn in range(count):
        said.append({"role": "user", "content": text()})
        if turn % 4 == 0:
            call = {"id": f"call-{turn}", "function": {"name": "look", "arguments": json.dumps({"for": text()})}}
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": f"call-{turn}", "content": text()})
        said.append({"role": "assistant", "content": text()})
    return said[:count]


@contextmanager
def opened(backend: str) -> Iterator[Persona]:
    """Open an empty store."""
    with ExitStack() as stack:
        if backend == "sqlite":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = f"sqlite:///{folder / 'memory.db'}"
        else:
            server = stack.enter_context(temporary_server())
            url = server.url()
        engine = stack.enter_context(MemoryEngine(url, embedder="hash/words", background="off"))
        engine.setup()
        yield engine.persona("main")


def milliseconds(call: Callable[[], object], rounds: int = 30) -> float:
    """Return the median time of a call."""
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return round(1_000 * median(taken), 2)


def measured(me: Persona, count: int) -> dict[str, float]:
    """Return what was measured, by name."""
    said, results = spoken(count), dict[str, float]()
    chat = me.conversation("long")
    begun = time.perf_counter()
    for start in range(0, count, BATCH):
        chat.append(said[start : start + BATCH])
    results[f"append, {BATCH} a call (messages/s)"] = round(count / (time.perf_counter() - begun))
    singles, single = said[:300], me.conversation("short")
    begun = time.perf_counter()
    for message in singles:
        single.append(message)
    results["append, one a call (messages/s)"] = round(len(singles) / (time.perf_counter() - begun))
    results["append the last 50 again (ms)"] = milliseconds(lambda: chat.append(said[-50:]))
    for size in WINDOWS:
        results[f"window of {size:,} tokens (ms)"] = milliseconds(lambda size=size: chat.window(size))  # type: ignore[misc]
    results["record (ms)"] = milliseconds(chat.record)
    me.memories.write_many([{"content": text["content"], "importance": 5} for text in said[:500] if text["content"]])
    new = iter(range(1_000))
    results["system_block, first use (ms)"] = milliseconds(lambda: me.conversation(f"new {next(new)}").system_block())
    results["system_block, stored (ms)"] = milliseconds(chat.system_block, rounds=1_000)
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with opened(arguments.backend) as me:
        results = measured(me, arguments.messages)
    for name, value in results.items():
        sys.stdout.write(f"{name:40} {value:>12,}\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({"backend": arguments.backend, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
