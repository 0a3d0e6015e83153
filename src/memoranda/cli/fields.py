"""The options that say what a memory is, which ones are asked for, and from where: groups for `command`."""

import json
from typing import Annotated, Any, get_args

import typer

from memoranda.errors import InvalidInput
from memoranda.policies import MemoryType

_SCOPE, _MEMORY, _FILTER = "Scope", "Memory", "Filter"
_TYPES = ", ".join(get_args(MemoryType))


def _scope_option(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=_SCOPE, show_default=False)


def scope(
    space: Annotated[
        str | None, _scope_option(metavar="NAME", help="Where it was learned; what other spaces hold does not come up.")
    ] = None,
    agent: Annotated[
        str | None, _scope_option(metavar="NAME", help="Who acts: what is about other agents does not come up.")
    ] = None,
    thread: Annotated[
        str | None, _scope_option(metavar="NAME", help="Which thread is on: what is about others does not come up.")
    ] = None,
    people: Annotated[
        list[str] | None,
        _scope_option(
            "--person", metavar="NAME", help="Who is present, may be repeated: what is about others does not come up."
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the axes that narrow a persona, as `Persona.scoped` takes them; None for those left out."""
    return dict(space=space, agent=agent, thread=thread, people=people or None)


def _memory_option(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=_MEMORY, show_default=False)


def memory_fields(
    type: Annotated[str | None, _memory_option(metavar="TYPE", help=f"{_TYPES}.")] = None,
    category: Annotated[str | None, _memory_option(metavar="WORD", help="A label that weighs in the search.")] = None,
    title: Annotated[str | None, _memory_option(metavar="TEXT", help="A heading.")] = None,
    importance: Annotated[int | None, _memory_option(metavar="1..10", help="Higher matters more.")] = None,
    confidence: Annotated[int | None, _memory_option(metavar="1..10", help="Higher is surer.")] = None,
    core: Annotated[
        bool | None,
        typer.Option("--core/--no-core", help="Always in mind.", rich_help_panel=_MEMORY, show_default=False),
    ] = None,
    day: Annotated[str | None, _memory_option(metavar="DATE", help="The day it belongs to.")] = None,
    event_time: Annotated[str | None, _memory_option(metavar="TIME", help="When it happened.")] = None,
    valid_from: Annotated[str | None, _memory_option(metavar="TIME", help="Since when it holds.")] = None,
    valid_to: Annotated[str | None, _memory_option(metavar="TIME", help="From when on it no longer holds.")] = None,
    about: Annotated[
        str | None, _memory_option(metavar="WHOM", help="everyone, person:NAME, agent:NAME or thread:NAME.")
    ] = None,
    project: Annotated[str | None, _memory_option(metavar="NAME", help="The project it belongs to.")] = None,
    audience: Annotated[
        str | None, _memory_option(metavar="WHO", help="private, or project to share it with its members.")
    ] = None,
    session: Annotated[str | None, _memory_option(metavar="NAME", help="The conversation it comes from.")] = None,
    position: Annotated[int | None, _memory_option(metavar="N", help="Its place in the session, from 0.")] = None,
    metadata: Annotated[str | None, _memory_option(metavar="JSON", help="An object of your own.")] = None,
    source: Annotated[
        str | None,
        _memory_option(metavar="TYPE", help="user_message, assistant_inference, tool_result or manual."),
    ] = None,
    channel: Annotated[str | None, _memory_option(metavar="NAME", help="The way it came.")] = None,
    excerpt: Annotated[str | None, _memory_option(metavar="TEXT", help="The words it was taken from.")] = None,
) -> dict[str, Any]:
    """Return the fields of a memory that were given."""
    given = dict(
        type=type,
        category=category,
        title=title,
        importance=importance,
        confidence=confidence,
        core=core,
        day=day,
        event_time=event_time,
        valid_from=valid_from,
        valid_to=valid_to,
        about=about,
        project=project,
        audience=audience,
        session=session,
        position=position,
        metadata=None if metadata is None else json_object(metadata),
        source={k: v for k, v in dict(type=source, channel=channel, excerpt=excerpt).items() if v is not None} or None,
    )
    return {name: value for name, value in given.items() if value is not None}


def json_object(text: str) -> dict[str, Any]:
    """Return the object that the option --metadata holds.

    Raises:
        InvalidInput: it holds none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput("metadata must be a JSON object, such as '{\"ticket\": 12}'", field="metadata")
    return value


def _filter_option(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=_FILTER, show_default=False)


def filters(
    date: Annotated[str | None, _filter_option(metavar="DATE", help="Only this day.")] = None,
    types: Annotated[
        list[str] | None, _filter_option("--type", metavar="TYPE", help=f"{_TYPES}; may be repeated.")
    ] = None,
    categories: Annotated[
        list[str] | None, _filter_option("--category", metavar="WORD", help="Only this label; may be repeated.")
    ] = None,
    project: Annotated[
        str | None, _filter_option(metavar="NAME", help="This project's memories, and those without a project.")
    ] = None,
    as_of: Annotated[
        str | None, _filter_option(metavar="TIME", help="What held then; a day alone means its beginning.")
    ] = None,
    include_inactive: Annotated[
        bool,
        typer.Option(
            "--include-inactive", help="Also what was superseded, expired or deleted.", rich_help_panel=_FILTER
        ),
    ] = False,
) -> dict[str, Any]:
    """Return the filters that were given."""
    given = dict(date=date, types=types or None, categories=categories or None, project=project, as_of=as_of)
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return found | {"include_inactive": True} if include_inactive else found
