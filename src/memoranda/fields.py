"""What a caller may say of a memory, and how it is checked: what cannot be is told at the call, by its name."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from memoranda import metadata
from memoranda.errors import InvalidInput
from memoranda.moments import Day, Moment
from memoranda.policies import MemoryType
from memoranda.records import Audience, SourceType
from memoranda.redaction import redact
from memoranda.scope import check_project
from memoranda.text import clean

F = TypeVar("F")

CONTENT_LIMIT = 10_000_000
"""The most characters a memory may have; recall reads the first 16,000 words of it."""

_ABOUT = re.compile(r"everyone|(person|agent|thread):\S.*")


def _check_about(value: str) -> str:
    if not _ABOUT.fullmatch(value):
        raise ValueError("write everyone, person:NAME, agent:NAME or thread:NAME")
    return value


Scale = Annotated[int, Field(ge=1, le=10, strict=True)]
Label = Annotated[str, Field(max_length=200)]


@with_config(ConfigDict(extra="forbid"))
class SourceFields(TypedDict, total=False):
    """Where a memory came from."""

    type: SourceType
    session: Label
    channel: Label
    actor: Label
    excerpt: Annotated[str, Field(max_length=100_000)]


@with_config(ConfigDict(extra="forbid"))
class MemoryFields(TypedDict, total=False):
    """What a memory may carry beside its text; the records' `Memory` says what each field means.

    Moments may be datetimes or ISO strings; one without an offset is read in the engine's time zone.
    """

    type: MemoryType
    category: Label | None
    title: Annotated[str, Field(max_length=1000)] | None
    importance: Scale
    confidence: Scale
    core: Annotated[bool, Field(strict=True)]
    day: Day | None
    event_time: Moment | None
    valid_from: Moment | None
    valid_to: Moment | None
    about: Annotated[str, Field(max_length=210), AfterValidator(_check_about)] | None
    audience: Audience
    project: Label | None
    session: Label | None
    position: Annotated[int, Field(ge=0, lt=2**31, strict=True)] | None
    metadata: dict[Any, Any]
    source: SourceFields


_FIELDS: TypeAdapter[MemoryFields] = TypeAdapter(MemoryFields)


def check(content: object, fields: Mapping[str, Any], *, index: int | None = None) -> tuple[str, MemoryFields]:
    """Return the cleaned text and the parsed fields of one memory.

    Raises:
        InvalidInput: something is missing, of the wrong kind or out of range; names the field, and the row of a batch.
    """
    if not isinstance(content, str):
        raise InvalidInput("content must be a string", field="content", index=index)
    text = clean(content)
    if not text.strip():
        raise InvalidInput("content must not be empty", field="content", index=index)
    if len(text) > CONTENT_LIMIT:
        raise InvalidInput(
            f"content has {len(text):,} characters, more than {CONTENT_LIMIT:,}: a memory is one statement",
            field="content",
            index=index,
        )
    if not fields:
        return text, {}
    return text, validated(_FIELDS, fields, "a memory", index=index)


def validated(fields_of: TypeAdapter[F], fields: Mapping[str, Any], noun: str, *, index: int | None = None) -> F:
    """Return the parsed fields of something, their strings and metadata as they come back from the database.

    Raises:
        InvalidInput: one is unknown, of the wrong kind or out of range; names it, and the row of a batch.
    """
    try:
        given = {name: value if name == "metadata" else _cleaned(value) for name, value in fields.items()}
        parsed = cast("dict[str, Any]", fields_of.validate_python(given))
        if "metadata" in parsed:
            # What is kept is what comes back from the database: cleaned, and independent of the caller's mapping.
            parsed["metadata"] = metadata.decode(metadata.encode(parsed["metadata"]))
        if parsed.get("project"):
            check_project(parsed["project"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "fields"
        message = (
            f"is not a field of {noun}"
            if first["type"] == "extra_forbidden"
            else first["msg"].removeprefix("Value error, ")
        )
        raise InvalidInput(redact(f"{name}: {message}"), field=redact(name), index=index) from None
    except InvalidInput as error:
        raise InvalidInput(redact(str(error)), field=error.field, index=index) from None
    return cast(F, parsed)


def _cleaned(value: Any) -> Any:
    """Clean the strings of the plain fields and of the source; metadata has a cleaner of its own."""
    if isinstance(value, str):
        return clean(value)
    return {k: _cleaned(v) for k, v in value.items()} if type(value) is dict else value
