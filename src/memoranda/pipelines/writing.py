"""How a memory is written, corrected and taken back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast, get_args
from uuid import UUID

from memoranda.db.queries import corrections, memories
from memoranda.drafts import Draft, Setting, check, draft, embedded_text, hidden
from memoranda.effects import Steps, compute, write
from memoranda.errors import InvalidInput
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.records import Memory, Status, Written

_LONG = 10_000  # characters: about a millisecond of work


def write_many(context: Context, items: Iterable[str | Mapping[str, Any]]) -> Steps[list[Written]]:
    """Check every row, embed them in one call, store them in one transaction."""
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise InvalidInput("write_many takes a list of memories; for one memory call `write`")
    setting = context.writing()
    drafts = yield from compute(_drafted, list(items), setting)
    if not drafts:
        return []
    yield from opened(context)
    vectors, degraded = yield from vectors_of(context, [item.text for item in drafts], "text")
    stored = yield from write(memories.add, drafts, vectors, context.space.model, setting)
    return [Written(memory=memory, created=created, degraded=degraded) for memory, created in stored]


def _drafted(items: Sequence[str | Mapping[str, Any]], setting: Setting) -> list[Draft]:
    """Check all rows before the first is turned into terms: a bad one costs no work."""
    checked = [check(*_parted(item, index), index=index) for index, item in enumerate(items)]
    return [draft(text, fields, setting, index=index) for index, (text, fields) in enumerate(checked)]


def _parted(item: str | Mapping[str, Any], index: int) -> tuple[object, Mapping[str, Any]]:
    if isinstance(item, str):
        return item, {}
    if not isinstance(item, Mapping):
        raise InvalidInput("a memory is a string, or a mapping with `content`", index=index)
    if "content" not in item:
        raise InvalidInput("content is missing", field="content", index=index)
    return item["content"], {name: value for name, value in item.items() if name != "content"}


def write_one(context: Context, content: str, fields: Mapping[str, Any]) -> Steps[Written]:
    """Check, embed and store one memory."""
    setting = context.writing()
    text, parsed = check(content, fields)
    if len(text) > _LONG:
        item = yield from compute(draft, text, parsed, setting)
    else:
        item = draft(text, parsed, setting)
    yield from opened(context)
    vectors, degraded = yield from vectors_of(context, [item.text], "text")
    [(memory, created)] = yield from write(memories.add, [item], vectors, context.space.model, setting)
    return Written(memory=memory, created=created, degraded=degraded)


def supersede(context: Context, identifier: UUID | str, content: str, fields: Mapping[str, Any]) -> Steps[Written]:
    """Check and embed the new memory, then store it and close the old one in one transaction."""
    setting = context.writing()
    text, parsed = check(content, fields)
    yield from opened(context)
    # A title is not inherited, so that what is embedded is known before the old row is.
    title = parsed.get("title") or ""
    embedded = embedded_text(hidden(text, context.policies), hidden(title, context.policies))
    [vector], degraded = yield from vectors_of(context, [embedded], "text")
    model = context.space.model
    new, created, old = yield from write(corrections.supersede, setting, identifier, text, parsed, vector, model)
    return Written(memory=new, created=created, superseded=old, degraded=degraded)


def mark(context: Context, identifier: UUID | str, status: str, by: UUID | str | None) -> Steps[Memory]:
    """Give a memory another status."""
    allowed = [name for name in get_args(Status) if name != "active"]
    if status not in allowed:
        raise InvalidInput(f"status must be one of {', '.join(allowed)}", field="status")
    return (yield from write(corrections.mark, context.writing(), identifier, cast(Status, status), by))


def delete(context: Context, identifier: UUID | str) -> Steps[Memory]:
    """Take one memory out of every answer."""
    if isinstance(identifier, Sequence) and not isinstance(identifier, str):
        raise InvalidInput("delete takes one id: memories are deleted one at a time", field="id")
    return (yield from write(corrections.retract, context.writing(), identifier))
