"""The commands of `memoranda knowledge`: take documents in, look at them, remove them."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, NONE, REFUSED
from memoranda.cli.fields import json_object
from memoranda.cli.options import Store, command, store
from memoranda.cli.progress import progress
from memoranda.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from memoranda.records import KnowledgeDocument
    from memoranda.reports import Ingested

_STREAM = "-"

Source = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The document's name, as `knowledge list` shows it.", show_default=False)
]


def _option(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, show_default=False)


@command(store)
def ingest(
    store: Store,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="What it is called: cited by, and replaced under.", show_default=False),
    ],
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A file or a folder; - reads text from standard input.", show_default=False
        ),
    ],
    root: Annotated[
        str | None, _option(metavar="FOLDER", help="Refuse a PATH outside this folder, links followed.")
    ] = None,
    project: Annotated[str | None, _option(metavar="NAME", help="The project it belongs to.")] = None,
    audience: Annotated[
        str | None, _option(metavar="WHO", help="private, or project to share it with its members.")
    ] = None,
    metadata: Annotated[str | None, _option(metavar="JSON", help="An object of your own.")] = None,
    media_type: Annotated[
        str | None,
        _option("--type", metavar="TYPE", help="Of standard input: text/plain, text/markdown or text/html."),
    ] = None,
) -> int:
    """Take in a document, or every document of a folder: text, Markdown, HTML, PDF.

    It is cut into chunks, which `memoranda recall` finds beside memories. What
    was taken in under the same name before is replaced; a document that has not
    changed is left alone. The files of a folder are called SOURCE/THEIR/PATH;
    those that cannot be read are named and left out, and the exit code is 2
    when none could be.

    Examples:
        memoranda knowledge ingest manual manual.pdf
        memoranda knowledge ingest handbook docs/ --metadata '{"team": "support"}'
        memoranda knowledge ingest page - --type text/html < page.html
    """
    given = dict(project=project, audience=audience, media_type=media_type)
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if metadata is not None:
        fields["metadata"] = json_object(metadata)
    if path == _STREAM:
        place: dict[str, Any] = {"text": _read_text()}
    elif root is not None:
        place = {"path": path, "root": root}
    else:  # whoever types a path may read what it leads to
        real = Path(path).resolve()
        place = {"path": real.name or real, "root": real.parent}
    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # what it says of damage is said in our answer
    with store.opened(create=True) as persona, progress("ingesting", above=1) as advance:
        answers = persona.knowledge.ingest(source, **place, progress=advance, **fields)
    if store.as_json:
        output.print_json({"documents": answers})
    else:
        _tell(answers)
    return REFUSED if all(answer.problem is not None for answer in answers) else DONE


def _read_text() -> str:
    if sys.stdin.isatty():
        print("reading text from standard input until its end", file=sys.stderr)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8 (byte {error.start:,})") from None


def _tell(answers: "Sequence[Ingested]") -> None:
    """Print a line for a single document; for many what was left out, and how many were not."""
    done = [answer for answer in answers if answer.problem is None]
    for answer in answers if len(answers) == 1 else (answer for answer in answers if answer.problem is not None):
        print(output.one_line(str(answer)))
    if len(answers) > 1:
        unchanged = sum(answer.unchanged for answer in done)
        taken = output.counted(len(done) - unchanged, "document", "documents")
        chunks = output.counted(sum(answer.chunks for answer in done if not answer.unchanged), "chunk", "chunks")
        left = len(answers) - len(done)
        print(f"{taken} ingested ({chunks}), {unchanged:,} unchanged, {left:,} left out")
    output.print_degraded(next((answer.degraded for answer in done if answer.degraded), None))


@command(store)
def list_documents(
    store: Store,
    metadata: Annotated[
        str | None, _option(metavar="JSON", help="Only documents whose metadata has these values.")
    ] = None,
) -> int:
    """List the documents, by name.

    Examples:
        memoranda knowledge list
        memoranda knowledge list --metadata '{"team": "support"}'
    """
    wanted = None if metadata is None else json_object(metadata)
    with store.opened() as persona:
        found = persona.knowledge.list(metadata=wanted)
    if store.as_json:
        output.print_json({"documents": found})
    elif found:
        output.show(_documents_table(found))
    else:
        print("(no documents)")
    return DONE if found else NONE


def _documents_table(documents: "Sequence[KnowledgeDocument]") -> "Table":
    rows = output.table(("since", 10), ("chunks", 6), ("type", 15))
    rows.add_column("source", overflow="fold", ratio=1)
    for document in documents:
        shared = f"@{output.one_line(document.project)} " if document.project else ""
        rows.add_row(
            output.styled(document.updated_at.date().isoformat()),
            output.styled(f"{document.chunks:,}"),
            output.styled(document.media_type),
            output.styled(shared, "dim").append(output.one_line(document.source), style="not dim"),
        )
    return rows


@command(store)
def show(store: Store, source: Source) -> int:
    """Show the chunks of a document, in their order; what two of them share is shown once.

    Examples:
        memoranda knowledge show manual
        memoranda knowledge show handbook/setup.md --json
    """
    with store.opened() as persona:
        found = persona.knowledge.get(source)
    if store.as_json:
        output.print_json({"source": source, "chunks": found})
    for chunk in () if store.as_json else found:
        under = f"  {output.one_line(' > '.join(chunk.headings))}" if chunk.headings else ""
        output.show(output.styled(f"#{chunk.chunk_index}{under}", "bold"))
        output.show(output.styled(f"{output.plain(chunk.content[chunk.overlap :]).rstrip()}\n"))
    if not found and not store.as_json:
        print("(no such document)")
    return DONE if found else NONE


@command(store)
def delete(store: Store, source: Source) -> int:
    """Remove a document of your own with its chunks.

    Examples:
        memoranda knowledge delete manual
    """
    with store.opened() as persona:
        chunks = persona.knowledge.delete(source)
    if store.as_json:
        output.print_json({"source": source, "chunks": chunks})
    elif chunks:
        print(output.one_line(f"removed {source}: {output.counted(chunks, 'chunk', 'chunks')}"))
    else:
        print("(no such document)")
    return DONE if chunks else NONE
