"""What was: memories in the words they had, where these were changed in place since."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, select

from memoranda.candidates import Candidate
from memoranda.db.queries import rows
from memoranda.db.queries.candidates import Question
from memoranda.db.queries.visibility import holding, narrowed, visible
from memoranda.db.schema import Tables
from memoranda.drafts import Setting, index_terms
from memoranda.records import Memory
from memoranda.text import frequency

_REWRITTEN = 1000  # memories whose earlier words a question about the past is asked of, the latest rewritten first
_THEN = ("content", "title", "category", "metadata")


def as_held(conn: Connection, tables: Tables, found: Sequence[Memory], moment: datetime) -> list[Memory]:
    """Return memories with the text they had at a moment, where it was changed in place since."""
    if not found:
        return []
    owner, ids = (found[0].tenant, found[0].persona), [memory.id for memory in found]
    then = _images(conn, tables, owner, moment, tables.dialect.ids_in(tables.memory_versions.c.memory_id, ids))
    return [_as_then(memory, then[memory.id]) if memory.id in then else memory for memory in found]


def as_they_were(
    conn: Connection, tables: Tables, question: Question, setting: Setting, found: Sequence[Candidate]
) -> list[Candidate]:
    """Return the candidates of a question about the past with the words they had, and those only their old words name.

    Of words that are gone there is no vector: such a candidate is judged by its text.
    """
    moment = question.filters.as_of
    assert moment is not None
    m, v = tables.memories, tables.memory_versions
    wanted = and_(
        visible(tables, question.scope, question.visibility),
        holding(m, question.filters, question.now),
        narrowed(m, question.filters),
    )
    rewritten = conn.execute(
        select(*rows.columns(m))
        .where(
            wanted,
            m.c.id.in_(
                select(v.c.memory_id).where(
                    v.c.tenant == question.scope.tenant,
                    v.c.persona == question.scope.persona,
                    v.c.change == "revise",
                    v.c.changed_at > moment,
                )
            ),
        )
        .order_by(m.c.updated_at.desc(), m.c.id.desc())
        .limit(_REWRITTEN)
    )
    then = {memory.id: memory for memory in as_held(conn, tables, [rows.memory(row) for row in rewritten], moment)}
    kept = [candidate for candidate in found if candidate.id not in then]
    known = {candidate.id: candidate for candidate in found}
    for memory in then.values():
        category_terms, content_terms, length = index_terms(memory, setting.tokenizer)
        said = any(frequency(category_terms + content_terms, term) for term in question.terms)
        if not said and memory.id not in known:
            continue
        kept.append(
            Candidate(
                id=memory.id,
                content=memory.content,
                category_terms=category_terms,
                content_terms=content_terms,
                length=length,
                cosine=None,
                text_rank=1 if said else None,
                dense_rank=None,
                importance=memory.importance,
                created_at=memory.created_at,
                happened_at=memory.event_time or memory.valid_from or memory.created_at,
                session=memory.session,
                position=memory.position,
                proposed=said,
            )
        )
    return kept


def _images(
    conn: Connection, tables: Tables, owner: tuple[str, str], moment: datetime, wanted: ColumnElement[bool]
) -> dict[UUID, Memory]:
    v = tables.memory_versions
    found: Any = conn.execute(
        select(v.c.memory_id, v.c.image)
        .where(v.c.tenant == owner[0], v.c.persona == owner[1], v.c.change == "revise", v.c.changed_at > moment, wanted)
        .order_by(v.c.version.desc())
    )
    return {row.memory_id: rows.from_image(row.image) for row in found}  # the oldest of them comes last and stays


def _as_then(memory: Memory, image: Memory) -> Memory:
    return replace(memory, **{name: getattr(image, name) for name in _THEN})
