"""What of everything remembered is put before a model: the frozen block, the user model, and what a turn brings up."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from sqlalchemy import Connection

from memoranda import blocks, tokens
from memoranda import filters as filtering
from memoranda.db.queries import conversations, memories, messages, snapshots, user_model
from memoranda.db.queries.snapshots import Snapshot
from memoranda.db.schema import Tables
from memoranda.drafts import Setting, hidden
from memoranda.effects import Steps, read, write
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.fencing import new_nonce
from memoranda.filters import Filters
from memoranda.messages import Prompt
from memoranda.pipelines import recalling
from memoranda.pipelines.context import Context
from memoranda.policies import Policies
from memoranda.prompts import guidance
from memoranda.records import Memory

_log = logging.getLogger("memoranda.prompt")
_REMEMBERED = 10_000
_looked_through: set[bytes] = set()
"""Digests of blocks without a secret: to look through one takes longer than to read it."""


def system_block(context: Context, name: str) -> Steps[str]:
    """Return the frozen block of a conversation, taken now where there is none."""
    return (yield from _snapshot(context, name)).block


def user_model_block(context: Context) -> Steps[str]:
    """Return what is known of the user, as of now."""
    return blocks.user_model((yield from read(user_model.listed, context.setting())))


def turn_block(context: Context, name: str, text: str | None) -> Steps[str]:
    """Return what is always in mind and what a text brings up, without what the frozen block shows; fails no turn.

    Raises:
        InvalidInput: the text is no string.
    """
    if text is not None and not isinstance(text, str):
        raise InvalidInput("text must be a string", field="text")
    try:
        return (yield from _turn(context, name, text))
    except Exception as error:
        # Whatever it is: a turn is worth more than what it could have been reminded of. Others' errors may quote it.
        reason = str(error) if isinstance(error, MemorandaError) else type(error).__name__
        _log.warning("a turn goes on without its memories: %s", reason)
        return ""


def prompt(context: Context, name: str, text: str | None) -> Steps[Prompt]:
    """Return everything that is put before a model."""
    policy = context.policies.prompt
    system = yield from system_block(context, name)
    turn = (yield from turn_block(context, name, text)) if policy.turn else ""
    model = "" if policy.user_model == "frozen" else (yield from user_model_block(context))
    row = yield from read(conversations.seen, context.setting(), name)
    parts = {
        "instructions": guidance.TEXT,
        "system": system,
        "summary": blocks.summary(row.summary) if row else "",
        "user_model": model,
        "turn": turn,
    }
    return Prompt(**parts, tokens=_counted(parts), user_model_last=policy.user_model == "tail")


def instructions(context: Context) -> Steps[str]:
    """Return the guidance for an agent."""
    yield from ()
    return guidance.TEXT


def _counted(parts: Mapping[str, str]) -> Mapping[str, int]:
    return {name: tokens.count(part) for name, part in parts.items()}


# -- the frozen block


def _key(context: Context) -> str:
    return snapshots.key_of(context.scope, context.policies.visibility, context.policies.prompt)


def _snapshot(context: Context, name: str) -> Steps[Snapshot]:
    key = _key(context)
    found = yield from read(snapshots.stored, context.scope, name, key)
    if found is not None and not _holds_secret(found.block, context.policies):
        return found
    return (yield from write(_taken, context.writing(), name, key, new_nonce()))


def _taken(conn: Connection, tables: Tables, setting: Setting, name: str, key: str, nonce: str) -> Snapshot:
    """Render and store a block, or return the one that somebody else has stored a moment ago."""
    scope, policy = setting.scope, setting.policies.prompt
    conversation = conversations.locked(conn, tables, scope, name, setting.now)
    if (there := snapshots.stored(conn, tables, scope, name, key)) is not None:
        if not _holds_secret(there.block, setting.policies):
            return there
        snapshots.end_one(conn, tables, scope, conversation.id, key, "secret")
    snapshots.hold_memberships(conn, tables, scope)
    dimensions = []
    if policy.user_model == "frozen":
        snapshots.hold_user_model(conn, tables, scope)
        dimensions = user_model.listed(conn, tables, setting)
    top = _top(conn, tables, setting)
    block = blocks.frozen(top, dimensions, nonce=nonce, budget=policy.budget)
    if (text := _hidden(block.text, setting.policies)) != block.text:
        block = replace(block, text=text, tokens=tokens.count(text))
    return snapshots.keep(conn, tables, scope, conversation.id, key, block, setting.now)


def _hidden(block: str, policies: Policies) -> str:
    """Return a block without its secrets; line by line, so that none of its tags can be part of one."""
    return "\n".join(hidden(line, policies) for line in block.split("\n"))


def _holds_secret(block: str, policies: Policies) -> bool:
    """Say whether a block holds what is known as a secret by now; each is looked through once a process."""
    digest = blake2b(block.encode("utf-8", "replace"), digest_size=16).digest()
    if not policies.redaction.enabled or digest in _looked_through:
        return False
    if _hidden(block, policies) != block:
        return True
    if len(_looked_through) >= _REMEMBERED:
        _looked_through.clear()
    _looked_through.add(digest)
    return False


def _top(conn: Connection, tables: Tables, setting: Setting) -> list[Memory]:
    """Return the most valuable memories that hold now, what looks like orders to a model left out.

    Where each turn shows what is always in mind, that is left to the turn.
    """
    wanted = setting.policies.prompt.memories
    filters = _filters(setting)
    top: list[Memory] = []
    last = None
    while len(top) < wanted:
        page = memories.listed(conn, tables, setting, filters, wanted, "importance", last)
        if not snapshots.hold_memories(conn, tables, setting.scope, [memory.id for memory in page]):
            return _top(conn, tables, setting)  # one of them was erased this very moment
        top += [memory for memory in page if not memory.suspicions]
        if len(page) < wanted:
            break
        last = page[-1].id
    return top[:wanted]


def _filters(setting: Setting) -> Filters:
    filters = filtering.check({}, setting.zone, project=setting.scope.project)
    return replace(filters, core=False) if setting.policies.prompt.turn else filters


# -- the block of a turn


def _turn(context: Context, name: str, text: str | None) -> Steps[str]:
    shown = yield from read(snapshots.shown, context.scope, name, _key(context))
    said = (yield from read(_newest_said, context.setting(), name)) if text is None else text
    core = yield from recalling.core(context, None)
    relevant: Sequence[Memory] = ()
    if said.strip():
        relevant = (yield from recalling.relevant(context, said, None)).memories
    block = blocks.turn(
        [memory for memory in core if memory.id not in shown],
        [memory for memory in relevant if memory.id not in shown],
        user=context.scope.user,
        budget=context.policies.prompt.budget,
    )
    return block.text


def _newest_said(conn: Connection, tables: Tables, setting: Setting, name: str) -> str:
    """Return the text of the newest message of the user's, empty where there is none."""
    conversation = conversations.seen(conn, tables, setting, name)
    said = messages.newest(conn, tables, conversation, 1, role="user") if conversation else []
    return said[0].text if said else ""
