"""The commands that change what is remembered: `supersede`, `mark`, `undo`, `delete`."""

from typing import Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE
from memoranda.cli.fields import memory_fields, scope
from memoranda.cli.options import Id, IdOrInput, Store, command, store
from memoranda.cli.rows import read_object
from memoranda.errors import InvalidInput

_STATUSES = "superseded, retracted or expired"


def _given(value: str | None, name: str) -> str:
    """Return an argument that only JSON from standard input makes dispensable."""
    if value is None:
        raise InvalidInput(f"{name} is missing: it stands after the ID", field=name.lower())
    return value


@command(store, scope, memory_fields)
def supersede(
    store: Store,
    scope: dict[str, Any],
    fields: dict[str, Any],
    id: IdOrInput,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT", help="What holds instead; - reads JSON from standard input.", show_default=False
        ),
    ] = None,
) -> int:
    """Replace a memory that no longer holds; it stays in the history.

    What is left out is inherited from the old memory: type, category,
    importance, project, audience and subject. The old one holds until the new
    one's --valid-from, else its --event-time, else now. With - for the ID, the
    JSON names it, too.

    Examples:
        memoranda supersede 7k2m9xqa "It is on the 14th." --valid-from 2025-03-01
        echo '{"content": "It moved to May."}' | memoranda supersede 7k2m9xqa -
        echo '{"id": "7k2m9xqa", "content": "It is off."}' | memoranda supersede -
    """
    if id == "-":
        fields = read_object("supersede", "id", "content", defaults=fields)
        id, content = fields.pop("id"), fields.pop("content")
    elif text == "-":
        fields = read_object("supersede", "content", defaults=fields)
        content = fields.pop("content")
    else:
        content = _given(text, "TEXT")
    with store.opened(scope) as persona:
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
    output.print_degraded(written.degraded)
    return DONE


@command(store, scope)
def mark(
    store: Store,
    scope: dict[str, Any],
    id: IdOrInput,
    status: Annotated[
        str | None, typer.Argument(metavar="STATUS", help=f"{_STATUSES}.".capitalize(), show_default=False)
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="ID", help="The memory that displaces it.", show_default=False)
    ] = None,
) -> int:
    """Say that a memory is superseded, retracted or expired; it leaves the answers and stays in the history.

    Examples:
        memoranda mark 7k2m9xqa expired
        memoranda mark 7k2m9xqa superseded --by 3hd8w2nz
        echo '{"id": "7k2m9xqa", "status": "retracted"}' | memoranda mark -
    """
    if id == "-":
        given = read_object("mark", "id", "status", optional=("by",), defaults={} if by is None else {"by": by})
        id, status, by = given["id"], given["status"], given.get("by")
    with store.opened(scope) as persona:
        memory = persona.memories.mark(id, _given(status, "STATUS"), by=by)
    if store.as_json:
        output.print_json({"memory": memory})
    else:
        print(f"marked [{memory.short_id}] {memory.status}")
    return DONE


@command(store, scope)
def undo(store: Store, scope: dict[str, Any], id: Id) -> int:
    """Take back that a memory was replaced or marked: it holds again, and what replaced it is retracted.

    What was there before it replaced this memory stays as it is.

    Examples:
        memoranda undo 7k2m9xqa
    """
    with store.opened(scope) as persona:
        undone = persona.memories.undo(id)
    if store.as_json:
        output.print_json({"memory": undone.memory, "retracted": undone.retracted})
    else:
        print(undone)
    return DONE


@command(store, scope)
def delete(store: Store, scope: dict[str, Any], id: Id) -> int:
    """Take one memory out of every answer; its history stays.

    Examples:
        memoranda delete 7k2m9xqa
    """
    with store.opened(scope) as persona:
        memory = persona.memories.delete(id)
    if store.as_json:
        output.print_json({"memory": memory})
    else:
        print(f"deleted [{memory.short_id}]; it stays in the history: memoranda history {memory.short_id}")
    return DONE
