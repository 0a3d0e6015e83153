"""Documents: what is read, from where, and what is refused without a word of what it holds."""

import codecs
import os
import sys
from pathlib import Path

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.documents import located, read_document, walk
from memoranda.documents.chunking import normalise, split
from memoranda.documents.html_text import read_html
from memoranda.errors import ExtraMissing, InvalidInput, UnreadableDocument
from memoranda.testing.pdfs import pdf


def refusal(*args, **options):
    with pytest.raises(UnreadableDocument) as caught:
        read_document(*args, **options)
    assert isinstance(caught.value, InvalidInput) and caught.value.field == "path"
    assert caught.value.__cause__ is None and caught.value.__suppress_context__ | (caught.value.__context__ is None)
    return str(caught.value)


# -- types and encodings


@pytest.mark.behaviour("K01")
def test_text_and_markdown_are_kept_as_they_are(tmp_path):
    (tmp_path / "notes.md").write_bytes(b"# Title\r\n\r\n* item &amp; <b>\r\n")
    document = read_document(tmp_path / "notes.md")
    assert (document.source, document.text) == ("notes.md", "# Title\n\n* item &amp; <b>")
    assert (document.media_type, document.metadata, document.pages) == ("text/markdown", {}, ())
    for name, media_type in {
        "a.txt": "text/plain",
        "b.MD": "text/markdown",
        "c": "text/plain",
        "d.csv": "text/plain",
    }.items():
        (tmp_path / name).write_text("words")
        assert read_document(tmp_path / name).media_type == media_type


@pytest.mark.parametrize("text", ["Grüße, 漢字 👩‍👩‍👧", "plain"])
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_utf_8_and_marked_utf_16_are_read(tmp_path, text, mark, encoding):
    (tmp_path / "a.txt").write_bytes(mark + text.encode(encoding))
    assert read_document(tmp_path / "a.txt").text == text
    assert len(walk(tmp_path)) == 1


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", "café secret".encode("latin-1"), "UTF-8"),
        ("a.md", codecs.BOM_UTF32_LE + "secret".encode("utf-32-le"), "UTF-8"),
        ("a.txt", codecs.BOM_UTF16_LE + b"\x00\xd8", "UTF-8"),
        ("a.txt", "secret".encode("utf-16-le"), "plain text, Markdown, HTML and PDF"),
        ("a.docx", b"PK\x03\x04\xff\xfe secret", "plain text, Markdown, HTML and PDF"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0secret", "plain text, Markdown, HTML and PDF"),
        ("a.html", b"<p>secret\0", "plain text, Markdown, HTML and PDF"),
        ("a.txt", b"", "is empty"),
        ("a.md", b" \n\xef\xbb\xbf\n"[:2], "has no text"),
        ("a.html", b"<script>secret</script>", "has no text"),
        ("a.pdf", b"secret", "damaged"),
        ("a.pdf", b"%PDF-1.4\nsecret", "damaged"),
        ("a.pdf", pdf(["secret"])[:400], "damaged"),
        ("a.pdf", pdf(None, None), "no text layer"),
        ("a.pdf", pdf(["secret"]).replace(b"/Root", b"/Encrypt << /Filter /Standard >> /Root"), "damaged"),
    ],
)
def test_what_is_not_read_is_refused_by_name(tmp_path, name, data, reason, caplog):
    (tmp_path / name).write_bytes(data)
    message = refusal(name, tmp_path)
    assert f"'{name}'" in message and reason in message
    assert "secret" not in message and str(tmp_path) not in message
    assert "secret" not in caplog.text


def test_a_file_too_large_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("12345")
    assert read_document("a.txt", tmp_path, largest=5).text == "12345"
    assert "larger than 4 bytes" in refusal("a.txt", tmp_path, largest=4)
    assert walk(tmp_path, largest=4).skipped[0].reason == "is larger than 4 bytes"


# -- where files may lie


@pytest.fixture
def root(tmp_path):
    (tmp_path / "secret.txt").write_text("outside")
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2/b.txt").write_text("outside")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub/a.txt").write_text("inside")
    return root


@pytest.mark.behaviour("K08")
def test_a_path_inside_the_root_is_read_and_named_from_it(root):
    for path in ("sub/a.txt", Path("sub/a.txt"), "./sub//a.txt", root / "sub/a.txt", str(root / "sub/a.txt")):
        assert read_document(path, root).source == "sub/a.txt"
    (root / "link.txt").symlink_to("sub/a.txt")
    assert read_document("link.txt", root).text == "inside"
    root.with_name("way").symlink_to(root)
    assert read_document("sub/a.txt", root.with_name("way")).text == "inside"
    assert read_document(root.with_name("way") / "sub/a.txt", root).source == "sub/a.txt"
    assert read_document(root / "sub/a.txt").source == "a.txt"


@pytest.mark.behaviour("K08")
def test_a_path_that_leads_out_is_refused_whether_it_exists_or_not(root):
    (root / "out.txt").symlink_to(root.parent / "secret.txt")
    (root / "gone.txt").symlink_to(root.parent / "nothing.txt")
    (root / "folder").symlink_to(root.parent)
    outside = [
        *("../secret.txt", "../nothing.txt", "sub/../../secret.txt", "sub/../sub/a.txt", "..", "out.txt", "gone.txt"),
        *("folder/secret.txt", "folder/nothing.txt", root.parent / "secret.txt", "/etc/passwd", "/etc/nothing"),
        root.parent / "root2/b.txt",
    ]
    for path in outside:
        assert "leads out of the folder" in refusal(path, root)


@pytest.mark.behaviour("K08")
def test_only_regular_files_are_opened(root):
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    for path, reason in {"pipe": "no regular file", "sub": "no regular file", ".": "no regular file"}.items():
        assert reason in refusal(path, root)
    assert "no regular file" in refusal("/dev/null")
    for path in ("nothing.txt", "sub/a.txt/b", "loop", "x" * 5000, "a\0b"):
        assert refusal(path, root)
        assert refusal(root / path)


@pytest.mark.behaviour("K08")
def test_nothing_hidden_is_read_below_a_root(root):
    for name in (".env", ".git/config", "sub/.cache/a.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("words")
    (root / "open.txt").symlink_to(".env")
    for path in (".env", ".git/config", "sub/.cache/a.txt", root / ".env", "open.txt", "./.env"):
        assert "is hidden" in refusal(path, root)
    with pytest.raises(UnreadableDocument, match="hidden"):
        located(".git", root)
    assert read_document("config", root / ".git").text == read_document(root / ".env").text == "words"
    assert read_document("./sub/a.txt", root).text


# -- folders


def test_a_folder_is_walked_in_order_and_says_what_it_left_out(root):
    for name in ("b.md", "a.bin.md", "sub-x.txt", "page.html", "sub/z.txt", ".hidden.txt", ".git/config"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("words")
    (root / "c.png").write_bytes(b"\x89PNG\0")
    (root / "d.pdf").write_bytes(b"words")
    (root / "e.pdf").write_bytes(pdf(["words"]))
    (root / "f.txt").write_bytes(b"\xff\xfe\xfd\xfc\xff\xff"[1:])
    (root / "g.txt").touch()
    (root / "h.txt").symlink_to("b.md")
    (root / "i").symlink_to(".")
    os.mkfifo(root / "j")
    found = walk(root)
    names = [path.relative_to(root).as_posix() for path in found]
    assert names == ["a.bin.md", "b.md", "e.pdf", "page.html", "sub/a.txt", "sub/z.txt", "sub-x.txt"]
    assert len(found) == 7 and [read_document(path, root).source for path in found] == names
    assert [(one.source, one.reason.split(":")[0]) for one in found.skipped] == [
        (".git", "is hidden"),
        (".hidden.txt", "is hidden"),
        ("c.png", "is of a type that is not read"),
        ("d.pdf", "is no PDF, though it is named like one"),
        ("f.txt", "is neither UTF-8 nor UTF-16 with a byte order mark"),
        ("g.txt", "is empty"),
        ("h.txt", "is a symbolic link"),
        ("i", "is a symbolic link"),
        ("j", "is no regular file"),
    ]


def test_a_pattern_is_one_of_names_or_of_paths(root):
    for name in ("a.md", "docs/b.md", "docs/deep/c.md", "docs/d.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("words")

    def names(pattern):
        return [path.name for path in walk(root, pattern)]

    assert names("*.md") == names("**/*.md") == ["a.md", "b.md", "c.md"]
    assert names("docs/*.md") == names("docs/**/*.md") == ["b.md", "c.md"]
    assert names("docs/deep/*") == ["c.md"] and names("?.txt") == ["d.txt", "a.txt"] and names("none") == []


def test_a_folder_that_is_none_is_refused(root):
    for path in (root / "nothing", root / "sub/a.txt"):
        with pytest.raises(UnreadableDocument, match="no folder"):
            walk(path)


# -- PDF


@pytest.mark.behaviour("K01")
def test_a_pdf_is_read_page_by_page(tmp_path):
    info = "/Title (The  manual) /Author (Ana)"
    (tmp_path / "a.pdf").write_bytes(pdf(["First page.", "Second line."], None, ["Third page."], info=info))
    document = read_document("a.pdf", tmp_path)
    assert document.text == "First page.\nSecond line.\n\nThird page."
    assert (document.media_type, document.source) == ("application/pdf", "a.pdf")
    assert document.metadata == {"title": "The manual", "author": "Ana", "pages": 3, "pages_without_text": 1}
    assert document.pages == ((0, 1), (26, 3))
    assert [document.page_at(place) for place in (0, 25, 26, 99)] == [1, 1, 3, 3]
    assert document.text == normalise(document.text)


def test_a_pdf_is_told_by_its_content(tmp_path):
    (tmp_path / "a.txt").write_bytes(pdf(["words"]))
    document = read_document("a.txt", tmp_path)
    assert (document.media_type, document.text, document.metadata) == ("application/pdf", "words", {"pages": 1})


def test_an_encrypted_pdf_says_so(tmp_path):
    (tmp_path / "plain.pdf").write_bytes(pdf(["secret"]))
    for password in ("", "word"):
        writer = pypdf.PdfWriter(clone_from=tmp_path / "plain.pdf")
        writer.encrypt(password, "owner", algorithm="RC4-128")
        writer.write(tmp_path / "a.pdf")
        assert "is encrypted" in refusal("a.pdf", tmp_path)


def test_without_the_extra_the_error_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    (tmp_path / "a.pdf").write_bytes(pdf(["words"]))
    with pytest.raises(ExtraMissing, match=r"memoranda\[documents\]"):
        read_document("a.pdf", tmp_path)


# -- HTML

PAGE = """<!DOCTYPE html>
<html lang="en-GB"><head><title>Caf&eacute; &amp;
 bar</title><style>p { color: red }</style></head>
<body><nav><ul><li>Home</li></ul></nav><script>if (a < b) document.write("</p>")</script>
<!-- a > comment --><h1>The <em>title</em></h1>
<p>A   paragraph with <a href="x">a link</a>,
caf&#233; &lt;tag&gt; 1 < 2.<br>New line.<p title=don't># no heading
<ul><li>one<li><p>two</p><p>more</p><ol><li>first<li>second</ol></ul>
<h2>Table</h2>
<table><thead><tr><th>Name<th>Value</thead><tr><td>a|b<td>1<br>2<tr><td></td><td>c</td></tr></table>
<pre><code>def f():
    return "```"
</code></pre>
<div hidden>no <div>no</div></div><p style="display: none">no<h3>End</h3><img alt="A picture">
</body></html>"""
READ = """\
# The title

A paragraph with a link, café <tag> 1 < 2.
New line.

\\# no heading

- one
- two

  more
  1. first
  2. second

## Table

| Name | Value |
| --- | --- |
| a\\|b | 1 2 |
|  | c |

````
def f():
    return "```"
````

### End

A picture"""


@pytest.mark.behaviour("K01")
def test_a_page_is_read_as_markdown(tmp_path):
    (tmp_path / "a.html").write_text(PAGE, encoding="utf-8")
    document = read_document("a.html", tmp_path)
    assert document.text == READ
    assert document.metadata == {"title": "Café & bar", "language": "en-GB"}
    assert document.media_type == "text/html"
    assert split(document.text)[0].headings == ("The title",)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("just text", "just text"),
        ("<p>one<p>two</p>three", "one\n\ntwo\n\nthree"),
        ("a<!-- never closed", "a"),
        ("a<b", "a"),
        ("a < b <3 c<", "a < b <3 c<"),
        ("<![CDATA[ a ]]>b<?php c ?>d</ >e", "bde"),
        ("<textarea><b>x</b></textarea>", "<b>x</b>"),
        ("<script>a</scripty></script >b", "b"),
        ("<a href='x>y'>z</a>", "z"),
        ("&#99999999999999999999;&#" + "9" * 5000 + ";&nosuch;&amp;amp;", "\ufffd\ufffd&nosuch;&amp;"),
        (
            "<table><caption>Cap</caption><tr><td><h2>Layout</h2><p>x<p>y<td>z</table>",
            "Cap\n\n## Layout\n\nx\n\ny\n\nz",
        ),
        ("<table><tr><td>a<table><tr><td>b<td>c</table></table>d", "a\n\n| b | c |\n\nd"),
        ("<ul><li><ul><li>deep</ul></ul><li>alone", "  - deep\n\n- alone"),
        ("<li></li></ul></table></td><tr><td>x", "x"),
        ("<pre>a\n<b>b</b></pre><pre> </pre>", "```\na\nb\n```"),
        ("<h2>Title<br>in two</h2><p>===", "## Title in two\n\n\\==="),
        ("<p hidden>no <b>no</b><p>yes<nav>no<nav>no</nav>no</nav>", "yes"),
    ],
)
def test_broken_pages_are_read_as_browsers_do(page, text):
    assert read_html(page).text == text


TAGS = "p /p ul /ul ol li /li table /table tr td th h1 /h1 pre /pre br div /div title /title script /script !-- img"
NOISE = [f"<{tag}>" for tag in TAGS.split()] + [
    "<p hidden>",
    "-->",
    "<",
    ">",
    "&",
    "&lt;",
    "word ",
    "#",
    "```",
    "|",
    '"',
    "'",
]


@given(st.lists(st.sampled_from(NOISE) | st.text(max_size=5), max_size=40).map("".join))
def test_any_page_is_read(page):
    read = read_html(page)
    assert "\n" not in read.title and split(read.text) == split(normalise(read.text))


HOSTILE = ["<", "<!--", "<a ", "</", "<![CDATA[", "&", "&#", "<a b='", "<script></", "<ul><li>", "<table><tr><td>x"]
HOSTILE += ["<div hidden>", "<table>", "<td>", "<pre>`", "<title>", "<h1>", "<p>x\n"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_half_a_megabyte_of_anything_is_read(unit):
    assert isinstance(read_html(unit * (500_000 // len(unit))).text, str)
