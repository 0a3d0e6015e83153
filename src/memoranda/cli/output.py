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

from memoranda.cli.wording import typed

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from memoranda.records import Hit, Memory, MemoryRecord, Recall, Source, Space
    from memoranda.reports import Statistics

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
        "degraded": recall.degraded and typed(recall.degraded),
    }


def record_document(record: "MemoryRecord | None") -> dict[str, Any]:
    """Return the JSON document of a memory with its chain; of none, the same keys with nothing in them."""
    from memoranda.records import MemoryRecord

    if record is not None:
        document: dict[str, Any] = jsonable(record)
        return document
    lists, numbers = ("sources", "supersedes", "versions"), ("access_count",)
    names = [item.name for item in fields(MemoryRecord)]
    return {name: [] if name in lists else 0 if name in numbers else None for name in names}


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


def table(*columns: tuple[str, int]) -> "Table":
    """Return a table with columns that keep their width, whatever stands beside them."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, width in columns:
        made.add_column(name, width=width, no_wrap=True, overflow="ellipsis")
    return made


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
    rows = table(*kept)
    rows.add_column("memory", overflow="ellipsis", ratio=1)
    for memory in memories:
        text = styled(_marks(memory), "dim").append(one_line(_titled(memory)), style="not dim")
        text.no_wrap = True  # not the column's: then the others would shrink with it
        cells = {
            "id": styled(memory.short_id, "cyan"),
            "day": styled(memory.day.isoformat()),
            "imp": styled(str(memory.importance)),
            "kind": styled(_label(memory)),
        }
        rows.add_row(*(cells[name] for name, _ in kept), text)
    return rows


def history_table(memories: Iterable["Memory"]) -> "Table":
    """Return what replaced what, oldest first, with the time each held."""
    columns = [_ID, ("status", 10), ("held from", 10), ("until", 10)]
    kept = _kept(columns, console().width, dispensable=("until", "held from"))
    rows = table(*kept)
    rows.add_column("memory", overflow="fold", ratio=1)
    for memory in memories:
        since = memory.valid_from or memory.event_time or memory.created_at
        cells = {
            "id": styled(memory.short_id, "cyan"),
            "status": styled(memory.status, "green" if memory.status == "active" else "yellow"),
            "held from": styled(_day(since)),
            "until": styled(_day(memory.valid_to) if memory.valid_to else ""),
        }
        rows.add_row(*(cells[name] for name, _ in kept), styled(one_line(_titled(memory))))
    return rows


def hits_table(hits: Sequence["Hit"]) -> "Table":
    """Return the hits, best first, with their confidence (0..1, higher is surer) and the reasons below the text.

    The id comes first, for it is what the next command needs.
    """
    columns = [_ID, ("conf", 4), _DAY]
    kept = _kept(columns, console().width, dispensable=("day", "conf"))
    rows = table(*kept)
    rows.add_column("memory, and why it is here", overflow="fold", ratio=1)
    for hit in hits:
        name, day, marks, content = _told(hit)
        text = styled(marks, "dim").append(one_line(content), style="not dim")
        if hit.reasons:
            text.append(f"\n{one_line('; '.join(hit.reasons))}", style="dim italic")
        cells = {"id": styled(name, "cyan"), "conf": styled(f"{hit.confidence:.2f}"), "day": styled(day)}
        rows.add_row(*(cells[name] for name, _ in kept), text)
    return rows


def _told(hit: "Hit") -> tuple[str, str, str, str]:
    """Return short id and day, where a hit has any, what stands before its text, and the text."""
    from memoranda.records import KnowledgeHit, MemoryHit

    match hit:
        case MemoryHit(memory=memory):
            return memory.short_id, memory.day.isoformat(), _marks(memory), _titled(memory)
        case KnowledgeHit(chunk=chunk):
            return "", "", f"[{one_line(chunk.source)}#{chunk.chunk_index}] ", chunk.content
        case _:
            return "", "", "", hit.content


def pairs_table(pairs: Iterable[tuple[str, Any]]) -> "Table":
    """Return names and values below each other; what is None or empty is left out."""
    from rich.table import Table

    made = Table.grid(padding=(0, 2), pad_edge=False)
    made.add_column(no_wrap=True, style="bold")
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != "":
            made.add_row(name, styled(plain(value if isinstance(value, str) else str(value))))
    return made


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
    pairs += [("source", _origin(source)) for source in record.sources]
    pairs += [("replaces", _reference(old)) for old in record.supersedes]
    if record.superseded_by:
        pairs.append(("replaced by", _reference(record.superseded_by)))
    if record.change:
        pairs.append(("changed by", _origin(record.change)))
    pairs += [
        ("version", f"{version.version}, until {version.change} on {_moment(version.changed_at)}")
        for version in record.versions
    ]
    if record.access_count:
        pairs.append(
            ("recalled", f"{counted(record.access_count, 'time', 'times')}, last {_moment(record.last_accessed_at)}")
        )
    return pairs_table(pairs)


def names_table(column: str, names: Iterable[str]) -> "Table":
    """Return a line a name."""
    rows = table()
    rows.add_column(column, overflow="fold")
    for name in names:
        rows.add_row(styled(one_line(name)))
    return rows


def spaces_table(spaces: Iterable["Space"]) -> "Table":
    """Return a line a space, with the days on which it was opened and archived."""
    rows = table(("since", 10), ("archived", 10))
    rows.add_column("space", overflow="fold", ratio=1)
    for space in spaces:
        archived = styled(_day(space.archived_at) if space.archived_at else "")
        rows.add_row(styled(_day(space.created_at)), archived, styled(one_line(space.name)))
    return rows


def statistics_table(statistics: "Statistics") -> "Table":
    """Return how much a scope holds."""

    def counts(found: Mapping[str, int]) -> str:
        return ", ".join(f"{name or '(none)'} {count:,}" for name, count in sorted(found.items()))

    days = [day.isoformat() for day in (statistics.first_day, statistics.last_day) if day]
    chunks = f"{counted(statistics.chunks, 'chunk', 'chunks')}, {statistics.embedded_chunks:,} with vectors"
    return pairs_table(
        [
            ("memories", f"{statistics.memories:,}"),
            ("by status", counts(statistics.by_status)),
            ("by type", counts(statistics.by_type)),
            ("by category", counts(statistics.by_category)),
            ("with vectors", f"{statistics.vectors:,}"),
            ("by another embedder", f"{statistics.other_vectors:,}" if statistics.other_vectors else None),
            ("documents", f"{statistics.documents:,} in {chunks}" if statistics.documents else None),
            ("items", f"{statistics.items:,}" if statistics.items else None),
            ("days", " to ".join(days)),
            ("embedder", statistics.embedder or "none: found by words only"),
        ]
    )


def _origin(source: "Source") -> str:
    parts = [source.type, source.channel and f"via {source.channel}", source.actor and f"by {source.actor}"]
    excerpt = f": {one_line(source.excerpt)}" if source.excerpt else ""
    return " ".join(part for part in parts if part) + excerpt


def _reference(memory: "Memory") -> str:
    return f"{memory.short_id}  {one_line(_titled(memory))}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def _moment(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%d %H:%M UTC") if moment else None


def show(renderable: "RenderableType") -> None:
    """Print a table on standard output."""
    console().print(renderable)


def show_recall(recall: "Recall") -> None:
    """Print the hits of a recall, or the sentence that says there are none and why; what it lacked comes first."""
    if recall.degraded:
        print(f"(degraded: {typed(recall.degraded)})")
    if recall.hits:
        show(hits_table(recall.hits))
    elif recall.reason or not recall.degraded:
        print(str(recall).splitlines()[-1])


def print_degraded(reason: str | None) -> None:
    """Say why what was stored has no vector, if it has none."""
    if reason:
        print(f"(found by words only: {reason})")
