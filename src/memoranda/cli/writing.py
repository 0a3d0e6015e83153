"""The command that stores memories, one or many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoranda.cli import output
from memoranda.cli.exits import DONE, Interrupted
from memoranda.cli.fields import memory_fields, scope
from memoranda.cli.options import Store, Text, command, store
from memoranda.cli.progress import progress
from memoranda.cli.rows import Row, read_input, read_rows
from memoranda.errors import InvalidInput, MemorandaError

if TYPE_CHECKING:
    from memoranda.persona import Persona
    from memoranda.records import Written

CHUNK = 500
"""Rows stored in one transaction: what a failure can cost, and how often the progress bar moves."""


@command(store, scope, memory_fields)
def write(store: Store, scope: dict[str, Any], fields: dict[str, Any], text: Text) -> int:
    """Store a memory, or many from standard input.

    With - the memories are JSON: an object with "content" and the fields named
    by the options, or many of them, one a line or in an array. Options then
    fill in what a row leaves out. Long input is stored 500 rows at a time.

    Examples:
        memoranda write "Release 4 went out." --category project --importance 9
        echo '{"content": "Ana likes tea.", "core": true}' | memoranda write -
        memoranda write - --session standup-12 < notes.jsonl
    """
    if text != "-":
        with store.opened(scope, create=True) as persona:
            return _answer([persona.memories.write(text, **fields)], store)
    rows, problem, line = read_rows(read_input())
    with store.opened(scope, create=True) as persona:
        stored = _store_rows(persona, rows, fields)
    if problem:
        raise Interrupted(problem, stored=len(stored), line=line)
    return _answer(stored, store)


def _store_rows(persona: "Persona", rows: Sequence[Row], defaults: dict[str, Any]) -> "list[Written]":
    """Store rows chunk by chunk, up to the first one that is refused.

    Raises:
        Interrupted: a row was refused or the store failed; every row before the one it names is stored.
    """
    stored: list[Written] = []
    with progress("storing", above=CHUNK) as advance:
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            values = [row.with_defaults(defaults) for row in chunk]
            try:
                stored += persona.memories.write_many(values)
            except MemorandaError as error:
                refused = _refused(error, chunk)
                if not refused:
                    raise Interrupted(error, stored=len(stored), line=chunk[0].line) from error
                index, line, cause = refused[0]
                if index:
                    stored += persona.memories.write_many(values[:index])
                unread = rows[start + CHUNK].line if start + CHUNK < len(rows) else None
                others = [(line, other) for _, line, other in refused[1:]]
                raise Interrupted(cause, stored=len(stored), line=line, others=others, unread=unread) from error
            advance(start + len(chunk), len(rows))
    return stored


def _refused(error: MemorandaError, chunk: Sequence[Row]) -> list[tuple[int, int, InvalidInput]]:
    """Return place, line and reason of every row that an error names."""
    errors = (error.rows or (error,)) if isinstance(error, InvalidInput) else ()
    return [
        (item.index, chunk[item.index].line, InvalidInput(_without_row(item), field=item.field))
        for item in errors
        if item.index is not None
    ]


def _without_row(error: InvalidInput) -> str:
    return str(error).removeprefix(f"row {error.index}: ")


def _answer(written: "Sequence[Written]", store: Store) -> int:
    created = sum(item.created for item in written)
    degraded = next((item.degraded for item in written if item.degraded), None)
    if store.as_json:
        output.print_json(
            {
                "stored": created,
                "already_there": len(written) - created,
                "degraded": degraded,
                "memories": [{"id": item.id, "short_id": item.short_id, "created": item.created} for item in written],
            }
        )
        return DONE
    if len(written) == 1:
        print(written[0])
    else:
        known = f", {len(written) - created:,} already there" if created < len(written) else ""
        print(f"stored {output.counted(created, 'memory', 'memories')}{known}")
    output.print_degraded(degraded)
    return DONE
