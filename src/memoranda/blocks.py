"""The blocks of a prompt: what a model is shown of memories, of its user and of what was said before.

A block is data in one fence, see `memoranda.fencing`: headings of ours, and a line for each thing that is remembered.
The same records and nonce give the same bytes. What looks like an order to a model is in no block.

No block holds a brace of ASCII: `fencing.without_braces` has put the full-width one in its place. So a block may be the
content of a message and may as well stand in a template of `str.format`, Jinja or mustache, as frameworks make them:
none of these finds anything in it to fill in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from memoranda import tokens
from memoranda.fencing import fence, steady_nonce, without_braces
from memoranda.records import Dimension, Memory
from memoranda.rendering import dimension_line, one_line
from memoranda.suspicion import suspicions

TOP_MEMORIES = "## Top memories for this persona"
USER_MODEL = "## User model (call `user_model_write` to update a dimension)"
CORE = "## Always in mind"
RELEVANT = "## What this turn brings up"
SUMMARY = "## Summary of the conversation so far"
WITHHELD = "(not shown: it reads like an order to a model)"
"""What stands for a text that no model is to read where its place cannot be left empty."""
_NOT_SHOWN = "[{} more not shown: recall finds them]"


@dataclass(frozen=True, slots=True)
class Block:
    """A block and what it shows."""

    text: str = field(repr=False)
    """Empty when there is nothing to show."""
    tokens: int
    """About how many a model reads."""
    shown: tuple[UUID, ...] = ()
    """The memories whose lines are in it."""


class _Line(NamedTuple):
    """A line, the heading it stands under, and the memory it shows."""

    heading: str
    text: str
    memory: UUID


_EMPTY = Block("", 0)


def frozen(memories: Sequence[Memory], dimensions: Sequence[Dimension], *, nonce: str, budget: int) -> Block:
    """Return the block of a snapshot.

    Args:
        memories: The most valuable first; those that do not fit are left out from the end, and the block says so.
        dimensions: What is known of the user, where it is frozen with the memories; all of it is shown.
        nonce: Eight hexadecimal digits that stay with the snapshot.
        budget: Tokens of the whole block; the dimensions may exceed it.
    """
    lines = [_Line(TOP_MEMORIES, memory_line(memory), memory.id) for memory in memories if not memory.suspicions]
    return _fitted("snapshot", lines, "\n".join(_dimensions(dimensions)), budget, nonce)


def turn(core: Sequence[Memory], relevant: Sequence[Memory], *, user: str | None, budget: int) -> Block:
    """Return the block of one turn: what is always in mind, then what the turn brings up.

    Args:
        core: The most valuable first; they stay in the block longer than what is relevant.
        relevant: The most relevant first; what is in `core` is not repeated.
        user: Who speaks: what a line is about is said where it is about somebody else.
        budget: Tokens of the whole block.
    """
    known = {memory.id for memory in core}
    parts = ((CORE, core), (RELEVANT, [memory for memory in relevant if memory.id not in known]))
    lines = [
        _Line(heading, _statement_line(memory, user), memory.id)
        for heading, memories in parts
        for memory in memories
        if not memory.suspicions
    ]
    return _fitted("turn", lines, "", budget)


def user_model(dimensions: Sequence[Dimension]) -> str:
    """Return the block of what is known of the user, all of it; empty when nothing is."""
    body = "\n".join(_dimensions(dimensions))
    return _fenced("user-model", body) if body else ""


def summary(text: str) -> str:
    """Return the block of what is left of folded messages; empty when nothing is."""
    lines = [WITHHELD if suspicions(line) else line for line in text.splitlines()]
    return _fenced("summary", "\n".join([SUMMARY, *lines])) if text.strip() else ""


# -- lines


def memory_line(memory: Memory) -> str:
    """Return `- [category, imp=5] text`; what has no category is `general`."""
    return f"- [{one_line(memory.category or '') or 'general'}, imp={memory.importance}] {_text(memory)}"


def _statement_line(memory: Memory, user: str | None) -> str:
    # The id is there so that a statement can be corrected in the turn it comes up.
    speaks = memory.about in ("", "everyone", f"person:{user}")
    return f"- {'' if speaks else f'({one_line(memory.about)}) '}{_text(memory)} [{memory.short_id}]"


def _text(memory: Memory) -> str:
    return one_line(f"{memory.title}: {memory.content}" if memory.title else memory.content)


def _dimensions(dimensions: Sequence[Dimension]) -> list[str]:
    if not dimensions:
        return []
    lines = [dimension_line(dimension) for dimension in dimensions]
    for number, dimension in enumerate(dimensions):
        if suspicions(dimension.content):
            lines[number] = f"- [{dimension.dimension}, conf={dimension.confidence}] {WITHHELD}"
    return [USER_MODEL, *lines]


# -- blocks


def _fitted(kind: str, lines: Sequence[_Line], rest: str, budget: int, nonce: str | None = None) -> Block:
    """Return the block of the lines that fit and of the rest, which stays whatever it takes."""
    if not lines and not rest:
        return _EMPTY
    # Parts are counted up: of a text in parts no fewer tokens are counted than of the whole.
    headings = "\n".join(dict.fromkeys(line.heading for line in lines))
    room = budget - tokens.count(_fenced(kind, f"{headings}\n{rest}", nonce))
    costs = [tokens.count(f"{without_braces(line.text)}\n") for line in lines]
    if sum(costs) > room:
        room -= tokens.count(f"{_NOT_SHOWN.format(len(lines))}\n")
    # A line that is longer than the room for all of them must not take the others with it.
    possible = [(line, cost) for line, cost in zip(lines, costs, strict=True) if cost <= room]
    filled = accumulate(cost for _, cost in possible)
    chosen = [line for (line, _), total in zip(possible, filled, strict=True) if total <= room]
    text = _fenced(kind, _body(chosen, len(lines) - len(chosen), rest), nonce)
    return Block(text, tokens.count(text), tuple(line.memory for line in chosen))


def _body(lines: Sequence[_Line], left_out: int, rest: str) -> str:
    body: list[str] = []
    heading = ""
    for line in lines:
        if line.heading != heading:
            heading = line.heading
            body.append(heading)
        body.append(line.text)
    if left_out:
        body.append(_NOT_SHOWN.format(left_out))
    return "\n".join([*body, rest] if rest else body)


def _fenced(kind: str, body: str, nonce: str | None = None) -> str:
    return without_braces(fence(kind, body, nonce=nonce or steady_nonce(kind, body)))
