"""The lines and sentences that people and models read. Golden: tests pin every form."""

from datetime import datetime

from memoranda.records import Memory, MemoryRecord, Recall, Written

NOTHING_FOUND = "(no memories found)"
_EXCERPT = 120


def one_line(text: str) -> str:
    """Return a text with every run of white space as one space."""
    return " ".join(text.split())


def memory_line(memory: Memory) -> str:
    """Return `[id] (type category imp=5 [status] @project, day valid from->to) text`.

    The status stands there only when it is not active, the project and the window only when there are any.
    """
    parts: list[str] = [memory.type]
    if memory.category:
        parts.append(one_line(memory.category))
    parts.append(f"imp={memory.importance}")
    if memory.status != "active":
        parts.append(f"[{memory.status}]")
    if memory.project:
        parts.append(f"@{one_line(memory.project)}")
    tail = f", {memory.day.isoformat()}"
    if memory.valid_from or memory.valid_to:
        tail += f" valid {_day(memory.valid_from)}->{_day(memory.valid_to)}"
    title = f"{one_line(memory.title)}: " if memory.title else ""
    return f"[{memory.short_id}] ({' '.join(parts)}{tail}) {title}{one_line(memory.content)}"


def _day(moment: datetime | None) -> str:
    return moment.date().isoformat() if moment else "..."


def record_lines(record: MemoryRecord) -> str:
    """Return a memory's line, then a line for each link of its chain and each source."""
    memory = record.memory
    lines = [memory_line(memory)]
    if memory.author:
        lines.append(f"author: {one_line(memory.author)} ({memory.audience})")
    lines += [f"supersedes: {old.short_id}" for old in record.supersedes]
    if record.superseded_by:
        lines.append(f"superseded by: {record.superseded_by.short_id}")
    for source in record.sources:
        via = f" via {one_line(source.channel)}" if source.channel else ""
        excerpt = one_line(source.excerpt)
        cut = f"{excerpt[: _EXCERPT - 1]}…" if len(excerpt) > _EXCERPT else excerpt
        lines.append(f"source: {source.type}{via}" + (f" -- {cut}" if cut else ""))
    return "\n".join(lines)


def written_line(written: Written) -> str:
    """Return the sentence that answers a write."""
    done = f"saved [{written.short_id}]" if written.created else f"already there [{written.short_id}]"
    return f"{done}, superseded [{written.superseded.short_id}]" if written.superseded else done


def recall_lines(recall: Recall) -> str:
    """Return a line a hit, or the sentence that says there are none and why; a degraded answer says so first."""
    lines = [f"(degraded: {recall.degraded})"] if recall.degraded else []
    lines += [str(hit) for hit in recall] or [
        NOTHING_FOUND if not recall.reason else f"{NOTHING_FOUND[:-1]}: {recall.reason})"
    ]
    return "\n".join(lines)
