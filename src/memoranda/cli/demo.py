"""`memoranda demo`: the story of `memoranda.cli.story` is told while you watch, and shown in a terminal or as JSON."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE
from memoranda.cli.next_steps import next_steps
from memoranda.cli.options import Embedder, Json, Schema, Store, address, command
from memoranda.cli.story import (
    CORRECTED_ON,
    TALK,
    Asked,
    Blocks,
    Chain,
    Corrected,
    Folded,
    Read,
    Scene,
    Stored,
    Talked,
    play,
)
from memoranda.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 100
"""Columns: longer lines are hard to read."""


# -- how it is shown


class Stage:
    """Shows the scenes in a terminal."""

    def __init__(self, console: "Console") -> None:
        """Take the console to print on."""
        self._console = console

    def show(self, scene: Scene) -> None:
        """Print one scene."""
        match scene:
            case Stored():
                self._stored(scene)
            case Asked():
                self._asked(scene)
            case Corrected():
                text = output.styled(f"[{scene.old.short_id}] ", "cyan").append(scene.old.content, style="strike dim")
                text.append(f"\n[{scene.new.short_id}] ", style="cyan").append(scene.new.content, style="not dim")
                self._panel(text, title=f"correction of {CORRECTED_ON:%Y-%m-%d}", style="magenta")
            case Chain():
                self._panel(
                    output.history_table(scene.memories),
                    title="history",
                    note="Nothing was destroyed: both are there, with the time each held.",
                )
            case Talked():
                self._talked(scene)
            case Folded():
                self._folded(scene)
            case Blocks():
                self._blocks(scene)
            case Read():
                text = output.styled(f"{scene.ingested}.")
                self._panel(text, title="knowledge", note="Documents are kept apart from memories, cut into chunks.")

    def _stored(self, scene: Stored) -> None:
        from rich.table import Table

        sessions: dict[str, list[dict[str, Any]]] = {}
        for turn in scene.turns:
            sessions.setdefault(turn["session"], []).append(turn)
        table = Table.grid(padding=(0, 2))
        for width in (max(map(len, sessions)), 10, 8):
            table.add_column(no_wrap=True, width=width)
        table.add_column(overflow="ellipsis", ratio=1)
        for name, turns in sessions.items():
            opening = output.styled(turns[0]["content"], "dim")
            opening.no_wrap = True
            table.add_row(output.styled(name, "cyan"), turns[0]["event_time"][:10], f"{len(turns)} turns", opening)
        how = f"found by words and by {scene.embedder}" if scene.embedder else "found by words"
        self._panel(
            table,
            title=f"{len(scene.turns)} memories of {len(sessions)} conversations",
            subtitle=f"stored in {scene.milliseconds:,.0f} ms, {how}",
            note="Noor and Teodor build river gauges for their village. An agent remembers what they said.",
        )

    def _talked(self, scene: Talked) -> None:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold", ratio=1)
        for message in scene.messages:
            speaker = "Noor" if message.role == "user" else "agent"
            table.add_row(output.styled(speaker, "cyan"), output.styled(output.one_line(message.text)))
        self._panel(
            table,
            title=f"the conversation {TALK!r}",
            subtitle=output.counted(len(scene.messages), "message", "messages"),
            note="Noor talks to an agent. Every message is kept as it is, and read again under any framework.",
        )

    def _folded(self, scene: Folded) -> None:
        done = scene.compacted
        text = output.styled(f"{done.folded} messages are folded into a summary:\n", "bold")
        text.append(f"{output.one_line(done.summary)}\n", style="not bold")
        text.append("before that, one call saved what must not be lost:", style="bold")
        for memory in scene.saved:
            text.append(f"\n[{memory.short_id}] ", style="cyan not bold")
            text.append(output.one_line(memory.content), style="not bold")
        self._panel(
            text,
            title="the conversation has become too long",
            subtitle="flushed, folded, nothing deleted",
            note="The demo has no language model: a scripted one gives two answers that were written down beforehand.",
            style="magenta",
        )

    def _blocks(self, scene: Blocks) -> None:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for _ in range(4):
            table.add_column(overflow="fold")
        for number, block in enumerate(scene.blocks):
            how = "" if not number else "a new block" if block.changed else "the same bytes"
            style = "magenta" if block.changed else "green"
            table.add_row(
                output.styled(block.when),
                output.styled(block.sha256[:12], style),
                output.styled(f"{block.bytes:,} bytes"),
                output.styled(how, style),
            )
        self._panel(
            table,
            title="the block of memories in its system prompt",
            subtitle="sha-256 of the block",
            note="It stays the same, so that a provider's cache of the prompt is hit, until the compaction ends it.",
        )

    def _asked(self, scene: Asked) -> None:
        recall, took = scene.recall, f"{scene.milliseconds:,.1f} ms"
        if recall.hits:
            hits = f"{len(recall.hits)} hit{'s' if len(recall.hits) > 1 else ''}"
            self._panel(
                output.hits_table(recall.hits), title=scene.question, subtitle=f"{hits} in {took}", note=scene.note
            )
        else:
            self._panel(
                output.styled(f"No answer: {recall.reason}.", "yellow"),
                title=scene.question,
                subtitle=f"abstained in {took}",
                note=scene.note,
                style="yellow",
            )
        if recall.degraded:
            self._console.print(output.styled(f"(degraded: {recall.degraded})", "yellow"))

    def _panel(self, content: Any, *, title: str, subtitle: str = "", note: str = "", style: str = "blue") -> None:
        from rich.panel import Panel

        self._console.print()
        if note:
            self._console.print(output.styled(note))
        self._console.print(
            Panel(
                content,
                title=output.styled(title, "bold"),
                title_align="left",
                subtitle=output.styled(subtitle, "dim") if subtitle else None,
                subtitle_align="right",
                border_style=style,
            )
        )


# -- the command


@command()
def demo(
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the story in a new SQLite file.", show_default=False),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Use this store instead of a temporary file (MEMORANDA_URL is not read here).",
            show_default=False,
        ),
    ] = None,
    persona: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose memories; demo in a store named by --url, else main."),
    ] = None,
    embedder: Embedder = None,
    schema: Schema = "memoranda",
    as_json: Json = False,
) -> int:
    """Watch a story being stored, asked, corrected, talked about, folded and asked again.

    It needs no network and no language model (a scripted one stands in for it,
    and says so), takes seconds, and leaves nothing behind unless asked to.

    Examples:
        memoranda demo
        memoranda demo --keep heron.db
    """
    if keep and url:
        raise InvalidInput("name --keep or --url, not both", field="keep")
    name = persona or ("demo" if url else "main")
    started = time.perf_counter()
    with _place(keep, address(url, in_memory=True)) as place:
        store = Store(
            url=place,
            persona=name,
            user=None,
            tenant="",
            preset="standard",
            embedder=embedder,
            schema=schema,
            timezone="UTC",
            as_json=as_json,
        )
        with store.opened(create=True) as handle:
            if number := handle.stats().memories:
                held = output.counted(number, "memory", "memories")
                raise InvalidInput(
                    f"the persona {name!r} holds {held} already: the demo wants an empty one, name another with "
                    "--persona",
                    field="persona",
                )
            if as_json:
                output.print_json({"steps": [_document(scene) for scene in play(handle)]})
                return DONE
            console = output.console()
            console.width = min(console.width, _WIDTH)
            stage = Stage(console)
            for scene in play(handle):
                stage.show(scene)
    where = ", with your address in MEMORANDA_URL" if url else ""
    console.print(f"\nAll of it took {time.perf_counter() - started:.1f} s. What to type next{where}:\n")
    for line in next_steps(keep, store, named=bool(url)):
        console.print(output.styled(f"  {line}", "bold"), soft_wrap=True)
    return DONE


@contextmanager
def _place(keep: Path | None, url: str | None) -> Iterator[str]:
    if url:
        yield url
    elif keep:
        if keep.exists():
            raise InvalidInput("the file given with --keep exists already: name a new one", field="keep")
        yield f"sqlite:///{keep}"
    else:
        with tempfile.TemporaryDirectory(prefix="memoranda-demo-", ignore_cleanup_errors=True) as folder:
            yield f"sqlite:///{Path(folder) / 'demo.db'}"


def _document(scene: Scene) -> dict[str, Any]:
    match scene:
        case Stored():
            return {
                "step": "stored",
                "memories": len(scene.turns),
                "embedder": scene.embedder,
                "milliseconds": round(scene.milliseconds, 1),
            }
        case Asked():
            return {
                "step": "asked",
                "note": scene.note,
                **output.recall_document(scene.question, scene.recall),
                "milliseconds": round(scene.milliseconds, 1),
            }
        case Corrected():
            return {"step": "corrected", "superseded": scene.old, "memory": scene.new}
        case Chain():
            return {"step": "history", "memories": scene.memories}
        case Talked():
            return {"step": "talked", "conversation": TALK, "messages": len(scene.messages)}
        case Folded():
            return {"step": "compacted", "model": "scripted", "compacted": scene.compacted, "memories": scene.saved}
        case Blocks():
            return {"step": "prompt", "conversation": TALK, "blocks": scene.blocks}
        case Read():
            return {"step": "ingested", "document": scene.ingested}
