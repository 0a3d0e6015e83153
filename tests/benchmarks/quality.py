"""Measure what recall finds: store an evaluation set, ask its questions, write the rankings for a scorer.

    python tests/benchmarks/quality.py --data DIR --set locomo --backend sqlite --embedder wordllama --rankings FILE

DIR holds the public sets (locomo/, beam/, updates/, absent/), which are not part of this project. One persona a
conversation, one memory a turn, everything through the public API. Each output line is one question:
{"qid", "ids": [best first], "score": confidence of the best hit or null, "abstained": bool}. --reliability prints on
standard error how often the best hits of each confidence are right, where a set says what is right.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import data

from memoranda import MemorandaError, MemoryEngine
from memoranda.drafts import hidden
from memoranda.embedders.cache import MAX_CHARACTERS
from memoranda.policies import Policies
from memoranda.testing.postgres import temporary_server
from memoranda.text import clean

BATCH = 500
BINS = 20
FIRST = 5
"""A question is answered right when one of so many hits holds the answer."""


class LookupEmbedder:
    """Answers from a file of precomputed vectors, so that a model that is not installed can be measured.

    The file is an npz archive with `texts` (unicode) and `vectors` (one row a text). A text that is not in it is an
    error: a guessed vector would falsify the measurement without a sign. What an engine hides or cuts before it embeds
    has the vector of the text as it was: a batch with one unknown text would lose the vectors of all.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        with np.load(path, allow_pickle=False) as archive:
            vectors = np.asarray(archive["vectors"], dtype=np.float32)
            self._rows = {str(text): row for row, text in enumerate(archive["texts"])}
        for text, row in list(self._rows.items()):
            shown = hidden(clean(text), Policies())
            self._rows.setdefault(shown, row)
            self._rows.setdefault(shown[:MAX_CHARACTERS], row)
        self._vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        self.name = f"npz/{path.stem}"
        self.dimensions = int(vectors.shape[1])

    def embed(self, texts: Sequence[str], purpose: str) -> Any:
        """Return the stored vectors.

        Raises:
            KeyError: a text has none.
        """
        unknown = [text for text in texts if text not in self._rows]
        if unknown:
            raise KeyError(f"{len(unknown)} of {len(texts)} texts have no vector in the file")
        return self._vectors[[self._rows[text] for text in texts]]

    async def aembed(self, texts: Sequence[str], purpose: str) -> Any:
        """Do the same as `embed`."""
        return self.embed(texts, purpose)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, or 2 when something needed is missing."""
    options = _parser().parse_args(arguments)
    try:
        embedder: Any = {"hash": "hash/words", "wordllama": "wordllama", "none": "none"}.get(options.embedder)
        if embedder is None:
            embedder = LookupEmbedder(Path(options.embedder.removeprefix("npz:")))
        dataset = data.load(options.set, options.data)
        with contextlib.ExitStack() as stack:
            url = options.url or stack.enter_context(_database(options.backend))
            engine = stack.enter_context(MemoryEngine(url, embedder=embedder))
            engine.setup()
            known = _store(engine, dataset)
            out = sys.stdout if options.rankings == "-" else stack.enter_context(_opened(options.rankings))
            sure = _ask(engine, dataset, known, out, options.limit)
        if options.reliability:
            print(_reliability(sure), file=sys.stderr)
    except (data.DataMissing, MemorandaError, OSError) as error:
        print(f"quality: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the evaluation sets")
    parser.add_argument("--set", choices=sorted(data.LOADERS), required=True, help="which set to store and ask")
    parser.add_argument("--backend", choices=["sqlite", "postgres"], default="sqlite", help="which database")
    parser.add_argument("--url", help="an empty database to use; without it a temporary one is made and removed")
    parser.add_argument(
        "--embedder",
        default="wordllama",
        type=_embedder,
        metavar="hash|wordllama|none|npz:FILE",
        help="what makes the vectors; npz:FILE looks them up in the arrays `texts` and `vectors`",
    )
    parser.add_argument("--rankings", default="-", metavar="FILE", help="where the lines go; - is standard output")
    parser.add_argument("--reliability", action="store_true", help="print how often hits of a confidence are right")
    parser.add_argument("--limit", type=int, default=20, help="how many hits to ask for (default %(default)s)")
    return parser


def _embedder(value: str) -> str:
    if value in ("hash", "wordllama", "none") or value.startswith("npz:"):
        return value
    raise argparse.ArgumentTypeError("choose hash, wordllama, none or npz:FILE")


def _store(engine: MemoryEngine, dataset: data.DataSet) -> dict[str, dict[Any, str]]:
    """Store every memory; return for each scope the set's ids by the ids they were given."""
    known: dict[str, dict[Any, str]] = {}
    begin, stored = time.perf_counter(), 0
    for scope, items in dataset.scopes.items():
        memories, ids = engine.persona(scope).memories, known.setdefault(scope, {})
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            written = memories.write_many([_fields(item) for item in batch])
            for item, result in zip(batch, written, strict=True):
                # the same text twice in one place is one memory, known by its first id
                ids.setdefault(result.memory.id, item.id)
            stored += len(batch)
        if len(known) % 25 == 0 or len(items) >= BATCH or len(known) == len(dataset.scopes):
            _progress(f"stored {stored:,} memories in {len(known)} of {len(dataset.scopes)} scopes", begin)
    print(file=sys.stderr)
    return known


def _fields(item: data.Item) -> dict[str, Any]:
    fields: dict[str, Any] = {"content": item.text, "event_time": item.when}
    if item.session:
        fields |= {"session": item.session, "position": item.position}
    return fields


def _ask(
    engine: MemoryEngine, dataset: data.DataSet, known: dict[str, dict[Any, str]], out: TextIO, limit: int
) -> list[tuple[float, bool]]:
    """Ask every question; return how sure its best hit was, shown or not, and whether one of the first is right."""
    begin, seconds, sure = time.perf_counter(), [], []
    for number, question in enumerate(dataset.questions, 1):
        ids, asked = known[question.scope], time.perf_counter()
        answer = engine.persona(question.scope).recall(question.text, limit=limit)
        seconds.append(time.perf_counter() - asked)
        best = max((hit.confidence for hit in (*answer, *answer.nearest)), default=None)
        line = {
            "qid": question.qid,
            "ids": [ids[hit.id] for hit in answer],
            "score": best,
            "abstained": answer.abstained,
        }
        print(json.dumps(line), file=out)
        sure.append((best or 0.0, any(ids[hit.id] in question.right for hit in (*answer, *answer.nearest)[:FIRST])))
        if number % 50 == 0 or number == len(dataset.questions):
            _progress(f"asked {number:,} of {len(dataset.questions):,} questions", begin)
    seconds.sort()
    median, late = seconds[len(seconds) // 2] * 1000, seconds[int(len(seconds) * 0.95)] * 1000
    print(f"\nrecall: p50 {median:.1f} ms, p95 {late:.1f} ms", file=sys.stderr)
    return sure


def _reliability(sure: Sequence[tuple[float, bool]]) -> str:
    """Return lines that say how many questions have a best hit of a confidence, and how many of them are right."""
    bins: dict[int, list[bool]] = {}
    for confidence, right in sure:
        bins.setdefault(min(int(confidence * BINS + 1e-9), BINS - 1), []).append(right)
    lines = ["confidence  questions  right"]
    for place, rights in sorted(bins.items()):
        lines.append(f"{place / BINS:.2f}-{(place + 1) / BINS:.2f}  {len(rights):9,}  {sum(rights) / len(rights):.3f}")
    return "\n".join(lines)


def _progress(message: str, begin: float) -> None:
    print(f"\r{message}, {time.perf_counter() - begin:.0f} s", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        yield out


@contextlib.contextmanager
def _database(backend: str) -> Iterator[str]:
    """Make an empty database for this run; Postgres comes from the wheel."""
    if backend == "postgres":
        with temporary_server() as server:
            yield server.url()
        return
    with tempfile.TemporaryDirectory(prefix="memoranda-quality-") as folder:
        yield f"sqlite:///{folder}/memory.db"


if __name__ == "__main__":
    sys.exit(main())
