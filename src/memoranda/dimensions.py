"""The names and sizes of what is known of a user, by dimension."""

import re

from memoranda.errors import InvalidInput
from memoranda.text import clean

RECOMMENDED = ("baseline", "preferences", "working_patterns", "feedback", "goals")
"""Dimensions that fit most users; any other name is accepted."""
CONTENT_LIMIT = 2_000
"""Characters of a dimension: it is read on every turn."""
_NAME_LIMIT = 64
_SEPARATORS = re.compile(r"[\s\-.]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def dimension_name(name: object) -> str:
    """Return a dimension's name in lower snake case: `Working patterns` and `workingPatterns` are one.

    Raises:
        InvalidInput: it is no name.
    """
    if not isinstance(name, str):
        raise InvalidInput("dimension must be a string", field="dimension")
    spelled = _SEPARATORS.sub("_", _HUMPS.sub("_", clean(name).strip())).strip("_").casefold()
    if not spelled or len(spelled) > _NAME_LIMIT or not all(c == "_" or c.isalnum() for c in spelled):
        raise InvalidInput(
            f"dimension must be a name of letters and digits, at most {_NAME_LIMIT}, such as {', '.join(RECOMMENDED)}",
            field="dimension",
        )
    return spelled
