"""What the commands print: tables for people, one JSON document for scripts.

Memories are other people's text. Nothing in them is read as markup, and no control character of theirs reaches the
terminal, where it could move the cursor or hide what follows.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TextIO
from uuid import UUID

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from memoranda.records import Hit, Memory, MemoryRecord, Recall, Statistics

# C0 without tab and newline, DEL, C1, and the marks that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_KIND_WIDTH = 14
_ID, _DAY = ("id", 8), ("day", 10)
_GAP = 3
_TEXT_WIDTH = 16
"""Columns that a memory's text has at least, as long as there is something else to leave out."""


# -- JSON


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    print(json.dumps(jsonable(document), ensure_ascii=False, indent=2))


def jsonable(value: Any) -> Any:
    """Return the JSON form of a record: the keys are its fields, moments are ISO 8601, metadata is as it is stored."""
    if is_dataclass(value) and not isinstance(value, type):
        items = {item.name: getattr(value, item.name) for item in fields(value)}
        return {name: _metadata(item) if name == "metadata" else jsonable(item) for name, item in items.items()}
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _metadata(metadata: Mapping[str, Any]) -> Any:
    from memoranda.metadata import encode

    return encode(dict(metadata))


def recall_document(query: str, recall: "Recall") -> dict[str, Any]:
    """Return the JSON document of a recall; what was below the floor is no part of it."""
    return {
        "query": query,
        "hits": [{"rank": rank, **jsonable(hit)} for rank, hit in enumerate(recall, start=1)],
        "abstained": recall.abstained,
        "reason": recall.reason,
        "degraded": recall.degraded,
    }


# -- tables


def console(file: TextIO | None = None) -> "Console":
    """Return a console that prints text as it is: no markup, no emoji codes, no guesses at what is a number."""
    from rich.console import Console

    return Console(file=file or sys.stdout, markup=False, emoji=False, highlight=False)


def plain(text: str) -> str:
    """Return a text without anything that a terminal would obey."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return a text as one line without anything that a terminal would obey."""
    return _CONTROL.sub("\ufffd", " ".join(text.split()))


def styled(text: str, style: str = "") -> "Text":
    """Return a text for a console."""
    from rich.text import Text

    return Text(text, style=style)


def _table(*columns: tuple[str, int]) -> "Table":
    """Return a table with columns that keep their width, whatever stands beside them."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, width in columns:
        table.add_column(name, width=width, no_wrap=True, overflow="ellipsis")
    return table


def _kept(columns: Sequence[tuple[str, int]], width: int, *, dispensable: Sequence[str]) -> list[tuple[str, int]]:
    """Return the columns that leave room for a text beside them; the first dispensable one goes first."""
    kept = list(columns)
    for name in dispensable:
        if width - sum(taken + _GAP for _, taken in kept) >= _TEXT_WIDTH:
            break
        kept = [column for column in kept if column[0] != name]
    return kept


def counted(number: int, one: str, many: str) -> str:
    """Return a number with the noun that it takes."""
    return f"{number:,} {one if number == 1 else many}"


def _label(memory: "Memory") -> str:
    return one_line(memory.category or memory.type)


def _marks(memory: "Memory") -> str:
    """Return what must not be overlooked about a memory, to stand before its text."""
    status = f"[{memory.status}] " if memory.status != "active" else ""
    return status + (f"@{one_line(memory.project)} " if memory.project else "")


def _titled(memory: "Memory") -> str:
    return f"{memory.title}: {memory.content}" if memory.title else memory.content


def memories_table(memories: Iterable["Memory"]) -> "Table":
    """Return a line a memory, cut to the width of the terminal."""
    from rich.cells import cell_len

    memories = list(memories)
    kind = min(max([4, *(cell_len(_label(memory)) for memory in memories)]), _KIND_WIDTH)
    columns = [_ID, _DAY, ("imp", 3), ("kind", kind)]
    kept = _kept(columns, console().width, dispensable=("imp", "day", "kind"))
    table = _table(*kept)
    table.add_column("memory", overflow="ellipsis", ratio=1)
    for memory in memories:
        text = styled(_marks(memory), "dim").append(one_line(_titled(memory)), style="not dim")
        text.no_wrap = True  # not the column's: then the others would shrink with it
        cells = {
            "id": styled(memory.short_id, "cyan"),
            "day": styled(memory.day.isoformat()),
            "imp": styled(str(memory.importance)),
            "kind": styled(_label(memory)),
        }
        table.add_row(*(cells[name] for name, _ in kept), text)
    return table


def history_table(memories: Iterable["Memory"]) -> "Table":
    """Return what replaced what, oldest first, with the time each held."""
    columns = [_ID, ("status", 10), ("held from", 10), ("until", 10)]
    kept = _kept(columns, console().width, dispensable=("until", "held from"))
    table = _table(*kept)
    table.add_column("memory", overflow="fold", ratio=1)
    for memory in memories:
        since = memory.valid_from or memory.event_time or memory.created_at
        cells = {
            "id": styled(memory.short_id, "cyan"),
            "status": styled(memory.status, "green" if memory.status == "active" else "yellow"),
            "held from": styled(_day(since)),
            "until": styled(_day(memory.valid_to) if memory.valid_to else ""),
        }
        table.add_row(*(cells[name] for name, _ in kept), styled(one_line(_titled(memory))))
    return table


def hits_table(hits: Sequence["Hit"]) -> "Table":
    """Return the hits with their confidence (0..1, higher is surer), each with its reasons below its text."""
    columns = [("#", len(str(len(hits)))), _ID, ("conf", 4), _DAY]
    kept = _kept(columns, console().width, dispensable=("day", "#", "conf"))
    table = _table(*kept)
    table.add_column("memory, and why it is here", overflow="fold", ratio=1)
    for rank, hit in enumerate(hits, start=1):
        memory = hit.memory
        text = styled(_marks(memory), "dim").append(one_line(_titled(memory)), style="not dim")
        if hit.reasons:
            text.append(f"\n{one_line('; '.join(hit.reasons))}", style="dim italic")
        cells = {
            "#": styled(str(rank)),
            "id": styled(memory.short_id, "cyan"),
            "conf": styled(f"{hit.confidence:.2f}"),
            "day": styled(memory.day.isoformat()),
        }
        table.add_row(*(cells[name] for name, _ in kept), text)
    return table


def pairs_table(pairs: Iterable[tuple[str, Any]]) -> "Table":
    """Return names and values below each other; what is None or empty is left out."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != "":
            table.add_row(name, styled(plain(value if isinstance(value, str) else str(value))))
    return table


def record_table(record: "MemoryRecord") -> "Table":
    """Return everything about a memory, its text wrapped and not cut."""
    memory = record.memory
    pairs: list[tuple[str, Any]] = [
        ("id", f"{memory.short_id}  {memory.id}"),
        ("title", memory.title),
        ("text", memory.content),
        ("status", memory.status),
        ("type", memory.type),
        ("category", memory.category),
        ("importance", f"{memory.importance} of 10"),
        ("confidence", f"{memory.confidence} of 10"),
        ("core", "yes" if memory.core else None),
        ("day", memory.day.isoformat()),
        ("event time", _moment(memory.event_time)),
        ("valid from", _moment(memory.valid_from)),
        ("valid to", _moment(memory.valid_to)),
        ("about", memory.about),
        ("author", f"{memory.author} ({memory.audience})" if memory.author else None),
        ("project", memory.project),
        ("space", memory.space),
        ("session", memory.session and f"{memory.session} #{memory.position}"),
        ("metadata", json.dumps(_metadata(memory.metadata), ensure_ascii=False) if memory.metadata else None),
        ("stored", _moment(memory.created_at)),
    ]
    for source in record.sources:
        parts = [source.type, source.channel and f"via {source.channel}", source.actor and f"by {source.actor}"]
        excerpt = f": {one_line(source.excerpt)}" if source.excerpt else ""
        pairs.append(("source", " ".join(part for part in parts if part) + excerpt))
    pairs += [("replaces", _reference(old)) for old in record.supersedes]
    if record.superseded_by:
        pairs.append(("replaced by", _reference(record.superseded_by)))
    pairs += [
        ("version", f"{version.version}, until {version.change} on {_moment(version.changed_at)}")
        for version in record.versions
    ]
    if record.access_count:
        pairs.append(
            ("recalled", f"{counted(record.access_count, 'time', 'times')}, last {_moment(record.last_accessed_at)}")
        )
    return pairs_table(pairs)


def statistics_table(statistics: "Statistics") -> "Table":
    """Return how much a scope holds."""

    def counts(found: Mapping[str, int]) -> str:
        return ", ".join(f"{name or '(none)'} {count:,}" for name, count in sorted(found.items()))

    days = [day.isoformat() for day in (statistics.first_day, statistics.last_day) if day]
    return pairs_table(
        [
            ("memories", f"{statistics.memories:,}"),
            ("by status", counts(statistics.by_status)),
            ("by type", counts(statistics.by_type)),
            ("by category", counts(statistics.by_category)),
            ("with vectors", f"{statistics.vectors:,}"),
            ("by another embedder", f"{statistics.other_vectors:,}" if statistics.other_vectors else None),
            ("days", " to ".join(days)),
            ("embedder", statistics.embedder or "none: found by words only"),
        ]
    )


def _reference(memory: "Memory") -> str:
    return f"{memory.short_id}  {one_line(_titled(memory))}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def _moment(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%d %H:%M UTC") if moment else None


def show(renderable: "RenderableType") -> None:
    """Print a table on standard output."""
    console().print(renderable)
