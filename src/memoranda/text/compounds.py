"""Cut identifiers, paths, addresses and joined words: what each is indexed under, and what it asks for in a query.

A compound is pieces of letters and digits held together by single joiners: `src/app/text.py`, `ana@example.com`,
`ERR-7F3A/9`, `e-mail`. It is indexed whole and in parts; in a query an identifier is asked for whole, and only words
that are joined, as in `mother-daughter`, are asked for one by one too.
"""

import re
from collections.abc import Iterator, Sequence

from memoranda.text.characters import EMOJI, MARKS, UNSPACED


def _scanner(letter: str, others: str = "") -> re.Pattern[str]:
    """Compile the pattern of one compound: pieces of letters and digits, held together by single joiners."""
    # `c++`, `c#` and `.net` keep their symbols; two joiners in a row end a compound, but for `://`, `::` and `/.`
    piece = rf"{letter}+(?:\+\+(?![A-Za-z+])|[+#](?!{letter}|[+#]))?"
    joiner = r"(?:_+\.?|[.@&=?%~+#'\-]_*|:?[/\\]+\.?|::?|(?<=[0-9]),(?=[0-9]{3}(?![0-9])))"
    return re.compile(rf"{others}(?:(?<![\w.])\.(?=[A-Za-z]))?{piece}(?:{joiner}{piece})*")


ASCII_SCAN = _scanner("[A-Za-z0-9]")
SCAN = _scanner(
    rf"(?:(?![{UNSPACED}])(?:[^\W_]|[{MARKS}]))",
    rf"(?P<unspaced>[{UNSPACED}]+)|(?P<emoji>[\U0001f1e6-\U0001f1ff]{{2}}|[{EMOJI}])|",
)
_CONTRACTION = re.compile(r"'(?:s|re|ll|ve|d|m)(?![^\W_])", re.IGNORECASE)
_NEGATION = re.compile(r"n't$", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3})")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://+", re.IGNORECASE)
_SEGMENT = re.compile(r"/|[@&=?%~]+|::?|\+(?=\w)|#(?=\w)")
_PATH = re.compile(r":?[/\\]+")
_PIECE = re.compile(r"[._'\-]+")
_HUMP = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_NUMBERED = re.compile("([A-Za-z]{3,})[0-9]+")
_VERSION = re.compile(r"[vV]?[0-9]+(?:\.[0-9]+){2,}|[vV][0-9]+\.[0-9]+")
_IDENTIFYING = re.compile("[.@]")
_NOT_HYPHENATED = re.compile(r"[^\w'-]|_")
_LONGEST_COMPOUND = 2048


def _bare(compound: str) -> str:
    """Return a compound without scheme, contraction or thousands separator, with one kind of slash."""
    bare = _PATH.sub("/", _SCHEME.sub("", compound))
    return _THOUSANDS.sub("", _CONTRACTION.sub("", bare))


def _pieces(compound: str) -> list[str]:
    return [piece for segment in _SEGMENT.split(compound) for piece in _PIECE.split(segment) if piece]


def is_simple(compound: str) -> bool:
    """Tell of most words and numbers without a pattern that they are indexed under themselves alone."""
    if not compound.isascii():
        return False
    one_case = compound.islower() or compound.isupper() or compound.istitle()
    return compound.isdigit() or (compound.isalpha() and one_case)


def indexed(compound: str) -> Iterator[str]:
    """Yield what a compound is indexed under: itself, its sub-paths, its segments, its pieces."""
    if len(compound) > _LONGEST_COMPOUND:
        yield from _pieces(compound)
        return
    bare = _bare(compound)
    whole = bare.replace("'", "")
    yield whole
    pieces = _pieces(bare)
    if len(pieces) == 1:
        yield from _parts(bare, alone=True)
        return
    if _NEGATION.search(bare):
        return
    if _VERSION.fullmatch(whole):
        yield whole[1:] if whole[0] in "vV" else "v" + whole
    yield from _joined(bare)
    yield from _spans(whole.split("/"), "/")
    segments = _SEGMENT.split(bare)
    for segment in segments:
        names = [name for name in _PIECE.split(segment) if name]
        if len(names) > 1:
            if len(segments) > 1:
                yield segment.replace("'", "")
            if not any(name.isdigit() for name in names):
                yield from _spans(segment.split("."), ".")
    for piece in pieces:
        yield from _parts(piece, alone=False)


def _parts(piece: str, *, alone: bool) -> Iterator[str]:
    """Yield the parts of one piece: itself when it stands in a compound, its humps, its letters before a number."""
    core = piece.strip("+#.")
    if core != piece:
        # `c++` and `.net` are names of their own; `disney+` and `.gitignore` are found by the word too.
        if not alone:
            yield piece
        alone = len(core) <= 3
    if not alone and (len(core) > 2 or (len(core) == 2 and core.isalpha())):
        yield core
    if core.isascii() and not (
        core.isdigit() or core.isupper() or core.istitle() or (core.islower() and core.isalpha())
    ):
        humps = _HUMP.findall(core)
        if 1 < len(humps) <= 8 and not (len(humps[0]) == 1 and humps[0].islower()):  # not `phone` for `iPhone`
            yield from (hump for hump in humps if len(hump) > 2)
    if numbered := _NUMBERED.fullmatch(core):
        yield numbered[1]


def _joined(compound: str) -> Iterator[str]:
    """Yield `email` for `e-mail`: two words that many write as one."""
    first, hyphen, second = compound.partition("-")
    if hyphen and first.isalpha() and second.isalpha():
        yield first + second


def _spans(parts: Sequence[str], joiner: str) -> Iterator[str]:
    """Yield the beginnings and ends of a path, from two parts on; deep ones are cut to keep the index small."""
    for count in range(2, min(len(parts), 8)):
        yield joiner.join(parts[:count])
        yield joiner.join(parts[-count:])


def asked(compound: str) -> Iterator[str]:
    """Yield what a compound in a query asks for: the whole, and its words when it is no more than words joined."""
    if len(compound) > _LONGEST_COMPOUND:
        yield from _pieces(compound)
        return
    bare = _bare(compound)
    pieces = _pieces(bare)
    yield bare.replace("'", "")
    if len(pieces) < 2 or _NEGATION.search(bare) or _IDENTIFYING.search(bare):
        return
    # `10-mile` asks for the mile too; `ERR-42`, `7f3a-x` and `2026-05-08` are names.
    numbered = not all(piece.rstrip("+#").isalpha() for piece in pieces)
    if numbered and not all(piece.isdigit() or (piece.isalpha() and not piece.isupper()) for piece in pieces):
        return
    if numbered and _NOT_HYPHENATED.search(bare):
        return
    yield from _joined(bare)
    yield from (piece for piece in pieces if not piece.isdigit() and (len(piece) > 2 or not piece.isalpha()))
