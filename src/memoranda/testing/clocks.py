"""A clock that a test holds in its hand."""

import threading
from datetime import UTC, datetime, timedelta


class FrozenClock:
    """Return the same instant until told otherwise; pass it as the engine's `clock`.

    >>> clock = FrozenClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    >>> clock.advance(days=1, hours=2)
    datetime.datetime(2026, 3, 2, 14, 0, tzinfo=datetime.timezone.utc)
    >>> clock() == clock()
    True
    """

    def __init__(self, now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self._lock = threading.Lock()
        self._now = _utc(now)

    def __call__(self) -> datetime:
        """Return the current instant, aware and in UTC."""
        return self._now

    def advance(self, delta: timedelta | None = None, /, **parts: float) -> datetime:
        """Move on by a timedelta or its parts (`days=`, `seconds=`, ...), back if negative; return the new instant."""
        with self._lock:
            self._now += timedelta(**parts) if delta is None else delta + timedelta(**parts)
            return self._now

    def set(self, now: datetime) -> datetime:
        """Jump to an aware instant and return it in UTC.

        Raises:
            ValueError: `now` has no time zone.
        """
        with self._lock:
            self._now = _utc(now)
            return self._now

    def __repr__(self) -> str:
        return f"FrozenClock({self._now.isoformat()})"


def _utc(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise ValueError("a clock needs an instant with a time zone, for example datetime(2026, 1, 1, tzinfo=UTC)")
    return now.astimezone(UTC)
