"""Cut a text into the pieces that are embedded and found: paragraphs packed to a size, each told where it stands.

The bodies of the chunks, joined, are the normalised text, to the character: blank lines belong to the body they end.
What is stored of a chunk is its body behind the last words of the body before, which makes it a slice of the text.

Where a body may end, the first that lies within its size, and of these the last:

1. between two paragraphs, or around a fenced code block; never behind a heading, which stays with what follows it;
2. in code that does not fit as a whole, its heading counted: behind a blank line if that leaves no less than half,
   else behind a line;
3. behind a sentence, the line of a table, or before an item of a list;
4. behind a line if that leaves no less than half, else behind a word;
5. between two characters as a reader sees them, marks, joiners, conjuncts and flags kept whole.

Headings, fences, lists and tables are those of Markdown. Pure, and linear in the length of the text.
"""

# ruff: noqa: RUF001 - marks of other scripts are meant

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from memoranda.policies import ChunkingPolicy
from memoranda.text import clean
from memoranda.text.characters import UNSPACED

SEPARATOR = 2
"""Characters of white space that a body may hold beyond its size, so that a paragraph takes its blank line along."""
_GAP = 200  # a longer run of white space says nothing, and would make a chunk of its own

_Kind: TypeAlias = Literal["paragraph", "heading", "code"]

_NEWLINES = re.compile("\r\n?|\u0085|\u2028")
_WIDE_GAP = re.compile(rf"(?<!\s)\s{{{_GAP + 1},}}+")
# A heading is bounded, or a chunk's path could be longer than its text. Fences may be indented, as in lists.
_MARK = re.compile(
    r"""
    (?P<blank>\n(?:[^\S\n]*+\n)++)
    | \n(?P<underline>={3,80}|-{3,80})[ \t]{0,8}$
    | ^[ ]{0,3}(?P<level>\#{1,6})[ \t]{1,8}(?P<title>[^\s#][^\n]{0,159})$
    | ^[ \t]*+(?P<fence>`{3,}(?=[^`\n]*+$)|~{3,})[^\n]*+
    """,
    re.MULTILINE | re.VERBOSE,
)
_LONGEST_TITLE = 160
_CLOSERS = "[\"'”’»›)\\]}」』）】》〉〕]*+"
_SENTENCE = re.compile(
    r"(?=[\n|.!?…。！？｡।॥؟۔։።፧။។៕།༎])(?:"
    # No sentence ends behind an initial, a title or the number of an item, nor before a lower-case letter.
    r"\.(?<!\b[^\W_]\.)(?<!\b\d\d\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSt\.)(?<!\bMrs\.)"
    rf"{_CLOSERS}(?=\s++(?![a-z]))"
    rf"|(?<![.!?…])(?:\.\.|[!?…])[.!?…]*+{_CLOSERS}(?=\s++(?![a-z]))"
    rf"|[。！？｡।॥؟۔։።፧။។៕།༎]++{_CLOSERS}"
    r"|\|(?=[ \t]*+\n)|(?=\n[ \t]*+(?:[-*+•]|\d{1,4}[.)])[ \t]))"
)
_AHEAD = _GAP + 16  # characters read behind the last place where a sentence may end
_BLANK_LINE = re.compile(r"\n(?=[^\S\n]*+\n)")

_ZWJ = "\u200d"
_JOINED_AFTER = frozenset("\u200d\u2060เแโใไເແໂໃໄ")  # joiners, and the vowels that stand before their consonant
_JOINED_BEFORE = re.compile(
    "[\u200c\u200d\u2060\u0e33\u0eb3\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7ff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
_FLAG_LETTER = re.compile("[\U0001f1e6-\U0001f1ff]")
_VIRAMA = 9  # its combining class: the consonant behind it belongs to the same letter
# Scripts whose words touch; in Korean they do not, though its syllables are indexed as if they did.
_TOUCHING = re.compile(f"(?![\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff])[{UNSPACED}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a text."""

    index: int
    """From 0, in the order of the text."""
    body: str
    """What this chunk adds to those before it, the white space behind it included; never blank."""
    overlap: str
    """The last words of the body before."""
    start: int
    """Where the body begins, in characters of the normalised text."""
    headings: tuple[str, ...]
    """Those it stands under, the outermost first, where its own text begins."""

    @property
    def text(self) -> str:
        """The overlap and the body: what is stored, embedded and searched."""
        return self.overlap + self.body


def normalise(text: str) -> str:
    r"""Return the text that is cut: every end of a line is `\n`, and none stands at its ends; the rest is kept.

    White space around the text goes, and more than 200 characters of it at a stretch become one blank line, or one
    space. What no database can hold goes as in `memoranda.text.clean`. Doing it twice changes nothing.
    """
    text = _NEWLINES.sub("\n", clean(text).replace("\u2029", "\n\n"))
    return _WIDE_GAP.sub(lambda gap: "\n\n" if "\n" in gap[0] else " ", text).strip()


def split(text: str, policy: ChunkingPolicy | None = None) -> list[Chunk]:
    """Cut a text, normalised first, into chunks; none for a text of nothing but white space."""
    policy = policy or ChunkingPolicy()
    text = normalise(text)
    cutter = _Cutter(text, policy.size)
    found: list[Chunk] = []
    start = before = 0
    while start < len(text):
        end = cutter.end(start)
        overlap = _overlap(text, before, start, policy.overlap)
        headings = cutter.headings(start, end)
        found.append(Chunk(index=len(found), body=text[start:end], overlap=overlap, start=start, headings=headings))
        before, start = start, end
    return found


def rebuild(chunks: Iterable[Chunk]) -> str:
    """Return the normalised text that was cut."""
    return "".join(chunk.body for chunk in chunks)


def _overlap(text: str, low: int, end: int, most: int) -> str:
    """Return the end of `text[low:end]`, from a word's start on; empty where no word begins in its last characters."""
    first = max(low, end - most)
    for place in range(first, end):
        if not text[place].isspace() and (place == low or _word_starts(text, place)):
            return text[place:end]
    return ""


def _word_starts(text: str, place: int) -> bool:
    if text[place - 1].isspace():
        return not _joined(text, place, place - 1)
    touching = _TOUCHING.match(text[place]) or _TOUCHING.match(text[place - 1])
    return bool(touching) and text[place].isalnum() and not _joined(text, place, max(0, place - 64))


# -- what a text consists of


class _Block(NamedTuple):
    kind: _Kind
    start: int
    end: int  # of its last line; blank lines may follow
    headings: tuple[str, ...]


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    path: list[tuple[int, str]] = []
    titles: tuple[str, ...] = ()
    start = place = 0

    def close(end: int) -> None:
        if start < end:
            blocks.append(_Block("paragraph", start, end, titles))

    while mark := _MARK.search(text, place):
        place = mark.end()
        if mark["blank"]:
            close(mark.start())
            start = place
        elif mark["fence"]:
            close(mark.start() - 1)
            # As in CommonMark, a fence that is never closed goes to the end of the text.
            closing = re.compile(rf"^[ \t]*+{mark['fence'][0]}{{{len(mark['fence'])},}}[ \t]*$", re.MULTILINE)
            closed = closing.search(text, place)
            place = closed.end() if closed else len(text)
            blocks.append(_Block("code", mark.start(), place, titles))
            start = place + 1
        else:
            if mark["title"]:
                level, title, begin = len(mark["level"]), mark["title"], mark.start()
                close(begin - 1)
            else:  # the line above is a heading where it is all of its paragraph
                level, title, begin = 1 if mark["underline"][0] == "=" else 2, text[start : mark.start()], start
                if not 0 < len(title) <= _LONGEST_TITLE or "\n" in title:
                    continue
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, _title(title)))
            titles = tuple(title for _, title in path)
            blocks.append(_Block("heading", begin, place, titles))
            start = place + 1
    close(len(text))
    return blocks


def _title(line: str) -> str:
    bare = line.strip().rstrip("#")
    return " ".join((bare if bare.endswith((" ", "\t")) else line).split())


# -- where it may be cut


class _Cutter:
    """Finds where the body that begins at a place ends."""

    def __init__(self, text: str, size: int) -> None:
        self._text, self._size = text, size
        self._blocks = _blocks(text)
        self._starts = [block.start for block in self._blocks]
        apart = [pair for pair in zip(self._blocks, self._blocks[1:], strict=False) if pair[0].kind != "heading"]
        self._ends = [before.end for before, _ in apart]
        self._nexts = [after.start for _, after in apart]

    def headings(self, start: int, end: int) -> tuple[str, ...]:
        """Return those over the first text of a body that is no heading."""
        at = max(0, bisect_right(self._starts, start) - 1)
        if self._blocks[at].end <= start and at + 1 < len(self._blocks):
            at += 1  # the body begins with blank lines
        while self._blocks[at].kind == "heading" and at + 1 < len(self._blocks) and self._starts[at + 1] < end:
            at += 1
        return self._blocks[at].headings

    def end(self, start: int) -> int:
        """Return the end of the body that begins here, the white space behind it included."""
        most = start + self._size
        if len(self._text) <= most:
            return len(self._text)
        apart = bisect_right(self._ends, most) - 1
        if apart >= 0 and self._ends[apart] > start:
            return min(self._nexts[apart], most + SEPARATOR)
        at = bisect_right(self._starts, most) - 1
        if self._starts[at] > start + self._size // 2 and self._starts[at - 1] > start:
            at -= 1  # so many headings stand before it that only the last of them stays with it
        block = self._blocks[at]
        if block.kind == "heading":
            return block.start
        low = max(start, block.start)
        while self._text[low].isspace():
            low += 1
        end = self._end_of_line(block, low, most) if block.kind == "code" else 0
        return end or self._end_of_sentence(low, most) or self._end_of_word(low, most) or self._anywhere(low, most)

    def _end_of_line(self, block: _Block, low: int, most: int) -> int:
        if low == block.start:  # the line that opens the fence is no piece of code
            low = self._text.find("\n", low, most)
        end = self._text.rfind("\n", low + 1, most + 1) if low >= 0 else -1
        blank = max((gap.start() for gap in _BLANK_LINE.finditer(self._text, most - self._size // 2, most)), default=-1)
        return self._through_space(blank if blank > low else end, most) if end > 0 else 0

    def _end_of_sentence(self, low: int, most: int) -> int:
        ends = (sentence.end() for sentence in _SENTENCE.finditer(self._text, low + 1, most + _AHEAD))
        last = 0
        for end in ends:
            if end > most:
                break
            last = end if self._parted(end, low) else last
        return self._through_space(last, most) if last else 0

    def _end_of_word(self, low: int, most: int) -> int:
        window = self._text[low : most + 1]
        line = window.rfind("\n")
        if line > self._size // 2:
            window = window[: line + 1]
        elif not window[-1].isspace():
            head = window.rsplit(None, 1)
            window = head[0] if len(head) == 2 else ""
        end = low + len(window.rstrip())
        return self._through_space(end, most) if window and self._parted(end, low) else 0

    def _anywhere(self, low: int, most: int) -> int:
        end = most
        while end > low and _joined(self._text, end, low):
            end -= 1
        return end if end > low else most  # a reader sees no end within the size

    def _parted(self, end: int, low: int) -> bool:
        """Whether neither the end nor the white space behind it is held together with what follows."""
        after = end
        while after < len(self._text) and self._text[after].isspace():
            after += 1
        return end > low and not _joined(self._text, end, low) and not _joined(self._text, after, low)

    def _through_space(self, end: int, most: int) -> int:
        """Return where the line behind ends, or the words begin: the indentation of a line stays with the line."""
        stop = min(most + SEPARATOR, len(self._text))
        after = end
        while after < stop and self._text[after].isspace():
            after += 1
        line = self._text.rfind("\n", end, after)
        return after if line < 0 else line + 1


def _joined(text: str, place: int, low: int) -> bool:
    """Whether a cut here would part what a reader sees as one character; nothing before `low` is looked at."""
    if not low < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before.isascii() and after.isascii():
        return False
    if before == "\n" or after.isspace():
        return False
    if unicodedata.category(after)[0] == "M" or _JOINED_BEFORE.match(after) or before in _JOINED_AFTER:
        return True
    if unicodedata.combining(before) == _VIRAMA and after.isalpha():
        return True
    if not _FLAG_LETTER.match(after):
        return False
    letters = place
    while letters > low and _FLAG_LETTER.match(text[letters - 1]):
        letters -= 1
    return (place - letters) % 2 == 1
