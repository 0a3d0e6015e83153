"""What a function gave for each text it was asked about lately, for texts that come again and again.

A tokenizer asks for every word of every text. A look-up in a mapping takes half of what one in `functools.lru_cache`
does, which keeps its entries in the order they were asked for.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class Remembered(dict[str, V], Generic[V]):
    """Maps a text to what a function gives for it, which is never None.

    Texts of at most `longest` characters are remembered, up to `size` of them in each of two generations: where one is
    full the next begins, and what is asked for again meanwhile goes over to it. Safe to share between threads.
    """

    def __init__(self, function: Callable[[str], V], *, size: int, longest: int) -> None:
        """Begin with nothing."""
        self._function = function
        self._size = size
        self._longest = longest
        self._older: dict[str, V] = {}

    def __missing__(self, text: str) -> V:
        """Call the function, unless it was called not long ago."""
        value = self._older.get(text)
        if value is None:
            value = self._function(text)
        if len(text) <= self._longest:
            if len(self) >= self._size:
                self._older = dict(self)
                self.clear()
            self[text] = value
        return value
