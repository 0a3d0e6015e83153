"""The command that examines a store: `doctor`."""

from typing import TYPE_CHECKING, Any

from memoranda.cli import output
from memoranda.cli.exits import DONE, NONE
from memoranda.cli.options import Store, command, store

if TYPE_CHECKING:
    from memoranda.reports import Diagnosis


@command(store)
def doctor(store: Store) -> int:
    """Examine the whole store, and say what should be seen to and what helps.

    Looks at the tables, the indexes of words and vectors, what lacks a vector,
    the settings and the size. Nothing is changed. The exit code is 0 when
    nothing is wrong, 1 when something was found, and 3 when the store cannot be
    reached or read.

    Examples:
        memoranda doctor
        memoranda doctor --url postgresql://memo@localhost/app --json
    """
    with store.engine() as engine:
        found = engine.doctor()
    if store.as_json:
        output.print_json({"healthy": found.healthy, **output.jsonable(found)})
    else:
        output.show(output.pairs_table(_pairs(found)))
        print()
        print(output.plain(str(found)))
    return DONE if found.healthy else NONE


def _pairs(found: "Diagnosis") -> list[tuple[str, Any]]:
    revision = found.revision or "(none)"
    return [
        ("database", ", ".join(f"{name} {version}" for name, version in found.versions.items()) or found.database),
        ("tables", revision if found.revision == found.head else f"{revision}, this release needs {found.head}"),
        ("size", _bytes(found.size) if found.size else None),
        ("storage", ", ".join(_stored(name, value) for name, value in found.storage.items())),
        ("embedder", found.embedder or "none: found by words only"),
        ("language", found.language),
        ("floor", None if found.floor is None else f"{found.floor:g}"),
        ("memories", f"{found.memories:,}"),
        ("chunks", f"{found.chunks:,}" if found.chunks else None),
        ("items", f"{found.items:,}" if found.items else None),
        ("oldest", found.oldest.strftime("%Y-%m-%d %H:%M UTC") if found.oldest else None),
        ("vectors", f"{found.vectors:,}"),
        ("without vector", f"{found.without_vector:,}" if found.without_vector else None),
        ("stale vectors", f"{found.other_vectors:,}" if found.other_vectors else None),
        ("ownerless vectors", f"{found.ownerless_vectors:,}" if found.ownerless_vectors else None),
        ("jobs", f"{found.waiting_jobs:,} waiting" if found.waiting_jobs else None),
        ("text index", found.search),
        ("vector index", found.vector_index),
    ]


def _stored(name: str, value: str | int) -> str:
    if name.endswith("_bytes"):
        return f"{name.removesuffix('_bytes')} {_bytes(int(value))}"
    return f"{name} {value}"


def _bytes(size: int) -> str:
    for unit, shift in (("GB", 30), ("MB", 20), ("KB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.1f} {unit}"
    return f"{size} bytes"
