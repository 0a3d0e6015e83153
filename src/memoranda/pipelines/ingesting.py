"""How documents are taken in: read, redacted, cut, embedded in one call, and stored in one transaction a document."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from memoranda import metadata as codec
from memoranda.db.queries import knowledge
from memoranda.documents import READ, drafts, located, read_document, walk
from memoranda.documents.drafts import DocumentFields, Part
from memoranda.effects import Steps, compute, read, wake, write
from memoranda.errors import ExtraMissing, InvalidInput, UnreadableDocument
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.policies import DedupePolicy
from memoranda.protocols import Progress
from memoranda.records import KnowledgeChunk, KnowledgeDocument
from memoranda.reports import Ingested

if TYPE_CHECKING:
    from memoranda.effects import MaybeVectors

_Path: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # it holds the text
class _Read:
    """A document as it was read."""

    parts: Sequence[Part]
    media_type: str
    metadata: Mapping[str, Any]


def ingest(
    context: Context,
    source: str,
    path: _Path | None,
    text: str | None,
    documents: Iterable[Any] | None,
    root: _Path | None,
    progress: Progress | None,
    fields: Mapping[str, Any],
) -> Steps[list[Ingested]]:
    """Take in a text, documents of a framework, a file, or every file of a folder."""
    policies = context.writing().policies
    name, parsed = drafts.check_source(source, policies), drafts.check(fields)
    if sum(given is not None for given in (path, text, documents)) != 1:
        raise InvalidInput("give one of path, text and documents")
    if path is None:
        if root is not None:
            raise InvalidInput("root goes with path", field="root")
        given = yield from compute(_read, text, documents, parsed.get("media_type", "text/plain"))
    else:
        top = _checked_places(path, root, parsed)
        real = yield from compute(located, path, top)
        if (yield from compute(real.is_dir)):
            return (yield from _folder(context, name, real, parsed, progress))
        given = yield from compute(_read_file, path, top)
    answer = yield from _taken_in(context, name, given, parsed)
    if progress is not None:
        progress(1, 1)
    return [answer]


def _checked_places(path: _Path, root: _Path | None, fields: DocumentFields) -> _Path:
    """Return the folder that a path must lie in."""
    if "media_type" in fields:
        raise InvalidInput("media_type goes with text and documents: a file shows its own", field="media_type")
    for field, place in (("path", path), ("root", root)):
        if place is not None and not (isinstance(place, str | os.PathLike) and os.fspath(place)):
            raise InvalidInput(f"{field} must name a file or a folder", field=field)
    return "." if root is None else root


def _folder(
    context: Context, name: str, folder: Path, fields: DocumentFields, progress: Progress | None
) -> Steps[list[Ingested]]:
    """Take in the files of a folder one by one; what cannot be read is told and left out."""
    found = yield from compute(walk, folder)
    if not found.files:
        raise UnreadableDocument(f"{folder.name!r} holds no file that is read: {READ} are.", field="path")
    answers = [_left_out(f"{name}/{skipped.source}", skipped.reason) for skipped in found.skipped]
    for done, file in enumerate(found, 1):
        inside = file.relative_to(folder).as_posix()
        source = f"{name}/{inside}"
        try:
            drafts.check_source(source, context.policies)
            given = yield from compute(_read_file, file, folder)
        except (InvalidInput, ExtraMissing) as error:
            answers.append(_left_out(source, str(error).removeprefix(f"{inside!r} ").removesuffix(".")))
        else:
            answers.append((yield from _taken_in(context, source, given, fields)))
        if progress is not None:
            progress(done, len(found))
    return sorted(answers, key=lambda answer: answer.source.split("/"))


def _left_out(source: str, reason: str) -> Ingested:
    return Ingested(source=source, chunks=0, embedded=False, problem=reason)


def _read(text: object, documents: Iterable[Any] | None, media_type: str) -> _Read:
    if documents is not None:
        return _Read(parts=drafts.of_documents(documents, media_type), media_type=media_type, metadata={})
    document = drafts.of_text(text, media_type)
    return _Read(parts=drafts.parts_of(document), media_type=media_type, metadata=document.metadata)


def _read_file(path: _Path, root: _Path) -> _Read:
    document = read_document(path, root)
    return _Read(parts=drafts.parts_of(document), media_type=document.media_type, metadata=document.metadata)


def _taken_in(context: Context, source: str, given: _Read, fields: DocumentFields) -> Steps[Ingested]:
    """Store one document in place of the one before, unless that says just the same."""
    setting = context.writing()
    document = yield from compute(drafts.draft, source, given.parts, given.media_type, given.metadata, fields, setting)
    yield from opened(context)
    model = context.space.model
    standing = yield from read(knowledge.standing, setting, document, model)
    if standing is not None and standing.digest == document.digest:
        return _unchanged(source, standing, model)
    chunks = yield from compute(drafts.cut, document, setting)
    vectors, degraded = yield from embedded_at_once(context, [chunk.text for chunk in chunks])
    stored = yield from write(knowledge.replace, document, chunks, vectors, model, setting)
    if stored.unchanged is not None:
        return _unchanged(source, stored.unchanged, model)
    if degraded is not None and context.leaves_jobs and model is not None:
        yield from wake(context.scope.whose)
    embedded = all(vector is not None for vector in vectors)
    return Ingested(source=source, chunks=len(chunks), embedded=embedded, replaced=stored.replaced, degraded=degraded)


def _unchanged(source: str, standing: knowledge.Standing, model: str | None) -> Ingested:
    missing = model is not None and not standing.embedded
    return Ingested(
        source=source,
        chunks=standing.chunks,
        embedded=standing.embedded,
        unchanged=True,
        degraded="its vectors are still to come: `backfill` leaves a job for those that no job is at"
        if missing
        else None,
    )


def embedded_at_once(context: Context, texts: Sequence[str]) -> "Steps[tuple[MaybeVectors, str | None]]":
    """Embed the chunks of a document in one call; nothing is compared with them, so nobody is kept waiting."""
    policies = replace(context.policies, dedupe=DedupePolicy(name="key"))
    return (yield from vectors_of(replace(context, policies=policies), texts, "text"))


def listed(context: Context, metadata: Mapping[str, Any] | None) -> Steps[list[KnowledgeDocument]]:
    """Return the documents that the scope sees."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput("metadata must be a mapping of names to values", field="metadata")
    wanted = codec.encode(dict(metadata or {}))
    found = yield from read(knowledge.listed, context.setting())
    return [document for document in found if _has(document.metadata, wanted)]


def _has(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    said = codec.encode(dict(metadata))
    return all(name in said and drafts.same(said[name], value) for name, value in wanted.items())


def get(context: Context, source: str) -> Steps[list[KnowledgeChunk]]:
    """Return the chunks of a document."""
    return (yield from read(knowledge.chunks, context.setting(), drafts.check_source(source, context.policies)))


def delete(context: Context, source: str) -> Steps[int]:
    """Remove a document of the author's."""
    setting = context.writing()
    return (yield from write(knowledge.remove, setting, drafts.check_source(source, context.policies)))
