"""Past messages that hold the words of a question, each with the turns beside it."""

from collections.abc import Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, select

from memoranda.db.queries import candidates, messages
from memoranda.db.queries.candidates import Question
from memoranda.db.queries.visibility import visible
from memoranda.db.schema import Tables
from memoranda.messages import Message
from memoranda.ranking import Scored, rank
from memoranda.reports import Found


def search(conn: Connection, tables: Tables, question: Question, limit: int, around: int) -> list[Found]:
    """Return the messages that say a word of the question, best first, with `around` messages on either side."""
    asked, found = candidates.gather(conn, tables, question)
    ranked = rank(asked, found, question.ranking)
    # A turn that only stands beside a match has lent its words, and is given with it.
    said = list(islice((item for item in ranked if item.candidate.by_words), limit))
    rows = _conversations(conn, tables, question, {UUID(item.candidate.session) for item in said})
    near = {
        identifier: _near(
            conn, tables, question, row, [item for item in said if UUID(item.candidate.session) == identifier], around
        )
        for identifier, row in rows.items()
    }
    return [
        _found(item, rows[identifier], near[identifier], around)
        for item in said
        if (identifier := UUID(item.candidate.session)) in rows and item.candidate.position in near[identifier]
    ]


def _conversations(conn: Connection, tables: Tables, question: Question, ids: set[UUID]) -> dict[UUID, Row[Any]]:
    if not ids:
        return {}
    c = tables.conversations
    seen = visible(tables, question.scope, question.visibility, c)
    return {row.id: row for row in conn.execute(select(c).where(seen, tables.dialect.ids_in(c.c.id, sorted(ids))))}


def _near(
    conn: Connection, tables: Tables, question: Question, conversation: Row[Any], said: Sequence[Scored], around: int
) -> dict[int, Message]:
    """Return the messages at the places of the matches and beside them that may be seen, by their places."""
    places = [item.candidate.position or 0 for item in said]
    wanted = {place + step for place in places for step in range(-around, around + 1)}
    seen = visible(tables, question.scope, question.visibility, tables.messages)
    return {message.position or 0: message for message in messages.at(conn, tables, conversation, wanted, seen)}


def _found(item: Scored, conversation: Row[Any], near: dict[int, Message], around: int) -> Found:
    place = item.candidate.position or 0
    return Found(
        conversation=conversation.name,
        message=near[place],
        before=tuple(near[p] for p in range(place - around, place) if p in near),
        after=tuple(near[p] for p in range(place + 1, place + around + 1) if p in near),
        score=item.score,
    )
