"""Days of the week and hours of the day at which a column of dates has more records than at others, for drafts.

Example: matches are on Saturdays, most at 15:30. Bins of months keep none of that: within a bin, rows have
every day and every hour alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import Floats, Integers
from .calendar import DAY
from .dates import Dates

WEEKDAYS, HOURS, HOUR = 7, 24, 3600
# Fewest records, and least total variation distance from an even spread. 1,000 records that are spread evenly over
# the hours of the day are .06 from it.
LEAST_RECORDS, UNEVEN = 1000, 0.2


def lost_rhythm(attribute: Dates, moments: Mapping[float, int]) -> str | None:
    """Of what the bins of a column lose an uneven spread: "days of the week", "hours of the day", both, or nothing.

    Args:
        attribute: the drafted column.
        moments: its records by date or time, as a number.
    """
    if attribute.grid or attribute.calendar == "time":
        return None
    at = np.array([*moments], np.int64)
    records = np.array([*moments.values()], np.float64)
    if records.sum() < LEAST_RECORDS:
        return None
    day = DAY if attribute.calendar == "timestamp" else 1
    width = float(np.median(np.diff(attribute.edges)))
    out = []
    if width > WEEKDAYS * day and _distance(at // day % WEEKDAYS, records, WEEKDAYS) > UNEVEN:
        out.append("days of the week")
    # Midnight alone is a date without a time.
    timed = attribute.calendar == "timestamp" and (at % DAY).any()
    if timed and width > DAY and _distance(at % DAY // HOUR, records, HOURS) > UNEVEN:
        out.append("hours of the day")
    return " and ".join(out) or None


def _distance(places: Integers, records: Floats, count: int) -> float:
    """Total variation distance of records by place from an even spread."""
    shares = np.bincount(places, weights=records, minlength=count) / records.sum()
    return float(np.abs(shares - 1 / count).sum() / 2)
