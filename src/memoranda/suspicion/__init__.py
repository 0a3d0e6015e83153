"""Tell a text that gives a model orders from a text that remembers something.

Nothing is refused on this ground: a suspect text is stored with its flags and waits for a person, so precision comes
first. Whoever tries finds words that are not listed here: what holds is the fence around everything remembered.
"""

import base64
import re
from collections import Counter
from collections.abc import Iterator

from memoranda.fencing import FLAGS
from memoranda.suspicion.phrases import QUOTES, exfiltrates, overrides
from memoranda.text.characters import normal

_DEPTH = 3  # layers of encoding that are taken off

_TOKENS = re.compile(
    r"<\|[a-z][a-z0-9_▁ ]{1,40}\|>|<<\s?/?sys\s?>>|\[/?inst\]|</?(?:start|end)_of_turn>|<(?:bos|eos)>"
    r"|<memoranda-[a-z-]{1,32} nonce=|</?tool_calls?>|<function=\w{1,60}>|<invoke name="
)
_FENCE_TAG = re.compile(
    r"<(?P<slash>/?)\s?(?P<name>s|[\w:-]{0,40}?(?:system|instruction|prompt|context|memory|memories|memoranda|assistant"
    r"|untrusted|recall|user_input|user_query|tool_result|function_result)[\w:-]{0,40})(?![\w:-])\s?"
    r"(?P<end>[^<>\n]{0,200}>)"
)
_MENTION_BEFORE = re.compile(r"(?:tag|token|element|closing)s?:?\s{1,3}$")
_MENTION_AFTER = re.compile(r"\s{1,3}(?:closing )?(?:tag|token|element)s?(?!\w)")
_TOOL_CALLS = (
    re.compile(
        r"^[\s*>-]{0,8}\{\s{0,8}\"(?:name|tool|function|action)\"\s{0,4}:\s{0,4}\"[\w.-]{1,80}\"\s{0,4},\s{0,8}"
        r"\"(?:arguments|parameters|args|input|action_input|tool_input)\"\s{0,4}:\s{0,4}"
        # The declaration of a tool calls nothing.
        r"(?!\{\s{0,8}\"(?:type\"\s{0,4}:\s{0,4}\"object|properties|\$schema))[{\"\[]",
        re.MULTILINE,
    ),
    re.compile(r"^\s{0,8}\{\s{0,8}\"(?:tool_calls|function_call)\"\s{0,4}:\s{0,4}[\[{]", re.MULTILINE),
    re.compile(r"\A\s{0,8}\[?\s{0,8}\{\s{0,8}\"role\"\s{0,4}:\s{0,4}\"(?:system|developer)\""),
)
# "System: Ubuntu 24.04" describes a computer: only what addresses a model counts.
_ROLE = re.compile(
    r"^[\s#*>\[<-]{0,8}(?:(?:system|developer)(?: (?:message|prompt|note|override|update|notice|alert))?"
    r"|système|sistema|система|系[统統]|システム)[\]*>\s]{0,4}:[\s*]{0,4}"
    r"(?:(?:you(?:'re| are| must| will| have been| now)|ignore|disregard|forget|override|from now on|reveal|obey"
    r"|pretend|act as|(?:respond|reply|answer) (?:only|always|with|as)|new (?:instructions?|rules?|task|policy)"
    r"|(?:the )?(?:user|assistant|model) (?:is now|has been|must|should|may|can)|all (?:safety|prior|restrictions)"
    r"|(?:do not|don't|never) (?:tell|reveal|mention|follow)|du (?:bist|musst)|tu (?:es|dois)|eres|debes|ты)(?!\w)"
    r"|你|忽略|あなた)",
    re.MULTILINE,
)

_BASE64 = re.compile(r"(?<![\w+/-])[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]{4,}(?![^\s=]))*")
_HEX = re.compile("(?:0x)?((?:[0-9a-fA-F]{2}){20,})")
_SPACED_HEX = re.compile("[0-9a-fA-F]{2}([ :])(?:[0-9a-fA-F]{2}\\1){18,}[0-9a-fA-F]{2}(?![0-9a-fA-F])")

_TAG_CHARACTER = re.compile("[\U000e0000-\U000e007f]")
# Eight in a row is more than any script, emoji or byte order mark needs.
_INVISIBLE_RUN = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]{8,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}"
)


def suspicions(text: str) -> tuple[str, ...]:
    """Return the names of what makes a text look like an instruction to a model; an ordinary memory has none.

    In this order, each at most once:

    - `override`: "ignore all previous instructions", "you are now ...", in English, German, French, Spanish, Russian,
      Chinese and Japanese;
    - `exfiltration`: send a key, a password, a secret or the conversation to a URL or a mail address;
    - `markup`: a closing tag of a prompt's fence that was never opened, tokens of chat templates, tool calls, a role
      such as `system:` at the beginning of a line with an order behind it;
    - `encoded`: a long run of base64 or hexadecimal digits that decodes to a text with one of these;
    - `invisible`: Unicode tag characters, or long runs of other characters that are not seen.

    The time grows with the length of the text and no faster.
    """
    found = list(_in_words(text))
    if any(any(_in_words(decoded)) for decoded in _decoded(text, _DEPTH)):
        found.append("encoded")
    if not text.isascii() and (_INVISIBLE_RUN.search(text) or _TAG_CHARACTER.search(FLAGS.sub("", text))):
        found.append("invisible")
    return tuple(found)


def _in_words(text: str) -> Iterator[str]:
    plain = (text if text.isascii() else normal(text)).lower()
    if overrides(plain):
        yield "override"
    if exfiltrates(plain):
        yield "exfiltration"
    if _marks_up(plain):
        yield "markup"


def _marks_up(text: str) -> bool:
    if ("<" in text or "[" in text) and any(not _mentioned(text, *token.span()) for token in _TOKENS.finditer(text)):
        return True
    if any(pattern.search(text) for pattern in (_ROLE, *_TOOL_CALLS)):
        return True
    opened: Counter[str] = Counter()
    for tag in _FENCE_TAG.finditer(text):
        if not tag["slash"]:
            opened[tag["name"]] += not tag["end"].endswith("/>")
        elif opened[tag["name"]]:
            opened[tag["name"]] -= 1
        elif not _mentioned(text, *tag.span()):
            return True
    return False


def _mentioned(text: str, start: int, end: int) -> bool:
    """Tell whether a tag or token is spoken of: alone in quotation marks, or called a tag or token."""
    if text[max(start - 1, 0) : start] in QUOTES and text[end : end + 1] in tuple(QUOTES[text[start - 1]]):
        return True
    return bool(_MENTION_BEFORE.search(text, max(start - 12, 0), start) or _MENTION_AFTER.match(text, end))


def _decoded(text: str, depth: int) -> Iterator[str]:
    """Yield what the long runs of base64 and hexadecimal digits in a text say, and what is encoded in that."""
    for data in _runs(text):
        decoded = data.decode("utf-8", "ignore")
        if len(decoded.encode()) < 0.9 * len(data):  # of random bytes about half are valid
            continue
        decoded = decoded.replace("\0", "")  # UTF-16
        yield decoded
        if depth > 1:
            yield from _decoded(decoded, depth - 1)


def _runs(text: str) -> Iterator[bytes]:
    for match in _BASE64.finditer(text):
        run = "".join(match[0].split()).replace("-", "+").replace("_", "/")
        # A path or a name may stand before the digits, with a sign between that is also a digit.
        for digits in (run, *(part for part in re.split("[+/]", run) if 24 <= len(part) < len(run))):
            yield base64.b64decode(digits[: len(digits) // 4 * 4])
            if hexadecimal := _HEX.fullmatch(digits):
                yield bytes.fromhex(hexadecimal[1])
    for match in _SPACED_HEX.finditer(text):
        yield bytes.fromhex(match[0].replace(":", " "))
