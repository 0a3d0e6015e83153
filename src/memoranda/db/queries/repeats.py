"""Which stored memory a new one repeats: looked for where it would stand, by words and by meaning."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from memoranda.candidates import Candidate
from memoranda.db.queries import memories, rows
from memoranda.db.queries.candidates import Question, gather
from memoranda.db.queries.visibility import holding, narrowed, visible
from memoranda.db.schema import Tables
from memoranda.drafts import Draft, Setting
from memoranda.filters import Filters, Place
from memoranda.novelty import says_nothing_new
from memoranda.policies import RankingPolicy
from memoranda.records import Memory
from memoranda.text import words

_LOOKED_AT = 5  # of each leg: what says the same stands at its top


def repeated(
    conn: Connection, tables: Tables, item: Draft, vector: Any, model: str | None, setting: Setting
) -> Memory | None:
    """Return the memory beside which a new one says nothing new, if there is one that holds now."""
    setting = regardless_of_presence(setting)
    new = item.memory
    near = setting.policies.dedupe.repeat_distance

    def says_it(candidate: Candidate) -> bool:
        return says_nothing_new(
            new.content,
            candidate.content,
            near=candidate.cosine is not None and 1 - candidate.cosine < near,
        )

    alike = [candidate.id for candidate in _beside(conn, tables, item, vector, model, setting) if says_it(candidate)]
    found = memories.by_ids(conn, tables, setting, alike) if alike else {}
    return next((found[key] for key in alike if key in found and _at_one_time(found[key], item)), None)


def same(
    conn: Connection, tables: Tables, item: Draft, vector: Any, model: str | None, setting: Setting
) -> Memory | None:
    """Return the memory that is the same statement as a new one: the same text, else the nearest if it is near enough.

    Without a vector only the same text counts.
    """
    setting = regardless_of_presence(setting)
    if (equal := _equal(conn, tables, item, setting)) is not None:
        return equal
    if vector is None or not vector.any():
        return None
    beside = _beside(conn, tables, item, vector, model, setting, by_words=False)
    nearest = max(beside, key=lambda candidate: (candidate.cosine or 0.0, candidate.id), default=None)
    if nearest is None or (nearest.cosine or 0.0) < setting.policies.dedupe.same_likeness:
        return None
    found = memories.by_ids(conn, tables, setting, [nearest.id]).get(nearest.id)
    return found if found is not None and _at_one_time(found, item) else None


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


def _equal(conn: Connection, tables: Tables, item: Draft, setting: Setting) -> Memory | None:
    m, filters = tables.memories, Filters(place=Place.of(item.memory))
    found = conn.execute(
        select(*rows.columns(m))
        .where(
            visible(tables, setting.scope, setting.policies.visibility),
            holding(m, filters, setting.now),
            narrowed(m, filters),
            m.c.content == item.memory.content,
        )
        .order_by(m.c.created_at.desc(), m.c.id.desc())
        .limit(_LOOKED_AT)
    )
    return next((memory for memory in map(rows.memory, found) if _at_one_time(memory, item)), None)


def _beside(
    conn: Connection,
    tables: Tables,
    item: Draft,
    vector: Any,
    model: str | None,
    setting: Setting,
    *,
    by_words: bool = True,
) -> Sequence[Candidate]:
    """Return the nearest of the memories that stand where a new one would, nearest first."""
    question = Question(
        text=item.text,
        terms=tuple(setting.tokenizer.query_terms(item.text)) if by_words else (),
        words=words(item.text) if by_words else frozenset(),
        vector=vector if vector is not None and vector.any() else None,
        model=model,
        scope=setting.scope,
        visibility=setting.policies.visibility,
        ranking=RankingPolicy(name="overlap", candidates=_LOOKED_AT, neighbours=0),
        filters=Filters(place=Place.of(item.memory), pages=False),
        now=setting.now,
    )
    _, found = gather(conn, tables, question)
    return sorted(found, key=lambda candidate: (candidate.cosine or 0.0, candidate.id), reverse=True)
