"""What narrows a recall or a list beyond the scope."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Annotated, Any, NamedTuple, Self, get_args

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from memoranda.errors import InvalidInput
from memoranda.moments import Day, Moment, read_moment
from memoranda.policies import MemoryType
from memoranda.records import Memory, RecallKind
from memoranda.scope import check_project, project_key
from memoranda.text import clean


def _many(value: object) -> object:
    """Take one word for a list of one."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else value


@with_config(ConfigDict(extra="forbid"))
class FilterFields(TypedDict, total=False):
    """How a recall or a list is narrowed.

    `date` keeps one day of the user's. `types` and `categories` keep what is listed. `project` keeps the project's rows
    and those without one. `as_of` asks for what held at a moment, the superseded included; a moment without an offset
    is read in the engine's time zone. `include_inactive` adds whatever is superseded, expired or deleted.
    """

    date: Day | None
    types: Annotated[tuple[MemoryType, ...] | None, BeforeValidator(_many)]
    categories: Annotated[tuple[str, ...] | None, BeforeValidator(_many)]
    project: str | None
    as_of: Moment | None
    include_inactive: bool


@with_config(ConfigDict(extra="forbid"))
class RecallFields(FilterFields, total=False):
    """How a recall is narrowed: as `FilterFields` say, and by `sources`, which keeps the documents of these names.

    A kind that has nothing a filter could look at is not asked: memories have no source; knowledge has no date, type,
    category or past.
    """

    sources: Annotated[tuple[str, ...] | None, BeforeValidator(_many)]


_FIELDS: TypeAdapter[FilterFields] = TypeAdapter(FilterFields)
_RECALL_FIELDS: TypeAdapter[RecallFields] = TypeAdapter(RecallFields)


class Place(NamedTuple):
    """What two memories have in common when one may repeat or replace the other."""

    author: str
    audience: str
    project: str
    space: str
    about: str

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return where a memory stands."""
        return cls(memory.author, memory.audience, project_key(memory.project), memory.space, memory.about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The checked form of `FilterFields`."""

    day: date | None = None
    types: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    project: str | None = None
    as_of: datetime | None = None
    include_inactive: bool = False
    pages: bool = True
    """Whether overview pages count: rows whose metadata says `kind: page`."""
    core: bool | None = None
    """Whether the row is always in mind; None for either."""
    place: Place | None = None
    """Where the row must stand; None for anywhere the scope sees."""


KINDS: tuple[RecallKind, ...] = ("memory", "knowledge")
"""What a recall asks."""


def asked(kinds: Iterable[str] | None, filters: Filters) -> list[RecallKind]:
    """Return what a recall asks: what the caller named, without what has nothing that a filter could look at.

    Raises:
        InvalidInput: a kind is unknown, or no kind is left.
    """
    named = KINDS if kinds is None else (kinds,) if isinstance(kinds, str) else kinds
    wanted = list(named) if isinstance(named, Iterable) else []
    if not wanted or any(kind not in KINDS for kind in wanted):
        raise InvalidInput(f"kinds must be some of {', '.join(KINDS)}", field="kinds")
    named_filters: dict[str, dict[str, Any]] = {
        "knowledge": {"sources": filters.sources},
        "memory": {
            "date": filters.day,
            "types": filters.types,
            "categories": filters.categories,
            "as_of": filters.as_of,
        },
    }
    given = {kind: [name for name, value in own.items() if value] for kind, own in named_filters.items()}
    chosen = [kind for kind in KINDS if kind in wanted and not any(given[other] for other in KINDS if other != kind)]
    if not chosen:
        names = [name for found in given.values() for name in found]
        raise InvalidInput(f"{' and '.join(names)}: nothing that is asked has it", field=names[0])
    return chosen


def check(fields: Mapping[str, Any], zone: tzinfo, *, project: str | None = None, recall: bool = False) -> Filters:
    """Return the filters a caller gave, of a recall or of a list; the scope's own project is the default.

    Raises:
        InvalidInput: a filter is unknown or of the wrong kind, or cannot name a project.
    """
    try:
        given = {k: v for k, v in fields.items() if v is not None}
        adapter: TypeAdapter[Any] = _RECALL_FIELDS if recall else _FIELDS
        parsed: RecallFields = adapter.validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "filters"
        message = (
            "is not a filter" if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
        )
        if name == "types":
            message = f"choose among {', '.join(get_args(MemoryType))}"
        raise InvalidInput(f"{name}: {message}", field=name) from None
    if parsed.get("as_of") is not None and parsed.get("include_inactive"):
        raise InvalidInput("as_of and include_inactive exclude each other: as_of sees what held then", field="as_of")
    if parsed.get("project") is not None:
        project = clean(parsed["project"] or "")
        if project:
            check_project(project)
    return Filters(
        day=parsed.get("date"),
        types=parsed.get("types") or (),
        categories=tuple(map(clean, parsed.get("categories") or ())),
        sources=tuple(map(clean, parsed.get("sources") or ())),
        project=project,
        as_of=read_moment(parsed.get("as_of"), zone, "as_of"),
        include_inactive=parsed.get("include_inactive", False),
    )
