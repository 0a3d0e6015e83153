"""Hypothesis profiles, and which combinations are run; the fixtures come from `memoranda.testing.plugin`."""

import os
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

BACKENDS = ("sqlite-memory", "sqlite-file", "postgres")
MODES = ("sync", "async")

# Machines differ in speed and function-scoped engines are reused on purpose: time and scope are no findings here.
IGNORED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

settings.register_profile("default", max_examples=50, deadline=None, print_blob=True, suppress_health_check=IGNORED)
settings.register_profile("fast", settings.get_profile("default"), max_examples=15)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("MEMORANDA_TEST_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "in_turn: each set of parameters in one combination, and all six one by one")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run each test on Postgres in one mode, and in the other one on SQLite, in memory or in a file.

    The body of a test is one, and so is the code behind both modes: of six combinations two tell the same, chosen by
    the test's name so that all six are in use. Where many sets of parameters are alike, the marker `in_turn` goes
    further. `MEMORANDA_TEST_MATRIX=full` runs all combinations, `thin` one.
    """
    matrix = os.environ.get("MEMORANDA_TEST_MATRIX", "")
    if matrix == "full":
        return
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    sets: dict[str, list[str]] = {}
    for item in items:
        (kept if _is_wanted(item, sets, thin=matrix == "thin") else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _is_wanted(item: pytest.Item, sets: dict[str, list[str]], *, thin: bool) -> bool:
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params if callspec else {}
    backend, mode = parameters.get("backend"), parameters.get("mode")
    if callspec is None or backend not in BACKENDS or mode not in MODES:
        return True
    rest = callspec.id.replace(backend, "").replace(mode, "")
    # One of the six ways to have both modes among the three databases: the bits of 1..6.
    name = f"{item.path.name}:{getattr(item, 'originalname', '')}"
    if item.get_closest_marker("in_turn"):
        seen = sets.setdefault(name, [])
        if rest not in seen:
            seen.append(rest)
        return (seen.index(rest) + crc32(name.encode())) % 6 == 2 * BACKENDS.index(backend) + MODES.index(mode)
    number = crc32(f"{name}:{rest}".encode())
    choice = 1 + number % 6
    modes = {database: MODES[choice >> place & 1] for place, database in enumerate(BACKENDS)}
    others = [database for database in BACKENDS[:2] if modes[database] != modes["postgres"]]
    databases = [BACKENDS[number // 6 % 3]] if thin else ["postgres", others[number // 6 % len(others)]]
    return backend in databases and modes[backend] == mode
