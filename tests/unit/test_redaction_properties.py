"""What holds of every text: nothing is redacted twice, nothing raises, and no text takes more than linear time."""

import re
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda import redaction
from memoranda.redaction import assigned as assigned_secrets
from memoranda.redaction import redact, redact_value

BODY = "A1b2C3d4E5f6G7h8J9k0" * 3
SECRETS = [
    f"-----BEGIN RSA PRIVATE KEY-----\nMIIB{BODY}\n-----END RSA PRIVATE KEY-----",
    "sk-" + "ant-api03-" + BODY[:24],
    "sk-" + BODY[:48],
    "gh" + "p_" + BODY[:36],
    "xox" + "b-" + BODY[:12],
    "AK" + "IA" + "ABCDEFGHIJ234567",
    "eyJ" + BODY[:20] + ".eyJ" + BODY[:20] + "." + BODY[:43],
    "12345678:" + BODY[:35],
    "https://ana:hunter2@example.com/",
    "DB_PASSWORD=hunter2x",
    '"token": "swordfish"',
]
WORDS = (
    "password passwords pass token tokens api_key bearer authorization cookie secret key is for the ana hunter2 none "
    "curl value mysql machine login https:// :// @ : = . _ - -- -p -u / \\ , ; ( ) [ ] { } < > \uff1a 密码 是 “ ” "
    "x1y2z3w4 \u0130"
)
MARKS = ["[REDACTED:credential]", "[REDACTED:jwt]", "[REDACTED:", "]", " ", '"', "'", "`", "\n", "%3D", "\\n"]
fragments = st.sampled_from(SECRETS + WORDS.split() + MARKS)
texts = st.one_of(st.text(max_size=80), st.lists(fragments, max_size=14).map("".join))


@pytest.mark.behaviour("W30")
@given(texts)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.sampled_from(SECRETS[:7]), st.text(alphabet=" ,;()\n猫é“”：、", max_size=20))
def test_no_secret_survives_its_surroundings(secret: str, around: str) -> None:
    assert secret not in redact(f"{around} {secret}{around}")


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=40))
def test_no_text_raises_lone_surrogates_included(text: str) -> None:
    redact(text)


plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.binary(max_size=20))
values = st.recursive(
    plain, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)), max_leaves=8
)


@given(values)
def test_redacting_a_value_twice_changes_nothing(value: object) -> None:
    once = redact_value(value)
    assert repr(redact_value(once)) == repr(once)


@given(st.dictionaries(texts, st.none(), max_size=6))
def test_no_name_of_a_mapping_is_lost(value: dict[str, None]) -> None:
    assert len(redact_value(value)) == len(value)


HOSTILE = r"""
a|://|http://|x://a:|x://a:@a.b/|http://a:@|password_|password=|password: |password=none |token_count=|eyJ|sk-|key|@
-----BEGIN PRIVATE KEY-----|-----BEGIN PRIVATE KEY-----AAAAAAAAAAAAAAAAAAAA |-eyJaaaaaaaa.|authorization: bearer |:
curl |curl -u a|mysql -p|machine a login b password |cookie: a=|gsk_|xai-|glpat-|12345678:|password for a b c d |hf_
password='|password="<|password=\"|password: “a|password: ["a",|password value|AccountKey=|İpassword=|密码|bearer a
password is |\|Private-Lines: 1 |password='a\|password=a,b|password=a&b|password=/a/a/a|cookie: a=b;c=d; |token: a-a-
--password x |
"""
UNITS = [unit for line in HOSTILE.strip().splitlines() for unit in line.split("|") if unit]


def _lines_run(text: str) -> int:
    """Return how many lines of the two modules run while a text is redacted."""
    count, ours = 0, {redaction.__file__, assigned_secrets.__file__}

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename in ours else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        redact(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_twice_the_text_runs_at_most_twice_the_lines(unit: str) -> None:
    redact(unit * 10)
    small, large = _lines_run(unit * 200), _lines_run(unit * 400)
    assert large <= 2 * small + 50


def _patterns() -> Iterator[str]:
    for _, rules in redaction._SHAPES:
        yield from (pattern for *_, pattern in rules)
    yield from (pattern for *_, pattern in redaction._PHRASES)
    yield from (redaction._COOKIES, redaction._COOKIE, assigned_secrets._ASSIGNMENT, assigned_secrets._PLACEHOLDER)
    yield from (assigned_secrets._CODE, assigned_secrets._WORDLIKE, assigned_secrets._PLAIN)


@pytest.mark.parametrize("pattern", [*_patterns()])
def test_no_endless_repetition_stands_inside_another(pattern: str) -> None:
    """`(a+)+` is what takes exponential time; possessive repetitions never give back and may nest."""
    parser = re._parser  # type: ignore[attr-defined]

    def depth(node: object) -> int:
        if isinstance(node, tuple) and len(node) == 2 and str(node[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
            _, most, inner = node[1]
            return depth(inner) + (most == parser.MAXREPEAT)
        if isinstance(node, tuple | list | parser.SubPattern):
            return max((depth(item) for item in getattr(node, "data", node)), default=0)
        return 0

    assert depth(parser.parse(pattern)) <= 1
