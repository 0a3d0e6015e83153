"""Moments as callers give them: datetimes, dates or ISO strings; nothing that could be read in two ways."""

from datetime import UTC, date, datetime, tzinfo
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator

from memoranda.errors import InvalidInput


def _unambiguous(value: object) -> object:
    """Refuse numbers, which pydantic would read as seconds since 1970: `2026` is meant as a year."""
    if isinstance(value, bool | int | float) or (isinstance(value, str) and value.strip().lstrip("+-").isdecimal()):
        raise ValueError("write a date or a moment such as 2026-03-12 or 2026-03-12T09:30:00+01:00")
    return value


Moment: TypeAlias = Annotated[datetime, BeforeValidator(_unambiguous)]
Day: TypeAlias = Annotated[date, BeforeValidator(_unambiguous)]


def day_of(moment: datetime, zone: tzinfo, index: int | None = None) -> date:
    """Return the day a moment belongs to in a zone.

    Raises:
        InvalidInput: there it lies outside the years a database can hold.
    """
    try:
        return moment.astimezone(zone).date()
    except (OverflowError, ValueError):
        raise InvalidInput("event_time lies outside the years 1 to 9999", field="event_time", index=index) from None


def read_moment(value: datetime | None, zone: tzinfo, field: str, index: int | None = None) -> datetime | None:
    """Read a moment of a caller's and return it in UTC; one without an offset is of the zone.

    Raises:
        InvalidInput: in UTC it lies outside the years a database can hold.
    """
    if value is None:
        return None
    try:
        return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{field} lies outside the years 1 to 9999", field=field, index=index) from None
