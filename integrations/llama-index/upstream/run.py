"""Run LlamaIndex's own tests against Memoranda's classes, from a checkout of theirs, on SQLite and on Postgres.

`run.py DIR`, where DIR is a checkout of the run-llama/llama_index repository; without it nothing is run, and the exit
status is 3. What fails beyond the untouched baseline must be exactly what `expected_failures.txt` names.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from memoranda import MemoryEngine
from memoranda.testing.postgres import temporary_server

HERE = Path(__file__).parent
EXPECTED = {
    line
    for line in (HERE / "expected_failures.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
CORE = "llama-index-core"
CHAT_STORES = "llama-index-integrations/storage/chat_store"
VECTOR_STORES = "llama-index-integrations/vector_stores"
MARKED_FIXTURE = re.compile(r"@pytest\.fixture\(\)\n@pytest\.mark\..+\n")
"""A mark on a fixture never had an effect, and pytest 9 refuses it."""
NO_CHECKOUT = 3
"""The exit status where there is nothing to run."""


@dataclass(frozen=True)
class Suite:
    """Tests of one package, run with one of the swaps of `memoranda_upstream`."""

    package: str
    tests: tuple[str, ...]
    least: int
    """How many there must be at least: none that ran would be none that failed."""


SUITES = {
    "memory": Suite(CORE, ("tests/memory/test_memory_base.py",), 16),
    "blocks": Suite(CORE, ("tests/memory/test_memory_base.py", "tests/memory/test_memory_blocks_base.py"), 25),
    "stores": Suite(CORE, ("tests/storage/chat_store/test_sql.py",), 11),
    "sqlite-store": Suite(f"{CHAT_STORES}/llama-index-storage-chat-store-sqlite", ("tests",), 13),
    "postgres-store": Suite(f"{CHAT_STORES}/llama-index-storage-chat-store-postgres", ("tests",), 17),
    "buffers": Suite(
        CORE, ("tests/memory/test_chat_memory_buffer.py", "tests/memory/test_chat_summary_memory_buffer.py"), 26
    ),
    "agents": Suite(CORE, ("tests/agent/workflow",), 40),
    "chat-engines": Suite(CORE, ("tests/chat_engine",), 22),
    "vectors": Suite(CORE, ("tests/vector_stores/test_simple.py",), 26),
    "postgres-vectors": Suite(f"{VECTOR_STORES}/llama-index-vector-stores-postgres", ("tests/test_postgres.py",), 90),
}
"""By the name of the swap."""


def main() -> None:
    """Run the suites, and say what is not as expected."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / CORE / "tests").is_dir():
        print(f"name a checkout of run-llama/llama_index, where {CORE}/tests is: LLAMA_INDEX_SRC=DIR", file=sys.stderr)
        sys.exit(NO_CHECKOUT)
    print(f"{CORE} {metadata.version(CORE)} is installed; the tests are those of {sys.argv[1]}")
    problems = []
    with tempfile.TemporaryDirectory() as scratch, databases() as urls:
        folders = copied(Path(sys.argv[1]), Path(scratch))
        core = sorted({test for suite in SUITES.values() if suite.package == CORE for test in suite.tests})
        _, baseline = ran(folders[CORE], core)
        for database, url in urls.items():
            failed: set[str] = set()
            for name, suite in SUITES.items():
                count, broken = ran(folders[suite.package], suite.tests, MEMORANDA_UPSTREAM=name, **url)
                new = broken - baseline
                print(f"{name} on {database}: {count} tests, {len(broken)} failed, {len(new)} beyond the baseline")
                if count < suite.least:
                    problems.append(f"only {count} tests of {name} ran on {database}")
                problems += [
                    f"fails on {database}: {name}::{test}" for test in sorted(new) if f"{name}::{test}" not in EXPECTED
                ]
                failed |= {f"{name}::{test}" for test in broken}
            problems += [f"passes on {database}, though it is named: {test}" for test in sorted(EXPECTED - failed)]
    print(*problems, sep="\n")
    sys.exit(bool(problems))


@contextmanager
def databases() -> Iterator[dict[str, dict[str, str]]]:
    """Give a SQLite database in memory, and a Postgres one with our schema."""
    with temporary_server() as server:
        engine = MemoryEngine(server.url(), embedder="hash/words", background="off")
        engine.setup()
        engine.close()
        urls = {"SQLite": "sqlite:///:memory:", "Postgres": server.url()}
        yield {name: {"MEMORANDA_UPSTREAM_URL": url} for name, url in urls.items()}


def copied(checkout: Path, scratch: Path) -> dict[str, Path]:
    """Copy the tests out of the checkout: beside its sources they would not test what is installed."""
    folders = {}
    for package in {suite.package for suite in SUITES.values()}:
        folders[package] = scratch / package.rsplit("/", 1)[-1]
        shutil.copytree(checkout / package / "tests", folders[package] / "tests")
        (folders[package] / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
        for file in folders[package].rglob("test_*.py"):
            text = file.read_text(encoding="utf-8")
            file.write_text(MARKED_FIXTURE.sub("@pytest.fixture()\n", text), encoding="utf-8")
    return folders


def ran(folder: Path, tests: tuple[str, ...] | list[str], **more: str) -> tuple[int, set[str]]:
    """Run tests of a package; return how many were run, and which failed."""
    log = folder / "memoranda.log"
    log.write_text("")
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"} | {
        "PYTHONPATH": os.pathsep.join([str(HERE), str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "MEMORANDA_UPSTREAM_LOG": str(log),
        **more,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "memoranda_upstream", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder.name} could not be tested:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    lines = [line.split(" ", 1) for line in log.read_text(encoding="utf-8").splitlines()]
    told = {test for outcome, test in lines if outcome != "skipped"}
    return len(told), {test for outcome, test in lines if outcome == "failed"}


if __name__ == "__main__":
    main()
