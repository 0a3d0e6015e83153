"""Labels for the namespaces of LangGraph stores, which take neither full stops nor numbers, from any name."""

import re
from typing import Any
from uuid import UUID

from langchain_memoranda.scopes import identity_of
from memoranda.errors import InvalidInput

_ESCAPE = "~"
_PLAIN = re.compile(r"[A-Za-z0-9_@+:-]")  # what deepagents takes as well, but the full stop and the escape itself
_ESCAPED = re.compile(r"~([0-9A-F]{2})")


def encode_label(name: str | int | UUID) -> str:
    """Return a label of a namespace that stands for a name, such as an e-mail address; no two names share one.

    Other characters than letters and digits of ASCII and `_@+:-` are written as `~` and two hexadecimal digits a byte
    of UTF-8, and the empty name as `~`, so that LangGraph and deepagents take every label.

    Raises:
        InvalidInput: it is no name.
    """
    if isinstance(name, bool) or not isinstance(name, str | int | UUID):
        raise InvalidInput("a label is made of a string, a whole number or a UUID", field="name")
    text = "".join(c if _PLAIN.fullmatch(c) else _escaped(c) for c in str(name))
    return text or _ESCAPE


def decode_label(label: str) -> str:
    """Return the name that a label of `encode_label` stands for.

    Raises:
        InvalidInput: no name has this label.
    """
    if label == _ESCAPE:
        return ""
    parts = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), label)
    try:
        name = parts.encode("latin-1").decode("utf-8", "surrogatepass")
    except UnicodeError:
        raise InvalidInput("the label was not made by encode_label", field="label") from None
    if encode_label(name) != label:
        raise InvalidInput("the label was not made by encode_label", field="label")
    return name


def persona_namespace(runtime: Any) -> tuple[str, str, str]:
    """Return the namespace of who asks in a run: persona, tenant and user, each as a label.

    They are looked for as `ScopeResolver` does; deepagents takes it as `StoreBackend(namespace=persona_namespace)`.

    Raises:
        ConfigurationError: the run names no user.
        NotAllowed: it names another user than the one that the server has authenticated.
    """
    persona, tenant, user = identity_of(runtime)
    return encode_label(persona or "main"), encode_label(tenant), encode_label(user)


def _escaped(character: str) -> str:
    return "".join(f"{_ESCAPE}{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
