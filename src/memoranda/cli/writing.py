"""The commands that change what is remembered: `write`, `supersede`, `delete`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from memoranda.cli import output
from memoranda.cli.exits import DONE, Interrupted
from memoranda.cli.options import Id, Store, Text, command, memory_fields, store
from memoranda.cli.rows import Row, read_input, read_rows
from memoranda.errors import InvalidInput, MemorandaError

if TYPE_CHECKING:
    from memoranda.persona import Persona
    from memoranda.records import Written

CHUNK = 500
"""Rows stored in one transaction: what a failure can cost, and how often the progress bar moves."""


@command(store, memory_fields)
def write(store: Store, fields: dict[str, Any], text: Text) -> int:
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
        with store.opened(create=True) as persona:
            return _answer([persona.memories.write(text, **fields)], store)
    rows, problem, line = read_rows(read_input())
    with store.opened(create=True) as persona:
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
    with _progress(len(rows)) as progress:
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            values = [row.with_defaults(defaults) for row in chunk]
            try:
                stored += persona.memories.write_many(values)
            except MemorandaError as error:
                index = error.index if isinstance(error, InvalidInput) else None
                if index is None:
                    raise Interrupted(error, stored=len(stored), line=chunk[0].line) from error
                if index:
                    stored += persona.memories.write_many(values[:index])
                cause = InvalidInput(str(error).removeprefix(f"row {index}: "), field=getattr(error, "field", None))
                raise Interrupted(cause, stored=len(stored), line=chunk[index].line) from error
            progress.advance(len(chunk))
    return stored


class _Progress(Protocol):
    def advance(self, rows: int) -> None: ...


class _Silent:
    def advance(self, rows: int) -> None:
        """Say nothing."""


@contextmanager
def _progress(total: int) -> Iterator[_Progress]:
    """Show a bar on standard error while much is being stored, if somebody is watching."""
    import sys

    if total <= CHUNK or not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("storing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.console(sys.stderr), transient=True) as bar:
        task = bar.add_task("storing", total=total)

        class Bar:
            def advance(self, rows: int) -> None:
                bar.advance(task, rows)

        yield Bar()


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
    _say_degraded(degraded)
    return DONE


def _say_degraded(reason: str | None) -> None:
    if reason:
        print(f"(found by words only: {reason})")


@command(store, memory_fields)
def supersede(store: Store, fields: dict[str, Any], id: Id, text: Text) -> int:
    """Replace a memory that no longer holds; it stays in the history.

    What is left out is inherited from the old memory: type, category,
    importance, project, audience and subject. The old one holds until the new
    one's --valid-from, else its --event-time, else now.

    Examples:
        memoranda supersede 7k2m9xqa "It is on the 14th." --valid-from 2025-03-01
        echo '{"content": "It moved to May."}' | memoranda supersede 7k2m9xqa -
    """
    content = text
    if text == "-":
        content, fields = _one_row(fields)
    with store.opened() as persona:
        written = persona.memories.supersede(id, content, **fields)
    if store.as_json:
        output.print_json(
            {
                "memory": written.memory,
                "created": written.created,
                "superseded": written.superseded,
                "degraded": written.degraded,
            }
        )
        return DONE
    print(written)
    _say_degraded(written.degraded)
    return DONE


def _one_row(defaults: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    rows, problem, _ = read_rows(read_input())
    if problem:
        raise problem
    value = rows[0].with_defaults(defaults) if len(rows) == 1 else None
    if isinstance(value, str):
        value = {"content": value}
    if not isinstance(value, dict) or "content" not in value:
        raise InvalidInput('supersede takes one JSON object with "content"', field="content")
    return value["content"], {name: item for name, item in value.items() if name != "content"}


@command(store)
def delete(store: Store, id: Id) -> int:
    """Take one memory out of every answer; its history stays.

    Examples:
        memoranda delete 7k2m9xqa
    """
    with store.opened() as persona:
        memory = persona.memories.delete(id)
    if store.as_json:
        output.print_json({"memory": memory})
    else:
        print(f"deleted [{memory.short_id}]; it stays in the history: memoranda history {memory.short_id}")
    return DONE
