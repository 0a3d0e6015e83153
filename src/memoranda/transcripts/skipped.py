"""What of a file was left out, by reason and place."""

from collections import Counter
from collections.abc import Mapping

_PLACES = 1_000


class Skipped:
    """Counts what could not be read or was not wanted, and remembers where."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._places: Counter[tuple[str, str]] = Counter()

    def add(self, reason: str, place: str, number: int = 1) -> None:
        """Count something that was left out.

        Args:
            reason: Why, in words, such as "hidden messages".
            place: A line, or the name of a conversation.
            number: How much of it.
        """
        self._counts[reason] += number
        if (place, reason) in self._places or len(self._places) < _PLACES:
            self._places[place, reason] += number

    def __len__(self) -> int:
        """Return how much was left out."""
        return self._counts.total()

    @property
    def counts(self) -> Mapping[str, int]:
        """How much was left out for each reason, the most frequent first."""
        return dict(self._counts.most_common())

    @property
    def places(self) -> list[tuple[str, str, int]]:
        """Place, reason and number, in the order of the file; the first 1,000 of them."""
        return [(place, reason, number) for (place, reason), number in self._places.items()]
