"""Snapshots: the frozen block of a conversation's prompt, one a scope, and what ends it.

A snapshot is taken in one transaction that holds the conversation's row, and every row it shows or is seen by. Whatever
ends it, a compaction, a clear, an erasure or a lost membership, waits for that and then finds it, or is there first and
leaves nothing to show. So two who ask at once get the same block, and none that has ended is stored afterwards. One in
which a secret is found, by rules that did not know it when it was stored, ends where it is read.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    select,
    tuple_,
)

from memoranda.blocks import Block
from memoranda.db.schema import Tables
from memoranda.policies import PromptPolicy, VisibilityPolicy
from memoranda.scope import Scope

End: TypeAlias = Literal["compaction", "clear", "erasure", "membership", "secret"]
"""Why a snapshot ends; nothing else ends one."""

_log = logging.getLogger("memoranda.snapshots")

_TOGETHER = 500
"""Snapshots named in one statement."""


class Snapshot(NamedTuple):
    """A block as it is stored; an empty text where there was nothing to remember."""

    block: str
    tokens: int


@lru_cache(maxsize=4096)
def key_of(scope: Scope, visibility: VisibilityPolicy, prompt: PromptPolicy) -> str:
    """Return a digest of who asks, and of what of the policies shapes the block."""
    axes = [scope.user, scope.project, scope.space, scope.agent, scope.thread]
    people = None if scope.people is None else sorted(set(scope.people))
    shape = [prompt.memories, prompt.budget, prompt.user_model == "frozen", prompt.turn]
    parts = json.dumps([*axes, people, asdict(visibility), *shape])
    return blake2b(parts.encode(), digest_size=16).hexdigest()


# -- taking


def stored(conn: Connection, tables: Tables, scope: Scope, name: str, key: str) -> Snapshot | None:
    """Return the snapshot of a conversation and scope; None where none was taken, or it has ended."""
    row = conn.execute(_finding(tables.conversations, tables.snapshots), _names(scope, name, key)).first()
    return None if row is None else Snapshot(*row)


def shown(conn: Connection, tables: Tables, scope: Scope, name: str, key: str) -> frozenset[UUID]:
    """Return the memories that the snapshot of a conversation and scope shows in the words they have now."""
    c, s, shows, m = tables.conversations, tables.snapshots, tables.snapshot_memories, tables.memories
    found = select(shows.c.memory_id).where(
        *_named(c, s),
        *_place(shows, scope.tenant, scope.persona),
        *_place(m, scope.tenant, scope.persona),
        shows.c.conversation_id == s.c.conversation_id,
        shows.c.scope_key == s.c.scope_key,
        m.c.id == shows.c.memory_id,
        m.c.updated_at <= s.c.created_at,
    )
    return frozenset(conn.scalars(found, _names(scope, name, key)))


def hold_memberships(conn: Connection, tables: Tables, scope: Scope) -> None:
    """Keep the asking user's memberships as they are until the transaction ends."""
    p = tables.project_members
    own = (*_place(p, scope.tenant, scope.persona), p.c.member == scope.author)
    conn.execute(_locking(p.c.project, *own)).all()


def hold_user_model(conn: Connection, tables: Tables, scope: Scope) -> None:
    """Keep the rows of the asking user's model from being erased until the transaction ends."""
    u = tables.user_model
    conn.execute(_locking(u.c.dimension, *_place(u, scope.tenant, scope.persona), u.c.user == scope.author)).all()


def hold_memories(conn: Connection, tables: Tables, scope: Scope, ids: Sequence[UUID]) -> bool:
    """Keep memories from being erased until the transaction ends; False when one of them is gone already."""
    m = tables.memories
    own = (*_place(m, scope.tenant, scope.persona), tables.dialect.ids_in(m.c.id, ids))
    return len(conn.execute(_locking(m.c.id, *own)).all()) == len(ids)


def keep(
    conn: Connection, tables: Tables, scope: Scope, conversation_id: UUID, key: str, block: Block, now: datetime
) -> Snapshot:
    """Store a block, and which memories it shows."""
    row = {"tenant": scope.tenant, "persona": scope.persona, "conversation_id": conversation_id, "scope_key": key}
    values = {"user": scope.author, "block": block.text, "tokens": block.tokens, "created_at": now}
    tables.inserts.add(conn, tables.snapshots, [row | values])
    tables.inserts.add(conn, tables.snapshot_memories, [row | {"memory_id": memory} for memory in block.shown])
    return Snapshot(block.text, block.tokens)


# -- ending


def end_all(conn: Connection, tables: Tables, scope: Scope, conversation_id: UUID, why: End) -> None:
    """End the snapshots of a conversation, whoever they were taken for; the caller holds the conversation's row."""
    end(conn, tables, scope.tenant, scope.persona, tables.snapshots.c.conversation_id == conversation_id, why)


def end_one(conn: Connection, tables: Tables, scope: Scope, conversation_id: UUID, key: str, why: End) -> None:
    """End the snapshot of one scope; the caller holds the conversation's row."""
    s = tables.snapshots
    which = and_(s.c.conversation_id == conversation_id, s.c.scope_key == key)
    end(conn, tables, scope.tenant, scope.persona, which, why)


def end_of_member(conn: Connection, tables: Tables, scope: Scope, project: str, member: str) -> None:
    """End the snapshots of a user that show what only the membership of a project let them see."""
    s, shows, m = tables.snapshots, tables.snapshot_memories, tables.memories
    others = select(shows.c.conversation_id, shows.c.scope_key).where(
        *_place(shows, scope.tenant, scope.persona),
        *_place(m, scope.tenant, scope.persona),
        m.c.id == shows.c.memory_id,
        m.c.project == project,
        m.c.author != member,
    )
    show_others = tuple_(s.c.conversation_id, s.c.scope_key).in_(others)
    end(conn, tables, scope.tenant, scope.persona, and_(s.c.user == member, show_others), "membership")


def showing(tables: Tables, tenant: str, persona: str, ids: Sequence[UUID]) -> ColumnElement[bool]:
    """Return the condition for the snapshots that show one of these memories."""
    s, shows = tables.snapshots, tables.snapshot_memories
    found = select(shows.c.conversation_id, shows.c.scope_key).where(
        *_place(shows, tenant, persona), tables.dialect.ids_in(shows.c.memory_id, ids)
    )
    return tuple_(s.c.conversation_id, s.c.scope_key).in_(found)


def count(conn: Connection, tables: Tables, tenant: str, persona: str, which: ColumnElement[bool]) -> int:
    """Return how many rows `end` would delete."""
    s, shows = tables.snapshots, tables.snapshot_memories
    ending = (*_place(s, tenant, persona), which)
    names = ("tenant", "persona", "conversation_id", "scope_key")
    lines = shows.join(s, and_(*(shows.c[name] == s.c[name] for name in names)))
    return sum(conn.scalar(select(func.count()).select_from(rows).where(*ending)) or 0 for rows in (s, lines))


def end(conn: Connection, tables: Tables, tenant: str, persona: str, which: ColumnElement[bool], why: End) -> int:
    """End the snapshots of a persona for which a condition holds, and return how many rows were deleted."""
    s, shows = tables.snapshots, tables.snapshot_memories
    key = (s.c.conversation_id, s.c.scope_key)
    # In one order, for two that end the same ones must not wait for each other.
    wanted = select(*key).where(*_place(s, tenant, persona), which).order_by(*key).with_for_update()
    ending = [(row.conversation_id, row.scope_key) for row in conn.execute(wanted)]
    gone = 0
    for start in range(0, len(ending), _TOGETHER):
        for table in (shows, s):
            chosen = tuple_(table.c.conversation_id, table.c.scope_key).in_(ending[start : start + _TOGETHER])
            gone += conn.execute(delete(table).where(*_place(table, tenant, persona), chosen)).rowcount
    for conversation_id in sorted({conversation_id for conversation_id, _ in ending}):
        identity = {"memoranda.conversation.id": str(conversation_id), "memoranda.snapshot.end": why}
        _log.info("the frozen block of conversation %s ends: %s", conversation_id, why, extra=identity)
    return gone


def _locking(column: ColumnElement[Any], *own: ColumnElement[bool]) -> Any:
    # This only keeps a row from going: whoever rewrites it passes. In one order, as an erasure locks what it deletes.
    return select(column).where(*own).order_by(column).with_for_update(read=True, key_share=True)


@lru_cache(maxsize=32)
def _finding(c: Table, s: Table) -> Select[Any]:
    # Built once a store: it runs before every call of a model, and building it takes longer than all the rest of it.
    return select(s.c.block, s.c.tokens).where(*_named(c, s))


def _named(c: Table, s: Table) -> Sequence[ColumnElement[bool]]:
    """Return the conditions that lead from a conversation's name to its snapshot by two unique keys; see `_names`."""
    tenant: BindParameter[str] = bindparam("in_tenant")
    persona: BindParameter[str] = bindparam("in_persona")
    return (
        c.c.tenant == tenant,
        c.c.persona == persona,
        c.c.author == bindparam("of_author"),
        c.c.name == bindparam("of_name"),
        s.c.tenant == tenant,
        s.c.persona == persona,
        s.c.conversation_id == c.c.id,
        s.c.scope_key == bindparam("of_key"),
    )


def _names(scope: Scope, name: str, key: str) -> Mapping[str, str]:
    place = {"in_tenant": scope.tenant, "in_persona": scope.persona}
    return place | {"of_author": scope.author, "of_name": name, "of_key": key}


def _place(table: FromClause, tenant: str, persona: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.tenant == tenant, table.c.persona == persona
