"""Measure how cost grows: with the rows of one persona, and with the number of personas beside it.

    python tests/benchmarks/large.py                                 a million rows on Postgres, 200,000 on SQLite
    python tests/benchmarks/large.py --backend sqlite --rows 20000 --json large.json

Half of the rows go into one persona, which is measured at 1,000 rows, 10,000 and so on; the other half into personas of
a hundred rows each, of which some are asked at 10 personas, 100 and so on. Texts are made up from a fixed seed, in
sessions of fifty, and vectors are given. Each step is written to the file as soon as it is measured, and the lines on
standard error say how far it is and how long the rest will take. Every step is measured on an engine opened for it in a
process of its own, so that its peak memory is that of recalls and writes at this size and not of an earlier one.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from speed import BATCH, DIMENSIONS, GivenVectors, Writer, backend, disk_bytes, machine, percentiles, timed

from memoranda import MemoryEngine, Persona

ROWS = {"postgres": 1_000_000, "sqlite": 200_000}
SMALL, SESSION = 100, 50
INDEXED = 100_000
"""From so many rows in all the index of vectors is built before a step is measured, where the database has one."""


def steps(most: int, first: int) -> list[int]:
    """Return the sizes to measure at: ten times as much each, and the last."""
    sizes = []
    while first < most:
        sizes.append(first)
        first *= 10
    return [*sizes, most]


class Progress:
    """Says how far it is."""

    def __init__(self, rows: int) -> None:
        self.rows, self.stored, self.begun, self.said = rows, 0, time.perf_counter(), 0.0

    def add(self, count: int, label: str) -> None:
        """Count stored rows."""
        self.stored += count
        spent = time.perf_counter() - self.begun
        if spent < self.said + 1 and self.stored < self.rows:
            return
        self.said = spent
        left = spent / self.stored * (self.rows - self.stored) / 60
        line = f"{label}: {self.stored:,} of {self.rows:,} rows, {spent:.0f} s, about {left:.0f} min left for filling"
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def fill(me: Persona, writer: Writer, given: GivenVectors, count: int, start: int = 0) -> float:
    """Store rows in one persona, a batch a call, and return the seconds the engine took."""
    rows = writer.sentences(count)
    given.table = dict(rows)
    places = range(start, start + count)
    items = [
        {"content": text, "session": f"s{place // SESSION}", "position": place % SESSION}
        for (text, _), place in zip(rows, places, strict=True)
    ]
    seconds = timed(lambda: me.memories.write_many(items))
    given.table = {}
    return seconds


def grown(engine: MemoryEngine, writer: Writer, given: GivenVectors, rows: int, progress: Progress) -> Iterator[Any]:
    """Fill one persona up to each size, and give what the step took."""
    me, stored = engine.persona("one"), 0
    for size in steps(rows, 1000):
        seconds, before = 0.0, stored
        while stored < size:
            count = min(BATCH, size - stored)
            seconds += fill(me, writer, given, count, stored)
            stored += count
            progress.add(count, "one persona")
        yield {"rows": size, "batched_adds_per_s": round((size - before) / seconds)}, ["one"]


def spread(engine: MemoryEngine, writer: Writer, given: GivenVectors, rows: int, progress: Progress) -> Iterator[Any]:
    """Fill persona after persona, and give what the step took."""
    stored = 0
    for size in steps(rows // SMALL, 10):
        seconds, before = 0.0, stored
        while stored < size:
            seconds += fill(engine.persona(f"p{stored}"), writer, given, SMALL)
            stored += 1
            progress.add(SMALL, "many personas")
        asked = [f"p{round(n * (size - 1) / 9)}" for n in range(10)]
        yield {"personas": size, "batched_adds_per_s": round((size - before) * SMALL / seconds)}, asked


def probe(address: str, personas: list[str], searches: int, seed: int) -> dict[str, Any]:
    """Ask and write on an engine opened for it, and return what it cost; its process does nothing else."""
    writer, given = Writer(seed), GivenVectors()
    with MemoryEngine(address, embedder=given, background="off") as engine:
        people = [engine.persona(name) for name in personas]
        questions, news = writer.sentences(searches + 1, length=7), writer.sentences(searches // 2 + 1)
        given.table = dict([*questions, *news])
        first = timed(lambda: people[0].recall(questions[0][0], limit=10))
        asked = [
            timed(lambda n=n, q=question: people[n % len(people)].recall(q, limit=10))  # type: ignore[misc]
            for n, (question, _) in enumerate(questions[1:])
        ]
        told = [
            timed(lambda n=n, t=text: people[n % len(people)].memories.write(t))  # type: ignore[misc]
            for n, (text, _) in enumerate(news)
        ]
    return {
        "first_recall_ms": round(1e3 * first, 1),
        "recall": percentiles(asked[len(people) :]),
        "single_add": percentiles(told[1:]),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def probed(address: str, personas: list[str], searches: int, seed: int) -> dict[str, Any]:
    """Run `probe` in a process of its own."""
    given = json.dumps({"address": address, "personas": personas, "searches": searches, "seed": seed})
    run = subprocess.run([sys.executable, __file__, "--probe"], input=given, stdout=subprocess.PIPE, text=True)
    run.check_returncode()
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def measure(name: str, rows: int, url: str | None, searches: int, keep: Any) -> None:
    """Fill one backend and measure on the way; `keep` is told every step."""
    writer, given, progress = Writer(), GivenVectors(), Progress(rows)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        address, dsn = stack.enter_context(backend(name, url, Path(scratch)))
        engine = stack.enter_context(MemoryEngine(address, embedder=given, background="off"))
        engine.setup()
        seed = 1000
        for label, way in (("rows in one persona", grown), ("personas of 100 rows", spread)):
            for step, personas in way(engine, writer, given, rows // 2, progress):
                begun, seed = time.perf_counter(), seed + 1
                if dsn and progress.stored >= INDEXED:
                    step["index_s"] = round(timed(engine.build_indexes), 1)
                step |= {"rows_in_all": progress.stored, **probed(address, personas, searches, seed)}
                if not dsn:
                    step["disk_mb"] = round(disk_bytes(Path(scratch)) / 2**20)
                keep(name, label, step)
                print(f"\r\033[K{name}, {label}: {json.dumps(step)}", file=sys.stderr)
                progress.begun += time.perf_counter() - begun
    keep(name, "peak_memory_of_filling_mb", round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=sorted(ROWS), help="one instead of both")
    parser.add_argument("--rows", type=int, help="rows in all (default 1,000,000 on Postgres, 200,000 on SQLite)")
    parser.add_argument("--url", help="a Postgres database to use instead of a server that is started for the run")
    parser.add_argument("--searches", type=int, default=100, help="questions a step (default %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("large.json"), metavar="OUT", help="(default %(default)s)")
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)  # of the processes beside this one
    arguments = parser.parse_args()
    if arguments.probe:
        print(json.dumps(probe(**json.load(sys.stdin))))
        return
    figures: dict[str, Any] = {"machine": machine(), "dimensions": DIMENSIONS}

    def keep(name: str, label: str, step: Any) -> None:
        part = figures.setdefault(name, {})
        if isinstance(step, dict):
            part.setdefault(label, []).append(step)
        else:
            part[label] = step
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")

    for name in [arguments.backend] if arguments.backend else ROWS:
        measure(name, arguments.rows or ROWS[name], arguments.url, arguments.searches, keep)


if __name__ == "__main__":
    main()
