import json
import subprocess
import sys

import pytest

NEEDED_LATER = {"sqlalchemy", "alembic", "numpy", "pydantic"}
EXTRAS = {"psycopg", "pgvector", "wordllama", "Stemmer", "openai", "opentelemetry", "pypdf", "typer", "rich"}
PROBE = """
import json, sys, time
start = time.perf_counter()
import {module}
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def probe(module):
    command = [sys.executable, "-c", PROBE.format(module=module)]
    seconds, modules = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return seconds, modules


def test_importing_the_package_loads_nothing_heavy():
    assert not (NEEDED_LATER | EXTRAS) & set(probe("memoranda")[1])


def test_importing_the_package_takes_under_a_tenth_of_a_second():
    seconds = []
    for _ in range(20):  # a busy machine may hold up any process: the best of many says what the import costs
        seconds.append(probe("memoranda")[0])
        if seconds[-1] < 0.1:
            return
    pytest.fail(f"{min(seconds):.3f} s at best")


def test_the_fakes_need_no_test_runner():
    assert not (NEEDED_LATER | EXTRAS | {"pytest"}) & set(probe("memoranda.testing")[1])
