"""Slices of a conversation: messages that are read together to sum up or to extract, and what was extracted before.

A slice is read once, statement by statement: what others take away meanwhile is not in it, and whoever stores what came
of it asks first whether all of it is there still.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, and_, func, select

from memoranda.db.queries.conversations import of_conversation
from memoranda.db.schema import Tables
from memoranda.messages import Role

T = TypeVar("T", bound=Any)
"""Something with a number of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What of a message is read to sum up and to extract."""

    id: UUID
    position: int
    role: Role
    text: str = field(repr=False)
    tokens: int
    said_in: Mapping[str, Any] = field(repr=False, hash=False)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Messages of one conversation, in their order.

    A slice that is extracted from was said in one scope: what is learned in a project is not stored in another.
    """

    conversation_id: UUID
    lines: tuple[Line, ...]

    @property
    def first(self) -> int:
        """The position of the first."""
        return self.lines[0].position

    @property
    def last(self) -> int:
        """The position of the last."""
        return self.lines[-1].position

    @property
    def said_in(self) -> Mapping[str, Any]:
        """What narrows the scope that the first was said in; see `Scope.narrowing`."""
        return self.lines[0].said_in


def lines_of(conn: Connection, tables: Tables, *which: ColumnElement[bool]) -> tuple[Line, ...]:
    """Return the messages that meet some conditions, in their order."""
    found = conn.execute(select(*_columns(tables)).where(*which).order_by(tables.messages.c.position))
    return tuple(Line(**one._mapping) for one in found)


def newest_lines(
    conn: Connection, tables: Tables, row: Row[Any], per_turn: int, read_to: Sequence[tuple[Mapping[str, Any], int]]
) -> list[Line]:
    """Return the newest messages of user and assistant that are new to reviews: so many for each message of the user's.

    Args:
        conn: A connection.
        tables: The store's tables.
        row: Of the conversation.
        per_turn: How many.
        read_to: The scopes that reviews have read messages of, and up to which position. All that is returned was said
            in one scope, the one of the newest message of all.
    """
    m = tables.messages
    spoken = (*of_conversation(m, row), m.c.role.in_(("user", "assistant")))
    read = [and_(m.c.said_in == said_in, m.c.position <= position) for said_in, position in read_to]
    last = select(m.c.said_in).where(*spoken, *(~one for one in read)).order_by(m.c.position.desc()).limit(1)
    newest = conn.execute(last).first()
    if newest is None:
        return []
    after = next((position for said_in, position in read_to if said_in == newest.said_in), 0)
    mine = (*spoken, m.c.position > after, m.c.said_in == newest.said_in)
    turns = conn.scalar(select(func.count()).where(*mine, m.c.role == "user")) or 0
    chosen = select(*_columns(tables)).where(*mine).order_by(m.c.position.desc()).limit(per_turn * max(turns, 1))
    return [Line(**found._mapping) for found in reversed(conn.execute(chosen).all())]


def within_tokens(lines: Sequence[T], max_tokens: int) -> tuple[T, ...]:
    """Return those of the first that have at most so many tokens together."""
    spent = accumulate(line.tokens for line in lines)
    return tuple(line for line, tokens in zip(lines, spent, strict=True) if tokens <= max_tokens)


def unchanged(conn: Connection, tables: Tables, row: Row[Any], slice: Slice) -> bool:
    """Say whether the messages of a slice are all there still."""
    if row.id != slice.conversation_id:
        return False
    m = tables.messages
    there = select(m.c.id).where(*of_conversation(m, row), m.c.position.between(slice.first, slice.last))
    return {line.id for line in slice.lines} <= set(conn.scalars(there))


def extracted(conn: Connection, tables: Tables, row: Row[Any], kind: str) -> list[tuple[int, int]]:
    """Return the first and last positions of what extractions of a kind were about, in their order.

    Of these, messages that are pending were set aside, and are still to be flushed.
    """
    e = tables.extractions
    found = select(e.c.first_position, e.c.last_position).where(*of_conversation(e, row), e.c.kind == kind)
    return [(one.first_position, one.last_position) for one in conn.execute(found.order_by(e.c.first_position))]


def within(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Say whether a position lies in one of some spans."""
    return any(first <= position <= last for first, last in ranges)


def _columns(tables: Tables) -> Sequence[Any]:
    m = tables.messages
    return (m.c.id, m.c.position, m.c.role, m.c.content.label("text"), m.c.tokens, m.c.said_in, m.c.created_at)
