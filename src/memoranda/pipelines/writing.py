"""How a memory is written, corrected and taken back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast, get_args
from uuid import UUID

from memoranda.db.queries import adding, corrections, repeats
from memoranda.db.queries.adding import Stored
from memoranda.db.queries.repeats import Found
from memoranda.drafts import Draft, Setting, draft, draft_many, embedded_text, hidden, require_about
from memoranda.effects import Steps, compute, read, wake, write
from memoranda.errors import InvalidInput
from memoranda.fields import MemoryFields, check
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.records import Forgotten, Kept, Memory, Status, Undone, Written

_OUTCOMES: Mapping[str, Literal["remembered", "known", "updated"]] = {
    "new": "remembered",
    "known": "known",
    "revised": "updated",
}
_TOLD = 20  # refused rows named in one message; the error carries them all
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
    found = yield from _looked(drafts, vectors, context.space.model, setting)
    stored = yield from write(adding.add, drafts, vectors, context.space.model, setting, found)
    yield from _left(context, degraded)
    lacking = {draft.memory.id for draft, vector in zip(drafts, vectors, strict=True) if vector is None}
    some = len(lacking) < len(drafts)  # then it is said of these alone
    return [_written(item, None if some and item.memory.id not in lacking else degraded) for item in stored]


def _looked(
    drafts: Sequence[Draft], vectors: Sequence[Any], model: str | None, setting: Setting
) -> Steps[Found | None]:
    """Look for what drafts might repeat while others can still write, where the policy compares them."""
    if not setting.policies.dedupe.compares:
        return None
    return (yield from read(repeats.look, drafts, vectors, model, setting))


def _left(context: Context, degraded: str | None) -> Steps[None]:
    """Have the job done that a write without vectors has left."""
    if degraded is not None and context.leaves_jobs and context.space.model is not None:
        yield from wake(context.scope.whose)


def _written(stored: Stored, degraded: str | None) -> Written:
    was = stored.was.content if stored.was else None
    return Written(memory=stored.memory, created=stored.outcome == "new", was=was, degraded=degraded)


def _drafted(items: Sequence[str | Mapping[str, Any]], setting: Setting) -> list[Draft]:
    """Check all rows before the first is turned into terms: a bad one costs no work, and is named with all others."""
    checked: list[tuple[str, MemoryFields]] = []
    refused: list[InvalidInput] = []
    for index, item in enumerate(items):
        try:
            checked.append(check(*_parted(item, index), index=index))
        except InvalidInput as error:
            refused.append(error)
    if len(refused) > 1:
        told = "; ".join(map(str, refused[:_TOLD]))
        more = f"; and {len(refused) - _TOLD:,} more" if len(refused) > _TOLD else ""
        raise InvalidInput(
            f"{len(refused):,} rows were refused, and nothing was stored: {told}{more}",
            field=refused[0].field,
            rows=refused,
        )
    if refused:
        raise refused[0]
    return draft_many(checked, setting)


def _parted(item: str | Mapping[str, Any], index: int) -> tuple[object, Mapping[str, Any]]:
    if isinstance(item, str):
        return item, {}
    if not isinstance(item, Mapping):
        raise InvalidInput("a memory is a string, or a mapping with `content`", index=index)
    if "content" not in item:
        raise InvalidInput("content is missing", field="content", index=index)
    fields = dict(item)
    return fields.pop("content"), fields


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
    found = yield from _looked([item], vectors, context.space.model, setting)
    [stored] = yield from write(adding.add, [item], vectors, context.space.model, setting, found)
    yield from _left(context, degraded)
    return _written(stored, degraded)


def keep(context: Context, content: str, identifier: UUID | str | None, fields: Mapping[str, Any]) -> Steps[Kept]:
    """Check and embed a statement, then store it once: what says the same is given its text."""
    policies = context.policies
    comparing = replace(policies, dedupe=replace(policies.dedupe, name="same"))
    setting = replace(context.writing(), policies=comparing)
    text, parsed = check(content, fields)
    require_about(parsed)
    item = yield from compute(draft, text, parsed, setting)
    yield from opened(context)
    [vector], degraded = yield from vectors_of(replace(context, policies=comparing), [item.text], "text")
    model = context.space.model
    found = (yield from _looked([item], [vector], model, setting)) if identifier is None else None
    stored = yield from write(adding.keep, item, vector, model, setting, identifier, found)
    yield from _left(context, degraded)
    was = stored.was.content if stored.was else None
    return Kept(memory=stored.memory, outcome=_OUTCOMES[stored.outcome], was=was, degraded=degraded)


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
    yield from _left(context, degraded)
    return Written(memory=new, created=created, superseded=old, degraded=degraded)


def mark(context: Context, identifier: UUID | str, status: str, by: UUID | str | None) -> Steps[Memory]:
    """Give a memory another status."""
    allowed = [name for name in get_args(Status) if name != "active"]
    if status not in allowed:
        raise InvalidInput(f"status must be one of {', '.join(allowed)}", field="status")
    return (yield from write(corrections.mark, context.writing(), identifier, cast(Status, status), by))


def undo(context: Context, identifier: UUID | str) -> Steps[Undone]:
    """Take back that a memory was replaced or marked."""
    memory, retracted = yield from write(corrections.undo, context.writing(), identifier)
    return Undone(memory=memory, retracted=retracted)


def forget(context: Context, identifier: UUID | str) -> Steps[Forgotten]:
    """Take one memory out of every answer, and say what it said."""
    return Forgotten(memory=(yield from delete(context, identifier)))


def delete(context: Context, identifier: UUID | str) -> Steps[Memory]:
    """Take one memory out of every answer."""
    if isinstance(identifier, Sequence) and not isinstance(identifier, str):
        raise InvalidInput("delete takes one id: memories are deleted one at a time", field="id")
    return (yield from write(corrections.retract, context.writing(), identifier))
