"""Save what matters of messages that leave a model's sight: one call, whose answer is a list of memories."""

from collections.abc import Collection, Sequence
from datetime import date
from functools import cache
from itertools import groupby
from typing import Any

from memoranda.prompts.answers import Answer, Proposal, Read, items
from memoranda.prompts.material import DATA, Said, known, transcript, user_model
from memoranda.protocols import Completion, PromptMessage
from memoranda.records import Dimension, Memory

VERSION = "flush/1"

_TASK = """\
You read a part of a conversation that is about to leave the memory of the assistant who took part in it. Save what a \
later conversation would want to know of it: what you do not save, nobody will remember.

{data}

Save what happened and when, decisions with their reasons, agreed plans and open tasks, milestones, procedures that \
were found to work, and lasting facts about people, projects and tools. Of something that was corrected, save how it \
stands at the end.

Leave out small talk, passing details, code, what anyone could look up, and whatever the blocks `known` and \
`user-model` say already, in any words. Never save a password, a key or any other secret, nor a mark such as \
[REDACTED:credential]. Invent nothing: every item was said in the transcript, in so many words.

The fields of an item:
- content: one statement in one sentence that is understood alone, years later: names instead of "he", "it" or \
"there", and absolute dates. Each line of the transcript begins with its number, the day it was said, and who said it; \
turn "yesterday" or "next Friday" into the date it was. Write in the language of the conversation.
- What the assistant said is the assistant's statement, not the user's: "The assistant recommended ...", unless the \
user took it up.
- category: a word or two, such as event, decision, project, plan or fact.
- type: episodic for an event, semantic for a fact, prospective for a plan, procedural for a way to do something, \
preference for a wish.
- importance: 1 to 10; 5 is usual, 8 and more only for what will matter for years.
- date: the day of the event as YYYY-MM-DD, null where there is none.
- message: the number of the message it was taken from.
{about}
At most {limit} items, the most important first. Answer with JSON only: {{"memories": [...]}}, and {{"memories": []}} \
if nothing is worth saving."""
_ABOUT = "- about: whom it concerns, one of: {subjects}.\n"


class Extraction(Answer):
    """What the model is to answer."""

    memories: list[Proposal]


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the answer."""
    return Extraction.model_json_schema()


def build_messages(
    said: Sequence[Said],
    *,
    nonce: str,
    today: date,
    characters: int,
    limit: int,
    memories: Sequence[Memory] = (),
    dimensions: Sequence[Dimension] = (),
    subjects: Sequence[str] = (),
    read_before: Collection[int] = (),
) -> list[PromptMessage]:
    """Return what the model is asked.

    Args:
        said: The messages, redacted.
        nonce: Of the tags around what is data; see `memoranda.fencing.new_nonce`.
        today: The user's own day.
        characters: Of the messages, at most.
        limit: How many items at most.
        memories: What was saved lately, by reviews, flushes and the agent itself: it is not to be saved again.
        dimensions: The user model.
        subjects: Whom a statement can be about, where it must say so.
        read_before: The positions of those that a review has read.
    """
    about = _ABOUT.format(subjects=", ".join(subjects)) if subjects else ""
    parts = [
        f"Today is {today.isoformat()}. The messages are from {_span(said)}.{_before(said, read_before)}",
        user_model(dimensions, nonce),
        known(memories, nonce),
        transcript(said, nonce, characters=characters),
    ]
    return [
        {"role": "system", "content": _TASK.format(data=DATA, about=about, limit=limit)},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def read(completion: Completion) -> Read[Proposal]:
    """Return the memories that the model proposes."""
    return items(completion, Proposal, under=("memories", "items"), fields=("content",))


def _before(said: Sequence[Said], read: Collection[int]) -> str:
    """Return what to say of messages that reviews have read: from where to where, without one that was not between."""
    runs = [list(run) for seen, run in groupby(said, key=lambda one: one.position in read) if seen]
    met = [f"{run[0].position} to {run[-1].position}" for run in runs]
    what = "what was worth saving of them is in `known` or `user-model` already"
    return f" Messages {', '.join(met)} were looked through before: {what}." if met else ""


def _span(said: Sequence[Said]) -> str:
    days = sorted({message.day for message in said})
    return f"{days[0].isoformat()} to {days[-1].isoformat()}" if len(days) > 1 else days[0].isoformat()
