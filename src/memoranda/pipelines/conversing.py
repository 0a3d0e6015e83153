"""Conversations: messages in, messages and windows out, and an end to all of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from memoranda.db.queries import conversations, message_writing, pending_messages
from memoranda.db.queries import messages as rows
from memoranda.db.queries.message_writing import Reconciled
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.effects import Steps, compute, read, wake, write
from memoranda.errors import InvalidInput
from memoranda.messages import ConversationRecord, Message
from memoranda.messages import forms as message_forms
from memoranda.messages.drafts import MessageDraft, draft
from memoranda.messages.forms import Said
from memoranda.pipelines import extracting
from memoranda.pipelines.context import Context, opened
from memoranda.reports import Cleared
from memoranda.scope import Scope

_LISTED = 100


def append(context: Context, name: str, said: Said | Iterable[Said], new_ids: bool) -> Steps[list[Message]]:
    """Add messages at the end; what is there already stays in its place, with the words it has now."""
    drafts = yield from _drafts(context, said)
    yield from opened(context)
    return (yield from write(message_writing.append, context.scope, name, drafts, context.setting().now, bool(new_ids)))


def reconcile(context: Context, name: str, said: Iterable[Said]) -> Steps[list[Message]]:
    """Make the messages that no summary speaks for these, and return them; what is pending and left out is flushed."""
    drafts = yield from _drafts(context, said)
    yield from opened(context)
    payload = extracting.job_payload(context, name)
    done = yield from write(_reconciled, context.scope, name, drafts, context.setting().now, payload)
    if done.folded and payload is not None:
        yield from wake()
    return done.messages


def _reconciled(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    name: str,
    drafts: Sequence[MessageDraft],
    now: datetime,
    payload: Any,
) -> Reconciled:
    done = message_writing.reconcile(conn, tables, scope, name, drafts, now)
    if done.folded and payload is not None:
        pending_messages.flush_later(conn, tables, scope, name, now, payload)
    return done


def messages(context: Context, name: str, limit: int | None, before: int | None, folded: bool) -> Steps[list[Message]]:
    """Return the messages in their order; the newest ones, where there is a limit."""
    if limit is not None:
        _require_whole("limit", limit)
    if before is not None:
        _require_whole("before", before)
    yield from opened(context)
    return (yield from read(rows.listed, context.setting(), name, limit, before, bool(folded)))


def window(context: Context, name: str, max_tokens: int) -> Steps[list[Message]]:
    """Return the newest messages that fit."""
    _require_whole("max_tokens", max_tokens)
    yield from opened(context)
    return (yield from read(rows.window, context.setting(), name, max_tokens))


def size(context: Context, name: str) -> Steps[int]:
    """Return how many tokens are not folded."""
    yield from opened(context)
    return (yield from read(rows.size, context.setting(), name))


def archive(context: Context, name: str, named: Sequence[Message | int]) -> Steps[list[Message]]:
    """Fold messages without a summary."""
    positions = _positions(named)
    setting = context.writing()
    yield from opened(context)
    if positions:  # pending first: what is marked and still shown is looked through once, what is neither is lost
        yield from extracting.pending(context, name, positions)
    return (yield from write(message_writing.archive, context.scope, name, positions, setting.now))


def remove(context: Context, name: str, named: Sequence[Message | int]) -> Steps[list[Message]]:
    """Delete messages."""
    positions = _positions(named)
    setting = context.writing()
    yield from opened(context)
    return (yield from write(message_writing.remove, context.scope, name, positions, setting.now))


def record(context: Context, name: str) -> Steps[ConversationRecord | None]:
    """Return how the conversation stands."""
    yield from opened(context)
    return (yield from read(conversations.record, context.setting(), name))


def clear(context: Context, name: str) -> Steps[Cleared]:
    """Remove everything a conversation holds."""
    context.writing()
    yield from opened(context)
    return Cleared(messages=(yield from write(conversations.clear, context.scope, name)))


def listed(context: Context, limit: int | None) -> Steps[list[ConversationRecord]]:
    """Return the conversations, the one with the newest message first."""
    if limit is not None:
        _require_whole("limit", limit, 1_000)
    yield from opened(context)
    return (yield from read(conversations.listed, context.setting(), limit or _LISTED))


def names(context: Context) -> Steps[list[str]]:
    """Return the names of all conversations that have messages."""
    yield from opened(context)
    return (yield from read(conversations.names, context.setting()))


def _positions(named: Sequence[Message | int]) -> list[int]:
    if isinstance(named, str | bytes) or not isinstance(named, Sequence):
        raise InvalidInput("messages must be a list of stored messages or their positions", field="messages")
    positions = [message.position if isinstance(message, Message) else message for message in named]
    for index, position in enumerate(positions):
        if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < 2**31:
            raise InvalidInput("a message is named by its position", field="messages", index=index)
    return [position for position in positions if position is not None]


def _drafts(context: Context, said: Any) -> Steps[list[MessageDraft]]:
    setting = context.writing()
    given = message_forms.given(said, setting.zone)
    return (yield from compute(_drafted, given, setting))


def _drafted(given: Sequence[Message], setting: Setting) -> list[MessageDraft]:
    several = len(given) > 1
    return [draft(message, setting, index if several else None) for index, message in enumerate(given)]


def _require_whole(field: str, value: object, most: int = 2**31 - 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        upper = f" of at most {most:,}" if most < 2**31 - 1 else ""
        raise InvalidInput(f"{field} must be a positive whole number{upper}", field=field)
