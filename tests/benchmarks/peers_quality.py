"""What each peer finds: every public set is stored and asked once a peer, and the rankings go to files for a scorer."""

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import data
import numpy as np
from peers import Bench
from peers_adapters import OPENERS, Place, Row, Vectors, quiet

from memoranda.embedders import resolve

LIMIT = 20


def measure(bench: Bench) -> dict[str, Any]:
    """Ask every peer every set, and say how long it took; without --data there is nothing to ask."""
    if bench.data is None:
        print("quality: not measured, --data names no folder with the public sets", file=sys.stderr)
        return {}
    quiet(bench.folder)
    result: dict[str, Any] = {}
    for name in bench.sets:
        dataset = data.load(name, bench.data)
        vectors = _vectors(dataset, bench.vectors)
        for peer in bench.peers:
            try:
                said = _asked(bench, dataset, vectors, name, peer)
            except ImportError as missing:
                said = {"skipped": str(missing)}
            except Exception as error:  # the others are still measured
                said = {"failed": f"{type(error).__name__}: {error}"}
            result.setdefault(name, {})[peer] = said
            print(f"{name:10s} {peer:18s} {json.dumps(said)}", file=sys.stderr)
    return result


def _asked(bench: Bench, dataset: data.DataSet, vectors: Vectors, name: str, peer: str) -> dict[str, Any]:
    with TemporaryDirectory() as scratch, ExitStack() as stack:
        place = Place(stack=stack, folder=Path(scratch), url=bench.database(), vectors=vectors)
        opened = OPENERS[peer](place)
        begun = time.perf_counter()
        for scope, items in dataset.scopes.items():
            opened.add(scope, [Row(item.id, item.text, item.when, item.session, item.position) for item in items])
        opened.settle()
        stored, empty = time.perf_counter(), 0
        folder = bench.rankings or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{name}.{peer.replace('/', '-')}.jsonl").open("w", encoding="utf-8") as out:
            for question in dataset.questions:
                found = opened.search(question.scope, question.text, LIMIT)
                empty += not found.ids
                line = {"qid": question.qid, "ids": found.ids, "score": found.score, "abstained": found.abstained}
                print(json.dumps(line, default=float), file=out)
        asked = time.perf_counter()
    return {"store_s": round(stored - begun, 1), "ask_s": round(asked - stored, 1), "unanswered": empty}


def _vectors(dataset: data.DataSet, archive: Path | None) -> Vectors:
    """Return the vectors of all texts of a set, of WordLlama or of an archive with `texts` and `vectors`."""
    texts = {item.text for items in dataset.scopes.values() for item in items}
    texts |= {question.text for question in dataset.questions}
    if archive is not None:
        with np.load(archive, allow_pickle=False) as found:
            values = np.asarray(found["vectors"], np.float32)
            values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
            table = {str(text): vector for text, vector in zip(found["texts"], values, strict=True)}
        return Vectors(f"npz/{archive.stem}", values.shape[1], table)
    embedder = resolve("wordllama")
    assert embedder is not None
    ordered = sorted(texts)
    made = [
        np.asarray(v, np.float32)
        for at in range(0, len(ordered), 500)
        for v in embedder.embed(ordered[at : at + 500], "text")
    ]
    return Vectors(embedder.name, embedder.dimensions, dict(zip(ordered, made, strict=True)))
