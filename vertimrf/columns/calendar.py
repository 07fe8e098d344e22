"""Dates and times as numbers, in which edges and cells of such attributes are stored.

A date is the number of days since 1970-01-01. A timestamp is the number of seconds since then, in
UTC if it has a time zone, else in local time. A time of day is the number of seconds since
midnight.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

Calendar = Literal["date", "time", "timestamp"]
CALENDARS: tuple[Calendar, ...] = get_args(Calendar)
# Units of calendar bins. Weeks start on Monday.
UNITS = ("hour", "day", "week", "month", "quarter", "year")
EPOCH = datetime(1970, 1, 1)
DAY = 86_400


def calendar_of(value: Any) -> Calendar | None:
    """The calendar of a value of a TOML file; None if it is no date or time."""
    if isinstance(value, datetime):
        return "timestamp"
    return "date" if isinstance(value, date) else "time" if isinstance(value, time) else None


def zone_of(name: str) -> tzinfo:
    """The time zone with an IANA name, or with an offset from UTC, such as +02:00.

    Raises:
        Exception: there is none; that of :class:`ZoneInfo`.
    """
    if offset := re.fullmatch(r"([-+])(\d\d):([0-5]\d)", name):
        sign, hours, minutes = offset.groups()
        return timezone(int(f"{sign}1") * timedelta(hours=int(hours), minutes=int(minutes)))
    return ZoneInfo(name)


def to_number(
    calendar: Calendar, value: Any, timezone: str | None = None, format: str | None = None
) -> float:
    """Convert a date or time, or its ISO 8601 text, to a number.

    Args:
        calendar: the kind of value.
        value: text such as "2013-05-31", "2013-05-31 17:30" or "17:30:15", or a value of
            ``datetime``.
        timezone: the zone of timestamps without an offset; None for local time without a zone.
        format: how texts are written, in the codes of ``datetime.strptime``. Texts of ISO 8601 are
            read too, unless it begins with %Y.

    Raises:
        ValueError: it is no such date or time, or it has an offset although there is no time zone.
    """
    if format is not None and isinstance(value, str):
        # One that begins with the year may have the day before the month, unlike ISO 8601.
        with suppress(*() if format.startswith("%Y") else (ValueError,)):
            moment = datetime.strptime(value.strip(), format)
            value = moment.time() if calendar == "time" else moment
    if calendar == "time":
        at = time.fromisoformat(value.strip()) if isinstance(value, str) else value
        if not isinstance(at, time) or at.tzinfo is not None:
            raise ValueError(f"{value!r} is no time of day without an offset")
        seconds = at.hour * 3600 + at.minute * 60 + at.second
        return (seconds * 10**6 + at.microsecond) / 1e6
    moment = _moment(value)
    if calendar == "date":
        days = (moment.replace(tzinfo=None) - EPOCH) / timedelta(days=1)
        if moment.tzinfo is not None or not days.is_integer():
            raise ValueError(f"{value!r} is no date")
        return days
    if timezone is None:
        if moment.tzinfo is not None:
            raise ValueError(f"{value!r} has an offset")
        return (moment - EPOCH) / timedelta(seconds=1)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone_of(timezone))
    return (aware - EPOCH.replace(tzinfo=UTC)) / timedelta(seconds=1)


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise ValueError(f"{value!r} is no date")
    return value


def to_text(calendar: Calendar, number: float, timezone: str | None = None) -> str:
    """The ISO 8601 text that :func:`to_number` reads as this number.

    Timestamps of a time zone have their offset.
    """
    if calendar == "date":
        return (EPOCH + timedelta(days=number)).date().isoformat()
    if calendar == "time":
        # The end of the last bin of a day.
        return (EPOCH + timedelta(seconds=min(number, DAY - 1e-6))).time().isoformat()
    if timezone is None:
        return (EPOCH + timedelta(seconds=number)).isoformat(sep=" ")
    return (
        (EPOCH.replace(tzinfo=UTC) + timedelta(seconds=number))
        .astimezone(zone_of(timezone))
        .isoformat(sep=" ")
    )


def unit_edges(
    calendar: Calendar, low: float, high: float, unit: str, most: int, timezone: str | None = None
) -> tuple[float, ...]:
    """Edges from ``low`` to ``high``, and at the starts of all calendar units between.

    Args:
        calendar: kind of the values.
        low, high: first and last edge, as numbers (:func:`to_number`).
        unit: "hour", "day", "week", "month", "quarter" or "year".
        most: largest number of bins.
        timezone: time zone of timestamps.

    Raises:
        ValueError: the calendar has no such unit, or there are more than ``most``.
    """
    if calendar == "time":
        if unit != "hour":
            raise ValueError("times of day have bins of an hour, or a number of bins")
        inside = [3600.0 * hour for hour in range(25)]
    elif unit == "hour":
        if calendar == "date":
            raise ValueError("dates have bins of a day at least")
        if (high - low) / 3600 > most:
            raise ValueError(f"there are more than {most:,} hours between them")
        inside = [
            3600.0 * hour for hour in range(math.floor(low / 3600), math.ceil(high / 3600) + 1)
        ]
    else:
        scale = 1 if calendar == "date" else DAY
        if (high - low) / scale > most * {"day": 1, "week": 7}.get(unit, 28):
            raise ValueError(f"there are more than {most:,} bins of a {unit} between them")
        first = (EPOCH + timedelta(days=math.floor(low / scale) - 1)).date()
        last = (EPOCH + timedelta(days=math.ceil(high / scale) + 1)).date()
        inside = [to_number(calendar, start, timezone) for start in _starts(first, last, unit)]
    return (low, *(edge for edge in inside if low < edge < high), high)


def _starts(first: date, last: date, unit: str) -> list[date]:
    if unit in ("day", "week"):
        start = first - timedelta(days=first.weekday()) if unit == "week" else first
        step = 7 if unit == "week" else 1
        return [start + timedelta(days=i) for i in range(0, (last - start).days + 1, step)]
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    numbers = range(
        (first.year * 12 + first.month - 1) // months * months, last.year * 12 + last.month, months
    )
    return [date(number // 12, number % 12 + 1, 1) for number in numbers]
