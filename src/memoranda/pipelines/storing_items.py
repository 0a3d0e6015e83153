"""How operations on items are done: texts embedded first, then what reads, then what writes, in one transaction.

Values are kept as they are given. What they are found by is kept without secrets, and so is what an embedder is sent.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import Connection

from memoranda import namespaces
from memoranda.db.queries import item_search, item_writing, items
from memoranda.db.queries.item_search import ItemQuestion
from memoranda.db.queries.item_writing import ItemDraft, Making, TextDraft
from memoranda.db.queries.items import Name
from memoranda.db.queries.vectors import GIVEN
from memoranda.db.schema import Tables
from memoranda.drafts import Setting, hidden
from memoranda.effects import Steps, compute, embed, read, wake, write
from memoranda.embedders.cache import CachedEmbedder
from memoranda.errors import ConfigurationError, EmbedderUnavailable, InvalidInput, StoreBusy
from memoranda.item_operations import DeleteItem, GetItem, ItemOperation, ListNamespaces, PutItem, SearchItems
from memoranda.pipelines import diagnosing
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.pipelines.ingesting import embedded_at_once
from memoranda.pipelines.recalling import without_secrets
from memoranda.text import join_terms

if TYPE_CHECKING:
    from memoranda.effects import MaybeVectors

_log = logging.getLogger("memoranda.items")
_OPERATIONS = (GetItem, PutItem, DeleteItem, SearchItems, ListNamespaces)
_ATTEMPTS = 5  # at items that others delete at the same time
_LONG = 10_000  # characters: about a millisecond of work


def batch(context: Context, operations: Sequence[ItemOperation], embedder: CachedEmbedder | None) -> Steps[list[Any]]:
    """Do operations, and return what each gives, in their order; of several writes of one item only the last is done.

    Args:
        context: Who asks.
        operations: What to do.
        embedder: Another embedder than the store's.
    """
    if not all(isinstance(op, _OPERATIONS) for op in operations):
        raise InvalidInput("a batch takes operations of memoranda.item_operations", field="operations")
    writing = [op for op in operations if isinstance(op, PutItem | DeleteItem)]
    changes = {(namespaces.encode(op.namespace), op.key): op for op in writing}
    setting = context.writing() if changes else context.setting()
    drafts = yield from _drafted({name: op for name, op in changes.items() if isinstance(op, PutItem)}, setting)
    yield from opened(context)
    if embedder is not None and embedder.model == context.space.model:
        embedder = None
    answers: list[Any] = [None] * len(operations)
    reading = {place: op for place, op in enumerate(operations) if not isinstance(op, PutItem | DeleteItem)}
    if reading:
        questions = yield from _questions(context, list(reading.values()), embedder)
        seen = yield from read(_looked, setting, list(reading.values()), questions)
        for place, answer in zip(reading, seen.answers, strict=True):
            answers[place] = answer
        if seen.stale:
            yield from write(item_writing.refresh, setting, seen.stale)
    if changes:
        yield from _changed(context, setting, changes, drafts, embedder)
    return answers


def sweep(context: Context) -> Steps[int]:
    """Delete the items whose time is over, and return how many there were."""
    setting, swept = context.writing(), 0
    while found := (yield from write(item_writing.sweep, setting)):
        swept += found
    return swept


def check(context: Context, embedder: CachedEmbedder | None) -> Steps[str | None]:
    """Embed a word, and return the model whose vectors are searched."""
    if embedder is None:
        return (yield from diagnosing.check(context))
    yield from embed(["memoranda"], "text", None, embedder)
    return embedder.model


def stamp(context: Context, embedder: CachedEmbedder | None) -> str | None:
    """Return what vectors are stamped with: those of another embedder are nobody else's to make anew, or to delete."""
    return GIVEN + embedder.model if embedder else context.space.model


# -- reading


@dataclass(frozen=True, slots=True)
class _Seen:
    """What reading operations gave."""

    answers: Sequence[Any]
    stale: Sequence[UUID]
    """The items whose time is to begin anew."""


def _questions(
    context: Context, operations: Sequence[ItemOperation], embedder: CachedEmbedder | None
) -> Steps[Mapping[str, ItemQuestion]]:
    """Return each query as the database takes it; all are embedded in one call."""
    asked = [op.query for op in operations if isinstance(op, SearchItems) and op.query]
    said = {query: without_secrets(query, context) for query in asked}
    if not said:
        return {}
    vectors, why = yield from _embedded_questions(context, list(said.values()), embedder)
    if why is not None and any(vector is None for vector in vectors):
        _log.warning("items are searched by words alone: %s", why)
    model = stamp(context, embedder)
    return {
        query: ItemQuestion(
            text=text,
            terms=tuple(context.tokenizer.query_terms(text)),
            vector=vector if vector is not None and vector.any() else None,
            model=model,
        )
        for (query, text), vector in zip(said.items(), vectors, strict=True)
    }


def _embedded_questions(
    context: Context, texts: Sequence[str], embedder: CachedEmbedder | None
) -> "Steps[tuple[MaybeVectors, str | None]]":
    if embedder is None:
        return (yield from vectors_of(context, texts, "query", asked=True))
    try:
        limit = context.policies.timeout.seconds(len(texts), "question")
        return (yield from embed(texts, "query", limit, embedder)), None
    except (EmbedderUnavailable, ConfigurationError) as error:
        return [None] * len(texts), str(error)


def _looked(
    conn: Connection,
    tables: Tables,
    setting: Setting,
    operations: Sequence[ItemOperation],
    questions: Mapping[str, ItemQuestion],
) -> _Seen:
    """Do everything that reads, in one turn of a database thread."""
    answers: list[Any] = [None] * len(operations)
    stale: dict[UUID, None] = {}

    def seen(row: Any, refresh: bool, score: float | None = None) -> Any:
        if refresh and row.ttl_minutes is not None:
            stale[row.id] = None
        return items.item(row, score)

    for omit_expired in (False, True):
        got = [
            (place, op)
            for place, op in enumerate(operations)
            if isinstance(op, GetItem) and op.omit_expired == omit_expired
        ]
        rows = items.get(conn, tables, setting, [op for _, op in got]) if got else []
        twice = len({id(row) for row in rows}) < len(rows)
        for (place, wanted), row in zip(got, rows, strict=True):
            found = None if row is None else seen(row, wanted.refresh)
            answers[place] = deepcopy(found) if twice else found
    for place, op in enumerate(operations):
        if isinstance(op, ListNamespaces):
            answers[place] = items.listed(conn, tables, setting, op)
        elif isinstance(op, SearchItems) and op.query:
            found = item_search.search(conn, tables, setting, op, questions[op.query])
            answers[place] = [seen(row, op.refresh, score) for row, score in found]
        elif isinstance(op, SearchItems):
            answers[place] = [seen(row, op.refresh) for row in items.newest(conn, tables, setting, op)]
    return _Seen(answers, list(stale))


# -- writing


def _drafted(puts: Mapping[tuple[str, str], PutItem], setting: Setting) -> Steps[list[ItemDraft]]:
    long = sum(len(text) for op in puts.values() for text in (op.texts or {}).values()) > _LONG
    if long:
        return (yield from compute(_drafts, puts, setting))
    return _drafts(puts, setting)


def _drafts(puts: Mapping[tuple[str, str], PutItem], setting: Setting) -> list[ItemDraft]:
    """Turn the texts of items into terms."""
    owner = (setting.scope.tenant, setting.scope.persona, setting.scope.author)
    drafts = []
    for (namespace, key), op in puts.items():
        texts = []
        for path, text in (op.texts or {}).items():
            content = hidden(text, setting.policies)
            terms = join_terms(setting.tokenizer.terms(content))
            texts.append(TextDraft(path=path, content=content, content_terms=terms, length=len(terms.split())))
        drafts.append(
            ItemDraft(
                namespace=namespace,
                key=key,
                value=dict(op.value),
                ttl_minutes=op.ttl_minutes,
                cells=join_terms(namespaces.cells(owner, namespace)),
                texts=tuple(texts),
            )
        )
    return drafts


def _changed(
    context: Context,
    setting: Setting,
    changes: Mapping[tuple[str, str], PutItem | DeleteItem],
    drafts: Sequence[ItemDraft],
    embedder: CachedEmbedder | None,
) -> Steps[None]:
    """Embed what is to be found, and do everything that writes in one transaction."""
    texts = [text.content for draft in drafts for text in draft.texts]
    vectors, degraded = yield from _embedded(context, texts, embedder)
    given = iter(vectors)
    whole = [replace(draft, texts=tuple(replace(text, vector=next(given)) for text in draft.texts)) for draft in drafts]
    gone = [name for name, op in changes.items() if isinstance(op, DeleteItem)]
    making = Making(model=stamp(context, embedder), own=embedder is None)
    wanting = yield from _done(setting, gone, whole, making)
    if not wanting:
        return
    if setting.leaves_jobs:
        yield from wake(context.scope.whose)
    elif degraded is not None:
        _log.warning("items were stored that are found by their words only: %s", degraded)


def _embedded(
    context: Context, texts: Sequence[str], embedder: CachedEmbedder | None
) -> "Steps[tuple[MaybeVectors, str | None]]":
    """Embed the texts of items in one call; nothing is compared with them, so nobody is kept waiting.

    Nobody could do later what another embedder than the store's does not do now, so its errors are raised.
    """
    if not texts:
        return [], None
    if embedder is not None:
        return (yield from embed(texts, "text", None, embedder)), None
    return (yield from embedded_at_once(context, texts))


def _done(setting: Setting, gone: Sequence[Name], whole: Sequence[ItemDraft], making: Making) -> Steps[Sequence[UUID]]:
    """Store and delete items, again where others delete the same ones at the same time."""
    for _ in range(_ATTEMPTS):
        with suppress(item_writing.Withdrawn):
            return (yield from write(item_writing.change, setting, gone, whole, making))
    raise StoreBusy("Somebody else writes the same items at the same time: try again.")
