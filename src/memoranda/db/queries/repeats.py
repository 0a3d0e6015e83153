"""Which stored memory a new one repeats: looked for where it would stand, by words and by meaning.

What might be repeated is looked for before the transaction that stores the new memory, for that takes long where a
persona holds much; what is repeated is decided inside it, by what the rows say then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, and_, select

from memoranda.db.queries import newcomers, rows
from memoranda.db.queries.candidates import Question, gather
from memoranda.db.queries.inserting import placed
from memoranda.db.queries.newcomers import Mark, Newcomers
from memoranda.db.queries.visibility import holding, is_kept, narrowed, visible
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting
from memoranda.filters import Filters, Place
from memoranda.novelty import says_nothing_new
from memoranda.policies import RankingPolicy
from memoranda.records import Memory
from memoranda.text import words

_LOOKED_AT = 5  # of each leg: what says the same stands at its top


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What each of some drafts might repeat, by what the persona held at the time of a mark."""

    mark: Mark
    beside: Sequence[Sequence[UUID]]


def look(
    conn: Connection,
    tables: Tables,
    drafts: Sequence[Draft],
    vectors: Sequence[Any],
    model: str | None,
    setting: Setting,
) -> Found:
    """Look for what drafts might repeat, before the transaction that stores them; it need not be written in.

    Raises:
        NotAllowed: one of them may not be written where it would stand.
    """
    # What is stored while this searches came since, whether it is found or not.
    mark = newcomers.mark(conn, tables, setting.scope)
    drafts = placed(conn, tables, drafts, setting)
    beside = [
        _proposed(conn, tables, item, vector, model, regardless_of_presence(setting))
        for item, vector in zip(drafts, vectors, strict=True)
    ]
    return Found(mark=mark, beside=beside)


class Repeats:
    """Decides inside a transaction what new memories repeat, those before them in the same batch included."""

    def __init__(
        self, conn: Connection, tables: Tables, model: str | None, setting: Setting, found: Found | None
    ) -> None:
        """Look at what came since; without a search of before, or where that cannot be told, search here."""
        self._conn, self._tables, self._model = conn, tables, model
        self._setting = regardless_of_presence(setting)
        self._newcomers = Newcomers()
        came = None if found is None else newcomers.since(conn, tables, setting.scope, found.mark)
        self._beside = found.beside if found is not None and came is not None else None
        if came:
            self._newcomers.load(conn, tables, setting.scope, came, model)

    def of(self, place: int, item: Draft, vector: Any) -> Memory | None:
        """Return the memory that the draft at a place of the batch repeats, if there is one that holds now."""
        if self._beside is None:
            ids = set(_proposed(self._conn, self._tables, item, vector, self._model, self._setting))
        else:
            ids = {*self._beside[place], *self._newcomers.near(item.text, vector, _LOOKED_AT)}
        if not ids:
            return None
        beside = _among(self._conn, self._tables, ids, item, vector, self._model, self._setting)
        decide = _repeated if self._setting.policies.dedupe.name == "novelty" else _same
        return decide(item, beside, self._setting)

    def stored(self, memory: Memory, item: Draft, vector: Any) -> None:
        """Take note that a draft has become a memory, or its new text."""
        self._newcomers.add(memory.id, item.text, vector)


_Near = tuple[Memory, float | None]
"""A memory and its cosine with a new one."""


def _repeated(item: Draft, beside: Sequence[_Near], setting: Setting) -> Memory | None:
    """Return the memory beside which a new one says nothing new."""
    near = setting.policies.dedupe.repeat_distance

    def says_it(memory: Memory, cosine: float | None) -> bool:
        close = cosine is not None and 1 - cosine < near
        return says_nothing_new(item.memory.content, memory.content, near=close)

    kept = Filters(pages=False)
    alike = (memory for memory, cosine in beside if is_kept(memory, kept) and says_it(memory, cosine))
    return next((memory for memory in alike if _at_one_time(memory, item)), None)


def _same(item: Draft, beside: Sequence[_Near], setting: Setting) -> Memory | None:
    """Return the memory that is the same statement as a new one: the same text, else the nearest if it is near enough.

    Without a vector only the same text counts.
    """
    equal = [memory for memory, _ in beside if memory.content == item.memory.content and _at_one_time(memory, item)]
    if equal:
        return max(equal, key=lambda memory: (memory.created_at, memory.id))
    kept = Filters(pages=False)
    memory, cosine = next(((m, c) for m, c in beside if c is not None and is_kept(m, kept)), (None, 0.0))
    near_enough = memory is not None and cosine is not None and cosine >= setting.policies.dedupe.same_likeness
    return memory if memory is not None and near_enough and _at_one_time(memory, item) else None


def regardless_of_presence(setting: Setting) -> Setting:
    """Return a setting in which every subject counts, whoever is present."""
    scope = replace(setting.scope, people=None, agent=None, thread=None)
    visibility = replace(setting.policies.visibility, about="optional")
    return replace(setting, scope=scope, policies=replace(setting.policies, visibility=visibility))


def _at_one_time(old: Memory, item: Draft) -> bool:
    """Say whether a memory speaks of the time a new one speaks of: what was so twice is two memories.

    A new one that names no time speaks of now, as does whatever holds; but an event of another day is another event.
    """
    new = item.memory
    times = (new.event_time, new.valid_from, new.valid_to)
    if any(times) and times != (old.event_time, old.valid_from, old.valid_to):
        return False
    return new.day == old.day or (item.given_day is None and new.type != "episodic")


def _proposed(
    conn: Connection, tables: Tables, item: Draft, vector: Any, model: str | None, setting: Setting
) -> list[UUID]:
    """Return what a new memory might repeat."""
    directed = vector is not None and vector.any()
    if setting.policies.dedupe.name == "novelty":
        return _beside(conn, tables, item, vector if directed else None, model, setting, by_words=True)
    nearest = _beside(conn, tables, item, vector, model, setting, by_words=False) if directed else []
    return nearest + _equal(conn, tables, item, setting)


def _equal(conn: Connection, tables: Tables, item: Draft, setting: Setting) -> list[UUID]:
    m, filters = tables.memories, Filters(place=Place.of(item.memory))
    found = conn.scalars(
        select(m.c.id)
        .where(
            visible(tables, setting.scope, setting.policies.visibility),
            holding(m, filters, setting.now),
            narrowed(m, filters),
            m.c.content == item.memory.content,
        )
        .order_by(m.c.created_at.desc(), m.c.id.desc())
        .limit(_LOOKED_AT)
    )
    return list(found)


def _beside(
    conn: Connection, tables: Tables, item: Draft, vector: Any, model: str | None, setting: Setting, *, by_words: bool
) -> list[UUID]:
    """Return the nearest of the memories that stand where a new one would."""
    question = Question(
        text=item.text,
        terms=tuple(setting.tokenizer.query_terms(item.text)) if by_words else (),
        words=words(item.text) if by_words else frozenset(),
        vector=vector,
        model=model,
        scope=setting.scope,
        visibility=setting.policies.visibility,
        ranking=RankingPolicy(name="overlap", candidates=_LOOKED_AT, neighbours=0),
        filters=Filters(place=Place.of(item.memory), pages=False),
        now=setting.now,
    )
    _, found = gather(conn, tables, question)
    return [candidate.id for candidate in found]


def _among(
    conn: Connection,
    tables: Tables,
    ids: Iterable[UUID],
    item: Draft,
    vector: Any,
    model: str | None,
    setting: Setting,
) -> list[_Near]:
    """Return those of some memories that stand where a new one would, as they are now, nearest first."""
    m, v, filters = tables.memories, tables.vectors, Filters(place=Place.of(item.memory))
    joined = m.outerjoin(
        v,
        and_(
            v.c.tenant == m.c.tenant,
            v.c.persona == m.c.persona,
            v.c.kind == "memory",
            v.c.model == (model or ""),
            v.c.owner == m.c.id,
        ),
    )
    found = conn.execute(
        select(*rows.columns(m), v.c.vector)
        .select_from(joined)
        .where(
            visible(tables, setting.scope, setting.policies.visibility),
            holding(m, filters, setting.now),
            narrowed(m, filters),
            tables.dialect.ids_in(m.c.id, list(ids)),
        )
    )
    near = [(rows.memory(row), _cosine(vector, row.vector)) for row in found]
    return sorted(near, key=lambda pair: (pair[1] or 0.0, pair[0].id), reverse=True)


def _cosine(one: Any, other: Any) -> float | None:
    """Return how alike two vectors are; None where there are none, or without a direction."""
    if one is None or other is None:
        return None
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.dot(one, other)) / lengths if lengths else None
