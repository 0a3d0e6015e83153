"""Look through the newest messages of a conversation for what should be known of the user, and what happened."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import Any

from memoranda import salvage
from memoranda.dimensions import CONTENT_LIMIT, RECOMMENDED
from memoranda.prompts.answers import BROKEN_OFF, Answer, Proposal, Scale, Words, counts_to_one, valid
from memoranda.prompts.material import DATA, Said, known, transcript, user_model
from memoranda.protocols import Completion, PromptMessage
from memoranda.records import Dimension, Memory

VERSION = "review/1"

_TASK = """\
You look through the newest messages of a conversation, after the fact, for what its assistant should have noted. \
Nobody reads your answer: it is written to the assistant's memory as it is, so propose only what you are sure of.

{data}

Two things can be noted:

1. user_model: lasting facts, preferences, ways of working, feedback and goals of the user, by dimension. The block \
`user-model` shows every dimension as it is. What you give replaces the whole text of a dimension, so return all that \
still holds of it together with what is new, never the new part alone, in at most {dimension} characters. Leave a \
dimension out that does not change. Usual dimensions: {recommended}; others are welcome.
2. memories: what happened, was decided or planned: one statement in one sentence that is understood alone, with names \
instead of "he" or "it". What is true of the user in general belongs into user_model, not here.

Leave out whatever the blocks `user-model` and `known` say already, in any words, small talk, passing details, \
guesses, and what the assistant alone has said. Never note a password, a key or any other secret, nor a mark such as \
[REDACTED:credential]. Invent nothing. Give absolute dates: each line of the transcript begins with its number, the \
day it was said, and who said it. Write in the language of the conversation.

confidence: 1 to 10, how sure you are that the user would agree it should be noted, in these words; under {least} it \
is dropped. importance: 1 to 10; 5 is usual. category: a word or two. date: the day of the event, YYYY-MM-DD, or null. \
message: the number of the message it was taken from.
{about}
Answer with JSON only: {{"user_model": [{{"dimension", "content", "confidence"}}], "memories": [{{"content", \
"category", "importance", "confidence", "date", "message"}}]}}, with empty lists where there is nothing to note."""
_NO_LIST = "What the model's answer names is no list of items."
_ABOUT = "about, of a memory: whom it concerns, one of: {subjects}.\n"


class Rewrite(Answer):
    """The whole new text of a dimension."""

    dimension: Words
    content: Words
    confidence: Scale = None


class Findings(Answer):
    """What the model is to answer."""

    user_model: list[Rewrite]
    memories: list[Proposal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a model has found."""

    rewrites: Sequence[Rewrite] = field(default=(), repr=False)
    memories: Sequence[Proposal] = field(default=(), repr=False)
    unusable: int = 0
    problem: str | None = None
    """Why the answer is not known; nothing of it is used then."""


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the answer."""
    return Findings.model_json_schema()


def build_messages(
    said: Sequence[Said],
    *,
    nonce: str,
    today: date,
    characters: int,
    least: int,
    memories: Sequence[Memory],
    dimensions: Sequence[Dimension],
    subjects: Sequence[str] = (),
) -> list[PromptMessage]:
    """Return what the model is asked.

    Args:
        said: The messages, redacted.
        nonce: Of the tags around what is data.
        today: The user's own day.
        characters: Of the messages, at most.
        least: The confidence under which nothing is applied.
        memories: Those of most weight, and those saved lately.
        dimensions: The user model, verbatim.
        subjects: Whom a statement can be about, where it must say so.
    """
    parts = [
        f"Today is {today.isoformat()}.",
        user_model(dimensions, nonce),
        known(memories, nonce),
        transcript(said, nonce, characters=characters),
    ]
    task = _TASK.format(
        data=DATA,
        dimension=f"{CONTENT_LIMIT:,}",
        recommended=", ".join(RECOMMENDED),
        least=least,
        about=_ABOUT.format(subjects=", ".join(subjects)) if subjects else "",
    )
    return [{"role": "system", "content": task}, {"role": "user", "content": "\n\n".join(parts)}]


def read(completion: Completion) -> Found:
    """Return what the model proposes; nothing where its answer is not whole, for half a dimension would pass as one."""
    found = salvage.read_object(completion.text, fields=("user_model", "memories"))
    if found.failed or completion.cut or not found.complete:
        return Found(problem=BROKEN_OFF if completion.cut or not found.failed else found.problem)
    dimensions = _by_name(found.value.get("user_model", []))
    memories = found.value.get("memories", [])
    if not isinstance(dimensions, list) or not isinstance(memories, list):
        return Found(problem=_NO_LIST)
    to_one = counts_to_one((*dimensions, *memories))
    rewrites, proposals = valid(dimensions, Rewrite, to_one), valid(memories, Proposal, to_one)
    unusable = len(dimensions) + len(memories) - len(rewrites) - len(proposals)
    return Found(rewrites=rewrites, memories=proposals, unusable=unusable)


def _by_name(dimensions: Any) -> Any:
    """Return as a list what a model gives as an object of texts, or of items, by dimension; anything else as it is."""
    if not isinstance(dimensions, dict):
        return dimensions
    if isinstance(dimensions.get("dimension"), str):
        return [dimensions]
    return [
        {"dimension": name} | (text if isinstance(text, dict) else {"content": text})
        for name, text in dimensions.items()
    ]
