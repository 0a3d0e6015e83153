"""Secrets go, prose stays."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.redaction import redact, redact_value

# Put together here, so that no scanner takes this file for a leak.
BODY = "A1b2C3d4E5f6G7h8J9k0" * 3
SECRETS = {
    "private-key": [
        f"-----BEGIN {kind}PRIVATE KEY-----\nMIIB{BODY}\n-----END {kind}PRIVATE KEY-----"
        for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ")
    ],
    "anthropic-key": ["sk-" + "ant-api03-" + BODY[:24]],
    "openai-key": ["sk-" + "proj-" + BODY[:30], "sk-" + BODY[:48]],
    "github-token": [*("gh" + letter + "_" + BODY[:36] for letter in "posru"), "github_" + "pat_" + BODY[:40]],
    "gitlab-pat": ["glpat" + "-" + BODY[:20]],
    "slack-token": ["xox" + letter + "-" + BODY[:12] for letter in "baprs"],
    "aws-key": ["AK" + "IA" + "ABCDEFGHIJ234567"],
    "google-key": ["AI" + "za" + BODY[:35]],
    "stripe-key": ["sk" + "_live_" + BODY[:24]],
    "huggingface-token": ["hf" + "_" + BODY[:34]],
    "npm-token": ["npm" + "_" + BODY[:36]],
    "jwt": ["eyJ" + BODY[:20] + ".eyJ" + BODY[:20] + "." + BODY[:43]],
}  # fmt: skip


@pytest.mark.behaviour("W27", "W28")
@pytest.mark.parametrize(
    ("kind", "secret"), [(kind, secret) for kind, secrets in SECRETS.items() for secret in secrets]
)
def test_a_known_shape_is_replaced_in_place_and_keeps_its_kind(kind: str, secret: str) -> None:
    mark = f"[REDACTED:{kind}]"
    assert redact(f"the key is {secret} for now") == f"the key is {mark} for now"
    assert redact(f"token: {secret}") == f"token: {mark}"
    assert redact(f'{{"api_key": "{secret}"}}') == f'{{"api_key": "{mark}"}}'
    assert redact(f"({secret}, {secret})") == f"({mark}, {mark})"


@pytest.mark.behaviour("W27")
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("DB_PASSWORD=s3cret99", "DB_PASSWORD=[REDACTED:credential]"),
        ("export DB_PASSWORD=swordfish; make", "export DB_PASSWORD=[REDACTED:credential]; make"),
        (f"AWS_SECRET_ACCESS_KEY={BODY[:40]}", "AWS_SECRET_ACCESS_KEY=[REDACTED:credential]"),
        ('{"user": "ana", "password": "swordfish"}', '{"user": "ana", "password": "[REDACTED:credential]"}'),
        ("{'token': 'abcd1234'}", "{'token': '[REDACTED:credential]'}"),
        ('"{\\"password\\": \\"swordfish\\"}"', '"{\\"password\\": \\"[REDACTED:credential]\\"}"'),
        ("db_password: swordfish", "db_password: [REDACTED:credential]"),
        ("dbPassword=swordfish", "dbPassword=[REDACTED:credential]"),
        ("api-key: k9x8y7z6", "api-key: [REDACTED:credential]"),
        ("password: hunter2", "password: [REDACTED:credential]"),
        ("The wifi password: Correct-Horse-99.", "The wifi password: [REDACTED:credential]."),
        ("My password is hunter2x, write it down", "My password is [REDACTED:credential], write it down"),
        ("my password: correcthorse", "my password: [REDACTED:credential]"),
        ("secret: token: hunter22x", "secret: token: [REDACTED:credential]"),
        ("Authorization: Bearer x", "Authorization: Bearer [REDACTED:credential]"),
        (f'-H "Authorization: Basic {BODY[:20]}=="', '-H "Authorization: Basic [REDACTED:credential]"'),
        (f"it sends Bearer {BODY[:20]} each time", "it sends Bearer [REDACTED:credential] each time"),
        ("redis://:pw@cache:6379/0", "redis://:[REDACTED:url-password]@cache:6379/0"),
        ("postgresql+psycopg://ana:pw@db/app", "postgresql+psycopg://ana:[REDACTED:url-password]@db/app"),
        ("amqp://ana:pa/ss@mq.example.com/v", "amqp://ana:[REDACTED:url-password]@mq.example.com/v"),
        ("https://ana:p@ss@example.com/x", "https://ana:[REDACTED:url-password]@example.com/x"),
    ],
)
def test_an_assigned_secret_goes_and_its_key_user_and_host_stay(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.behaviour("W29")
@pytest.mark.parametrize(
    "text",
    [
        "We rewrote the password reset flow last week.",
        "The secret: patience and a good notebook.",
        "the secret: patience …",
        "The token: a small coin from Lisbon.",
        "Her secret is that she rehearses.",
        "password: required",
        "max_tokens=2048 and token_count=20480000",
        "token_type: bearer",
        "password = getpass()",
        "api_key = os.environ['KEY']",
        "password=$DB_PASSWORD or ${DB_PASSWORD}",
        "password: <your password>",
        "The secret: 10,000 hours.",
        "http://localhost:8080/path?mail=a@b.example",
        "see https://example.com/a:b and mail ana@example.com",
        "a risk-based, task-oriented plan for Asia",
        "the keyword: something1",
        "authorization: bearer tokens are used here",
        "the bearer of this letter",
        "sk-learn and gh_pages are names",
        "周末的密码是什么？",
        "",
    ],
)
def test_prose_and_code_without_a_secret_are_untouched(text: str) -> None:
    assert redact(text) == text


WORDS = "password token api_key bearer authorization secret key is ana hunter2 https:// @ : = . _ - / x1y2z3w4"
MARKS = ["[REDACTED:credential]", "[REDACTED:jwt]", "[REDACTED:", "]", " ", '"', "'", "\n"]
fragments = st.sampled_from([secret for secrets in SECRETS.values() for secret in secrets] + WORDS.split() + MARKS)


@pytest.mark.behaviour("W30")
@given(st.one_of(st.text(max_size=80), st.lists(fragments, max_size=12).map("".join)))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(
    st.sampled_from([secret for secrets in SECRETS.values() for secret in secrets]),
    st.text(alphabet=" ,;()\n猫é", max_size=20),
)
def test_no_secret_survives_its_surroundings(secret: str, around: str) -> None:
    assert secret not in redact(f"{around} {secret} {around}")


def test_values_are_redacted_deep() -> None:
    value = {
        "note": "password: hunter22",
        "login": {"user": "ana", "password": "swordfish", "token_type": "bearer"},
        "urls": ["redis://:pw@cache", 3, None, ("api_key=abcd1234",)],
        "password: hunter22": True,
        7: {"x"},
    }
    kept = {
        "note": "password: [REDACTED:credential]",
        "login": {"user": "ana", "password": "[REDACTED:credential]", "token_type": "bearer"},
        "urls": ["redis://:[REDACTED:url-password]@cache", 3, None, ("api_key=[REDACTED:credential]",)],
        "password: [REDACTED:credential]": True,
        7: {"x"},
    }
    assert redact_value(value) == kept
    assert redact_value(kept) == kept
    assert value["note"] == "password: hunter22"


@pytest.mark.parametrize(
    "unit",
    ["a", "://", "http://", "x://a:", "password_", "password=", "eyJ", "sk-", "authorization: bearer ", "key:", "@"],
)
def test_a_megabyte_of_near_misses_takes_no_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 10
