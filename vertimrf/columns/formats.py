"""Numbers and dates as people write them: 31/12/2019, $1,200, 13%, 1 234,5."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SchemaError
from .calendar import Calendar, to_number

DateOrder = Literal["day-first", "month-first"]
DATES = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y"),
    *("%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
)
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p")
# Signs of a number that carry no value, besides the separator of thousands.
ORNAMENTS = r"\s\p{Zs}\p{Sc}%'’+"
# How bytes are read that are invalid in a file's encoding.
UNDECODED = r"\\x[89a-f][0-9a-f]"


def plain_numbers(texts: pa.ChunkedArray, mark: str) -> pa.ChunkedArray:
    """Texts of numbers without currency and percent signs and separators of thousands.

    Args:
        texts: the texts.
        mark: the decimal mark, "." or ",".

    Returns:
        The texts with a decimal point. A text that is no such number stays no number.
    """
    texts = pc.replace_substring(texts, "\u2212", "-")
    group = rf"[\s\p{{Zs}}'’{',.'.replace(mark, '')}]"
    shape = rf"\s*[-+]?\p{{Sc}}?\s*[-+]?([1-9]\d{{0,2}}({group}\d{{3}})+|\d+)([{mark}]\d+)?[\s\p{{Zs}}]*[%\p{{Sc}}]?\s*"
    bare = pc.replace_substring_regex(texts, f"[{ORNAMENTS}{',.'.replace(mark, '')}]", "")
    bare = pc.replace_substring(bare, mark, ".")
    return pc.if_else(
        pc.match_substring_regex(texts, f"^{shape}$"), bare, pc.replace_substring(texts, ".", mark)
    )


def dates_written(
    counts: Mapping[str, int], order: DateOrder | None
) -> tuple[str, Calendar, dict[float, int]] | None:
    """The format that all texts of dates, timestamps or times of day have.

    Args:
        counts: records by text.
        order: which of day and month comes first, where both fit.

    Returns:
        The format (of :mod:`datetime`), the calendar, and the records by moment. None if no format
        fits.

    Raises:
        SchemaError: formats fit that mean different dates.
    """
    fitting: list[tuple[str, Calendar, dict[float, int]]] = []
    for form in (*CLOCKS, *map("".join, itertools.product(DATES, TIMES))):
        calendar: Calendar = "time" if form in CLOCKS else "timestamp" if ":" in form else "date"
        moments: dict[float, int] = {}
        with suppress(ValueError):
            for text, count in counts.items():
                moment = datetime.strptime(text.strip(), form)
                at = to_number(calendar, moment.time() if calendar == "time" else moment)
                moments[at] = moments.get(at, 0) + count
            fitting.append((form, calendar, moments))
    if order is not None:
        first = order == "day-first"
        fitting = [
            one for one in fitting if (one[0].find("%d") < one[0].find("%m")) == first
        ] or fitting
    if any(one[2] != fitting[0][2] for one in fitting):
        raise SchemaError(f"has dates that may be {' or '.join(one[0] for one in fitting)}")
    return fitting[0] if fitting else None
