"""Run LangChain's own tests against Memoranda's classes: downloaded as source distributions, and never kept.

    python integrations/langchain/upstream/run.py [agents] [indexing] [stores]

Without a name all of them are run: agents with their histories, `index()`, and LangGraph's stores. What fails beyond
the untouched baseline must be exactly what `expected_failures.txt` names.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from sqlalchemy import make_url

from memoranda import MemoryEngine
from memoranda.testing.postgres import temporary_server

HERE = Path(__file__).parent
EXPECTED = {
    line
    for line in (HERE / "expected_failures.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
HISTORY = ["tests/unit_tests/runnables/test_history.py", "tests/unit_tests/chat_history"]
AGENTS = [
    *(f"tests/unit_tests/agents/test_{name}.py" for name in ("react_agent", "system_message", "state_schema")),
    "tests/unit_tests/agents/test_return_direct_graph.py",
    "tests/unit_tests/agents/middleware/core",
    "tests/unit_tests/agents/middleware/implementations/test_summarization.py",
]
POSTGRES = ["tests/unit_tests/v1/test_chat_histories.py"]
POSTGRES_VERSION = "0.0.19"
INDEXING = [
    f"tests/unit_tests/indexing/test_{name}.py" for name in ("indexing", "in_memory_record_manager", "public_api")
]
STORES = {
    "core": ("langgraph-checkpoint", "4.3.2", ["tests/test_store.py"]),
    "sqlite": ("langgraph-checkpoint-sqlite", "3.1.2", [f"tests/test_{n}.py" for n in ("store", "async_store", "ttl")]),
    "postgres": ("langgraph-checkpoint-postgres", "3.2.0", ["tests/test_store.py", "tests/test_async_store.py"]),
}
"""The tests of LangGraph's own stores; those of the Postgres store are run on Postgres, the others on both."""
LEAST = {
    **{"history": 27, "postgres": 2, "agents": 370, "prompts": 370},
    **{f"indexing on {database}": 55 for database in ("SQLite", "Postgres")},
    **{f"store-core on {database}": 117 for database in ("SQLite", "Postgres")},
    **{f"store-sqlite on {database}": 142 + 11 for database in ("SQLite", "Postgres")},
    "store-postgres on Postgres": 299,
}
"""How many tests there must be at least: none that ran would be none that failed."""
GROUPS = {"agents": "langchain::", "indexing": "langchain_core::", "stores": "langgraph_"}
"""What can be run by itself, and how the tests of it begin."""


def main() -> None:
    """Run the suites, and say what is not as expected."""
    wanted = sys.argv[1:] or list(GROUPS)
    if unknown := set(wanted) - GROUPS.keys():
        sys.exit(f"{', '.join(unknown)}: choose among {', '.join(GROUPS)}")
    expected = {test for test in EXPECTED if test.startswith(tuple(GROUPS[name] for name in wanted))}
    with tempfile.TemporaryDirectory() as scratch, databases() as urls, ThreadPoolExecutor(2) as pool:
        core = unpacked(Path(scratch), "langchain-core", metadata.version("langchain-core"))
        running = {}
        if "agents" in wanted:
            agents = unpacked(Path(scratch), "langchain", metadata.version("langchain"))
            postgres = unpacked(Path(scratch), "langchain-postgres", POSTGRES_VERSION)
            running |= {
                "agents": pool.submit(ran, agents, AGENTS, swap="agents"),
                "baseline": pool.submit(ran, agents, AGENTS),
                "prompts": pool.submit(ran, agents, AGENTS, swap="prompts"),
                "history": pool.submit(ran, core, HISTORY, swap="history", plain=True),
                "postgres": pool.submit(
                    ran, postgres, POSTGRES, swap="history", plain=True, MEMORANDA_UPSTREAM_POSTGRES="1"
                ),
            }
        for database, url in urls.items() if "indexing" in wanted else ():
            running[f"indexing on {database}"] = pool.submit(ran, core, INDEXING, swap="indexing", plain=True, **url)
        for kind, (package, release, tests) in STORES.items() if "stores" in wanted else ():
            folder = unpacked(Path(scratch), package, release)
            for database, url in urls.items():
                if kind != "postgres" or database == "Postgres":
                    asked = pool.submit(ran, folder, tests, swap=f"store-{kind}", defaults=True, **url)
                    running[f"store-{kind} on {database}"] = asked
        results = {name: run.result() for name, run in running.items()}
    _, baseline = results.pop("baseline", (0, set[str]()))
    problems = []
    beyond: set[str] = set()
    for name, (count, failed) in results.items():
        new = failed - baseline
        print(f"{name}: {count} tests, {len(failed)} failed, {len(new)} of them beyond the baseline")
        beyond |= new
        if count < LEAST[name]:
            problems.append(f"only {count} tests of {name} ran")
    problems += [f"fails: {test}" for test in sorted(beyond - expected)]
    problems += [f"passes, though it is named in expected_failures.txt: {test}" for test in sorted(expected - beyond)]
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
        plain = {
            "MEMORANDA_UPSTREAM_SERVER": make_url(server.url()).set(drivername="postgresql").render_as_string(False)
        }
        yield {name: {"MEMORANDA_UPSTREAM_URL": url} | plain for name, url in urls.items()}


def unpacked(scratch: Path, name: str, version: str) -> Path:
    """Download and unpack a source distribution."""
    options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(scratch)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, f"{name}=={version}"], check=True)
    [archive] = scratch.glob(f"{name.replace('-', '_')}-{version}.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(scratch, filter="data")
    return scratch / archive.name.removesuffix(".tar.gz")


def ran(
    folder: Path, tests: list[str], *, swap: str = "", plain: bool = False, defaults: bool = False, **more: str
) -> tuple[int, set[str]]:
    """Run tests of a source distribution; return how many there were, and which failed.

    Args:
        folder: Where it is.
        tests: The files.
        swap: Which classes are put in the place of which.
        plain: Whether it is run without its options and its `conftest.py`.
        defaults: Whether it is run without its options.
        **more: What else stands in the environment.
    """
    log = Path(tempfile.mkstemp(".log", dir=folder)[1])  # several are run at once
    paths = os.pathsep.join([str(HERE), str(folder)])
    environment = {**os.environ, "PYTHONPATH": paths, "MEMORANDA_UPSTREAM": swap, "MEMORANDA_UPSTREAM_LOG": str(log)}
    # The conftest of a whole test suite asks for more than these tests need.
    options = ["-o", "addopts=", "-o", "asyncio_mode=auto"] if plain or defaults else ["-q"]
    if plain:
        options.append("--noconftest")
    command = [sys.executable, "-m", "pytest", "-p", "memoranda_upstream", "-p", "no:cacheprovider", *options, *tests]
    done = subprocess.run(command, cwd=folder, env=environment | more, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder.name} could not be tested:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    lines = [line.split(" ", 1) for line in log.read_text(encoding="utf-8").splitlines()]
    failed = {f"{folder.name.rsplit('-', 1)[0]}::{test}" for outcome, test in lines if outcome == "failed"}
    return len({test for _, test in lines}), failed


if __name__ == "__main__":
    main()
