"""From messages to what is stored: digests, token counts and index terms; and what of a batch is there already.

Pure. Messages are kept as they are given; their index terms are made of the text without its secrets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda import tokens
from memoranda.drafts import Setting, hidden
from memoranda.messages import Message
from memoranda.messages import forms as message_forms
from memoranda.scope import author_cell
from memoranda.text import clean, join_terms

_SEARCHED = ("user", "assistant")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # its terms are the words of the text
class MessageDraft:
    """A message as it is about to be stored."""

    message: Message
    key: str | None
    digest: str
    content: str
    """What a person would read of it, as a database can hold it."""
    body: str
    payload: str | None
    tokens: int
    cells: str
    """The index terms of who may see it; empty where nobody searches for it."""
    content_terms: str
    length: int
    """The number of indexed terms."""
    said_in: Mapping[str, Any]
    """What narrows the scope it is said in; see `Scope.narrowing`."""


def draft(message: Message, setting: Setting, index: int | None = None) -> MessageDraft:
    """Complete a checked message.

    Raises:
        InvalidInput: something in it cannot be stored; names the row of a batch.
    """
    scope, content = setting.scope, clean(message.text)
    searched = message.role in _SEARCHED and not content.isspace() and content != ""
    terms = join_terms(setting.tokenizer.terms(hidden(content, setting.policies))) if searched else ""
    return MessageDraft(
        message=message,
        key=message_forms.key(message),
        body=message_forms.body(message, index),
        payload=message_forms.payload(message, index),
        digest=message_forms.digest(message),
        content=content,
        tokens=tokens.of_message(message),
        cells=join_terms([author_cell(scope.tenant, scope.persona, scope.author)]) if searched else "",
        content_terms=terms,
        length=len(terms.split()),
        said_in=scope.narrowing,
    )


def overlap(end: Sequence[object], batch: Sequence[object]) -> int:
    """Return the largest number of items that stand at the end of one sequence and at the beginning of another."""
    # The prefix function of Knuth, Morris and Pratt, over the batch and what comes before it: linear in both.
    fails = [0] * len(batch)
    length = 0
    for i in range(1, len(batch)):
        while length and batch[i] != batch[length]:
            length = fails[length - 1]
        length += batch[i] == batch[length]
        fails[i] = length
    length = 0
    for item in end:
        while length and (length == len(batch) or item != batch[length]):
            length = fails[length - 1]
        length += bool(batch) and item == batch[length]
    return length
