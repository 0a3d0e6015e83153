"""`memoranda demo`: a story of five conversations is stored, asked, corrected and asked again, before your eyes.

The turns ship with the package in `story.jsonl`, in the format that `memoranda write -` reads. Everything shown is
computed by the engine while you watch; nothing is prepared but the questions.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE
from memoranda.cli.next_steps import next_steps
from memoranda.cli.options import Embedder, Json, Schema, Store, address, command
from memoranda.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from memoranda.persona import Persona
    from memoranda.records import Memory, Recall

T = TypeVar("T")

QUESTIONS = (
    ("What is Noor allergic to?", "Five sessions, one answer."),
    ("What does ERR-7F3A/9 mean?", "Codes stay whole: no tokenizer cuts them to pieces."),
    ("Who damaged the antenna cable?", "The turns of one conversation speak for each other."),
    ("センサーの納期はいつですか。", "“When will the sensors be delivered?” The supplier writes in Japanese."),
    ("What did the insurance cost?", "Nobody ever said. Then nothing is the right answer."),
)
MOVING = "When is the open day?"
CORRECTION = "The open day is on Saturday 10 May, because the bridge road stays closed until then."
CORRECTED_ON = datetime(2025, 4, 22, tzinfo=UTC)
EARLIER = datetime(2025, 4, 1, tzinfo=UTC)
_HITS = 2
_WIDTH = 100
"""Columns: longer lines are hard to read."""


def story() -> list[dict[str, Any]]:
    """Return the turns of the story, in order."""
    text = files("memoranda.cli").joinpath("story.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


# -- what happens


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The story was stored."""

    turns: list[dict[str, Any]]
    embedder: str | None
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question was answered."""

    question: str
    note: str
    recall: "Recall"
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A fact was replaced."""

    old: "Memory"
    new: "Memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What replaced what."""

    memories: "list[Memory]"


Scene = Stored | Asked | Corrected | Chain


def play(persona: "Persona") -> Iterator[Scene]:
    """Store the story in an empty persona, and ask, correct and ask again."""
    turns = story()
    _, milliseconds = _timed(lambda: persona.memories.write_many(turns))
    yield Stored(turns=turns, embedder=persona.stats().embedder, milliseconds=milliseconds)

    def ask(question: str, note: str, **filters: Any) -> Asked:
        recall, milliseconds = _timed(lambda: persona.recall(question, limit=_HITS, **filters))
        return Asked(question=question, note=note, recall=recall, milliseconds=milliseconds)

    for question, note in QUESTIONS:
        yield ask(question, note)
    before = ask(MOVING, "Before the correction.")
    yield before
    if not before.recall:  # an embedder of the caller's own may see it otherwise
        return
    written = persona.memories.supersede(before.recall[0].memory.id, CORRECTION, event_time=CORRECTED_ON)
    yield Corrected(old=written.superseded or before.recall[0].memory, new=written.memory)
    yield ask(MOVING, "After it: the old date is out of every answer.")
    yield ask(MOVING, f"As of {EARLIER:%Y-%m-%d}: what was known then.", as_of=EARLIER)
    yield Chain(memories=persona.memories.history(written.id))


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    return call(), (time.perf_counter() - start) * 1000


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
    """Watch a story being stored, asked, corrected and asked again.

    It needs no network, takes seconds, and leaves nothing behind unless asked to.

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
