"""The register of notations."""

from __future__ import annotations

from collections.abc import Mapping

from ..calendar import Calendar
from .durations import Durations
from .epoch import PER_SECOND, Epoch
from .marked import Marked
from .moments import Moments
from .notation import DateOrder, Notation, Recognised
from .worded import Worded

# In the order in which they are tried.
NOTATIONS: tuple[type[Notation], ...] = (Moments, Durations, Marked, Worded)


def recognised(
    counts: Mapping[str, int], order: DateOrder | None, of_texts: bool
) -> Recognised | None:
    """The first notation that all texts of a column have.

    Args:
        counts: records by text.
        order: which of day and month comes first, where both fit.
        of_texts: whether the column is text by its type.

    Returns:
        What the texts are; None if no notation fits.

    Raises:
        SchemaError: they may mean different things.
    """
    for kind in NOTATIONS:
        if kind.of_texts or not of_texts:
            found = kind.recognise(counts, order)
            if found is not None:
                return found
    return None


def named(format: str) -> Notation | None:
    """The notation of numbers that a schema names so; None if there is none."""
    return next(filter(None, (kind.named(format) for kind in NOTATIONS)), None)


def of_moments(kind: Calendar, timezone: str | None, format: str | None) -> Moments:
    """The notation of dates and times that a schema names so (:class:`.Moments`)."""
    return (Epoch if format in PER_SECOND else Moments)(kind, timezone, format)
