"""Delivered turns: how many there were since the last review, and when the next one is due."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from memoranda.db.queries import conversations, jobs
from memoranda.db.schema import Tables
from memoranda.scope import Scope


def count_turn(
    conn: Connection, tables: Tables, scope: Scope, name: str, every: int, now: datetime, payload: Any
) -> bool:
    """Count a delivered turn; returns True when that made `every`, the count began anew, and a job is there.

    The row is held, so of turns that end at once each is counted and one is the last of its number. While somebody is
    at a review, which may have read all it will, the count goes on: see `leave_if_counted`.
    """
    row = conversations.locked(conn, tables, scope, name, now)
    turns = row.user_turns + 1
    fires = payload is not None and 0 < every <= turns and not _is_running(conn, tables, row, jobs.REVIEW)
    set_turns(conn, tables, row, 0 if fires else turns)
    if fires:
        jobs.leave_for(conn, tables, row, jobs.REVIEW, payload)
    return fires


def leave_if_counted(conn: Connection, tables: Tables, row: Row[Any], every: int, payload: Any) -> None:
    """Leave a job to review again where the count reached `every` while somebody was at the last one.

    `row` is one of `conversations.hold`, read in this transaction.
    """
    if 0 < every <= row.user_turns:
        set_turns(conn, tables, row, 0)
        jobs.leave_for(conn, tables, row, jobs.REVIEW, payload)


def set_turns(conn: Connection, tables: Tables, row: Row[Any], turns: int) -> None:
    """Set the count of delivered turns since the last review."""
    c = tables.conversations
    own = (c.c.tenant == row.tenant, c.c.persona == row.persona, c.c.id == row.id)
    conn.execute(update(c).where(*own).values(user_turns=turns))


def _is_running(conn: Connection, tables: Tables, row: Row[Any], kind: str) -> bool:
    j = tables.jobs
    (tenant, persona), key = jobs.key_for(row, kind)
    held = (j.c.tenant == tenant, j.c.persona == persona, j.c.unique_key == key, j.c.lease_until.is_not(None))
    return conn.execute(select(j.c.id).where(*held)).first() is not None
