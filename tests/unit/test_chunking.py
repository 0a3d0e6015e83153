"""Chunks: their bodies rebuild the text, and no cut parts what belongs together."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.documents.chunking import SEPARATOR, Chunk, normalise, rebuild, split
from memoranda.errors import ConfigurationError
from memoranda.policies import ChunkingPolicy

SMALL = ChunkingPolicy(size=500, overlap=60)
PARTS = [
    *(
        "word ",
        "A sentence ends. ",
        "Is it so? ",
        "Hello (there.) ",
        "Dr. Who and e.g. this ",
        "1. first\n",
        "- item\n",
    ),
    *(
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\n \t\n\n\n",
        "\u2028",
        "\u2029",
        "\u0085",
        " ",
        "\t",
        "\u3000",
        "\x0c",
        "\x1c",
        "\0",
    ),
    *(
        "# One\n",
        "## Two ##\n\n",
        "###### Six\n",
        "Title\n===\n",
        "Other\n---\n",
        "# " + "t" * 170 + "\n",
        "---\n",
        "#\n",
    ),
    *("```py\n", "```\n", "~~~~\n", "  ```\n", "x = 1\n", "| a | b |\n", "`", "~", "#", "=", "|"),
    *("漢字かな。", "한국어 문장. ", "ภาษาไทย", "हिन्दी वाक्य। ", "क्ष", "e\u0301", "\u0301", "各\ufe0f", "가"),
    *("👩‍👩‍👧‍👦", "👍🏽", "🇩🇪", "1️⃣", "🏴\U000e0067\U000e0062\U000e007f", "\u200d", "\ud83d", "\ude00", "\ufeff"),
    *("x" * 600, "y z " * 160, "漢" * 700, "👩‍👩‍👧‍👦" * 90, "🇩🇪" * 300, " " * 300, "\n" * 300, "ก่" * 300),
]
texts = st.lists(st.sampled_from(PARTS) | st.text(max_size=30), max_size=60).map("".join)


def bodies(text, policy=SMALL):
    return [chunk.body for chunk in split(text, policy)]


@pytest.mark.behaviour("K02", "K06")
@given(texts)
def test_the_bodies_rebuild_the_text_in_order_and_none_is_too_long(text):
    chunks = split(text, SMALL)
    whole = normalise(text)
    assert rebuild(chunks) == "".join(chunk.body for chunk in chunks) == whole
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.body.strip() and len(chunk.body.rstrip()) <= 500
        assert len(chunk.body) <= 500 + SEPARATOR and len(chunk.text) <= 500 + 60 + SEPARATOR
        assert whole[chunk.start : chunk.start + len(chunk.body)] == chunk.body
        assert whole[: chunk.start + len(chunk.body)].endswith(chunk.text)


@given(texts)
def test_the_overlap_is_the_end_of_the_body_before(text):
    chunks = split(text, SMALL)
    assert not chunks or chunks[0].overlap == ""
    for before, chunk in pairwise(chunks):
        assert before.body.endswith(chunk.overlap) and len(chunk.overlap) <= 60
        assert not chunk.overlap[:1].isspace()


@given(texts)
def test_normalising_twice_changes_nothing(text):
    whole = normalise(text)
    assert normalise(whole) == whole == whole.strip()
    assert not re.search(r"[\r\0\u0085\u2028\u2029\ud800-\udfff]|\s{201}", whole)


@given(texts)
def test_no_cut_stands_before_a_mark_or_behind_a_joiner(text):
    for before, after in pairwise(bodies(text)):
        if before[-1] != "\n":
            assert unicodedata.category(after[0])[0] != "M" and after[0] not in "\u200d\U0001f3fd"
            assert before[-1] != "\u200d" or after[0].isspace()


@pytest.mark.behaviour("K02")
def test_the_default_is_3000_characters_and_200_before_them():
    text = "\n\n".join(f"Paragraph {number}. " + "words and words " * 30 for number in range(40))
    chunks = split(text)
    assert len(chunks) > 6 and all(len(chunk.text) <= 3202 for chunk in chunks)
    assert all(chunk.body.startswith("Paragraph") and 100 < len(chunk.overlap) <= 200 for chunk in chunks[1:])
    assert chunks == split(text, ChunkingPolicy(size=3000, overlap=200))


def test_a_text_of_white_space_has_no_chunks_and_a_short_one_has_one():
    assert split("") == split(" \r\n\t\u2029\0") == []
    assert split(" hello\r\n") == [Chunk(index=0, body="hello", overlap="", start=0, headings=())]


def test_paragraphs_are_packed_up_to_the_size_and_keep_their_blank_lines():
    exactly = "a" * 300 + "\n\n" + "b" * 198
    assert bodies(f"{exactly}\n\nc") == [f"{exactly}\n\n", "c"]
    assert bodies(f"{exactly}b\n\nc") == ["a" * 300 + "\n\n", "b" * 199 + "\n\nc"]
    assert bodies(f"{exactly}\n \n\t\n\nc")[0] == f"{exactly}\n "[: 500 + SEPARATOR]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("One two three. " * 60, ". "),
        ("Is it? " * 90, "? "),
        ('"It is." ' * 90, '." '),
        ("no end at all but words " * 40, " "),
        ("Off they went. He met Dr. Smith and J. Doe, and 42. on the way to work " * 30, "went. "),
        ("漢字仮名交じり文。" * 90, "。"),
        ("「そうです。」" * 90, "。」"),
        ("क्षमा कीजिए। " * 60, "। "),
        ("کیا حال ہے؟ " * 60, "؟ "),
        ("| name | value |\n" * 50, "|\n"),
        ("- an item of words\n" * 50, "\n"),
        ("line of verse\n" * 60, "\n"),
    ],
)
def test_a_long_paragraph_is_cut_behind_a_sentence_else_behind_a_word(text, end):
    found = bodies(text)
    assert len(found) > 1
    assert all(body.endswith(end) and len(body) > 300 for body in found[:-1])


@pytest.mark.parametrize(
    "letter",
    ["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301\u0323", "क्ष", "เก้", "น้ำ", "1️⃣", "각", "🏴\U000e0067\U000e007f", "x", "ﾊﾟ"],
)
def test_nothing_a_reader_sees_as_one_character_is_parted(letter):
    for lead in range(4):
        found = bodies("." * lead + letter * 900)
        assert len(found) > 1
        assert [body.removeprefix("." * lead).replace(letter, "") for body in found] == [""] * len(found)


def test_a_pair_of_surrogates_is_one_character():
    assert rebuild(split("\ud83d\ude00" * 600, SMALL)) == "😀" * 600
    assert normalise("\ud83d") == "\ufffd"


def test_endless_marks_are_cut_all_the_same():
    assert [len(body) for body in bodies("a" + "\u0301" * 1200)] == [500, 500, 201]


def test_a_heading_stays_with_what_follows_it():
    text = "First. " * 68 + "\n\n# Heading\n\n## Below\n" + "Second. " * 10
    assert [body[:9] for body in bodies(text)] == ["First. Fi", "# Heading"]
    long = "Intro.\n\n# Heading\n\n" + "Second words. " * 60
    assert bodies(long)[1].startswith("# Heading\n\nSecond")
    assert all(body.strip().endswith(".") for body in bodies(long)[1:])
    table_of_contents = "".join(f"# Heading {number}\n" for number in range(200)) + "\nThe text."
    assert all(body.startswith("# Heading") for body in bodies(table_of_contents))
    assert bodies(table_of_contents)[-1].endswith("# Heading 199\n\nThe text.")


def test_code_that_fits_is_whole_and_its_blank_lines_part_nothing():
    code = "```py\n" + "a = 1\n\n\nb = 2\n" * 25 + "```"
    for lead in (0, 200, 400, 490):
        found = bodies("Words. " * (lead // 7) + "\n" + code + "\nafter\n\n" + "More. " * 60)
        assert sum(code in body for body in found) == 1
    assert any("# no heading" in chunk.body for chunk in split("```\n# no heading\n```\n\n# Real\n\ntext", SMALL))
    assert split("```\n# no heading\n```\n\n# Real\n\ntext", SMALL)[0].headings == ()


def test_longer_code_is_cut_between_lines_and_rather_at_a_blank_one():
    lines = "```\n" + "".join(f"line {number:03} of the code\n" for number in range(90)) + "```"
    found = bodies(lines)
    assert len(found) > 2 and all(body.endswith("code\n") and len(body) > 450 for body in found[:-1])
    gaps = "~~~\n" + ("a = 1\n" * 20 + "\n") * 12 + "~~~"
    assert all(body.endswith("a = 1\n\n") for body in bodies(gaps)[:-1])
    assert all(not body.strip().startswith("code") for body in bodies("```\n" + "    indented\n" * 90))
    assert {body[:4] for body in bodies("```\n" + "    indented\n" * 90)[1:]} == {"    "}


def test_a_chunk_knows_the_headings_it_stands_under():
    filler = "Some words here. " * 28
    text = (
        f"{filler}\n\n# A #\n\n## B\n\n{filler}\n\n{filler}\n\nC\n===\n\n{filler}\n\nD\n---\n{filler}\n\n# C#\n{filler}"
    )
    found = [chunk.headings for chunk in split(text, SMALL)]
    assert list(dict.fromkeys(found)) == [(), ("A", "B"), ("C",), ("C", "D"), ("C#",)]


@pytest.mark.parametrize(
    "text",
    ["#hashtag", "####### seven", "    # code", "---\ntitle: x\n---", "two\nlines\n---", "# " + "a" * 161, "# #"],
)
def test_what_only_looks_like_a_heading_is_none(text):
    assert {chunk.headings for chunk in split(f"words\n\n{text}\n\nwords" + " words" * 90, SMALL)} == {()}
    assert split(text.replace("    #", "#hashtag"), SMALL)[0].headings == ()


def test_the_overlap_begins_with_a_word():
    chunks = split("alphabet soup tastes. " * 60, SMALL)
    assert all(chunk.overlap.split()[0] in ("alphabet", "soup", "tastes.") for chunk in chunks[1:])
    assert {chunk.overlap for chunk in split("x" * 1200, SMALL)} == {""}
    assert all(55 <= len(chunk.overlap) <= 60 for chunk in split("漢字仮名交じり文。" * 90, SMALL)[1:])
    assert all(chunk.overlap == "" for chunk in split("words " * 300, ChunkingPolicy(size=500, overlap=0)))


@pytest.mark.parametrize("wrong", [{"size": 499}, {"overlap": -1}, {"size": 500, "overlap": 251}])
def test_a_policy_that_cannot_work_is_refused(wrong):
    with pytest.raises(ConfigurationError):
        ChunkingPolicy(**wrong)


HOSTILE = [
    "a",
    ".",
    ". ",
    "\n",
    "# a\n",
    "```\n",
    "```a\n",
    "`",
    "\u0301",
    "🇩",
    "\u200d",
    "|",
    "a\n===\n\n",
    "\t`",
    "])",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_anything_is_cut(unit):
    text = unit * (1_000_000 // len(unit))
    assert rebuild(split(text)) == normalise(text)
