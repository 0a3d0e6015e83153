"""Conversations of a file on their way into a store that may have some of them, or others under the same names.

A conversation is the same by its id. Another one of the same name here gives the arriving one a longer name; messages
that were said on both sides since they parted stand behind each other. Of what is here nothing is changed, but that a
message from which the file has extracted is no longer pending.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, update

from memoranda.db.schema import Tables
from memoranda.redaction import redact
from memoranda.text import Tokenizer, join_terms

_Values = dict[str, Any]


@dataclass(slots=True)
class Arrived:
    """What of a file's conversations has come in, and where it stands now."""

    scopes: set[tuple[str, str]] = field(default_factory=set)
    """The tenants and personas."""
    new: set[Any] = field(default_factory=set)
    """The ids of the conversations that were not here before: everything in them stands where it stood."""
    places: dict[Any, dict[int, int]] = field(default_factory=dict)
    """Of the others, by id: the places here of the messages of the file, by their places there."""
    waiting: dict[Any, set[int]] = field(default_factory=dict)
    """Of these again: the places here of the messages that are still to be extracted in the file, too."""


def insert_conversations(conn: Connection, tables: Tables, rows: Sequence[_Values], arrived: Arrived) -> int:
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
    arrived.scopes.add((rows[0]["tenant"], rows[0]["persona"]))
    arrived.new |= {row["id"] for row in fresh}
    return tables.inserts.add(conn, c, fresh)


def insert_messages(conn: Connection, tables: Tables, rows: Sequence[_Values], arrived: Arrived) -> int:
    """Insert messages that are not there yet, and return how many they were; the rows are of one scope."""
    m = tables.messages
    own = (m.c.tenant == rows[0]["tenant"], m.c.persona == rows[0]["persona"])
    named = tables.dialect.ids_in(m.c.id, [row["id"] for row in rows])
    there = {row.id: row.position for row in conn.execute(select(m.c.id, m.c.position).where(*own, named))}
    before = [row["position"] for row in rows]
    arriving: dict[Any, list[_Values]] = {}
    for row in rows:
        if row["id"] in there:
            row["position"] = there[row["id"]]
        else:
            arriving.setdefault(row["conversation_id"], []).append(row)
    begun = select(m.c.conversation_id).where(*own, tables.dialect.ids_in(m.c.conversation_id, list(arriving)))
    for conversation in set(conn.scalars(begun.distinct())):
        said = (*own, m.c.conversation_id == conversation)
        arriving[conversation] = _placed(conn, tables, said, arriving[conversation])
    arrived.scopes.add((rows[0]["tenant"], rows[0]["persona"]))
    for place, row in zip(before, rows, strict=True):
        if row["conversation_id"] not in arrived.new:
            arrived.places.setdefault(row["conversation_id"], {})[place] = row["position"]
            if row["pending_at"] is not None:
                arrived.waiting.setdefault(row["conversation_id"], set()).add(row["position"])
    return tables.inserts.add(conn, m, [row for fresh in arriving.values() for row in fresh])


def _placed(
    conn: Connection, tables: Tables, said: Sequence[ColumnElement[bool]], rows: Sequence[_Values]
) -> list[_Values]:
    """Return the messages whose ids nobody has here, behind what is said here from the first place on that is taken.

    Those that are left out stand where their ids do.
    """
    m = tables.messages
    keys = tables.dialect.texts_in(m.c.key, [row["key"] for row in rows if row["key"]])
    known = {row.key: row.position for row in conn.execute(select(m.c.key, m.c.position).where(*said, keys))}
    fresh = sorted((row for row in rows if row["key"] not in known), key=lambda row: row["position"])
    for row in rows:
        row["position"] = known.get(row["key"], row["position"])
    if not fresh:
        return []
    taken = set(conn.scalars(select(m.c.position).where(*said, m.c.position >= fresh[0]["position"])))
    first = next((number for number, row in enumerate(fresh) if row["position"] in taken), len(fresh))
    last = max(taken, default=0)
    for place, row in enumerate(fresh[first:], last + 1):
        row["position"] = place
    return fresh


def insert_extractions(conn: Connection, tables: Tables, rows: Sequence[_Values], arrived: Arrived) -> int:
    """Insert what was extracted from the file's messages, wherever they stand now, and return of how many rows any.

    A review has read everything up to a place: it counts up to the first message that only this store has.
    """
    m, stored = tables.messages, 0
    first_own: dict[Any, float] = {}
    for row in rows:
        of_one = (m.c.tenant == row["tenant"], m.c.persona == row["persona"])
        said = (*of_one, m.c.conversation_id == row["conversation_id"])
        runs = [(row["first_position"], row["last_position"])]
        if row["conversation_id"] not in arrived.new:
            places = arrived.places.get(row["conversation_id"], {})
            if row["kind"] == "flush":
                runs = _runs(places[place] for place in range(runs[0][0], runs[0][1] + 1) if place in places)
            else:
                if row["conversation_id"] not in first_own:
                    first_own[row["conversation_id"]] = _first_own(conn, tables, said, places)
                last = min(runs[0][1], first_own[row["conversation_id"]] - 1)
                runs = [(runs[0][0], int(last))] if last >= runs[0][0] else []
        made = [row | {"first_position": first, "last_position": last} for first, last in runs]
        for other in made[1:]:  # what it gave is counted once
            other.update(proposed=0, written=0)
        stored += bool(tables.inserts.add(conn, tables.extractions, made, skip_conflicts=True))
        if row["kind"] == "flush" and row["conversation_id"] not in arrived.new:
            # A span of what is pending all the same was tried in vain.
            in_vain = arrived.waiting.get(row["conversation_id"], set())
            for first, last in _runs({place for run in runs for place in range(run[0], run[1] + 1)} - in_vain):
                read = (*said, m.c.position.between(first, last), m.c.pending_at.is_not(None))
                conn.execute(update(m).where(*read).values(pending_at=None))
    return stored


def _first_own(
    conn: Connection, tables: Tables, said: Sequence[ColumnElement[bool]], places: Mapping[int, int]
) -> float:
    """Return the place of the first message of a conversation that is in no file; infinity where all are."""
    m, known = tables.messages, set(places.values())
    every = conn.scalars(select(m.c.position).where(*said).order_by(m.c.position))
    return next((place for place in every if place not in known), inf)


def _runs(places: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of places that follow one another."""
    runs: list[tuple[int, int]] = []
    for place in sorted(places):
        if runs and runs[-1][1] == place - 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def count_on(conn: Connection, tables: Tables, arrived: Arrived) -> None:
    """See to it that no conversation gives a place again that an arriving message has."""
    c, m = tables.conversations, tables.messages
    last = (
        select(func.max(m.c.position))
        .where(m.c.tenant == c.c.tenant, m.c.persona == c.c.persona, m.c.conversation_id == c.c.id)
        .scalar_subquery()
    )
    for tenant, persona in sorted(arrived.scopes):
        behind = (c.c.tenant == tenant, c.c.persona == persona, c.c.last_position < last)
        conn.execute(update(c).where(*behind).values(last_position=last))


def reindex(values: _Values, tokenizer: Tokenizer) -> None:
    """Make the index terms of a message anew, where it has some."""
    if values["cells"]:
        terms = join_terms(tokenizer.terms(redact(values["content"])))
        values.update(content_terms=terms, length=len(terms.split()))
