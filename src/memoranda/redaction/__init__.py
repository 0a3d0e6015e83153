"""Take secrets out of text before it is stored, embedded, logged or shown to a model.

A secret is replaced by `[REDACTED:kind]` in place; the sentence, the user, the host and the name of the key stay.
Shapes that are certain (a vendor's prefix, a PEM block) come first, so that `token: ghp_...` keeps its own kind; what
is assigned to a name comes last.

The time is linear in the length of the text: repetitions are bounded, possessive, or followed by nothing.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from memoranda.redaction.assigned import (
    CREDENTIAL,
    MARK,
    compiled,
    is_placeholder,
    is_template,
    redact_assigned,
    secret_name,
)

# A token may begin behind anything but a letter or digit, and behind the `%3D` of a URL or the `\n` of a JSON string.
# Its own characters are ASCII: Chinese and Japanese go on right behind it.
_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[nrt]))"
_T = "[A-Za-z0-9_-]"
_DIGIT_SOON = r"(?=[A-Za-z_-]{0,40}[0-9])"
_HOST = "@[A-Za-z0-9-]{1,63}+[.:][A-Za-z0-9]"

# Under a character without which none of them can occur: kind, hints of which one must occur, pattern. Where a pattern
# has a group `secret`, only that goes.
_SHAPES: tuple[tuple[str, tuple[tuple[str, tuple[str, ...], str], ...]], ...] = (
    (
        "-",
        (
            (
                "private-key",
                ("PRIVATE KEY", "Private-Lines:", "AGE-SECRET-KEY-1"),
                r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
                r"(?:(?:[^-]++|-(?!-{3,4} ?(?:BEGIN|END) ))*+-{4,5} ?END [A-Z0-9 ]{0,80}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
                # Cut off: what is there of the lines.
                r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{1,15}\Z)?)"
                r"|Private-Lines:[ \t]{0,4}[0-9]{1,4}(?P<secret>(?:\s*+[A-Za-z0-9+/=]{16,}+)++)"
                r"|AGE-SECRET-KEY-1[0-9A-Z]{50,}",
            ),
            ("anthropic-key", ("sk-ant-",), rf"{_START}sk-ant-{_T}{{20,}}"),
            (
                "openai-key",
                ("sk-",),
                rf"{_START}sk-(?:(?:proj|svcacct|admin|None|or-v1|lf)-{_T}{{20,}}|[A-Za-z0-9]{{20,}})",
            ),
            ("gitlab-pat", ("glpat-",), rf"{_START}glpat-{_T}{{20,}}"),
            ("slack-token", ("xox", "xapp-"), rf"{_START}(?:xox[a-eoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9%-]{{10,}}"),
            ("google-oauth", ("GOCSPX-",), rf"{_START}GOCSPX-{_T}{{20,}}"),
            (
                "service-token",
                ("gldt-", "glrt-", "glptt-", "pypi-AgE", "PMAK-", "NRAK-", "xai-", "pplx-", "tvly-"),
                rf"{_START}(?:gldt|glrt|glptt|pypi|PMAK|NRAK|xai|pplx|tvly)-{_DIGIT_SOON}{_T}{{20,}}",
            ),
        ),
    ),
    (
        "_",
        (
            (
                "github-token",
                ("ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"),
                rf"{_START}(?:gh[posru]_[A-Za-z0-9]{{30,}}|github_pat_[A-Za-z0-9_]{{22,}})",
            ),
            (
                "stripe-key",
                ("k_live_", "k_test_", "whsec_"),
                rf"{_START}(?:[rs]k_(?:live|test)_[A-Za-z0-9]{{16,}}|whsec_[A-Za-z0-9+/=]{{24,}})",
            ),
            ("huggingface-token", ("hf_",), rf"{_START}hf_[A-Za-z0-9]{{30,}}"),
            ("npm-token", ("npm_",), rf"{_START}npm_[A-Za-z0-9]{{36,}}"),
            (
                "service-token",
                ("_pat_", "_v1_", "shp", "lin_api_", "glsa_", "gsk_", "lsv2_", "pcsk_", "sbp_", "sntry", "figd_"),
                rf"{_START}(?:dckr_pat|do[opr]_v1|shp(?:at|ca|pa|ss)|lin_api|glsa|gsk|lsv2_[ps][tk]|pcsk|sbp|sntry[su]"
                rf"|figd)_{_DIGIT_SOON}{_T}{{20,}}",
            ),
        ),
    ),
    (
        "A",
        (
            ("aws-key", ("AKIA", "ASIA"), rf"{_START}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
            ("google-key", ("AIza",), rf"{_START}AIza{_T}{{35,}}"),
        ),
    ),
    ("9", (("google-oauth", ("ya29.",), rf"{_START}ya29\.[A-Za-z0-9_.-]{{20,}}"),)),
    ("G", (("sendgrid-key", ("SG.",), rf"{_START}SG\.{_T}{{16,64}}\.{_T}{{16,}}"),)),
    ("K", (("twilio-key", ("SK",), rf"{_START}SK[0-9a-f]{{32}}(?![A-Za-z0-9])"),)),
    ("", (("service-token", ("hvs.", "dapi"), rf"{_START}(?:hvs\.{_T}{{24,}}|dapi[0-9a-f]{{32}})"),)),
    (
        "J",
        (
            (
                "jwt",
                ("eyJ",),
                r"(?:(?<![A-Za-z0-9_-])|(?<=%[0-9A-F][0-9A-F])|(?<=\\[nrt]))"
                rf"eyJ{_T}{{7,4000}}+\.(?:eyJ{_T}{{7,4000}}+\.{_T}{{10,}}|{_T}{{0,4000}}+(?:\.{_T}{{10,}}+){{3}})",
            ),
        ),
    ),
    (
        "=",
        (
            (
                "azure-key",
                ("AccountKey=", "SharedAccessKey=", "sig="),
                r"(?:(?:AccountKey|SharedAccessKey)=|[?&;]sig=)(?P<secret>[A-Za-z0-9%+/_-]{20,}={0,2})",
            ),
            ("credential", ("ignature=",), r"[Ss]ignature=(?P<secret>[0-9a-f]{64})(?![0-9a-f])"),
        ),
    ),
    (
        ":",
        (
            ("telegram-token", (":",), rf":(?<=[0-9]{{8}}:)(?P<secret>{_T}{{35}})(?!{_T})"),
            (
                "webhook",
                ("hooks.slack.com/", "/api/webhooks/", "webhook.office.com/"),
                r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
                rf"|webhook\.office\.com/webhookb2)/(?P<secret>{_T}[A-Za-z0-9_/@-]{{20,}})",
            ),
            # The secret may hold `/` and `@`; digits up to a slash are a port.
            (
                "url-password",
                ("://",),
                r"://(?<=[A-Za-z0-9+.-]://)(?:(?!\[)[^\s:/@?#\"'<>]{0,256}:(?!\d{1,5}(?:[/?#\s]|\Z))(?P<secret>"
                rf"[^\s/?#\"'<>]{{1,256}}(?={_HOST})|[^\s?#\"'<>]{{1,256}}(?={_HOST})"
                r"|[^\s/?#\"'<>]{1,256}(?=@)|[^\s@\"'<>]{1,256}+(?=@))"
                r"|(?P<user>(?=[A-Za-z]{0,80}[0-9])[A-Za-z0-9]{32,256}+(?=@)))",
            ),
        ),
    ),
)  # fmt: skip

# The same in any case: headers and commands, whose secrets have no shape of their own.
_PHRASES = (
    (
        "",
        ("authorization",),
        r"(?i:authorization)\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?:[bruf]{0,2}\\?[\"'])?(?:"
        r"(?i:bearer|basic|token|digest|apikey|api-key|negotiate)[ \t]{1,4}(?P<secret>"
        r"[^\s\"',;\\0-9._~+/=-]*+[0-9._~+/=-][^\s\"',;\\]*|[^\s\"',;\\]{16,}"
        r"|[^\s\"',;\\]{1,15}(?=\\?[\"']|[ \t]*(?:[\r\n]|\Z))|[^\s\"',;](?=[\s,;]))"
        r"|(?!AWS4)(?P<bare>(?=[A-Za-z_+/=.-]{0,80}[0-9])[A-Za-z0-9_+/=.-]{16,}+)(?![(\[]))",
    ),
    (
        "",
        ("bearer",),
        rf"{_START}(?i:bearer)\s{{1,4}}(?P<secret>(?=[A-Za-z_.~+/-]{{0,80}}[0-9])[A-Za-z0-9_.~+/-]{{16,}}=*)",
    ),
    (
        "-",
        ("curl", "wget"),
        r"(?i:curl|wget)\b(?:\\\r?\n|[^\r\n]){0,240}?\s(?:-u ?|--(?:proxy-)?user[ =])"
        r"(?:[\"'][^\s:\"']{0,64}:(?P<quoted>[^\"'\r\n]{2,256})|[^\s:\"']{0,64}:(?P<secret>[^\s\"']{2,256}))",
    ),
    (
        "-",
        (" -p", " -a"),
        r"\b(?:(?:sshpass|mongo[a-z]{0,8}|(?:docker|podman|registry)[ ]login)\b[^\r\n|;&]{0,200}?\s-p[ =]?"
        r"|redis-cli\b[^\r\n|;&]{0,200}?\s-a |(?:mysql[a-z]{0,8}|mariadb)\b[^\r\n|;&]{0,200}?\s-p(?=\S))"
        r"[\"']?(?P<secret>(?!-)[^\s\"'`|;&]{4,256})",
    ),
    (
        "",
        ("machine ",),
        r"(?i:machine)\s{1,4}\S{1,253}\s{1,4}login\s{1,4}\S{1,128}\s{1,4}password\s{1,4}(?P<secret>\S{1,256})",
    ),
    ("'", ("identified by",), r"(?i:identified by)\s{1,4}(?i:password\s{1,4})?'(?P<secret>[^'\r\n]{1,256})'"),
)
_COOKIES = r"(?i:cookie)\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?[^\s=;\"']{1,64}=(?:[^\r\n\"'\\]|\\(?![nr]))*"
_COOKIE = (
    r"(?<![A-Za-z0-9_.-])(?!(?i:expires|path|domain|max-age|samesite|version)=)([A-Za-z0-9_.-]{1,64}=)"
    r"(?!\[REDACTED:)(?=[^\s;]{0,80}[0-9]|[^\s;]{16})[^\s;]{8,}"
)


def redact(text: str) -> str:
    """Return the text with each secret replaced by `[REDACTED:kind]`; redacting twice changes nothing.

    Kinds: private-key, anthropic-key, openai-key, github-token, gitlab-pat, slack-token, aws-key, google-key,
    google-oauth, stripe-key, huggingface-token, npm-token, sendgrid-key, twilio-key, telegram-token, azure-key,
    service-token (other vendors' prefixes), jwt, webhook, url-password, credential.
    """
    if not text:
        return text
    for sign, rules in _SHAPES:
        if sign in text:
            for kind, hints, pattern in rules:
                for hint in hints:
                    if hint in text:
                        text = compiled(pattern).sub(partial(_marked, f"{MARK}{kind}]"), text)
                        break
    lower = text.lower()
    for sign, hints, pattern in _PHRASES:
        if sign in text:
            for hint in hints:
                if hint in lower:
                    text = compiled(pattern).sub(partial(_marked, CREDENTIAL), text)
                    break
    if "=" in text and "cookie" in lower:
        text = compiled(_COOKIES).sub(_without_values, text)
    return redact_assigned(text)


def _marked(mark: str, match: re.Match[str]) -> str:
    group = match.lastgroup or 0
    start, end = (place - match.start() for place in match.span(group))
    # What stands in a URL is a password, whatever it says; behind "Bearer" it may be prose.
    standing_for = is_placeholder if mark == CREDENTIAL else is_template
    if group and (MARK in match[group] or standing_for(match[group])):
        return match[0]
    return match[0][:start] + mark + match[0][end:]


def _without_values(cookies: re.Match[str]) -> str:
    return compiled(_COOKIE).sub(rf"\1{CREDENTIAL}", cookies[0])


def redact_value(value: Any) -> Any:
    """Return a copy of a JSON-like value with every string in it redacted, names of mappings included.

    Under a name such as `password` everything is a secret, however deep: strings whatever they look like, bytes, UUIDs
    and numbers of six digits and more. Names that describe, `token_count` or `password_policy`, are none.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode("latin-1")).encode("latin-1")
    return _copy(value, redact_value, _named)


def _named(name: Any, value: Any) -> Any:
    secret = secret_name(name) if isinstance(name, str) else None
    if secret is None or secret == "tokens":  # which are counted or listed
        return redact_value(value)
    return _secret(value)


def _secret(value: Any) -> Any:
    """Return what is left of a value that is a secret by its name."""
    if isinstance(value, str):
        redacted = redact(value)
        kept = redacted != value or MARK in value or not value.strip() or is_placeholder(value)
        return redacted if kept else CREDENTIAL
    if isinstance(value, bytes | UUID):
        return CREDENTIAL
    if isinstance(value, int | float | Decimal):
        return CREDENTIAL if sum(map(str.isdigit, str(value))) >= 6 else value
    return _copy(value, _secret, lambda name, item: _secret(item))


def _copy(value: Any, leaf: Callable[[Any], Any], named: Callable[[Any, Any], Any]) -> Any:
    """Return a copy of a collection: its items through `leaf`, those that have a name through `named`."""
    if isinstance(value, Mapping):
        copy: dict[Any, Any] = {}
        for name, item in value.items():
            safe = unique = redact(name) if isinstance(name, str) else name
            while unique in copy:  # two names that differed in their secret only
                unique = f"{unique}'"
            copy[unique] = named(safe, item)
        return copy
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(leaf, value))
    return value
