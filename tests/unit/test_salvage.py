"""What language models really answer, and what is read out of it."""

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoranda.salvage import Salvage, prose, read, read_items, read_object

TEA = {"category": "fact", "content": "Ana likes tea", "importance": 5}
REX = {"category": "fact", "content": "The dog is called Rex", "importance": 7}
T, R = json.dumps(TEA), json.dumps(REX)


def items(reply):
    return read_items(reply, under=("memories",), fields=("content",))


# reply -> the items in it; all of it is there
WHOLE = {
    "plain": (f"[{T}, {R}]", [TEA, REX]),
    "one line each": (f"{T}\n{R}", [TEA, REX]),
    "spaces around": (f"\n\n  [{T}]  \n", [TEA]),
    "byte order mark": (f"\ufeff[{T}]", [TEA]),
    "nothing": ("[]", []),
    "nothing, spread": ("[\n]\n", []),
    "nothing, fenced": ("```json\n[]\n```", []),
    "nothing, with a reason before": ("There is nothing new here.\n\n[]", []),
    "nothing, in the sentence's end": ("Nothing worth saving: []", []),
    "nothing, in backticks": ("`[]`", []),
    "nothing, under its name": ('{"memories": []}', []),
    "nothing, under its name, after prose": ('Here you are: {"memories": []}', []),
    "nothing after thinking": ("<think>Could be [1] or not.</think>\n[]", []),
    "fence": (f"```json\n[{T}]\n```", [TEA]),
    "fence without a language": (f"```\n[{T}]\n```", [TEA]),
    "fence in one line": (f"```json [{T}] ```", [TEA]),
    "fence of tildes": (f"~~~json\n[{T}]\n~~~", [TEA]),
    "fence that is never closed": (f"```json\n[{T}]", [TEA]),
    "two fences": (f"Facts:\n```json\n[{T}]\n```\nMore:\n```json\n[{R}]\n```", [TEA, REX]),
    "fence after an example in prose": (f'As in [{{"content": "..."}}]:\n```json\n[{T}]\n```', [TEA]),
    "prose around": (f"Sure! Here are the memories:\n[{T}]\nLet me know if you need more.", [TEA]),
    "prose with a reference": (f"As said in [1] and [2], here: [{T}]", [TEA]),
    "prose with braces": (f"With {{name}} filled in: [{T}]", [TEA]),
    "prose with apostrophes": (f"I've read it, here's what's new: [{T}] That's it.", [TEA]),
    "prose that opens a bracket": (f"[note: what follows is the list. [{T}]", [TEA]),
    "think tags": (f"<think>Maybe [{R}]? No.</think>[{T}]", [TEA]),
    "thinking tags": (f"<thinking>\nHmm.\n</thinking>\n\n[{T}]", [TEA]),
    "a stray end of thinking": (f"So I would say [{R}] but no.\n</think>\n[{T}]", [TEA]),
    "think tags with attributes": (f'<think time="3">[{R}]</think>[{T}]', [TEA]),
    "square think tags": (f"[THINK]perhaps [{R}][/THINK][{T}]", [TEA]),
    "channels": (
        f"<|channel|>analysis<|message|>[{R}]<|end|><|start|>assistant<|channel|>final<|message|>[{T}]",
        [TEA],
    ),
    "triangles": (f"◁think▷[{R}]◁/think▷[{T}]", [TEA]),
    "thinking twice": (f"<think>a [1]</think> <reasoning>b [2]</reasoning> [{T}]", [TEA]),
    "think tags inside a string": (
        'Here: [{"content": "He writes <think> and </think> around thoughts"}] Done.',
        [{"content": "He writes <think> and </think> around thoughts"}],
    ),
    "an object around": (f'{{"memories": [{T}, {R}]}}', [TEA, REX]),
    "an object around under another name": (f'{{"items": [{T}]}}', [TEA]),
    "an object around with more in it": (f'{{"reason": "new facts", "count": 1, "memories": [{T}]}}', [TEA]),
    "two objects around": (f'{{"result": {{"memories": [{T}]}}}}', [TEA]),
    "a list around the list": (f"[[{T}, {R}]]", [TEA, REX]),
    "a list around the object": (f'[{{"memories": [{T}]}}]', [TEA]),
    "a lone item": (T, [TEA]),
    "a lone item in prose": (f"One thing: {T}.", [TEA]),
    "a lone item under the name": (f'{{"memories": {T}}}', [TEA]),
    "a tool call": (f'<tool_call>{{"name": "save", "arguments": {{"memories": [{T}]}}}}</tool_call>', [TEA]),
    "a tool call with its arguments in a string": (
        json.dumps({"name": "save", "arguments": json.dumps({"memories": [TEA]})}),
        [TEA],
    ),
    "a string that holds JSON": (json.dumps(json.dumps([TEA])), [TEA]),
    "a string that holds a string that holds JSON": (json.dumps(json.dumps(json.dumps([TEA]))), [TEA]),
    "items that are strings that hold JSON": (json.dumps([T, R]), [TEA, REX]),
    "a list that is a string": (json.dumps({"memories": json.dumps([TEA])}), [TEA]),
    "quotes that are escaped": (f"[{T}]".replace('"', '\\"'), [TEA]),
    "quotes of HTML": (f"[{T}]".replace('"', "&quot;"), [TEA]),
    "brackets of LaTeX": (f"\\[{T}\\]", [TEA]),
    "a trailing comma": (f"[{T},]", [TEA]),
    "trailing commas inside": (f"[{T[:-1]},}}, {R},\n]", [TEA, REX]),
    "a comma twice": (f"[{T},, {R}]", [TEA, REX]),
    "a comma forgotten between items": (f"[{T}\n{R}]", [TEA, REX]),
    "a comma forgotten between lines": (T.replace(", ", "\n"), [TEA]),
    "single quotes": (repr([TEA, REX]), [TEA, REX]),
    "single quotes with an apostrophe": ("[{'content': 'Ana's dog isn't old'}]", [{"content": "Ana's dog isn't old"}]),
    "Python's literals": (
        "[{'content': 'x', 'sure': True, 'old': False, 'user': None}]",
        [{"content": "x", "sure": True, "old": False, "user": None}],
    ),
    "smart quotes": ("[{“content”: “Ana likes “green” tea”}]", [{"content": "Ana likes “green” tea"}]),
    "smart single quotes": ("[{‘content’: ‘Ana’s tea’}]", [{"content": "Ana’s tea"}]),
    "backticks": ("[{`content`: `tea`}]", [{"content": "tea"}]),
    "three quotes": ('[{"content": """two "quoted"\nlines"""}]', [{"content": 'two "quoted"\nlines'}]),
    "comments": (
        f"[ // the first\n {T}, /* and the\n second */ {R} # end\n]",
        [TEA, REX],
    ),
    "a comment that looks like an address is in a string": (
        '[{"content": "see https://x.y // z",}]',
        [{"content": "see https://x.y // z"}],
    ),
    "names without quotes": (
        '[{content: "tea", importance: 5}]',
        [{"content": "tea", "importance": 5}],
    ),
    "values without quotes": (
        "[{content: Ana likes tea, day: 2026-01-02, importance: 8/10}]",
        [{"content": "Ana likes tea", "day": "2026-01-02", "importance": "8/10"}],
    ),
    "wide punctuation": ('[{"content"：“茶”，"importance"：5}]', [{"content": "茶", "importance": 5}]),
    "arrows": ('[{"content" => "tea"}]', [{"content": "tea"}]),
    "not a number": (
        '[{"content": "x", "a": NaN, "b": -Infinity, "c": 1e999}]',
        [{"content": "x", "a": None, "b": None, "c": None}],
    ),
    "not a number, amid prose": ('So: [{"content": "x", "a": NaN}] ok', [{"content": "x", "a": None}]),
    "odd numbers": (
        '[{"content": "x", "a": +5, "b": .5, "c": 1., "d": 1_000, "e": 007,}]',
        [{"content": "x", "a": 5, "b": 0.5, "c": 1.0, "d": 1000, "e": 7}],
    ),
    "line breaks in a string": ('[{"content": "one\ntwo\tthree"}]', [{"content": "one\ntwo\tthree"}]),
    "quotes in a string": (
        '[{"content": "He said "hi there" to me", "importance": 5}]',
        [{"content": 'He said "hi there" to me', "importance": 5}],
    ),
    "quotes and commas in a string": (
        '[{"content": "He said "hi", then left", "importance": 5}]',
        [{"content": 'He said "hi", then left', "importance": 5}],
    ),
    "escapes that are none": (
        r'[{"content": "C:\Users\ana isn\'t \_here\_ \u00e9\ud83d\ude00"}]',
        [{"content": "C:\\Users\\ana isn't _here_ é😀"}],
    ),
    "a closing brace forgotten": (f"[{T[:-1]}]", [TEA]),
    "a closing brace too many": (f"[{T}}}, {R}]", [TEA, REX]),
    "braces around a set of items": (f"{{{T}, {R}}}", [TEA, REX]),
    "the same item twice in a row": (f"[{T}]\n[{T}]", [TEA]),
}


@pytest.mark.behaviour("C20")
@pytest.mark.parametrize(("reply", "expected"), WHOLE.values(), ids=WHOLE.keys())
def test_items_are_read_out_of_what_models_answer(reply, expected):
    salvage = items(reply)
    assert not salvage.failed and salvage.value == expected and salvage.complete


# reply -> the items that are whole; what else it said is lost, and that is known
CUT = {
    "cut in a string": (f'[{T}, {{"category": "fact", "content": "The dog is ca', [TEA]),
    "cut between items": (f"[{T}, {R},", [TEA, REX]),
    "cut before the last bracket": (f"[{T}, {R}", [TEA, REX]),
    "cut in a name": (f'[{T}, {{"cate', [TEA]),
    "cut in a number": (f'[{T}, {{"content": "x", "importance": 1', [TEA]),
    "cut in an object around": (f'{{"memories": [{T}, {{"content": "x', [TEA]),
    "cut in a list around an object": (f'[{{"memories": [{T}, {{"content": "x', [TEA]),
    "cut in a fence": (f"```json\n[{T},\n{R[:30]}", [TEA]),
    "cut in a fence that is closed": (f"```json\n[{T},\n{R[:30]}\n```", [TEA]),
    "cut in a list of an item": (f'[{T}, {{"content": "x", "tags": ["a", "b', [TEA]),
    "cut in single quotes": (f"[{TEA!r}, {{'content': 'The dog", [TEA]),
    "cut on the second line": (f'{T}\n{{"content": "The dog', [TEA]),
    "left off with dots": (f"[{T}, ...]", [TEA]),
    "an item without content": (f'[{T}, {{"importance": 3}}]', [TEA]),
    "an item that is a string": (f'[{T}, "Ana likes tea"]', [TEA]),
    "an item that is null": (f"[null, {T}]", [TEA]),
    "nonsense in the middle": (f"[{T}, hmm, I wonder. {R}]", [TEA, REX]),
    "a quote forgotten": ('[{"content": "abc, "importance": 5}, {"content": "def"}]', [{"content": "def"}]),
}


@pytest.mark.behaviour("C20")
@pytest.mark.parametrize(("reply", "expected"), CUT.values(), ids=CUT.keys())
def test_whole_items_are_kept_of_what_is_cut_or_partly_wrong(reply, expected):
    salvage = items(reply)
    assert not salvage.failed and salvage.value == expected and not salvage.complete


FAILED = {
    "empty": ("", "empty"),
    "blank": (" \n\t ", "empty"),
    "prose": ("I'm sorry, I can't help with that.", "no JSON"),
    "nothing in words": ("There is nothing worth saving.", "no JSON"),
    "null": ("null", "no list"),
    "None": ("None", "no list"),
    "a number": ("0", "no list"),
    "a string": ('"none"', "no list"),
    "an empty object": ("{}", "no list"),
    "an object of another kind": ('{"error": "too long", "tags": ["a"]}', "no list"),
    "null under the name": ('{"memories": null}', "no list"),
    "a list of numbers": ("As [1, 2] say.", "No item"),
    "a list of strings": ('["Ana likes tea"]', "No item"),
    "a list of null": ("[null]", "No item"),
    "an empty item": ("[{}]", "No item"),
    "cut at the start": ("[", "no JSON"),
    "cut in the first item": ('[{"content": "Ana li', "No item|no JSON|no list"),
    "cut in the first item of an object": ('{"memories": [{"content": "Ana li', "no JSON|No item|no list"),
    "cut before the first item of an object": ('{"memories": [', "no JSON|No item|no list"),
    "a list cut empty": ("```json\n[\n", "no JSON"),
    "thinking only": (f"<think>I could save [{T}]", "thinking only"),
    "thinking and no answer": (f"<think>I could save [{T}]</think>", "thinking only"),
    "thinking and prose": (f"<think>[{T}]</think>Done!", "no JSON"),
    "an open task": ("- [ ] buy milk\n- [ ] feed Rex", "no list"),
    "an empty list in a sentence": ("The function returns [] when nothing is found.", "no list"),
    "an empty example": ('I decline. The format would have been {"memories": []} otherwise.', "no list"),
    "a type": ("It is a list of str[]", "no list"),
    "a link": ("See [](https://example.com) for more.", "no list"),
    "a template": ("{content}", "no JSON"),
}


@pytest.mark.behaviour("C20")
@pytest.mark.parametrize(("reply", "why"), FAILED.values(), ids=FAILED.keys())
def test_a_failure_is_never_an_empty_list(reply, why):
    salvage = items(reply)
    assert salvage.failed and salvage.value is None
    assert salvage.problem is not None and any(part in salvage.problem for part in why.split("|"))


def test_the_table_is_long_enough_to_mean_something():
    assert len(WHOLE) + len(CUT) + len(FAILED) >= 60


def test_right_json_is_told_from_what_was_repaired():
    assert not items(f"[{T}]").repaired
    assert items(f"[{T},]").repaired


def test_neither_repr_nor_problem_repeats_the_reply():
    assert "tea" not in repr(items(f"[{T}]"))
    assert "hunter2" not in repr(items('my password is hunter2 {"a": [}'))


# -- objects and any value

REVIEW = {"user_model": {"baseline": "based in Lisbon"}, "memories": [TEA]}


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps(REVIEW),
        f"<think>{{}}</think>Here it is:\n```json\n{json.dumps(REVIEW, indent=2)}\n```\nThat is all [1].",
        repr(REVIEW),
        json.dumps([REVIEW]),
        json.dumps({"result": REVIEW}),
        json.dumps(json.dumps(REVIEW)),
    ],
)
def test_an_object_is_read(reply):
    salvage = read_object(reply, fields=("user_model", "memories"))
    assert salvage.value == REVIEW and salvage.complete


def test_an_object_that_breaks_off_keeps_what_is_whole_of_it():
    salvage = read_object('{"action": "keep", "items": [1, 2], "reason": "they are differ', fields=("action",))
    assert salvage.value == {"action": "keep", "items": [1, 2]} and not salvage.complete
    assert read_object("[1]", fields=("action",)).failed
    assert read_object('{"other": 1}', fields=("action",)).failed


@pytest.mark.parametrize(
    ("reply", "value"),
    [("```json\n7\n```", 7), ("true", True), ("None", None), ('<think>x</think>"yes"', "yes"), ("1e999", None)],
)
def test_a_scalar_is_read_when_it_is_all_there_is(reply, value):
    assert read(reply) == Salvage(value, repaired=read(reply).repaired)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("A summary.", "A summary."),
        ("<think>hm</think>\n\nA summary.", "A summary."),
        ("hm</think>A summary.", "A summary."),
        ("```markdown\nA summary.\nTwo lines.\n```", "A summary.\nTwo lines."),
        ("Run:\n```sh\nls\n```\nand go.", "Run:\n```sh\nls\n```\nand go."),
        ("<think>never ends", ""),
    ],
)
def test_prose_is_freed_from_thinking_and_its_fence(reply, text):
    assert prose(reply) == text


# -- any value, any noise

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
# Longer than any aside, and not empty: an empty list amid prose is a matter of its own.
containers = st.builds(lambda value: {"what is meant by all this": value}, values) | st.builds(
    lambda value: [value, "and words that make it long"], values
)
quiet = st.text(st.characters(exclude_characters="[]{}<`~◁", exclude_categories=["Cs"]))
asides = st.sampled_from(["", "see [1]", "{name}", "It's Ana's.", "[x](https://y.z)", '"so"', "- [ ] milk", "a < b"])
thoughts = st.sampled_from(["", "<think>[1, 2</think>", "<thinking>{'a': [</thinking>", "I'd say [3].</think>"])


@given(values)
def test_json_comes_back_as_it_is(value):
    assert read(json.dumps(value)).value == value
    assert read(json.dumps(value, ensure_ascii=False, indent=1)).value == value


@given(values, thoughts, st.sampled_from(["json\n", "\n", "JSON \n"]), st.booleans())
def test_any_value_comes_back_out_of_a_fence(value, thought, language, ascii_only):
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{", '"', "`"):
        return  # JSON inside JSON is opened
    reply = f"{thought}```{language}{json.dumps(value, ensure_ascii=ascii_only)}\n```"
    assert read(reply).value == value


@given(containers, quiet, asides, thoughts, asides, quiet, st.sampled_from([None, 1]))
def test_any_list_or_object_comes_back_out_of_any_noise(value, before, aside, thought, another, behind, indent):
    written = json.dumps(value, indent=indent)
    reply = f"{thought}{before} {aside}\n{written}\n{another} {behind}"
    assert read(reply).value == value


printable = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F) | st.sampled_from("\n\t茶😀"))


@example([{"content": '\\"', "sure": False, "user": None}])
@given(st.lists(st.fixed_dictionaries({"content": printable, "sure": st.booleans(), "user": st.none()}), min_size=1))
def test_python_s_own_writing_of_items_comes_back(rows):
    expected = [row for row, before in zip(rows, [None, *rows], strict=False) if row != before]
    assert items(f"Here: {rows!r}").value == expected


@given(st.lists(st.fixed_dictionaries({"content": st.text(), "importance": st.integers(1, 10)})), st.data())
def test_a_reply_cut_anywhere_gives_whole_items_from_the_first_on_or_fails(rows, data):
    reply = json.dumps(rows, indent=data.draw(st.sampled_from([None, 1])))
    cut = reply[: data.draw(st.integers(0, len(reply) - 1))]
    salvage = items(cut)
    assert salvage.failed or not salvage.complete
    kept = salvage.value or []
    assert all(row in rows for row in kept)


@given(st.text() | st.text("[]{}\"',:\\ \n`<>/thinkabc019.-#*"))
@settings(max_examples=500)
def test_no_text_raises(reply):
    for salvage in (read(reply), items(reply), read_object(reply), read_items(reply)):
        assert salvage.failed == (salvage.problem is not None)
    assert isinstance(prose(reply), str)


GARBAGE = [
    *("[", "{", '"', "'", "\\", ",", "<", "```", "<think>", "</think>", " "),
    *('["', '{"a":', '[{"a": "x, "b": ', "[/*", "['a' b ", "{a:", '["a",', '{"a":"b', "[“", '["""', "[...", "[1]"),
    *("[" * 150 + "}" * 150, '{\\"a\\": [\\"', '{"content": "x"} ', '[{"content": "x', 'he said \'x [ "y" {z: “'),
]


@pytest.mark.parametrize("piece", GARBAGE, ids=repr)
def test_time_is_linear_in_the_length_of_garbage(piece):
    # 150,000 characters take a good tenth of a second; with quadratic work this test would not end.
    reply = piece * (150_000 // len(piece))
    salvage = items(reply)
    assert salvage.failed or salvage.value
    assert isinstance(prose(reply), str)


def test_numbers_that_python_refuses_do_no_harm():
    assert read(f"[{'9' * 10_000}]").value == [None]
    assert math.isfinite(read("[1.5e300]").value[0])


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\n "])
def test_a_long_gap_in_a_fence_holds_nobody_up(space):
    gap = space * (100_000 // len(space))
    assert items(f"```json\n{gap}[{T}]{gap}\n```").value == [TEA]
    assert prose(f"```\n{gap}tea{gap}x").strip().startswith("tea")
