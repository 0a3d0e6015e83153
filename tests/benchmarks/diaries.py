"""Measure recall from words alone in Chinese, Japanese and Korean: a made-up diary and questions about it.

    python tests/benchmarks/diaries.py --backend sqlite

A language is lists of people, places and kinds of events (`diary_words.py`), put together from a seed. An entry tells
who, where and what; a question names two of the three in other words and asks for the third. Each of the two stands in
dozens of entries and only one entry has both in an event of that kind. Beside the engine stands what BM25 finds when a
run of characters between two signs is one word, as tokenizers made for spaces read such texts.
"""

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from string import Formatter
from typing import Any

from diary_words import LANGUAGES, Language

from memoranda import MemoryEngine
from memoranda.testing.postgres import temporary_server

ENTRIES, QUESTIONS = 500, 100
FIRST_DAY = datetime(2024, 1, 1, 20, tzinfo=UTC)
DISTRACTORS = 12
"""Other entries, at least, that have one of the two things a question names."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A day of the diary."""

    text: str
    when: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the place of the one entry that answers it."""

    text: str
    answer: int


@dataclass(frozen=True, slots=True)
class _Event:
    kind: int
    who: int
    where: int
    what: int

    def shares(self, other: "_Event", given: Sequence[str]) -> int:
        """Return how many of the things named both have; what can be done differs from kind to kind."""
        return sum(
            getattr(self, name) == getattr(other, name) and (name != "what" or self.kind == other.kind)
            for name in given
        )


def diary(language: str, seed: int = 1) -> tuple[list[Entry], list[Question]]:
    """Make up the entries and the questions, the same for the same seed."""
    draw, words = random.Random(seed), LANGUAGES[language]
    events: dict[_Event, None] = {}
    while len(events) < ENTRIES:
        kind = draw.randrange(len(words.kinds))
        who, where = draw.randrange(len(words.people)), draw.randrange(len(words.places))
        events[_Event(kind, who, where, draw.randrange(len(words.kinds[kind].things)))] = None
    told = list(events)
    entries = [_entry(words, event, FIRST_DAY + timedelta(days=day), draw) for day, event in enumerate(told)]
    questions: list[Question] = []
    for place in draw.sample(range(ENTRIES), ENTRIES):
        event = told[place]
        template = draw.choice(words.kinds[event.kind].questions)
        given = [name for _, name, _, _ in Formatter().parse(template) if name]
        shared = Counter(event.shares(other, given) for other in told if other is not event)
        twins = [o for o in told if o.kind == event.kind and o is not event and event.shares(o, given) == len(given)]
        if twins or shared[1] < DISTRACTORS:
            continue
        questions.append(Question(template.format(**_named(words, event, asked=True)), place))
        if len(questions) == QUESTIONS:
            return entries, questions
    raise AssertionError("the lists are too short for so many questions")


def _entry(words: Language, event: _Event, when: datetime, draw: random.Random) -> Entry:
    told = draw.choice(words.kinds[event.kind].entries).format(**_named(words, event, asked=False))
    parts = (words.date.format(month=when.month, day=when.day), told, draw.choice(words.asides))
    return Entry(words.between.join(parts), when)


def _named(words: Language, event: _Event, *, asked: bool) -> dict[str, str]:
    """Return who, where and what as the diary spells them, or as a question does."""
    things = words.kinds[event.kind].things
    return {
        "who": words.people[event.who][asked],
        "where": words.places[event.where][asked],
        "what": things[event.what][asked],
    }


# -- what others would find


def runs(text: str) -> list[str]:
    """Return the words of a text as a tokenizer for spaced languages sees them: runs of letters and digits."""
    return re.findall(r"\w+", text.lower())


def found_by_words(
    tokens: Callable[[str], Sequence[str]], entries: Sequence[Entry], questions: Sequence[Question]
) -> float:
    """Return the share of questions whose entry is among the five best by BM25 over such tokens."""
    texts = [Counter(tokens(entry.text)) for entry in entries]
    sizes = [sum(text.values()) for text in texts]
    usual, frequency = sum(sizes) / len(sizes), Counter(token for text in texts for token in text)
    hits = 0
    for question in questions:
        scores = [0.0] * len(texts)
        for token in dict.fromkeys(tokens(question.text)):
            worth = log(1 + (len(texts) - frequency[token] + 0.5) / (frequency[token] + 0.5))
            for place, text in enumerate(texts):
                if count := text[token]:
                    scores[place] += worth * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * sizes[place] / usual))
        best = sorted(range(len(texts)), key=lambda place: -scores[place])[:5]
        hits += question.answer in best and scores[question.answer] > 0
    return hits / len(questions)


# -- the engine


def ask(me: Any, questions: Sequence[Question], ids: Sequence[Any]) -> tuple[dict[str, float], list[Question]]:
    """Ask a persona that holds the diary; return the figures and the questions it has no answer to."""
    at, missed, abstained = Counter[int](), [], 0
    for question in questions:
        answer = me.recall(question.text, limit=10)
        abstained += answer.abstained
        place = next((n for n, hit in enumerate(answer) if hit.id == ids[question.answer]), None)
        if place is None or place >= 5:
            missed.append(question)
        if place is not None:
            at[place] += 1
    figures = {f"any@{k}": sum(at[place] for place in range(k)) / len(questions) for k in (1, 5, 10)}
    return figures | {"abstained": abstained / len(questions)}, missed


def write(me: Any, entries: Sequence[Entry]) -> list[Any]:
    """Store the diary and return the ids of its entries."""
    written = me.memories.write_many([{"content": entry.text, "event_time": entry.when} for entry in entries])
    return [result.memory.id for result in written]


def main() -> None:
    """Measure every language and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seeds", type=int, default=5, help="diaries a language (default %(default)s)")
    parser.add_argument("--language", choices=sorted(LANGUAGES), help="one instead of all")
    parser.add_argument("--missed", action="store_true", help="print the questions without an answer")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if arguments.backend == "sqlite":
            url = f"sqlite:///{Path(folder) / 'diaries.db'}"
        else:
            url = stack.enter_context(temporary_server()).url()
        engine = stack.enter_context(MemoryEngine(url, embedder="none", background="off"))
        engine.setup()
        for language in [arguments.language] if arguments.language else LANGUAGES:
            for seed in range(1, arguments.seeds + 1):
                entries, questions = diary(language, seed)
                me = engine.persona(f"{language}-{seed}")
                ids = write(me, entries)
                figures, missed = ask(me, questions, ids)
                figures["a run one word: any@5"] = found_by_words(runs, entries, questions)
                line = "  ".join(f"{name} {value:.2f}" for name, value in figures.items())
                sys.stdout.write(f"{language}, seed {seed}:  {line}\n")
                for question in missed if arguments.missed else ():
                    sys.stdout.write(f"    {question.text}\n      {entries[question.answer].text}\n")


if __name__ == "__main__":
    main()
