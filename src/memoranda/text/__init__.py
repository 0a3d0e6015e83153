"""Turn text into the terms that both databases index, and into the words that embedders and rankers compare.

A text passes through three steps. `clean` is what is stored. `Tokenizer` cuts it into tokens (words stemmed,
identifiers kept whole and in parts, scripts without spaces as character pairs) and encodes each as ASCII that begins
with a letter, because both full-text engines would cut `c++` to `c` and split `err-7f3a/9`. `join_terms` writes the
tokens in the one format that every index and ranker reads: two spaces between, one before and after, so that
`terms.count(" token ")` is the exact frequency.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain

from memoranda.errors import ConfigurationError
from memoranda.text.characters import MARKS, SYLLABIC, UNSPACED, UNSPACED_CHARACTER, fold, normal
from memoranda.text.compounds import ASCII_SCAN, SCAN, asked, indexed, is_simple
from memoranda.text.remembered import Remembered
from memoranda.text.stop_words import STOP_WORDS
from memoranda.text.unspaced import asked_of, pairs

TERMS_VERSION = 1
"""Recorded in a store when it is made; raised when the same text would give other terms."""
MAX_POSITIONS = 16_000
"""Terms indexed of one text: Postgres numbers positions up to 16,383."""
MAX_TERM_BYTES = 500_000
"""Bytes of terms indexed of one text: Postgres refuses a text vector of a megabyte."""
MAX_QUERY_TERMS = 64
"""Distinct terms taken from one query."""
_MAX_QUERY_CHARACTERS = _SLICE = 16_384

_SNOWBALL = """
arabic armenian basque catalan danish dutch english finnish french german greek hindi hungarian indonesian irish italian
lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish tamil turkish yiddish
"""
LANGUAGES = ("none", *_SNOWBALL.split())
"""Languages a `Tokenizer` can stem: those of Snowball, and "none"."""

_WORDS = re.compile(rf"(?P<unspaced>[{UNSPACED}]+)|(?:(?![{UNSPACED}])(?:[^\W_]|[{MARKS}]))+")
_ASCII_WORDS = re.compile("[a-z0-9]+")
_SYLLABLE = re.compile(f"[{SYLLABIC}]")
_POSSESSIVE = re.compile(r"'s(?![^\W_])")
# -- encoding

_PLAIN = re.compile("(?!x[0-9])[a-z][a-z0-9]{0,63}")
_MAX_ENCODED = 80
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_SYMBOLS = {"z": "zz"} | {symbol: "z" + code for symbol, code in zip("./-_@+#&:'\\=", "abcdefghijkl", strict=True)}


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return digits or "0"


@lru_cache(maxsize=65_536)
def encode_term(token: str) -> str:
    """Encode a token as one word for every full-text engine: ASCII letters and digits that begin with a letter.

    No two tokens share an encoding. A plain word stands for itself; everything else begins with `x` and a digit: `x0`
    and the characters, each symbol as `z` and a code; `x3` or `x4` and three or four base-36 digits a character when
    none is ASCII; `x0zy` and a BLAKE2b digest when the result would pass 80 characters.
    """
    if _PLAIN.fullmatch(token):
        return token
    points = [ord(character) for character in token]
    if points and min(points) > 127:
        width = 3 if max(points) < 36**3 else 4
        encoded = f"x{width}" + "".join(_base36(point).rjust(width, "0") for point in points)
    else:
        encoded = "x0" + "".join(map(_encode_character, token[:_MAX_ENCODED]))
    if len(encoded) > _MAX_ENCODED or len(token) > _MAX_ENCODED:
        return "x0zy" + blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return encoded


def decode_unspaced(term: str) -> str:
    """Return the characters of an encoded pair, or of one character, of a script without spaces; "" of other terms."""
    width = {"x3": 3, "x4": 4}.get(term[:2], 0)
    if not width or len(term) not in (2 + width, 2 + 2 * width):
        return ""
    token = "".join(chr(int(term[i : i + width], 36)) for i in range(2, len(term), width))
    return token if _is_pair(token) else ""


def _encode_character(character: str) -> str:
    if character != "z" and character.isascii() and character.isalnum() and not character.isupper():
        return character
    code = _base36(ord(character))
    return _SYMBOLS.get(character) or f"z{len(code)}{code}"


# -- what is stored, and what is compared


def clean(text: str) -> str:
    """Return the text as it is stored: without NUL, with U+FFFD where half of a surrogate pair stood alone.

    Neither database can hold the two. Everything else stays, zero-width joiners included: emoji need them. Cleaning
    twice changes nothing, and the result is never longer.
    """
    text = text.replace("\0", "")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def words(text: str) -> frozenset[str]:
    """Return the distinct words of a text: maximal runs of letters and digits, without case, accents or possessive.

    A run of a script without spaces counts as its pairs of neighbouring characters. Words are neither stemmed nor
    encoded; behaviours that compare texts by the words they share are defined on this set.
    """
    if text.isascii():
        return frozenset(_ASCII_WORDS.findall(_POSSESSIVE.sub("", text.lower())))
    found: set[str] = set()
    for run in _WORDS.finditer(_POSSESSIVE.sub("", fold(normal(text)))):
        if run["unspaced"]:
            found.update(pairs(run[0]))
        else:
            found.add(run[0])
    return frozenset(found)


def overlap(query_words: Collection[str], text_words: Collection[str]) -> float:
    """Return the share of the query's words that the text has: 0..1, higher is better, 0 for an empty query."""
    if not query_words:
        return 0.0
    return sum(word in text_words for word in query_words) / len(query_words)


# -- terms as one string


def join_terms(terms: Sequence[str]) -> str:
    """Write encoded terms as every index and ranker reads them: two spaces between, one before and after.

    At most 16,000 terms and 500,000 bytes are kept, whole terms only; "" when there are none.
    """
    if not terms:
        return ""
    joined = f" {'  '.join(terms[:MAX_POSITIONS])} "
    if len(joined) > MAX_TERM_BYTES:
        joined = joined[: joined.rfind("  ", 0, MAX_TERM_BYTES) + 1]
    return joined


def count_terms(terms: str) -> int:
    """Return how many terms stand in a string of `join_terms`."""
    return terms.count("  ") + 1 if terms else 0


def frequency(terms: str, term: str) -> int:
    """Return how often an encoded term stands in a string of `join_terms`."""
    return terms.count(f" {term} ")


def positions(terms: str, wanted: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Return where the wanted terms stand in a string of `join_terms`, counted from 1; absent terms are left out."""
    places: dict[str, list[int]] = {}
    for place, term in enumerate(terms.split(), 1):
        if term in wanted:
            places.setdefault(term, []).append(place)
    return {term: tuple(found) for term, found in places.items()}


# -- the tokenizer


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Cuts texts and queries into encoded terms for a store of one language.

    Cheap to make and safe to share between threads: everything costly is cached a language. `language` is a name of
    `LANGUAGES`; text in another language is found too, only without its inflections.

    Raises:
        ConfigurationError: the language is not one of `LANGUAGES`.
    """

    language: str = "english"

    def __post_init__(self) -> None:
        """Refuse a language without a stemmer."""
        if self.language not in LANGUAGES:
            raise ConfigurationError(
                f"No stemmer for language {self.language!r}: choose one of {', '.join(LANGUAGES)}."
            )

    def load(self) -> None:
        """Load the stemmer now: a process that is forked while a thread imports it would wait for that for ever."""
        _analyzer(self.language)

    def terms(self, text: str, limit: int = MAX_POSITIONS) -> list[str]:
        """Return the first `limit` terms of a text to index, in order, with repetitions and stop words.

        An identifier gives itself and its parts: `src/app/text.py` is found by the whole, by `app/text.py`, `text.py`
        and `app`. A lone character of Han or Hangul is indexed beside the pairs it is in.
        """
        return _analyzer(self.language).terms(text, limit)

    def query_terms(self, text: str, limit: int = MAX_QUERY_TERMS) -> list[str]:
        """Return the distinct terms to search for, in order; none when the query says nothing that could be found.

        Identifiers are asked for whole, so that `ERR-7F3A/9` never finds `ERR-7F3A/8`. Stop words and tokens of one or
        two characters are dropped, but for capitals (`AI`) and for a query that has nothing else (`go`). Scripts
        without spaces are cut where words part for certain, at function words and at the end of kana. No character of
        the query acts as an operator.
        """
        return _analyzer(self.language).query_terms(text, limit)


@cache
def _analyzer(language: str) -> "_Analyzer":
    return _Analyzer(language)


class _Analyzer:
    """The cutting for one language, with its caches: most chunks of a text have been seen before."""

    _LONGEST_CACHED = 32

    def __init__(self, language: str) -> None:
        self.folds_first = language in ("english", "none")
        self.stop_words = frozenset((STOP_WORDS["english"] + STOP_WORDS.get(language, "")).split())
        self.stem = _stemmer(language)
        self.chunks = Remembered(self.cut, size=32_768, longest=self._LONGEST_CACHED)
        self.words = Remembered(self.analyse, size=32_768, longest=self._LONGEST_CACHED)

    def terms(self, text: str, limit: int) -> list[str]:
        if len(text) <= _SLICE:
            found = list(chain.from_iterable(map(self.chunks.__getitem__, text.split())))
            return found[:limit] if len(found) > limit else found
        found = []
        for part in text.split():
            # A megabyte without a space is taken by slices, to stop when the limit is reached.
            for start in range(0, len(part), _SLICE):
                found += self.chunks[part[start : start + _SLICE]]
                if len(found) >= limit:
                    return found[:limit]
        return found

    def query_terms(self, text: str, limit: int) -> list[str]:
        kept: dict[str, None] = {}
        short: dict[str, None] = {}
        for part in text[:_MAX_QUERY_CHARACTERS].split():
            for token in self.ask(part):
                word = fold(token)
                if word in self.stop_words:
                    continue
                plain = len(word) <= 2 and word.isalnum() and not (token.isupper() or _is_pair(token))
                (short if plain else kept).update(dict.fromkeys(self.words[token]))
                if len(kept) >= limit:
                    return list(kept)[:limit]
        return list(kept or short)[:limit]

    def scan(self, chunk: str) -> Iterator[re.Match[str]]:
        if chunk.isascii():
            return ASCII_SCAN.finditer(chunk)
        chunk = normal(chunk)
        return (ASCII_SCAN if chunk.isascii() else SCAN).finditer(chunk)

    def cut(self, chunk: str) -> tuple[str, ...]:
        """Return the encoded terms of a chunk of text to index."""
        if is_simple(chunk):
            return self.words[chunk]
        terms: list[str] = []
        for match in self.scan(chunk):
            kind = match.lastgroup
            if kind == "unspaced":
                terms.extend(map(encode_term, _unspaced(match[0])))
            elif kind == "emoji":
                terms.append(encode_term(match[0]))
            elif is_simple(match[0]):
                terms.extend(self.words[match[0]])
            else:
                tokens = dict.fromkeys(token for found in indexed(match[0]) for token in self.words[found])
                terms.extend(tokens)
        return tuple(terms)

    def ask(self, chunk: str) -> Iterator[str]:
        """Yield the raw tokens of a chunk of a query, not yet folded: their capitals decide what is dropped."""
        for match in self.scan(chunk):
            if match.lastgroup == "unspaced":
                yield from asked_of(match[0])
            elif match.lastgroup == "emoji":
                yield match[0]
            else:
                yield from asked(match[0])

    def analyse(self, token: str) -> tuple[str, ...]:
        """Return the encoded terms of one token: a word is stemmed, anything else stands as it is."""
        if token.isascii() and token.isalpha():
            return (encode_term(self.stem(token.lower())),)
        if _is_pair(token):
            return (encode_term(token),)
        folded = fold(token)
        if not _is_word(folded):
            return (encode_term(folded),) if folded else ()
        terms = [encode_term(self.stem(folded))]
        if not self.folds_first and not token.isascii():
            # Stemmers of other languages read accents; the plain form stays so that both spellings meet.
            terms.append(encode_term(fold(self.stem(token.casefold()))))
        return tuple(dict.fromkeys(terms))


def _is_word(token: str) -> bool:
    """Tell whether a token is a word to stem: letters and marks alone."""
    return token.isalpha() or not (_SYMBOL_OR_DIGIT.search(token) or not token)


_SYMBOL_OR_DIGIT = re.compile(rf"(?![{MARKS}])[\W\d_]")


def _is_pair(token: str) -> bool:
    return not token.isascii() and UNSPACED_CHARACTER.match(token) is not None


def _unspaced(run: str) -> Iterator[str]:
    """Yield the tokens of a run without spaces: each pair, and before it a character that can be a word alone."""
    last = len(run) - 1
    for place, character in enumerate(run):
        if not last or _SYLLABLE.match(character):
            yield character
        if place < last:
            yield run[place : place + 2]


def _stemmer(language: str) -> Callable[[str], str]:
    """Return the Snowball stemmer of a language; PyStemmer where it is installed, else the same in pure Python."""
    if language == "none":
        return str
    try:
        from Stemmer import Stemmer
    except ImportError:
        from snowballstemmer import stemmer

        stem_word = stemmer(language).stemWord
    else:
        # Without its own cache, which ours stands before: what is new to both takes a fourth of the time.
        stem_word = Stemmer(language, 0).stemWord
    lock = threading.Lock()

    def stem(word: str) -> str:
        with lock:  # a Snowball stemmer keeps the word it works on
            return str(stem_word(word))

    return stem
