"""Move a store to an embedder of another size, interrupted three times, while another process asks it all along.

    python tests/benchmarks/reembed.py --backend sqlite --rows 20000 --json reembed.json

Vectors are hashed words of 256 and of 1,536 numbers, so that no model is measured. The move is killed after a quarter,
meets an embedder that is down after a half, is killed again after three quarters, and then comes to its end. The other
process asks for rows in their own words, on an engine that stays open and, every fifth time, on one it opens anew with
whatever embedder the store has then.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from speed import BATCH, Writer, backend, machine, percentiles

from memoranda import MemoryEngine
from memoranda.errors import EmbedderMismatch, EmbedderUnavailable
from memoranda.records import Recall
from memoranda.testing import HashedEmbedder

OLD, NEW = HashedEmbedder(256), HashedEmbedder(1536)
PARTS = ((0.25, "killed"), (0.5, "down"), (0.75, "killed"), (1.0, "complete"))
"""At which share of the rows each part of the move ends, and how."""
_ANEW = 5  # every so many questions
_AFTERWARDS = 10.0  # seconds in which questions are still asked after the move


class Failing(HashedEmbedder):
    """Is down from some text on."""

    def __init__(self, texts: float) -> None:
        super().__init__(NEW.dimensions, name=NEW.name)
        self.left = texts

    def embed(self, texts: Sequence[str], purpose: Any) -> Any:
        """Embed while it is up."""
        self.left -= len(texts)
        if self.left < 0:
            raise EmbedderUnavailable("the service is down")
        return super().embed(texts, purpose)


def peak_memory_mb() -> int:
    """Return the most memory this process has had."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# -- the two processes beside this one


def move(address: str, texts: float) -> None:
    """Move the store, telling after each page how far it is, and at the end what it took."""
    with MemoryEngine(address, embedder=Failing(texts)) as engine:
        began = time.perf_counter()
        try:
            embedded = engine.reembed(progress=lambda done, total: print(json.dumps([done, total]), flush=True))
        except EmbedderUnavailable:
            said: dict[str, Any] = {}
        else:
            said = {"embedded": embedded}
    said |= {"s": round(time.perf_counter() - began, 1), "peak_memory_mb": peak_memory_mb()}
    print(json.dumps(said), flush=True)


def ask(address: str, texts: Sequence[str]) -> None:
    """Ask until the other side hangs up, and tell how it went."""
    seconds: dict[str, list[float]] = {"open": [], "anew": []}
    answers: Counter[str] = Counter()  # by what vectors, or what was amiss
    chosen, hung_up = random.Random(1), threading.Thread(target=sys.stdin.read, daemon=True)
    hung_up.start()
    with MemoryEngine(address, embedder=OLD) as engine:
        engine.persona("main").recall(texts[0])
        print("ready", flush=True)
        while hung_up.is_alive():
            text = chosen.choice(texts)
            how = "anew" if sum(map(len, seconds.values())) % _ANEW == _ANEW - 1 else "open"
            began = time.perf_counter()
            try:
                model, found = asked_anew(address, text) if how == "anew" else ("old", asked(engine, text))
            except Exception as error:
                answers[f"failed with {type(error).__name__}"] += 1
                continue
            seconds[how].append(time.perf_counter() - began)
            right = bool(found) and found[0].content == text
            if found.degraded and "has moved" in found.degraded:
                model = "old, and said so"
            elif found.degraded or not right:
                model = "degraded" if right else "wrong"
            answers[model] += 1
    told = {f"recall_{how}": percentiles(taken) | {"n": len(taken)} for how, taken in seconds.items() if taken}
    print(json.dumps({"answers": answers, **told, "peak_memory_mb": peak_memory_mb()}), flush=True)


def asked(engine: MemoryEngine, text: str) -> Recall:
    """Ask for a row in its own words."""
    return engine.persona("main").recall(text, limit=3)


def asked_anew(address: str, text: str) -> tuple[str, Recall]:
    """Ask on an engine that is opened for it; say which embedder the store has."""
    for name, embedder in (("old", OLD), ("new", NEW)):
        with MemoryEngine(address, embedder=embedder) as engine:
            try:
                return name, asked(engine, text)
            except EmbedderMismatch:
                continue
    raise AssertionError("the store has neither embedder")


# -- the measurement


def process(role: str, address: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start one of the two."""
    command = [sys.executable, __file__, "--role", role, "--url", address, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def moved(address: str, rows: int, share: float, how: str, failing_after: int = 0) -> dict[str, Any]:
    """Let a process move the store until it is to end, and return what became of it."""
    part: dict[str, Any] = {"ended": how, "missing_before": 0}
    limit = ["--texts", str(failing_after)] if failing_after else []
    with process("move", address, *limit) as mover:
        assert mover.stdout is not None
        for line in mover.stdout:
            told = json.loads(line)
            if isinstance(told, dict):
                part |= told
                continue
            done, total = told
            part["missing_before"] = total
            print(f"\r\033[Kmoved {rows - total + done:,} of {rows:,}", end="", file=sys.stderr, flush=True)
            if how == "killed" and rows - total + done >= share * rows:
                mover.kill()
                break
    return part


def measure(name: str, rows: int, url: str | None) -> dict[str, Any]:
    """Run everything and return the figures."""
    texts = list(dict.fromkeys(text for text, _ in Writer().sentences(rows)))
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        address, _ = stack.enter_context(backend(name, url, Path(scratch)))
        with MemoryEngine(address, embedder=OLD) as engine:
            engine.setup()
            for start in range(0, len(texts), BATCH):
                engine.persona("main").memories.write_many(texts[start : start + BATCH])
        file = Path(scratch) / "texts.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
        reader = stack.enter_context(process("ask", address, "--file", str(file)))
        assert reader.stdin is not None and reader.stdout is not None
        reader.stdout.readline()
        began, parts = time.perf_counter(), []
        for share, how in PARTS:
            failing_after = int((share - 0.25) * len(texts)) if how == "down" else 0
            parts.append(moved(address, len(texts), share, how, failing_after))
        seconds = time.perf_counter() - began
        time.sleep(_AFTERWARDS)
        reader.stdin.close()
        answers = json.loads(reader.stdout.readline())
        with MemoryEngine(address, embedder=NEW) as engine:
            vectors, missing = engine.persona("main").stats().vectors, engine.reembed()
    print("\r\033[K", end="", file=sys.stderr)
    return {
        "backend": name,
        "rows": len(texts),
        "machine": machine(),
        "move_s": round(seconds, 1),
        "parts": parts,
        "vectors": vectors,
        "missing": missing,
        "asked_meanwhile": answers,
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["sqlite", "postgres"])
    parser.add_argument("--rows", type=int, default=20_000, help="rows in one persona (default %(default)s)")
    parser.add_argument("--url", help="a Postgres database to use instead of a server that is started for the run")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there, not to standard output")
    for name, kind in (("role", str), ("texts", float), ("file", Path)):  # of the processes beside this one
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "move":
        move(arguments.url, arguments.texts or float("inf"))
    elif arguments.role == "ask":
        ask(arguments.url, json.loads(arguments.file.read_text(encoding="utf-8")))
    elif arguments.backend is None:
        parser.error("--backend is needed")
    else:
        figures = json.dumps(measure(arguments.backend, arguments.rows, arguments.url), indent=1)
        if arguments.json:
            arguments.json.write_text(figures + "\n", encoding="utf-8")
        else:
            print(figures)


if __name__ == "__main__":
    main()
