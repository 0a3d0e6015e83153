"""Conversations of a file on their way into a store that may have some of them, or others under the same names.

A conversation is the same by its id. Another one of the same name here gives the arriving one a longer name; messages
that were said on both sides since they parted stand behind each other. Nothing that is here is changed.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, update

from memoranda.db.schema import Tables
from memoranda.redaction import redact
from memoranda.text import Tokenizer, join_terms

_Values = dict[str, Any]


def insert_conversations(conn: Connection, tables: Tables, rows: Sequence[_Values]) -> int:
    """Insert conversations that are not there yet, and return how many they were; the rows are of one scope."""
    c = tables.conversations
    own = (c.c.tenant == rows[0]["tenant"], c.c.persona == rows[0]["persona"])
    there = set(conn.scalars(select(c.c.id).where(*own, tables.dialect.ids_in(c.c.id, [row["id"] for row in rows]))))
    fresh = [row for row in rows if row["id"] not in there]
    named = tables.dialect.texts_in(c.c.name, [row["name"] for row in fresh])
    taken = {(row.author, row.name) for row in conn.execute(select(c.c.author, c.c.name).where(*own, named))}
    for row in fresh:
        if (row["author"], row["name"]) in taken:
            row["name"] = f"{row['name']} ({str(row['id'])[-12:]})"
    return tables.inserts.add(conn, c, fresh)


def insert_messages(conn: Connection, tables: Tables, rows: Sequence[_Values]) -> int:
    """Insert messages that are not there yet, and return how many they were; the rows are of one scope."""
    m = tables.messages
    own = (m.c.tenant == rows[0]["tenant"], m.c.persona == rows[0]["persona"])
    there = set(conn.scalars(select(m.c.id).where(*own, tables.dialect.ids_in(m.c.id, [row["id"] for row in rows]))))
    arriving: dict[Any, list[_Values]] = {}
    for row in rows:
        if row["id"] not in there:
            arriving.setdefault(row["conversation_id"], []).append(row)
    begun = select(m.c.conversation_id).where(*own, tables.dialect.ids_in(m.c.conversation_id, list(arriving)))
    for conversation in set(conn.scalars(begun.distinct())):
        said = (*own, m.c.conversation_id == conversation)
        arriving[conversation] = _placed(conn, tables, said, arriving[conversation])
    return tables.inserts.add(conn, m, [row for fresh in arriving.values() for row in fresh])


def _placed(
    conn: Connection, tables: Tables, said: Sequence[ColumnElement[bool]], rows: Sequence[_Values]
) -> list[_Values]:
    """Return the messages whose ids nobody has here, behind what is said here from the first place on that is taken."""
    m = tables.messages
    keys = [row["key"] for row in rows if row["key"]]
    known = set(conn.scalars(select(m.c.key).where(*said, tables.dialect.texts_in(m.c.key, keys)))) if keys else set()
    fresh = sorted((row for row in rows if row["key"] not in known), key=lambda row: row["position"])
    if not fresh:
        return []
    taken = set(conn.scalars(select(m.c.position).where(*said, m.c.position >= fresh[0]["position"])))
    first = next((number for number, row in enumerate(fresh) if row["position"] in taken), len(fresh))
    last = max(taken, default=0)
    for place, row in enumerate(fresh[first:], last + 1):
        row["position"] = place
    return fresh


def count_on(conn: Connection, tables: Tables) -> None:
    """See to it that no conversation gives a place again that an arriving message has."""
    c, m = tables.conversations, tables.messages
    last = (
        select(func.max(m.c.position))
        .where(m.c.tenant == c.c.tenant, m.c.persona == c.c.persona, m.c.conversation_id == c.c.id)
        .scalar_subquery()
    )
    conn.execute(update(c).where(c.c.last_position < last).values(last_position=last))


def reindex(values: _Values, tokenizer: Tokenizer) -> None:
    """Make the index terms of a message anew, where it has some."""
    if values["cells"]:
        terms = join_terms(tokenizer.terms(redact(values["content"])))
        values.update(content_terms=terms, length=len(terms.split()))
