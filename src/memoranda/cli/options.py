"""The options that many commands share, each stated once, and how a command gets what they add up to.

A group is a function whose parameters are options and whose result is what they mean together. `command(group, ...)`
gives a function those options and calls it with the results first.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.errors import ConfigurationError, StoreUnavailable

if TYPE_CHECKING:
    from memoranda.engine import MemoryEngine
    from memoranda.jobs import BackgroundMode
    from memoranda.persona import Persona
    from memoranda.protocols import LanguageModel

Command = Callable[..., int]
"""A command returns its exit code."""

_STORE = "Store"
_SUFFIXES = (".db", ".sqlite", ".sqlite3")

Url = Annotated[
    str | None,
    typer.Option(
        envvar="MEMORANDA_URL",
        metavar="URL",
        help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; memoranda.db in this folder if left out.",
        rich_help_panel=_STORE,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Embedder = Annotated[
    str | None,
    typer.Option(
        envvar="MEMORANDA_EMBEDDER",
        metavar="NAME",
        help="auto, hash/words, wordllama, none, openai/MODEL or openai/MODEL@DIMENSIONS, which ask OPENAI_BASE_URL "
        "with OPENAI_API_KEY; left out, what the store was made with.",
        rich_help_panel=_STORE,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="The language model: openai/MODEL, ollama/MODEL, command or none; what MEMORANDA_LLM_BACKEND and its "
        "companions name if left out.",
        rich_help_panel=_STORE,
        show_default=False,
    ),
]
Schema = Annotated[
    str, typer.Option(metavar="NAME", help="Postgres: the schema the tables live in.", rich_help_panel=_STORE)
]
Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="What to remember; - reads JSON from standard input.", show_default=False)
]
Words = Annotated[list[str], typer.Argument(metavar="TEXT...", help="In any words.", show_default=False)]
Project = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="This project's memories, and those without a project.", show_default=False),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="A memory's id or short id.", show_default=False)]
IdOrInput = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A memory's id or short id; - reads JSON from standard input.", show_default=False
    ),
]


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
    def engine(
        self,
        *,
        create: bool = False,
        background: "BackgroundMode" = "inline",
        model: "str | LanguageModel | None" = None,
    ) -> "Iterator[MemoryEngine]":
        """Open the engine for a command.

        Args:
            create: Whether a SQLite file may be made. Where nothing is to be written, a mistyped path must not become
                an empty store that answers "nothing found".
            background: Who does what a verb leaves to be done; see `MemoryEngine`.
            model: The language model; see `MemoryEngine`.

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
            background=background,
            model=model,
        ) as engine:
            if engine.is_new and not create:
                raise StoreUnavailable(
                    "There is no database file at this address yet: store something with `memoranda write`, or name "
                    "the store with --url or MEMORANDA_URL."
                )
            yield engine

    @contextmanager
    def opened(
        self,
        axes: Mapping[str, Any] | None = None,
        *,
        create: bool = False,
        model: "str | LanguageModel | None" = None,
    ) -> "Iterator[Persona]":
        """Open the persona for a command, inside the axes that `scope` returns; see `engine` for the others."""
        with self.engine(create=create, model=model) as engine:
            yield engine.persona(self.persona, tenant=self.tenant, user=self.user).scoped(**axes or {})


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
    url: Url = None,
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


def whole_store(
    url: Url = None, embedder: Embedder = None, schema: Schema = "memoranda", as_json: Json = False
) -> Store:
    """Return the store that the options name, for a command that asks for nobody in particular."""
    return store(url=url, embedder=embedder, schema=schema, as_json=as_json)


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
