"""The options that many commands share, each stated once, and how a command gets what they add up to.

A group is a function whose parameters are options and whose result is what they mean together. `command(group, ...)`
gives a function those options and calls it with the results first.
"""

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from memoranda.errors import ConfigurationError, InvalidInput, StoreUnavailable
from memoranda.policies import MemoryType

if TYPE_CHECKING:
    from memoranda.engine import MemoryEngine
    from memoranda.persona import Persona

Command = Callable[..., int]
"""A command returns its exit code."""

_STORE, _MEMORY, _FILTER = "Store", "Memory", "Filter"
_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_TYPES = ", ".join(get_args(MemoryType))

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Embedder = Annotated[
    str | None,
    typer.Option(
        envvar="MEMORANDA_EMBEDDER",
        metavar="NAME",
        help="auto, hash/words, wordllama or none; left out, what the store was made with.",
        rich_help_panel=_STORE,
    ),
]
Schema = Annotated[
    str, typer.Option(metavar="NAME", help="Postgres: the schema the tables live in.", rich_help_panel=_STORE)
]
Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="What to remember; - reads JSON from standard input.", show_default=False)
]
Id = Annotated[str, typer.Argument(metavar="ID", help="A memory's id or short id.", show_default=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where a command reads and writes, as whom, and how it answers."""

    url: str | None = field(repr=False)
    persona: str
    user: str | None
    tenant: str
    preset: str
    embedder: str | None
    schema: str
    timezone: str
    as_json: bool

    @contextmanager
    def engine(self, *, create: bool = False) -> "Iterator[MemoryEngine]":
        """Open the engine for a command.

        Args:
            create: Whether a SQLite file may be made. Where nothing is to be written, a mistyped path must not become
                an empty store that answers "nothing found".

        Raises:
            StoreUnavailable: there is no such file.
        """
        from memoranda.engine import DEFAULT_URL, MemoryEngine

        with MemoryEngine(
            self.url or DEFAULT_URL,
            preset=self.preset,
            embedder=self.embedder,
            timezone=self.timezone,
            schema=self.schema,
        ) as engine:
            if engine.is_new and not create:
                raise StoreUnavailable(
                    "There is no database file at this address yet: store something with `memoranda write`, or name "
                    "the store with --url or MEMORANDA_URL."
                )
            yield engine

    @contextmanager
    def opened(self, *, create: bool = False) -> "Iterator[Persona]":
        """Open the persona for a command; see `engine`."""
        with self.engine(create=create) as engine:
            yield engine.persona(self.persona, tenant=self.tenant, user=self.user)


def address(url: str | None, *, in_memory: bool = False) -> str | None:
    """Return an address as it was given.

    Args:
        url: The address, or None for the default file.
        in_memory: Whether a store that ends with the command is of use to it.

    Raises:
        ConfigurationError: it is a file's name and no address, of no database that is supported, or in memory.
    """
    if url is None:
        return None
    if "://" not in url and url != ":memory:":
        # Anything but the name of a database file may be a password that was typed in the wrong place.
        file = url if Path(url).suffix in _SUFFIXES and not {"@", ":"} & set(url) else "FILE"
        raise ConfigurationError(f"the address of a file begins with sqlite:///: write sqlite:///{file}")
    if not in_memory and _is_in_memory(url):
        raise ConfigurationError(
            "a store in memory ends with the command, and what is written with it: write sqlite:///FILE"
        )
    return url


def _is_in_memory(url: str) -> bool:
    from memoranda.db import dialects

    return url == ":memory:" or dialects.in_memory(dialects.parse_url(url))


def store(
    url: Annotated[
        str | None,
        typer.Option(
            envvar="MEMORANDA_URL",
            metavar="URL",
            help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; memoranda.db in this folder if left out.",
            rich_help_panel=_STORE,
        ),
    ] = None,
    persona: Annotated[
        str,
        typer.Option(
            envvar="MEMORANDA_PERSONA",
            metavar="NAME",
            help="Which memory: one persona never sees another's.",
            rich_help_panel=_STORE,
        ),
    ] = "main",
    user: Annotated[
        str | None,
        typer.Option(
            envvar="MEMORANDA_USER",
            metavar="NAME",
            help="Who asks; recorded as the author of what is written.",
            rich_help_panel=_STORE,
        ),
    ] = None,
    tenant: Annotated[
        str,
        typer.Option(
            envvar="MEMORANDA_TENANT",
            metavar="NAME",
            help="Which customer's or team's data.",
            rich_help_panel=_STORE,
        ),
    ] = "",
    preset: Annotated[
        str,
        typer.Option(metavar="NAME", help="standard, journal, ledger or statements.", rich_help_panel=_STORE),
    ] = "standard",
    embedder: Embedder = None,
    schema: Schema = "memoranda",
    timezone: Annotated[
        str,
        typer.Option(
            envvar="MEMORANDA_TIMEZONE",
            metavar="ZONE",
            help="Yours, such as Europe/Lisbon: it decides the day of a memory and reads a time without an offset.",
            rich_help_panel=_STORE,
        ),
    ] = "UTC",
    as_json: Json = False,
) -> Store:
    """Return the store that the options name."""
    return Store(
        url=address(url),
        persona=persona,
        user=user,
        tenant=tenant,
        preset=preset,
        embedder=embedder,
        schema=schema,
        timezone=timezone,
        as_json=as_json,
    )


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
        metadata=None if metadata is None else _object(metadata),
        source={k: v for k, v in dict(type=source, channel=channel, excerpt=excerpt).items() if v is not None} or None,
    )
    return {name: value for name, value in given.items() if value is not None}


def _object(text: str) -> dict[str, Any]:
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


def command(*groups: Callable[..., Any]) -> Callable[[Callable[..., int]], Command]:
    """Give a command the options of groups; it is called with what they return before its own arguments."""

    def decorate(fn: Callable[..., int]) -> Command:
        own = list(inspect.signature(fn).parameters.values())[len(groups) :]
        parts = [list(inspect.signature(group).parameters.values()) for group in groups]
        # The command's own options stand first in its help, those that all commands have last.
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for part in (own, *reversed(parts))
            for parameter in part
        ]

        @wraps(fn)
        def run(**given: Any) -> int:
            built = [
                group(**{parameter.name: given.pop(parameter.name) for parameter in part})
                for group, part in zip(groups, parts, strict=True)
            ]
            return fn(*built, **given)

        # Typer joins the lines of a paragraph unless it begins with this character.
        run.__doc__ = inspect.cleandoc(fn.__doc__ or "").replace("\n\nExamples:", "\n\n\b\nExamples:")
        run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": int}
        return run

    return decorate
