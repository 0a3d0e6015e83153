"""Run LangChain's own tests against Memoranda's classes: downloaded as source distributions, and never kept.

What fails beyond the untouched baseline must be exactly what `expected_failures.txt` names.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path

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
LEAST = {"history": 27, "postgres": 2, "agents": 370}
"""How many tests there must be at least: none that ran would be none that failed."""


def main() -> None:
    """Run the three suites, and say what is not as expected."""
    with tempfile.TemporaryDirectory() as scratch:
        core = unpacked(Path(scratch), "langchain-core", metadata.version("langchain-core"))
        agents = unpacked(Path(scratch), "langchain", metadata.version("langchain"))
        postgres = unpacked(Path(scratch), "langchain-postgres", POSTGRES_VERSION)
        results = {
            "history": ran(core, HISTORY, swap="history", plain=True),
            "postgres": ran(postgres, POSTGRES, swap="history", plain=True, MEMORANDA_UPSTREAM_POSTGRES="1"),
            "agents": ran(agents, AGENTS, swap="agents"),
        }
        _, baseline = ran(agents, AGENTS)
    problems = []
    beyond: set[str] = set()
    for name, (count, failed) in results.items():
        new = failed - baseline
        print(f"{name}: {count} tests, {len(failed)} failed, {len(new)} of them beyond the baseline")
        beyond |= new
        if count < LEAST[name]:
            problems.append(f"only {count} tests of {name} ran")
    problems += [f"fails: {test}" for test in sorted(beyond - EXPECTED)]
    problems += [f"passes, though it is named in expected_failures.txt: {test}" for test in sorted(EXPECTED - beyond)]
    print(*problems, sep="\n")
    sys.exit(bool(problems))


def unpacked(scratch: Path, name: str, version: str) -> Path:
    """Download and unpack a source distribution."""
    options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(scratch)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, f"{name}=={version}"], check=True)
    [archive] = scratch.glob(f"{name.replace('-', '_')}-{version}.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(scratch, filter="data")
    return scratch / archive.name.removesuffix(".tar.gz")


def ran(folder: Path, tests: list[str], *, swap: str = "", plain: bool = False, **more: str) -> tuple[int, set[str]]:
    """Run tests of a source distribution; return how many there were, and which failed."""
    log = folder / "memoranda.log"
    log.write_text("")
    paths = os.pathsep.join([str(HERE), str(folder)])
    environment = {**os.environ, "PYTHONPATH": paths, "MEMORANDA_UPSTREAM": swap, "MEMORANDA_UPSTREAM_LOG": str(log)}
    # The conftest of a whole test suite asks for more than these tests need.
    options = ["--noconftest", "-o", "addopts=", "-o", "asyncio_mode=auto"] if plain else ["-q"]
    command = [sys.executable, "-m", "pytest", "-p", "memoranda_upstream", "-p", "no:cacheprovider", *options, *tests]
    done = subprocess.run(command, cwd=folder, env=environment | more, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder.name} could not be tested:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    lines = [line.split(" ", 1) for line in log.read_text(encoding="utf-8").splitlines()]
    failed = {f"{folder.name.rsplit('-', 1)[0]}::{test}" for outcome, test in lines if outcome == "failed"}
    return len({test for _, test in lines}), failed


if __name__ == "__main__":
    main()
