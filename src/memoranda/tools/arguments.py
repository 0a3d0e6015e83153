"""What an agent's tools take: one pydantic model a tool, strict about names and lenient about what is left empty."""

from collections.abc import Mapping
from datetime import date as Date
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema

from memoranda.errors import InvalidInput
from memoranda.redaction import redact
from memoranda.rendering import one_line
from memoranda.user_model import RECOMMENDED

RECALL_LIMIT = 50
"""The most hits a tool returns."""

_NAMES = 60  # characters of an argument's name that a complaint repeats


def _plain(schema: dict[str, Any]) -> None:
    """Take out of a schema what only costs tokens: titles, the docstring, defaults of nothing."""
    for name in ("title", "description"):
        schema.pop(name, None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
        if not field.get("default", True):
            del field["default"]


class Arguments(BaseModel):
    """What a tool takes: nothing else is accepted, and what is null or an empty string counts as left out."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_plain)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value is not None and value != ""}


# A model that leaves something out may write null, but is not told so: several servers know no unions.
_None: TypeAlias = SkipJsonSchema[None]
_Scale = Annotated[int, Field(ge=1, le=10)]
_Limit = Annotated[int, Field(ge=1, le=RECALL_LIMIT)]
_Category = Annotated[str, Field(max_length=200)]
_SHOWN = "One id, as recall shows it in brackets."
_NAMED = "The document's name: it is cited by it, and replaced under it."


class MemoryArguments(Arguments):
    """The arguments of `memory`."""

    action: Literal["write", "delete"]
    content: Annotated[str | _None, Field(description="To write: one fact, with names and absolute dates.")] = None
    category: Annotated[_Category | _None, Field(description="To write: a word such as project or travel.")] = None
    importance: Annotated[_Scale | _None, Field(description="To write: 1 to 10, 5 if left out.")] = None
    day: Annotated[Date | _None, Field(description="To write: the day it belongs to, today if left out.")] = None
    id: Annotated[str | _None, Field(description=f"To delete: {_SHOWN[0].lower()}{_SHOWN[1:]}")] = None

    @model_validator(mode="after")
    def _complete(self) -> "MemoryArguments":
        if self.action == "delete":
            if self.id is None:
                raise ValueError("id is missing: recall the memory first, its id stands in brackets")
        elif self.content is None:
            raise ValueError("content is missing: say what to remember")
        elif self.id is not None:
            raise ValueError("a write stores a new memory and takes no id: leave it out, or delete the old one first")
        return self


class RecallArguments(Arguments):
    """The arguments of `recall`."""

    query: Annotated[str, Field(description="The question, in plain words.")] = ""
    limit: Annotated[_Limit | _None, Field(description="How many results at most.")] = None
    date: Annotated[Date | _None, Field(description="Only this day (YYYY-MM-DD); without a query, all of it.")] = None

    @model_validator(mode="after")
    def _complete(self) -> "RecallArguments":
        if not self.query and self.date is None:
            raise ValueError("give a query, a date, or both")
        return self


class UserModelArguments(Arguments):
    """The arguments of `user_model_write`."""

    dimension: Annotated[str, Field(description=f"Recommended: {', '.join(RECOMMENDED)}; others are accepted.")]
    content: Annotated[str, Field(description="All that is known under this name, at most 2,000 characters.")]
    confidence: Annotated[_Scale | _None, Field(description="1 to 10, higher is surer.")] = None


class TextArguments(Arguments):
    """The arguments of `knowledge_ingest` where no file may be read."""

    source: Annotated[str, Field(description=_NAMED)]
    text: Annotated[str, Field(description="The text of the document.")]


class FileArguments(Arguments):
    """The arguments of `knowledge_ingest` where the program has named a folder."""

    source: Annotated[str, Field(description=_NAMED)]
    path: Annotated[
        str | _None, Field(description="A file or folder of the workspace: text, Markdown, HTML or PDF.")
    ] = None
    text: Annotated[str | _None, Field(description="The text itself, instead of a path.")] = None

    @model_validator(mode="after")
    def _complete(self) -> "FileArguments":
        if (self.path is None) == (self.text is None):
            raise ValueError("give either a path or a text")
        return self


class SearchArguments(Arguments):
    """The arguments of `knowledge_search`."""

    query: Annotated[str, Field(description="What to look for, in plain words.")]
    limit: Annotated[_Limit | _None, Field(description="How many results at most.")] = None


class RememberArguments(Arguments):
    """The arguments of `remember`."""

    text: Annotated[str, Field(description="One self-contained statement, with names and absolute dates.")]
    about: Annotated[
        str | _None,
        Field(description="person:NAME, agent:NAME, thread:NAME or everyone; whoever is present if left out."),
    ] = None
    core: Annotated[bool | _None, Field(description="Whether it must always be in mind, whatever the topic.")] = None
    id: Annotated[str | _None, Field(description="The id of a memory that this corrects.")] = None


class ForgetArguments(Arguments):
    """The arguments of `forget`."""

    id: Annotated[str, Field(description=_SHOWN)]


def complaint(error: ValidationError) -> InvalidInput:
    """Return what is wrong with arguments, in words, without what was given."""
    told: dict[str, None] = {}
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        name = redact(one_line(str(item["loc"][0]))[:_NAMES]) if item["loc"] else ""
        message = item["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        match item["type"]:
            case "none_required":  # the other half of an argument that may be left out
                continue
            case "missing":
                told[f"{name} is missing"] = None
            case "extra_forbidden":
                told[f"{name} is no argument of this tool"] = None
            case _:
                told[f"{name}: {message}" if name else message] = None
    return InvalidInput("; ".join(told))
