"""The commands that carry a whole store: `export`, `import`, `backup`."""

import json
import sys
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer

from memoranda.cli import importing, output
from memoranda.cli.exits import DONE
from memoranda.cli.options import Store, command, store, whole_store
from memoranda.cli.progress import progress
from memoranda.errors import InvalidInput

if TYPE_CHECKING:
    from memoranda.reports import Exported, Imported

_STREAM = "-"


@command(whole_store)
def export(
    store: Store,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to write; - is standard output.", show_default=False)
    ],
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this tenant's rows.", show_default=False)
    ] = None,
    persona: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the rows of personas of this name.", show_default=False)
    ] = None,
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Whether vectors are taken along.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a file of this name.")] = False,
) -> int:
    """Write every row of the store to a file that `memoranda import` reads, on SQLite and Postgres alike.

    The format is the JSONL of `memoranda.archive`, version 1: a header, one
    JSON object a row, a footer with the number of rows and a SHA-256 digest;
    compressed where the name ends in .gz. It holds everything of everybody,
    private memories and deleted ones too: keep it as you keep the database.
    Only the options narrow it; MEMORANDA_PERSONA and MEMORANDA_TENANT do not.

    Examples:
        memoranda export memories.jsonl.gz
        memoranda export support.jsonl --tenant acme --persona support
        memoranda export - --no-vectors | gzip > memories.jsonl.gz
    """
    place: str | BinaryIO = sys.stdout.buffer if file == _STREAM else file
    with store.engine() as engine, progress("exporting") as advance:
        exported = engine.export_to(
            place, tenant=tenant, persona=persona, vectors=vectors, overwrite=force, progress=advance
        )
    _answer(exported, store, sys.stderr if file == _STREAM else sys.stdout)
    return DONE


@command(store)
def import_file(
    store: Store,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="What `memoranda export` wrote, or conversations of another program; - is standard input.",
            show_default=False,
        ),
    ],
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Whether an export's vectors count.")] = True,
    conversation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the one conversation of the file is called here.", show_default=False),
    ] = None,
    speaker: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who the user is in a log; the first who speaks.", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what conversations would be stored, and what left out.")
    ] = False,
) -> int:
    """Take in what `memoranda export` wrote, or the conversations of another program.

    An export: every row that is not there yet, all of them or, if anything is
    wrong, none. A file that was cut off or changed is refused, and the line is
    named. Every row stays whose it was: --persona, --user and --tenant do not
    count, and who may write what is not asked.

    Conversations: a ChatGPT export (conversations.json, or the .zip), messages
    as OpenAI's API has them in JSON or JSONL, or a log with lines such as
    "Ana: text". Each is stored whole, for --persona and --user, and what could
    not be read is counted by reason. It is safe to run again.

    Examples:
        memoranda import memories.jsonl.gz --url sqlite:///new.db
        memoranda import chatgpt-export.zip --user ana
        memoranda import support.log --speaker Ana --conversation support-7
        memoranda import thread.jsonl --dry-run --json
    """
    source = BufferedReader(sys.stdin.buffer) if file == _STREAM else file  # type: ignore[type-var]
    if importing.holds_conversations(source):
        return importing.import_conversations(
            store, source, conversation=conversation, speaker=speaker, dry_run=dry_run
        )
    if conversation or speaker or dry_run:
        raise InvalidInput("--conversation, --speaker and --dry-run are for conversations: this is an export")
    with store.engine(create=True) as engine, progress("importing") as advance:
        imported = engine.import_from(source, vectors=vectors, progress=advance)
    _answer(imported, store, sys.stdout)
    return DONE


@command(whole_store)
def backup(
    store: Store,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that is not there yet.", show_default=False)],
) -> int:
    """Copy a SQLite store to a file while it is in use, and check the copy.

    The copy is a database of its own: to restore it, end the programs that use
    the store and put it in the place of the old file. On Postgres use pg_dump.

    Examples:
        memoranda backup monday.db --url sqlite:///memory.db
    """
    with store.engine() as engine, progress("copying") as advance:
        target = engine.backup(file, progress=advance)
    size = target.stat().st_size
    if store.as_json:
        output.print_json({"file": str(target), "bytes": size})
    else:
        print(f"copied and checked: {output.plain(str(target))}, {size:,} bytes")
    return DONE


def _answer(answer: "Exported | Imported", store: Store, stream: TextIO) -> None:
    text = json.dumps(output.jsonable(answer), ensure_ascii=False, indent=2) if store.as_json else str(answer)
    print(text, file=stream)
