"""Conversations as rows: one a name of a user's, which everything said in it hangs on."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, literal_column, select, update

from memoranda.db.queries import snapshots
from memoranda.db.queries.visibility import visible
from memoranda.db.schema import Tables
from memoranda.drafts import Setting
from memoranda.ids import new_id
from memoranda.messages import ConversationRecord
from memoranda.scope import Scope


def seen(conn: Connection, tables: Tables, setting: Setting, name: str) -> Row[Any] | None:
    """Return the row of a conversation for who only reads; None where there is none, or none to be seen."""
    return conn.execute(select(tables.conversations).where(*_seen(tables, setting, name))).first()


def found(conn: Connection, tables: Tables, scope: Scope, name: str) -> Row[Any] | None:
    """Return the row of a conversation for who may write in it, see `Context.writing`; None where there is none yet."""
    c = tables.conversations
    return conn.execute(select(c).where(*_own(c, scope, name))).first()


def locked(conn: Connection, tables: Tables, scope: Scope, name: str, now: datetime) -> Row[Any]:
    """Return the row of a conversation, made where it is missing and held until the transaction ends."""
    c = tables.conversations
    statement = select(c).where(*_own(c, scope, name)).with_for_update()
    while (row := conn.execute(statement).first()) is None:  # once more where it was erased this very moment
        fresh = {
            "tenant": scope.tenant,
            "persona": scope.persona,
            "id": new_id(),
            "author": scope.author,
            "name": name,
            "metadata": {},
            "created_at": now,
            "updated_at": now,
        }
        tables.inserts.add(conn, c, [fresh], skip_conflicts=True)
    return row


def hold(conn: Connection, tables: Tables, scope: Scope, name: str) -> Row[Any] | None:
    """Return the row of a conversation, held until the transaction ends; None where there is none."""
    c = tables.conversations
    return conn.execute(select(c).where(*_own(c, scope, name)).with_for_update()).first()


def record(conn: Connection, tables: Tables, setting: Setting, name: str) -> ConversationRecord | None:
    """Return how a conversation stands; None when nothing was said in it yet."""
    records = _records(conn, tables, _seen(tables, setting, name), None)
    return records[0] if records else None


def listed(conn: Connection, tables: Tables, setting: Setting, limit: int) -> list[ConversationRecord]:
    """Return the conversations of a scope in which something was said, the last one touched first."""
    return _records(conn, tables, _seen(tables, setting), limit)


def names(conn: Connection, tables: Tables, setting: Setting) -> list[str]:
    """Return the names of the conversations that have messages, the oldest first."""
    c, m = tables.conversations, tables.messages
    said = select(m.c.id).where(m.c.tenant == c.c.tenant, m.c.persona == c.c.persona, m.c.conversation_id == c.c.id)
    return list(conn.scalars(select(c.c.name).where(*_seen(tables, setting), said.exists()).order_by(c.c.id)))


def clear(conn: Connection, tables: Tables, scope: Scope, name: str) -> int:
    """Delete the messages of a conversation and all that was made of them, and return how many messages there were.

    The row stays, and positions are never given twice: what was begun before finds the messages gone that it has read.
    """
    row = hold(conn, tables, scope, name)
    if row is None:
        return 0
    c, m, e = tables.conversations, tables.messages, tables.extractions
    snapshots.end_all(conn, tables, scope, row.id, "clear")
    conn.execute(delete(e).where(*of_conversation(e, row)))
    empty = {"summary": "", "summary_version": "", "folded_to": 0, "user_turns": 0}
    conn.execute(update(c).where(*_own(c, scope, name)).values(**empty))
    return conn.execute(delete(m).where(*of_conversation(m, row))).rowcount


def of_conversation(table: Table, conversation: Row[Any]) -> Sequence[ColumnElement[bool]]:
    """Return the conditions for the rows of another table that belong to a conversation."""
    return (
        table.c.tenant == conversation.tenant,
        table.c.persona == conversation.persona,
        table.c.conversation_id == conversation.id,
    )


def _records(
    conn: Connection, tables: Tables, own: Sequence[ColumnElement[bool]], limit: int | None
) -> list[ConversationRecord]:
    c, m = tables.conversations, tables.messages
    said = (m.c.tenant == c.c.tenant, m.c.persona == c.c.persona, m.c.conversation_id == c.c.id)

    def count(name: str, *conditions: ColumnElement[bool]) -> ColumnElement[int]:
        # Each by an index alone: the rows themselves are long.
        return select(func.count()).select_from(m).where(*said, *conditions).scalar_subquery().label(name)

    unfolded = m.c.folded_at.is_(None)
    counts = (
        count("messages"),
        count("open", m.c.position > c.c.folded_to, unfolded),
        # Written out, for a partial index serves no parameter.
        count("systems", m.c.role == literal_column("'system'"), m.c.position <= c.c.folded_to, unfolded),
        count("pending", m.c.pending_at.is_not(None)),
    )
    columns = (c.c.name, c.c.user_turns, c.c.summary, c.c.created_at, c.c.updated_at)
    chosen = select(*columns, *counts).where(*own, c.c.last_position > 0)
    newest = chosen.order_by(c.c.updated_at.desc(), c.c.id.desc()).limit(limit)
    return [
        ConversationRecord(
            name=row.name,
            messages=row.messages,
            folded=row.messages - row.open - row.systems,
            pending=row.pending,
            user_turns=row.user_turns,
            summary=row.summary,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
        for row in conn.execute(newest)
    ]


def _seen(tables: Tables, setting: Setting, name: str | None = None) -> Sequence[ColumnElement[bool]]:
    c = tables.conversations
    seen = visible(tables, setting.scope, setting.policies.visibility, c)
    return [seen] if name is None else [seen, c.c.name == name]


def _own(c: Table, scope: Scope, name: str | None = None) -> Sequence[ColumnElement[bool]]:
    own = [c.c.tenant == scope.tenant, c.c.persona == scope.persona, c.c.author == scope.author]
    return own if name is None else [*own, c.c.name == name]
