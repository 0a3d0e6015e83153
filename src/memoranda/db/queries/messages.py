"""Messages as they are read: in the order of the database, from the end, and as many as a window holds."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, literal_column, select, true

from memoranda.db.queries import conversations
from memoranda.db.queries.conversations import of_conversation
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.messages import Message, windowing
from memoranda.messages.forms import stored

_COLUMNS = (
    "role",
    "content",
    "body",
    "key",
    "codec",
    "payload",
    "created_at",
    "position",
    "tokens",
    "folded_at",
    "pending_at",
)
_PAGE = 64
_TOGETHER = 500
"""Positions named in one statement."""


def between(conn: Connection, tables: Tables, conversation: Row[Any], first: int, last: int) -> list[Message]:
    """Return the messages at the positions from `first` to `last`, in their order, folded or not.

    `conversation` is a row of `conversations.seen`, `found` or `locked`.
    """
    m = tables.messages
    statement = _select(tables, conversation).where(m.c.position.between(first, last)).order_by(m.c.position)
    return [stored(row) for row in conn.execute(statement)]


def at(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    positions: Collection[int],
    seen: ColumnElement[bool] | None = None,
) -> list[Message]:
    """Return the messages at these positions, in their order; only those for which `seen` holds, where it is given."""
    m = tables.messages
    wanted = true() if seen is None else seen
    found: list[Message] = []
    for part in parts(positions):
        statement = _select(tables, conversation).where(m.c.position.in_(part), wanted).order_by(m.c.position)
        found += [stored(row) for row in conn.execute(statement)]
    return found


def newest(
    conn: Connection,
    tables: Tables,
    conversation: Row[Any],
    limit: int | None,
    *,
    before: int | None = None,
    after: int = 0,
    role: str | None = None,
    folded: bool = True,
) -> list[Message]:
    """Return the newest messages in their order; all of them without a limit.

    Args:
        conn: A connection.
        tables: The store's tables.
        conversation: A row of `conversations.seen`, `found` or `locked`.
        limit: How many at most.
        before: Only those at positions before this one.
        after: Only those at positions after this one, such as `folded_to`.
        role: Only those of this role.
        folded: Whether the folded ones are among them.
    """
    m = tables.messages
    statement = _select(tables, conversation).where(m.c.position > after)
    if before is not None:
        statement = statement.where(m.c.position < before)
    if role is not None:
        statement = statement.where(m.c.role == role)
    if not folded:
        statement = statement.where(m.c.folded_at.is_(None))
    rows = conn.execute(statement.order_by(m.c.position.desc()).limit(limit)).all()
    return [stored(row) for row in reversed(rows)]


def listed(
    conn: Connection, tables: Tables, setting: Setting, name: str, limit: int | None, before: int | None, folded: bool
) -> list[Message]:
    """Return the messages of a conversation by its name; none where there is no such conversation."""
    conversation = conversations.seen(conn, tables, setting, name)
    if conversation is None:
        return []
    return newest(conn, tables, conversation, limit, before=before, folded=folded)


def size(conn: Connection, tables: Tables, setting: Setting, name: str) -> int:
    """Return the tokens of what is not folded."""
    conversation = conversations.seen(conn, tables, setting, name)
    if conversation is None:
        return 0
    return conn.scalar(select(func.sum(tables.messages.c.tokens)).where(*unfolded(tables, conversation))) or 0


def systems(conn: Connection, tables: Tables, conversation: Row[Any]) -> list[Message]:
    """Return the system messages, for which no summary speaks however old they are, in their order."""
    m = tables.messages
    # Written out, for a partial index serves no parameter.
    system = m.c.role == literal_column("'system'")
    statement = _select(tables, conversation).where(system, m.c.folded_at.is_(None)).order_by(m.c.position)
    return [stored(row) for row in conn.execute(statement)]


def unfolded(tables: Tables, conversation: Row[Any]) -> Sequence[Any]:
    """Return the conditions for what may be folded next."""
    m = tables.messages
    return (*of_conversation(m, conversation), m.c.position > conversation.folded_to, m.c.folded_at.is_(None))


def _select(tables: Tables, conversation: Row[Any]) -> Any:
    m = tables.messages
    return select(*(m.c[name] for name in _COLUMNS)).where(*of_conversation(m, conversation))


def window(conn: Connection, tables: Tables, setting: Setting, name: str, max_tokens: int) -> list[Message]:
    """Return what `windowing.window` makes of a conversation, read from its end."""
    conversation = conversations.seen(conn, tables, setting, name)
    if conversation is None:
        return []
    after = conversation.folded_to
    read: list[Message] = []
    first, size = None, _PAGE
    while page := newest(conn, tables, conversation, size, before=first, after=after, folded=False):
        read, first = page + read, page[0].position
        if len(page) < size or windowing.suffices(read, max_tokens):
            break
        # A tenth more than what is left would hold of messages such as these; as many again where a call is missing.
        size = max(_PAGE, windowing.capacity(read, max_tokens) * 11 // 10 or len(read))
    older = [message for message in systems(conn, tables, conversation) if _lies_before(message, first)]
    if not any(message.role == "user" for message in read):
        older += newest(conn, tables, conversation, 1, before=first, after=after, role="user", folded=False)
        older.sort(key=lambda message: message.position or 0)
    return windowing.window(older + read, max_tokens)


def _lies_before(message: Message, position: int | None) -> bool:
    return position is None or (message.position or 0) < position


def parts(positions: Collection[int]) -> Sequence[Sequence[int]]:
    """Return positions in order, in parts of which each can be named in one statement."""
    ordered = sorted(set(positions))
    return [ordered[start : start + _TOGETHER] for start in range(0, len(ordered), _TOGETHER)]
