"""Patterns of dates and times: %d.%m.%Y, and with the flags of C's strftime %-d/%-m/%Y for 4/6/2022 and %d%^b%Y for 24JUN2022.

Codes are those of Python's strptime. Besides, ``%-d`` has no leading zero, ``%^b`` is in capitals, ``%P`` is am or pm, and ``%:z`` an offset
with a colon. Of parts of a second, ``%f`` has six digits, ``%3f`` three, and ``%-f`` as few as they need, but one; ``%.f`` is nothing for whole
seconds, else a point and as few digits as they need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from ..calendar import DAY, EPOCH, Calendar, zone_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Floats

# How texts are written without a pattern.
ISO = {"date": "%Y-%m-%d", "time": "%H:%M:%S", "timestamp": "%Y-%m-%d %H:%M:%S"}
# Patterns whose texts are read as any of ISO 8601.
READ_AS_ISO = re.compile(r"%Y-%m-%d|(%Y-%m-%d[T ])?%H:%M(:%S(%\.f|[.,]%[-1-9]?f)?)?(Z|%:?z)?")
# Codes that Arrow does not write so. Parts of a second are first.
PARTS_OF_SECONDS = re.compile(r"%\.f|%[-1-9]?f")
FLAGGED = re.compile(r"(%\.f|%[-1-9]?f|%[-^][a-zA-Z]|%P|%:z)")
# Texts that Arrow reads, by calendar, and whether they have an offset.
SECONDS_OF_DAY = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
USUAL_ISO = {
    ("date", False): r"^\d{4}-\d\d-\d\d$",
    ("timestamp", False): rf"^\d{{4}}-\d\d-\d\d[ T]{SECONDS_OF_DAY}$",
    ("timestamp", True): rf"^\d{{4}}-\d\d-\d\d[ T]{SECONDS_OF_DAY}(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$",
}
# Digits of microseconds.
MICRO = 6
# Codes that may lack their leading zero, and names.
UNPADDED, NAMES = "dmHI", "bBaA"
PARTS = {
    **dict.fromkeys("dmHIMSy", r"\d{1,2}"),
    "Y": r"\d{4}",
    "f": r"\d{1,6}",
    **dict.fromkeys(NAMES, r"[^\W\d]+"),
    "p": r"[AaPp][Mm]",
}


def bare(pattern: str) -> str:
    """The pattern in codes that ``datetime.strptime`` has."""
    pattern = re.sub(r"%[-^1-9]([a-zA-Z])", r"%\1", pattern).replace("%.f", ".%f")
    return pattern.replace("%P", "%p").replace("%:z", "%z")


def is_read_as_iso(pattern: str) -> bool:
    """Whether texts of the pattern are read as any other of ISO 8601."""
    return READ_AS_ISO.fullmatch(pattern) is not None


def as_seen(pattern: str, texts: Iterable[str]) -> str:
    """The pattern with the flags of texts, which are all of it."""
    codes = re.findall(r"%(.)", pattern)
    if not set(codes) <= PARTS.keys():
        return pattern
    expression = re.sub(r"%(.)", lambda code: f"({PARTS[code[1]]})", re.escape(pattern))
    read = re.compile(expression)
    found: list[set[str]] = [set() for _ in codes]
    for text in texts:
        if match := read.fullmatch(text.strip()):
            for seen, part in zip(found, match.groups(), strict=True):
                seen.add(part)
    flagged = iter(_flagged(code, seen) for code, seen in zip(codes, found, strict=True))
    return re.sub(r"%.", lambda _: next(flagged), pattern)


def _flagged(code: str, seen: set[str]) -> str:
    """A code with the flag of texts."""
    if code in UNPADDED and any(len(part) == 1 for part in seen):
        # Where both are seen, the zero is usual.
        return (
            f"%{code}"
            if any(part.startswith("0") and len(part) > 1 for part in seen)
            else f"%-{code}"
        )
    if code == "f" and seen:
        width = {*map(len, seen)}
        alike = len(width) == 1
        return "%-f" if not alike else "%f" if width == {MICRO} else f"%{width.pop()}f"
    if code in NAMES and seen and all(map(str.isupper, seen)):
        return f"%^{code}"
    if code == "p" and seen and all(map(str.islower, seen)):
        return "%P"
    return f"%{code}"


def iso_pattern(calendar: Calendar, texts: Iterable[str], zone: str | None) -> str | None:
    """How texts of ISO 8601 are written; None if they are so without a pattern, or differ."""
    if calendar == "date":
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.replace_substring_regex(pa.array([*texts], pa.large_string()), r"\d", "0")
    patterns = {_iso(shape.strip(), zone) for shape in digits.unique().to_pylist()}
    if len(patterns) > 1:
        # Parts of a second of several lengths.
        shortest = "%.f" if any(one and "f" not in one for one in patterns) else ".%-f"
        patterns = {one and re.sub(r"(%S)(\.%\df)?", rf"\1{shortest}", one) for one in patterns}
    pattern = next(iter(patterns)) if len(patterns) == 1 else None
    return None if pattern in (ISO[calendar], ISO[calendar] + "%.f") else pattern


def _iso(text: str, zone: str | None) -> str | None:
    """The pattern of a text of ISO 8601."""
    shape = re.fullmatch(
        r"(\d{4}-\d{2}-\d{2}([T ]))?\d{2}:\d{2}(:\d{2})?(([.,])(\d{1,9}))?(Z|[-+]\d{2}(:?)\d{2})?",
        text,
    )
    if shape is None:
        return None
    date, between, seconds, _, mark, parts, offset, colon = shape.groups()
    pattern = f"%Y-%m-%d{between}" if date else ""
    pattern += "%H:%M:%S" if seconds else "%H:%M"
    pattern += f"{mark}%{len(parts)}f" if parts else ""
    if offset == "Z":
        # Times of several offsets are written in UTC.
        return pattern + "Z" if zone == "UTC" else None
    return pattern + ("" if not offset else "%:z" if colon else "%z")


def of_iso(calendar: Calendar, texts: pa.ChunkedArray, zone: str | None) -> Floats | None:
    """Texts as numbers at once; None if some are of another form of ISO 8601, or in a time zone [shape=(n,), float64]."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (shape := USUAL_ISO.get((calendar, zone is not None))) is None:
        # Arrow reads no times of day.
        return None
    usual = pc.match_substring_regex(texts, shape)
    # Python has no year 0.
    if not pc.all(pc.and_not(usual, pc.starts_with(texts, "0000"))).as_py():
        return None
    kind = pa.date32() if calendar == "date" else pa.timestamp("us", zone and "UTC")
    try:
        cells = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    ticks = cells.cast(pa.int32()) if calendar == "date" else cells
    numbers: Floats = ticks.cast(pa.int64()).to_numpy().astype(float)
    return numbers if calendar == "date" else numbers / 10**MICRO


def written(calendar: Calendar, zone: str | None, pattern: str, numbers: pa.Array) -> pa.Array:
    """Dates or times as texts, null where they are [length n].

    Args:
        calendar: their kind.
        zone: time zone of timestamps.
        pattern: how they are written.
        numbers: numbers of :mod:`vertimrf.columns.calendar` [int64, or double if they have parts of a second].
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts_of_seconds = None
    if pa.types.is_floating(numbers.type):
        code = PARTS_OF_SECONDS.search(pattern)
        numbers, parts_of_seconds = _parted(numbers, code and code[0])
    if calendar == "time":
        # The end of the last bin of a day.
        numbers = pc.min_element_wise(numbers, DAY - 1, skip_nulls=False)
    seconds = pc.multiply(numbers, DAY) if calendar == "date" else numbers
    moments = seconds.cast(pa.timestamp("s", zone))
    try:
        parts = [
            _fraction(part, moments, parts_of_seconds)
            if PARTS_OF_SECONDS.fullmatch(part)
            else _part(part, moments)
            for part in FLAGGED.split(pattern)
            if part
        ]
    except pa.ArrowException:
        # A code that Arrow does not have.
        return pa.array(
            [_by_python(pattern, number, zone) for number in seconds.to_pylist()], pa.string()
        )
    return pc.binary_join_element_wise(*parts, "") if len(parts) > 1 else parts[0]


def _parted(numbers: pa.Array, code: str | None) -> tuple[pa.Array, pa.Array]:
    """Numbers as whole seconds, and as microseconds, of as many digits as a code writes and double precision has [int64]."""
    import pyarrow as pa

    absent = numbers.is_null().to_numpy(zero_copy_only=False)
    known = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    whole = np.floor(known)
    digits = 0 if code is None else int(code[1]) if code[1].isdigit() else MICRO
    if digits:
        # Microseconds that double precision does not tell apart.
        errors = 10.0 ** np.ceil(np.log10(np.spacing(np.abs(known)) * 10**MICRO))
        each = np.maximum(errors, 10.0 ** max(MICRO - digits, 0))
        micro = np.rint((known - whole) * 10**MICRO / each) * each
        over = micro >= 10**MICRO
        whole, micro = whole + over, np.where(over, 0, micro)
    else:
        micro = np.zeros(len(known))
    return pa.array(whole.astype(np.int64), mask=absent), pa.array(
        micro.astype(np.int64), mask=absent
    )


def _fraction(code: str, moments: pa.Array, micro: pa.Array | None) -> pa.Array:
    """Parts of a second as texts, null where moments are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if micro is None:
        micro = pc.multiply(moments.cast(pa.timestamp("s")).cast(pa.int64()), 0)
    digits = pc.utf8_lpad(micro.cast(pa.string()), MICRO, "0")
    if code in ("%.f", "%-f"):
        digits = pc.utf8_rtrim(digits, characters="0")
        if code == "%-f":
            return pc.if_else(pc.equal(digits, ""), "0", digits)
        return pc.if_else(pc.equal(digits, ""), "", pc.binary_join_element_wise(".", digits, ""))
    width = MICRO if code == "%f" else int(code[1])
    return pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, width), width, "0")


def _part(pattern: str, moments: pa.Array) -> pa.Array:
    """A part of a pattern as text: a code with a flag, or several without one."""
    import pyarrow.compute as pc

    texts = pc.strftime(moments, format=bare(pattern))
    if pattern == "%:z":
        return pc.replace_substring_regex(texts, r"(\d\d)$", r":\1")
    if pattern == "%P":
        return pc.utf8_lower(texts)
    if pattern.startswith("%^"):
        return pc.utf8_upper(texts)
    if pattern.startswith("%-"):
        return pc.replace_substring_regex(texts, r"^0+(.)", r"\1")
    return texts


def _by_python(pattern: str, number: int | None, zone: str | None) -> str | None:
    """A moment as text, without flags."""
    if number is None:
        return None
    at = EPOCH.replace(tzinfo=UTC) + timedelta(seconds=number)
    local: datetime = at.astimezone(zone_of(zone)) if zone else at.replace(tzinfo=None)
    return local.strftime(bare(pattern))
