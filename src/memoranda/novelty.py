"""Whether a text says anything that another one does not: the guards that keep a correction from passing as a repeat.

Two texts can lie close together and mean the opposite. So nearness alone never makes a repeat: what is denied, and
every name, number and other telling word, must be the same in both. Pure: the texts come in, a verdict goes out.
"""

# ruff: noqa: RUF001 - letters and quotation marks of other scripts are meant

import re
from collections.abc import Collection

COMPARED = 400
"""Characters of each text that are compared; what follows must be equal."""

# Words after which a sentence means its opposite, without apostrophes, in the languages the stemmer knows.
_DENIAL_WORDS = """
not no never none nor neither without cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt
couldnt hasnt havent hadnt aint nothing nobody nowhere anymore stopped stops quit longer former formerly
nicht kein keine keinen keiner keinem nie niemals ohne nichts mehr
ne pas jamais aucun aucune sans rien plus
nunca ni sin nada ningun ninguna tampoco
non mai senza niente nessuno
nao nem sem nenhum nenhuma
niet geen nooit zonder
inte ej aldrig utan ikke aldri uden
ei eivat koskaan nem soha nincs nu niciodata fara
не нет ни никогда без больше
"""
_DENIALS = frozenset(_DENIAL_WORDS.split())
_UNSPACED_DENIALS = re.compile("不|没|沒|无|無|别|別|未|非|勿|ない|ません|なかった|ぬ|안 |않|못|없|아니|말고|ไม่")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_TELLING = re.compile(r"[^\s,;:!?()\[\]{}\"“”„«»]*[\d._/@#+-][^\s,;:!?()\[\]{}\"“”„«»]*")
_ENDS = ".,'’-"


def denials(text: str) -> tuple[str, ...]:
    """Return the words of a text that turn its meaning round, in order; empty when it denies nothing."""
    folded = text.casefold()
    words = (match[0].replace("'", "").replace("’", "") for match in _WORD.finditer(folded))
    return tuple(sorted(word for word in words if word in _DENIALS)) + tuple(
        match[0].strip() for match in _UNSPACED_DENIALS.finditer(folded)
    )


def telling(text: str) -> frozenset[str]:
    """Return what in a text is a name, a number or an identifier: the words that make it about one thing.

    Words with a digit or with `.`, `_`, `/`, `-` and the like inside, and words of three or more letters that begin
    with a capital, wherever they stand.
    """
    found = {match[0].strip(_ENDS) for match in _TELLING.finditer(text)}
    found |= {match[0] for match in _WORD.finditer(text) if len(match[0]) >= 3 and match[0][0].isupper()}
    return frozenset(word.casefold() for word in found if len(word) > 1 or word.isdigit())


def contains(longer: str, shorter: str) -> bool:
    """Say whether a text is part of another one, whole words only; case and white space do not count."""
    shorter, longer = (" ".join(text.casefold().split()).strip(" .!?,;") for text in (shorter, longer))
    if not shorter or shorter not in longer:
        return False
    start = longer.index(shorter)
    before, after = longer[start - 1 : start], longer[start + len(shorter) :][:1]
    return not (before.isalnum() and shorter[0].isascii()) and not (after.isalnum() and shorter[-1].isascii())


def says_nothing_new(new: str, old: str, new_terms: Collection[str], old_terms: Collection[str], *, near: bool) -> bool:
    """Say whether a new text only repeats an old one.

    Args:
        new: The text that is to be stored.
        old: A text that is stored already.
        new_terms: The index terms of the new text, stop words left out.
        old_terms: Those of the old one.
        near: Whether their vectors lie so close that they mean nearly the same.

    Returns:
        True when both deny the same, and the old one holds the new one word for word, or is near, names the same things
        and knows every other word of it.
    """
    held = contains(old, new)
    if not held and new[COMPARED:] != old[COMPARED:]:
        return False
    new, old = new[:COMPARED], old[:COMPARED]
    if denials(new) != denials(old):
        return False
    if held:
        return True
    return near and telling(new) == telling(old) and set(new_terms) <= set(old_terms)
