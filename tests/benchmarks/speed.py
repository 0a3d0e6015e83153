"""Measure how fast memories are stored and recalled, beside what the storage can do by itself.

    python tests/benchmarks/speed.py --backend sqlite --sizes 1000,10000,100000 --json speed.json

Texts are made up from a fixed seed and vectors are given, so that neither data nor a model is measured. Engine and
floors run in turn on the same rows in the same process; quote ratios and medians, for machines differ.
"""

import argparse
import json
import os
import platform
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import numpy as np
from floors import Floor, NumpyFloor, PostgresFloor, SqliteFloor, Vector

from memoranda import MemoryEngine, Persona
from memoranda.policies import MemoryType
from memoranda.records import Hit
from memoranda.testing.postgres import temporary_server

DIMENSIONS = 384
BATCH = 1000
FEW = 100
_VOCABULARY = 20_000
_PAUSE = "\r\033[K"

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "512MB", "jit": "off"}
"""A server as it would be run, not as tests run it."""


class GivenVectors:
    """An embedder that looks vectors up, for what a model costs is not ours to measure."""

    name = "bench/given"
    dimensions = DIMENSIONS
    distinguishes_purpose = False
    local = True  # it only looks things up: nobody need be waited for

    def __init__(self) -> None:
        self.table: dict[str, Vector] = {}

    def embed(self, texts: Sequence[str], purpose: str) -> list[Vector]:
        """Look the texts up."""
        return [self.table[text] for text in texts]

    async def aembed(self, texts: Sequence[str], purpose: str) -> list[Vector]:
        """Look the texts up."""
        return self.embed(texts, purpose)


class Writer:
    """Makes sentences of words as frequent as in a language, each with a vector near those it shares words with."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        self._words = [
            "".join(self._random.choices(syllables, k=3)) + str(i) * (i % 97 == 0) for i in range(_VOCABULARY)
        ]
        weights = 1 / np.arange(1, _VOCABULARY + 1)
        self._cumulative = np.cumsum(weights / weights.sum()).tolist()
        self._vectors = np.random.default_rng(seed).standard_normal((_VOCABULARY, DIMENSIONS), dtype=np.float32)

    def sentence(self, length: int = 20) -> tuple[str, Vector]:
        """Return a text and its unit vector."""
        places = self._random.choices(range(_VOCABULARY), cum_weights=self._cumulative, k=length)
        vector = self._vectors[places].sum(axis=0)
        return " ".join(self._words[i] for i in places), vector / np.linalg.norm(vector)

    def sentences(self, count: int, length: int = 20) -> list[tuple[str, Vector]]:
        """Return many."""
        return [self.sentence(length) for _ in range(count)]


def timed(call: Callable[[], object]) -> float:
    """Return the seconds a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile in milliseconds."""
    return {f"p{q}_ms": round(1e3 * float(np.percentile(seconds, q)), 3) for q in (50, 95)}


def disk_bytes(folder: Path) -> int:
    """Return what the files of a folder take."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@contextmanager
def backend(name: str, url: str | None, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Give the address of an empty store, and the DSN of its server if there is one."""
    if name == "sqlite":
        yield f"sqlite:///{folder / 'memories.db'}", None
        return
    with ExitStack() as stack:
        address = url or stack.enter_context(temporary_server(settings=DURABLE)).url()
        yield address, address.replace("postgresql+psycopg://", "postgresql://")


def fill(me: Persona, rows: Sequence[tuple[str, Vector]], table: dict[str, Vector], label: str) -> float:
    """Store rows in batches and return the seconds the engine took."""
    taken = 0.0
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        table.update(batch)
        items = [{"content": text, "session": "talk", "position": start + i} for i, (text, _) in enumerate(batch)]
        taken += timed(lambda items=items: me.memories.write_many(items))  # type: ignore[misc]
        for text, _ in batch:
            table.pop(text, None)
        print(f"{_PAUSE}{label}: {start + len(batch):,} of {len(rows):,}", end="", file=sys.stderr, flush=True)
    print(_PAUSE, end="", file=sys.stderr)
    return taken


def measure(name: str, sizes: Sequence[int], url: str | None, searches: int, singles: int) -> dict[str, Any]:
    """Run everything and return the figures."""
    writer, given = Writer(), GivenVectors()
    result: dict[str, Any] = {"backend": name, "dimensions": DIMENSIONS, "machine": machine(), "sizes": {}}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = Path(scratch)
        address, dsn = stack.enter_context(backend(name, url, folder))
        engine = stack.enter_context(MemoryEngine(address, embedder=given))
        engine.setup()
        floors: list[Floor] = [NumpyFloor(DIMENSIONS)]
        floors.append(PostgresFloor(dsn, DIMENSIONS) if dsn else SqliteFloor(folder / "floor.db"))
        for floor in floors:
            stack.callback(floor.close)
        result["singles"] = single_adds(engine.persona("singles"), floors, writer, given, singles)
        me, stored = engine.persona("main"), 0
        for size in sizes:
            fresh = writer.sentences(size - stored)
            seconds = fill(me, fresh, given.table, f"{name} {size:,}")
            entry: dict[str, Any] = {"batched_adds_per_s": round(len(fresh) / seconds)}
            for floor in floors:
                batches = [fresh[i : i + BATCH] for i in range(0, len(fresh), BATCH)]
                taken = timed(lambda f=floor, b=batches: [f.add(batch) for batch in b])  # type: ignore[misc]
                entry[f"floor_{floor.name}"] = {"batched_adds_per_s": round(len(fresh) / taken)}
            stored = size
            entry["approximate"] = engine.build_indexes()
            recalls(me, floors, writer, given, searches, entry)
            if entry["approximate"]:
                entry["as_exact"] = as_exact(me, writer, given, searches)
            entry["open_ms"] = round(1e3 * timed(lambda: opening(address, given)), 1)
            entry["peak_memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            if name == "sqlite":
                entry["disk_mb"] = round(disk_bytes(folder) / 2**20, 1)
            result["sizes"][str(size)] = entry
            print(f"{size:>9,} rows  {json.dumps(entry)}", file=sys.stderr)
        few = engine.persona("main", user="few")
        fill(few, writer.sentences(FEW), given.table, f"{FEW} rows of somebody else")
        result["few_among_them"] = few_among_many(few, writer, given, searches)
    return result


def single_adds(
    me: Persona, floors: Sequence[Floor], writer: Writer, given: GivenVectors, count: int
) -> dict[str, float]:
    """Return rows a second, written one at a time, in five rounds that take turns."""
    spent: dict[str, list[float]] = {"engine": [], **{f"floor_{floor.name}": [] for floor in floors}}
    for _ in range(5):
        rows = writer.sentences(count // 5)
        given.table.update(rows)
        spent["engine"].append(timed(lambda rows=rows: [me.memories.write(text) for text, _ in rows]))  # type: ignore[misc]
        for floor in floors:
            taken = timed(lambda f=floor, rows=rows: [f.add([row]) for row in rows])  # type: ignore[misc]
            spent[f"floor_{floor.name}"].append(taken)
    return {f"{who}_adds_per_s": round(count // 5 / float(np.median(taken))) for who, taken in spent.items()}


def recalls(
    me: Persona, floors: Sequence[Floor], writer: Writer, given: GivenVectors, count: int, entry: dict[str, Any]
) -> None:
    """Ask the same questions of the engine and the floors, in turn."""
    questions = writer.sentences(count + 1, length=7)
    given.table.update(questions)
    spent: dict[str, list[float]] = {"engine": [], **{floor.name: [] for floor in floors}}
    for place, (text, vector) in enumerate(questions):
        runs = {"engine": timed(lambda: me.recall(text, limit=10))}  # noqa: B023 - called at once
        runs |= {f.name: timed(lambda f=f: f.search(text, vector, 10)) for f in floors}  # type: ignore[misc]  # noqa: B023
        if place:  # the first one warms up
            for who, seconds in runs.items():
                spent[who].append(seconds)
    entry["recall"] = percentiles(spent["engine"])
    for floor in floors:
        entry[f"floor_{floor.name}"]["recall"] = percentiles(spent[floor.name])


def as_exact(me: Persona, writer: Writer, given: GivenVectors, count: int) -> float:
    """Return the share of the hits by an approximate index that an exact comparison gives, too."""
    questions = writer.sentences(count, length=7)
    given.table.update(questions)
    found = wanted = 0
    for text, _ in questions:
        # A filter has every row compared, and this one lets all of them through.
        exact = {hit.id for hit in shown(me, text, types=get_args(MemoryType))}
        found += len(exact.intersection(hit.id for hit in shown(me, text)))
        wanted += len(exact)
    return round(found / max(wanted, 1), 4)


def few_among_many(few: Persona, writer: Writer, given: GivenVectors, count: int) -> dict[str, Any]:
    """Search a small scope in a large persona on one connection, and return how many hits the searches had."""
    questions = writer.sentences(count, length=7)
    given.table.update(questions)
    hits: list[int] = []
    spent = [timed(lambda text=text: hits.append(len(shown(few, text)))) for text, _ in questions]  # type: ignore[misc]
    return {"first": hits[0], "last": hits[-1], "fewest": min(hits), **percentiles(spent)}


def shown(me: Persona, text: str, **filters: Any) -> Sequence[Hit]:
    """Return ten hits, or what came nearest where none is good enough."""
    answer = me.recall(text, limit=10, **filters)
    return answer.hits or answer.nearest


def opening(address: str, given: GivenVectors) -> None:
    """Open a store and read one row."""
    with MemoryEngine(address, embedder=given) as engine:
        engine.persona("main").memories.list(limit=1)


def machine() -> dict[str, str]:
    """Return what the figures depend on."""
    packages = ("memoranda", "SQLAlchemy", "numpy")
    return {
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        **{package: version(package) for package in packages},
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["sqlite", "postgres"], required=True)
    parser.add_argument("--sizes", default="1000,10000", help="rows in one persona, ascending (default %(default)s)")
    parser.add_argument("--url", help="a Postgres database to use instead of a server that is started for the run")
    parser.add_argument("--searches", type=int, default=100, help="questions a size (default %(default)s)")
    parser.add_argument("--singles", type=int, default=2000, help="rows written one at a time (default %(default)s)")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write the figures there; standard output when left out"
    )
    arguments = parser.parse_args()
    sizes = sorted(int(size) for size in arguments.sizes.split(","))
    figures = json.dumps(
        measure(arguments.backend, sizes, arguments.url, arguments.searches, arguments.singles), indent=1
    )
    if arguments.json:
        arguments.json.write_text(figures + "\n", encoding="utf-8")
    else:
        print(figures)


if __name__ == "__main__":
    main()
