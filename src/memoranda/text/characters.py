"""Which characters are letters, marks, pictures or nothing, and the two normal forms of a token.

Scripts are told by code point, not by category, so that an older Python with an older Unicode table sees the same.
"""

import re
import unicodedata

# Scripts written without spaces; planes 2 and 3 hold nothing but Han.
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
SYLLABIC = HAN + HANGUL
HIRAGANA = "\u3041-\u3096\u309d-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_KANA = HIRAGANA + KATAKANA + "\u3105-\u312f\U0001b000-\U0001b16f"
_THAI_LAO = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf"
_BURMESE = "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"
_KHMER = "\u1780-\u17d3\u17d7\u17dc\u17dd"
UNSPACED = SYLLABIC + _KANA + _THAI_LAO + _BURMESE + _KHMER
# Marks that `\w` leaves out, by block, so that a vowel sign never ends a word.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b"
    "\u08d3-\u0963\u0971-\u0df3\u0f18\u0f19\u0f35-\u0f39\u0f71-\u0f84\u0f86-\u0fbc\u135d-\u135f\u1712-\u1734\u180b-\u180d"
    "\u18a9\u1920-\u193b\u1a17-\u1a1b\u1ab0-\u1aff\u1b00-\u1b44\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cf9\u1dc0-\u1dff"
    "\ua802-\ua827\ua880-\ua8c5\ua926-\ua953\ua980-\ua9c0\uabe3-\uabed\ufb1e\ufe20-\ufe2f\U00010a01-\U00010a3f"
    "\U00011000-\U000116ff"
)
EMOJI = "\u231a-\u23ff\u2600-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d\U0001f000-\U0001faff"

# Invisible, or telling only how a character is drawn: soft hyphen, joiners, direction, variation, skin tone, keycap,
# tatweel, Hebrew abbreviation marks.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u05f3\u05f4\u0640\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20dd-\u20e4\ufe00-\ufe0f\ufeff"
    "\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff]+"
)
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u201b\u2010", "''''-")
_DIGITS = re.compile(r"(?![0-9])\d")
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe", "ё": "\u0435"}
)
# Accents go from Latin and Greek letters, vowel points from Hebrew and Arabic; elsewhere a mark is a letter's half (й).
_ACCENTS = re.compile(
    "(?:^|(?<=[A-Za-z\u0080-\u024f\u0370-\u03ff\u1e00-\u1fff]))[\u0300-\u036f]+"
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]+"
)


UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")


def normal(text: str) -> str:
    """Return NFKC without invisible characters, with plain apostrophes and digits; case is kept."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))).translate(_APOSTROPHES)
    return text if text.isascii() else _DIGITS.sub(lambda digit: str(unicodedata.decimal(digit[0], "")), text)


def fold(token: str) -> str:
    """Return the case-folded token without accents: both databases see `cafe` for café."""
    if token.isascii():
        return token.lower()
    decomposed = unicodedata.normalize("NFKD", token.casefold().translate(_PLAIN_LETTERS))
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", decomposed).translate(_PLAIN_LETTERS))
