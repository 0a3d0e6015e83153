"""Turn a page of HTML into the text a reader sees, as Markdown: headings, lists, tables and code keep their shape.

What is not read is left out: scripts, styles, navigation, forms' controls and what the page hides. The scanner reads
tags as browsers do (what is not closed goes to the end) in time linear in the page, which the standard library's
does not: it took minutes for 200 KB of comments that are never closed.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


def _names(written: str) -> frozenset[str]:
    return frozenset(written.split())


_DROPPED = _names("script style nav template noscript svg math iframe object canvas audio video select datalist button")
_RAW = _names("script style textarea title xmp iframe noembed noframes")
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_INLINE = _names(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd label mark q rp rt ruby s samp"
    " small span strike strong sub sup time tt u var wbr"
)
_END_LEFT_OUT = _names("li dt dd td th tr thead tbody tfoot option optgroup html body head")
_DEEPEST = 8  # lists and tables within each other that keep their shape

# A quotation mark opens a value only behind an equals sign: `title=don't` is a value, too.
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)(?P<rest>(?:=\s*+(?:\"[^\"]*+\"|'[^']*+')|[^>=]++|=)*+)>")
_ATTRIBUTE = re.compile(r"([^\s\"'=/>]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++)))?")
_INVISIBLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{8,}+);?")
_READ_AS_MARKDOWN = re.compile(r"^(?=#{1,6}[ \t]|`{3}|~{3}|={3,}[ \t]*$|-{3,}[ \t]*$)", re.MULTILINE)
_TICKS = re.compile("`+")


class Page(NamedTuple):
    """What a page says."""

    text: str
    title: str
    """Empty where it has none."""
    language: str
    """As the page declares it, such as `en-GB`; empty where it does not."""


def read_html(page: str) -> Page:
    """Return what a reader sees of a page; nothing is run, loaded or refused."""
    reader = _Reader()
    for piece in _scan(page):
        reader.take(piece)
    return Page(reader.finish(), reader.title, reader.language)


# -- tags and text, in order


class _Piece(NamedTuple):
    text: str  # empty for a tag
    tag: str = ""
    closing: bool = False
    attributes: str = ""


def _scan(page: str) -> Iterator[_Piece]:
    place = 0
    while (start := page.find("<", place)) >= 0:
        if start > place:
            yield _Piece(_decoded(page[place:start]))
        follows = page[start + 1 : start + 2]
        if follows in ("!", "?") or (follows == "/" and not page[start + 2 : start + 3].isalpha()):
            ends = "-->" if page.startswith("<!--", start) else "]]>" if page.startswith("<![CDATA[", start) else ">"
            end = page.find(ends, start + 2)
            if end < 0:
                return
            place = end + len(ends)
        elif follows.isascii() and (follows.isalpha() or follows == "/"):
            tag = _TAG.match(page, start)
            if not tag:
                return
            name, place = tag["name"].lower(), tag.end()
            yield _Piece("", name, bool(tag["end"]), tag["rest"])
            if name in _RAW and not tag["end"]:
                closing = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(page, place)
                end = closing.start() if closing else len(page)
                raw = page[place:end]
                yield _Piece(_decoded(raw) if name in ("title", "textarea") else raw)
                place = end
        else:
            yield _Piece("<")
            place = start + 1
    if place < len(page):
        yield _Piece(_decoded(page[place:]))


def _decoded(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


def _attributes(written: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(written):
        found.setdefault(name.lower(), _decoded("".join(values)))
    return found


# -- what is written


@dataclass(slots=True)
class _Flow:
    """Blocks below each other: a page, or the cell of a table."""

    blocks: list[tuple[str, bool]] = field(default_factory=list)  # the text, and whether it follows without a gap
    pieces: list[str] = field(default_factory=list)
    prefix: str = ""  # the marker of the list's item that begins here
    heading: str = ""

    def end_block(self, indent: str = "", tight: bool = False) -> None:
        """Take the pieces as a block of lines, each with its white space as browsers show it."""
        lines = [" ".join(line.split()) for line in "".join(self.pieces).split("\n")]
        self.pieces.clear()
        text = "\n".join(lines).strip()
        if not text:
            return
        heading = f"{self.heading} {' '.join(text.split())}" if self.heading else ""
        text = heading or _READ_AS_MARKDOWN.sub(r"\\", text)
        first = self.prefix or indent
        self.add(first + text.replace("\n", f"\n{indent}"), tight)
        self.prefix = ""

    def add(self, text: str, tight: bool = False) -> None:
        self.blocks.append((text, tight))

    def text(self) -> str:
        """Return the blocks, a blank line between those that do not belong together."""
        parts: list[str] = []
        for text, tight in self.blocks:
            parts += ["\n" if tight else "\n\n", text] if parts else [text]
        return "".join(parts)


@dataclass(slots=True)
class _Table:
    rows: list[list[_Flow]] = field(default_factory=list)
    headed: bool = False
    lists: list["_List"] = field(default_factory=list)  # those around the table

    def text(self) -> str:
        """Return the rows with their cells between bars; what only lays out a page is returned as its blocks."""
        rows = [row for row in self.rows if any(cell.blocks for cell in row)]
        if any(len(cell.blocks) > 1 or (cell.blocks and cell.blocks[0][0][:1] == "#") for row in rows for cell in row):
            return "\n\n".join(cell.text() for row in rows for cell in row if cell.blocks)
        lines = []
        for row in rows:
            cells = [" ".join(cell.text().split()).replace("|", "\\|") for cell in row]
            lines.append(f"| {' | '.join(cells)} |")
        if self.headed and lines:
            lines.insert(1, f"|{' --- |' * len(rows[0])}")
        return "\n".join(lines)


@dataclass(slots=True)
class _List:
    ordered: bool
    number: int = 0
    indent: str = ""  # of what its items hold


class _Reader:
    """Takes a page's pieces and writes its text."""

    def __init__(self) -> None:
        self.title = self.language = ""
        self._flow = self._page = _Flow()
        self._tables: list[_Table] = []
        self._around: list[_Flow] = []  # the flow that each open table stands in
        self._lists: list[_List] = []
        self._skipped, self._depth = "", 0  # the element left out, and how often it is open within itself
        self._pre: list[str] | None = None
        self._in_title = False

    def take(self, piece: _Piece) -> None:
        if self._skipped == "p" and piece.tag and not piece.closing and piece.tag not in _INLINE | _VOID:
            self._skipped = ""  # a paragraph ends where another block begins
        if self._skipped:
            if piece.tag == self._skipped:
                self._depth += -1 if piece.closing else 1
                self._skipped = self._skipped if self._depth else ""
        elif not piece.tag:
            if self._in_title:
                self.title = self.title or " ".join(piece.text.split())
            elif self._pre is not None:
                self._pre.append(piece.text)
            else:
                self._flow.pieces.append(piece.text.replace("\n", " "))
        elif piece.closing:
            self._close(piece.tag)
        else:
            self._open(piece.tag, _attributes(piece.attributes))

    def finish(self) -> str:
        self._end_pre()
        while self._tables:
            self._end_table()
        self._end_block()
        return self._page.text()

    def _open(self, tag: str, attributes: dict[str, str]) -> None:
        hides = "hidden" in attributes or _INVISIBLE.search(attributes.get("style", ""))
        if tag in _DROPPED or (hides and tag not in _VOID and tag not in _END_LEFT_OUT):
            self._skipped, self._depth = tag, 1
        elif tag == "html":
            self.language = self.language or attributes.get("lang", "")
        elif tag == "title":
            self._in_title = True
        elif tag == "br":
            (self._flow.pieces if self._pre is None else self._pre).append("\n")
        elif tag == "img":
            self._flow.pieces.append(f" {attributes.get('alt', '')} ")
        elif self._pre is not None or tag in _INLINE:
            pass
        elif tag == "pre":
            self._end_block()
            self._pre = []
        elif tag == "table":
            self._begin_table()
        elif self._tables and tag in ("tr", "td", "th"):
            self._begin_cell(tag)
        else:
            self._end_block()
            self._begin_block(tag)

    def _begin_block(self, tag: str) -> None:
        if tag in ("ul", "ol", "menu"):
            around = self._lists[-1].indent if self._lists else ""
            self._lists.append(_List(tag == "ol", 0, around))
        elif tag == "li":
            lists = self._lists or [_List(False)]
            within = "" if len(lists) < 2 else lists[-2].indent
            lists[-1].number += 1
            marker = f"{lists[-1].number}. " if lists[-1].ordered else "- "
            lists[-1].indent = within + " " * len(marker) if len(lists) <= _DEEPEST else within
            self._flow.prefix = within + marker
        elif re.fullmatch("h[1-6]", tag):
            self._flow.heading = "#" * int(tag[1])

    def _close(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._end_pre()
        elif self._pre is not None or tag in _INLINE or tag in ("br", "tr", "html", "head"):
            pass
        elif tag == "table" and self._tables:
            self._end_table()
        else:
            self._end_block()
            if tag in ("ul", "ol", "menu", "li"):
                self._flow.prefix = ""
                del self._lists[len(self._lists) - (tag != "li") :]

    def _end_block(self) -> None:
        tight = bool(self._flow.prefix) and bool(self._flow.blocks) and self._follows_item()
        indent = self._lists[-1].indent if self._lists else ""
        self._flow.end_block("" if self._flow.heading else indent, tight)
        self._flow.heading = ""

    def _follows_item(self) -> bool:
        """Whether the item that begins here is not the first of a list that stands by itself."""
        return len(self._lists) > 1 or bool(self._lists and self._lists[-1].number > 1)

    def _end_pre(self) -> None:
        if self._pre is None:
            return
        code, self._pre = "".join(self._pre).strip("\n"), None
        if code.strip():
            fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(code)), default=0))
            self._flow.add(f"{fence}\n{code}\n{fence}")

    # -- tables

    def _begin_table(self) -> None:
        self._end_block()
        if len(self._tables) < _DEEPEST:
            self._around.append(self._flow)
            self._tables.append(_Table(lists=self._lists))
            self._flow, self._lists = _Flow(), []  # what stands outside of cells, a caption for one, is written first

    def _begin_cell(self, tag: str) -> None:
        table = self._tables[-1]
        self._end_block()
        self._leave_cell()
        if tag == "tr" or not table.rows:
            table.rows.append([])
            self._flow = _Flow()
        if tag != "tr":
            table.headed = table.headed or (tag == "th" and len(table.rows) == 1)
            self._flow, self._lists = _Flow(), []
            table.rows[-1].append(self._flow)

    def _leave_cell(self) -> None:
        """Hand what stood before the first cell to the flow around the table."""
        table, around = self._tables[-1], self._around[-1]
        if not any(self._flow is cell for row in table.rows[-1:] for cell in row[-1:]):
            around.blocks += self._flow.blocks
            self._flow = _Flow()

    def _end_table(self) -> None:
        self._end_block()
        self._leave_cell()
        table, self._flow = self._tables.pop(), self._around.pop()
        self._lists = table.lists
        if text := table.text():
            self._flow.add(text)
