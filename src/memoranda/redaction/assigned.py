"""Find secrets by the name they are assigned to: `DB_PASSWORD=...`, `"token": "..."`, "my password is ...".

Two questions decide. Does it stand as a setting, by its quotes, its sign or the look of its name? Then any value goes
that is neither a placeholder nor code. Or does it stand in a sentence? Then only what no word looks like goes, for
"the secret: patience" is prose. A name such as `token_count` describes a secret and is none.
"""

import re
from collections.abc import Iterator
from functools import cache

CREDENTIAL = "[REDACTED:credential]"
MARK = "[REDACTED:"
_ANY_CASE = re.DOTALL | re.IGNORECASE

# What every name contains, in lower case.
_HINTS = ("pass", "pw", "secret", "token", "key", "bearer", "credential", "kennwort", "senha", "contrase")
_OTHER_HINTS = ("парол", "密码", "密碼", "口令", "パスワード", "비밀번호")
_KEYS = "|".join(
    f"(?<={kind})|(?<={kind}[_ -])"
    for kind in ("api", "access", "account", "private", "auth", "encryption", "signing", "secret", "master", "ription")
)
_PASSWORD = (
    r"pass(?:wor[dt]|wd|phrase|code)s?|(?<=mot de )passe|kennwort|contrase[ñn]a|senha|pwd|(?<![A-Za-z0-9])pw"
    r"|парол[ья]|密[码碼]|口令|パスワード|비밀번호"
)
_PASS = "(?<=[_-])pass|(?-i:(?<![A-Za-z])pass)"  # never in prose, and a test says "PASS"
_OTHER = (
    r"secrets?|(?P<counted>tokens)|(?<!start_)(?<!end_)(?<!stop_)(?<!eos_)(?<!bos_)(?<!pad_)token"
    rf"|(?:{_KEYS})keys?|bearer|credentials?"
)
_SUFFIX = r"[0-9]{0,2}(?P<suffix>(?:[_-][A-Za-z0-9]{1,24}+){0,4}+)"

# "the password for the router is ..."
_OF = (
    r"(?(password)(?P<of>[ \t](?:for|of|to|on|at|für|zum|von|vom|de|du|para|от|для|на)"
    r"(?:[ \t][^\s:=,.()\[\]]{1,24}){1,4}?)?|)"
)
_SIGN = "|".join(
    (
        r"(?P<loose>[!=]==?(?=[ \t]{0,4}[\"'])|\((?=[\"']))",
        r"(?P<assign>:=|=>|=(?!=)|\uff1d)",
        # `%3D` in a URL, a typed variable, a `value` beside its name, an element.
        r"(?P<sure>%3[Dd]|:[ \t]{0,2}[A-Za-z_][\w.\[\]|]{0,40}[ \t]{0,2}=(?=[ \t]{0,2}[\"'])"
        r"|[\s,]{0,24}[\"']?value[\"']?[ \t]{0,4}[:=]|>(?=[^<>\s]{1,256}</))",
        r"(?P<colon>:(?!:)|\uff1a)",
        r"(?P<says>[→是为為は는은]|(?<=[ \t])(?:is|ist|est|es|é|[—\u2013]|->?)(?=[ \t:]):?)",
        # Behind an option of a command, and SQL's `PASSWORD '...'`.
        r"(?P<gap>(?(dash),(?=[ \t]{0,4}[\"'])|(?!))|(?(of)(?!)|(?<=[ \t])(?:(?=')|(?(dash)|(?!)))))",
    )
)
# Quotes of code close with themselves and may hold the other kinds, escaped ones in a JSON string too; those of print
# close with any of theirs.
_QUOTED = (
    r"[bruf@]{0,2}(?:\\{1,3}[\"'](?P<escaped>(?:[^\\\r\n\"']|\\(?!\\{0,2}[\"']))++)"
    r"|\"(?:\"\")?(?P<double>(?:[^\"\\\r\n]|\\.)++)|'(?:'')?(?P<single>(?:[^'\\\r\n]|\\.)++)|`(?P<tick>[^`\r\n]++))"
    r"|[“„«「『\uff02](?P<curved>[^“”„«»」』\uff02\r\n]{1,500}+)|[\u2018\u201a](?P<curl>[^\u2018-\u201a\r\n]{1,500}+)"
    r"|\[(?=\s{0,24}[\"'])(?P<items>[^\[\]]{1,4000}+)\]"
)
# Without quotes a value ends at white space, a quote, `;`, a script that writes none, and before `, name=` or `&name=`.
_OUTSIDE = r"\s\"'`«»;\u2000-\u206f\u2e80-\U0010ffff"
_BARE_LIMIT = 1024
_BARE = (
    rf"(?P<bare>(?!\[[{{\[(])[^,<>(){{}}{_OUTSIDE}](?:(?!,(?:[\s\"']|\Z|[A-Za-z_]\w{{0,40}}[=:])|&(?:amp;)?[A-Za-z_][\w.-]{{0,40}}="
    rf"|</|\\[nrt\"'])[^{_OUTSIDE}]){{0,{_BARE_LIMIT}}}+)"
)
_ASSIGNMENT = (
    rf"(?P<dash>(?<=-))?(?P<name>(?P<password>{_PASSWORD})|(?P<pass>{_PASS})|{_OTHER}){_SUFFIX}"
    r"(?:(?P<close>\\{0,3}[\"'`])\]?|[”\u2019»」』】]|\*{1,2})?(?:[ \t]\([^()\r\n]{1,40}\))?"
    rf"{_OF}(?P<before>[ \t]{{0,4}})(?:{_SIGN})(?P<after>[ \t]{{0,4}})(?:\*{{1,2}}[ \t])?(?:{_QUOTED}|{_BARE})"
)
_NAME = rf"(?:{_PASSWORD}|{_PASS}|{_OTHER})"
_CODE_QUOTES = ("escaped", "double", "single", "tick")

_DESCRIBES = (
    r"[_-](?:counts?|limits?|types?|names?|ur[li]|length|len|size|expir\w*|ttl|file|path|dir|policy|usage|budget|ids?"
    r"|hint|prompt|rules?|strength|reset|rotation|manager|required|enabled|version|format|algorithm|endpoint|provider"
    r"|scopes?|header|env|var|index|min|max|age|changed|updated|created|at|date|days|hours|minutes|seconds|status|label"
    r"|title|description|placeholder|location|arn|field|bucket|rate|stdin|encoding|fd|str|counter|details|ratio|burst|queue|threshold|template|time|handler|parser|used|price|cost|range|pattern|regex|kind|class|map|list)$"
)
_TEMPLATE = (
    r"(?-i:\$[A-Z_][A-Z0-9_]*|\$[a-z_]+)|\$\{[^}]*\}.*|\$\(.*|\$[\w:]{1,80}->.*|%\(\w+\)s|%s|%[a-z_]+%|\{[^{}]*\}|\{\{.*|<[^<>]*>|\[[^\]]*\]"
    r"|[*•]{3,}|x{4,}|\.{3,}|-{3,}|_{3,}|your[-_ ][a-z_ -]*"
)
_PLACEHOLDER = (
    rf"{_TEMPLATE}|(?:none|null|nil|true|false|yes|no|on|off|undefined|required|optional|missing|(?:in)?valid|wrong"
    r"|(?:in)?correct|weak|strong|(?:in)?secure|empty|blank|(?:un)?set|expired|unknown|(?:un)?changed|rotated|revoked"
    r"|reset|same|hidden|masked|redacted|(?:un)?encrypted|hashed|protected|stored|saved|shared|default|example|value|here"
    r"|todo|tbd|n/a|flag|option|argument|parameter|header|field|scheme|auth(?:entication|orization)?"
    r"|(?:secret)?(?:str|string|bytes)|text|int|integer|float|decimal|number|bool|boolean|list|dict|tuple|set|queue|any|object|final|undef)[?!.:]?"
    r"|(?:please|enter|your|my|the|must|should|at least|choose|confirm|forgot(?:ten)?)\s.*"
)
# A name is no value: `login(password=db_password)`, `"password": "Password"`, `token: TokenType`.
_NAME_ALONE = rf"[A-Za-z_ -]{{0,40}}?{_NAME}(?:[0-9]|_[a-z_]{{0,40}}|(?-i:[A-Z][A-Za-z]{{0,40}}))?"
# Addresses, paths, moments and keystrokes are no secrets wherever they stand.
_PLAIN = (
    r"[a-z][a-z0-9+.-]{1,20}://.*|[~.]{0,2}/(?:[a-z0-9_.-]++/)*[a-z0-9_.-]*|/(?:Users|home)/.*|//.*|[A-Za-z]:\\.*"
    r"|\d+(?:\.\d++)+|\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?|(?:[Cc]trl|[Aa]lt|[Ss]hift|[Cc]md|[Mm]eta|[Ss]uper|[Oo]ption)[-+].*"
)
_CODE = r"(?:[A-Za-z_]\w*+\.)*[A-Za-z_]\w*[\[(].*|[A-Za-z_]+(?:\.[A-Za-z_]++)+|\w*\)[.\[].*"
_COUNTED = r"\d{1,3}[A-Za-z]{0,2}-[A-Za-z-]+"  # 10-minute, 2FA-enabled
# Python3, RFC2119, GPT-4o, 1.2.3, 250ms, gpt-4-turbo, ana@example.com: what a sentence may say of a token.
_WORDLIKE = (
    r"[A-Z][a-z]+\d{1,2}|[A-Z]{2,3}\d{1,4}[a-z]?|[A-Za-z]+-\d{1,4}[a-z]?|(?:[A-Za-z]+-?)?\d+(?:\.\d++)+\w*|\d+[a-z]{1,3}"
    r"|(?:[A-Za-z]++|\d{1,8})(?:[-._/:](?:[A-Za-z]++|\d{1,8}))+|[\w.+-]+@[\w-]+(?:\.[\w-]++)+"
)


@cache
def compiled(pattern: str, flags: int = re.DOTALL) -> re.Pattern[str]:
    """Return a pattern compiled, which costs milliseconds that no program pays that never meets its hint."""
    return re.compile(pattern, flags)


def is_template(value: str) -> bool:
    """Tell whether something is to be put in place of a value: `<your password>`, `${TOKEN}`."""
    return compiled(_TEMPLATE, _ANY_CASE).fullmatch(value) is not None


def is_placeholder(value: str) -> bool:
    """Tell whether a value only stands for a secret, or says something of it: a template, "required", "string"."""
    return compiled(_PLACEHOLDER, _ANY_CASE).fullmatch(value) is not None


def secret_name(name: str) -> str | None:
    """Return the part of a name that says its value is a secret, in lower case; None when nothing does."""
    match = compiled(rf"(?:{_NAME}|authorization|cookie){_SUFFIX}$", re.IGNORECASE).search(name)
    return None if match is None or _describes(match["suffix"]) else match[0].lower()


def redact_assigned(text: str) -> str:
    """Return the text without the secrets that are assigned to a name."""
    lower = text.lower()
    if len(lower) != len(text):  # U+0130 is the one letter whose small form is longer
        lower = text.replace("\u0130", "I").lower()
    # By plain search: four times faster than one pattern over all.
    places = [place for hint in _HINTS if hint in lower for place in _places(lower, hint)]
    if not text.isascii():
        places += (place for hint in _OTHER_HINTS if hint in lower for place in _places(lower, hint))
    if not places:
        return text
    named, pattern = compiled(rf"{_NAME}{_SUFFIX}", _ANY_CASE), compiled(_ASSIGNMENT, _ANY_CASE)
    parts: list[str] = []
    end = 0
    for place in sorted(places):
        if place < end or (name := named.match(text, place)) is None or _describes(name["suffix"]):
            continue
        if match := pattern.match(text, place):
            for start, stop in _secrets(match):
                parts += (text[end:start], CREDENTIAL)
                end = stop
    return "".join((*parts, text[end:])) if parts else text


def _places(lower: str, hint: str) -> Iterator[int]:
    place = lower.find(hint)
    while place >= 0:
        yield place
        place = lower.find(hint, place + 1)


def _secrets(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield where the secrets of an assignment begin and end."""
    group = match.lastgroup or ""
    (start, end), value = match.span(group), match[group]
    if MARK in value:
        return
    if group == "items":
        if match["counted"]:
            return
        if _is_setting(match, quoted=True) or (match["password"] and match["gap"] is None):
            for item in compiled(r"([\"'])((?:(?!\1)[^\\]|\\.)++)\1").finditer(match.string, start, end):
                if not is_placeholder(item[2]):
                    yield item.span(2)
        return
    if group == "bare" and end - start > _BARE_LIMIT:
        end += len(compiled(rf"[^{_OUTSIDE}]*").match(match.string, end)[0])  # type: ignore[index]
    elif group == "bare" and not value.startswith("["):
        value = value.rstrip(".!?:)]}>,*")
        end = start + len(value)
    if not value or is_placeholder(value) or compiled(_PLAIN).fullmatch(value):
        return
    if compiled(_NAME_ALONE, _ANY_CASE).fullmatch(value) or (group in _CODE_QUOTES and _behind_string(match, start)):
        return
    if _is_setting(match, quoted=group in _CODE_QUOTES) and not match["counted"]:
        found = _is_set(match, group, value, end)
    elif match["gap"] is not None:
        found = _follows_option(match, group, value)
    else:
        found = _stands_out(match, group, value)
    if found:
        yield start, end


def _behind_string(match: re.Match[str], start: int) -> bool:
    """Tell whether a quote closes a string instead of opening one: `"token=" + quote(token)`."""
    text = match.string
    quote = text[start - 1]
    line = _line(text, start)
    return text[start] in " \t+.,)%" and text.count(quote, line, start - 1) % 2 == 1


def _describes(suffix: str) -> bool:
    return bool(suffix) and compiled(_DESCRIBES, re.IGNORECASE).search(suffix) is not None


def _is_setting(match: re.Match[str], *, quoted: bool) -> bool:
    """Tell `DB_PASSWORD=x`, `"password": "x"`, `api_key: x` and `token='x'` from a sentence with a colon."""
    if match["of"]:
        return False
    if match["sure"]:
        return True
    before = match.string[match.start() - 1 : match.start()]
    joined = match["suffix"] or before in ("_", "-") or "_" in match["name"] or "-" in match["name"]
    named = joined or (before.isascii() and before.isalnum())
    if match["assign"]:
        return quoted or not (match["before"] or match["after"])
    if match["colon"] is None:
        return False
    return bool(match["close"] or named) or (quoted and match["password"] is not None and _begins_line(match))


def _begins_line(match: re.Match[str]) -> bool:
    text, start = match.string, match.start()
    return not text[_line(text, start) : start].strip(" \t-")


def _line(text: str, place: int) -> int:
    """Return where the line of a place begins, at most 200 characters before it: looking on would take square time."""
    least = max(place - 200, 0)
    return max(text.rfind("\n", least, place) + 1, least)


def _is_set(match: re.Match[str], group: str, value: str, end: int) -> bool:
    """Accept any value of a setting but short numbers and, without quotes, words of prose and expressions of code."""
    if len(value) < 4 or (value.isdigit() and len(value) < 6):
        return False
    if group in _CODE_QUOTES:
        return True
    if compiled(_CODE).fullmatch(value):
        return False
    text, worded = match.string, compiled(r"[^\W\d]+(?:-[^\W\d]++)*").fullmatch(value)
    if match["colon"] and worded:
        # `api_key: the key to use`, `auth_token: Token = ...`, `.new-token:hover`
        return bool(match["after"] or match["close"]) and not compiled(r"[ \t]+[^\W\d_]|[ \t]*[=|`(]").match(text, end)
    # A variable is handed on: `login(user, token=mine)`, and one a line.
    line = _line(text, match.start())
    handed = text[end : end + 1] == ")" or text[end : end + 2] == ",\n" or "(" in text[line : match.start()]
    return not (worded and handed)


def _stands_out(match: re.Match[str], group: str, value: str) -> bool:
    """Accept in a sentence only what no word or number looks like, and a word that a password's line ends with."""
    if len(value) < 6 or match["pass"] or any(map(str.isspace, value)) or compiled(_COUNTED).fullmatch(value):
        return False
    if (group == "bare" and compiled(_CODE).fullmatch(value)) or (match["says"] and match["suffix"]):
        return False
    mixed = any(map(str.isalpha, value)) and any(map(str.isdigit, value))
    if match["password"]:
        if mixed or match["of"] or match["loose"] or (match["says"] or "").startswith(("-", "—", "\u2013")):
            return mixed
        if any(symbol in value for symbol in "!@#$%^&*+=~") or (value.isdigit() and not match["assign"]):
            return True
        alone = match["colon"] and len(value) >= 8 and match.string[match.end() : match.end() + 1] in ("", "\n", "\r")
        return group != "bare" or bool(alone)
    if match["of"] or (match["says"] and len(value) < 16) or compiled(_WORDLIKE).fullmatch(value):
        return False
    # Words have one capital, or one a syllable.
    capitals = sum(map(str.isupper, value))
    letters = value.isascii() and value.isalpha()
    random = letters and (len(value) >= 24 or (len(value) >= 12 and len(value) // 4 < capitals < len(value)))
    return mixed or random


def _follows_option(match: re.Match[str], group: str, value: str) -> bool:
    """Accept what follows `--db-password`, `-Token` or SQL's PASSWORD: in quotes, no word, or among other options."""
    text, start = match.string, match.start()
    if value.startswith("-"):
        return False
    before = text[_line(text, start) : start]
    option = compiled(r"(?:^|[\s\"'`\[(])--?[A-Za-z0-9_-]{0,40}$").search(before)
    if option is None:
        mixed = any(map(str.isalpha, value)) and any(map(str.isdigit, value))
        return match["password"] is not None and group in _CODE_QUOTES and mixed and len(value) >= 6
    if group != "bare" or not value.isalpha():
        return True
    others = compiled(r"(?:^|\s)--?[A-Za-z]").search(before[: option.start()])
    return others is not None or text[match.end() : match.end() + 2] == " -"
