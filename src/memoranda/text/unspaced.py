"""Ask for words in scripts that do not part them: Chinese, Japanese, Korean, Thai and their neighbours.

Such texts are indexed by pairs of neighbouring characters. A question has many pairs that no text can have, where two
of its words meet, and one unknown word makes three of them. So a question is first cut where words part for certain: at
function words, and in Japanese where kana end and a word begins. What is left counts by its characters.
"""

import re
from collections.abc import Iterator, Sequence

from memoranda.text.characters import HAN, HANGUL, HIRAGANA, KATAKANA
from memoranda.text.stop_words import ENDINGS, KEPT_STRINGS, PARTICLES, STOP_RUNS, STOP_STRINGS

UNKNOWN_CHARACTER = 0.35
"""What a character counts that stands in nothing anybody has said, against a word nobody has said: two make a word, and
for a part of the words others were said or other forms, since nothing here is stemmed. Measured on diaries, from .25 to
.5: figures in tests/benchmarks/RESULTS.md."""

UNKNOWN_PAIR = 0.25
"""The same of a pair of letters (kana, Thai and their neighbours): each letter has been said, most pairs are seams."""


def _either(strings: str) -> str:
    return "|".join(sorted(strings.split(), key=len, reverse=True))


# A question ends with 吧, where 酒吧 is a bar; 何 asks before kana, and is a name before Han.
_PARTING = re.compile(f"({_either(KEPT_STRINGS)})|{_either(STOP_STRINGS)}|[吗嗎呢吧啊呀嘛]$|何(?=[{HIRAGANA}])")
_BLOCKS = re.compile(
    f"(?P<han>[{HAN}]+)|(?P<kana>[{HIRAGANA}]+)|[{KATAKANA}]+|(?P<hangul>[{HANGUL}]+)|.+?(?=[{HAN}]|$)"
)
_ENDING = re.compile(f"(?<=[{HANGUL}])(?:{_either(ENDINGS)})$")
_SHORT = 2  # kana: more of them are hardly a part of another word
_STOP_RUNS = frozenset(STOP_RUNS.split())
_ENCODED = re.compile(" x(?:3[9a-z]|41[0-6])")  # in base 36: kana and Han from 9, the later Hangul from 10 to 16
_OF_WORDS = re.compile(f"[{HAN}{KATAKANA}{HANGUL}]+")
_HIRAGANA = re.compile(f"[{HIRAGANA}]+")


def pairs(run: str) -> list[str]:
    """Return the pairs of neighbouring characters of a run, or the one character that it is."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def asked_of(run: str) -> Iterator[str]:
    """Yield what a run of a query asks for: pairs, and single characters that are words or stems."""
    if run in _STOP_RUNS:
        return
    parts = list(_parts(_ENDING.sub("", run)))
    asked = [token for part in parts for token in _asked_of(part, alone=part == run)]
    # A word of kana may look like function words and a rest: better seams than nothing to look for.
    yield from asked or (pairs(run) if parts else ())


def _asked_of(part: str, *, alone: bool) -> Iterator[str]:
    last = ""
    for block in _BLOCKS.finditer(part):
        text = block[0]
        if block["kana"]:
            yield from _kana(text, last)
        elif len(text) > 1 or block["han"] or block["hangul"] or (alone and text == part):
            yield from pairs(text)  # a single one of other letters is indexed only where it stands alone
        if block["hangul"] and len(text) == 2 and text[1] in PARTICLES["korean"]:
            yield text[0]
        last = text[-1] if block["han"] else ""


def _kana(kana: str, before: str) -> Iterator[str]:
    """Yield what hiragana asks for: as an ending no more than its beginning, as a word of its own its pairs."""
    if before:
        if kana[0] not in PARTICLES["japanese"]:
            yield before + kana[0]
            return
        kana = kana[1:]
    if len(kana) > 1:
        yield from pairs(kana)


def _parts(run: str) -> Iterator[str]:
    """Yield what stands between function words."""
    start = 0
    for found in _PARTING.finditer(run):
        if found[1] or _is_inside_kana(run, found):
            continue
        if found.start() > start:
            yield run[start : found.start()]
        start = found.end()
    if start < len(run):
        yield run[start:]


def _is_inside_kana(run: str, found: re.Match[str]) -> bool:
    """Tell whether kana go on around kana: what looks like a particle or an ending is a part of a word there."""
    before, after = run[found.start() - 1 : found.start()] if found.start() else "", run[found.end() : found.end() + 1]
    if len(found[0]) > _SHORT or not _HIRAGANA.fullmatch(found[0]) or not _HIRAGANA.fullmatch(after):
        return False
    return bool(_HIRAGANA.fullmatch(before)) or (not before and after not in PARTICLES["japanese"])


def is_unspaced(terms: str) -> bool:
    """Tell whether a string of `join_terms` has Chinese, Japanese or Korean terms."""
    return _ENCODED.search(terms) is not None


def unknown_words(tokens: Sequence[str], said: Sequence[str]) -> float:
    """Return how many words' worth of a question nobody has said.

    Args:
        tokens: Pairs and characters that no text has.
        said: Those that some text has.
    """
    known = frozenset("".join(said))
    words = [token for token in tokens if _OF_WORDS.fullmatch(token)]
    unknown = {character for token in words for character in token if character not in known}
    return UNKNOWN_CHARACTER * len(unknown) + UNKNOWN_PAIR * (len(tokens) - len(words))
