"""The lines and sentences that people and models read. Golden: tests pin every form."""

from datetime import datetime

from memoranda.records import (
    Dimension,
    Forgotten,
    Kept,
    KnowledgeChunk,
    Memory,
    MemoryRecord,
    Recall,
    Source,
    Undone,
    Written,
)
from memoranda.reports import Calibration, Diagnosis, Erased, Exported, Imported, Ingested

NOTHING_FOUND = "(no memories found)"
_EXCERPT = 120


def one_line(text: str) -> str:
    """Return a text with every run of white space as one space."""
    return " ".join(text.split())


def memory_line(memory: Memory) -> str:
    """Return `[id] (type category imp=5 [status] @project, day valid from->to) text`.

    The status stands there only when it is not active, the project and the window only when there are any; so does
    what makes the text look like an order to a model, such as `[override]`.
    """
    parts: list[str] = [memory.type]
    if memory.category:
        parts.append(one_line(memory.category))
    parts.append(f"imp={memory.importance}")
    if memory.status != "active":
        parts.append(f"[{memory.status}]")
    parts += [f"[{suspicion}]" for suspicion in memory.suspicions]
    if memory.project:
        parts.append(f"@{one_line(memory.project)}")
    tail = f", {memory.day.isoformat()}"
    if memory.valid_from or memory.valid_to:
        tail += f" valid {_day(memory.valid_from)}->{_day(memory.valid_to)}"
    title = f"{one_line(memory.title)}: " if memory.title else ""
    return f"[{memory.short_id}] ({' '.join(parts)}{tail}) {title}{one_line(memory.content)}"


def _day(moment: datetime | None) -> str:
    return moment.date().isoformat() if moment else "..."


def chunk_line(chunk: KnowledgeChunk) -> str:
    """Return `[knowledge source#3] text`."""
    return f"[knowledge {one_line(chunk.source)}#{chunk.chunk_index}] {one_line(chunk.content)}"


def record_lines(record: MemoryRecord) -> str:
    """Return a memory's line, then a line for each link of its chain and each source."""
    memory = record.memory
    lines = [memory_line(memory)]
    if memory.author:
        lines.append(f"author: {one_line(memory.author)} ({memory.audience})")
    lines += [f"supersedes: {old.short_id}" for old in record.supersedes]
    if record.superseded_by:
        lines.append(f"superseded by: {record.superseded_by.short_id}")
    if record.change:
        lines.append(f"changed by: {_source_line(record.change)}")
    lines += [f"source: {_source_line(source)}" for source in record.sources]
    return "\n".join(lines)


def _source_line(source: Source) -> str:
    via = f" via {one_line(source.channel)}" if source.channel else ""
    excerpt = one_line(source.excerpt)
    cut = f"{excerpt[: _EXCERPT - 1]}…" if len(excerpt) > _EXCERPT else excerpt
    return f"{source.type}{via}" + (f" -- {cut}" if cut else "")


def written_line(written: Written) -> str:
    """Return the sentence that answers a write."""
    if written.was is not None:
        return f"updated [{written.short_id}]"
    done = f"saved [{written.short_id}]" if written.created else f"already there [{written.short_id}]"
    return f"{done}, superseded [{written.superseded.short_id}]" if written.superseded else done


def kept_line(kept: Kept) -> str:
    """Return the sentence that answers a `keep`."""
    name = kept.memory.short_id
    if kept.outcome == "remembered":
        return f"Remembered [{name}]."
    if kept.outcome == "known":
        return f"Already remembered [{name}]."
    return f"Updated [{name}]." if kept.was is None else f'Updated [{name}]; it said: "{one_line(kept.was)}".'


def forgotten_line(forgotten: Forgotten) -> str:
    """Return the sentence that answers a `forget`."""
    return f'Forgotten [{forgotten.memory.short_id}]; it said: "{one_line(forgotten.memory.content)}".'


def dimension_line(dimension: Dimension) -> str:
    """Return `- [dimension, conf=5] text`."""
    return f"- [{dimension.dimension}, conf={dimension.confidence}] {one_line(dimension.content)}"


def ingested_line(ingested: Ingested) -> str:
    """Return the sentence that answers the taking in of a document."""
    source = one_line(ingested.source)
    if ingested.problem is not None:
        return f"Left out {source}: {ingested.problem}"
    found = "embedded" if ingested.embedded else "text only"
    chunks = _counted(ingested.chunks, "chunk", "chunks")
    return f"{'Unchanged' if ingested.unchanged else 'Ingested'} {source}: {chunks} ({found})"


def undone_line(undone: Undone) -> str:
    """Return the sentence that answers an `undo`."""
    taken = f", retracted [{undone.retracted.short_id}]" if undone.retracted else ""
    return f"[{undone.memory.short_id}] holds again{taken}"


def erased_line(erased: Erased) -> str:
    """Return the sentence that answers an erasure, or the finishing of earlier ones."""
    amount = f"{_counted(erased.memories, 'memory', 'memories')} ({_counted(erased.rows, 'row', 'rows')})"
    if erased.finished is not None:
        done = f"no trace is left of {_counted(erased.finished, 'erasure', 'erasures')}"
        done = done if erased.finished else "no erasure waits to be finished"
    elif not erased.rows:
        done = "nothing to erase"
    else:
        done = f"would erase {amount}" if erased.dry_run else f"erased {amount}"
    if erased.pending:
        done = f"{done}; " if erased.rows else ""
        return f"{done}pending: the rows are gone, but traces of them may be left on the disk: {erased.reason}"
    return f"{done}; {erased.elsewhere}" if erased.elsewhere else done


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def recall_lines(recall: Recall) -> str:
    """Return a line a hit, or the sentence that says there are none and why; a degraded answer says so first."""
    lines = [f"(degraded: {recall.degraded})"] if recall.degraded else []
    lines += [str(hit) for hit in recall] or [
        NOTHING_FOUND if not recall.reason else f"{NOTHING_FOUND[:-1]}: {recall.reason})"
    ]
    return "\n".join(lines)


def calibration_lines(calibration: Calibration) -> str:
    """Return the floor that was found, what it does and what the one before did."""
    measured = f"{calibration.questions:,} questions, each with its answer and without; AUROC {calibration.auroc:.3f}"
    effect = f"answers {calibration.answered:.1%} of those with one and {calibration.absent_answered:.1%} of the others"
    before = f"{calibration.answered_before:.1%} and {calibration.absent_answered_before:.1%}"
    lines = [measured, f"floor {calibration.floor:.3f}: {effect}", f"floor {calibration.floor_before:.3f}: {before}"]
    if calibration.distance is not None:
        lines.append(f"distance {calibration.distance:.3f}: 95% of the answers are nearer")
    lines.append("applied" if calibration.applied else "not applied")
    return "\n".join(lines)


def exported_line(exported: Exported) -> str:
    """Return the sentence that answers an export."""
    rows = sum(exported.rows.values())
    return f"exported {_many(exported.rows.get('memories', 0), 'memory', 'memories')}, {_many(rows, 'row')} in all"


def imported_line(imported: Imported) -> str:
    """Return the sentences that answer an import: what was stored, what was left alone, what had to give way."""
    stored, there = sum(imported.rows.values()), sum(imported.already_there.values())
    parts = [
        f"imported {_many(imported.rows.get('memories', 0), 'memory', 'memories')}, {_many(stored, 'row')} in all",
        f"{_many(there, 'row')} already there" if there else "",
        f"{imported.renamed:,} with a new short id" if imported.renamed else "",
        f"{imported.unkeyed:,} that another memory says, too" if imported.unkeyed else "",
        f"{imported.reindexed:,} with their words indexed anew" if imported.reindexed else "",
        f"{_many(imported.without_vectors, 'vector')} left out" if imported.without_vectors else "",
        f"{_many(imported.erased, 'row')} erased again, as before" if imported.erased else "",
    ]
    return ", ".join(part for part in parts if part)


def diagnosis_lines(diagnosis: Diagnosis) -> str:
    """Return a line a finding, or the sentence that there are none, and then the suggestions."""
    lines = [f"{finding.name}: {finding.message}. {finding.remedy}." for finding in diagnosis.findings]
    return "\n".join([*(lines or ["nothing is wrong"]), *(f"suggestion: {text}" for text in diagnosis.suggestions)])


def _many(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
