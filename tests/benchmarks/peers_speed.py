"""What each peer costs: hybrid search at equal k and size, single and batched adds, a scope of few among many.

All peers are open at once and take turns, call by call, so that they see the same machine. They are filled through
their public batch write, mem0 through its vector store's, which is ten times as fast. `found` is how many of ten
results a scope of a hundred rows gives, at the least and at the hundredth search of one connection. Ours answers
without its floor: made-up questions have no answer, and everybody is to give ten.
"""

import json
import sys
from functools import partial
from typing import Any

import psycopg
from peers import Bench
from peers_adapters import OPENERS, Peer, Place, Row, Vectors, quiet
from speed import DIMENSIONS, percentiles, timed

K, BATCH, SINGLES, BATCHES, FEW = 10, 100, 60, 8, 100


def measure(bench: Bench) -> dict[str, Any]:
    """Open the peers, fill them and let them take turns."""
    quiet(bench.folder)
    vectors = Vectors("bench/given", DIMENSIONS, dict[str, Any]())
    result: dict[str, Any] = {"skipped": {}}
    peers: dict[str, Peer] = {}
    urls: dict[str, str] = {}
    for name in bench.peers:
        folder = bench.folder / name.replace("/", "-")
        folder.mkdir()
        urls[name] = bench.database()
        try:
            place = Place(stack=bench.stack, folder=folder, url=urls[name], vectors=vectors, abstains=False)
            peers[name] = OPENERS[name](place)
        except ImportError as missing:
            result["skipped"][name] = str(missing)
            print(f"{name}: skipped, {missing}", file=sys.stderr)
    writer = _Rows(bench, vectors)
    stored = 0
    for size in bench.sizes:
        while stored < size:
            rows = writer.rows(min(1000, size - stored))
            stored += len(rows)
            for name, peer in peers.items():
                print(f"\r\033[K{stored:,} of {bench.sizes[-1]:,} rows: {name}", end="", file=sys.stderr, flush=True)
                peer.fill("many", rows)
        _settle(peers, urls)
        questions = writer.questions(bench.searches)
        result[f"{size:,}: search"] = _told(f"{size:,}: search", _turns(peers, "many", questions))
    few = writer.rows(FEW)
    for peer in peers.values():
        peer.fill("few", few)
    _settle(peers, urls)
    questions = writer.questions(100)
    found = {name: [len(peer.search("few", q, K).ids) for q in questions] for name, peer in peers.items()}
    result["few among many: found"] = {name: [min(counts), counts[-1]] for name, counts in found.items()}
    result["few among many: search"] = _told("few: search", _turns(peers, "few", writer.questions(bench.searches)))
    singles = [writer.rows(1) for _ in range(SINGLES)]
    result["single adds"] = _told("single adds", _adds(peers, singles))
    batches = [writer.rows(BATCH) for _ in range(BATCHES)]
    result["batched adds of 100"] = _told("batched adds of 100", _adds(peers, batches))
    return result


class _Rows:
    """Makes rows, and lets everybody know their vectors."""

    def __init__(self, bench: Bench, vectors: Vectors) -> None:
        self.bench, self.vectors, self.count = bench, vectors, 0

    def rows(self, count: int) -> list[Row]:
        made = self.bench.writer.sentences(count)
        self.vectors.table |= dict(made)
        self.count += count
        return [Row(str(self.count - count + n), text) for n, (text, _) in enumerate(made)]

    def questions(self, count: int) -> list[str]:
        made = self.bench.writer.sentences(count + 1, length=7)
        self.vectors.table |= dict(made)
        return [text for text, _ in made]


def _settle(peers: dict[str, Peer], urls: dict[str, str]) -> None:
    for name, peer in peers.items():
        peer.settle()
        with psycopg.connect(urls[name].replace("+psycopg:", ":"), autocommit=True) as conn:
            conn.execute("VACUUM ANALYZE")  # as a server does by itself, within a minute


def _turns(peers: dict[str, Peer], scope: str, questions: list[str]) -> dict[str, Any]:
    spent: dict[str, list[float]] = {name: [] for name in peers}
    for place, question in enumerate(questions):
        for name, peer in peers.items():
            seconds = timed(partial(peer.search, scope, question, K))
            if place:
                spent[name].append(seconds)
    return {name: percentiles(seconds) for name, seconds in spent.items()}


def _adds(peers: dict[str, Peer], parts: list[list[Row]]) -> dict[str, Any]:
    spent: dict[str, list[float]] = {name: [] for name in peers}
    for rows in parts:
        for name, peer in peers.items():
            spent[name].append(timed(partial(peer.add, "many", rows)))
    return {
        name: percentiles(seconds[1:]) | {"adds_per_s": round(len(parts[0]) * len(seconds[1:]) / sum(seconds[1:]))}
        for name, seconds in spent.items()
    }


def _told(label: str, figures: dict[str, Any]) -> dict[str, Any]:
    for name, values in figures.items():
        print(f"\r\033[K{label:24s} {name:18s} {json.dumps(values)}", file=sys.stderr)
    return figures
