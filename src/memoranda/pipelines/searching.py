"""How past messages are searched: by the words of a text, through the same candidates as a recall."""

from memoranda.db.queries import message_search
from memoranda.db.queries.candidates import Question
from memoranda.effects import Steps, read
from memoranda.errors import InvalidInput
from memoranda.filters import Filters
from memoranda.pipelines.context import Context, opened
from memoranda.pipelines.recalling import checked_limit, proposing, without_secrets
from memoranda.policies import RankingPolicy
from memoranda.reports import Found
from memoranda.text import words

_AROUND = 10
"""The most messages given on either side of a match."""


def search(context: Context, text: str, limit: int | None, around: int) -> Steps[list[Found]]:
    """Return the past messages of the scope that say a word of a text, best first.

    A conversation answers a question in the turn after the one that asks it: whatever the persona's ranking is, this
    one lets the turns beside a message speak for it.

    Raises:
        InvalidInput: an argument cannot be used.
    """
    if not isinstance(text, str):
        raise InvalidInput("text must be a string", field="text")
    wanted = checked_limit(limit, context.policies.limit)
    if isinstance(around, bool) or not isinstance(around, int) or not 0 <= around <= _AROUND:
        raise InvalidInput(f"around must be a whole number from 0 to {_AROUND}", field="around")
    asked = without_secrets(text, context)
    yield from opened(context)
    question = Question(
        kind="message",
        text=asked,
        terms=tuple(context.tokenizer.query_terms(asked)),
        words=words(asked),
        vector=None,
        model=None,
        scope=context.scope,
        visibility=context.policies.visibility,
        ranking=proposing(RankingPolicy(), wanted),
        filters=Filters(),
        now=context.setting().now,
    )
    if not question.terms:
        return []
    return (yield from read(message_search.search, question, wanted, around))
