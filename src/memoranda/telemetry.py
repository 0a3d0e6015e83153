"""What a host program may watch of the engine's work: one OpenTelemetry span an operation, and one record of its log.

Spans go to the tracer provider that the host has set, log records to the handlers it has set; nothing is sent from
here. They hold ids, counts and scores, never a text, a question, or the name of a user, tenant, persona, project or
space; an error is known by its type only, for what others raise may quote a text.

Names are those of OpenTelemetry's conventions for generative AI, which are in development, and ours where these have
none. A log record of `memoranda.operations`, at DEBUG, carries the same attributes as `extra` fields.

| attribute | what it says |
| --- | --- |
| `gen_ai.operation.name` | also the span's name: `search_memory`, `create_memory`, `update_memory`, `upsert_memory`, `delete_memory`, `embeddings`, `rerank`, and names of ours for the rest |
| `memoranda.verb` | the verb that was called: `recall`, `write`, `supersede` ... |
| `error.type` | the class of the error an operation ended with |
| `gen_ai.memory.record.id` | the memory that an operation was about |
| `gen_ai.memory.record.ids` | those a search found or a batch wrote, in order, 20 at most; a new memory and the one it replaced |
| `gen_ai.memory.record.count` | how many were found or written, erased or moved |
| `gen_ai.memory.record.scores` | what orders them, in the order of the ids |
| `gen_ai.memory.confidence` | 0..1, how sure the best hit is, or what came nearest in an abstention |
| `gen_ai.memory.abstained`, `gen_ai.memory.degraded` | whether a recall abstained; whether an answer or a memory has to do without vectors, or an answer without its reranker |
| `memoranda.created.count` | how many memories were not there before |
| `memoranda.count` | the number that any other verb returned: rows, jobs, members |
| `memoranda.extraction.failed`, `memoranda.failed` | whether nothing, or not all, could be taken from messages; whether a compaction changed nothing though there was something to fold |
| `memoranda.erasure.pending`, `memoranda.erasure.dry_run` | whether traces are left; whether it was only counted |
| `memoranda.job.id`, `.kind`, `.attempt` | of a `run_job` |
| `gen_ai.request.model`, `gen_ai.provider.name`, `gen_ai.embeddings.dimension.count` | the embedder; the first two also the reranker |
| `gen_ai.usage.input_tokens` | how many tokens the embedder counted, where it says so; none where no call was needed |
| `memoranda.embeddings.text.count`, `memoranda.embeddings.purpose` | how many texts were asked for, whether the embedder had to be called for them or not; `query` or `text` |
| `memoranda.rerank.text.count` | how many texts a reranker was asked to put in order |
"""  # noqa: E501 (rows of a table)

import logging
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar
from uuid import UUID

from memoranda.embedders import is_remote
from memoranda.records import Forgotten, Hit, Kept, Memory, MemoryRecord, Recall, Undone, Written
from memoranda.reports import Compacted, Diagnosis, Erased, Exported, Flushed, Imported, Pending, Reviewed, Statistics

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from memoranda.embedders.cache import CachedEmbedder
    from memoranda.protocols import Purpose

T = TypeVar("T")
Attributes: TypeAlias = Mapping[str, str | bool | int | float | Sequence[str] | Sequence[float]]

_log = logging.getLogger("memoranda.operations")
_IDS = 20  # of the thousand a recall may return, or the many a write may store

_OPERATIONS: Mapping[str, tuple[str, str]] = {
    "recalling.recall": ("search_memory", "recall"),
    "recalling.relevant": ("search_memory", "relevant"),
    "recalling.nearest": ("search_memory", "nearest"),
    "recalling.core": ("search_memory", "core"),
    "memories.Memories._listed": ("search_memory", "list"),
    "memories.Memories._record": ("get_memory", "get"),
    "memories.Memories._history": ("get_memory", "history"),
    "writing.write_one": ("create_memory", "write"),
    "writing.write_many": ("create_memory", "write_many"),
    "writing.keep": ("upsert_memory", "keep"),
    "writing.supersede": ("update_memory", "supersede"),
    "writing.mark": ("update_memory", "mark"),
    "writing.undo": ("update_memory", "undo"),
    "writing.delete": ("delete_memory", "delete"),
    "writing.forget": ("delete_memory", "forget"),
    "erasing.erase": ("delete_memory", "erase"),
    "erasing.reapply": ("delete_memory", "reapply_erasures"),
    "erasing.finish": ("finish_erasures", "finish_erasures"),
    "moving.export_to": ("export_memory", "export_to"),
    "moving.import_from": ("import_memory", "import_from"),
    "moving.backup": ("backup_memory_store", "backup"),
    "diagnosing.diagnose": ("diagnose_memory_store", "doctor"),
    "diagnosing.check": ("check_embedder", "check"),
    "calibrating.calibrate": ("calibrate_memory_store", "calibrate"),
    "persona._statistics": ("describe_memory_store", "stats"),
    "working.backfill": ("backfill_embeddings", "backfill"),
    "reembedding.reembed": ("reembed_memory", "reembed"),
    "working._performed": ("run_job", "work"),
    "working.drain": ("drain_jobs", "drain"),
    "upkeep.Upkeep._jobs": ("list_jobs", "jobs"),
    "working.revive": ("retry_jobs", "retry_jobs"),
    "projects.Projects._added": ("update_project", "add_member"),
    "projects.Projects._removed": ("update_project", "remove_member"),
    "projects.Projects._members": ("get_project", "members"),
    "user_model.UserModel._written": ("update_user_model", "write"),
    "user_model.UserModel._undone": ("update_user_model", "undo"),
    "user_model.UserModel._listed": ("get_user_model", "list"),
    "user_model.UserModel._history": ("get_user_model", "history"),
    "user_model.UserModel._as_of": ("get_user_model", "as_of"),
    "spaces.Spaces._created": ("update_space", "create"),
    "spaces.Spaces._archived": ("update_space", "archive"),
    "spaces.Spaces._listed": ("get_space", "list"),
    "ingesting.ingest": ("upsert_knowledge", "ingest"),
    "ingesting.listed": ("get_knowledge", "list"),
    "ingesting.get": ("get_knowledge", "get"),
    "ingesting.delete": ("delete_knowledge", "delete"),
    "collecting.add": ("upsert_nodes", "add"),
    "collecting.get": ("get_nodes", "get"),
    "collecting.search": ("search_nodes", "search"),
    "collecting.count": ("get_nodes", "count"),
    "collecting.delete": ("delete_nodes", "delete"),
    "collecting.clear": ("delete_nodes", "clear"),
    "record_keys.RecordKeys._now": ("get_record_keys", "now"),
    "record_keys.RecordKeys._noted": ("update_record_keys", "note"),
    "record_keys.RecordKeys._exist": ("get_record_keys", "exist"),
    "record_keys.RecordKeys._listed": ("get_record_keys", "list"),
    "record_keys.RecordKeys._deleted": ("delete_record_keys", "delete"),
    "storing_items.batch": ("access_items", "batch"),
    "storing_items.check": ("check_embedder", "check_embedder"),
    "storing_items.sweep": ("delete_items", "sweep"),
    "conversing.append": ("update_conversation", "append"),
    "conversing.reconcile": ("update_conversation", "reconcile"),
    "conversing.archive": ("update_conversation", "archive"),
    "conversing.remove": ("delete_messages", "remove"),
    "conversing.clear": ("delete_messages", "clear"),
    "conversing.messages": ("get_conversation", "messages"),
    "conversing.window": ("get_conversation", "window"),
    "conversing.record": ("get_conversation", "record"),
    "conversing.size": ("get_conversation", "size"),
    "conversing.listed": ("list_conversations", "list"),
    "conversing.names": ("list_conversations", "names"),
    "searching.search": ("search_conversations", "search"),
    "prompting.prompt": ("render_prompt", "prompt"),
    "prompting.instructions": ("render_prompt", "instructions"),
    "prompting.system_block": ("render_prompt", "system_block"),
    "prompting.user_model_block": ("render_prompt", "user_model_block"),
    "prompting.turn_block": ("render_prompt", "turn_block"),
    "compacting.compact": ("compact_conversation", "compact"),
    "extracting.flush": ("extract_memory", "flush"),
    "extracting.pending": ("update_conversation", "pending"),
    "extracting.out_of_sight": ("update_conversation", "out_of_sight"),
    "extracting.turn_done": ("update_conversation", "turn_done"),
    "extracting.end_session": ("update_conversation", "end_session"),
    "reviewing.review": ("review_conversation", "review"),
}
"""The operation and the verb that a pipeline stands for, by its module and name; others are parts of one."""


class Unwatched:
    """An operation nobody looks at."""

    __slots__ = ()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def saw(self, result: T) -> T:
        """Take note of what the operation gave, and return it."""
        return result


_UNWATCHED = Unwatched()


class Watched(Unwatched):
    """An operation under way: the current span of its thread or task until it ends."""

    __slots__ = ("_attributes", "_began", "_name", "_span", "_token", "_wanted")

    def __init__(self, name: str, attributes: Attributes, span: "Span | None") -> None:
        """Take a span that has begun, or None where only the log is looked at."""
        self._name = name
        self._attributes: dict[str, Any] = dict(attributes)
        self._span = span
        self._wanted = _log.isEnabledFor(logging.DEBUG) or (span is not None and span.is_recording())
        self._began = time.perf_counter()
        self._token: Any = None

    def __enter__(self) -> Self:
        """Make the span the parent of what follows."""
        if self._span is not None:
            self._token = _api().attach(self._span)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the span and write the record."""
        if kind is not None:
            self._attributes["error.type"] = _name_of(kind)
        if _log.isEnabledFor(logging.DEBUG):
            how = "took" if kind is None else "failed after"
            took = 1000 * (time.perf_counter() - self._began)
            _log.debug("%s %s %.1f ms", self._name, how, took, extra=self._attributes)
        if self._span is not None:
            self._span.set_attributes(self._attributes)
            if kind is not None:
                self._span.set_status(_api().failed)
            _api().detach(self._token)
            self._span.end()

    def saw(self, result: T) -> T:
        """Take note of what the operation gave, and return it."""
        if self._wanted:
            self._attributes.update(describe(self._name, result))
        return result


class WatchedEmbedding(Watched):
    """A call of an embedder under way, which is told what it used from wherever the embedder works for it."""

    __slots__ = ("_before",)
    _before: "Token[WatchedEmbedding | None]"

    def __enter__(self) -> Self:
        """Make the call known to `count_input_tokens`."""
        self._before = _embedding.set(self)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the span."""
        super().__exit__(kind, error, trace)
        _embedding.reset(self._before)

    def used(self, tokens: int) -> None:
        """Add to what the requests before this one used."""
        name = "gen_ai.usage.input_tokens"
        self._attributes[name] = self._attributes.get(name, 0) + tokens


_embedding: ContextVar[WatchedEmbedding | None] = ContextVar("memoranda_embedding", default=None)


def count_input_tokens(tokens: int) -> None:
    """Note how many tokens a request has taken, from within an embedder's call; for whoever watches it."""
    if (watched := _embedding.get()) is not None:
        watched.used(tokens)


def operation(steps: Generator[Any, Any, Any], attributes: Attributes | None = None) -> Unwatched:
    """Return what watches a pipeline while it is driven.

    Args:
        steps: The pipeline.
        attributes: What else is known of it.
    """
    frame = getattr(steps, "gi_frame", None)
    if not _looked_at() or frame is None:
        return _UNWATCHED
    module = frame.f_globals["__name__"].rpartition(".")[2]
    names = _OPERATIONS.get(f"{module}.{getattr(steps, '__qualname__', '')}")
    if names is None:
        return _UNWATCHED
    name, verb = names
    return _watched(name, {"gen_ai.operation.name": name, "memoranda.verb": verb, **(attributes or {})})


def embedding(embedder: "CachedEmbedder", texts: int, purpose: "Purpose") -> Unwatched:
    """Return what watches a call of an embedder."""
    if not _looked_at():
        return _UNWATCHED
    attributes: Attributes = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": embedder.name,
        "gen_ai.provider.name": embedder.name.partition("/")[0],
        "gen_ai.embeddings.dimension.count": embedder.dimensions,
        "memoranda.embeddings.text.count": texts,
        "memoranda.embeddings.purpose": purpose,
    }
    return _watched(f"embeddings {embedder.name}", attributes, WatchedEmbedding, remote=is_remote(embedder.name))


def reranking(name: str, texts: int) -> Unwatched:
    """Return what watches a call of a reranker."""
    if not _looked_at():
        return _UNWATCHED
    attributes: Attributes = {
        "gen_ai.operation.name": "rerank",
        "gen_ai.request.model": name,
        "gen_ai.provider.name": name.partition("/")[0],
        "memoranda.rerank.text.count": texts,
    }
    return _watched(f"rerank {name}", attributes)


def job(id: UUID, kind: str, attempt: int) -> Attributes:
    """Return what identifies an attempt at a job, in spans and log records."""
    return {"memoranda.job.id": str(id), "memoranda.job.kind": kind, "memoranda.job.attempt": attempt}


# -- what the verbs return


def describe(operation: str, result: object) -> Attributes:
    """Return the ids and counts of what an operation gave."""
    match result:
        case Recall(hits=hits):
            best = max((hit.confidence for hit in hits or result.nearest), default=None)
            return {
                **_records(hits),
                "gen_ai.memory.record.scores": [float(hit.score) for hit in hits[:_IDS]],
                "gen_ai.memory.abstained": result.abstained,
                "gen_ai.memory.degraded": result.degraded is not None,
                **({} if best is None else {"gen_ai.memory.confidence": float(best)}),
            }
        case Hit():
            return {
                **_record(result),
                "gen_ai.memory.record.scores": [float(result.score)],
                "gen_ai.memory.confidence": float(result.confidence),
            }
        case Written(memory=memory, superseded=old):
            return {
                **_record(memory),
                **({} if old is None else {"gen_ai.memory.record.ids": [str(memory.id), str(old.id)]}),
                "gen_ai.memory.degraded": result.degraded is not None,
                "memoranda.created.count": int(result.created),
            }
        case Kept(memory=memory):
            return {
                **_record(memory),
                "gen_ai.memory.degraded": result.degraded is not None,
                "memoranda.created.count": int(result.outcome == "remembered"),
            }
        case Memory():
            return _record(result)
        case Forgotten(memory=memory) | MemoryRecord(memory=memory):
            return _record(memory)
        case Undone(memory=memory, retracted=retracted):
            ids = {} if retracted is None else {"gen_ai.memory.record.ids": [str(memory.id), str(retracted.id)]}
            return {**_record(memory), **ids}
        case [Memory(), *_]:
            return _records(item for item in result if isinstance(item, Memory))
        case [Written(), *_]:
            written = [item for item in result if isinstance(item, Written)]
            return {
                **_records(item.memory for item in written),
                "gen_ai.memory.degraded": any(item.degraded is not None for item in written),
                "memoranda.created.count": sum(item.created for item in written),
            }
        case Erased(memories=memories):
            return {
                "gen_ai.memory.record.count": memories,
                "memoranda.count": result.rows,
                "memoranda.erasure.pending": result.pending,
                "memoranda.erasure.dry_run": result.dry_run,
            }
        case Flushed():
            return _flushed(result)
        case Compacted(folded=folded, problem=problem):
            return {**_flushed(result.flushed), "memoranda.count": folded, "memoranda.failed": problem is not None}
        case Reviewed(memories=memories, problem=problem):
            return {
                "gen_ai.memory.record.count": memories,
                "memoranda.count": result.messages,
                "memoranda.extraction.failed": problem is not None,
            }
        case Pending(messages=messages):
            return {"memoranda.count": messages}
        case Exported(rows=rows) | Imported(rows=rows):
            return {"gen_ai.memory.record.count": rows.get("memories", 0), "memoranda.count": sum(rows.values())}
        case Statistics(memories=memories) | Diagnosis(memories=memories):
            return {"gen_ai.memory.record.count": memories}
        case None | [] if operation.endswith("_memory"):
            return _records([])
        case list():
            return {"memoranda.count": len(result)}
        case int() if not isinstance(result, bool):
            return {"memoranda.count": result}
        case _:
            return {}


def _flushed(flushed: Flushed) -> Attributes:
    return {
        "gen_ai.memory.record.count": flushed.written,
        "memoranda.count": flushed.messages,
        "memoranda.extraction.failed": flushed.problem is not None,
    }


def _record(record: Memory | Hit) -> Attributes:
    return {"gen_ai.memory.record.id": str(record.id), "gen_ai.memory.record.count": 1}


def _records(records: Iterable[Memory | Hit]) -> Attributes:
    ids = [str(record.id) for record in records]
    return {"gen_ai.memory.record.ids": ids[:_IDS], "gen_ai.memory.record.count": len(ids)}


def _name_of(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# -- OpenTelemetry, where the host uses it


class _Api(NamedTuple):
    """The few parts of OpenTelemetry that are called."""

    tracer: "Tracer"
    internal: Any
    client: Any
    failed: Any
    attach: Any
    detach: Any


@cache
def _api() -> _Api:
    from opentelemetry import context, trace

    from memoranda import __version__

    return _Api(
        tracer=trace.get_tracer("memoranda", __version__),
        internal=trace.SpanKind.INTERNAL,
        client=trace.SpanKind.CLIENT,
        failed=trace.Status(trace.StatusCode.ERROR),
        attach=lambda span: context.attach(trace.set_span_in_context(span)),
        detach=context.detach,
    )


def _traced() -> bool:
    # A host that wants spans has imported this to say where they go; one that has not is spared the import.
    return "opentelemetry.trace" in sys.modules


def _looked_at() -> bool:
    return _traced() or _log.isEnabledFor(logging.DEBUG)


def _watched(name: str, attributes: Attributes, kind: type[Watched] = Watched, *, remote: bool = False) -> Unwatched:
    span = None
    if _traced():
        api = _api()
        span = api.tracer.start_span(name, kind=api.client if remote else api.internal, attributes=attributes)
        if not span.get_span_context().is_valid:
            span = None  # no provider is set
    if span is None and not _log.isEnabledFor(logging.DEBUG):
        return _UNWATCHED
    return kind(name, attributes, span)
