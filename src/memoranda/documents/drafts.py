"""From a document as it was read to what is stored of it: redacted, cut into chunks, each with its index terms.

Secrets are taken out before the text is cut, so that no cut hides half of one. Pure, as `memoranda.drafts` is.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from memoranda import metadata as codec
from memoranda.documents import LARGEST_TEXT, Document
from memoranda.documents.chunking import normalise, split
from memoranda.documents.html_text import read_html
from memoranda.drafts import Owner, Setting, chunk_terms, embedded_chunk, hidden, owner_of
from memoranda.errors import InvalidInput
from memoranda.fields import Label, validated
from memoranda.ids import new_id
from memoranda.policies import Policies
from memoranda.records import Audience
from memoranda.redaction import redact_value
from memoranda.scope import project_key
from memoranda.text import TERMS_VERSION, clean

SOURCE_LIMIT = 500
"""Characters of a document's name, which may have twice as many bytes: it stands in an index beside three others."""
CUT_VERSION = 1
"""Raised when the same text is cut another way: documents are then taken in again though they have not changed."""

_BETWEEN = "\n\n"


@with_config(ConfigDict(extra="forbid"))
class DocumentFields(TypedDict, total=False):
    """What a document may carry beside its text.

    `metadata` goes to every chunk, beside what the file says of itself. `audience` is `private` or, with a `project`,
    `project`: whose members find the document then. `media_type` says what `text`, or the text of `documents`, is
    written in; a file shows it.
    """

    metadata: dict[Any, Any]
    audience: Audience
    project: Label | None
    media_type: Literal["text/plain", "text/markdown", "text/html"]


_FIELDS: TypeAdapter[DocumentFields] = TypeAdapter(DocumentFields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a document that has metadata of its own, such as a page."""

    text: str = field(repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # it holds the text
class DocumentDraft:
    """A document as it is about to be stored."""

    owner: Owner
    source: str
    media_type: str
    metadata: Mapping[str, Any]
    parts: tuple[Part, ...]
    """Without their secrets, none of them empty."""
    digest: str
    """Of everything its chunks depend on."""

    @property
    def text(self) -> str:
        """The text that is cut."""
        return _BETWEEN.join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChunkDraft:
    """A chunk as it is about to be stored, with its index terms."""

    id: UUID
    chunk_index: int
    content: str
    overlap: int
    start: int
    headings: tuple[str, ...]
    metadata: Mapping[str, Any]
    category_terms: str
    content_terms: str
    length: int

    @property
    def text(self) -> str:
        """What is embedded."""
        return embedded_chunk(self.content, self.headings)


# -- what a caller gives


def check(fields: Mapping[str, Any]) -> DocumentFields:
    """Return the parsed fields of a document.

    Raises:
        InvalidInput: one is unknown, of the wrong kind or out of range; names it.
    """
    return validated(_FIELDS, fields, "a document")


def check_source(source: object, policies: Policies) -> str:
    """Return a document's name as it is stored.

    Raises:
        InvalidInput: it is no name, too long, or looks like a secret.
    """
    if not isinstance(source, str) or not source.strip():
        raise InvalidInput("source must be a name that is not empty", field="source")
    if len(source) > SOURCE_LIMIT or len(source.encode("utf-8", "replace")) > 2 * SOURCE_LIMIT:
        raise InvalidInput(f"source must have at most {SOURCE_LIMIT} characters", field="source")
    if clean(source) != source or any(ord(c) < 32 for c in source) or len(source.splitlines()) > 1:
        raise InvalidInput("source must not contain line breaks or other control characters", field="source")
    if hidden(source, policies) != source:
        raise InvalidInput("source looks like a secret: give the document a name", field="source")
    return source


def of_text(text: object, media_type: str) -> Document:
    """Return a text as a document without a name.

    Raises:
        InvalidInput: it is no text, empty or too long.
    """
    if not isinstance(text, str):
        raise InvalidInput("text must be a string", field="text")
    if len(text) > LARGEST_TEXT:
        raise InvalidInput(f"text has more than {LARGEST_TEXT:,} characters", field="text")
    metadata: dict[str, str | int] = {}
    if media_type == "text/html":
        page = read_html(text)
        text = page.text
        metadata = {name: value for name, value in (("title", page.title), ("language", page.language)) if value}
    return Document(source="", text=normalise(text), media_type=media_type, metadata=metadata)


def parts_of(document: Document) -> list[Part]:
    """Return the pages of a document, or the whole of it."""
    if not document.pages:
        return [Part(text=document.text)]
    ends = (*(start for start, _ in document.pages[1:]), len(document.text))
    return [
        Part(text=document.text[start:end], metadata={"page": number})
        for (start, number), end in zip(document.pages, ends, strict=True)
    ]


def of_documents(documents: Iterable[Any], media_type: str) -> list[Part]:
    """Return the texts and metadata of a framework's documents, in order.

    Raises:
        InvalidInput: one has no text to read, or metadata that cannot be stored; names it.
    """
    if isinstance(documents, str | bytes | Mapping) or any(hasattr(documents, name) for name in _TEXTS):
        raise InvalidInput("documents is a list of documents; for one text give `text`", field="documents")
    if not isinstance(documents, Iterable):
        raise InvalidInput("documents must be a list of documents", field="documents")
    parts, length = [], 0
    for index, item in enumerate(documents):
        text = next((text for name in _TEXTS if isinstance(text := getattr(item, name, None), str)), None)
        if text is None:
            raise InvalidInput("a document has `page_content` or `text`", field="documents", index=index)
        length += len(text)
        if length > LARGEST_TEXT:
            raise InvalidInput(f"documents have more than {LARGEST_TEXT:,} characters", field="documents")
        read = of_text(text, media_type)
        own = {**read.metadata, **(getattr(item, "metadata", None) or {})}
        try:
            parts.append(Part(text=read.text, metadata=codec.decode(codec.encode(own))))
        except InvalidInput as error:
            raise InvalidInput(str(error), field=error.field, index=index) from None
    return parts


_TEXTS = ("page_content", "text")


# -- what is stored


def draft(
    source: str,
    parts: Sequence[Part],
    media_type: str,
    own: Mapping[str, Any],
    fields: DocumentFields,
    setting: Setting,
) -> DocumentDraft:
    """Complete a document whose fields are checked.

    Args:
        source: The checked name.
        parts: In order, their texts normalised.
        media_type: What it was written in.
        own: What the document says of itself; `fields` overrule it.
        fields: The parsed fields.
        setting: Scope, policies, tokenizer and the present moment.

    Raises:
        InvalidInput: there is no text, or fields contradict each other.
    """
    policies = setting.policies
    owner = owner_of(fields.get("project"), fields.get("audience"), "semantic", setting)
    redacted = _redacted(parts, policies)
    if not redacted:
        raise InvalidInput("there is no text in it", field="text")
    metadata = {**_common(redacted), **own, **fields.get("metadata", {})}
    if policies.redaction.enabled:
        metadata = redact_value(metadata)
    return DocumentDraft(
        owner=owner,
        source=source,
        media_type=media_type,
        metadata=metadata,
        parts=tuple(redacted),
        digest=_digest(owner, media_type, metadata, redacted, setting),
    )


def _redacted(parts: Sequence[Part], policies: Policies) -> list[Part]:
    """Return the parts that have text, without secrets; where one goes over a border the two parts become one."""

    def safe(text: str) -> str:
        return normalise(hidden(text, policies))

    found = [
        Part(text=text, metadata=redact_value(part.metadata) if policies.redaction.enabled else part.metadata)
        for part in parts
        if (text := safe(part.text))
    ]
    if len(found) < 2 or safe(whole := _BETWEEN.join(part.text for part in found)) == whole:
        return found
    merged = found[:1]
    for part in found[1:]:
        both = f"{merged[-1].text}{_BETWEEN}{part.text}"
        if safe(both) == both:
            merged.append(part)
        else:
            merged[-1] = Part(text=safe(both), metadata=merged[-1].metadata)
    whole = _BETWEEN.join(part.text for part in merged)
    return merged if safe(whole) == whole else [Part(text=safe(whole), metadata=merged[0].metadata)]


def _common(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the metadata that all parts agree on."""
    first, *others = (codec.encode(dict(part.metadata)) for part in parts)
    return {
        name: parts[0].metadata[name]
        for name, value in first.items()
        if all(name in other and same(other[name], value) for other in others)
    }


def same(one: object, other: object) -> bool:
    """Whether two values of metadata, as they are stored, are one: 1 is neither 1.0 nor True."""
    return _json(one) == _json(other)


def _digest(owner: Owner, media_type: str, metadata: Mapping[str, Any], parts: Sequence[Part], setting: Setting) -> str:
    chunking = setting.policies.chunking
    everything = [
        [CUT_VERSION, TERMS_VERSION, setting.tokenizer.language, chunking.size, chunking.overlap],
        [owner.audience, project_key(owner.project), media_type, codec.encode(dict(metadata))],
        [[part.text, codec.encode(dict(part.metadata))] for part in parts],
    ]
    return sha256(_json(everything).encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def cut(document: DocumentDraft, setting: Setting) -> list[ChunkDraft]:
    """Return the chunks of a document in order, from 0; each has the metadata of the part in which it begins."""
    starts = [0]
    for before, _ in pairwise(document.parts):
        starts.append(starts[-1] + len(before.text) + len(_BETWEEN))
    chunks = []
    for chunk in split(document.text, setting.policies.chunking):
        part = document.parts[bisect_right(starts, chunk.start) - 1]
        category, content, length = chunk_terms(document.source, chunk.text, chunk.headings, setting.tokenizer)
        chunks.append(
            ChunkDraft(
                id=new_id(),
                chunk_index=chunk.index,
                content=chunk.text,
                overlap=len(chunk.overlap),
                start=chunk.start,
                headings=chunk.headings,
                metadata={**part.metadata, **document.metadata},
                category_terms=category,
                content_terms=content,
                length=length,
            )
        )
    return chunks
