"""The commands about conversations: `prompt`, `flush`, `compact`, `review`, and `conversations list|show|search`."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, FAILED, NONE
from memoranda.cli.fields import scope
from memoranda.cli.options import Model, Store, Words, command, store
from memoranda.cli.wording import typed

if TYPE_CHECKING:
    from rich.table import Table

    from memoranda.messages import ConversationRecord, Message, Prompt
    from memoranda.persona import Persona
    from memoranda.reports import Compacted, Flushed, Found, Reviewed

_PAGE = 20
_WINDOW = 8_000  # tokens
_PARTS = ("instructions", "system", "user_model", "summary", "turn")

Name = Annotated[
    str,
    typer.Argument(metavar="CONVERSATION", help="Its name, as `conversations list` shows it.", show_default=False),
]


# -- what a model sees


@command(store, scope)
def prompt(
    store: Store,
    scope: dict[str, Any],
    name: Name,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT", help="What the turn is about; the newest user message if left out.", show_default=False
        ),
    ] = None,
    window: Annotated[int, typer.Option(metavar="TOKENS", help="How much of the messages is shown.")] = _WINDOW,
) -> int:
    """Show exactly what a model would see of a conversation, with token counts.

    The guidance, the frozen block of memories, the user model, the summary of
    what was folded away, what the turn brings up, and the newest messages. The
    frozen block is rendered and stored if it was not yet: the same bytes come
    back until a compaction, a clear, an erasure or the loss of a membership.

    Examples:
        memoranda prompt standup-12
        memoranda prompt standup-12 "Shall we book the flight?" --user ana
        memoranda prompt standup-12 --json | jq .tokens
    """
    with store.opened(scope) as persona:
        conversation = persona.conversation(name)
        shown, messages = conversation.prompt(text), conversation.window(window)
    tokens = {**shown.tokens, "messages": sum(message.tokens or 0 for message in messages)}
    if store.as_json:
        parts = {part: getattr(shown, part) for part in _PARTS}
        documents = [message_document(message) for message in messages]
        output.print_json({"conversation": name, **parts, "messages": documents, "tokens": tokens})
        return DONE
    for part, body in (*_filled(shown), *_last(messages)):
        print(f"--- {part}: about {output.counted(tokens[part], 'token', 'tokens')}")
        print(f"{output.plain(body)}\n")
    print(f"about {output.counted(sum(tokens.values()), 'token', 'tokens')} in all")
    return DONE


def _filled(shown: "Prompt") -> Iterator[tuple[str, str]]:
    return ((part, body) for part in _PARTS if (body := getattr(shown, part)))


def _last(messages: "Sequence[Message]") -> Iterator[tuple[str, str]]:
    if messages:
        yield "messages", "\n".join(f"{message.role}: {_text(message)}" for message in messages)


# -- what is done with a model


@command(store, scope)
def flush(store: Store, scope: dict[str, Any], name: Name, model: Model = None) -> int:
    """Save memories from the messages that have left a model's sight, with one call of the model.

    A failure of the model loses nothing: the messages stay pending, the exit
    code is 3, and a worker tries again.

    Examples:
        memoranda flush standup-12 --model ollama/qwen2.5:7b
    """
    with _asking(store, scope, model) as persona:
        if _is_missing(persona, name, store):
            return NONE
        done = persona.conversation(name).flush()
    if store.as_json:
        output.print_json(output.jsonable(done))
    else:
        print(_flushed(done))
    return FAILED if done.problem else NONE if done.skipped else DONE


@command(store, scope)
def compact(
    store: Store,
    scope: dict[str, Any],
    name: Name,
    keep: Annotated[
        int | None,
        typer.Option(metavar="TOKENS", help="How much of the newest messages stays; 8,000.", show_default=False),
    ] = None,
    model: Model = None,
) -> int:
    """Fold the oldest messages into a summary, after saving what they hold of lasting value.

    Folded messages are kept and can be searched. Where the summary fails,
    nothing is folded, and the exit code is 3.

    Examples:
        memoranda compact standup-12
        memoranda compact standup-12 --keep 2000 --model openai/gpt-4o-mini
    """
    from memoranda.policies import CompactionPolicy

    policy = None if keep is None else replace(CompactionPolicy(), keep_tokens=keep)
    with _asking(store, scope, model) as persona:
        if _is_missing(persona, name, store):
            return NONE
        done = persona.conversation(name).compact(policy)
    if store.as_json:
        output.print_json(output.jsonable(done))
    else:
        print(_compacted(done))
    return FAILED if done.problem else DONE if done.folded else NONE


@command(store, scope)
def review(store: Store, scope: dict[str, Any], name: Name, model: Model = None) -> int:
    """Look through the newest messages with one call of the model, and apply what it is sure of.

    It writes memories, and what is known of the user. A failure of the model
    changes nothing, and the exit code is 3.

    Examples:
        memoranda review standup-12
    """
    with _asking(store, scope, model) as persona:
        if _is_missing(persona, name, store):
            return NONE
        done = persona.conversation(name).review()
    if store.as_json:
        output.print_json(output.jsonable(done))
    else:
        print(_reviewed(done))
    return FAILED if done.problem else DONE if done.messages else NONE


@contextmanager
def _asking(store: Store, scope: dict[str, Any], model: str | None) -> "Iterator[Persona]":
    """Open the persona for a command that asks a model."""
    # What the log says of a failure is said in our answer.
    logging.getLogger("memoranda").addHandler(logging.NullHandler())
    with store.opened(scope, model=model) as persona:
        yield persona


def _is_missing(persona: "Persona", name: str, store: Store) -> bool:
    """Say so where there is no such conversation."""
    if persona.conversation(name).record() is not None:
        return False
    if store.as_json:
        output.print_json({"conversation": None})
    else:
        print("(no such conversation)")
    return True


def _messages(number: int) -> str:
    return output.counted(number, "message", "messages")


def _memories(number: int) -> str:
    return output.counted(number, "memory", "memories")


def _flushed(done: "Flushed") -> str:
    if done.skipped:
        return f"({done.skipped.rstrip('.')})"
    saved = f"looked through {_messages(done.messages)}, saved {_memories(done.written)}"
    return f"{saved}; they stay pending: {_reason(done.problem)}" if done.problem else saved


def _compacted(done: "Compacted") -> str:
    if done.problem:
        return f"nothing was folded: {_reason(done.problem)}"
    if not done.folded:
        return "(nothing to fold: what is kept as it is holds it all)"
    lines = [
        f"folded {_messages(done.folded)}, {done.first} to {done.last}, into {len(done.summary):,} characters",
        _flushed(done.flushed),
    ]
    return "\n".join(lines)


def _reviewed(done: "Reviewed") -> str:
    if done.problem:
        return f"nothing was changed: {_reason(done.problem)}"
    if not done.messages:
        return "(nothing to look through)"
    known = output.counted(done.dimensions, "dimension", "dimensions")
    dropped = f", dropped {output.counted(done.dropped, 'proposal', 'proposals')}" if done.dropped else ""
    return f"looked through {_messages(done.messages)}: wrote {_memories(done.memories)} and {known}{dropped}"


def _reason(problem: str) -> str:
    return output.one_line(typed(problem)).rstrip(".")


# -- what was said


@command(store)
def list_conversations(
    store: Store,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many at most, to 1,000.")] = _PAGE,
) -> int:
    """List conversations, the last one touched first.

    Examples:
        memoranda conversations list --user ana
    """
    with store.opened() as persona:
        found = persona.conversations.list(limit=limit)
    if store.as_json:
        output.print_json({"conversations": found})
    elif found:
        output.show(_conversations_table(found))
    else:
        print("(no conversations found)")
    return DONE if found else NONE


@command(store)
def show(
    store: Store,
    name: Name,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="The newest so many messages.")] = _PAGE,
    before: Annotated[
        int | None, typer.Option(metavar="POSITION", help="Only messages before this one.", show_default=False)
    ] = None,
) -> int:
    """Show the messages of a conversation, folded ones too, and its summary.

    Examples:
        memoranda conversations show standup-12 --limit 50
        memoranda conversations show standup-12 --before 120
    """
    with store.opened() as persona:
        if _is_missing(persona, name, store):
            return NONE
        conversation = persona.conversation(name)
        record, messages = conversation.record(), conversation.messages(limit=limit, before=before)
    earlier = messages[0].position if len(messages) == limit else None
    if store.as_json:
        documents = [message_document(message) for message in messages]
        output.print_json({"conversation": record, "messages": documents, "before": earlier})
        return DONE
    if record and record.summary:
        print(f"summary of what was folded: {output.plain(record.summary)}\n")
    output.show(_messages_table(messages))
    if earlier and earlier > 1:
        print(f"there may be more: --before {earlier}")
    return DONE


@command(store)
def search(
    store: Store,
    text: Words,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", help="How many at most.", show_default=False)
    ] = None,
    around: Annotated[int, typer.Option(metavar="N", help="How many messages beside each, 0 to 10.")] = 1,
) -> int:
    """Search what was said, in all conversations of the user, folded messages too.

    Examples:
        memoranda conversations search antenna cable
        memoranda conversations search "when was that?" --around 3
    """
    with store.opened() as persona:
        found = persona.conversations.search(" ".join(text), limit=limit, around=around)
    if store.as_json:
        output.print_json({"found": [_found_document(one) for one in found]})
    elif found:
        output.show(_found_table(found))
    else:
        print("(no messages found)")
    return DONE if found else NONE


def message_document(message: "Message") -> dict[str, Any]:
    """Return the JSON document of a message."""
    from memoranda.metadata import encode

    document: dict[str, Any] = output.jsonable(replace(message, extra={}, payload=None))
    return {**document, "extra": encode(dict(message.extra)), "payload": message.payload}


def _found_document(found: "Found") -> dict[str, Any]:
    return {
        "conversation": found.conversation,
        "score": found.score,
        "message": message_document(found.message),
        "before": [message_document(message) for message in found.before],
        "after": [message_document(message) for message in found.after],
    }


def _text(message: "Message") -> str:
    """Return what a person would read of a message: its text, its calls of tools, and what else it holds."""
    parts = [] if isinstance(message.content, str) else [p for p in message.content if "text" not in p]
    calls = [f"{call.name}({_arguments(call.arguments)})" for call in message.tool_calls]
    return "\n".join(filter(None, (message.text, *(f"({part.get('type', 'part')})" for part in parts), *calls)))


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(output.jsonable(arguments), ensure_ascii=False)


def _conversations_table(records: "Sequence[ConversationRecord]") -> "Table":
    rows = output.table(("messages", 8), ("folded", 7), ("pending", 7), ("last", 10))
    rows.add_column("conversation", overflow="fold", ratio=1)
    for record in records:
        counts = (f"{number:,}" for number in (record.messages, record.folded, record.pending))
        cells = [output.styled(count) for count in counts]
        day = output.styled(record.updated_at.date().isoformat())
        rows.add_row(*cells, day, output.styled(output.one_line(record.name), "cyan"))
    return rows


def _messages_table(messages: "Sequence[Message]") -> "Table":
    rows = output.table(("#", 6), ("role", 9))
    rows.add_column("message", overflow="fold", ratio=1)
    for message in messages:
        rows.add_row(*_cells(message, "dim" if message.folded else ""))
    return rows


def _found_table(found: "Sequence[Found]") -> "Table":
    rows = output.table(("#", 6), ("role", 9))
    rows.add_column("message", overflow="fold", ratio=1)
    for number, one in enumerate(found):
        if number:
            rows.add_row("", "", "")
        rows.add_row("", "", output.styled(output.one_line(one.conversation), "cyan"))
        for message in one.before:
            rows.add_row(*_cells(message, "dim"))
        rows.add_row(*_cells(one.message, ""))
        for message in one.after:
            rows.add_row(*_cells(message, "dim"))
    return rows


def _cells(message: "Message", style: str) -> tuple[Any, Any, Any]:
    speaker = message.name if message.name and message.role != "tool" else message.role
    text = output.styled(output.plain(_text(message)), style)
    return output.styled(str(message.position), "cyan"), output.styled(output.one_line(speaker), style), text
