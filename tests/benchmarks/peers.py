"""Measure Memoranda's adapters beside what else does the same, in one run, on one server, with the same vectors.

    python tests/benchmarks/peers.py speed --sizes 1000,10000 --json speed.json
    python tests/benchmarks/peers.py quality --data DIR --rankings OUT

`speed` and `quality` go beside every peer through adapters of one shape (`peers_adapters.py`); `stores`, `vectors` and
`sessions` beside the one peer whose interface ours has as well.

A section is a module `peers_NAME` beside this one with a function `measure(bench) -> dict`: it opens its peers, lets
them take turns at each step, and returns medians. Texts are made up from a fixed seed and vectors are looked up, so
that neither data nor a model is measured (`quality` takes public sets and WordLlama's vectors, or those of an archive).
Peers are no requirement of this project: the extra `bench` has them, and one that is missing is skipped with a word.
Quote ratios, for machines differ.
"""

import argparse
import importlib
import itertools
import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from floors import Vector
from langchain_core.embeddings import Embeddings
from peers_adapters import OPENERS
from speed import DIMENSIONS, DURABLE, Writer, timed

from memoranda.testing.postgres import PostgresServer, temporary_server

SECTIONS = ("speed", "quality", "stores", "vectors", "sessions")
SETS = ("locomo", "beam", "updates", "absent")
_PACKAGES = ("memoranda", "langchain-memoranda", "SQLAlchemy", "numpy", "psycopg", "pgvector", "langgraph")
_PEERS = (
    *("langgraph-checkpoint", "langgraph-checkpoint-postgres", "langchain-core", "langchain-postgres"),
    *("llama-index-core", "llama-index-vector-stores-postgres"),
    *("chromadb", "lancedb", "mem0ai", "qdrant-client"),
)


class GivenEmbeddings(Embeddings):
    """Looks vectors up, the same for everybody."""

    model = "bench/given"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self.table: dict[str, list[float]] = {}

    def know(self, rows: Sequence[tuple[str, Vector]]) -> None:
        """Take in texts with their vectors."""
        self.table.update((text, vector.tolist()) for text, vector in rows)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Look the texts up."""
        return [self.table[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Look the text up."""
        return self.table[text]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What a section measures with."""

    stack: ExitStack
    """What is opened here is closed at the end."""
    folder: Path
    postgres: str
    """The SQLAlchemy URL of a database with the `vector` extension and nothing else."""
    dsn: str
    """The same for psycopg."""
    sizes: Sequence[int]
    searches: int
    server: PostgresServer
    peers: Sequence[str]
    """Which peers `speed` and `quality` ask."""
    sets: Sequence[str]
    data: Path | None
    """The folder of the public sets."""
    vectors: Path | None
    """An archive of vectors to use for them."""
    rankings: Path | None
    """Where the rankings go."""
    writer: Writer = field(default_factory=Writer)
    given: GivenEmbeddings = field(default_factory=GivenEmbeddings)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def database(self) -> str:
        """Return the SQLAlchemy URL of a new database with the `vector` extension and nothing else."""
        name = f"bench_{next(self.numbers)}"
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name}")
        url = self.server.url(name)
        with psycopg.connect(url.replace("+psycopg:", ":"), autocommit=True) as conn:
            conn.execute("CREATE EXTENSION vector")
        return url

    def sentences(self, count: int, length: int = 20) -> list[str]:
        """Return new texts whose vectors everybody knows."""
        rows = self.writer.sentences(count, length)
        self.given.know(rows)
        return [text for text, _ in rows]


def in_turn(runs: Mapping[str, Sequence[Callable[[], object]]], *, warm: int = 1) -> dict[str, float]:
    """Let peers take turns, call by call, and return the median of each in milliseconds, without the first calls."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for place, calls in enumerate(zip(*runs.values(), strict=True)):
        for name, call in zip(runs, calls, strict=True):
            seconds = timed(call)
            if place >= warm:
                spent[name].append(seconds)
    return {name: round(1e3 * float(np.median(seconds)), 3) for name, seconds in spent.items()}


def told(label: str, figures: Mapping[str, float]) -> None:
    """Print one line of figures."""
    print(f"{label:44s} " + "  ".join(f"{name} {value:9.3f}" for name, value in figures.items()), file=sys.stderr)


def versions() -> dict[str, str]:
    """Return what the figures depend on."""
    found = {"python": platform.python_version()}
    for package in (*_PACKAGES, *_PEERS):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all when left out")
    parser.add_argument("--sizes", default="1000,10000", help="rows, ascending (default %(default)s)")
    parser.add_argument("--searches", type=int, default=60, help="questions a step (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there")
    parser.add_argument("--peers", default=",".join(OPENERS), help="which to measure (default %(default)s)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder of the public sets")
    parser.add_argument("--sets", default=",".join(SETS), help="which of them (default %(default)s)")
    parser.add_argument("--vectors", type=Path, metavar="NPZ", help="vectors of theirs instead of WordLlama's")
    parser.add_argument("--rankings", type=Path, metavar="DIR", help="write what was found there, for a scorer")
    arguments = parser.parse_args()
    if unknown := set(arguments.peers.split(",")) - set(OPENERS):
        parser.error(f"no peer {', '.join(sorted(unknown))}: choose of {', '.join(OPENERS)}")
    figures: dict[str, Any] = {"machine": versions(), "dimensions": DIMENSIONS}
    sys.modules.setdefault("peers", sys.modules["__main__"])  # what the sections import is this module
    for name in arguments.sections or SECTIONS:
        section = importlib.import_module(f"peers_{name}")
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
            server = stack.enter_context(temporary_server(settings=DURABLE))
            url = server.url()
            bench = Bench(
                stack=stack,
                folder=Path(scratch),
                postgres=url,
                dsn=url.replace("postgresql+psycopg://", "postgresql://"),
                sizes=sorted(int(size) for size in arguments.sizes.split(",")),
                searches=arguments.searches,
                server=server,
                peers=arguments.peers.split(","),
                sets=arguments.sets.split(","),
                data=arguments.data,
                vectors=arguments.vectors,
                rankings=arguments.rankings,
            )
            figures[name] = section.measure(bench)
    text = json.dumps(figures, indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
