"""What was: memories in the words and with the fields they had, where these were changed in place since.

The table knows what a memory says now; what it said before is in its images. A question about the past leaves the rows
that were rewritten since out of its search and is put to their images here, so its cost grows with their number only.
Vectors of words that are gone are not kept: those of the few texts that share most with the question are made anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import sqrt
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, FromClause, and_, func, select

from memoranda.candidates import Candidate, Query
from memoranda.db.dialects.base import VectorQuestion
from memoranda.db.queries import rows
from memoranda.db.queries.candidates import Question
from memoranda.db.queries.visibility import REWRITING, held, is_kept, visible
from memoranda.db.schema import Tables
from memoranda.drafts import Setting, embedded_text, index_terms
from memoranda.filters import Filters
from memoranda.ranking.evidence import Evidence
from memoranda.ranking.rrf import ranks
from memoranda.records import Memory
from memoranda.text import overlap, words

_EMBEDDED = 64  # texts a question: one call of any embedder


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rewritten:
    """A memory that was rewritten after a moment."""

    memory: Memory
    """What it was at the moment."""
    holds: bool
    """Whether it held then, and passes the filters as it was."""
    active: bool
    """Whether its row is active now."""
    terms: str
    """What its row is indexed by now."""
    length: int
    """The number of these terms."""
    reworded: bool
    """Whether its vector is of other words."""
    vector: Any = None
    """The vector of the words of then, where one was made for this question."""

    @property
    def text(self) -> str:
        """What was embedded then."""
        return embedded_text(self.memory.content, self.memory.title)


def as_held(conn: Connection, tables: Tables, found: Sequence[Memory], moment: datetime) -> list[Memory]:
    """Return memories as they were at a moment, where they were rewritten since."""
    if not found:
        return []
    v, owner = tables.memory_versions, (found[0].tenant, found[0].persona)
    images = conn.execute(
        select(v.c.memory_id, v.c.image)
        .select_from(_images(tables, *owner, moment))
        .where(tables.dialect.ids_in(v.c.memory_id, [memory.id for memory in found]))
    )
    then = {row.memory_id: rows.from_image(row.image) for row in images}
    return [_as_then(then[memory.id], memory) if memory.id in then else memory for memory in found]


def rewritten_since(conn: Connection, tables: Tables, setting: Setting, filters: Filters) -> list[Rewritten]:
    """Return what the scope may see that was rewritten since the moment asked for; nothing for a question of now."""
    moment, scope = filters.as_of, setting.scope
    if moment is None:
        return []
    m, v = tables.memories, tables.memory_versions
    images = _images(tables, scope.tenant, scope.persona, moment)
    own = and_(m.c.tenant == v.c.tenant, m.c.persona == v.c.persona, m.c.id == v.c.memory_id)
    found = conn.execute(
        select(
            *(m.c[name] for name in ("status", "superseded_by", "valid_to", "title", "content")),
            *(m.c[name] for name in ("category_terms", "content_terms", "length")),
            v.c.image,
        )
        .select_from(images.join(m, own))
        .where(visible(tables, scope, setting.policies.visibility), m.c.status != "retracted")
    )
    rewritten: list[Rewritten] = []
    for row in found:
        memory = _as_then(rows.from_image(row.image), row)
        rewritten.append(
            Rewritten(
                memory=memory,
                holds=held(memory, moment) and is_kept(memory, filters),
                active=row.status == "active",
                terms=row.category_terms + row.content_terms,
                length=row.length,
                reworded=embedded_text(row.content, row.title) != embedded_text(memory.content, memory.title),
            )
        )
    return rewritten


def to_embed(rewritten: Sequence[Rewritten], question: Question, setting: Setting) -> list[Rewritten]:
    """Return those whose words of then are worth a vector: the ones that share most words with the question."""
    gone = [item for item in rewritten if item.holds and item.reworded]
    if len(gone) <= _EMBEDDED:
        return gone

    def shared(item: Rewritten) -> float:
        # Terms are stemmed and leave short words out, which tell rows apart that are alike in all others.
        stems = setting.tokenizer.terms(item.text)
        return overlap(question.terms, set(stems)) + overlap(question.words, words(item.text))

    return sorted(gone, key=shared, reverse=True)[:_EMBEDDED]


def as_they_were(
    conn: Connection,
    tables: Tables,
    question: Question,
    setting: Setting,
    asked: Query,
    found: Sequence[Candidate],
    rewritten: Sequence[Rewritten],
) -> tuple[Query, list[Candidate]]:
    """Return a question about the past with the statistics of then, and its candidates with what their old words name.

    Where vectors were made for what was reworded, who got none is left out; else words decide alone.

    Args:
        conn: A connection inside a transaction.
        tables: The store's tables.
        question: What is asked, and of which moment.
        setting: The scope, and the tokenizer.
        asked: The question with the statistics of now.
        found: The candidates that were not rewritten since.
        rewritten: The rest, as they were.
    """
    spaced = [f" {term} " for term in asked.terms]
    seen, length = list(asked.document_frequency), asked.average_length * asked.rows
    indexed = [index_terms(item.memory, setting.tokenizer) for item in rewritten]
    said: list[int] = []
    for item, (category_terms, content_terms, count) in zip(rewritten, indexed, strict=True):
        text = category_terms + content_terms
        says = [term in text for term in spaced]
        seen = [times + now - (term in item.terms) for times, now, term in zip(seen, says, spaced, strict=True)]
        length += count - item.length if item.active else 0
        said.append(sum(says))
    asked = replace(
        asked,
        document_frequency=tuple(max(times, 0) for times in seen),
        average_length=length / asked.rows if asked.rows else 0.0,
    )
    newest = question.ranking.recent if question.vector is None else None
    least = _least_said(question, found, [times for item, times in zip(rewritten, said, strict=True) if item.holds])
    cosines = _cosines(conn, tables, question, asked, [x.memory.id for x in rewritten if x.holds and not x.reworded])
    embedded = any(item.vector is not None for item in rewritten)
    every = list(found)
    for item, (category_terms, content_terms, count), times in zip(rewritten, indexed, said, strict=True):
        memory = item.memory
        cosine = cosines.get(memory.id) if item.vector is None else _cosine(item.vector, question.vector)
        by_words = bool(newest) or times >= least
        passed_over = embedded and item.reworded and item.vector is None
        if not item.holds or passed_over or not (by_words or cosine is not None):
            continue
        every.append(
            Candidate(
                id=memory.id,
                content=memory.content,
                category_terms=category_terms,
                content_terms=content_terms,
                length=count,
                cosine=cosine,
                by_words=by_words,
                by_meaning=cosine is not None,
                importance=memory.importance,
                created_at=memory.created_at,
                happened_at=memory.event_time or memory.valid_from or memory.created_at,
                session=memory.session,
                position=memory.position,
            )
        )
    return asked, _nearest(asked, every, newest or question.ranking.candidates, question.ranking.candidates)


def _images(tables: Tables, tenant: str, persona: str, moment: datetime) -> FromClause:
    """Return the versions cut to one a memory that was rewritten after a moment: its image of that moment."""
    v = tables.memory_versions
    first = (
        select(v.c.tenant, v.c.persona, v.c.memory_id, func.min(v.c.version).label("version"))
        .where(v.c.tenant == tenant, v.c.persona == persona, v.c.change.in_(REWRITING), v.c.changed_at > moment)
        .group_by(v.c.tenant, v.c.persona, v.c.memory_id)
        .subquery("first")
    )
    same = (first.c[name] == v.c[name] for name in ("tenant", "persona", "memory_id", "version"))
    return first.join(v, and_(*same))


def _as_then(image: Memory, now: Any) -> Memory:
    """Return an image with what became of its row: when it ended is known better now than it was then."""
    closed_then, closed_now = (x.status != "active" or x.superseded_by is not None for x in (image, now))
    # What a later text says of its own window is no end of this one.
    ends = [now.valid_to] if closed_then or closed_now else []
    ends += [] if closed_then else [image.valid_to]
    end = min((moment for moment in ends if moment is not None), default=None)
    return replace(image, status=now.status, superseded_by=now.superseded_by, valid_to=end)


def _least_said(question: Question, found: Sequence[Candidate], said: Sequence[int]) -> int:
    """Return how many of the question's terms a text must say to be proposed, by the rule of the present rows."""
    every = len(question.terms)
    if question.ranking.match == "any" or not every:
        return 1
    strict = question.vector is not None or every in said or any(x.by_words for x in found)
    return every if strict else 1


def _cosines(
    conn: Connection, tables: Tables, question: Question, asked: Query, ids: Sequence[UUID]
) -> dict[UUID, float | None]:
    if not ids or question.vector is None or question.model is None:
        return {}
    m, scope = tables.memories, question.scope
    vectors = VectorQuestion(
        corpus=tables.corpora["memory"],
        tenant=scope.tenant,
        persona=scope.persona,
        model=question.model,
        vector=question.vector,
        rows=asked.rows,
    )
    joined, evidence = tables.dialect.with_cosines(m, tables, vectors)
    own = (m.c.tenant == scope.tenant, m.c.persona == scope.persona, tables.dialect.ids_in(m.c.id, ids))
    statement = select(m.c.id, evidence.label("evidence")).select_from(joined).where(*own)
    found = conn.execute(statement, vectors.values).all()
    cosines = tables.dialect.cosines(conn, tables, [row.evidence for row in found], vectors)
    return {row.id: cosine for row, cosine in zip(found, cosines, strict=True)}


def _cosine(one: Any, other: Any) -> float:
    lengths = float(one @ one) * float(other @ other)
    return float(one @ other) / sqrt(lengths) if lengths else 0.0


def _nearest(asked: Query, every: Sequence[Candidate], by_words: int, by_meaning: int) -> list[Candidate]:
    """Cut each leg to so many again, and keep what one of them still proposes, and the neighbours."""
    scores = Evidence(asked, every).bm25.tolist()
    said = ranks([score if x.by_words else None for x, score in zip(every, scores, strict=True)])
    meant = ranks([x.cosine if x.by_meaning else None for x in every])
    kept: list[Candidate] = []
    for candidate, text_rank, dense_rank in zip(every, said, meant, strict=True):
        beside = not candidate.proposed
        candidate.by_words = text_rank is not None and text_rank <= by_words
        candidate.by_meaning = dense_rank is not None and dense_rank <= by_meaning
        if beside or candidate.proposed:
            kept.append(candidate)
    return kept
