"""Take secrets out of text before it is stored, embedded, logged or shown to a model.

A secret is replaced by `[REDACTED:kind]` in place; the sentence, the user, the host and the name of the key stay.
Shapes that are certain (a vendor's prefix, a PEM block) come first, so that `token: ghp_...` keeps its own kind; an
assignment comes last, and only when its value looks like a secret: "the secret: patience" is prose.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

# Each rule: kind, substrings of which one must occur in the lower-case text, pattern; `secret` limits what goes.
_SHAPES = (
    (
        "private-key",
        ("private key",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r".*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    ("anthropic-key", ("sk-ant-",), r"(?<![A-Za-z0-9])sk-ant-[\w-]{20,}"),
    ("openai-key", ("sk-",), r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|None)-[\w-]{20,}|[A-Za-z0-9]{20,})"),
    ("github-token", ("gh", "github_pat_"), r"(?<![A-Za-z0-9])(?:gh[posru]_[A-Za-z0-9]{30,}|github_pat_\w{22,})"),
    ("gitlab-pat", ("glpat-",), r"(?<![A-Za-z0-9])glpat-[\w-]{20,}"),
    ("slack-token", ("xox", "xapp-"), r"(?<![A-Za-z0-9])(?:xox[abprs]|xapp)-[A-Za-z0-9-]{10,}"),
    ("aws-key", ("akia", "asia"), r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("google-key", ("aiza",), r"(?<![A-Za-z0-9])AIza[\w-]{35,}"),
    ("stripe-key", ("k_live_", "k_test_"), r"(?<![A-Za-z0-9])[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("huggingface-token", ("hf_",), r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"),
    ("npm-token", ("npm_",), r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36,}"),
    ("jwt", ("eyj",), r"(?<![\w-])eyJ[\w-]{7,4000}\.eyJ[\w-]{7,4000}\.[\w-]{10,}"),
    # The secret may hold `/` and `@`; digits up to a slash are a port.
    (
        "url-password",
        ("://",),
        r"[A-Za-z][A-Za-z0-9+.-]{1,40}://[^\s:/@?#\"'<>]{0,256}:"
        r"(?!\d{1,5}[/?#])(?!\[REDACTED:)(?P<secret>[^\s/?#\"'<>]{1,256}(?=@)|[^\s@\"'<>]{1,128}+(?=@))@",
    ),
    (
        "credential",
        ("authorization",),
        r"(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?i:bearer|basic|token|digest|apikey)\s{1,4}(?!\[REDACTED:)"
        r"(?P<secret>[^\s\"',;]*[0-9._~+/=-][^\s\"',;]*|[^\s\"',;]{16,}|[^\s\"',;](?=[\s\"',;]|\Z))",
    ),
    ("credential", ("bearer",), r"(?<![A-Za-z0-9])(?i:bearer)\s{1,4}(?P<secret>(?=[\w.~+/-]*[0-9])[\w.~+/-]{16,}=*)"),
)
_RULES = tuple((kind, hints, re.compile(pattern, re.DOTALL)) for kind, hints, pattern in _SHAPES)

_CREDENTIAL = "[REDACTED:credential]"
_KEYS = ("passw", "passphrase", "pwd", "secret", "token", "key", "bearer", "credential")
_KINDS_OF_KEY = "|".join(
    f"(?<={kind})|(?<={kind}[_-])" for kind in ("api", "access", "private", "auth", "encryption", "signing")
)
_ASSIGNMENT = re.compile(
    rf"(?P<key>pass(?:word|wd|phrase)|pwd|secret|token|(?:{_KINDS_OF_KEY})key|bearer|credential)"
    r"(?P<suffix>(?:[_-][A-Za-z0-9]{1,24}){0,4})(?P<close>\\?[\"'`]|)[ \t]{0,4}"
    r"(?P<sign>:=|=>|=(?!=)|:(?!:)|(?<=[ \t])is(?=[ \t:]):?)[ \t]{0,4}"
    r"(?:(?P<quote>\\?[\"'`])(?P<quoted>[^\"'`\r\n\\]{1,512})|(?P<bare>[^\s\"'`,;<>(){}]{1,512}))",
    re.IGNORECASE,
)
# `token_count=20480000` and `secret_name: billing` describe a secret, they are none.
_DESCRIBES = re.compile(
    r"[_-](?:count|limit|type|name|url|uri|length|size|expir\w*|ttl|file|path|policy|usage|budget)$", re.IGNORECASE
)
_PLACEHOLDER = re.compile(
    r"\[REDACTED:|[$<{%*]|(?:none|null|true|false|undefined|required|optional|missing|invalid|incorrect|wrong"
    r"|expired|unknown|changed|rotated)\b|x{4,}$",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:[\[(].*)?")
_END = re.compile(r"[.!?:)\]]+$")


def redact(text: str) -> str:
    """Return the text with each secret replaced by `[REDACTED:kind]`; redacting twice changes nothing.

    Kinds: private-key, anthropic-key, openai-key, github-token, gitlab-pat, slack-token, aws-key, google-key,
    stripe-key, huggingface-token, npm-token, jwt, url-password, credential.
    """
    lower = text.lower()
    for kind, hints, pattern in _RULES:
        if any(hint in lower for hint in hints):
            text = pattern.sub(partial(_marked, f"[REDACTED:{kind}]"), text)
    return _redact_assignments(text)


def redact_value(value: Any) -> Any:
    """Return a copy of a JSON-like value with every string in it redacted, names of mappings included.

    A string under a name such as `password` is a secret whatever it looks like.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {_redact_name(name): _redact_item(name, item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) and type(value) in (list, tuple, set, frozenset):
        return type(value)(map(redact_value, value))
    return value


def _redact_name(name: Any) -> Any:
    return redact(name) if isinstance(name, str) else name


def _redact_item(name: Any, item: Any) -> Any:
    redacted = redact_value(item)
    if isinstance(name, str) and isinstance(item, str) and redacted == item and len(item) >= 4:
        assigned = _ASSIGNMENT.search(f'"{name}": "x"')
        if assigned and not _DESCRIBES.search(assigned["suffix"]) and not _PLACEHOLDER.match(item):
            return _CREDENTIAL
    return redacted


def _marked(mark: str, match: re.Match[str]) -> str:
    start, end = match.span("secret" if "secret" in match.re.groupindex else 0)
    return match[0][: start - match.start()] + mark + match[0][end - match.start() :]


def _redact_assignments(text: str) -> str:
    """Redact what is assigned to a key. Keys are found by plain search: four times faster than one pattern over all."""
    lower = text.lower()
    places = {place for key in _KEYS for place in _places(lower, key)} if len(lower) == len(text) else range(len(text))
    parts: list[str] = []
    end = 0
    for place in sorted(places):
        if place >= end and (match := _ASSIGNMENT.match(text, place)):
            redacted = _redact_assignment(match)
            if redacted != match[0]:
                parts += (text[end:place], redacted)
                end = match.end()
    return "".join((*parts, text[end:]))


def _places(lower: str, key: str) -> Iterator[int]:
    place = lower.find(key)
    while place >= 0:
        yield place
        place = lower.find(key, place + 1)


def _redact_assignment(match: re.Match[str]) -> str:
    group = "quoted" if match["quote"] else "bare"
    value = match[group] if group == "quoted" or match[group].startswith("[") else _END.sub("", match[group])
    if _PLACEHOLDER.match(value) or "[REDACTED:" in value or _DESCRIBES.search(match["suffix"]):
        return match[0]
    if not (_is_setting(match, value) if _stands_as_setting(match, value) else _looks_secret(match, value)):
        return match[0]
    start = match.start(group) - match.start()
    return match[0][:start] + _CREDENTIAL + match[0][start + len(value) :]


def _stands_as_setting(match: re.Match[str], value: str) -> bool:
    """Tell `DB_PASSWORD=x`, `"password": "x"`, `api_key: x` and `token='x'` from a sentence with a colon."""
    before = match.string[match.start() - 1 : match.start()]
    named = (
        bool(match["suffix"]) or "_" in match["key"] or "-" in match["key"] or before in ("_", "-") or before.isalnum()
    )
    if match["quote"]:
        return bool(match["close"]) or named or match["sign"] in ("=", ":=", "=>")
    return bool(match["close"]) or (named and match["sign"] == ":") or f"={value}" in match[0]


def _is_setting(match: re.Match[str], value: str) -> bool:
    """Accept any value of a setting but short numbers and, without quotes, an expression such as `os.environ`."""
    if len(value) < 4 or (value.isdigit() and len(value) < 6):
        return False
    return bool(match["quote"]) or not (_CODE.fullmatch(value) and value.replace(".", "").isalpha())


def _looks_secret(match: re.Match[str], value: str) -> bool:
    """Accept in a sentence only what no word or number looks like, and a word that a password's line ends with."""
    password = match["key"].lower().startswith("p")
    if len(value) < 6 or " " in value or (match["sign"].startswith("i") and not password):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if (letters and digits) or len(value) >= 24 or any(symbol in value for symbol in "!@#$%^&*+=~"):
        return True
    if (
        password
        and match["sign"] == ":"
        and len(value) >= 8
        and match.string[match.end() : match.end() + 1] in ("", "\n")
    ):
        return True
    return value.isdigit() if password else letters and not (value[1:].islower() or value.isupper())
