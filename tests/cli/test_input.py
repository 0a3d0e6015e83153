"""Memories from standard input."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.cli.rows import read_input, read_rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.text() | st.dictionaries(st.text(), JSON, max_size=3), max_size=6)


@given(rows=ROWS, indent=st.sampled_from([None, 2]), array=st.booleans())
def test_lines_arrays_and_pretty_documents_are_read_alike(rows, indent, array):
    text = json.dumps(rows, indent=indent) if array else "\n".join(json.dumps(row, indent=indent) for row in rows)

    found, problem, _ = read_rows(text)

    assert problem is None
    assert [row.value for row in found] == rows


@given(before=st.integers(0, 5), rows=ROWS)
def test_a_row_knows_its_line(before, rows):
    found, _, _ = read_rows("\n" * before + "\n".join(json.dumps(row) for row in rows))

    assert [row.line for row in found] == [before + 1 + i for i in range(len(rows))]


@given(text=st.text(alphabet='{}[]",:\n 1ax\\', max_size=40))
def test_nothing_makes_the_reader_fail(text):
    rows, problem, line = read_rows(text)

    assert 1 <= line <= text.count("\n") + 1
    assert all(1 <= row.line <= line for row in rows)
    assert problem is None or str(problem).startswith("not JSON: ")


@pytest.mark.parametrize(
    ("text", "rows", "line"),
    [
        ('"a"\nb', 1, 2),
        ('["a"\n"b"]', 1, 2),
        ('["a",\n]', 1, 2),
        ("[,]", 0, 1),
        ('["a",,"b"]', 1, 1),
        ('["a",\n', 1, 2),
        ('{"a":\n1', 0, 2),
        ("[" * 100_000, 0, 1),
    ],
)
def test_what_is_wrong_is_found_with_its_line(text, rows, line):
    found, problem, place = read_rows(text)

    assert problem is not None
    assert (len(found), place) == (rows, line)


def test_one_object_or_many_are_written_from_standard_input(run):
    assert run("write", "-", input='{"content": "Ana likes tea.", "importance": 9}').stdout.startswith("saved [")
    assert run("write", "-", input='["Bo likes tea.", {"content": "Cy likes tea."}]').stdout == "stored 2 memories\n"
    again = run("write", "-", input='"Bo likes tea."\n"Di likes tea."')
    assert again.stdout == "stored 1 memory, 1 already there\n"

    listed = json.loads(run("list", "--json").stdout)["memories"]
    assert [memory["content"][:2] for memory in listed] == ["Di", "Cy", "Bo", "An"]
    assert listed[-1]["importance"] == 9


def test_options_fill_in_what_a_row_leaves_out(run):
    rows = '{"content": "one", "category": "own"}\n{"content": "two"}\n"three"'
    run("write", "-", "--category", "given", input=rows)

    listed = json.loads(run("list", "--json").stdout)["memories"]
    assert {memory["content"]: memory["category"] for memory in listed} == {
        "one": "own",
        "two": "given",
        "three": "given",
    }


def test_text_of_any_script_comes_in_as_utf_8(run):
    run("write", "-", input="\ufeff" + json.dumps({"content": "東京は晴れです。"}, ensure_ascii=False))

    assert json.loads(run("list", "--json").stdout)["memories"][0]["content"] == "東京は晴れです。"


def test_a_bad_row_names_its_line_and_what_is_stored(run):
    rows = [json.dumps({"content": f"note {i}"}) for i in range(700)]
    rows[612] = '{"content": "bad", "importance": 99}'

    result = run("write", "-", input="\n".join(rows))

    assert result.exit_code == 2
    assert result.stderr == (
        "error: line 613: importance: must be at most 10. The 612 rows before it are stored: go on from there.\n"
    )
    assert json.loads(run("stats", "--json").stdout)["memories"] == 612


def test_every_bad_row_is_named_with_its_line(run):
    rows = [json.dumps({"content": f"note {i}"}) for i in range(700)]
    rows[2] = '{"content": "bad", "importance": 99}'
    rows[4] = '{"content": "bad", "colour": "red"}'
    rows[5] = "12"
    rows[699] = '{"content": ""}'

    result = run("write", "-", input="\n".join(rows))

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: line 3: importance: must be at most 10. The 2 rows before it are stored: go on from there.",
        "       line 5: colour: is not a field of a memory",
        "       line 6: a memory is a string, or a mapping with `content`",
        "       from line 501 on nothing was looked at",
    ]
    assert json.loads(run("stats", "--json").stdout)["memories"] == 2


def test_a_flood_of_bad_rows_is_cut_short(run):
    result = run("write", "-", input="\n".join(["12"] * 30))

    lines = result.stderr.splitlines()
    assert [line.split(": ")[-2].split()[-1] for line in lines[1:20]] == [str(i) for i in range(2, 21)]
    assert lines[20:] == ["       and 10 more"]
    as_json = json.loads(run("write", "-", "--json", input="12\n13").stderr)["error"]
    assert (as_json["line"], as_json["more"]) == (1, ["line 2: a memory is a string, or a mapping with `content`"])


def test_a_bad_row_is_reported_as_json_too(run):
    result = run("write", "-", "--json", input='"good"\n{"content": "bad", "colour": "red"}')

    assert json.loads(result.stderr) == {
        "error": {
            "kind": "InvalidInput",
            "message": "line 2: colour: is not a field of a memory. The row before it is stored: go on from there.",
            "exit_code": 2,
            "line": 2,
            "stored": 1,
            "field": "colour",
        }
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing came in on standard input"),
        (b"\xff\xfe", "standard input is not UTF-8"),
        ("plain text", "line 1: not JSON"),
        ("12", "line 1: a memory is a string"),
        ('{"category": "x"}', "line 1: content is missing"),
    ],
)
def test_input_that_is_no_memory_is_refused(run, text, message):
    result = run("write", "-", input=text)

    assert result.exit_code == 2
    assert message in result.stderr


def test_a_trailing_comma_is_an_error(run):
    result = run("write", "-", input='[{"content": "a"},]')

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "error: line 1: not JSON: Expecting value at column 19. The row before it is stored"
    )


def test_somebody_who_types_is_told_what_is_awaited(monkeypatch, capsys):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b'"one"')))

    assert read_input() == '"one"'
    assert capsys.readouterr().err.startswith("reading JSON from standard input until Ctrl-")


def test_an_empty_array_stores_nothing(run):
    assert run("write", "-", input="[]").stdout == "stored 0 memories\n"


def test_a_correction_comes_from_standard_input(run):
    written = json.loads(run("write", "The lamp is green.", "--json").stdout)["memories"][0]["short_id"]

    result = run("supersede", written, "-", "--json", input='{"content": "The lamp is blue.", "importance": 8}')

    assert json.loads(result.stdout)["memory"]["importance"] == 8
    assert run("supersede", written, "-", input='["one", "two"]').exit_code == 2


@pytest.mark.parametrize(
    ("command", "text", "complaint"),
    [
        ("get", '"7k2m9xqa"', 'get takes one JSON object with "id"'),
        ("get", '{"id": 12}', "id must be a string"),
        ("get", '{"id": "7k2m9xqa", "colour": "red"}', "colour: get knows no such name"),
        ("mark", '{"id": "7k2m9xqa"}', 'mark takes one JSON object with "id" and "status"'),
        ("supersede", '{"content": "tea"}', 'supersede takes one JSON object with "id" and "content"'),
        ("keep", '{"content": "tea", "about": "everyone", "id": ["7k2m9xqa"]}', "id must be a string"),
        ("keep", '{"about": "everyone"}', 'keep takes one JSON object with "content"'),
        ("mark", "[oops", "not JSON: Expecting value at column 2"),
    ],
)
def test_an_object_that_does_not_fit_its_command_is_refused(run, command, text, complaint):
    result = run(command, "-", input=text)

    assert (result.exit_code, result.stderr) == (2, f"error: {complaint}\n")
