"""The story that `memoranda demo` tells, and what happens in it: each scene is what the engine has just done.

The turns of the first half ship with the package in `story.jsonl`, in the format that `memoranda write -` reads. The
second half is one conversation with an agent. Where that needs a language model, it is a scripted one: its answers
stand below. Everything else is computed.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from memoranda.messages import Message
    from memoranda.persona import Persona
    from memoranda.records import Memory, Recall
    from memoranda.reports import Compacted, Ingested

T = TypeVar("T")

QUESTIONS = (
    ("What is Noor allergic to?", "Five sessions, one answer."),
    ("What does ERR-7F3A/9 mean?", "Codes stay whole: no tokenizer cuts them to pieces."),
    ("Who damaged the antenna cable?", "The turns of one conversation speak for each other."),
    ("センサーの納期はいつですか。", "“When will the sensors be delivered?” The supplier writes in Japanese."),
    ("What did the insurance cost?", "Nobody ever said. Then nothing is the right answer."),
)
MOVING = "When is the open day?"
CORRECTION = "The open day is on Saturday 10 May, because the bridge road stays closed until then."
CORRECTED_ON = datetime(2025, 4, 22, tzinfo=UTC)
EARLIER = datetime(2025, 4, 1, tzinfo=UTC)
_HITS = 2

TALK, LATER = "open-day", "a-week-later"
"""The names of the conversations."""
_TALKED_ON = datetime(2025, 4, 23, 8, tzinfo=UTC)
SAID = (
    "Good morning. What is still missing for the open day?",
    "The cake, the photographs and somebody who presses the button.",
    "The cake is ordered since this morning, at the bakery Aurora, for 48 euros.",
    "Good. Without hazelnuts, I hope?",
    "Of course. And Samir may fly his drone over the river: the town hall agreed today.",
    "Then the photographs are settled, too.",
    "The mayor is in Brussels that day. Dona Célia presses the button instead.",
    "She has no phone, but she has a finger. A good choice.",
    "How loud is the siren, by the way?",
    "Nobody has measured it yet.",
)
"""What Noor and her agent say, in turns."""
MEANWHILE = "Teodor measured the siren on 23 April 2025: 96 decibels at ten metres."
SCRIPT = (
    json.dumps(
        {
            "memories": [
                {
                    "content": "On 23 April 2025 Noor ordered the cake for the open day at the bakery Aurora.",
                    "category": "event",
                    "importance": 8,
                    "date": "2025-04-23",
                },
                {
                    "content": "The town hall agreed on 23 April 2025 that Samir may fly his drone over the river.",
                    "category": "decision",
                    "importance": 7,
                    "date": "2025-04-23",
                },
                {
                    "content": "Dona Célia presses the button on the open day, because the mayor is in Brussels.",
                    "category": "plan",
                    "importance": 8,
                    "date": "2025-05-10",
                },
            ]
        }
    ),
    "Noor prepares the open day on 10 May 2025. The cake is ordered at the bakery Aurora, Samir may fly his drone, and "
    "Dona Célia presses the button in place of the mayor.",
)
"""What the scripted model answers when it is asked for memories, and when it is asked for a summary."""
AFTERWARDS = "Where was the cake for the open day ordered?"
SOURCE = "gauge-manual"
MANUAL = """# Gauge manual

## Cleaning

Spiders like the warm sensor. The webs are removed with a dry brush, twice a year: water makes the membrane swell.

## Battery

The battery is changed every four years. Open the clay pot with the wooden key, not with a hammer.
"""
LOOKED_UP = "How are the webs of spiders removed from the sensor?"


def story() -> list[dict[str, Any]]:
    """Return the turns of the story, in order."""
    text = files("memoranda.cli").joinpath("story.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


# -- what happens


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The story was stored."""

    turns: list[dict[str, Any]]
    embedder: str | None
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question was answered."""

    question: str
    note: str
    recall: "Recall"
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A fact was replaced."""

    old: "Memory"
    new: "Memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What replaced what."""

    memories: "list[Memory]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Talked:
    """A conversation was stored."""

    messages: "list[Message]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A conversation was compacted."""

    compacted: "Compacted"
    saved: "list[Memory]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The frozen block of a conversation at one moment."""

    when: str
    sha256: str
    bytes: int
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The frozen block of a conversation, again and again."""

    blocks: list[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A document was taken in."""

    ingested: "Ingested"


Scene = Stored | Asked | Corrected | Chain | Talked | Folded | Blocks | Read


def play(persona: "Persona") -> Iterator[Scene]:
    """Tell the story to an empty persona."""
    yield from _remembered(persona)
    yield from _talked(persona)
    ingested = persona.knowledge.ingest(SOURCE, text=MANUAL, media_type="text/markdown")
    yield Read(ingested=ingested[0])
    yield _asked(persona, LOOKED_UP, "Documents never enter the prompt by themselves; a recall finds them.")


def _remembered(persona: "Persona") -> Iterator[Scene]:
    """Store the turns, ask, correct and ask again."""
    turns = story()
    _, milliseconds = _timed(lambda: persona.memories.write_many(turns))
    yield Stored(turns=turns, embedder=persona.stats().embedder, milliseconds=milliseconds)
    for question, note in QUESTIONS:
        yield _asked(persona, question, note)
    before = _asked(persona, MOVING, "Before the correction.")
    yield before
    if not before.recall:  # an embedder of the caller's own may see it otherwise
        return
    written = persona.memories.supersede(before.recall.memories[0].id, CORRECTION, event_time=CORRECTED_ON)
    yield Corrected(old=written.superseded or before.recall.memories[0], new=written.memory)
    yield _asked(persona, MOVING, "After it: the old date is out of every answer.")
    yield _asked(persona, MOVING, f"As of {EARLIER:%Y-%m-%d}: what was known then.", as_of=EARLIER)
    yield Chain(memories=persona.memories.history(written.id))


def _talked(persona: "Persona") -> Iterator[Scene]:
    """Have a conversation, fold it, and look at the block of its prompt at every step."""
    from memoranda.messages import Message
    from memoranda.policies import CompactionPolicy
    from memoranda.testing import ScriptedModel

    chat = persona.conversation(TALK)
    blocks: list[Block] = []

    def look(when: str) -> None:
        block = chat.system_block().encode()
        digest = hashlib.sha256(block).hexdigest()
        changed = bool(blocks) and blocks[-1].sha256 != digest
        blocks.append(Block(when=when, sha256=digest, bytes=len(block), changed=changed))

    look("before the first message")
    said = [
        Message(
            role="assistant" if number % 2 else "user",
            content=text,
            created_at=_TALKED_ON + timedelta(minutes=number),
        )
        for number, text in enumerate(SAID)
    ]
    yield Talked(messages=chat.append(said))
    persona.memories.write(MEANWHILE, importance=9)
    look("ten messages, one new memory")
    known = {memory.id for memory in persona.memories.list(limit=1000)}
    compacted = chat.compact(CompactionPolicy(keep_tokens=15), model=ScriptedModel(SCRIPT, name="demo/scripted"))
    saved = [memory for memory in persona.memories.list(limit=1000) if memory.id not in known]
    yield Folded(compacted=compacted, saved=saved)
    look("after the compaction")
    yield Blocks(blocks=blocks)
    persona.conversation(LATER).append("Where was the cake ordered?")
    yield _asked(persona, AFTERWARDS, "In a new conversation, a week later: what the flush has saved is there.")


def _asked(persona: "Persona", question: str, note: str, **filters: Any) -> Asked:
    recall, milliseconds = _timed(lambda: persona.recall(question, limit=_HITS, **filters))
    return Asked(question=question, note=note, recall=recall, milliseconds=milliseconds)


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    return call(), (time.perf_counter() - start) * 1000
